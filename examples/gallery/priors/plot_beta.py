"""
The effect of beta
==================

Beta is what two neighbors gain when they share a cluster. These are draws without data, of a Potts prior with eight
labels. At beta 0 every site chooses for itself; as beta grows, clusters become patches; beyond 1.34 one of them takes
nearly all. That step is sharp, and with a Dirichlet process, which favors large clusters itself, it comes sooner.
"""

import matplotlib.pyplot as plt
import numpy as np

import spinseg as ss

grid = ss.SiteGraph.grid((60, 60))

fig, axes = plt.subplots(2, 2, figsize=(6.4, 6.9), layout="constrained")
for ax, beta in zip(axes.flat, [0.0, 0.9, 1.3, 1.5], strict=True):
    model = ss.Model(grid, ss.Flat(), ss.Potts(8), beta=beta)
    draw = ss.sample(
        model, sweeps=300, chains=1, burn_in=299, rng=0
    ).labels[0, -1]
    # 0 for the largest cluster
    rank = np.argsort(np.argsort(-np.bincount(draw)))
    ax.imshow(
        rank[draw].reshape(60, 60),
        cmap="tab10",
        vmin=0,
        vmax=9,
        interpolation="nearest",
    )
    share = np.bincount(draw).max() / draw.size
    ax.set_title(
        f"beta = {beta:g}: {share:.0%} in the largest", size=11
    )
    ax.set_axis_off()
