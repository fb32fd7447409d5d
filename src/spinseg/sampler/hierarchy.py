"""Nested regions: sites joined one pair of regions after another, the least likely boundary first."""

import heapq

import numpy as np
from numpy.typing import NDArray

from spinseg.graph.site_graph import SiteGraph


def merge_heights(
    graph: SiteGraph, separation: NDArray[np.float64], cores: NDArray[np.int64] | None = None
) -> NDArray[np.float64]:
    """The height of each edge: the level at which its two sites come to lie in one region, (n_edges,).

    The two touching regions with the lowest mean separation along their common boundary, weighted by length, are joined
    again and again. A height is never below the heights of what was joined before, so that the regions of a lower level
    lie within those of a higher one. Where there are seeds, the sites of one are joined first, at level 0, and regions
    of different seeds never are: the height between them is infinite.

    Parameters
    ----------
    graph : SiteGraph
        Of the sites, weighted by length.
    separation : (n_edges,) array
        How often, over the draws, the two sites of each edge lay apart.
    cores : (n_sites,) array, optional
        The seed of each site, 0 for none, with the sites that connect its own (`connect_seeds`).

    Examples
    --------
    >>> triangle = SiteGraph(3, [[0, 1], [0, 2], [1, 2]], weights=[1, 1, 3])
    >>> merge_heights(triangle, np.array([0.1, 0.9, 0.5])).tolist()
    [0.1, 0.6, 0.6]
    """
    merging = _Merging(graph, separation, cores)
    for i, j in graph.edges[[]] if cores is None else graph.edges[_inside(graph, cores)]:
        merging.join(int(i), int(j), 0.0)
    queue = merging.borders_of_all()
    heapq.heapify(queue)
    level = 0.0
    while queue:
        mean, i, j = heapq.heappop(queue)
        if merging.mean(i, j) == mean and not merging.are_apart(i, j):  # else it was joined, or is longer by now
            level = max(level, mean)
            for border in merging.join(i, j, level):
                heapq.heappush(queue, border)
    return merging.heights


def _inside(graph: SiteGraph, cores: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which edges join two sites of one core."""
    ends = cores[graph.edges]
    return (ends[:, 0] == ends[:, 1]) & (ends[:, 0] > 0)


class _Merging:
    """Regions while they are joined: their sites, seeds and common borders, and the heights of edges so far."""

    def __init__(self, graph: SiteGraph, separation: NDArray[np.float64], cores: NDArray[np.int64] | None) -> None:
        length = graph.length
        self.graph = graph
        self.heights = np.full(graph.n_edges, np.inf)
        self.region = np.arange(graph.n_sites)
        self.members = [[site] for site in range(graph.n_sites)]
        self.seed = np.zeros(graph.n_sites, np.int64) if cores is None else cores.copy()
        self.borders: list[dict[int, tuple[float, float]]] = [{} for _ in range(graph.n_sites)]  # apart, whole length
        lengths = zip(graph.edges.tolist(), (separation * length).tolist(), length.tolist(), strict=True)
        for (i, j), apart, whole in lengths:
            self.borders[i][j] = self.borders[j][i] = (apart, whole)

    def mean(self, i: int, j: int) -> float | None:
        """The mean separation along the border of two regions; None if they have none."""
        apart, whole = self.borders[i].get(j, (0.0, 0.0))
        return apart / whole if whole else None

    def borders_of_all(self) -> list[tuple[float, int, int]]:
        """The mean separation along each border, and its two regions."""
        pairs = ((i, j) for i, border in enumerate(self.borders) for j in border if i < j)
        return [(apart / whole, i, j) for i, j in pairs for apart, whole in [self.borders[i][j]]]

    def are_apart(self, i: int, j: int) -> bool:
        """Whether two regions have different seeds."""
        return bool(self.seed[i] and self.seed[j] and self.seed[i] != self.seed[j])

    def join(self, i: int, j: int, level: float) -> list[tuple[float, int, int]]:
        """Join the regions i and j, or those of two such sites; return the borders that became longer."""
        i, j = int(self.region[i]), int(self.region[j])
        if i == j:
            return []
        if len(self.members[i]) < len(self.members[j]):
            i, j = j, i
        graph = self.graph
        for site in self.members[j]:
            around = slice(graph.start[site], graph.start[site + 1])
            self.heights[graph.edge_of[around][self.region[graph.neighbors[around]] == i]] = level
        self.region[self.members[j]] = i
        self.members[i] += self.members[j]
        self.seed[i] = max(self.seed[i], self.seed[j])
        del self.borders[i][j], self.borders[j][i]
        longer = []
        for k, (apart, whole) in self.borders[j].items():
            before = self.borders[i].get(k, (0.0, 0.0))
            self.borders[i][k] = self.borders[k][i] = joined = (before[0] + apart, before[1] + whole)
            del self.borders[k][j]
            longer.append((joined[0] / joined[1], min(i, k), max(i, k)))
        self.members[j], self.borders[j] = [], {}
        return longer
