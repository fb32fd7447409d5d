"""
Cluster the nodes of a network
==============================

Members of a karate club each have a count, say of lessons with one of the two teachers; by counts alone many could be
on either side. Their friendships, as couplings, settle it. Counts are made up from the two sides on which the club
really split, squares and circles, which the model does not know. A pale node is in doubt.
"""

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np

import spinseg as ss

club = nx.karate_club_graph()
truth = np.array([club.nodes[i]["club"] == "Officer" for i in club])
counts = np.random.default_rng(0).poisson(np.where(truth, 10, 3))[
    :, None
]
friends = ss.SiteGraph(len(club), list(club.edges))

alone = ss.SpatialClustering(
    likelihood="poisson", sweeps=1000, random_state=0
).fit(counts)
joined = ss.SpatialClustering(
    likelihood="poisson", sweeps=1000, random_state=0
).fit(counts, connectivity=friends)

fig, axes = plt.subplots(2, 1, figsize=(6.4, 9), layout="constrained")
place = nx.spring_layout(club, seed=4)
x, y = np.array([place[i] for i in club]).T
for ax, found, title in zip(
    axes,
    [alone, joined],
    ["by counts alone", "with friendships"],
    strict=True,
):
    colors = plt.cm.tab10(
        found.labels_ if found.labels_[0] == 0 else 1 - found.labels_
    )
    colors[:, 3] = np.clip(2 * found.probability_ - 1, 0.15, 1)
    nx.draw_networkx_edges(club, place, ax=ax, edge_color="0.8")
    for members, marker in [(truth, "s"), (~truth, "o")]:
        ax.scatter(
            x[members],
            y[members],
            s=330,
            marker=marker,
            color="white",
            zorder=2,
        )
        ax.scatter(
            x[members],
            y[members],
            s=330,
            marker=marker,
            color=colors[members],
            edgecolor="0.4",
            zorder=2,
        )
    for i in club:
        ax.text(
            x[i], y[i], counts[i, 0], ha="center", va="center", zorder=3
        )
    ax.set_title(title)
    ax.set_axis_off()
