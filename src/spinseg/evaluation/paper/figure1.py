"""Figure 1: how many clusters a Dirichlet process has, exactly and as the sampler draws them."""

import math
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma

from spinseg.evaluation.paper import plots
from spinseg.inference.sampler import sample
from spinseg.model.graph import SiteGraph
from spinseg.model.likelihoods import Flat
from spinseg.model.posterior import Model
from spinseg.model.priors import DirichletProcess

N_SITES = 1000
ALPHAS = (3.0, 5.0)
LEAST_SHOWN = 1e-4  # probability: below it neither line nor points can be seen
LEAST_LISTED = 1e-9  # in the table


class Effort(NamedTuple):
    """How much is simulated, for each alpha."""

    chains: int
    burn_in: int
    sweeps: int


# Half of the chains start from singletons: 100 sweeps with splits and merges are some twenty autocorrelation times.
FULL, QUICK = Effort(40, 100, 2100), Effort(20, 100, 400)


class Frequencies(NamedTuple):
    """How often each number of clusters 0..n_sites was seen, and the standard error of that."""

    frequency: NDArray[np.float64]
    standard_error: NDArray[np.float64]


def reproduce(
    out: Path, root: Path | None = None, quick: bool = False, progress: plots.Tell | None = None
) -> list[Path]:
    """Paths of figure1.png and figure1.csv, written to the folder `out`; no dataset is needed."""
    plots.need_matplotlib()
    exact = {alpha: exact_distribution(alpha, N_SITES) for alpha in ALPHAS}
    drawn = {}
    for alpha in ALPHAS:
        if progress is not None:
            progress(f"figure1: simulating {N_SITES} sites at alpha = {alpha:g}")
        drawn[alpha] = simulate(alpha, N_SITES, QUICK if quick else FULL, rng=1)
    header = ("alpha", "k", "exact", "simulated", "standard_error")
    rows = [
        (f"{alpha:g}", k, f"{exact[alpha][k]:.12g}", f"{seen.frequency[k]:.6g}", f"{seen.standard_error[k]:.3g}")
        for alpha, seen in drawn.items()
        for k in np.flatnonzero((exact[alpha] > LEAST_LISTED) | (seen.frequency > 0))
    ]
    return [draw(out / "figure1.png", exact, drawn), plots.write_table(out / "figure1.csv", header, rows)]


def exact_distribution(alpha: float, n_sites: int) -> NDArray[np.float64]:
    """Probabilities of 0..n_sites clusters.

    In the Chinese restaurant process site i founds a cluster with probability alpha / (alpha + i), i = 0, 1, ..,
    whatever the others did: the number of clusters is a sum of independent Bernoulli variables.

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
    """Mean number of clusters, the sum of alpha / (alpha + i) over i = 0..n_sites-1 in closed form.

    Examples
    --------
    >>> round(exact_mean(1.0, 3), 12)  # 1 + 1/2 + 1/3
    1.833333333333
    """
    return float(alpha * (digamma(alpha + n_sites) - digamma(alpha)))


def simulate(alpha: float, n_sites: int, effort: Effort, rng: int) -> Frequencies:
    """Frequencies in chains of the prior, drawn by the sampler without data or couplings.

    Sweeps of one chain depend on each other, chains do not: the standard errors are those of the mean over chains.
    """
    model = Model(SiteGraph(n_sites, []), Flat(), DirichletProcess(alpha))
    chains, burn_in, sweeps = effort
    starts = [("one", "singletons")[c % 2] for c in range(chains)]
    drawn = sample(model, sweeps, chains, init=starts, burn_in=burn_in, thin=sweeps - burn_in, rng=rng)
    kept = drawn.n_clusters[:, burn_in:]
    shares = np.array([np.bincount(trace, minlength=n_sites + 1) for trace in kept]) / kept.shape[1]
    return Frequencies(shares.mean(axis=0), shares.std(axis=0, ddof=1) / math.sqrt(chains))


def draw(path: Path, exact: dict[float, NDArray[np.float64]], drawn: dict[float, Frequencies]) -> Path:
    """The path, where the figure is now."""
    figure, (axes,) = plots.new_figure(6.4, 3.8)
    for alpha, colour in zip(exact, (plots.BLUE, plots.VERMILION), strict=True):
        shown = np.flatnonzero(exact[alpha] > LEAST_SHOWN)
        axes.plot(shown, exact[alpha][shown], color=colour, linewidth=1.4)
        seen = drawn[alpha]
        axes.errorbar(
            shown,
            seen.frequency[shown],
            yerr=2 * seen.standard_error[shown],
            fmt="o",
            markersize=3.2,
            color=colour,
            markerfacecolor="white",
            markeredgewidth=1.0,
            elinewidth=1.0,
        )
        mean = exact_mean(alpha, exact[alpha].size - 1)
        top = float((seen.frequency + 2 * seen.standard_error).max())
        text = f"$\\alpha$ = {alpha:g}, mean {mean:.2f}"
        axes.text(mean, top + 0.003, text, ha="center", va="bottom", color=colour, fontsize=plots.SIZE)
    axes.plot([], [], color=plots.GREY, linewidth=1.4, label="exact")
    axes.errorbar(
        [np.nan],
        [np.nan],
        yerr=[0],
        fmt="o",
        markersize=3.2,
        color=plots.GREY,
        markerfacecolor="white",
        label="simulated, $\\pm$ 2 standard errors",
    )
    axes.legend(facecolor="white", edgecolor="none", framealpha=1.0, fontsize=plots.SMALL, loc="upper right")
    axes.set_ylim(0, 1.35 * max(p.max() for p in exact.values()))
    n_sites = next(iter(exact.values())).size - 1
    plots.dress(axes, f"number of clusters among {n_sites:,} sites", "probability")
    return plots.save(figure, path)
