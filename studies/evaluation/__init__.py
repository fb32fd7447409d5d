"""Methods compared on images with ground truth."""
