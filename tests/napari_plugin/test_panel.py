"""The panel in napari: skipped where napari or Qt is not installed, or does not run."""
