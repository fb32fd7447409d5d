"""Figure 1: the distribution of the number of clusters of a Dirichlet process, exact and simulated."""

import math
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma

from spinseg.graph.site_graph import SiteGraph
from spinseg.model.likelihoods import Flat
from spinseg.model.posterior import Model
from spinseg.model.priors import DirichletProcess
from spinseg.sampler.sampler import sample
from studies.paper import plots

N_SITES = 1000
ALPHAS = (3.0, 5.0)
MIN_PLOTTED_PROBABILITY = 1e-4  # smaller ones are not visible
MIN_LISTED_PROBABILITY = 1e-9


class SimulationSize(NamedTuple):
    """The number and length of the chains for each alpha."""

    chains: int
    burn_in: int
    sweeps: int


# Half of the chains start from singletons: a burn-in of 100 sweeps is some twenty autocorrelation times.
FULL, QUICK = SimulationSize(40, 100, 2100), SimulationSize(20, 100, 400)


class Frequencies(NamedTuple):
    """Relative frequencies of 0..n_sites clusters, and their standard errors."""

    frequency: NDArray[np.float64]
    standard_error: NDArray[np.float64]


def reproduce(
    out: Path, root: Path | None = None, quick: bool = False, progress: plots.ProgressCallback | None = None
) -> list[Path]:
    """Write figure1.png and figure1.csv to the folder `out`; return their paths. No dataset is needed."""
    plots.require_matplotlib()
    exact = {alpha: exact_distribution(alpha, N_SITES) for alpha in ALPHAS}
    frequencies = {}
    for alpha in ALPHAS:
        if progress is not None:
            progress(f"figure1: simulating {N_SITES} sites at alpha = {alpha:g}")
        frequencies[alpha] = simulate(alpha, N_SITES, QUICK if quick else FULL, rng=1)
    header = ("alpha", "k", "exact", "simulated", "standard_error")
    rows = [
        (
            f"{alpha:g}",
            k,
            f"{exact[alpha][k]:.12g}",
            f"{simulated.frequency[k]:.6g}",
            f"{simulated.standard_error[k]:.3g}",
        )
        for alpha, simulated in frequencies.items()
        for k in np.flatnonzero((exact[alpha] > MIN_LISTED_PROBABILITY) | (simulated.frequency > 0))
    ]
    return [draw(out / "figure1.png", exact, frequencies), plots.write_table(out / "figure1.csv", header, rows)]


def exact_distribution(alpha: float, n_sites: int) -> NDArray[np.float64]:
    """Return the probabilities of 0..n_sites clusters.

    In the Chinese restaurant process site i founds a cluster with probability alpha / (alpha + i), i = 0, 1, ..,
    independently of the others: the number of clusters is a sum of independent Bernoulli variables.

    Examples
    --------
    >>> exact_distribution(1.0, 3)
    array([0.        , 0.33333333, 0.5       , 0.16666667])
    """
    probability = np.zeros(n_sites + 1)
    probability[0] = 1.0
    for i in range(n_sites):
        founds = alpha / (alpha + i)
        probability[1:] = (1 - founds) * probability[1:] + founds * probability[:-1]
        probability[0] *= 1 - founds
    return probability


def exact_mean(alpha: float, n_sites: int) -> float:
    """Return the mean number of clusters, the sum of alpha / (alpha + i) over i = 0..n_sites-1, in closed form.

    Examples
    --------
    >>> round(exact_mean(1.0, 3), 12)  # 1 + 1/2 + 1/3
    1.833333333333
    """
    return float(alpha * (digamma(alpha + n_sites) - digamma(alpha)))


def simulate(alpha: float, n_sites: int, size: SimulationSize, rng: int) -> Frequencies:
    """Return the frequencies in chains that sample the prior, without data or couplings.

    Sweeps of one chain are dependent, chains are not: the standard errors are those of the mean over chains.
    """
    model = Model(SiteGraph(n_sites, []), Flat(), DirichletProcess(alpha))
    chains, burn_in, sweeps = size
    starts = [("one", "singletons")[c % 2] for c in range(chains)]
    drawn = sample(model, sweeps, chains, init=starts, burn_in=burn_in, thin=sweeps - burn_in, rng=rng)
    kept = drawn.trace("n_clusters")[:, burn_in:]
    fractions = np.array([np.bincount(trace, minlength=n_sites + 1) for trace in kept]) / kept.shape[1]
    return Frequencies(fractions.mean(axis=0), fractions.std(axis=0, ddof=1) / math.sqrt(chains))


def draw(path: Path, exact: dict[float, NDArray[np.float64]], frequencies: dict[float, Frequencies]) -> Path:
    """Draw the figure; return the path."""
    figure, (axes,) = plots.new_figure(6.4, 3.8)
    for alpha, color in zip(exact, (plots.BLUE, plots.VERMILION), strict=True):
        plotted = np.flatnonzero(exact[alpha] > MIN_PLOTTED_PROBABILITY)
        axes.plot(plotted, exact[alpha][plotted], color=color, linewidth=1.4)
        simulated = frequencies[alpha]
        axes.errorbar(
            plotted,
            simulated.frequency[plotted],
            yerr=2 * simulated.standard_error[plotted],
            fmt="o",
            markersize=3.2,
            color=color,
            markerfacecolor="white",
            markeredgewidth=1.0,
            elinewidth=1.0,
        )
        mean = exact_mean(alpha, exact[alpha].size - 1)
        top = float((simulated.frequency + 2 * simulated.standard_error).max())
        text = f"$\\alpha$ = {alpha:g}, mean {mean:.2f}"
        axes.text(mean, top + 0.003, text, ha="center", va="bottom", color=color, fontsize=plots.SIZE)
    axes.plot([], [], color=plots.GRAY, linewidth=1.4, label="exact")
    axes.errorbar(
        [np.nan],
        [np.nan],
        yerr=[0],
        fmt="o",
        markersize=3.2,
        color=plots.GRAY,
        markerfacecolor="white",
        label="simulated, $\\pm$ 2 standard errors",
    )
    axes.legend(facecolor="white", edgecolor="none", framealpha=1.0, fontsize=plots.SMALL, loc="upper right")
    axes.set_ylim(0, 1.35 * max(p.max() for p in exact.values()))
    n_sites = next(iter(exact.values())).size - 1
    plots.style_axes(axes, f"number of clusters among {n_sites:,} sites", "probability")
    return plots.save(figure, path)
