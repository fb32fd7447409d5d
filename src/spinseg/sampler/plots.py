"""Figures of chains and of their diagnostics, on Matplotlib axes (extra [plot])."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from spinseg._errors import MissingExtra

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from spinseg.sampler.chains import Chains
    from spinseg.sampler.convergence import Quantity

GRAY, WARNING = "#767676", "#D55E00"
MAX_NAMED = 10  # chains that have a color of their own, which a key names
MARGIN = 0.05  # above and below what decides the scale, as a share of it


def new_axes(n: int, width: float, height: float) -> "list[Axes]":
    """This many new axes in a row, on a figure of a size in inches."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise MissingExtra('plots need Matplotlib: pip install "spinseg[plot]"') from None
    return list(plt.subplots(1, n, figsize=(width, height), layout="constrained", squeeze=False)[1][0])


def plot_traces(chains: "Chains", axes: "Sequence[Axes] | None" = None) -> "Sequence[Axes]":
    """The traces of log posterior and number of clusters, a line for each chain."""
    axes = new_axes(2, 9, 3) if axes is None else axes
    of = f", mean of {chains.n_components} components" if chains.n_components > 1 else ""
    names = {"log posterior": "log_posterior", "number of clusters": "n_clusters"}
    for each, (title, name) in zip(axes, names.items(), strict=True):
        trace = chains.trace(name)
        lines = each.plot(np.arange(1, chains.n_sweeps + 1), trace.T, linewidth=1)
        each.set_title(title + of, fontsize=10)
        each.set_xlabel("sweep")
        if chains.burn_in:
            each.axvspan(0.5, min(chains.burn_in, chains.n_sweeps) + 0.5, color=GRAY, alpha=0.15, linewidth=0)
            after = trace[:, chains.burn_in :]
            if after.size:
                low, high = float(after.min()), float(after.max())
                margin = MARGIN * (high - low) or 0.5
                each.set_ylim(low - margin, high + margin)
    if 1 < chains.n_chains <= MAX_NAMED:
        names_of_chains = [str(c + 1) for c in range(chains.n_chains)]
        place = {"loc": "upper left", "bbox_to_anchor": (1, 1), "borderaxespad": 0.0}
        axes[-1].legend(lines, names_of_chains, title="chain", frameon=False, fontsize=8, title_fontsize=8, **place)
    return axes


def plot_r_hat(rows: "Mapping[str, Quantity]", limit: float, axes: "Axes | None" = None) -> "Axes":
    """The R-hat of every quantity by its name, with its effective sample size, and a line at the limit."""
    axes = new_axes(1, 6, 2.4)[0] if axes is None else axes
    largest = 1.1
    for place, row in enumerate(list(rows.values())[::-1]):
        words = "too few chains or draws to tell"
        if row.r_hat is not None:
            size = "" if row.ess_bulk is None else f", effective sample size {row.ess_bulk:,.0f}"
            words = (f"R-hat {row.r_hat:.2f}" if np.isfinite(row.r_hat) else "R-hat infinite") + size
        if row.r_hat is not None and np.isfinite(row.r_hat):
            axes.plot([1, row.r_hat], [place, place], "-", color=GRAY, linewidth=1)
            axes.plot(row.r_hat, place, "o", color=WARNING if row.r_hat > limit else "black")
            largest = max(largest, row.r_hat)
        axes.annotate(words, (1.02, place), xycoords=("axes fraction", "data"), va="center", fontsize=8)
    axes.axvline(limit, color=GRAY, linestyle="--", linewidth=1)
    axes.set(yticks=range(len(rows)), yticklabels=list(rows)[::-1])
    axes.set(xlim=(0.99, largest * 1.01), ylim=(-0.6, len(rows) - 0.4))
    axes.set(xlabel=f"R-hat (at most {limit} is acceptable)")
    return axes
