"""Nested regions: sites joined one pair of regions after another, the least likely boundary first."""

import heapq

import numpy as np
from numpy.typing import NDArray

from spinseg.image.adjacency import RegionAdjacency


def merge_heights(adjacency: RegionAdjacency, separation: NDArray[np.float64]) -> NDArray[np.float64]:
    """The height of each edge: the level at which its two sites come to lie in one region, (n_edges,).

    The two touching regions with the lowest mean separation along their common boundary, weighted by length, are joined
    again and again. A height is never below the heights of what was joined before, so that the regions of a lower level
    lie within those of a higher one.

    Parameters
    ----------
    adjacency : RegionAdjacency
        Of the sites.
    separation : (n_edges,) array
        How often, over the draws, the two sites of each edge lay apart.

    Examples
    --------
    >>> from spinseg.model.graph import SiteGraph
    >>> triangle = RegionAdjacency(SiteGraph(3, [[0, 1], [0, 2], [1, 2]]), np.array([1, 1, 3]), None)
    >>> merge_heights(triangle, np.array([0.1, 0.9, 0.5])).tolist()
    [0.1, 0.6, 0.6]
    """
    graph, length = adjacency.graph, adjacency.boundary_length.astype(np.float64)
    borders: list[dict[int, tuple[float, float]]] = [{} for _ in range(graph.n_sites)]  # length apart, and whole length
    for (i, j), apart, whole in zip(graph.edges.tolist(), (separation * length).tolist(), length.tolist(), strict=True):
        borders[i][j] = borders[j][i] = (apart, whole)
    queue = [(apart / whole, i, j) for i, border in enumerate(borders) for j, (apart, whole) in border.items() if i < j]
    heapq.heapify(queue)
    members, region = [[site] for site in range(graph.n_sites)], np.arange(graph.n_sites)
    heights, level = np.zeros(graph.n_edges), 0.0
    while queue:
        mean, i, j = heapq.heappop(queue)
        apart, whole = borders[i].get(j, (0.0, 0.0))
        if whole == 0 or apart / whole != mean:
            continue  # joined, or longer, since it was queued
        level = max(level, mean)
        if len(members[i]) < len(members[j]):
            i, j = j, i
        for site in members[j]:
            around = slice(graph.start[site], graph.start[site + 1])
            heights[graph.edge_of[around][region[graph.neighbors[around]] == i]] = level
        region[members[j]] = i
        members[i] += members[j]
        del borders[i][j], borders[j][i]
        for k, (apart, whole) in borders[j].items():
            before = borders[i].get(k, (0.0, 0.0))
            borders[i][k] = borders[k][i] = joined = (before[0] + apart, before[1] + whole)
            del borders[k][j]
            heapq.heappush(queue, (joined[0] / joined[1], min(i, k), max(i, k)))
        members[j], borders[j] = [], {}
    return heights
