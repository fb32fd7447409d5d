"""Starting partitions of chains."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sparse
from numpy.typing import ArrayLike, NDArray

from spinseg import _validation
from spinseg._validation import invalid
from spinseg.graph.edges import at_last
from spinseg.graph.merging import absorb_small, touching_regions
from spinseg.graph.site_graph import SiteGraph
from spinseg.model.posterior import Model
from spinseg.model.seeds import keeps_seeds, partition_with_seeds
from spinseg.partition.contingency import sums_of_clusters
from spinseg.partition.numbering import checked_labels, in_order
from spinseg.sampler.kernels.agglomerate import Agglomeration, agglomerate, merge_mutual, pair_gains
from spinseg.sampler.kernels.kinds import deal_kinds
from spinseg.sampler.kernels.state import Target
from spinseg.sampler.pack import new_state
from spinseg.sampler.start_search import searched_start

STARTS = ("one", "singletons", "greedy")
N_RANDOM_STARTS = 50  # tried where seeds and size limits leave little room
MAX_LOG_COST = 50.0  # of an edge on a path between the sites of a seed
OPPOSITE_STARTS = ("one", "singletons")
ALTERNATING_STARTS = ("opposite", "dispersed")  # of chains in turn
MAX_PAIRWISE_CLUSTERS = 10_000  # merged one pair at a time, which takes time that grows with their square
MAX_BLOCK_SIZES, N_TREES = 40, 3  # that are tried for a start of connected blocks, and where their trees begin
MAX_MERGED_COUNTS = 2**27  # counts of all clusters together while merging: 512 MB


def starting_labels(model: Model, target: Target, init: str | ArrayLike) -> NDArray[np.int32]:
    """The partition at which chains start, which the posterior allows.

    "one" is one cluster, or one for each component of the graph if clusters must be connected, and "singletons" a
    cluster for each site, where the prior allows them; else the fewest and the most blocks of about equal size that are
    allowed. "greedy" merges touching clusters, from singletons, as long as the posterior gains; where that ends at
    sizes that the prior forbids, or would take too much memory, it is "one". Where connected ones are not allowed,
    `searched_start` looks for another.

    Where there are seeds, these are changed as little as it takes to keep them, and so are labels. Where regions have
    kinds, and the prior of kinds does not allow their number, "one" and "singletons" stand for each other.
    """
    labels = _start(model, target, init)
    if model.kinds is not None and not model.allows(labels) and isinstance(init, str):
        other = _start(model, target, "one" if init == "singletons" else "singletons")
        labels = other if model.allows(other) else searched_start(model, labels, init)
    if model.kinds is not None and not model.allows(labels):
        invalid("init", "have a number of regions that the prior of kinds allows", int(labels.max()) + 1)
    return labels


def _start(model: Model, target: Target, init: str | ArrayLike) -> NDArray[np.int32]:
    """`starting_labels`, whatever the prior of kinds."""
    n_sites = model.graph.n_sites
    if not isinstance(init, str):
        labels = checked_labels("init", init, n_sites)
        if model.seeds is not None and not keeps_seeds(labels, model.seeds):
            labels = with_seeds(model, labels)
        if model.log_prior_of_sizes(np.bincount(labels)) == -np.inf:
            invalid("init", "be a partition that the prior allows", np.sort(np.bincount(labels)))
        if model.connected and not model.graph.is_connected(labels):
            pieces = int(model.graph.pieces(labels).max()) + 1
            invalid("init", "have connected clusters", f"{int(labels.max()) + 1} clusters in {pieces} pieces")
        return labels
    _validation.check_choice("init", init, (*STARTS, *ALTERNATING_STARTS, "labels of the sites"))
    if model.seeds is not None:
        return _start_with_seeds(model, target, init)
    if init == "greedy" and n_sites * target.bin_prior.shape[0] <= MAX_MERGED_COUNTS:
        labels = greedy_labels(target)
        if model.connected and np.bincount(labels).min() < model.prior.min_size:
            labels = _without_small(model, labels, model.beta)
        if model.log_prior_of_sizes(np.bincount(labels)) > -np.inf:
            return labels
    return _connected_start(model, init) if model.connected else _equal_start(model, init)


def starts_of_chains(
    components: Sequence[Model],
    targets: Sequence[Target],
    init: str | ArrayLike | Sequence[str],
    chains: int,
    workers: int,
) -> list[NDArray[np.int32]]:
    """Starting labels of each chain of each component, one component after the other; found in threads, if many."""
    pairs = list(zip(components, targets, strict=True))
    inits = listed_starts(init)
    if isinstance(init, str) and init in ALTERNATING_STARTS:
        inits = [OPPOSITE_STARTS[c % 2] for c in range(chains)]
        if init == "dispersed" and len(components) > 1:
            first, last = (starting_labels(*pairs[d], OPPOSITE_STARTS[d]) for d in (0, -1))
            with ThreadPoolExecutor(workers) as pool:
                around = [first, *pool.map(partial(starting_labels, init="greedy"), components, targets), last]
            return [around[d + 2 * (c % 2)] for d in range(len(components)) for c in range(chains)]
    elif inits is None:
        return [start for pair in pairs for start in [starting_labels(*pair, init)] * chains]
    elif len(inits) != chains:
        invalid("init", f"be one start, or one for each of {chains} chains", f"{len(inits)} starts")
    return [starting_labels(*pair, one) for pair in pairs for one in inits]


def listed_starts(init: str | ArrayLike | Sequence[str]) -> list[Any] | None:
    """The starts of several chains as a list; None if all chains share one."""
    if isinstance(init, np.ndarray):
        return list(init) if init.ndim == 2 else None
    listed = isinstance(init, (list, tuple)) and any(isinstance(i, str) or np.ndim(i) > 0 for i in init)
    return list(init) if listed else None  # type: ignore[arg-type]


def common_refinement(model: Model, partitions: NDArray[np.integer]) -> NDArray[np.int32]:
    """The partition with all boundaries of some partitions, one in each row."""
    cells = partitions[0].astype(np.int64)
    for labels in partitions[1:]:
        cells = np.unique(cells * (int(labels.max()) + 1) + labels, return_inverse=True)[1]
    return model.graph.pieces(cells.astype(np.int32)) if model.connected else cells.astype(np.int32)


def starting_kinds(model: Model, target: Target, labels: NDArray[np.int32]) -> NDArray[np.int32] | None:
    """The kind of each site at the start: that which suits its region best, given the regions before; None without.

    Where the prior forbids that, the kinds are as few as it allows, and of about the same number of regions.
    """
    if model.kinds is None:
        return None
    n_regions = int(labels.max()) + 1
    state = new_state(target, labels, 0.0, labels)
    deal_kinds(target, state, np.random.default_rng(0))
    assert state.nested is not None
    candidates = [state.nested.label[labels], *(labels % n_kinds for n_kinds in range(1, n_regions + 1))]
    for kinds in (checked_labels("kinds", candidate, labels.size) for candidate in candidates):
        if model.log_prior_of_kinds(labels, kinds) > -np.inf:
            return kinds
    invalid("kinds", f"allow kinds of about the same number of the {n_regions} regions of a start", model.kinds)


def _start_with_seeds(model: Model, target: Target, init: str) -> NDArray[np.int32]:
    """A named start that keeps the seeds; where the prior forbids it, another one that it allows."""
    n_sites, rng = model.graph.n_sites, np.random.default_rng(0)
    singletons = with_seeds(model, np.arange(n_sites, dtype=np.int32))
    starts = {"singletons": lambda: singletons, "one": lambda: with_seeds(model, np.zeros(n_sites, np.int32))}
    if n_sites * target.bin_prior.shape[0] <= MAX_MERGED_COUNTS:
        starts["greedy"] = lambda: greedy_labels(target, singletons, True)
    for name in sorted(starts, key=lambda name: (name != init, name != "one")):
        labels = starts[name]()
        if np.bincount(labels).min() < model.prior.min_size:
            labels = _without_small(model, labels, model.beta)
        if model.allows(labels):
            return labels
    for _ in range(N_RANDOM_STARTS if model.prior.min_size > 1 else 0):  # a seed may have left another too little room
        labels = _without_small(model, singletons, rng.normal(size=model.graph.n_edges))
        if model.allows(labels):
            return labels
    return searched_start(model, singletons, init)


def with_seeds(model: Model, labels: NDArray[np.int32]) -> NDArray[np.int32]:
    """A partition like `labels` that keeps the seeds; the stronger two sites are coupled, the nearer they are."""
    assert model.seeds is not None
    cost = np.exp(-np.clip(model.power * model.beta, -MAX_LOG_COST, MAX_LOG_COST))
    kept = partition_with_seeds(labels, model.graph, model.seeds, cost)
    return checked_labels("init", kept, model.graph.n_sites)


def _equal_start(model: Model, init: str) -> NDArray[np.int32]:
    """The most blocks of about equal size that the prior allows for "singletons", else the fewest."""
    n_sites = model.graph.n_sites
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
    invalid("init", "be labels: no partition into equal blocks is allowed by the prior", init)


def _connected_start(model: Model, init: str) -> NDArray[np.int32]:
    """A partition into connected blocks: of the fewest sites that can be found for "singletons", else of the most."""
    n_sites, prior = model.graph.n_sites, model.prior
    largest = n_sites if prior.max_size is None else min(prior.max_size, n_sites)
    sizes = np.unique(np.geomspace(prior.min_size, largest, MAX_BLOCK_SIZES).round().astype(int))
    for size in sizes if init == "singletons" else sizes[::-1]:
        for first in np.linspace(0, n_sites - 1, N_TREES).round().astype(int):
            labels = _connected_blocks(model.graph, int(size), int(first), prior.min_size, largest)
            if labels is not None and model.log_prior_of_sizes(np.bincount(labels)) > -np.inf:
                return labels
    return searched_start(model, model.graph.pieces(np.zeros(n_sites, np.int32)), init)


def _connected_blocks(
    graph: SiteGraph, size: int, first: int, min_size: int, max_size: int
) -> NDArray[np.int32] | None:
    """Connected blocks of about `size` sites, cut from spanning trees; None where one is too small or too large.

    The trees are those of a depth-first search from the site `first`. Branches are cut off from the ends as soon as
    they have enough sites; what is left at the root, if too small, joins a block it touches.
    """
    n_sites = graph.n_sites
    if size == 1:
        return np.arange(n_sites, dtype=np.int32)
    if size == n_sites and graph.component_sizes.max() <= max_size:
        return graph.pieces(np.zeros(n_sites, np.int32))
    order, parent = _depth_first(graph, first)
    n_left, block = np.ones(n_sites, np.int64), np.arange(n_sites)
    is_cut = np.zeros(n_sites, bool)
    for site in order[::-1]:
        is_cut[site] = n_left[site] >= size or parent[site] < 0
        if not is_cut[site]:
            n_left[parent[site]] += n_left[site]
    for site in order:
        if not is_cut[site]:
            block[site] = block[parent[site]]
    for root in np.flatnonzero(is_cut & (n_left < min_size)).tolist():  # these are roots of trees
        inside = np.flatnonzero(block == root)
        near = np.concatenate([graph.neighbors[graph.start[i] : graph.start[i + 1]] for i in inside])
        others = block[near][block[near] != root]
        block[inside] = others[0] if others.size else root
    labels = checked_labels("init", block, n_sites)
    sizes = np.bincount(labels)
    return labels if min_size <= sizes.min() and sizes.max() <= max_size else None


def _depth_first(graph: SiteGraph, first: int) -> tuple[list[int], list[int]]:
    """All sites in the order of searches in depth, the first from `first`, and the parent of each, -1 for a root."""
    start, neighbors = graph.start.tolist(), graph.neighbors.tolist()
    parent, order, at = [-2] * graph.n_sites, [], start[:-1]
    for root in (first, *range(graph.n_sites)):
        if parent[root] > -2:
            continue
        parent[root], path = -1, [root]
        order.append(root)
        while path:
            site = path[-1]
            while at[site] < start[site + 1] and parent[neighbors[at[site]]] > -2:
                at[site] += 1
            if at[site] == start[site + 1]:
                path.pop()
                continue
            child = neighbors[at[site]]
            parent[child] = site
            order.append(child)
            path.append(child)
    return order, parent


def _without_small(model: Model, labels: NDArray[np.int32], beta: NDArray[np.float64]) -> NDArray[np.int32]:
    """The clusters after those below the prior's `min_size` have joined the neighbor with the largest couplings."""
    return absorb_small(labels, model.graph, beta, model.prior.min_size, seeds=model.seeds)


def greedy_labels(
    target: Target, labels: NDArray[np.int32] | None = None, connected: bool = False
) -> NDArray[np.int32]:
    """The partition at which greedy merging, always of the pair of clusters that gains most, ends.

    From singletons only clusters that touch are merged; from `labels` any two, unless `connected`. With more clusters
    than MAX_PAIRWISE_CLUSTERS, all touching pairs that are the best for both of their clusters merge at once, round by
    round, until that many clusters are left. Forbidden sizes weigh as the allowed ones around them while merging.
    """
    n_sites = target.upper.size
    unit = np.arange(n_sites) if labels is None else labels.astype(np.int64)
    if int(unit.max()) >= MAX_PAIRWISE_CLUSTERS and (labels is None or connected):
        unit = _merged_in_rounds(target, unit)
    pairs, coupling = _touching_pairs(target, unit)
    if labels is not None and not connected:
        n_units = int(unit.max()) + 1
        between = sparse.coo_array((coupling, (pairs[:, 0], pairs[:, 1])), shape=(n_units, n_units)).toarray()
        pairs = np.stack(np.triu_indices(n_units, 1), axis=1)
        coupling = between[pairs[:, 0], pairs[:, 1]]
    into, pairs = np.arange(int(unit.max()) + 1), np.ascontiguousarray(pairs, dtype=np.int64)
    gain, mark, near = np.zeros(len(pairs)), np.full(into.size, -1), np.zeros(len(pairs), np.int64)
    agglomerate(target, _agglomeration(target, unit), into, pairs, coupling, gain, mark, near)
    return checked_labels("init", at_last(into)[unit], n_sites)


def _merged_in_rounds(target: Target, unit: NDArray[np.int64]) -> NDArray[np.int64]:
    """The clusters left after merging best pairs round by round: at most MAX_PAIRWISE_CLUSTERS, or no merge gains."""
    n_clusters = int(unit.max()) + 1
    pairs, coupling = _touching_pairs(target, unit)
    clusters, gain = _agglomeration(target, unit), np.zeros(len(pairs))
    best, into, changed = np.empty(n_clusters, np.int64), np.empty(n_clusters, np.int64), np.ones(n_clusters, bool)
    while n_clusters > MAX_PAIRWISE_CLUSTERS:
        pair_gains(target, clusters, pairs, coupling, changed, gain)
        loss = target.log_v[n_clusters] - target.log_v[n_clusters - 1]  # of the prior, when a cluster vanishes
        least = -np.inf if target.log_v[n_clusters] == -np.inf else loss
        n_merged = merge_mutual(clusters, pairs, gain, least, best, into, changed)
        if n_merged == 0:
            break
        n_clusters -= n_merged
        unit = into[unit]
        touched = changed[pairs].any(axis=1)
        ends, across, pair = touching_regions(into, pairs[touched])
        between = np.bincount(pair, coupling[touched][across], len(ends)).astype(np.float64)  # whole numbers if none
        pairs = np.concatenate([pairs[~touched], ends])
        coupling = np.concatenate([coupling[~touched], between])
        gain = np.concatenate([gain[~touched], np.zeros(len(ends))])
    return in_order(unit)


def _touching_pairs(target: Target, unit: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Pairs of units that touch, (lower, upper), each once, and their coupling."""
    starts = target.start.astype(np.int64)
    owner = np.repeat(np.arange(unit.size), starts[1:] - starts[:-1])
    once = owner < target.neighbor
    pairs, across, pair = touching_regions(unit, np.stack([owner[once], target.neighbor[once]], axis=1))
    return pairs, np.bincount(pair, target.beta[once][across], len(pairs)).astype(np.float64)


def _agglomeration(target: Target, unit: NDArray[np.int64]) -> Agglomeration:
    """The sums of each unit, which is a group of sites, for the compiled agglomeration."""
    n_units, n_statistics = int(unit.max()) + 1, target.statistic.shape[1]
    rows = target.row.astype(np.int64)
    counts = np.zeros((n_units, target.bin_prior.shape[0]), np.int32)
    np.add.at(counts, (np.repeat(unit, rows[1:] - rows[:-1]), target.bin), target.bin_count)
    total = sums_of_clusters(target.statistic, unit)
    widest = int(target.block[:, 1].max(initial=0))
    work, joined = np.zeros(widest * (widest + 1) // 2), np.zeros(n_statistics)
    size, log_marginal = np.bincount(unit), np.zeros(n_units)
    return Agglomeration(counts=counts, total=total, log_marginal=log_marginal, size=size, joined=joined, work=work)


def _blocks(model: Model, sizes: NDArray[np.int64]) -> NDArray[np.int32]:
    """Blocks of these sizes along a walk through the graph, most of which are connected."""
    n_sites = model.graph.n_sites
    order = np.arange(n_sites)
    if 1 < sizes.size < n_sites:
        order = sparse.csgraph.reverse_cuthill_mckee(model.graph.to_sparse(), symmetric_mode=True)
    labels = np.empty(n_sites, np.int64)
    labels[order] = np.repeat(np.arange(sizes.size), sizes)
    return checked_labels("init", labels, n_sites)
