"""Whether chains have converged, in numbers: agreement of partitions, standard errors, R-hat, sample sizes."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinseg._validation import invalid
from spinseg.graph.site_graph import SiteGraph
from spinseg.partition.contingency import adjusted_rand_index_of, contingency_table
from spinseg.partition.pairs import separation_probability
from spinseg.sampler import rank_statistics
from spinseg.sampler.chains import Chains, in_units

AGREEMENT_LIMIT = 0.9  # adjusted Rand index; docs/evidence/notebook.md compares it with that of repeated runs
ERROR_LIMIT = 0.04  # standard error of the probabilities in doubt
R_HAT_LIMIT = 1.05  # chains of partitions mix slowly; Vehtari et al. ask for 1.01
IN_DOUBT = (0.2, 0.8)  # a boundary with a probability between these is in doubt
POOLED_DEGREES = 4  # of freedom that the variance of all edges counts for, in that of one boundary
LEAST_VARIANCE = 0.01  # of a draw that was the same in all chains
COMPARED_DRAWS = 12  # of each chain, where draws are compared
MIN_DRAWS = 4  # each half of a chain needs a variance
# Not judged by its R-hat: on thousands of sites it differs for details that change neither partition nor probabilities.
SHOWN_ONLY = ("log_posterior",)
Partitions = Sequence[NDArray[np.integer]]  # estimated from all draws, then from parts of them; numbered from 0


@dataclass(frozen=True)
class Quantity:
    """Summary and convergence diagnostics of one quantity; None with fewer than 4 draws.

    Attributes
    ----------
    chain_means : one number per chain
    sd : float or None
        Standard deviation over all chains; 0 where the quantity never varied.
    r_hat : float or None
        Rank-normalized, split R-hat. 1 where the quantity never varied in any chain, infinite where each chain keeps a
        value of its own. None for one chain, too.
    ess_bulk, ess_tail : float or None
        Effective sample size of all chains together, for the bulk and for the 5% and 95% quantiles: the number of draws
        where the quantity never varied.
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


def agreement_of_partitions(partitions: Partitions, area: NDArray[np.integer] | None = None) -> float | None:
    """The least adjusted Rand index between the first partition and each of the others; None where there are none.

    `area` is the weight of each site, 1 by default.
    """
    tables = (contingency_table(partitions[0], part, area) for part in partitions[1:])
    return min((adjusted_rand_index_of(table) for table in tables), default=None)


def agreement_of_draws(labels: NDArray[np.int32]) -> float | None:
    """How alike the draws of different chains are, beside draws of the same chain: 1 where they are as alike.

    It is 1 less the difference of two mean adjusted Rand indices: that between early and late draws of one chain, and
    that between early draws of one chain and late draws of another. The posterior may be wide: only what chains add to
    its width counts against them. None for one chain or fewer than two draws. `labels` are (chain, draw, site).
    """
    n_chains, n_draws = labels.shape[:2]
    if n_chains < 2 or n_draws < 2:
        return None
    kept = labels[:, np.linspace(0, n_draws - 1, min(n_draws, COMPARED_DRAWS)).round().astype(np.intp)]
    early, late = kept[:, : kept.shape[1] // 2], kept[:, kept.shape[1] // 2 :]
    alike = np.array([[_mean_index(a, b) for b in late] for a in early])
    within = float(np.trace(alike)) / n_chains
    between = (float(alike.sum()) - float(np.trace(alike))) / (n_chains * (n_chains - 1))
    return 1 - max(within - between, 0.0)


def _mean_index(first: NDArray[np.int32], second: NDArray[np.int32]) -> float:
    """The mean adjusted Rand index between draws of one chain and draws of another."""
    return float(np.mean([adjusted_rand_index_of(contingency_table(*pair)) for pair in product(first, second)]))


def separation_of_chains(chains: Chains, edges: NDArray[np.int32]) -> NDArray[np.float64]:
    """The separation probability of each edge in each chain alone, (chain, component, edge); NaN without draws."""
    return separation_of_draws(chains.labels, edges, chains.n_components)


def separation_of_draws(labels: NDArray[Any], edges: NDArray[np.int32], n: int) -> NDArray[np.float64]:
    """The same from the labels of chains, (chain, draw, site), whose draws are of the `n` components in turn."""
    return np.array([[separation_probability(draws[d::n], edges) for d in range(n)] for draws in labels])


def standard_errors(of_boundaries: NDArray[Any], of_edges: NDArray[Any]) -> NDArray[np.float64]:
    """The standard error of each probability: its spread between chains, pooled with that of all edges in doubt.

    With two chains a boundary's own spread has one degree of freedom for each component in which it is uncertain, and
    is often too small by luck. So its variance is moderated, as that of a gene by those of all genes (Smyth 2004,
    doi:10.2202/1544-6115.1027): by the variance of independent draws with its probabilities, times what edges in doubt
    show that dependence between draws adds. NaN for one chain. Both have the mean over the draws of each chain and
    component, (chain, component, ..); boundaries may be averages of edges, or edges.
    """
    if len(of_edges) < 2 or not of_edges.size:
        return np.full(of_boundaries.shape[2:], np.nan)
    doubtful = in_doubt(of_edges.mean(axis=(0, 1)))
    used = of_edges[:, :, doubtful] if doubtful.any() else of_edges
    dependence = _variances(used).sum() / _variances_if_independent(used).sum()
    expected, own = dependence * _variances_if_independent(of_boundaries), _variances(of_boundaries)
    degrees = _degrees_of_freedom(of_boundaries)
    return np.sqrt((POOLED_DEGREES * expected + degrees * own) / (POOLED_DEGREES + degrees))


def _variances(of_chains: NDArray[Any]) -> NDArray[np.float64]:
    """The squared standard error of the mean over chains and components, from the spread between chains.

    Chains are independent, and draws of one chain are not. Each component has chains of its own, so the variances of
    their means add up.
    """
    n_chains, n_components = of_chains.shape[:2]
    return of_chains.var(axis=0, ddof=1).sum(axis=0) / n_chains / n_components**2


def _variances_if_independent(of_chains: NDArray[Any]) -> NDArray[np.float64]:
    """The same up to a constant, for independent draws; never 0, as what no draw had may still be possible."""
    probability = of_chains.mean(axis=0)
    return (probability * (1 - probability) + LEAST_VARIANCE).sum(axis=0) / of_chains.shape[1] ** 2


def _degrees_of_freedom(of_chains: NDArray[Any]) -> NDArray[np.float64]:
    """Satterthwaite's, of `_variances`: few where few components are uncertain; one chain's where none varies."""
    squares = of_chains.var(axis=0, ddof=1)
    total, of_squares = squares.sum(axis=0) ** 2, (squares**2).sum(axis=0)
    return (len(of_chains) - 1) * np.divide(total, of_squares, out=np.ones_like(total), where=of_squares > 0)


def error_in_doubt(of_chains: NDArray[Any]) -> float | None:
    """The root mean square standard error of the probabilities in doubt, and 0 where none is.

    `of_chains` are those of `separation_of_chains`. None for one chain, or without draws.
    """
    if len(of_chains) < 2 or np.isnan(of_chains).any():
        return None
    squares = _variances(of_chains)[in_doubt(of_chains.mean(axis=(0, 1)))]
    return float(np.sqrt(np.mean(squares))) if squares.size else 0.0


def in_doubt(probability: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which probabilities lie between 0.2 and 0.8."""
    return (probability >= IN_DOUBT[0]) & (probability <= IN_DOUBT[1])


def varies(trace: NDArray[Any]) -> bool:
    """Whether the halves of chains that R-hat compares vary at all."""
    half = trace.shape[1] // 2
    return bool(np.ptp(np.concatenate([trace[:, :half], trace[:, -half:]])) > 0)


def rank_r_hat(trace: NDArray[Any]) -> float:
    """Rank-normalized, split R-hat of several chains; 1 where nothing varies, infinite where only chains differ."""
    if trace.shape[0] == 1 or not varies(trace):
        return 1.0
    with np.errstate(divide="ignore", invalid="ignore"):  # halves without variance
        found = rank_statistics.r_hat(trace)
    return np.inf if found > 1e6 else found  # a variance within halves that is rounding only


def stratified_ess(trace: NDArray[Any], n_components: int) -> float:
    """How many independent draws from a mixture would give its mean as exactly, at most as many as there are.

    The mean of the trace is that of its cycles over the components, which have an effective sample size.
    """
    cycles = trace.reshape(trace.shape[0], -1, n_components).mean(axis=2)
    if cycles.shape[1] < MIN_DRAWS or np.ptp(cycles) == 0:
        return float(trace.size)
    return min(trace.size, float(trace.var() / cycles.var() * rank_statistics.ess_mean(cycles)))


def traces(chains: Chains, graph: SiteGraph) -> dict[str, NDArray[Any]]:
    """The `quantities` of chains, with a value for every sweep after the burn-in where there is one."""
    first = chains.burn_in * chains.n_components
    return chains.quantities(graph) | {name: trace[:, first:] for name, trace in chains._traces.items()}


def quantity_of(name: str, trace: NDArray[Any], seconds: float, n_components: int) -> Quantity:
    """R-hat and effective sample sizes of one trace, whose entries are of the components in turn."""
    if not np.isfinite(trace).all():
        invalid(name, "be finite", trace[~np.isfinite(trace)][0])
    n_chains, n_draws = trace.shape
    means = tuple(trace.mean(axis=1).tolist()) if n_draws > 0 else ()
    if n_draws < MIN_DRAWS:
        return Quantity(name, means, None, None, None, None, None)
    trace, unit = in_units(trace)
    sd, bulk, tail = 0.0, float(trace.size), float(trace.size)
    if varies(trace):
        sd = float(unit * trace.std())
        with np.errstate(divide="ignore", invalid="ignore"):  # halves without variance
            if n_components == 1:
                bulk, tail = rank_statistics.ess_bulk(trace), rank_statistics.ess_tail(trace)
            else:
                bulk = stratified_ess(trace, n_components)
                tail = min(stratified_ess(trace <= np.quantile(trace, q), n_components) for q in (0.05, 0.95))
    r_hat = rank_r_hat(trace) if n_chains > 1 else None
    alone = None
    if n_chains > 1 and n_components > 1 and n_draws >= MIN_DRAWS * n_components:
        alone = max(rank_r_hat(trace[:, d::n_components]) for d in range(n_components))
    return Quantity(name, means, sd, r_hat, bulk, tail, bulk / seconds if seconds > 0 else None, alone)
