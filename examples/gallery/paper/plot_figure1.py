"""
Figure 1: the number of clusters of a Dirichlet process
=======================================================

The number of clusters among 1,000 sites, without data or couplings: lines are exact, dots are draws of the sampler. A
larger concentration alpha means more clusters, but their number grows only with the logarithm of the number of sites.
"""

import matplotlib.pyplot as plt
import numpy as np

import spinseg as ss
from studies.paper.figure1 import exact_distribution, exact_mean

n = 1000
fig, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
for alpha, color in [(3.0, "C0"), (5.0, "C1")]:
    model = ss.Model(
        ss.SiteGraph(n, []), ss.Flat(), ss.DirichletProcess(alpha)
    )
    chains = ss.sample(
        model, sweeps=600, chains=4, init="opposite", burn_in=100, rng=0
    )
    drawn = chains.n_clusters.ravel()
    ax.plot(
        exact_distribution(alpha, n)[:61],
        color=color,
        label=f"alpha = {alpha:g}, mean {exact_mean(alpha, n):.1f}",
    )
    ax.plot(
        np.bincount(drawn, minlength=61)[:61] / drawn.size,
        "o",
        color=color,
        markersize=4,
    )
ax.set(
    xlabel=f"number of clusters among {n:,} sites",
    ylabel="probability",
    xlim=(0, 60),
    ylim=(0, None),
)
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)
