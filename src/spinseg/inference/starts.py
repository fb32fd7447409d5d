"""Where a chain starts."""

import numpy as np
import scipy.sparse as sparse
from numpy.typing import ArrayLike, NDArray

from spinseg import _validation
from spinseg._validation import invalid
from spinseg.inference.kernels.agglomerate import agglomerate, merge_mutual, pair_gains
from spinseg.inference.kernels.state import Target
from spinseg.model.posterior import Model

STARTS = ("one", "singletons", "greedy")
MOST_GREEDY = 10_000  # clusters to merge one pair at a time: its time grows with their square
MOST_SUMMED = 2**27  # counts of all clusters together, 512 MB, for which there is room while merging


def starting_labels(model: Model, target: Target, init: str | ArrayLike) -> NDArray[np.int32]:
    """The partition at which chains start, legal under the prior.

    "one" is one cluster and "singletons" a cluster for each site where the prior allows them, else the fewest and the
    most blocks of about equal size that it allows. "greedy" merges touching clusters, from singletons, as long as the
    posterior gains; where that ends at sizes that the prior forbids, or would take too much memory, it is "one".
    """
    n_sites = model.graph.n_sites
    if not isinstance(init, str):
        labels = _validation.labels("init", init, n_sites)
        if model.log_prior_of_sizes(np.bincount(labels)) == -np.inf:
            invalid("init", "be a partition that the prior allows", np.sort(np.bincount(labels)))
        return labels
    _validation.check_choice("init", init, (*STARTS, "labels of the sites"))
    if init == "greedy" and n_sites * target.bin_law.shape[0] <= MOST_SUMMED:
        labels = greedy_labels(target)
        if model.log_prior_of_sizes(np.bincount(labels)) > -np.inf:
            return labels
    fewest = 1 if model.prior.max_size is None else -(-n_sites // model.prior.max_size)
    most = n_sites // model.prior.min_size
    allowed = np.arange(fewest, most + 1)
    if model.tables is not None:
        allowed = allowed[model.tables[0][allowed] > -np.inf]
    for k in allowed[::-1] if init == "singletons" else allowed:
        sizes = np.full(k, n_sites // k)
        sizes[: n_sites % k] += 1
        if model.log_prior_of_sizes(sizes) > -np.inf:
            return _blocks(model, sizes)
    invalid("init", "be labels: no division into equal blocks is allowed by the prior", init)


def greedy_labels(target: Target, labels: NDArray[np.int32] | None = None) -> NDArray[np.int32]:
    """The partition that merging, always the pair of clusters that gains most, ends at.

    From singletons only clusters that touch are merged; from `labels` any two are. Of more than MOST_GREEDY sites,
    pairs that are the best for both of their clusters merge at once, round by round, until so many clusters are left.
    Under size limits it is guided by log_w with its gaps filled in.
    """
    n_sites = target.upper.size
    unit = np.arange(n_sites) if labels is None else labels.astype(np.int64)
    if n_sites > MOST_GREEDY and labels is None:
        unit = _merged_in_rounds(target)
    pairs, coupling = _touching(target, unit)
    if labels is not None:
        n_units = int(unit.max()) + 1
        between = sparse.coo_array((coupling, (pairs[:, 0], pairs[:, 1])), shape=(n_units, n_units)).toarray()
        pairs = np.stack(np.triu_indices(n_units, 1), axis=1)
        coupling = between[pairs[:, 0], pairs[:, 1]]
    counts, total, size = _summed(target, unit)
    merged = np.arange(size.size)
    agglomerate(
        _likelihood(target),
        target.log_v,
        target.guide,
        merged,
        np.ascontiguousarray(pairs, dtype=np.int64),
        coupling,
        np.zeros(len(pairs)),
        counts,
        total,
        np.zeros(total.shape[1]),
        np.zeros(size.size),
        size,
        np.full(size.size, -1),
    )
    return _validation.labels("init", merged[unit], n_sites)


def _merged_in_rounds(target: Target) -> NDArray[np.int64]:
    """At most MOST_GREEDY clusters, more where no merge gains, that merging best pairs at once leaves."""
    n_sites = target.upper.size
    unit = np.arange(n_sites)
    pairs, coupling = _touching(target, unit)
    counts, total, size = _summed(target, unit)
    likelihood, joined, own, gain = (
        _likelihood(target),
        np.zeros(total.shape[1]),
        np.zeros(n_sites),
        np.zeros(len(pairs)),
    )
    best, into, changed = np.empty(n_sites, np.int64), np.empty(n_sites, np.int64), np.ones(n_sites, bool)
    n_clusters = n_sites
    while n_clusters > MOST_GREEDY:
        pair_gains(likelihood, target.guide, pairs, coupling, changed, gain, counts, total, joined, own, size)
        loss = target.log_v[n_clusters] - target.log_v[n_clusters - 1]  # of the prior, when a cluster vanishes
        least = -np.inf if target.log_v[n_clusters] == -np.inf else loss
        n_merged = merge_mutual(pairs, gain, least, counts, total, size, best, into, changed)
        if n_merged == 0:
            break
        n_clusters -= n_merged
        unit = into[unit]
        pairs, coupling, gain = _joined(pairs, coupling, gain, into, changed)
    return np.unique(unit, return_inverse=True)[1].ravel()


def _joined(
    pairs: NDArray[np.int64],
    coupling: NDArray[np.float64],
    gain: NDArray[np.float64],
    into: NDArray[np.int64],
    changed: NDArray[np.bool_],
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """The pairs after a round: those of merged clusters under their new names, each once; the others as they are."""
    touched = changed[pairs].any(axis=1)
    ends = np.sort(into[pairs[touched]], axis=1)
    apart = ends[:, 0] != ends[:, 1]
    ends, between = _once(ends[apart], coupling[touched][apart], into.size)
    return (
        np.concatenate([pairs[~touched], ends]),
        np.concatenate([coupling[~touched], between]),
        np.concatenate([gain[~touched], np.zeros(len(ends))]),
    )


def _once(
    ends: NDArray[np.int64], coupling: NDArray[np.float64], n_units: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Each pair (lower, upper) once, its couplings added up."""
    keys, place = np.unique(ends[:, 0] * n_units + ends[:, 1], return_inverse=True)
    sums = np.bincount(place.ravel(), coupling, keys.size)
    return np.stack(np.divmod(keys, n_units), axis=1), sums.astype(np.float64, copy=False)


def _touching(target: Target, unit: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Pairs of units that touch, (lower, upper), each once, and their coupling."""
    starts = target.start.astype(np.int64)
    owner = np.repeat(np.arange(unit.size), starts[1:] - starts[:-1])
    once = owner < target.neighbour
    ends = np.sort(unit[np.stack([owner[once], target.neighbour[once].astype(np.int64)], axis=1)], axis=1)
    apart = ends[:, 0] != ends[:, 1]
    return _once(ends[apart], target.beta[once][apart], int(unit.max()) + 1)


def _summed(
    target: Target, unit: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.float64], NDArray[np.int64]]:
    """Counts, statistics and number of the sites of each unit."""
    n_units = int(unit.max()) + 1
    rows = target.row.astype(np.int64)
    entries = rows[1:] - rows[:-1]
    counts = np.zeros((n_units, target.bin_law.shape[0]), np.int32)
    np.add.at(counts, (np.repeat(unit, entries), target.bin), target.bin_count)
    total = np.zeros((n_units, target.statistic.shape[1]))
    np.add.at(total, unit, target.statistic)
    return counts, total, np.bincount(unit)


def _likelihood(target: Target) -> tuple[NDArray, ...]:
    """What the compiled merging knows of the likelihood, and room to work."""
    widest = int(target.block[:, 1].max(initial=0))
    work = np.zeros(widest * (widest + 1) // 2)
    return target.table, target.table_start, target.bin_law, target.block, target.parameter, work


def _blocks(model: Model, sizes: NDArray[np.int64]) -> NDArray[np.int32]:
    """Blocks of these sizes along a walk through the graph, so that most of them hold together."""
    n_sites, edges = model.graph.n_sites, model.graph.edges
    order = np.arange(n_sites)
    if 1 < sizes.size < n_sites:
        ends = (edges[:, 0], edges[:, 1])
        links = sparse.csr_array((np.ones(len(edges), np.int8), ends), shape=(n_sites, n_sites))
        order = sparse.csgraph.reverse_cuthill_mckee(sparse.csr_array(links + links.T), symmetric_mode=True)
    labels = np.empty(n_sites, np.int64)
    labels[order] = np.repeat(np.arange(sizes.size), sizes)
    return _validation.labels("init", labels, n_sites)
