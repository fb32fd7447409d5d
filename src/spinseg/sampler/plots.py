"""Pictures of chains and of their diagnostics, on Matplotlib axes (extra [plot])."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spinseg._errors import MissingExtra
from spinseg.sampler.chains import Chains
from spinseg.sampler.convergence import R_HAT_LIMIT
from spinseg.sampler.diagnostics import QUANTITIES, Diagnostics

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GRAY, WARNING = "#767676", "#D55E00"
MAX_NAMED = 10  # chains that have a color of their own, which a key names
MARGIN = 0.05  # above and below what decides the scale, as a share of it


def new_axes(n: int, width: float, height: float) -> "list[Axes]":
    """So many new axes in a row, on a figure of a size in inches."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise MissingExtra('plots need Matplotlib: pip install "spinseg[plot]"') from None
    return list(plt.subplots(1, n, figsize=(width, height), layout="constrained", squeeze=False)[1][0])


def plot_chains(chains: Chains, axes: "Sequence[Axes] | None" = None) -> "Sequence[Axes]":
    """The traces of log posterior and number of clusters, a line for each chain.

    The burn-in is shaded, and only the sweeps after it decide the scale.
    """
    axes = new_axes(2, 9, 3) if axes is None else axes
    traces: dict[str, NDArray[Any]] = {"log posterior": chains.log_posterior, "number of clusters": chains.n_clusters}
    for each, (name, trace) in zip(axes, traces.items(), strict=True):
        of = f", mean of {chains.n_components} components" if chains.n_components > 1 else ""
        by_sweep = chains.by_sweep(trace)
        lines = each.plot(np.arange(1, chains.n_sweeps + 1), by_sweep.T, linewidth=1)
        each.set_title(name + of, fontsize=10)
        each.set_xlabel("sweep")
        if chains.burn_in:
            each.axvspan(0.5, min(chains.burn_in, chains.n_sweeps) + 0.5, color=GRAY, alpha=0.15, linewidth=0)
            _fit_scale(each, by_sweep[:, chains.burn_in :])
    if 1 < chains.n_chains <= MAX_NAMED:
        names = [str(c + 1) for c in range(chains.n_chains)]
        place = {"loc": "upper left", "bbox_to_anchor": (1, 1), "borderaxespad": 0.0}
        axes[-1].legend(lines, names, title="chain", frameon=False, fontsize=8, title_fontsize=8, **place)
    return axes


def _fit_scale(axes: "Axes", values: NDArray[Any]) -> None:
    """Let the vertical axis cover these values, where there are some."""
    if values.size:
        low, high = float(values.min()), float(values.max())
        margin = MARGIN * (high - low) or 0.5
        axes.set_ylim(low - margin, high + margin)


def plot_diagnostics(diagnostics: Diagnostics, axes: "Axes | None" = None) -> "Axes":
    """The R-hat of every quantity, with its effective sample size; a line is where chains agree well enough."""
    axes = new_axes(1, 6, 2.4)[0] if axes is None else axes
    rows = list(diagnostics.table.items())[::-1]
    names = [QUANTITIES[name][0].removeprefix("the ") for name, _ in rows]
    shown = [row.r_hat if row.r_hat is not None and np.isfinite(row.r_hat) else None for _, row in rows]
    largest = max([1.1, *(value for value in shown if value is not None)])
    for place, ((_, row), value) in enumerate(zip(rows, shown, strict=True)):
        words = _words(row.r_hat, row.ess_bulk)
        if value is not None:
            axes.plot([1, value], [place, place], "-", color=GRAY, linewidth=1)
            axes.plot(value, place, "o", color=WARNING if value > R_HAT_LIMIT else "black")
        axes.annotate(words, (1.02, place), xycoords=("axes fraction", "data"), va="center", fontsize=8)
    axes.axvline(R_HAT_LIMIT, color=GRAY, linestyle="--", linewidth=1)
    axes.set(yticks=range(len(names)), yticklabels=names, xlim=(0.99, largest * 1.01), ylim=(-0.6, len(names) - 0.4))
    axes.set(xlabel=f"R-hat (at most {R_HAT_LIMIT} is acceptable)")
    return axes


def _words(r_hat: Any, ess: float | None) -> str:
    """R-hat and the effective sample size in words."""
    if r_hat is None:
        return "too few chains or draws to tell"
    size = "" if ess is None else f", effective sample size {ess:,.0f}"
    return (f"R-hat {r_hat:.2f}" if np.isfinite(r_hat) else "R-hat infinite") + size
