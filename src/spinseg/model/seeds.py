"""Seeds: sites that must lie in one cluster, and apart from those of other seeds, where clusters are connected."""

import numpy as np
import scipy.sparse as sparse
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.csgraph import dijkstra

from spinseg._validation import check_array, integer_array, invalid
from spinseg.graph.edges import connected_components
from spinseg.graph.site_graph import SiteGraph

N_ORDERS = 20  # in which seeds are connected one after the other until all are; the first connected may be in the way
UNREACHED = -9999  # by SciPy's search
NO_CROSSING = "have sites that can be connected without passing another seed"
NO_PATHS = "have sites that can be connected, each seed for itself: no such paths were found"


def checked_seeds(seeds: ArrayLike, graph: SiteGraph) -> NDArray[np.int64] | None:
    """The seed of each site, 0 where it has none; None where no site has one.

    Seeds are refused if the sites of one cannot be connected without passing another.
    """
    array = check_array("seeds", seeds)
    if array.shape != (graph.n_sites,):
        invalid("seeds", f"have one entry per site, shape ({graph.n_sites},)", array.shape)
    array = np.maximum(integer_array("seeds", array).astype(np.int64), 0)
    if not array.any():
        return None
    for seed in _in_pieces(graph, array):
        own = np.flatnonzero(array == seed)
        free = (array == seed) | (array == 0)
        pieces = graph.components(free[graph.edges].all(axis=1))
        _, first = np.unique(pieces[own], return_index=True)
        if first.size > 1:
            invalid("seeds", NO_CROSSING, f"seed {seed}", seeds=[seed], sites=own[first].tolist())
    return array


def keeps_seeds(labels: NDArray[np.int32], seeds: NDArray[np.int64] | None) -> bool:
    """Whether sites of the same seed have the same label, and sites of different seeds have different labels."""
    if seeds is None:
        return True
    pairs = set(zip(seeds[seeds > 0].tolist(), labels[seeds > 0].tolist(), strict=True))
    return len(pairs) == len({seed for seed, _ in pairs}) == len({label for _, label in pairs})


def connect_seeds(graph: SiteGraph, seeds: NDArray[np.int64], cost: NDArray[np.float64]) -> NDArray[np.int64]:
    """The seed of each site, when each seed also has sites that connect its own: those on the cheapest paths.

    `cost` is a positive number for each edge. Seeds in several pieces are connected one after the other, none through
    the sites of another, in other orders if the first does not work out.
    """
    waiting, rng = _in_pieces(graph, seeds), np.random.default_rng(0)
    for attempt in range(N_ORDERS):
        held = seeds.copy()
        if all(_connect(graph, held, seed, cost) for seed in (rng.permutation(waiting) if attempt else waiting)):
            return held
    invalid("seeds", NO_PATHS, waiting, seeds=waiting)


def partition_with_seeds(
    labels: NDArray[np.int32], graph: SiteGraph, seeds: NDArray[np.int64], cost: NDArray[np.float64]
) -> NDArray[np.int32]:
    """A partition into connected clusters that keeps the seeds, and is otherwise much like `labels`.

    The clusters in which a seed has sites become one, with the paths of `connect_seeds`. Where several seeds are then
    in one cluster, it is divided: each of its sites goes to the nearest seed, by `cost` along the edges.
    """
    within = labels[graph.edges[:, 0]] == labels[graph.edges[:, 1]]
    held = connect_seeds(graph, seeds, np.where(within, cost, cost + cost.sum()))  # first inside the present clusters
    seeded = np.flatnonzero(seeds)
    n_labels = int(labels.max()) + 1
    _, group = np.unique(seeds[seeded], return_inverse=True)
    joins = np.stack([labels[seeded], n_labels + group.ravel()], axis=1)
    united = connected_components(n_labels + int(group.max()) + 1, joins)[labels]
    of_seed = dict(zip(seeds[seeded].tolist(), united[seeded].tolist(), strict=True))
    united[held > 0] = [of_seed[seed] for seed in held[held > 0].tolist()]
    nearest = _nearest_seeds(graph, held, cost, united[graph.edges[:, 0]] == united[graph.edges[:, 1]])
    return graph.pieces(united * (nearest.max() + 1) + nearest)  # a label for each pair of the two


def _in_pieces(graph: SiteGraph, seeds: NDArray[np.int64]) -> list[int]:
    """The seeds whose sites are not connected by themselves."""
    seeded = np.flatnonzero(seeds)
    _, first = np.unique(graph.pieces(seeds)[seeded], return_index=True)  # a site of each piece
    found, counts = np.unique(seeds[seeded][first], return_counts=True)
    return found[counts > 1].tolist()


def _connect(graph: SiteGraph, held: NDArray[np.int64], seed: int, cost: NDArray[np.float64]) -> bool:
    """Give a seed the sites on the cheapest paths between its pieces, of those that are free; whether that worked."""
    free = (held == seed) | (held == 0)
    weights = _weights(graph, cost, free[graph.edges].all(axis=1))
    while True:
        pieces = graph.pieces(np.where(held == seed, 1, 2 + np.arange(held.size)).astype(np.int32))
        others = np.flatnonzero((held == seed) & (pieces != pieces[np.argmax(held == seed)]))
        if not others.size:
            return True
        first = np.flatnonzero((held == seed) & (pieces == pieces[np.argmax(held == seed)]))
        distance, before, _ = dijkstra(weights, directed=False, indices=first, return_predecessors=True, min_only=True)
        site = int(others[np.argmin(distance[others])])
        if distance[site] == np.inf:
            return False
        while site != UNREACHED:
            held[site] = seed
            site = int(before[site])


def _nearest_seeds(
    graph: SiteGraph, held: NDArray[np.int64], cost: NDArray[np.float64], kept: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """The seed that holds the site nearest to each, over the edges that are kept; 0 where none is reached."""
    sources = np.flatnonzero(held)
    weights = _weights(graph, cost, kept)
    _, _, source = dijkstra(weights, directed=False, indices=sources, return_predecessors=True, min_only=True)
    return np.where(source >= 0, held[np.maximum(source, 0)], 0)


def _weights(graph: SiteGraph, cost: NDArray[np.float64], kept: NDArray[np.bool_]) -> sparse.csr_array:
    """The costs of the edges that are kept, as SciPy's searches take them."""
    ends, shape = graph.edges[kept], (graph.n_sites, graph.n_sites)
    return sparse.coo_array((cost[kept], (ends[:, 0], ends[:, 1])), shape=shape).tocsr()
