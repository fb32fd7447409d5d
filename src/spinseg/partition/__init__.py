"""Partitions: how clusters are numbered, how far apart two partitions are, and how often sites are together."""
