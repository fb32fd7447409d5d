"""
Ten draws of a photograph
=========================

Ten annotators of a photograph give ten segmentations. So do ten draws: some are coarse, some are fine, and nearly all
have the outline of the cup. The share of draws that have a boundary is its probability.
"""

import matplotlib.pyplot as plt
import numpy as np

import spinseg as ss
from spinseg.pictures import PICTURES

image = plt.imread(PICTURES["coffee"].path)[:, 60:520]
seg = ss.segment(image, rng=0)

draws = seg.chains.labels.reshape(-1, seg.model.graph.n_sites)
rng = np.random.default_rng(1)
# from coarse to fine
chosen = sorted(rng.choice(draws, 10, replace=False), key=np.max)

fig, axes = plt.subplots(4, 3, figsize=(7, 8.6), layout="constrained")
for ax, draw in zip(axes.flat, chosen, strict=False):
    ax.imshow(ss.mean_colors(image, 1 + draw[seg.sites]))
    ax.set_title(f"{draw.max() + 1} regions")
axes[3, 1].imshow(
    seg.boundary_probability, cmap="magma", vmin=0, vmax=1
)
axes[3, 1].set_title("all draws")
axes[3, 2].imshow(ss.mean_colors(image, seg.labels))
axes[3, 2].set_title(f"the estimate: {seg.n_clusters}")
for ax in axes.flat:
    ax.set_axis_off()
