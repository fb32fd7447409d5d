"""
A photograph and its regions
============================

What do I get from one call? A label for every pixel, the probability of a boundary between neighboring pixels, and a
sentence that says whether the sampler's chains agree. The number of regions is not asked for.
"""

import spinseg as ss
from spinseg.pictures import PICTURES

seg = ss.segment(PICTURES["coffee"].path, rng=0)
print(seg)

# %%
# On the left the outlines of the regions, on the right the boundaries, the darker the more of the draws have them.
seg.plot()
