"""Partitions: how far apart two of them are."""
