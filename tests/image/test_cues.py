"""Local cues of a boundary, each against its definition."""

import math
from functools import partial

import numpy as np
import pytest
from two_halves import N_WORDS, TwoHalves

from spinseg.graph.adjacency import region_adjacency
from spinseg.image.boundary.cues import SiteStatistics, chi_square, edge_cues
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
    pooled = [f"{kind}{hop}" for kind in ("words", "textons") for hop in range(4)]
    *middle, size, reach = CUES
    assert list(example.cues) == [*COLOR_GRADIENTS, *HISTOGRAM_GRADIENTS, *middle, *pooled, size, reach]
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


def color_gap(channels):
    return lambda e, i, j: math.sqrt(math.dist(e.color(i)[channels], e.color(j)[channels]))


def welch(e, i, j):
    return math.sqrt(((e.color(i) - e.color(j)) ** 2 / (e.variance(i) + e.variance(j))).sum())


def along(map_of):
    return lambda e, i, j: np.mean([max(map_of(e.maps)[p], map_of(e.maps)[q]) for p, q in e.pairs(i, j)])


def within(map_of):
    return lambda e, i, j: max(e.mean(map_of(e.maps), i), e.mean(map_of(e.maps), j))


CUES = {  # of an example and two sites
    "relief": along(lambda maps: maps.relief),
    "ground": within(lambda maps: maps.relief),
    "network1": along(lambda maps: maps.network[0]),
    "within1": within(lambda maps: maps.network[0]),
    "network3": along(lambda maps: maps.network[1]),
    "within3": within(lambda maps: maps.network[1]),
    "dLab": color_gap([0, 1, 2]),
    "dL": color_gap([0]),
    "dab": color_gap([1, 2]),
    "welch": welch,
    "spread": lambda e, i, j: abs(np.log(e.variance(i) / e.variance(j))).sum() / 2,
    "texture": lambda e, i, j: math.dist(e.mean(e.maps.responses, i), e.mean(e.maps.responses, j)),
    "size": lambda e, i, j: math.log(min(len(e.pixels[i]), len(e.pixels[j])) / e.mean_size),
    "reach": lambda e, i, j: math.log(math.dist(e.center(i), e.center(j)) / math.sqrt(e.mean_size)),
}


@pytest.mark.parametrize("name", CUES)
def test_a_cue_is_its_definition(example, name):
    assert_cue(example, name, partial(CUES[name], example), rel=1e-3)


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


def test_chi_square_is_zero_for_equal_shares_and_one_for_disjoint_ones():
    counts = np.array([[2.0, 2, 0, 0], [7, 7, 0, 0], [0, 0, 3, 1], [5, 0, 0, 0], [0, 0, 0, 0]])
    edges = np.array([[0, 1], [0, 2], [1, 2], [0, 3], [3, 4], [4, 4]])
    expected = [0, 1, 1, 1 / 3, 0.5, 0]  # 1/2 (.5^2 / 1.5 + .5^2 / .5) is a third; an empty site has no shares
    np.testing.assert_allclose(chi_square(counts, edges), expected, atol=1e-12)


def test_a_disc_in_a_ring_has_a_boundary_like_that_of_two_halves():
    y, x = np.mgrid[:61, :61] - 30
    found = []
    for part in (np.hypot(x, y) < 12, x > 0):
        picture, sites = as_picture(np.where(part, 255, 0).astype(np.uint8)), (~part).astype(np.int32)
        maps = boundary_maps(picture)
        statistics = SiteStatistics.of(picture, sites, site_histograms(sites, sites, 2), maps)
        found.append(edge_cues(statistics, sites, region_adjacency(sites), maps))
    for cue in ("g1", "g2", "L3"):
        assert found[0][cue] > 0.6 * found[1][cue]
