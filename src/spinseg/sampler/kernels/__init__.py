"""The compiled code of the sampler."""
