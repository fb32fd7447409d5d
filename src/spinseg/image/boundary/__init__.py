"""The evidence of a boundary between neighbouring sites of a photograph."""
