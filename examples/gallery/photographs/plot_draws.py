"""
Ten answers to one question
===========================

Ask ten people to divide a photograph into its parts, and you get ten answers. The draws are such answers: some are
coarse, some are fine, and nearly all have the outline of the cup. How many of them have a boundary is its
probability.
"""

import matplotlib.pyplot as plt
import numpy as np

import spinseg as ss
from spinseg.pictures import PICTURES

picture = plt.imread(PICTURES["coffee"].path)[:, 60:520]
seg = ss.segment(picture, rng=0)

draws = seg.chains.labels.reshape(-1, seg.model.graph.n_sites)
rng = np.random.default_rng(1)
chosen = sorted(rng.choice(draws, 10, replace=False), key=np.max)  # from coarse to fine

fig, axes = plt.subplots(4, 3, figsize=(7, 8.6), layout="constrained")
for ax, draw in zip(axes.flat, chosen, strict=False):
    ax.imshow(ss.mean_colors(picture, 1 + draw[seg.sites]))
    ax.set_title(f"{draw.max() + 1} regions")
axes[3, 1].imshow(seg.boundary_probability, cmap="magma", vmin=0, vmax=1)
axes[3, 1].set_title("all draws")
axes[3, 2].imshow(ss.mean_colors(picture, seg.labels))
axes[3, 2].set_title(f"the estimate: {seg.n_clusters}")
for ax in axes.flat:
    ax.set_axis_off()
