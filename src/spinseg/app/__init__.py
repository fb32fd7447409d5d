"""The web app: an image, sliders, and chains that you can watch."""
