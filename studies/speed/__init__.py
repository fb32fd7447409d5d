"""What a sweep, an image and the web app cost."""
