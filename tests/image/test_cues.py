"""Local cues of a boundary, each against its definition."""

import math

import numpy as np
import pytest
from two_halves import N_WORDS, TwoHalves

from spinseg.graph.adjacency import region_adjacency
from spinseg.image.boundary.cues import SiteStatistics, chi_square, edge_cues, symmetric_matrix
from spinseg.image.boundary.maps import N_TEXTONS, boundary_maps
from spinseg.image.features import site_histograms
from spinseg.image.picture import as_picture

COLOR_GRADIENTS = ["g1", "g2", "g4"]
HISTOGRAM_GRADIENTS = ["L3", "C3", "L6", "L12", "C6", "C12", "T6", "T12"]


@pytest.fixture(scope="module", params=[False, True], ids=["whole", "masked"])
def example(request):
    return TwoHalves(request.param)


def assert_cue(example, name, of_edge, rel=1e-4):
    expected = [of_edge(int(i), int(j)) for i, j in example.edges]
    assert np.ptp(expected) > 0
    np.testing.assert_allclose(example.cues[name], expected, rtol=rel, atol=1e-6)


def test_the_cues_come_in_the_order_that_the_weights_expect(example):
    expected = [*COLOR_GRADIENTS, *HISTOGRAM_GRADIENTS, "relief", "ground"]
    expected += ["network1", "within1", "network3", "within3", "dLab", "dL", "dab", "welch", "spread", "texture"]
    expected += [f"{kind}{hop}" for kind in ("words", "textons") for hop in range(4)] + ["size", "reach"]
    assert list(example.cues) == expected
    assert all(cue.shape == (len(example.edges),) and np.isfinite(cue).all() for cue in example.cues.values())


@pytest.mark.parametrize("name", [*COLOR_GRADIENTS, *HISTOGRAM_GRADIENTS])
def test_gradients_are_from_center_to_center_at_the_larger_of_two_pixels(example, name):
    found = (example.maps.color | example.maps.histogram)[name]

    def across(i, j):
        (x0, y0), (x1, y1) = example.center(i), example.center(j)
        length = math.hypot(x1 - x0, y1 - y0)
        larger = max(np.count_nonzero(example.sites == i), np.count_nonzero(example.sites == j))
        around = length < 0.3 * math.sqrt(larger)

        def step(pixel, other):
            cosine, sine = ((x1 - x0) / length, (y1 - y0) / length) if length else (1.0, 0.0)
            if around:
                cosine, sine = other[1] - pixel[1], other[0] - pixel[0]
            y, x = pixel[0] // found.stride, pixel[1] // found.stride
            parts = cosine * found.dx[:, y, x].astype(float) + sine * found.dy[:, y, x].astype(float)
            return math.sqrt((parts**2).sum()) if name in COLOR_GRADIENTS else abs(parts).sum() / 2

        steps = [max(step(p, q), step(q, p)) for p, q in example.pairs(i, j)]
        mean = sum(steps) / len(steps)
        return math.sqrt(mean) if name in COLOR_GRADIENTS else mean

    assert_cue(example, name, across, rel=1e-3)


@pytest.mark.parametrize(
    ("along", "within", "map_of"),
    [
        ("relief", "ground", lambda maps: maps.relief),
        ("network1", "within1", lambda maps: maps.network[0]),
        ("network3", "within3", lambda maps: maps.network[1]),
    ],
)
def test_relief_and_the_networks_log_odds_are_along_the_boundary_and_within_the_sites(example, along, within, map_of):
    heights = map_of(example.maps)

    def mean_along(i, j):
        return np.mean([max(float(heights[p]), float(heights[q])) for p, q in example.pairs(i, j)])

    assert_cue(example, along, mean_along)
    assert_cue(example, within, lambda i, j: max(example.mean(heights, i), example.mean(heights, j)))


def test_differences_of_colour_are_roots_of_distances(example):
    def root(channels):
        return lambda i, j: math.sqrt(math.dist(example.color(i)[channels], example.color(j)[channels]))

    assert_cue(example, "dLab", root([0, 1, 2]))
    assert_cue(example, "dL", root([0]))
    assert_cue(example, "dab", root([1, 2]))


def test_welch_and_spread_compare_variances_of_at_least_four(example):
    def welch(i, j):
        gap, spread = example.color(i) - example.color(j), example.variance(i) + example.variance(j)
        return math.sqrt(sum(g * g / s for g, s in zip(gap, spread, strict=True)))

    def spread(i, j):
        pairs = zip(example.variance(i), example.variance(j), strict=True)
        return sum(abs(math.log(math.sqrt(one)) - math.log(math.sqrt(other))) for one, other in pairs)

    assert_cue(example, "welch", welch, rel=1e-3)
    assert_cue(example, "spread", spread, rel=1e-3)


def test_texture_is_the_distance_of_mean_responses(example):
    responses = example.maps.responses
    assert_cue(example, "texture", lambda i, j: math.dist(example.mean(responses, i), example.mean(responses, j)))


@pytest.mark.parametrize("hops", range(4))
@pytest.mark.parametrize("kind", ["words", "textons"])
def test_histograms_are_pooled_with_neighbors_edge_by_edge(example, kind, hops):
    n_kinds = N_WORDS if kind == "words" else N_TEXTONS
    kinds = example.words if kind == "words" else example.maps.textons
    own = [example.histogram(kinds, n_kinds, s) for s in range(len(example.pixels))]
    colors = [example.color(s) for s in range(len(example.pixels))]
    neighbors = {s: {int(a + b - s) for a, b in example.edges if s in (a, b)} for s in range(len(own))}

    def around(site, hop):
        total = own[site].copy()
        for other in neighbors[site] if hop else ():
            total += math.exp(-math.dist(colors[site], colors[other]) / 8) * around(other, hop - 1)
        return total

    shares = [total / total.sum() for total in (around(s, hops) for s in range(len(own)))]

    def chi(i, j):
        return 0.5 * sum((p - q) ** 2 / (p + q) for p, q in zip(shares[i], shares[j], strict=True) if p + q > 0)

    assert_cue(example, f"{kind}{hops}", chi)


def test_size_and_reach_are_in_terms_of_the_average_site(example):
    sizes = [len(pixels) for pixels in example.pixels]
    average = sum(sizes) / len(sizes)
    assert_cue(example, "size", lambda i, j: math.log(min(sizes[i], sizes[j]) / average))
    center, side = example.center, math.sqrt(average)
    assert_cue(example, "reach", lambda i, j: math.log(math.dist(center(i), center(j)) / side))


def test_chi_square_is_zero_for_equal_shares_and_one_for_disjoint_ones():
    counts = np.array([[2.0, 2, 0, 0], [7, 7, 0, 0], [0, 0, 3, 1], [5, 0, 0, 0], [0, 0, 0, 0]])
    edges = np.array([[0, 1], [0, 2], [1, 2], [0, 3], [3, 4], [4, 4]])
    expected = [0, 1, 1, 1 / 3, 0.5, 0]  # 1/2 (.5^2 / 1.5 + .5^2 / .5) is a third; an empty site has no shares
    np.testing.assert_allclose(chi_square(counts, edges), expected, atol=1e-12)


def test_the_matrix_of_edge_weights_is_symmetric():
    found = symmetric_matrix(np.array([[0, 1], [1, 3]], np.int32), np.array([0.5, 2.0]), 4)
    np.testing.assert_array_equal(found.toarray(), [[0, 0.5, 0, 0], [0.5, 0, 0, 2], [0, 0, 0, 0], [0, 2, 0, 0]])
    assert symmetric_matrix(np.empty((0, 2), np.int32), np.empty(0), 1).toarray().tolist() == [[0]]


def test_a_disc_in_a_ring_has_a_boundary():
    y, x = np.mgrid[:61, :61] - 30
    disc = np.hypot(x, y) < 12
    picture = as_picture(np.where(disc, 255, 0).astype(np.uint8))
    sites = (~disc).astype(np.int32)
    halves = np.broadcast_to((x > 0), sites.shape).astype(np.int32)
    split = as_picture((255 * halves).astype(np.uint8))
    found = {}
    for name, (photo, parts) in {"ring": (picture, sites), "halves": (split, halves)}.items():
        maps, adjacency = boundary_maps(photo), region_adjacency(parts)
        statistics = SiteStatistics.of(photo, parts, site_histograms(parts, parts, 2), maps)
        found[name] = edge_cues(statistics, parts, adjacency, maps)
    for cue in ("g1", "g2", "L3"):
        assert found["ring"][cue] > 0.6 * found["halves"][cue]
