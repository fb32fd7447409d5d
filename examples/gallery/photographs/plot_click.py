"""
What belongs with a place
=========================

The probability that every other place lies in the region of the cross: on the cat's forehead, in its eye, and behind
it. Where a place is neither dark nor bright, the draws differ.
"""

import matplotlib.pyplot as plt

import spinseg as ss
from spinseg.pictures import PICTURES

image = plt.imread(PICTURES["cat"].path)
seg = ss.segment(image, rng=0)

fig, axes = plt.subplots(2, 2, figsize=(7, 6), layout="constrained")
axes[0, 0].imshow(image)
axes[0, 0].set_title("three places")
for ax, name, (row, column) in zip(
    axes.flat[1:],
    "abc",
    [(60, 250), (100, 175), (170, 405)],
    strict=True,
):
    together = ss.co_clustering(
        seg.chains.labels, seg.sites[row, column]
    )
    shown = ax.imshow(together[seg.sites], cmap="magma", vmin=0, vmax=1)
    ax.set_title(f"with {name}")
    ax.plot(
        column,
        row,
        "x",
        color="deepskyblue",
        markersize=10,
        markeredgewidth=3,
    )
    axes[0, 0].annotate(
        name,
        (column, row),
        color="white",
        size=15,
        weight="bold",
        ha="center",
        va="center",
    )
fig.colorbar(
    shown,
    ax=axes,
    location="bottom",
    shrink=0.5,
    aspect=40,
    label="probability of one region",
)
for ax in axes.flat:
    ax.set_axis_off()
