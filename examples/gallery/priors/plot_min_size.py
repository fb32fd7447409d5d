"""
The effect of a smallest cluster size
=====================================

A Dirichlet process expects many tiny clusters, which are often noise. ``min_size``, T_min in the paper, forbids
clusters of fewer sites: the prior is the same, restricted to the partitions that are left. Every bar is one draw of
the prior, divided into its clusters, the largest first.
"""

import matplotlib.pyplot as plt
import numpy as np

import spinseg as ss

no_neighbors = ss.SiteGraph(500, [])

fig, axes = plt.subplots(
    3, 1, figsize=(6.4, 6.6), sharex=True, layout="constrained"
)
for ax, min_size in zip(axes, [1, 10, 50], strict=True):
    model = ss.Model(
        no_neighbors,
        ss.Flat(),
        ss.DirichletProcess(3.0, min_size=min_size),
    )
    chains = ss.sample(model, sweeps=600, chains=2, burn_in=100, rng=0)
    for bar, draw in enumerate(chains.labels[0, ::50]):
        sizes = np.sort(np.bincount(draw))[::-1]
        left = np.cumsum(sizes) - sizes
        ax.barh(
            bar,
            sizes,
            left=left,
            color=plt.cm.tab20.colors,
            edgecolor="white",
            linewidth=0.5,
            height=0.9,
        )
    mean = chains.n_clusters.mean()
    ax.set_title(
        f"min_size = {min_size}: {mean:.1f} clusters on average",
        size=11,
    )
    ax.set(yticks=[], xlim=(0, 500))
    ax.spines[["top", "right", "left"]].set_visible(False)
axes[-1].set_xlabel("sites")
