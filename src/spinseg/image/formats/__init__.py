"""Decoding of image files, one module for each reader; each is imported only where it is used."""
