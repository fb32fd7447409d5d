"""Cues of the whole graph against dense matrices and naive loops, and couplings from log-odds and detail."""

from itertools import combinations

import numpy as np
import pytest
from scipy import linalg, sparse

import spinseg as ss
from spinseg.graph.adjacency import region_adjacency
from spinseg.graph.merging import merge_heights
from spinseg.graph.site_graph import SiteGraph
from spinseg.image.boundary import grouping
from spinseg.image.boundary.cues import SiteStatistics
from spinseg.image.boundary.grouping import affinities, grouping_cues, spectral_distance
from spinseg.image.boundary.log_odds import BoundaryEvidence, plain_log_odds, signed_couplings
from spinseg.image.boundary.maps import boundary_maps
from spinseg.image.features import Codebook, site_histograms
from spinseg.image.picture import as_picture
from spinseg.image.working import working_copy
from spinseg.segmentation.presets.photo import Photo, details_of
from spinseg.segmentation.problem import prepare


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
    best = np.minimum(barrier, np.maximum(barrier[:, :, None], barrier).min(axis=1))
    np.fill_diagonal(best, np.inf)
    return np.exp(-12 * best)


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


@pytest.mark.parametrize("n_restarts", [1, 3])
def test_a_search_for_eigenvectors_that_does_not_end_gives_those_it_found(n_restarts, monkeypatch):
    edges, n_sites = grids(30, 30)
    log_odds = np.random.default_rng(0).normal(-1, 5, len(edges))
    weights = affinities(1 / (1 + np.exp(-log_odds)), edges, n_sites)
    whole = spectral_distance(weights, edges)
    monkeypatch.setattr(grouping, "MAX_RESTARTS", n_restarts)
    found = spectral_distance(weights, edges)
    assert np.isfinite(found).all() and not np.array_equal(found, whole) and (found <= whole + 1e-6).all()


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
            expected["colors after"] = np.sqrt(np.linalg.norm(colors[left] - colors[right], axis=1))
            expected["texture after"] = np.linalg.norm(texture[left] - texture[right], axis=1)
    found = grouping_cues(log_odds, statistics, graph)
    assert list(found) == list(expected)
    for name, cue in found.items():
        np.testing.assert_allclose(cue, expected[name], atol=1e-4 if name == "apart" else 1e-9, err_msg=name)


def test_couplings_change_sign_at_the_threshold_and_saturate_far_from_it():
    beta = signed_couplings(np.array([-2.0, -1.0, 0.0]), np.array([10, 10, 5]), strength=0.5, threshold=-1.0)
    assert beta.tolist() == [5.0, 0.0, -2.5]
    log_odds = np.array([-30.0, -0.001, 0.0, 0.001, 30.0])
    beta = signed_couplings(log_odds, np.ones(5, np.int32), strength=0.5, threshold=0.0, saturation=3.0)
    np.testing.assert_allclose(beta, [1.5, 0.0005, 0.0, -0.0005, -1.5], rtol=1e-6)


@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (12, 15)], ids=str)
def test_a_picture_of_one_site_has_no_boundaries(shape):
    picture = as_picture(np.random.default_rng(0).random((*shape, 3)))
    sites = np.zeros(shape, np.int32)
    counts = site_histograms(np.zeros(shape, int), sites, 4)
    found = BoundaryEvidence().log_odds(picture, sites, region_adjacency(sites), counts, boundary_maps(picture))
    assert found.shape == (0,)
    assert ss.segment(picture, sites=sites, sweeps=2, chains=1, rng=0).n_clusters == 1


def test_islands_that_touch_nothing_are_segmented():
    image = np.random.default_rng(0).random((49, 49, 3))
    rows, columns = np.indices((49, 49))
    islands = np.where((rows % 7 < 5) & (columns % 7 < 5), rows // 7 * 7 + columns // 7, -1)
    found = ss.segment(image, sites=islands, sweeps=2, chains=1, rng=0)
    assert found.model.graph.n_edges == 0 and found.n_clusters == 49


PHOTO = Photo()
KINDS = {"photograph": ((30, 40, 3), -1), "volume": ((8, 12, 14), None), "five channels": ((24, 30, 5), -1)}


@pytest.mark.parametrize("kind", KINDS)
def test_sites_are_coupled_by_length_and_evidence_at_every_level_of_detail(kind):
    """By all cues in a plane, and by the plain ones in a volume; all edges with the same strength."""
    shape, channel_axis = KINDS[kind]
    image = np.random.default_rng(2).random(shape)
    problem = prepare(image, Photo(sites="grid", n_sites=12), channel_axis=channel_axis)
    picture, sites, model = problem.working_image.picture, problem.sites, problem.model
    maps = PHOTO.maps(working_copy(picture, None, None))
    assert (maps is None) == (kind == "volume")
    book = Codebook.fit(picture, 120, rng=0) if kind == "five channels" else Codebook.general(120)
    counts = site_histograms(book.words(picture), sites, len(book))
    log_odds = plain_log_odds(picture, sites, model.graph, counts)
    if maps is not None:
        log_odds = BoundaryEvidence().log_odds(picture, sites, model.graph, counts, maps)
    assert model.n_components == PHOTO.n_details and model.connected and model.power == PHOTO.power
    for beta, detail in zip(model.beta, details_of(PHOTO.n_details), strict=True):
        evidence = 2 * np.tanh((np.log((1 - detail) / detail) - log_odds) / 2)
        strength = beta / (model.graph.length * evidence)
        np.testing.assert_allclose(strength, strength[0])
        assert strength[0] >= PHOTO.strength
    np.testing.assert_allclose(model.beta[0] / PHOTO.couplings(log_odds, model.graph, 0.5 / 12), strength[0] / 0.8)


def test_sites_of_ones_own_are_coupled_by_all_cues_and_small_ones_by_plain_cues():
    picture = as_picture(np.random.default_rng(2).random((32, 40, 3)))
    for side, is_plain in ((8, False), (4, True)):
        sites = np.arange(32 * 40 // side**2, dtype=np.int32).reshape(32 // side, -1)
        sites = sites.repeat(side, axis=0).repeat(side, axis=1)
        graph, maps = region_adjacency(sites), PHOTO.maps(working_copy(picture, None, None))
        counts = site_histograms(Codebook.general(120).words(picture), sites, 120)
        plain = plain_log_odds(picture, sites, graph, counts)
        assert np.array_equal(PHOTO.log_odds(picture, sites, graph, maps), plain) is is_plain


def test_a_boundary_on_its_own_is_drawn_by_as_many_as_its_log_odds_say():
    log_odds, graph = np.linspace(-3, 3, 13), ss.SiteGraph(14, [[i, i + 1] for i in range(13)])
    drawn = np.mean([PHOTO.couplings(log_odds, graph, detail) < 0 for detail in details_of(1000)], axis=0)
    np.testing.assert_allclose(drawn, 1 / (1 + np.exp(-log_odds)), atol=0.001)
