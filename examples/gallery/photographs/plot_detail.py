"""
Levels of detail
================

Is a cat one region, or are its eyes separate regions? Both are right, at different levels of detail. The draws cover
every level, so ``seg.at`` gives a coarser or a finer segmentation without sampling again. Each region is painted in its
mean color.
"""

import matplotlib.pyplot as plt

import spinseg as ss
from spinseg.pictures import PICTURES

seg = ss.segment(PICTURES["cat"].path, rng=0)

fig, axes = plt.subplots(3, 2, figsize=(7, 7.6), layout="constrained")
axes[0, 0].imshow(plt.imread(PICTURES["cat"].path))
axes[0, 0].set_title("the photograph")
for ax, detail in zip(
    axes.flat[1:], [0.2, 0.5, 0.7, 0.8, 1], strict=True
):
    found = seg.at(detail)
    ax.imshow(ss.mean_colors(seg.picture, found.labels))
    ax.set_title(f"detail {detail:g}: {found.n_clusters} regions")
for ax in axes.flat:
    ax.set_axis_off()
