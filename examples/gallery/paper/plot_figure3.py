"""
Figure 3: one sweep of the sampler
==================================

From a partition to the next, in four steps. Neighbors of one color are bonded at random; what is bonded is a
spin-cluster; each spin-cluster chooses a color, its own, another one or a new one, so that many sites move at once.
Rings mark the sites that changed.
"""

import matplotlib.pyplot as plt
import numpy as np

from studies.paper.figure3 import SIDE, choose_sweep, lattice_model

sweep = choose_sweep()
rows, columns = np.divmod(np.arange(SIDE * SIDE), SIDE)
moved = np.flatnonzero(sweep.before != sweep.after)


def draw(ax, title, colors, bonds=()):
    """Draw the sites over the lattice and the bonds."""
    for pairs, color, width in [
        (lattice_model().graph.edges, "0.85", 1),
        (bonds, "black", 4),
    ]:
        for pair in pairs:
            ax.plot(
                columns[list(pair)],
                rows[list(pair)],
                color=color,
                linewidth=width,
                zorder=1,
            )
    ax.scatter(columns, rows, s=130, c=colors, zorder=2)
    ax.set_title(title)
    ax.set(
        xlim=(-0.6, SIDE - 0.4), ylim=(SIDE - 0.4, -0.6), aspect="equal"
    )
    ax.set_axis_off()


clusters = plt.cm.tab10.colors
fig, axes = plt.subplots(2, 2, figsize=(7, 7.4), layout="constrained")
n_spins = sweep.spin_cluster.max() + 1
draw(axes[0, 0], "1. a partition", [clusters[k] for k in sweep.before])
draw(
    axes[0, 1],
    "2. bonds",
    [clusters[k] for k in sweep.before],
    sweep.bonds,
)
draw(
    axes[1, 0],
    f"3. {n_spins} spin-clusters",
    plt.cm.Set3(sweep.spin_cluster),
    sweep.bonds,
)
draw(
    axes[1, 1],
    "4. the next partition",
    [clusters[k] for k in sweep.after],
)
axes[1, 1].scatter(
    columns[moved],
    rows[moved],
    s=330,
    facecolor="none",
    edgecolor="black",
    linewidth=1.5,
)
