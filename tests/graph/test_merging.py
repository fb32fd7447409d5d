"""Merging of regions, against plain versions that look at everything again after every merge; ties included."""

import numpy as np
import pytest

from effort import effort
from spinseg.graph.adjacency import region_adjacency, regions_of
from spinseg.graph.merging import absorb_small, merge_heights, merge_in_rounds, nearest_pairs
from spinseg.graph.site_graph import SiteGraph
from spinseg.partition.numbering import by_first_appearance

SEEDS = effort(range(12), range(60))


def random_graph(seed):
    """A graph of touching sites without some of its edges, so that it may be in several pieces."""
    rng = np.random.default_rng(seed)
    whole = region_adjacency(by_first_appearance(rng.integers(0, 14, rng.integers(2, 10, 2))))
    kept = rng.random(whole.n_edges) < 0.7
    return SiteGraph(whole.n_sites, whole.edges[kept], whole.length[kept]), rng


def border_means(regions, graph, values):
    """The mean value along the border of each pair of touching regions, weighted by length."""
    ends = np.sort(regions[graph.edges], axis=1)
    found = {}
    for pair in {(r, s) for r, s in ends.tolist() if r != s}:
        between = (ends == pair).all(axis=1)
        found[pair] = (values * graph.length)[between].sum() / graph.length[between].sum()
    return found


def slow_heights(graph, values, cores):
    regions, level, heights = np.arange(graph.n_sites), -np.inf, np.full(graph.n_edges, np.inf)
    cores = np.zeros(graph.n_sites, int) if cores is None else cores

    def join(r, s, level):
        ends = np.sort(regions[graph.edges], axis=1)
        heights[(ends == sorted((r, s))).all(axis=1)] = level
        if (regions == r).sum() < (regions == s).sum():
            r, s = s, r
        regions[regions == s] = r

    for i, j in graph.edges:
        if cores[i] == cores[j] > 0 and regions[i] != regions[j]:
            join(regions[i], regions[j], 0.0)
            level = 0.0
    while True:
        of = {r: cores[regions == r].max() for r in np.unique(regions)}
        borders = border_means(regions, graph, values).items()
        means = [(mean, r, s) for (r, s), mean in borders if not (of[r] and of[s] and of[r] != of[s])]
        if not means:
            return heights
        mean, r, s = min(means)
        level = max(level, mean)
        join(r, s, level)


@pytest.mark.parametrize("seeded", [False, True])
@pytest.mark.parametrize("n_values", [2, 4, None], ids=["many ties", "ties", "no ties"])
@pytest.mark.parametrize("seed", SEEDS)
def test_heights_are_those_of_looking_at_all_borders_each_time(seed, n_values, seeded):
    graph, rng = random_graph(seed)
    values = rng.random(graph.n_edges) if n_values is None else rng.integers(0, n_values, graph.n_edges) / 4
    labels = rng.integers(0, 3, graph.n_sites)
    cores = np.where(labels > 0, regions_of(labels, graph) + 1, 0) if seeded else None
    expected = slow_heights(graph, values, cores)
    np.testing.assert_allclose(merge_heights(graph, values, cores), expected, rtol=1e-12)
    if not seeded:  # log-odds may be negative
        np.testing.assert_allclose(merge_heights(graph, values - 2), expected - 2, rtol=1e-12)


def test_islands_are_never_joined_and_single_borders_have_their_own_height():
    graph = SiteGraph(4, [[0, 1], [2, 3]], weights=[3, 7])
    assert merge_heights(graph, np.array([0.4, -0.9])).tolist() == pytest.approx([0.4, -0.9], rel=1e-12)
    assert merge_heights(SiteGraph(3, []), np.empty(0)).shape == (0,)


def slow_absorbed(regions, graph, beta, smallest, area, seeds):
    regions, alone = regions.copy(), set()
    while True:
        sizes = {r: area[regions == r].sum() for r in np.unique(regions)}
        seeded = {r: bool((seeds[regions == r] > 0).any()) for r in sizes}
        small = [(not seeded[r], size, r) for r, size in sizes.items() if size < smallest and (r, size) not in alone]
        if not small:
            return regions
        _, size, r = min(small)
        means = border_means(regions, graph, beta / graph.length).items()
        near = [(mean, -(sum(pair) - r)) for pair, mean in means if r in pair]
        near = [(mean, s) for mean, s in near if not (seeded[r] and seeded[-s])]
        if near:
            regions[regions == r] = -max(near)[1]
        else:
            alone.add((r, size))  # until it has grown


@pytest.mark.parametrize("smallest", [0, 8, 30, 10_000])
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seeded", [False, True])
@pytest.mark.parametrize("seed", SEEDS[:6])
def test_small_regions_join_the_neighbor_that_couples_most(seed, seeded, ties, smallest):
    graph, rng = random_graph(seed)
    regions = regions_of(rng.integers(0, 4, graph.n_sites), graph)
    area, beta = rng.integers(1, 7, graph.n_sites), rng.normal(size=graph.n_edges)
    beta = np.rint(beta) * graph.length if ties else beta
    seeds = np.where(seeded & (np.diff(regions, prepend=-1) > 1 - (regions % 2)), regions + 1, 0)
    found = absorb_small(regions, graph, beta, smallest, length=graph.length, area=area, seeds=seeds)
    expected = slow_absorbed(regions, graph, beta, smallest, area, seeds)
    np.testing.assert_array_equal(found, by_first_appearance(expected))
    unweighted, ones = SiteGraph(graph.n_sites, graph.edges), np.ones(graph.n_sites)
    found = absorb_small(regions, graph, beta, smallest, seeds=seeds)
    expected = slow_absorbed(regions, unweighted, beta, smallest, ones, seeds)
    np.testing.assert_array_equal(found, by_first_appearance(expected))


def small_to_nearest(smallest):
    def choose(edges, sizes, means):
        pairs = np.concatenate([edges, edges[:, ::-1]])
        pairs = pairs[sizes[pairs[:, 0]] < smallest]
        return nearest_pairs(pairs, np.square(means[pairs[:, 0]] - means[pairs[:, 1]]).sum(axis=1))

    return choose


@pytest.mark.parametrize("smallest", [1, 4, 12, 1000])
@pytest.mark.parametrize("seed", SEEDS)
def test_in_a_round_all_small_regions_choose_at_once(seed, smallest):
    graph, rng = random_graph(seed)
    sizes, values = rng.integers(1, 6, graph.n_sites), rng.normal(size=(graph.n_sites, 2))
    slow = np.arange(graph.n_sites)
    while True:
        size = {r: sizes[slow == r].sum() for r in np.unique(slow)}
        mean = {r: np.average(values[slow == r], axis=0, weights=sizes[slow == r]) for r in size}
        near = {r: {s for pair in slow[graph.edges].tolist() if r in pair for s in pair if s != r} for r in size}
        small = [r for r in size if size[r] < smallest and near[r]]
        if not small:
            break
        chosen = {r: min(near[r], key=lambda s: np.linalg.norm(mean[r] - mean[s])) for r in small}
        for r, s in chosen.items():  # whose regions may have merged before
            first, other = slow[r], slow[s]
            slow[slow == other] = first
    found = merge_in_rounds(graph.edges, sizes, values, small_to_nearest(smallest))
    np.testing.assert_array_equal(found, by_first_appearance(slow))
