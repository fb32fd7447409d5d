"""Regions, the connected pieces of clusters, and what becomes of the small ones."""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinseg import _validation
from spinseg.graph.site_graph import SiteGraph
from spinseg.partition.contingency import contingency_table


def regions_of(labels: ArrayLike, graph: SiteGraph) -> NDArray[np.int32]:
    """The region of every site, numbered by first appearance: the connected pieces of the clusters.

    Examples
    --------
    >>> regions_of([0, 1, 0], SiteGraph(3, [[0, 1], [1, 2]]))
    array([0, 1, 2], dtype=int32)
    """
    z = _validation.labels("labels", labels, graph.n_sites)
    return _validation.labels("labels", graph.pieces(z), graph.n_sites)


def absorb_small_regions(
    regions: NDArray[np.int32],
    graph: SiteGraph,
    area: NDArray[np.integer],
    beta: NDArray[np.float64],
    smallest: float,
    seeds: NDArray[np.int64] | None = None,
) -> NDArray[np.int32]:
    """Regions of at least the smallest area: the smaller ones, smallest first, have joined a neighbour.

    It is the neighbor with the largest coupling per length of common boundary, sum(beta) / sum(length). A region
    that touches no other stays. A region with a seed comes first, and joins none with another seed.

    Parameters
    ----------
    regions : (n_sites,) array
        Connected, as `regions_of` gives them.
    graph : SiteGraph
        Of the sites, weighted by length; `beta` are its couplings.
    area : (n_sites,) array
    seeds : (n_sites,) array, optional
        The seed of each site, 0 for none. Each region has one at most.

    Examples
    --------
    >>> line = SiteGraph(3, [[0, 1], [1, 2]])
    >>> absorb_small_regions(np.arange(3), line, area=np.array([9, 1, 9]), beta=np.array([0.1, 0.2]), smallest=5)
    array([0, 1, 1], dtype=int32)
    """
    n_regions = int(regions.max()) + 1
    size = np.bincount(regions, area, n_regions)
    touching = _between(regions, graph, beta)
    seeded = np.zeros(n_regions, bool)
    if seeds is not None:
        seeded[regions[seeds > 0]] = True
    into = np.arange(n_regions)
    queue = [(not seeded[r], size[r], r) for r in range(n_regions) if size[r] < smallest]
    heapq.heapify(queue)
    while queue:
        _, here, r = heapq.heappop(queue)
        if here != size[r] or into[r] != r:
            continue  # grown or gone since it was queued
        possible = [s for s in touching[r] if not (seeded[r] and seeded[s])]
        if not possible:
            continue
        s = max(possible, key=lambda s: (touching[r][s][0] / touching[r][s][1], -s))
        into[r] = s
        size[s] += size[r]
        seeded[s] |= seeded[r]
        del touching[s][r]
        for t, (coupling, border) in touching.pop(r).items():
            if t != s:
                del touching[t][r]
                before = touching[s].get(t, (0.0, 0.0))
                touching[s][t] = touching[t][s] = (before[0] + coupling, before[1] + border)
        if size[s] < smallest:
            heapq.heappush(queue, (not seeded[s], size[s], s))
    while (into[into] != into).any():
        into = into[into]
    return _validation.labels("regions", into[regions], regions.size)


def absorb_small_clusters(
    labels: NDArray[np.int32],
    graph: SiteGraph,
    beta: NDArray[np.float64],
    min_size: int,
    seeds: NDArray[np.int64] | None = None,
) -> NDArray[np.int32]:
    """As `absorb_small_regions`, for connected clusters of at least `min_size` sites, where all edges are as long."""
    unweighted = SiteGraph(graph.n_sites, graph.edges)
    return absorb_small_regions(labels, unweighted, np.ones(graph.n_sites, np.int64), beta, min_size, seeds)


def _between(
    regions: NDArray[np.int32], graph: SiteGraph, beta: NDArray[np.float64]
) -> dict[int, dict[int, tuple[float, float]]]:
    """For each region those that touch it, with the sums of coupling and length over the common boundary."""
    ends = regions[graph.edges]
    across = ends[:, 0] != ends[:, 1]
    pairs, which = np.unique(np.sort(ends[across], axis=1), axis=0, return_inverse=True)
    couplings = np.bincount(which.ravel(), beta[across], len(pairs))
    borders = np.bincount(which.ravel(), graph.length[across], len(pairs))
    touching: dict[int, dict[int, tuple[float, float]]] = {r: {} for r in range(int(regions.max()) + 1)}
    for (r, s), coupling, border in zip(pairs.tolist(), couplings.tolist(), borders.tolist(), strict=True):
        touching[r][s] = touching[s][r] = (coupling, border)
    return touching


def cohesion(labels: NDArray[np.int32], regions: NDArray[np.int32]) -> NDArray[np.float64]:
    """How often two sites of a region share a cluster, one number per region, over draws of shape (.., n_sites).

    Per draw it is sum_c n_c (n_c - 1) / n (n - 1), n_c of the region's n sites being in cluster c; 1 for a single site.

    Examples
    --------
    >>> cohesion(np.array([[0, 0, 0], [0, 1, 1]]), np.array([0, 0, 1])).tolist()
    [0.5, 1.0]
    """
    sizes = np.bincount(regions)
    pairs, draws = np.zeros(sizes.size), labels.reshape(-1, labels.shape[-1])
    for draw in draws:
        table = contingency_table(regions, draw)
        pairs += np.bincount(table.row, table.shared * (table.shared - 1), sizes.size)
    return np.where(sizes > 1, pairs / np.maximum(len(draws) * sizes * (sizes - 1), 1), 1.0)
