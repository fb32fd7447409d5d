"""From an image to its segmentation."""
