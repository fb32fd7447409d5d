"""Pictures larger than memory, tile by tile."""
