"""Graphs of sites, what lies along their edges, and how regions of them merge."""
