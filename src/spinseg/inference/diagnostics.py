"""Convergence diagnostics of chains, from quantities that do not depend on how clusters are numbered."""

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spinseg._errors import MissingExtra
from spinseg._validation import invalid
from spinseg.inference.chains import Chains
from spinseg.inference.convergence import R_HAT_LIMIT, rank_r_hat, separation_error, stratified_ess
from spinseg.model.graph import SiteGraph

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
ESS_PER_CHAIN = 100  # below it R-hat and ESS themselves are unreliable (Vehtari et al., section 4)
MIN_DRAWS = 4  # each half of a chain needs a variance
ROUNDING = 1e-10  # a running log posterior drifts by less than this share of itself
ADVICE = (
    "Do not trust the draws yet: sample longer while the log posterior of a chain still rises; where each is level, "
    "that will not help, but other moves or temperatures may."
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
        Of a `Mixture`: the largest R-hat of a single component, whose draws vary less than those of all together.
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
    separation_error : float or None
        The standard error of the probabilities that edges separate, root mean square, from the spread of the chains.
    verdict : str
        A sentence or two in plain language.
    agree : bool or None
        None where that cannot be decided.

    Examples
    --------
    >>> import spinseg as ss
    >>> model = ss.Model(ss.SiteGraph.grid((2, 3)), ss.Flat(), ss.DirichletProcess(1.0), beta=0.5)
    >>> found = ss.diagnose(ss.sample(model, sweeps=400, chains=4, burn_in=100, rng=0), model.graph)
    >>> found.r_hat < 1.1
    True
    """

    table: dict[str, Quantity]
    separation_error: float | None
    verdict: str
    agree: bool | None

    @property
    def r_hat(self) -> float | None:
        """The largest R-hat; None where there is none."""
        return max((row.r_hat for row in self.table.values() if row.r_hat is not None), default=None)

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
        from spinseg.inference.plots import plot_diagnostics

        return plot_diagnostics(self, axes)


def diagnose(chains: Chains, graph: SiteGraph) -> Diagnostics:
    """Rank-normalized R-hat and effective sample sizes of label-invariant quantities, and a verdict in plain language.

    Chains agree where every R-hat is at most 1.05. No such number can see a part of the posterior that no chain
    visited: start chains from different places.

    Parameters
    ----------
    chains : Chains
    graph : SiteGraph
        That of the model.

    References
    ----------
    Vehtari, Gelman, Simpson, Carpenter & Buerkner (2021), https://doi.org/10.1214/20-BA1221

    Examples
    --------
    >>> import spinseg as ss
    >>> graph = ss.SiteGraph(4, [[0, 1], [1, 2], [2, 3]])
    >>> model = ss.Model(graph, ss.PoissonGamma([1, 2, 4, 5]), ss.DirichletProcess(1.0), beta=0.5)
    >>> found = diagnose(ss.sample(model, sweeps=1000, chains=4, rng=0), graph)
    >>> found.agree, found.verdict[:17]
    (True, 'Four chains agree')
    """
    found = traces(chains, graph)
    table = {name: _quantity(name, trace, chains.seconds, chains.n_components) for name, trace in found.items()}
    verdict, agree = _verdict(list(table.values()), chains.n_chains, chains.labels.shape[1])
    return Diagnostics(table, separation_error(chains, graph), verdict, agree)


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
        sizes = np.sort(np.unique(chains.labels[place], return_counts=True)[1])  # so equal sizes give equal entropies
        share = sizes / sizes.sum()
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
    # Equal partitions have log posteriors that differ by drift, which ranks and quantiles would take for a signal. In
    # whole numbers of a small unit, ties stay ties when ArviZ folds a trace at its median, on any processor.
    unit = ROUNDING * max(np.abs(trace).max(), 1.0)
    trace = np.round(trace / unit)
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


def _verdict(rows: list[Quantity], n_chains: int, n_draws: int) -> tuple[str, bool | None]:
    """The verdict in plain language, and whether the chains agree."""
    judged = [row for row in rows if row.ess_bulk is not None]
    if not judged:
        text = f"Too few draws to judge: {n_draws} in each chain after the burn-in; {MIN_DRAWS} are needed."
        return text + " Sample longer.", None
    chains = f"{NUMERALS[n_chains] if n_chains < len(NUMERALS) else n_chains} chains"
    scarce = min(judged, key=_least_ess)
    effective = f"{_least_ess(scarce):,.0f}, of {_called(scarce)}"
    missing = [_called(row) for row in rows if row.ess_bulk is None]
    note = f" There are too few draws, {n_draws} in each chain, to judge {' and '.join(missing)}." if missing else ""
    if n_chains == 1:
        text = "One chain: nothing to compare with, so one cannot tell whether it is stuck."
        text += f" Its smallest effective sample size is {effective}. Sample two or more chains from different starts."
        return text + note, None
    apart = sorted([row for row in judged if _r_hat(row) > R_HAT_LIMIT], key=_r_hat, reverse=True)
    if apart:
        decimals = QUANTITIES[apart[0].name][1]
        means = ", ".join(f"{round(mean, decimals) + 0.0:.{decimals}f}" for mean in apart[0].chain_means)  # no -0.0
        text = f"The chains do not agree: R-hat of {_called(apart[0])} is {_shown(apart[0])} (chain means {means})"
        text += "".join(f", that of {_called(row)} {_shown(row)}" for row in apart[1:])
        return f"{text}; at most {R_HAT_LIMIT} is wanted. {ADVICE}" + note, False
    if all(row.sd == 0 for row in judged):
        text = f"{chains} agree, but nothing in them ever varied: either the posterior is that sure, or all are stuck"
        return f"{text} where they started. Start chains from different places to tell." + note, True
    largest = f"R-hat is at most {max(map(_r_hat, judged)):.2f}"
    if _least_ess(scarce) < ESS_PER_CHAIN * n_chains:
        text = f"{chains} agree so far ({largest}), but the smallest effective sample size is {effective}"
        return f"{text}, and at least {ESS_PER_CHAIN * n_chains} is advised. Sample longer." + note, True
    return f"{chains} agree: {largest}, and the smallest effective sample size is {effective}." + note, True


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
