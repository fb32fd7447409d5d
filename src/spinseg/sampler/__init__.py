"""Sampling from the posterior."""
