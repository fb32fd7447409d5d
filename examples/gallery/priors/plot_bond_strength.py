"""
The effect of lambda
====================

A sweep bonds neighbors of one cluster, each pair with probability 1 - exp(-lambda beta), and what is bonded moves
together: a spin-cluster. Every shade is one. At lambda 1, the algorithm of Swendsen and Wang, they are small here; at
5 they are nearly whole clusters, which then change hands at once. Lambda changes the steps, never the posterior.
"""

import matplotlib.pyplot as plt
import numpy as np

import spinseg as ss

rng = np.random.default_rng(1)
grid, beta = ss.SiteGraph.grid((40, 40)), 0.4
rows, columns = np.indices((40, 40))
labels = np.where(
    columns + 4 * np.sin(rows / 6) < 18, 0, np.where(rows < 22, 1, 2)
).ravel()
within = labels[grid.edges[:, 0]] == labels[grid.edges[:, 1]]
colors = plt.cm.tab10(labels)[:, :3]

fig, axes = plt.subplots(2, 2, figsize=(6.4, 6.9), layout="constrained")
axes[0, 0].imshow(colors.reshape(40, 40, 3), interpolation="nearest")
axes[0, 0].set_title("three clusters")
for ax, lam in zip(axes.flat[1:], [1, 2, 5], strict=True):
    bonds = within & (
        rng.random(grid.n_edges) < 1 - np.exp(-lam * beta)
    )
    spin_cluster = grid.components(bonds)
    # mixed into the color of the cluster
    white = rng.uniform(0, 0.8, spin_cluster.max() + 1)[
        spin_cluster, None
    ]
    ax.imshow(
        (white + (1 - white) * colors).reshape(40, 40, 3),
        interpolation="nearest",
    )
    ax.set_title(
        f"lambda = {lam}: {spin_cluster.max() + 1} spin-clusters"
    )
for ax in axes.flat:
    ax.set_axis_off()
