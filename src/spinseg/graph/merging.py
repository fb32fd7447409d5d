"""Merging of regions outside the sampler: the lowest border first, the smallest region first, or many at once.

Greedy merging by the log posterior is apart, in `sampler.kernels.agglomerate`: there a merge changes what all others of
the two clusters gain, so that no sums along borders say which comes next.
"""

import heapq
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinseg.graph.edges import at_last, connected_components
from spinseg.graph.site_graph import SiteGraph
from spinseg.partition.numbering import by_first_appearance

Choice = Callable[[NDArray[Any], NDArray[Any], NDArray[np.float64]], NDArray[Any]]


class Merging:
    """Regions that merge, and the sums of a value and of the length along the border of each two that touch.

    `into` is the region that each one has joined, itself at first.
    """

    def __init__(
        self, n_regions: int, pairs: NDArray[np.integer], values: NDArray[np.number], lengths: NDArray[np.number]
    ) -> None:
        self.into = list(range(n_regions))
        self.borders: list[dict[int, tuple[float, float]]] = [{} for _ in range(n_regions)]
        for r, s, *border in zip(*pairs.T.tolist(), values.tolist(), lengths.tolist(), strict=True):
            self.borders[r][s] = self.borders[s][r] = tuple(border)

    def mean(self, r: int, s: int) -> float:
        """The mean value along the border of two regions; NaN if they do not touch."""
        value, length = self.borders[r].get(s, (0.0, 0.0))
        return value / length if length else math.nan

    def join(self, r: int, s: int) -> list[int]:
        """Let region s join region r; return the neighbors of s, whose border with r is longer now."""
        self.into[s] = r
        del self.borders[r][s]
        theirs, self.borders[s] = self.borders[s], {}
        del theirs[r]
        for t, (value, length) in theirs.items():
            before = self.borders[r].get(t, (0.0, 0.0))
            self.borders[r][t] = self.borders[t][r] = (before[0] + value, before[1] + length)
            del self.borders[t][s]
        return list(theirs)

    def root(self, r: int) -> int:
        """The region that r is part of by now; `into` stays, from which `_edge_heights` reads the order of joins."""
        while self.into[r] != r:
            r = self.into[r]
        return r


def touching_regions(
    regions: NDArray[np.integer], edges: NDArray[np.integer]
) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.intp]]:
    """Pairs of touching regions, sorted, (n_pairs, 2); which edges join two regions; and the pair of each of these."""
    ends = np.sort(regions[edges].astype(np.int64), axis=1)
    across = ends[:, 0] != ends[:, 1]
    stride = int(regions.max()) + 1
    keys, pair = np.unique(ends[across] @ [stride, 1], return_inverse=True)
    return np.stack(np.divmod(keys, stride), axis=1), across, pair


def merge_heights(
    graph: SiteGraph, values: NDArray[np.float64], cores: NDArray[np.int64] | None = None
) -> NDArray[np.float64]:
    """The height of each edge: the level at which its two sites come to lie in one region, (n_edges,).

    The two touching regions with the lowest mean value along their common boundary, weighted by length, are joined
    again and again; of equal means that of the lowest regions, which have the number of a site of their largest part. A
    height is never below the heights of what was joined before, so that the regions of a lower level lie within those
    of a higher one.

    `values` are how often, over the draws, the two sites of each edge lay apart, or log-odds of a boundary. `cores` are
    the seed of each site, 0 for none, with the sites that connect its own (`connect_seeds`): the sites of a core are
    joined first, at level 0, and regions of different cores never are, so that the height between them is infinite.
    """
    n_sites, length = graph.n_sites, graph.length
    merging = Merging(n_sites, graph.edges, values * length, length)
    core = [0] * n_sites if cores is None else cores.tolist()
    size, gone, levels = [1] * n_sites, [], []  # what joined another, in this order, and at which level

    def join(r: int, s: int, level: float) -> list[tuple[float, int, int]]:
        """Join two regions; return the borders that became longer."""
        if size[r] < size[s]:
            r, s = s, r
        size[r] += size[s]
        core[r] = max(core[r], core[s])
        gone.append(s)
        levels.append(level)
        return [(merging.mean(r, t), min(r, t), max(r, t)) for t in merging.join(r, s)]

    for i, j in graph.edges.tolist() if cores is not None else []:
        r, s = merging.root(i), merging.root(j)
        if r != s and core[i] == core[j] > 0:
            join(r, s, 0.0)
    queue = [(merging.mean(r, s), r, s) for r, border in enumerate(merging.borders) for s in border if r < s]
    heapq.heapify(queue)
    level = -np.inf if cores is None else 0.0
    while queue:
        mean, r, s = heapq.heappop(queue)
        apart = core[r] and core[s] and core[r] != core[s]
        if merging.mean(r, s) == mean and not apart:  # else it was joined, or is longer by now
            level = max(level, mean)
            for border in join(r, s, level):
                heapq.heappush(queue, border)
    return _edge_heights(graph.edges, np.array(merging.into), gone, levels)


def _edge_heights(
    edges: NDArray[np.int32], into: NDArray[np.int64], gone: list[int], levels: list[float]
) -> NDArray[np.float64]:
    """The level at which the two sites of each edge were joined, from which region joined which, and in which order."""
    time, level = np.full(into.size, len(gone)), np.full(into.size, np.inf)
    time[gone], level[gone] = np.arange(len(gone)), levels
    first, other = edges.T
    heights = np.full(len(edges), np.inf)
    while True:  # of two different regions that are to meet, the one that joined another earlier moves on
        first, other = np.where(time[first] <= time[other], [first, other], [other, first])
        moving = (first != other) & (time[first] < len(gone))
        if not moving.any():
            return np.where(first == other, heights, np.inf)
        heights[moving] = level[first[moving]]
        first = np.where(moving, into[first], first)


def absorb_small(
    regions: NDArray[np.int32],
    graph: SiteGraph,
    beta: NDArray[np.float64],
    smallest: float,
    *,
    length: NDArray[np.float64] | None = None,
    area: NDArray[np.integer] | None = None,
    seeds: NDArray[np.int64] | None = None,
) -> NDArray[np.int32]:
    """Connected regions of at least the smallest area: the smaller ones, smallest first, have joined a neighbor.

    It is the neighbor with the largest coupling per length of common boundary, sum(beta) / sum(length), and the first
    of those. A region that touches no other stays. A region with a seed comes first, and joins none with another seed;
    `seeds` are 0 for sites without one. By default all edges have length 1 and all sites area 1.
    """
    n_regions = int(regions.max()) + 1
    size = np.bincount(regions, area, n_regions).tolist()
    pairs, across, pair = touching_regions(regions, graph.edges)
    lengths = np.bincount(pair, None if length is None else length[across], len(pairs))
    merging = Merging(n_regions, pairs, np.bincount(pair, beta[across], len(pairs)), lengths)
    seeded = [False] * n_regions
    for r in regions[seeds > 0].tolist() if seeds is not None else []:
        seeded[r] = True
    queue = [(not seeded[r], size[r], r) for r in range(n_regions) if size[r] < smallest]
    heapq.heapify(queue)
    while queue:
        _, here, r = heapq.heappop(queue)
        if here != size[r] or merging.into[r] != r:
            continue  # grown or gone since it was queued
        possible = [(merging.mean(r, s), -s) for s in merging.borders[r] if not (seeded[r] and seeded[s])]
        if possible:
            s = -max(possible)[1]
            merging.join(s, r)
            size[s] += size[r]
            seeded[s] |= seeded[r]
            if size[s] < smallest:
                heapq.heappush(queue, (not seeded[s], size[s], s))
    return by_first_appearance(at_last(np.array(merging.into))[regions])


def merge_in_rounds(
    edges: NDArray[np.integer], sizes: NDArray[np.number], means: NDArray[np.float64], *choices: Choice
) -> NDArray[np.int32]:
    """The region of each piece after rounds in which many pairs merge at once, until none is chosen, (n_pieces,).

    A choice is a function of the edges (which may be repeated), sizes and means of the regions by now: the pairs that
    merge. The rounds of a choice come after those of the one before.
    """
    region = np.arange(sizes.size, dtype=np.int32)
    for choose in choices:
        while len(pairs := choose(edges, sizes, means)):
            into = connected_components(sizes.size, pairs)
            sums = [np.bincount(into, sizes * channel) for channel in means.T]
            sizes = np.bincount(into, sizes)
            means = np.stack(sums, axis=1) / sizes[:, None]
            edges = into[edges]
            edges = edges[edges[:, 0] != edges[:, 1]]
            region = into[region]
    return region


def nearest_pairs(pairs: NDArray[np.integer], distances: NDArray[np.float64]) -> NDArray[np.integer]:
    """Of the pairs of each first region the one of the least distance, the first of these; sorted by region."""
    ordered = pairs[np.lexsort((distances, pairs[:, 0]))]
    return ordered[np.diff(ordered[:, 0], prepend=-1) > 0]
