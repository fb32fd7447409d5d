"""Benchmarks: speed relative to the hardware limit and to other software, scaling, and accuracy of variants."""
