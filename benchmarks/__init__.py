"""Slow studies: speed against the limit of the hardware, against peers, and scaling."""
