"""Grouping cues against dense matrices, naive loops and graphs whose answer is known."""

from itertools import combinations

import numpy as np
import pytest
from scipy import linalg, sparse

from spinseg.graph.merging import merge_heights
from spinseg.graph.site_graph import SiteGraph
from spinseg.image.boundary.cues import SiteStatistics
from spinseg.image.boundary.grouping import affinities, grouping_cues, spectral_distance

NO_EDGES = np.empty((0, 2), np.int32)


def random_edges(n_sites, share, rng):
    pairs = np.array(list(combinations(range(n_sites), 2)), np.int32).reshape(-1, 2)
    return pairs[rng.random(len(pairs)) < share]


def grid_edges(height, width):
    places = np.arange(height * width, dtype=np.int32).reshape(height, width)
    beside = np.stack([places[:, :-1].ravel(), places[:, 1:].ravel()], axis=1)
    below = np.stack([places[:-1].ravel(), places[1:].ravel()], axis=1)
    return np.unique(np.concatenate([beside, below]), axis=0)


def side_by_side(edges, n_sites, count):
    return np.concatenate([edges + n_sites * part for part in range(count)])


def random_statistics(n_sites, rng):
    words, textons = rng.integers(0, 9, (n_sites, 6)), rng.integers(0, 9, (n_sites, 4))
    return SiteStatistics(
        sizes=rng.integers(5, 40, n_sites),
        centers=rng.random((n_sites, 2)),
        colors=rng.normal(50, 20, (n_sites, 3)),
        variances=rng.random((n_sites, 3)),
        words=words.astype(float),
        textons=textons.astype(float),
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
    """By SciPy's generalised solver, for sites that all have some affinity."""
    degree = np.diag(weights.sum(axis=1))
    values, vectors = linalg.eigh(degree - weights, degree)
    total = np.zeros(len(edges))
    n_pieces = sparse.csgraph.connected_components(weights, directed=False)[0]
    for value, vector in list(zip(values, vectors.T, strict=True))[n_pieces : n_pieces + 16]:
        scaled = vector / np.sqrt(np.mean(vector**2)) / np.sqrt(max(value, 1e-5))
        total += (scaled[edges[:, 0]] - scaled[edges[:, 1]]) ** 2
    return np.sqrt(total)


GRAPHS = {
    "2 sites": (np.array([[0, 1]], np.int32), 2),
    "3 sites in a row": (np.array([[0, 1], [1, 2]], np.int32), 3),
    "4 x 4": (grid_edges(4, 4), 16),
    "6 x 8, the largest dense": (grid_edges(6, 8), 48),
    "7 x 7, the smallest sparse": (grid_edges(7, 7), 49),
    "15 x 15": (grid_edges(15, 15), 225),
    "two of 3 x 4": (side_by_side(grid_edges(3, 4), 12, 2), 24),
    "two of 8 x 8": (side_by_side(grid_edges(8, 8), 64, 2), 128),
    "twenty of 2 x 2": (side_by_side(grid_edges(2, 2), 4, 20), 80),
}


@pytest.mark.parametrize("spread", [0.5, 2.0, 5.0])
@pytest.mark.parametrize("name", list(GRAPHS))
def test_distance_is_that_of_the_leading_generalised_eigenvectors(name, spread):
    edges, n_sites = GRAPHS[name]
    log_odds = np.random.default_rng(n_sites).normal(-1, spread, len(edges))
    weights = affinities(1 / (1 + np.exp(-log_odds)), edges, n_sites)
    expected = np.log(1e-3 + slow_distances(weights.toarray(), edges))
    np.testing.assert_allclose(spectral_distance(weights, edges), expected, atol=0.02)


def test_distance_is_exact_where_groups_are_all_but_apart():
    edges = grid_edges(30, 30)
    within = np.random.default_rng(0).normal(-3, 1, len(edges))
    block = np.arange(900) // 30 // 6 * 5 + np.arange(900) % 30 // 6
    log_odds = np.where(block[edges[:, 0]] == block[edges[:, 1]], within, 5 + 0.3 * within)
    weights = affinities(1 / (1 + np.exp(-log_odds)), edges, 900)
    expected = np.log(1e-3 + slow_distances(weights.toarray(), edges))
    np.testing.assert_allclose(spectral_distance(weights, edges), expected, atol=0.05)


@pytest.mark.parametrize("n_sites", [1, 2, 48, 49, 70])
def test_sites_without_edges_have_no_distances(n_sites):
    assert spectral_distance(affinities(np.empty(0), NO_EDGES, n_sites), NO_EDGES).shape == (0,)


@pytest.mark.parametrize("n_sites", [10, 60])
def test_sites_that_touch_nothing_leave_the_distances_finite(n_sites):
    edges = grid_edges(2, 3)
    weights = affinities(np.linspace(0.1, 0.9, len(edges)), edges, n_sites)
    assert np.isfinite(spectral_distance(weights, edges)).all()


def test_distances_are_the_same_again():
    edges = side_by_side(grid_edges(9, 9), 81, 3)
    weights = affinities(np.random.default_rng(1).random(len(edges)), edges, 243)
    first = spectral_distance(weights, edges)
    for _ in range(3):
        np.testing.assert_array_equal(spectral_distance(weights, edges), first)


@pytest.fixture(scope="module")
def graph():
    rng = np.random.default_rng(7)
    edges = grid_edges(4, 5)
    statistics = random_statistics(20, rng)
    length = rng.integers(1, 15, len(edges))
    log_odds = rng.normal(-1, 2, len(edges))
    return log_odds, length, edges, statistics


def cues_of(graph):
    log_odds, length, edges, statistics = graph
    return grouping_cues(log_odds, statistics, SiteGraph(len(statistics.sizes), edges, length))


def test_the_cues_come_in_the_order_that_the_weights_expect(graph):
    expected = ["apart", "merged", "calm", "busy"]
    expected += ["words after 2", "textons after 2", "words after 4", "textons after 4", "colours after"]
    expected += ["texture after", "words after 8", "textons after 8"]
    assert list(cues_of(graph)) == expected


def test_apart_and_merged_come_from_probabilities_and_lengths(graph):
    log_odds, length, edges, _ = graph
    found = cues_of(graph)
    weights = slow_affinities(1 / (1 + np.exp(-log_odds)), edges, 20)
    np.testing.assert_allclose(found["apart"], np.log(1e-3 + slow_distances(weights, edges)), atol=1e-4)
    np.testing.assert_array_equal(found["merged"], merge_heights(SiteGraph(20, edges, length), log_odds))


def test_calm_and_busy_are_means_around_the_two_sites(graph):
    log_odds, length, edges, _ = graph
    found = cues_of(graph)
    for e, ends in enumerate(edges):
        means = []
        for site in ends:
            others = [f for f in range(len(edges)) if f != e and site in edges[f]]
            means.append(np.average(log_odds[others], weights=length[others]))
        assert found["calm"][e] == pytest.approx(min(means)) and found["busy"][e] == pytest.approx(max(means))


def test_a_site_at_the_end_of_a_row_has_its_one_edge_around_it():
    edges = np.array([[0, 1], [1, 2]], np.int32)
    statistics = random_statistics(3, np.random.default_rng(0))
    found = grouping_cues(np.array([-2.0, 1.0]), statistics, SiteGraph(3, edges, [4, 7]))
    assert found["calm"].tolist() == [-2.0, -2.0] and found["busy"].tolist() == [1.0, 1.0]


@pytest.mark.parametrize("time", [2, 4, 8])
def test_diffused_histograms_differ_as_dense_powers_say(graph, time):
    log_odds, _, edges, statistics = graph
    found = cues_of(graph)
    kept = slow_affinities(1 / (1 + np.exp(-log_odds)), edges, 20) + np.eye(20)
    spread = np.linalg.matrix_power(kept / kept.sum(axis=1, keepdims=True), time)
    for name, counts in (("words", statistics.words), ("textons", statistics.textons)):
        shares = spread @ counts
        shares /= shares.sum(axis=1, keepdims=True)
        for e, (a, b) in enumerate(edges):
            p, q = shares[a], shares[b]
            expected = sum((x - y) ** 2 / (x + y) for x, y in zip(p, q, strict=True) if x + y > 0) / 2
            assert found[f"{name} after {time}"][e] == pytest.approx(expected)


def test_diffused_means_weigh_sites_by_their_sizes(graph):
    log_odds, _, edges, statistics = graph
    found = cues_of(graph)
    kept = slow_affinities(1 / (1 + np.exp(-log_odds)), edges, 20) + np.eye(20)
    spread = np.linalg.matrix_power(kept / kept.sum(axis=1, keepdims=True), 4) * statistics.sizes
    spread /= spread.sum(axis=1, keepdims=True)
    colors, texture = spread @ statistics.colors, spread @ statistics.texture
    for e, (a, b) in enumerate(edges):
        assert found["colours after"][e] == pytest.approx(np.sum((colors[a] - colors[b]) ** 2) ** 0.25)
        assert found["texture after"][e] == pytest.approx(np.sum((texture[a] - texture[b]) ** 2) ** 0.5)


@pytest.mark.parametrize("size", [5, 30], ids=["dense", "sparse"])
def test_the_one_edge_between_two_cliques_parts_them(size):
    rng = np.random.default_rng(size)
    clique = random_edges(size, 1.0, rng)
    edges = np.concatenate([clique, [[size - 1, size]], clique + size]).astype(np.int32)
    bridge = len(clique)
    log_odds = rng.normal(-3, 0.2, len(edges))
    log_odds[bridge] = 3
    found = grouping_cues(
        log_odds, random_statistics(2 * size, rng), SiteGraph(2 * size, edges, np.full(len(edges), 3))
    )
    assert found["apart"].argmax() == found["merged"].argmax() == bridge
    assert found["merged"][bridge] == pytest.approx(3) and np.delete(found["merged"], bridge).max() < 0


@pytest.mark.parametrize("n_sites", [1, 3])
def test_sites_without_edges_have_empty_cues(n_sites):
    statistics = random_statistics(n_sites, np.random.default_rng(0))
    found = grouping_cues(np.empty(0), statistics, SiteGraph(n_sites, NO_EDGES, []))
    assert len(found) == 12 and all(cue.shape == (0,) for cue in found.values())
