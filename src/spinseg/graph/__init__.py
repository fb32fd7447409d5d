"""Graphs of sites, and what lies along their edges."""
