"""
Figure 2: couplings lower the number of clusters
================================================

The mean number of clusters against the coupling beta of neighbors, without data, on superpixels of a photograph. Each
dot is the mean over two chains from opposite starts; at beta 0 it can be computed, which is the mark on the axis.
"""

import matplotlib.pyplot as plt

import spinseg as ss
from spinseg.pictures import PICTURES
from studies.paper.figure1 import exact_mean

image = ss.read_picture(PICTURES["coffee"].path)
graph = ss.region_adjacency(ss.superpixels(image, n_sites=500))
betas = [0, 0.02, 0.05, 0.1, 0.15, 0.2]

fig, ax = plt.subplots(figsize=(7, 4.4), layout="constrained")
for alpha, color in [(5.0, "C1"), (3.0, "C0"), (1.0, "C2")]:
    means = []
    for beta in betas:
        model = ss.Model(
            graph, ss.Flat(), ss.DirichletProcess(alpha), beta
        )
        chains = ss.sample(
            model,
            sweeps=300,
            chains=2,
            init="opposite",
            burn_in=60,
            rng=0,
        )
        means.append(chains.n_clusters.mean())
    ax.plot(betas, means, "o-", color=color, label=f"alpha = {alpha:g}")
    ax.plot(
        0,
        exact_mean(alpha, graph.n_sites),
        "_",
        color="black",
        markersize=16,
        zorder=3,
    )
ax.set(
    xlabel="coupling of neighbors, beta",
    ylabel="mean number of clusters",
    ylim=(0, None),
)
ax.set_title(
    f"{graph.n_sites} sites, {graph.n_edges:,} pairs of neighbors"
)
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)
