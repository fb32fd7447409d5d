"""
A hierarchy of regions
======================

Every boundary has a height: the probability that the draws give it. Those above a level always close to regions, and
a region at a high level is a union of regions at a lower one. So one segmentation holds a whole tree of nested ones.
"""

import matplotlib.pyplot as plt

import spinseg as ss
from spinseg.pictures import PICTURES

image = plt.imread(PICTURES["astronaut"].path)[:300, 60:460]
seg = ss.segment(image, rng=0)

fig, axes = plt.subplots(2, 2, figsize=(7, 6.2), layout="constrained")
heights = axes[0, 0].imshow(
    seg.hierarchy.boundary, cmap="magma", vmin=0, vmax=1
)
axes[0, 0].set_title("heights of the boundaries")
for ax, level in zip(axes.flat[1:], [0.1, 0.4, 0.8], strict=True):
    labels = seg.hierarchy.labels(level)
    ax.imshow(ss.mean_colors(image, labels))
    ax.set_title(f"above {level:g}: {labels.max()} regions")
fig.colorbar(
    heights,
    ax=axes,
    location="bottom",
    shrink=0.5,
    aspect=40,
    label="probability of a boundary",
)
for ax in axes.flat:
    ax.set_axis_off()
