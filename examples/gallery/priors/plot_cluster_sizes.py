"""
Cluster sizes under four priors
===============================

Four priors, each with about ten clusters among 500 sites. Every bar is one draw, divided into its clusters, the
largest first. The Dirichlet process and, more so, the Pitman-Yor process expect a few large clusters and many
small ones; the finite Dirichlet and the mixture of finite mixtures, which does not fix their number, expect similar
sizes.
"""

import matplotlib.pyplot as plt
import numpy as np

import spinseg as ss

priors = {
    "Dirichlet process": ss.DirichletProcess(1.65),
    "Pitman-Yor process": ss.PitmanYor(0.0, discount=0.35),
    "finite Dirichlet": ss.FiniteDirichlet(
        n_labels=10, concentration=1.0
    ),
    "mixture of finite mixtures": ss.MixtureOfFiniteMixtures(
        concentration=1.0, mean_labels=10
    ),
}
no_neighbors = ss.SiteGraph(500, [])

fig, axes = plt.subplots(
    2, 2, figsize=(7, 5.6), sharex=True, layout="constrained"
)
for ax, (name, prior) in zip(axes.flat, priors.items(), strict=True):
    chains = ss.sample(
        ss.Model(no_neighbors, ss.Flat(), prior),
        600,
        chains=2,
        burn_in=100,
        rng=0,
    )
    for bar, draw in enumerate(chains.labels[0, ::45]):
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
    ax.set_title(
        f"{name}\n{chains.n_clusters.mean():.1f} clusters on average",
        size=11,
    )
    ax.set(yticks=[], xlim=(0, 500))
    ax.spines[["top", "right", "left"]].set_visible(False)
fig.supxlabel("sites")
