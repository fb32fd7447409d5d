"""What a chain does in one iteration: bond strengths, attempts of other moves, and what it can reach."""

import warnings
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sparse
from numpy.typing import ArrayLike, NDArray

from spinseg._validation import check_choice, check_real, finite_array, invalid
from spinseg.model.likelihoods import DISTANCES, DenseTerm, HistogramTerm
from spinseg.model.posterior import Model
from spinseg.sampler.kernels.moves import attempts_at, attempts_for
from spinseg.sampler.kernels.state import Plan
from spinseg.sampler.pack import terms_of

PAPER_LAM = 10.0
MIXED_LAMS = (0.0, 1.0, 3.0, 10.0, 20.0)
CONNECTED_LAMS = (0.25, 0.5, 1.0, 2.0, 4.0)  # if clusters must be connected
MOVES = ("auto", "gsw")
GROWTH_LIMIT = 250.0  # an attempt that takes m sites is made with probability min(1, GROWTH_LIMIT / m)^1.5
MANY_SITES, LOCAL_OF_MANY = 20_000, 0.9  # above, the share of sweeps in which spin-clusters move only to neighbors


class UnreachableWarning(UserWarning):
    """Chains cannot reach every partition that the prior allows."""


@dataclass(frozen=True)
class DataDriven:
    """delta_ij = lam * exp(-tau * d(y_i, y_j)), the paper's data-driven bonds.

    `distance` is "hellinger", "chi-square" or "euclidean"; the first two need histograms.

    Examples
    --------
    >>> import numpy as np, spinseg as ss
    >>> counts = ss.DirichletMultinomial(np.eye(4, dtype=int) + 1)
    >>> model = ss.Model(
    ...     ss.SiteGraph.grid((2, 2)),
    ...     counts,
    ...     ss.DirichletProcess(1.0),
    ...     beta=0.5,
    ... )
    >>> chains = ss.sample(
    ...     model,
    ...     sweeps=5,
    ...     lam=ss.DataDriven(10.0, tau=2.0, distance="hellinger"),
    ...     moves="gsw",
    ...     rng=0,
    ... )
    """

    lam: float
    tau: float
    distance: str = "hellinger"

    def __post_init__(self) -> None:
        check_real("lam", self.lam, at_least=0)
        check_real("tau", self.tau, at_least=0)
        check_choice("distance", self.distance, DISTANCES)


Lam = float | ArrayLike | DataDriven | None


def check_lam(lam: Lam, n_edges: int | None = None) -> None:
    """Refuse invalid bond strengths; their number is checked where `n_edges` is given."""
    if lam is None or isinstance(lam, DataDriven):
        return
    if not isinstance(lam, (np.ndarray, list, tuple)):
        check_real("lam", lam, at_least=0)
        return
    per_edge = finite_array("lam", lam, (n_edges,))
    if (per_edge < 0).any():
        invalid("lam", "not be negative", per_edge[per_edge < 0][0])


def bond_strengths(model: Model, lam: Lam, moves: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(strength, lams): a sweep draws lambda from `lams` and bonds an edge with probability 1 - exp(-lambda strength).

    strength = power * max(beta, 0) * delta / lambda: a negative coupling never bonds.
    """
    check_lam(lam, model.graph.n_edges)
    attraction = np.maximum(model.power * model.beta, 0.0)
    if lam is None:
        mixed = CONNECTED_LAMS if model.connected else MIXED_LAMS
        return attraction, np.array([PAPER_LAM] if moves == "gsw" else mixed)
    if isinstance(lam, DataDriven):
        distances = model.likelihood.distances(model.graph.edges, lam.distance)
        return attraction * np.exp(-lam.tau * distances), np.array([float(lam.lam)])
    if isinstance(lam, (np.ndarray, list, tuple)):
        return attraction * np.asarray(lam, np.float64), np.ones(1)
    return attraction, np.array([float(lam)])  # type: ignore[arg-type]


def bonds_that_move(model: Model, lam: Lam, moves: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The result of `bond_strengths`, refused if chains could not move."""
    strength, lams = bond_strengths(model, lam, moves)
    strongest = lams.max() * strength.max(initial=0.0)
    if not np.isfinite(strongest):
        invalid("lam", "keep lam * beta finite", lam)
    if moves == "gsw" and model.prior.min_size > 1 and strongest == 0.0:
        invalid("lam", "bond some sites where min_size > 1, since a single site cannot found a cluster", lam)
    return strength, lams


def iteration_plan(model: Model, moves: str, lams: NDArray[np.float64], burn_in: int, thin: int) -> Plan:
    """The moves of one iteration, fewer for many sites."""
    n_sites, local, attempts = model.graph.n_sites, 0.0, attempts_at()
    if moves == "auto":
        purpose = "many" if n_sites > MANY_SITES else "few"
        attempts = attempts_for(
            purpose, n_sites, connected=model.connected, limited=is_limited(model), kinds=model.kinds is not None
        )
        if purpose == "many" and not model.connected and model.tables is not None:  # sizes are then weighed by tables
            local = LOCAL_OF_MANY
    global_lams = lams[lams > 0] if lams.max() > 0 else lams  # single sites rarely move far, and cost most
    return Plan(lams, attempts, 1.0, burn_in, thin, local, global_lams, model.connected, GROWTH_LIMIT)


def is_limited(model: Model) -> bool:
    """Whether the prior keeps clusters from merging and splitting freely, so that sites must be exchanged."""
    fewest = model.graph.component_sizes.size if model.connected else 1
    if model.tables is None:
        return model.prior.max_size is not None and model.prior.max_size < model.graph.n_sites
    log_v, log_w = model.tables
    return log_v[fewest] == -np.inf or bool((log_w[model.prior.min_size :] == -np.inf).any())


def warn_of_unreachable(line: str | None, stacklevel: int) -> None:
    """Warn where `unreachable` returned a line."""
    if line is not None:
        warnings.warn(line, UnreachableWarning, stacklevel=stacklevel)


def unreachable(model: Model, moves: str, splits_only: bool = False) -> str | None:
    """That chains cannot reach every partition that the prior allows, why, and what to do; None where they can.

    `splits_only` says that two clusters are never regrouped into three. One case is not recognized: connected clusters
    that leave no room in a graph with few ways around, such as a ring of three clusters of the same size.
    """
    prior, numbers, room = model.prior, model.cluster_numbers, 2 if splits_only else 1.5
    allowed = np.flatnonzero(model.tables[1][1:] > -np.inf) + 1 if model.tables is not None else np.ones(1)
    if moves == "gsw" and prior.min_size > 1:
        reason = (
            "with moves='gsw', hardly any cluster can be split or left where "
            f"min_size is {prior.min_size}. Use moves='auto'."
        )
    elif moves == "gsw" and prior.max_size is not None and numbers[-1] * prior.max_size == model.graph.n_sites:
        reason = "with moves='gsw', no site can move where all clusters are full. Use moves='auto'."
    elif (np.diff(numbers) > 1).any():
        reason = f"it allows {numbers[0]} to {numbers[-1]} clusters, but not every number between. Allow these as well."
    elif allowed[-1] - allowed[0] >= allowed.size:
        reason = "it forbids some sizes between the smallest and the largest one. Allow these as well."
    elif len(numbers) > 1 and prior.max_size is not None and prior.max_size < room * prior.min_size:
        reason = (
            f"sizes from {prior.min_size} to {prior.max_size} leave no room to split or merge clusters, so that a "
            f"chain keeps its number of clusters. Let max_size be at least {room:g} times min_size."
        )
    else:
        return None
    return f"The chains cannot reach every partition that the prior allows: {reason}"


MAX_SIMILAR = 200
DECIMALS = 9  # of distances of order 1, so that processors that round sums differently find the same sites
MAX_SITES = 5_000  # for more, the table would take seconds and megabytes, and anchors are drawn uniformly


def similar_sites(model: Model) -> NDArray[np.uint32]:
    """The sites most similar to each site, (n_sites, up to 200), in order of number; no columns for too many sites.

    The sampler is exact with any table that does not depend on the partition. Sites are compared by features averaged
    over their neighbors: square roots of histogram frequencies, and means in units of their standard deviation.
    """
    n_sites = model.graph.n_sites
    parts = [_site_features(term) for term in terms_of(model.likelihood, n_sites)]
    if not parts or not 1 < n_sites <= MAX_SITES:
        return np.empty((n_sites, 0), np.uint32)
    features = np.hstack([part / max(np.sqrt(part.var(axis=0).sum()), 1e-30) for part in parts])
    ends = np.concatenate(
        [model.graph.edges, model.graph.edges[:, ::-1], np.arange(n_sites)[:, None].repeat(2, axis=1)]
    )
    touching = sparse.coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(n_sites, n_sites)).tocsr()
    features = (touching @ features) / touching.sum(axis=1)[:, None]
    squares = np.square(features).sum(axis=1)
    similar = np.empty((n_sites, min(MAX_SIMILAR, n_sites - 1)), np.uint32)
    for start in range(0, n_sites, 256):
        block = slice(start, start + 256)
        distances = squares[block, None] + squares - 2 * features[block] @ features.T
        distances[np.arange(len(distances)), np.arange(n_sites)[block]] = np.inf  # itself
        similar[block] = _smallest(np.round(distances, DECIMALS), similar.shape[1])
    return similar


def _smallest(values: NDArray[np.float64], n: int) -> NDArray[np.intp]:
    """Columns of the n smallest values of each row, in increasing order; ties go to the first columns."""
    last = np.partition(values, n - 1, axis=1)[:, n - 1 : n]
    below, tied = values < last, values == last
    left = n - below.sum(axis=1, keepdims=True)
    return np.nonzero(below | (tied & (np.cumsum(tied, axis=1) <= left)))[1].reshape(len(values), n)


def _site_features(term: HistogramTerm | DenseTerm) -> NDArray[np.float64]:
    """Features of the sites in one term, (n_sites, any), to be compared by Euclidean distance."""
    if isinstance(term, HistogramTerm):
        counts = np.asarray(term.counts.toarray()[:, term.sign > 0], dtype=np.float64)
        return np.sqrt(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0))
    weight, sums = term.statistics[:, :1], term.statistics[:, 1 : 1 + term.channels]
    means = sums / np.where(weight > 0, weight, 1.0)
    means = np.sqrt(means) if term.family == "poisson_gamma" else means
    return means / np.maximum(means.std(axis=0), 1e-30)
