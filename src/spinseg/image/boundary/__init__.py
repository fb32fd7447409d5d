"""Evidence of boundaries between adjacent sites of a photograph."""
