"""
A photograph and its regions
============================

One call gives a label for every pixel, the probability of a boundary between neighboring pixels, and a verdict on
whether the sampler's chains have converged. You don't set the number of regions.
"""

import spinseg as ss
from spinseg.pictures import PICTURES

seg = ss.segment(PICTURES["coffee"].path, rng=0)
print(seg)

# %%
# Left: the outlines of the regions. Right: the probability of each boundary; brighter is more probable.
seg.plot()
