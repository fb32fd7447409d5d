"""Where a chain starts."""

import numpy as np
import scipy.sparse as sparse
from numpy.typing import ArrayLike, NDArray

from spinseg import _checks
from spinseg._checks import refuse
from spinseg.inference._kernels import Target, agglomerate
from spinseg.model.target import Model

STARTS = ("one", "singletons", "greedy")
MOST_GREEDY = 10_000  # sites: the time that merging takes grows with their square


def starting_labels(model: Model, target: Target, init: str | ArrayLike) -> NDArray[np.int32]:
    """The partition at which chains start, legal under the prior.

    "one" is one cluster and "singletons" a cluster for each site where the prior allows them, else the fewest and the
    most blocks of about equal size that it allows. "greedy" merges touching clusters, from singletons, as long as the
    posterior gains; where that ends at sizes that the prior forbids, or would take long, it is "one".
    """
    n_sites = model.graph.n_sites
    if not isinstance(init, str):
        labels = _checks.labels("init", init, n_sites)
        if model.log_prior_of_sizes(np.bincount(labels)) == -np.inf:
            refuse("init", "be a partition that the prior allows", np.sort(np.bincount(labels)))
        return labels
    _checks.one_of("init", init, (*STARTS, "labels of the sites"))
    if init == "greedy" and n_sites <= MOST_GREEDY:
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
    refuse("init", "be labels: no division into equal blocks is allowed by the prior", init)


def greedy_labels(target: Target, labels: NDArray[np.int32] | None = None) -> NDArray[np.int32]:
    """The partition that merging, always the pair of clusters that gains most, ends at.

    From singletons only clusters that touch are merged; from `labels` any two are. Under size limits it is guided by
    log_w with its gaps filled in.
    """
    n_sites = target.upper.size
    start, row = target.start.astype(np.int64), target.row.astype(np.int64)
    owner = np.repeat(np.arange(n_sites), np.diff(start))
    once = owner < target.neighbour
    unit = np.arange(n_sites) if labels is None else labels.astype(np.int64)
    n_units = int(unit.max()) + 1
    ends = np.sort(unit[np.stack([owner[once], target.neighbour[once].astype(np.int64)], axis=1)], axis=1)
    between = sparse.coo_array((target.beta[once], (ends[:, 0], ends[:, 1])), shape=(n_units, n_units)).tocsr()
    pairs = ends if labels is None else np.stack(np.triu_indices(n_units, 1), axis=1)
    coupling = target.beta[once].copy() if labels is None else between.toarray()[pairs[:, 0], pairs[:, 1]]
    counts = np.zeros((n_units, target.bin_law.shape[0]), np.int32)
    np.add.at(counts, (unit[np.repeat(np.arange(n_sites), np.diff(row))], target.bin), target.bin_count)
    total = np.zeros((n_units, target.statistic.shape[1]))
    np.add.at(total, unit, target.statistic)
    widest = int(target.block[:, 1].max(initial=0))
    work = np.zeros(widest * (widest + 1) // 2)
    agglomerate(
        (target.table, target.table_start, target.bin_law, target.block, target.parameter, work),
        target.log_v,
        target.guide,
        unit,
        np.ascontiguousarray(pairs, dtype=np.int64),
        coupling,
        np.zeros(len(pairs)),
        counts,
        total,
        np.zeros(total.shape[1]),
        np.zeros(n_units),
        np.bincount(unit),
        np.full(n_units, -1),
    )
    return _checks.labels("init", unit, n_sites)


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
    return _checks.labels("init", labels, n_sites)
