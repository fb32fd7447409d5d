"""The report of a segmentation, one HTML file that needs no other."""
