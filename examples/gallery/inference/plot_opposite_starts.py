"""
Chains from opposite starts
===========================

Two chains start from one cluster, two from as many clusters as there are sites. The paper's sampler moves
spin-clusters only, and its chains stay near where they began. ``moves="auto"`` adds splits, merges and regroupings,
and all four meet.
"""

import matplotlib.pyplot as plt

import spinseg as ss
from spinseg.pictures import PICTURES

image = plt.imread(PICTURES["cat"].path)[:240, 60:300]

fig, axes = plt.subplots(
    1, 2, figsize=(7, 3.4), sharey=True, layout="constrained"
)
for ax, moves, title in zip(
    axes,
    ["gsw", "auto"],
    ["the paper's sampler", 'moves="auto"'],
    strict=True,
):
    seg = ss.segment(
        image,
        preset="paper",
        moves=moves,
        init="opposite",
        chains=4,
        sweeps=500,
        rng=0,
    )
    for start, color in [(0, "C0"), (1, "C1")]:
        ax.plot(
            seg.chains.trace("n_clusters")[start::2].T,
            color=color,
            linewidth=0.8,
        )
    ax.set(title=f"{title}: R-hat {seg.r_hat:.2f}", xlabel="sweep")
axes[0].plot([], "C0", label="from one cluster")
axes[0].plot([], "C1", label="from single sites")
axes[0].legend(frameon=False)
axes[0].set(
    ylabel="number of clusters",
    ylim=(5, 25),
    yticks=[5, 10, 15, 20, 25],
)
