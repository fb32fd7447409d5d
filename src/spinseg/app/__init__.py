"""The page: a picture, sliders, and chains that can be watched."""
