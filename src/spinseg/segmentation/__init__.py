"""From a picture to its segmentation."""
