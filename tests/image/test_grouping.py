"""Grouping cues against dense matrices, naive loops and graphs whose answer is known."""

from itertools import combinations

import numpy as np
import pytest
from scipy import linalg, sparse

from spinseg.graph.merging import merge_heights
from spinseg.graph.site_graph import SiteGraph
from spinseg.image.boundary.cues import SiteStatistics
from spinseg.image.boundary.grouping import affinities, grouping_cues, spectral_distance


def random_edges(n_sites, share, rng):
    pairs = np.array(list(combinations(range(n_sites), 2)), np.int32).reshape(-1, 2)
    return pairs[rng.random(len(pairs)) < share]


def grids(height, width, count=1):
    """Edges of grids side by side, and the number of sites."""
    edges = SiteGraph.grid((height, width)).edges
    n_sites = height * width
    return np.concatenate([edges + n_sites * part for part in range(count)]), n_sites * count


def random_statistics(n_sites, rng):
    return SiteStatistics(
        sizes=rng.integers(5, 40, n_sites),
        centers=rng.random((n_sites, 2)),
        colors=rng.normal(50, 20, (n_sites, 3)),
        variances=rng.random((n_sites, 3)),
        words=rng.integers(0, 9, (n_sites, 6)).astype(float),
        textons=rng.integers(0, 9, (n_sites, 4)).astype(float),
        texture=rng.random((n_sites, 15)),
    )


def slow_affinities(probability, edges, n_sites):
    barrier = np.full((n_sites, n_sites), np.inf)
    for (a, b), p in zip(edges, probability, strict=True):
        barrier[a, b] = barrier[b, a] = p
    expected = np.zeros((n_sites, n_sites))
    for i in range(n_sites):
        for j in range(n_sites):
            best = barrier[i, j]
            for k in range(n_sites):
                best = min(best, max(barrier[i, k], barrier[k, j]))
            if i != j and np.isfinite(best):
                expected[i, j] = np.exp(-12 * best)
    return expected


@pytest.mark.parametrize("share", [0.0, 0.1, 0.3, 1.0])
@pytest.mark.parametrize("n_sites", [1, 2, 3, 14])
def test_affinity_is_of_the_best_way_of_at_most_two_edges(n_sites, share):
    rng = np.random.default_rng(n_sites)
    edges = random_edges(n_sites, share, rng)
    probability = rng.random(len(edges))
    probability[::5] = 0
    probability[1::5] = 1
    found = affinities(probability, edges, n_sites)
    assert found.shape == (n_sites, n_sites)
    np.testing.assert_allclose(found.toarray(), slow_affinities(probability, edges, n_sites), rtol=1e-12)


def slow_distances(weights, edges):
    """By SciPy's generalized solver, for sites that all have some affinity."""
    degree = np.diag(weights.sum(axis=1))
    values, vectors = linalg.eigh(degree - weights, degree)
    total = np.zeros(len(edges))
    n_pieces = sparse.csgraph.connected_components(weights, directed=False)[0]
    for value, vector in list(zip(values, vectors.T, strict=True))[n_pieces : n_pieces + 16]:
        scaled = vector / np.sqrt(np.mean(vector**2)) / np.sqrt(max(value, 1e-5))
        total += (scaled[edges[:, 0]] - scaled[edges[:, 1]]) ** 2
    return np.log(1e-3 + np.sqrt(total))


GRAPHS = {
    "2 sites": grids(1, 2),
    "3 sites in a row": grids(1, 3),
    "6 x 8, the largest dense": grids(6, 8),
    "7 x 7, the smallest sparse": grids(7, 7),
    "15 x 15": grids(15, 15),
    "two of 3 x 4": grids(3, 4, 2),
    "two of 8 x 8": grids(8, 8, 2),
    "twenty of 2 x 2": grids(2, 2, 20),
}


@pytest.mark.parametrize("spread", [0.5, 5.0])
@pytest.mark.parametrize("name", list(GRAPHS))
def test_distance_is_that_of_the_leading_generalized_eigenvectors(name, spread):
    edges, n_sites = GRAPHS[name]
    log_odds = np.random.default_rng(n_sites).normal(-1, spread, len(edges))
    weights = affinities(1 / (1 + np.exp(-log_odds)), edges, n_sites)
    found = spectral_distance(weights, edges)
    np.testing.assert_allclose(found, slow_distances(weights.toarray(), edges), atol=0.02)
    np.testing.assert_array_equal(spectral_distance(weights, edges), found)  # and again


def test_distance_is_exact_where_groups_are_all_but_apart():
    edges, n_sites = grids(30, 30)
    within = np.random.default_rng(0).normal(-3, 1, len(edges))
    block = np.arange(900) // 30 // 6 * 5 + np.arange(900) % 30 // 6
    log_odds = np.where(block[edges[:, 0]] == block[edges[:, 1]], within, 5 + 0.3 * within)
    weights = affinities(1 / (1 + np.exp(-log_odds)), edges, n_sites)
    expected = slow_distances(weights.toarray(), edges)
    np.testing.assert_allclose(spectral_distance(weights, edges), expected, atol=0.05)


@pytest.mark.parametrize("n_sites", [1, 2, 48, 49, 70])
def test_sites_without_edges_have_no_cues_and_do_not_disturb_others(n_sites):
    statistics = random_statistics(n_sites, np.random.default_rng(0))
    found = grouping_cues(np.empty(0), statistics, SiteGraph(n_sites, np.empty((0, 2), np.int32), []))
    assert len(found) == 12 and all(cue.shape == (0,) for cue in found.values())
    edges, n_joined = grids(2, 3)
    weights = affinities(np.linspace(0.1, 0.9, len(edges)), edges, n_joined + n_sites)
    assert np.isfinite(spectral_distance(weights, edges)).all()


def test_every_cue_is_its_definition_in_the_order_that_the_weights_expect():
    rng = np.random.default_rng(7)
    edges, n_sites = grids(4, 5)
    edges, n_sites = np.append(edges, [[19, 20]], axis=0), 21  # the last site has one edge
    statistics, length = random_statistics(n_sites, rng), rng.integers(1, 15, len(edges))
    log_odds = rng.normal(-1, 2, len(edges))
    graph = SiteGraph(n_sites, edges, length)
    weights = slow_affinities(1 / (1 + np.exp(-log_odds)), edges, n_sites)
    expected = {"apart": slow_distances(weights, edges), "merged": merge_heights(graph, log_odds)}

    around = np.empty((len(edges), 2))  # means along the other edges of the two sites
    for e, side in np.ndindex(around.shape):
        others = [f for f in range(len(edges)) if f != e and edges[e, side] in edges[f]] or [e]
        around[e, side] = np.average(log_odds[others], weights=length[others])
    expected |= {"calm": around.min(axis=1), "busy": around.max(axis=1)}

    kept = weights + np.eye(n_sites)
    step = kept / kept.sum(axis=1, keepdims=True)
    left, right = edges.T
    for time in (2, 4, 8):
        spread = np.linalg.matrix_power(step, time)
        for name, counts in (("words", statistics.words), ("textons", statistics.textons)):
            shares = spread @ counts
            shares /= shares.sum(axis=1, keepdims=True)
            p, q = shares[left], shares[right]
            expected[f"{name} after {time}"] = ((p - q) ** 2 / (p + q)).sum(axis=1) / 2
        if time == 4:  # means weigh sites by their sizes
            spread = spread * statistics.sizes
            spread /= spread.sum(axis=1, keepdims=True)
            colors, texture = spread @ statistics.colors, spread @ statistics.texture
            expected["colours after"] = np.sqrt(np.linalg.norm(colors[left] - colors[right], axis=1))
            expected["texture after"] = np.linalg.norm(texture[left] - texture[right], axis=1)
    found = grouping_cues(log_odds, statistics, graph)
    assert list(found) == list(expected)
    for name, cue in found.items():
        np.testing.assert_allclose(cue, expected[name], atol=1e-4 if name == "apart" else 1e-9, err_msg=name)
