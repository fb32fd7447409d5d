"""The search for the partition of least expected loss, from several starts, with compiled tables."""

from typing import Any, Literal

import numpy as np
import scipy.sparse as sparse
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.csgraph import minimum_spanning_tree

from spinseg._validation import check_int, generator, invalid
from spinseg.graph.edges import connected_components
from spinseg.graph.site_graph import SiteGraph
from spinseg.model.seeds import checked_seeds, connect_seeds, keeps_seeds, partition_with_seeds
from spinseg.partition.numbering import by_first_appearance, checked_labels, in_order
from spinseg.sampler.kernels import least_loss as kernels
from spinseg.sampler.kernels.least_loss import Search

MAX_TABLE_BYTES = 2**30
MIN_GAIN = 1e-9  # loss per draw; smaller differences are rounding errors, and the search might not end
N_COMPARED_DRAWS = 20  # the best N_BEST_DRAWS of these are starts
N_BEST_DRAWS = 2
BLOCK_SITES = 2**20  # of several draws whose clusters are compared with the graph at a time
GROUP_SITES = 100  # sites of small parts that are searched together: each search takes a millisecond at least
MIXER = 0x9E3779B97F4A7C15  # an odd number, to make one sum of two
SLOT_TABLES = ("size", "cell", "value", "score", "changed", "merged")  # whose last axis are the slots
Costs = tuple[NDArray[np.float64], NDArray[np.float64]]  # of a loss, as `kernels.least_loss` takes them


def costs_of_vi(n_sites: int) -> Costs:
    """The costs of the variation of information."""
    sites = np.arange(1.0, n_sites + 1)
    step = np.diff(sites * np.log2(sites), prepend=0.0)  # f(m + 1) - f(m), f(m) = m log2 m
    return step, 2 * step


def costs_of_binder(n_sites: int, apart: float = 1.0, together: float = 1.0) -> Costs:
    """The costs of Binder's loss, in any unit: the search does not depend on it."""
    others = np.arange(float(n_sites)) / max(apart, together)
    return together * others, (apart + together) * others


COSTS = {"vi": costs_of_vi, "binder": costs_of_binder}


def best_draw(draws: NDArray[np.int32], loss: str, *, max_draws: int) -> NDArray[np.int32]:
    """Return the draw of least expected loss, "vi" or "binder", among at most `max_draws`, evenly spaced."""
    n_sites = draws.shape[1]
    used = _numbered(draws[_evenly_spaced(len(draws), max_draws)])
    tables, used, _ = _make_tables(used, COSTS[loss](n_sites), n_sites)
    return used[np.argmin([_start(tables, draw) for draw in used])]


def improved(
    start: NDArray[np.int32], draws: NDArray[np.int32], loss: str, *, graph: SiteGraph, max_draws: int, rng: int
) -> NDArray[np.int32]:
    """Return what the search under a loss, "vi" or "binder", among connected partitions finds from one start."""
    n_sites = draws.shape[1]
    tables, _, limit = _make_tables(draws[_evenly_spaced(len(draws), max_draws)], COSTS[loss](n_sites), n_sites, graph)
    while tables.size.size <= start.max() and tables.size.size < limit:
        tables = _enlarge(tables, limit)
    if start.max() >= tables.size.size:  # of which there is no room for a table
        return start
    found = _descend(tables, start, limit, generator(rng))[1]
    return checked_labels("labels", found.label, n_sites)


def search(
    draws: NDArray[np.int32],
    costs: Costs,
    graph: SiteGraph | None,
    seeds: ArrayLike | None,
    max_clusters: int | None,
    max_draws: int,
    rng: int | np.random.Generator | None,
) -> NDArray[np.int32]:
    """Return the best partition found under a loss; the other arguments are those of `minimize_vi`.

    Sites that no draw joins, directly or through others, lie apart in the best partition, and its loss is a sum over
    groups of sites without such links. Each group is searched on its own, unless there is a limit to all clusters.

    Where clusters must be connected, a part may need a site of another part as a bridge. The groups are then searched
    together, unless all clusters of the draws are connected, and many sites make the search long.
    """
    random, n_sites = generator(rng), draws.shape[1]
    if graph is not None and graph.n_sites != n_sites:
        invalid("graph", f"have the {n_sites} sites of the draws", graph.n_sites)
    held = _seeds_of(draws, graph, seeds)
    used = _numbered(draws[_evenly_spaced(len(draws), check_int("max_draws", max_draws, at_least=1))])
    if max_clusters is not None:
        limit, fewest = min(check_int("max_clusters", max_clusters, at_least=1), n_sites), _fewest(graph, held)
        if limit < fewest:
            keep = "" if held is None else " and keep the seeds"
            invalid("max_clusters", f"be at least {fewest}, so that clusters can be connected{keep}", max_clusters)
        return _search(used, costs, graph, held, limit, random)
    found, groups = _groups(used)
    if graph is not None and groups.any() and (n_sites <= GROUP_SITES or not _are_connected(used, graph)):
        return _search(used, costs, graph, held, n_sites, random)
    for g in range(int(groups.max()) + 1):
        sites = np.flatnonzero(groups == g)
        part = graph
        if graph is not None and sites.size < n_sites:
            place = np.full(n_sites, -1)
            place[sites] = np.arange(sites.size)
            ends = place[graph.edges]
            part = SiteGraph(sites.size, ends[(ends >= 0).all(axis=1)])
        own = used if sites.size == n_sites else _numbered(used[:, sites])
        own_seeds = held[sites] if held is not None and held[sites].any() else None
        labels = _search(own, costs, part, own_seeds, sites.size, random)
        found[sites] = labels + n_sites * (g + 1)
    return checked_labels("labels", found, n_sites)


def _numbered(draws: NDArray[np.integer]) -> NDArray[np.int32]:
    """Return draws whose clusters are each numbered 0..k-1 by first appearance."""
    labels = draws if draws.min() >= 0 and draws.max() < draws.shape[1] else in_order(draws)
    found = by_first_appearance(labels + (int(labels.max()) + 1) * np.arange(len(draws))[:, None])
    return found - found[:, :1]


def _groups(draws: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the parts of the sites that no draw joins, and the group in which each site is searched, -1 for none.

    A part that is one cluster in every draw needs no search. Small parts share a group.
    """
    n_sites = draws.shape[1]
    for some in (draws[_evenly_spaced(len(draws), N_COMPARED_DRAWS)], draws):  # most often, some are enough
        first, row, weight = _clusters(some)
        n_nodes, start = n_sites + weight.size, np.append(first, np.full(weight.size, row.size))
        links = sparse.csr_array((np.ones(row.size), row + np.int32(n_sites), start), shape=(n_nodes, n_nodes))
        part = sparse.csgraph.connected_components(links, directed=False)[1].astype(np.int64)[:n_sites]
        if not part.any():
            break
    of_part, differs = np.unique(part, return_index=True)[1], np.zeros(part.max() + 1, bool)
    differs[part[(draws != draws[:, of_part[part]]).any(axis=0)]] = True
    sizes = np.bincount(part) * differs
    group = np.full(sizes.size, -1)
    group[differs] = in_order((np.cumsum(sizes) - sizes)[differs] // GROUP_SITES)
    return part, group[part]


def _are_connected(draws: NDArray[np.int32], graph: SiteGraph) -> bool:
    """Whether all clusters of all draws are connected."""
    n_draws, n_sites = draws.shape
    for d in range(0, n_draws, max(1, BLOCK_SITES // n_sites)):
        block = draws[d : d + max(1, BLOCK_SITES // n_sites)]
        within = block[:, graph.edges[:, 0]] == block[:, graph.edges[:, 1]]
        draw, edge = np.nonzero(within)
        pieces = connected_components(block.size, graph.edges[edge] + n_sites * draw[:, None])
        if pieces.max() + 1 > (block.max(axis=1) + 1).sum():
            return False
    return True


def _fewest(graph: SiteGraph | None, seeds: NDArray[np.int64] | None) -> int:
    """The fewest clusters that an estimate may have: one for each seed, and for each component without a seed."""
    if graph is None:
        return 1
    component = graph.pieces(np.zeros(graph.n_sites, np.int32))
    if seeds is None:
        return int(component.max()) + 1
    seeded = seeds > 0
    return np.unique(seeds[seeded]).size + np.setdiff1d(component, component[seeded]).size


def _search(
    draws: NDArray[np.int32],
    costs: Costs,
    graph: SiteGraph | None,
    held: NDArray[np.int64] | None,
    limit: int,
    random: np.random.Generator,
) -> NDArray[np.int32]:
    """Return the best partition of all sites together, into at most `limit` clusters."""
    n_sites = draws.shape[1]
    tables, used, most = _make_tables(draws, costs, limit, graph, held)

    compared = used[_evenly_spaced(len(used), N_COMPARED_DRAWS)]
    if graph is not None:
        compared = np.array([_connected_pieces(draw, graph, held) for draw in compared])
    few = compared[compared.max(axis=1) < tables.size.size]
    best_draws = few[np.argsort([_start(tables, draw) for draw in few], kind="stable")[:N_BEST_DRAWS]]
    start_labels: list[NDArray[np.int32] | None] = [*best_draws, np.zeros(n_sites, np.int32)]
    for s in range(max(4, 400 // n_sites)):
        k = random.integers(1, tables.size.size + 1)
        if s % 2:
            start_labels.append(None)
        elif graph is None:
            start_labels.append(random.integers(0, k, n_sites, dtype=np.int32))
        else:
            start_labels.append(_random_pieces(graph, int(k), random))

    best_loss, best = np.inf, tables.label
    for s, start in enumerate(start_labels):
        if graph is not None and held is not None and s >= len(best_draws):
            start = _with_seeds(start, compared[s % len(compared)], graph, held, random)
        elif graph is not None and start is not None:
            start = graph.pieces(start)
        if start is not None and start.max() >= tables.size.size:
            continue
        loss, tables = _descend(tables, start, most, random)
        if loss < best_loss:
            best_loss, best = loss, tables.label.copy()
    return checked_labels("labels", best, n_sites)


def _random_pieces(graph: SiteGraph, k: int, random: np.random.Generator) -> NDArray[np.int32]:
    """Return a random partition into k connected clusters, or into the components where there are more of them."""
    weights, shape = 1.0 - random.random(graph.n_edges), (graph.n_sites, graph.n_sites)
    tree = minimum_spanning_tree(
        sparse.csr_array((weights, (graph.edges[:, 0], graph.edges[:, 1])), shape=shape)
    ).tocoo()
    kept = random.permutation(np.stack(tree.coords, axis=1))[: graph.n_sites - k]
    return connected_components(graph.n_sites, kept)


def _connected_pieces(
    labels: NDArray[np.int32], graph: SiteGraph, seeds: NDArray[np.int64] | None
) -> NDArray[np.int32]:
    """Return the connected pieces of the clusters of a draw; where these tear a seed, paths join its sites."""
    pieces = graph.pieces(labels)
    if seeds is None or keeps_seeds(pieces, seeds):
        return pieces
    return partition_with_seeds(labels, graph, seeds, np.ones(graph.n_edges))


def _with_seeds(
    labels: NDArray[np.int32] | None,
    draw: NDArray[np.int32],
    graph: SiteGraph,
    seeds: NDArray[np.int64],
    random: np.random.Generator,
) -> NDArray[np.int32]:
    """Return a start like `labels` that keeps the seeds, with random paths inside the clusters of a connected draw.

    Where there are no labels, only the sites of the seeds and of these paths are allocated.
    """
    cost = 1.0 - random.random(graph.n_edges)
    within = draw[graph.edges[:, 0]] == draw[graph.edges[:, 1]]
    held = connect_seeds(graph, seeds, np.where(within, cost, cost + graph.n_edges))
    if labels is None:
        return in_order(held).astype(np.int32) - np.int32(not held.all())
    return partition_with_seeds(labels, graph, held, cost)


def _seeds_of(draws: NDArray[np.int32], graph: SiteGraph | None, seeds: ArrayLike | None) -> NDArray[np.int64] | None:
    """The seeds of an estimate, which all draws must keep; None where there are none."""
    if seeds is None:
        return None
    if graph is None:
        invalid("seeds", "be left out without a graph", "seeds")
    held = checked_seeds(seeds, graph)
    if not all(keeps_seeds(draw, held) for draw in draws):
        invalid("labels", "be draws that keep the seeds", "others")
    return held


def _descend(
    tables: Search, start: NDArray[np.int32] | None, limit: int, rng: np.random.Generator
) -> tuple[float, Search]:
    """Search from one start; return the loss and the tables, with the partition in `label`."""
    n_sites = tables.label.size
    min_gain = MIN_GAIN * tables.weight[tables.row[: tables.first[1]]].sum()  # each draw has a cluster of each site
    loss, change, reallocated = _start(tables, start), -np.inf, False
    improve, reallocate = kernels.improve_sites, kernels.reallocate
    if tables.start.size > 0:
        improve, reallocate = kernels.improve_connected, kernels.reallocate_connected
        if start is None or start.min() < 0:
            loss += kernels.allocate_connected(tables, rng.permutation(n_sites), n_sites)
            if loss == np.inf:
                return loss, tables
    while change < -min_gain:
        order = rng.permutation(n_sites)
        change = improve(tables, order, min_gain)
        if change >= -min_gain or not reallocated:  # it costs two sweeps, but one early saves many
            change += reallocate(tables, order, min_gain)
            reallocated = True
        loss += change
        if tables.size.all() and tables.size.size < limit:
            tables, change = _enlarge(tables, limit), -np.inf
    return loss, tables


def _start(tables: Search, labels: NDArray[np.int32] | None) -> float:
    """Reset the tables to `labels`, -1 for sites that are not allocated, or to none where it is None; the loss."""
    kernels.remove_sites(tables)
    for table, of_none in ((tables.clock, 0), (tables.changed, 0), (tables.merged, -1), (tables.moved, -1)):
        table[:] = of_none
    return 0.0 if labels is None else kernels.add_sites(tables, np.require(labels, np.int32, ("C", "W")))


def _make_tables(
    draws: NDArray[np.int32],
    costs: Costs,
    limit: int,
    graph: SiteGraph | None = None,
    seeds: NDArray[np.int64] | None = None,
) -> tuple[Search, NDArray[np.int32], int]:
    """Return tables for the search, the draws that it uses, and the number of clusters to which the tables may grow."""
    n_sites = draws.shape[1]
    max_clusters = int(draws.max()) + 1
    capacity = min(max(2 * max_clusters, _fewest(graph, seeds)), limit)
    draws = draws[_evenly_spaced(len(draws), max(MAX_TABLE_BYTES // (12 * max_clusters * capacity), 1))]
    end = np.cumsum(draws.max(axis=1) + 1)
    n_searched = 0 if graph is None else n_sites
    first, row, weight = _clusters(draws)
    size_cost, cell_gain = len(draws) * costs[0], np.append(costs[1], 0.0)
    order: Literal["C", "F"] = "C" if graph is None else "F"  # a slot is read with all, or on its own
    tables = Search(
        first=first,
        row=row,
        weight=weight,
        size_cost=size_cost,
        cell_gain=cell_gain,
        size_total=np.append(0.0, np.cumsum(size_cost)),
        cell_total=np.append(0.0, np.cumsum(costs[1])),
        label=np.full(n_sites, -1, np.int32),
        size=np.zeros(capacity, np.int32),
        cell=np.zeros((weight.size, capacity), np.uint32, order),
        value=np.zeros((weight.size, capacity), np.float64, order),
        score=np.zeros(capacity),
        member=np.empty(n_sites, np.int64),
        shared=np.empty(weight.size, np.int64),
        kept=np.empty(weight.size, np.uint32),
        start=np.empty(0, np.uint64) if graph is None else graph.start.astype(np.uint64),
        neighbor=np.empty(0, np.uint32) if graph is None else graph.neighbors.astype(np.uint32),
        queue=np.zeros(n_searched, np.uint32),
        place=np.zeros(n_searched, np.uint32),
        pending=np.zeros(n_searched, np.uint32),
        seed=np.zeros(n_sites, np.int64) if seeds is None else seeds.astype(np.int64),
        clock=np.zeros(1, np.int64),
        changed=np.zeros(capacity, np.int64),
        merged=np.zeros(capacity, np.int64),
        moved=np.zeros(n_sites, np.int64),
    )
    return tables, draws, min(limit, max(capacity, MAX_TABLE_BYTES // (12 * int(end[-1]))))


def _clusters(draws: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[np.float64]]:
    """Return the different clusters of the draws: those of each site, as `first` and `row`, and how many have each.

    Clusters of two draws are the same if random numbers for their sites have the same sums, of 64 bits.
    """
    n_draws, n_sites = draws.shape
    of_site = draws + np.append(0, np.cumsum(draws.max(axis=1) + 1)[:-1])[:, None]
    marks = np.random.default_rng(0).integers(0, 1 << (52 - n_sites.bit_length()), (2, n_sites)).astype(np.float64)
    sums = [np.bincount(of_site.ravel(), np.tile(mark, n_draws)).astype(np.uint64) for mark in marks]
    _, found, weight = np.unique(sums[0] * np.uint64(MIXER) + sums[1], return_index=True, return_counts=True)
    place = np.argsort(found)
    number = np.full(sums[0].size, -1)
    number[found[place]] = np.arange(found.size)
    rows = number[of_site.T]
    is_first = rows >= 0
    first = np.append(0, np.cumsum(is_first.sum(axis=1)))
    return first, rows[is_first].astype(np.uint32), weight[place].astype(np.float64)


def _enlarge(tables: Search, limit: int) -> Search:
    """Return the tables with twice as many slots, at most `limit`."""
    extra = min(tables.size.size, limit - tables.size.size)

    def enlarged(table: NDArray[Any]) -> NDArray[Any]:
        return np.concatenate([table, np.zeros_like(table, shape=(*table.shape[:-1], extra))], axis=-1)

    return tables._replace(**{name: enlarged(getattr(tables, name)) for name in SLOT_TABLES})


def _evenly_spaced(n_items: int, max_items: int) -> NDArray[np.intp]:
    """Return the indices of at most `max_items` items, evenly spaced."""
    return np.linspace(0, n_items - 1, min(n_items, max_items)).round().astype(np.intp)
