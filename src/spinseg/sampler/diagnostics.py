"""Convergence diagnostics of chains, from quantities that do not depend on how clusters are numbered."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spinseg._errors import MissingExtra
from spinseg._validation import invalid
from spinseg.graph.site_graph import SiteGraph
from spinseg.sampler.chains import Chains
from spinseg.sampler.convergence import (
    AGREEMENT_LIMIT,
    ERROR_LIMIT,
    R_HAT_LIMIT,
    Judgement,
    Partitions,
    agreement_of_draws,
    agreement_of_partitions,
    error_in_doubt,
    rank_r_hat,
    separation_of_chains,
    stratified_ess,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The name of each quantity in a sentence, and its decimals.
QUANTITIES = {
    "log_posterior": ("the log posterior", 1),
    "n_clusters": ("the number of clusters", 1),
    "concentration": ("the concentration", 2),
    "entropy": ("the entropy of the cluster sizes", 2),
    "edge_agreement": ("the share of edges within clusters", 3),
}
# R-hat of the log posterior is shown, and not judged: on thousands of sites it differs between chains for details that
# change neither the partition nor the probabilities. Both are judged themselves.
SHOWN_ONLY = ("log_posterior",)
ESS_PER_CHAIN = 100  # below it R-hat and ESS themselves are unreliable (Vehtari et al., section 4)
MIN_DRAWS = 4  # each half of a chain needs a variance
ROUNDING = 1e-10  # a running log posterior drifts by less than this share of itself
ADVICE = (
    "Sample longer if the log posterior of a chain still rises. If each is level, try other moves, temperatures or "
    "more chains."
)
NUMERALS = ("No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten")


@dataclass(frozen=True)
class Quantity:
    """Summary and convergence diagnostics of one quantity; None where they cannot be computed.

    Attributes
    ----------
    chain_means : one number per chain
    sd : float or None
        Standard deviation over all chains; 0 where the quantity never varied. None with fewer than 4 draws.
    r_hat : float or None
        Rank-normalized, split R-hat. 1 where the quantity never varied in any chain, infinite where each chain keeps a
        value of its own. None for one chain or fewer than 4 draws.
    ess_bulk, ess_tail : float or None
        Effective sample size of all chains together, for the bulk and for the 5% and 95% quantiles. It is
        the number of draws where the quantity never varied. None with fewer than 4 draws.
    ess_per_second : float or None
        `ess_bulk` over the wall time of the sampling, burn-in included.
    r_hat_of_components : float or None
        Of a mixture: the largest R-hat of a single component, whose draws vary less than those of all together.
    """

    name: str
    chain_means: tuple[float, ...]
    sd: float | None
    r_hat: float | None
    ess_bulk: float | None
    ess_tail: float | None
    ess_per_second: float | None
    r_hat_of_components: float | None = None


@dataclass(frozen=True, repr=False)
class Diagnostics:
    """Convergence diagnostics of several chains, printed as a table and a verdict.

    Attributes
    ----------
    table : dict of name to Quantity
        log_posterior, n_clusters, concentration where it was sampled, entropy (of the cluster sizes, in bits) and
        edge_agreement (the share of edges whose two sites share a cluster).
    judgement : Judgement
        Whether the chains have converged, and the numbers that decide it.
    verdict : str
        A sentence or two in plain language.

    Examples
    --------
    >>> import spinseg as ss
    >>> model = ss.Model(ss.SiteGraph.grid((2, 3)), ss.Flat(), ss.DirichletProcess(1.0), beta=0.5)
    >>> found = ss.diagnose(ss.sample(model, sweeps=400, chains=4, burn_in=100, rng=0), model.graph)
    >>> found.r_hat < 1.1
    True
    """

    table: dict[str, Quantity]
    judgement: Judgement
    verdict: str

    @property
    def converged(self) -> bool | None:
        """Whether the chains have converged; None for one chain or too few draws."""
        return self.judgement.converged

    @property
    def agreement(self) -> float | None:
        """The adjusted Rand index between chains, at least 0.9 if they have converged."""
        return self.judgement.agreement

    @property
    def standard_error(self) -> float | None:
        """That of boundary probabilities between 0.2 and 0.8, root mean square: at most 0.04 if they have converged."""
        return self.judgement.standard_error

    @property
    def r_hat(self) -> float | None:
        """The largest R-hat of the table, without that of the log posterior: at most 1.05 if chains have converged."""
        return self.judgement.r_hat

    @property
    def ess(self) -> float | None:
        """The smallest bulk effective sample size; None where there is none."""
        return min((row.ess_bulk for row in self.table.values() if row.ess_bulk is not None), default=None)

    def __repr__(self) -> str:
        lines = [f"{'':<16}{'mean':>12}{'sd':>9}{'R-hat':>8}{'bulk ESS':>10}{'tail ESS':>10}{'ESS/s':>10}"]
        for name, row in self.table.items():
            decimals = QUANTITIES[name][1]
            mean = float(np.mean(row.chain_means)) if row.chain_means else None
            cells = [(mean, 12, decimals), (row.sd, 9, decimals), (row.r_hat, 8, 2)]
            cells += [(row.ess_bulk, 10, 0), (row.ess_tail, 10, 0), (row.ess_per_second, 10, 1)]
            lines.append(f"{name:<16}" + "".join(f"{'-' if x is None else f'{x:.{d}f}':>{w}}" for x, w, d in cells))
        return "\n".join([*lines, self.verdict])

    def plot(self, axes: "Axes | None" = None) -> "Axes":
        """Draw the R-hat of every quantity, and how far it may be from 1, on Matplotlib axes, new ones by default."""
        from spinseg.sampler.plots import plot_diagnostics

        return plot_diagnostics(self, axes)


def diagnose(
    chains: Chains,
    graph: SiteGraph,
    partitions: Partitions | None = None,
    area: NDArray[np.integer] | None = None,
) -> Diagnostics:
    """Whether chains have converged: agreement, standard errors, R-hat and effective sample sizes, and a verdict.

    Chains have converged if the adjusted Rand index between them is at least 0.9, the standard error of the boundary
    probabilities in doubt, between 0.2 and 0.8, is at most 0.04, and R-hat of every property of the partition is at
    most 1.05. No such number can detect a part of the posterior that no chain reached: start chains from different
    places.

    Parameters
    ----------
    chains : Chains
    graph : SiteGraph
        That of the model.
    partitions : sequence of sequences of (n_sites,) arrays, optional
        What each chain alone estimates, one or more partitions for each, numbered from 0. By default a few draws of
        different chains are compared, beside draws of the same chain: that is fast, and right for a wide posterior.
    area : (n_sites,) array of int, optional
        The weight of each site where `partitions` are compared; 1 by default.

    References
    ----------
    Vehtari, Gelman, Simpson, Carpenter & Buerkner (2021), https://doi.org/10.1214/20-BA1221;
    Hubert & Arabie (1985), https://doi.org/10.1007/BF01908075

    Examples
    --------
    >>> import spinseg as ss
    >>> graph = ss.SiteGraph(4, [[0, 1], [1, 2], [2, 3]])
    >>> model = ss.Model(graph, ss.PoissonGamma([1, 2, 4, 5]), ss.DirichletProcess(1.0), beta=0.5)
    >>> found = diagnose(ss.sample(model, sweeps=1000, chains=4, rng=0), graph)
    >>> found.converged, found.verdict[:26]
    (True, 'Four chains have converged')
    """
    found = traces(chains, graph)
    table = {name: _quantity(name, trace, chains.seconds, chains.n_components) for name, trace in found.items()}
    judgement = Judgement(None, None, _largest(row.r_hat for name, row in table.items() if name not in SHOWN_ONLY))
    if judgement.r_hat is not None:
        alike = agreement_of_draws(chains.labels) if partitions is None else agreement_of_partitions(partitions, area)
        error = error_in_doubt(separation_of_chains(chains, graph.edges))
        judgement = replace(judgement, agreement=alike, standard_error=error)
    return Diagnostics(table, judgement, _verdict(list(table.values()), judgement, chains.labels.shape[:2]))


def may_stop(
    chains: Chains,
    graph: SiteGraph,
    partitions: Callable[[Chains], Partitions | None],
    area: NDArray[np.integer] | None = None,
) -> bool:
    """Whether more sweeps are of no use: `diagnose` would find that the chains have converged, or never would.

    The latter is where chains do not agree though the probabilities have half the error that they may have: two
    partitions are then about as good, and the agreement does not rise with the sweeps. `partitions` gives those of each
    chain alone. What takes longest is computed last, if at all.
    """
    error = error_in_doubt(separation_of_chains(chains, graph.edges))
    judgement = Judgement(1.0, error, 1.0)
    if error is None or not judgement.converged:
        return False
    judged = (trace for name, trace in traces(chains, graph).items() if name not in SHOWN_ONLY)
    r_hat = _largest(rank_r_hat(_in_units(trace)[0]) for trace in judged if trace.shape[1] >= MIN_DRAWS)
    judgement = replace(judgement, r_hat=r_hat)
    if not judgement.converged or error <= ERROR_LIMIT / 2:
        return judgement.converged is True
    agreement = agreement_of_partitions(partitions(chains) or [], area)
    return replace(judgement, agreement=agreement).converged is True


def _largest(numbers: Iterable[float | None]) -> float | None:
    """The largest of these numbers; None without one."""
    return max((number for number in numbers if number is not None), default=None)


def traces(chains: Chains, graph: SiteGraph | None = None) -> dict[str, NDArray[Any]]:
    """Quantities that do not depend on labels, each of shape (chain, draw).

    log_posterior, n_clusters and, where it was sampled, concentration of every sweep after the burn-in; of every draw
    the entropy of the cluster sizes, sum of -(m / n) log2(m / n), and edge_agreement, the share of edges whose two ends
    share a cluster (1 if none is there).

    Parameters
    ----------
    chains : Chains
    graph : SiteGraph, optional
        That of the model. Without it edge_agreement is left out.

    Examples
    --------
    >>> import spinseg as ss
    >>> graph = ss.SiteGraph(3, [[0, 1], [1, 2]])
    >>> model = ss.Model(graph, ss.PoissonGamma([1, 2, 30]), ss.DirichletProcess(1.0))
    >>> {name: trace.shape for name, trace in traces(ss.sample(model, 20, chains=2, thin=5, rng=0), graph).items()}
    {'log_posterior': (2, 20), 'n_clusters': (2, 20), 'entropy': (2, 4), 'edge_agreement': (2, 4)}
    """
    entropy = np.empty(chains.labels.shape[:2])
    for place in np.ndindex(entropy.shape):
        sizes = np.sort(np.bincount(chains.labels[place]))  # so equal sizes give equal entropies
        share = sizes[sizes > 0] / sizes.sum()
        entropy[place] = -share @ np.log2(share)
    found: dict[str, NDArray[Any]] = {
        "log_posterior": chains.kept(chains.log_posterior),
        "n_clusters": chains.kept(chains.n_clusters),
    }
    if chains.concentration is not None:
        found["concentration"] = chains.kept(chains.concentration)
    found["entropy"] = entropy
    if graph is not None:
        found["edge_agreement"] = _edge_agreement(chains.labels, graph)
    return found


def _edge_agreement(labels: NDArray[np.int32], graph: SiteGraph) -> NDArray[np.float64]:
    """The share of edges within clusters, of each draw."""
    if labels.shape[-1] != graph.n_sites:
        invalid("graph", f"have the {labels.shape[-1]} sites of the chains", graph.n_sites)
    agreement = np.ones(labels.shape[:2])
    if graph.n_edges > 0:
        for place in np.ndindex(agreement.shape):  # one at a time: a table of draws x edges may not fit
            ends = labels[place][graph.edges]
            agreement[place] = (ends[:, 0] == ends[:, 1]).mean()
    return agreement


def to_arviz(chains: Chains, graph: SiteGraph | None = None) -> Any:
    """The draws as an ArviZ DataTree; needs the extra `spinseg[diagnostics]`.

    Group `posterior` holds n_clusters, concentration where it was sampled, entropy and edge_agreement of each draw,
    `sample_stats` its log posterior as `lp`. The labels are a group of their own, `partition`: they are arbitrary in
    each draw, and must not be summarized.

    Parameters
    ----------
    chains : Chains
    graph : SiteGraph, optional
        That of the model. Without it edge_agreement is left out.

    Raises
    ------
    ImportError
        Where arviz-base or xarray is not installed.

    Examples
    --------
    >>> import spinseg as ss
    >>> graph = ss.SiteGraph(2, [[0, 1]])
    >>> model = ss.Model(graph, ss.PoissonGamma([1, 2]), ss.DirichletProcess(1.0))
    >>> to_arviz(ss.sample(model, sweeps=10, chains=2, rng=0), graph)["posterior"].sizes["draw"]  # doctest: +SKIP
    10
    """
    try:
        from_dict = import_module("arviz_base").from_dict
    except ImportError as error:
        missing = f"the module {error.name or 'arviz_base'}, which cannot be imported"
        raise MissingExtra(f'to_arviz needs {missing}: pip install "spinseg[diagnostics]"') from None
    posterior = traces(chains, graph)
    for name in posterior.keys() & {"log_posterior", "n_clusters", "concentration"}:
        posterior[name] = chains.of_draws(getattr(chains, name))
    groups = {
        "sample_stats": {"lp": posterior.pop("log_posterior")},
        "posterior": posterior,
        "partition": {"labels": chains.labels},
    }
    return from_dict(groups, dims={"labels": ["site"]})


def _quantity(name: str, trace: NDArray[Any], seconds: float, n_components: int) -> Quantity:
    """R-hat and effective sample sizes of one trace, whose entries are of the components in turn."""
    if not np.isfinite(trace).all():
        invalid(name, "be finite", trace[~np.isfinite(trace)][0])
    n_chains, n_draws = trace.shape
    means = tuple(trace.mean(axis=1).tolist()) if n_draws > 0 else ()
    if n_draws < MIN_DRAWS:
        return Quantity(name, means, None, None, None, None, None)
    trace, unit = _in_units(trace)
    halves = np.concatenate([trace[:, : n_draws // 2], trace[:, -(n_draws // 2) :]])  # what R-hat compares
    sd, r_hat, bulk, tail = 0.0, 1.0, float(trace.size), float(trace.size)
    if np.ptp(halves) > 0:
        from arviz_stats.base import array_stats  # takes long to load

        sd = float(unit * trace.std())
        with np.errstate(divide="ignore", invalid="ignore"):  # halves without variance
            if n_components == 1:
                bulk = float(array_stats.ess(trace, method="bulk"))
                tail = float(array_stats.ess(trace, method="tail", prob=0.05))
            else:
                bulk = stratified_ess(trace, n_components)
                tail = min(stratified_ess(trace <= np.quantile(trace, q), n_components) for q in (0.05, 0.95))
        r_hat = rank_r_hat(trace)
    per_second = bulk / seconds if seconds > 0 else None
    if n_chains == 1:
        return Quantity(name, means, sd, None, bulk, tail, per_second)
    alone = None
    if n_components > 1 and n_draws >= MIN_DRAWS * n_components:
        alone = max(rank_r_hat(trace[:, d::n_components]) for d in range(n_components))
    return Quantity(name, means, sd, r_hat, bulk, tail, per_second, alone)


def _in_units(trace: NDArray[Any]) -> tuple[NDArray[np.float64], float]:
    """A trace in whole numbers of a small unit, and that unit.

    Equal partitions have log posteriors that differ by drift, which ranks and quantiles would take for a signal. In
    whole numbers, ties stay ties when ArviZ folds a trace at its median, on any processor.
    """
    unit = ROUNDING * max(np.abs(trace).max(), 1.0)
    return np.round(trace / unit), unit


def _verdict(rows: list[Quantity], judgement: Judgement, shape: tuple[int, ...]) -> str:
    """The verdict in plain language; `shape` is the number of chains and of draws of each."""
    n_chains, n_draws = shape
    judged = [row for row in rows if row.ess_bulk is not None]
    if not judged:
        text = (
            f"Too few draws to assess convergence: {n_draws} in each chain after the burn-in; {MIN_DRAWS} are needed."
        )
        return text + " Sample longer."
    chains = f"{NUMERALS[n_chains] if n_chains < len(NUMERALS) else n_chains} chains"
    scarce = min(judged, key=_least_ess)
    effective = f"{_least_ess(scarce):,.0f}, of {_called(scarce)}"
    missing = [_called(row) for row in rows if row.ess_bulk is None]
    note = f" There are too few draws, {n_draws} in each chain, to judge {' and '.join(missing)}." if missing else ""
    if n_chains == 1:
        text = "One chain cannot show whether it has converged. Run two or more chains from different starts."
        return f"{text} The smallest effective sample size is {effective}." + note
    if judgement.converged is False:
        return f"The chains have not converged: {'; '.join(_shortfalls(judged, judgement))}. {ADVICE}" + note
    if judgement.converged is None:
        return f"There are too few draws to assess convergence. Sample longer.{note}"
    if all(row.sd == 0 for row in judged):
        text = (
            f"{chains} have converged, but nothing in them ever varied: either the posterior is that sure, or all are"
        )
        return f"{text} stuck where they started. Start chains from different places to tell." + note
    other = [row for row in judged if row.name in SHOWN_ONLY and _r_hat(row) > R_HAT_LIMIT]
    note += "".join(f" R-hat of {_called(row)} is {_shown(row)}: chains still differ in details." for row in other)
    numbers = f"agreement is {judgement.agreement:.2f}, and R-hat is at most {judgement.r_hat:.2f}"
    if _least_ess(scarce) < ESS_PER_CHAIN * n_chains:
        text = f"{chains} have converged so far: {numbers}. The smallest effective sample size is {effective}"
        return f"{text}, and at least {ESS_PER_CHAIN * n_chains} is advised. Sample longer." + note
    return f"{chains} have converged: {numbers}. The smallest effective sample size is {effective}." + note


def _shortfalls(rows: list[Quantity], judgement: Judgement) -> list[str]:
    """What keeps chains from having converged, each with what is needed."""
    found = []
    if judgement.partition_converged is False:
        found.append(f"their agreement is {judgement.agreement:.2f}, and at least {AGREEMENT_LIMIT} is needed")
    if (error := judgement.standard_error) is not None and error > ERROR_LIMIT:
        needed = f"at most {ERROR_LIMIT} is needed"
        found.append(f"the standard error of the probabilities in doubt is {error:.3f}, and {needed}")
    apart = [row for row in rows if row.name not in SHOWN_ONLY and _r_hat(row) > R_HAT_LIMIT]
    if apart:
        first, *others = sorted(apart, key=_r_hat, reverse=True)
        decimals = QUANTITIES[first.name][1]
        means = ", ".join(f"{round(mean, decimals) + 0.0:.{decimals}f}" for mean in first.chain_means)  # no -0.0
        text = f"R-hat of {_called(first)} is {_shown(first)} (chain means {means})"
        text += "".join(f", that of {_called(row)} {_shown(row)}" for row in others)
        found.append(f"{text}, and at most {R_HAT_LIMIT} is acceptable")
    return found


def _called(row: Quantity) -> str:
    """The quantity's name in a sentence."""
    return QUANTITIES[row.name][0]


def _r_hat(row: Quantity) -> float:
    """R-hat as a number; rows without one are not asked."""
    return row.r_hat or 1.0


def _shown(row: Quantity) -> str:
    """R-hat in a sentence."""
    if row.r_hat == np.inf:
        return "infinite"
    return f"{row.r_hat:.2f}" if _r_hat(row) > 1.1 else f"{row.r_hat:.3f}"  # 1.054 is not at most 1.05


def _least_ess(row: Quantity) -> float:
    """The smaller effective sample size; rows without one are not asked."""
    return min(row.ess_bulk or 0.0, row.ess_tail or 0.0)
