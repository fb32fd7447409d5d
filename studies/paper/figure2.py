"""Figure 2: the mean number of clusters under the Potts-Dirichlet prior, against the coupling beta."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinseg.graph.adjacency import region_adjacency
from spinseg.graph.site_graph import SiteGraph
from spinseg.image.io import read_picture
from spinseg.image.superpixels import superpixels
from spinseg.model.likelihoods import Flat
from spinseg.model.posterior import Model
from spinseg.model.priors import DirichletProcess
from spinseg.pictures import PICTURES
from spinseg.sampler import rank_statistics
from spinseg.sampler.sampler import sample
from studies.paper import plots
from studies.paper.figure1 import exact_mean

N_SITES = 1099  # as in the paper, which does not describe its graph
PICTURE = "coffee"
ALPHAS = (1.0, 3.0, 5.0)
PRINTED = {1.0: 6.6, 3.0: 17.2, 5.0: 26.5}  # the paper's caption for beta = 0: each one cluster short


class SimulationSize(NamedTuple):
    """The couplings and chains for each alpha."""

    betas: tuple[float, ...]
    chains: int
    burn_in: int
    sweeps: int


FULL = SimulationSize((0.0, 0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1), 4, 300, 2300)
QUICK = SimulationSize((0.0, 0.01, 0.02, 0.05, 0.1), 4, 150, 550)


class Point(NamedTuple):
    """The mean number of clusters at one alpha and beta; R-hat is over chains from one cluster and from singletons."""

    alpha: float
    beta: float
    mean: float
    standard_error: float
    r_hat: float


def reproduce(
    out: Path, root: Path | None = None, quick: bool = False, progress: plots.ProgressCallback | None = None
) -> list[Path]:
    """Write figure2.png and figure2.csv to the folder `out`; return their paths. No dataset is needed."""
    plots.require_matplotlib()
    graph, size = site_graph(), QUICK if quick else FULL
    points = []
    for alpha in ALPHAS:
        if progress is not None:
            progress(f"figure2: simulating {len(size.betas)} priors on {graph.n_sites} sites at alpha = {alpha:g}")
        points += [simulate(graph, alpha, beta, size, rng=2) for beta in size.betas]
    header = ("alpha", "beta", "mean", "standard_error", "exact", "r_hat")
    rows = [
        (
            f"{at.alpha:g}",
            f"{at.beta:g}",
            f"{at.mean:.6g}",
            f"{at.standard_error:.3g}",
            f"{exact_mean(at.alpha, graph.n_sites):.10g}" if at.beta == 0 else "",
            f"{at.r_hat:.4f}",
        )
        for at in points
    ]
    return [draw(out / "figure2.png", points, graph), plots.write_table(out / "figure2.csv", header, rows)]


def site_graph(n_sites: int = N_SITES) -> SiteGraph:
    """Return the adjacency graph of exactly `n_sites` superpixels of a bundled photograph.

    SLIC makes approximately the requested number. More are requested until there are enough; then the smallest, one
    after the other, are merged with the neighbor of the longest common boundary.
    """
    picture = read_picture(PICTURES[PICTURE].path)
    asked = n_sites
    sites = superpixels(picture, n_sites=asked)
    while sites.max() + 1 < n_sites:
        asked += max(1, n_sites // 200)
        sites = superpixels(picture, n_sites=asked)
    while sites.max() + 1 > n_sites:
        sites = _without_smallest(sites)
    return region_adjacency(sites)


def _without_smallest(sites: NDArray[np.int32]) -> NDArray[np.int32]:
    """Merge the smallest site with the neighbor of the longest common boundary."""
    touching = region_adjacency(sites)
    smallest = int(np.bincount(sites.ravel()).argmin())
    mine = np.flatnonzero((touching.edges == smallest).any(axis=1))
    longest = mine[touching.length[mine].argmax()]
    other = int(touching.edges[longest].sum()) - smallest
    joined = np.where(sites == smallest, other, sites)
    return joined - (joined > smallest).astype(np.int32)


def simulate(graph: SiteGraph, alpha: float, beta: float, size: SimulationSize, rng: int) -> Point:
    """Return the mean over chains that sample the prior, started alternately from one cluster and from singletons.

    The moves include splits and merges: without couplings the paper's sampler takes 7 (alpha = 5) to 60 (alpha = 1)
    times as many sweeps for the same error. The standard error accounts for the autocorrelation of chains.
    """
    model = Model(graph, Flat(), DirichletProcess(alpha), beta)
    _, chains, burn_in, sweeps = size
    starts = [("one", "singletons")[c % 2] for c in range(chains)]
    drawn = sample(model, sweeps, chains, init=starts, burn_in=burn_in, thin=sweeps - burn_in, rng=rng)
    trace = drawn.trace("n_clusters")[:, burn_in:].astype(np.float64)
    error = float(trace.std(ddof=1) / np.sqrt(rank_statistics.ess_mean(trace)))
    return Point(alpha, beta, float(trace.mean()), error, rank_statistics.r_hat(trace))


def draw(path: Path, points: list[Point], graph: SiteGraph) -> Path:
    """Draw the figure; return the path."""
    figure, (axes,) = plots.new_figure(6.4, 4.2)
    for alpha, color in zip(ALPHAS, (plots.GREEN, plots.BLUE, plots.VERMILION), strict=True):
        line = [at for at in points if at.alpha == alpha]
        betas, means = [at.beta for at in line], [at.mean for at in line]
        axes.errorbar(
            betas,
            means,
            yerr=[2 * at.standard_error for at in line],
            color=color,
            fmt="o-",
            markersize=3.6,
            linewidth=1.4,
            elinewidth=1.0,
            capsize=2,
        )
        axes.text(
            betas[-1] + 0.0015, means[-1], f"$\\alpha$ = {alpha:g}", color=color, va="center", fontsize=plots.SIZE
        )
        exact = exact_mean(alpha, graph.n_sites)
        axes.plot([-0.0025, 0.0025], [exact, exact], color=plots.BLACK, linewidth=1.2, zorder=4)
        axes.text(-0.0035, exact, f"{exact:.2f}", color=plots.BLACK, ha="right", va="center", fontsize=plots.SMALL)
        axes.plot([0.0], [PRINTED[alpha]], "D", markersize=4.5, color=plots.GRAY, markerfacecolor="none", zorder=5)
    axes.plot([], [], color=plots.BLACK, linewidth=1.2, label="exact without couplings")
    axes.plot(
        [], [], "D", markersize=4.5, color=plots.GRAY, markerfacecolor="none", label="printed in the paper's caption"
    )
    axes.errorbar(
        [np.nan],
        [np.nan],
        yerr=[0],
        fmt="o-",
        markersize=3.6,
        color=plots.GRAY,
        label="simulated, $\\pm$ 2 standard errors",
    )
    axes.legend(facecolor="white", edgecolor="none", framealpha=1.0, fontsize=plots.SMALL, loc="upper right")
    axes.set_xlim(-0.011, 0.112)
    axes.set_ylim(0, None)
    title = f"{graph.n_sites:,} sites, {graph.n_edges:,} pairs of neighbors"
    plots.style_axes(axes, "coupling of neighbors $\\beta$ (nats)", "mean number of clusters", title)
    return plots.save(figure, path)
