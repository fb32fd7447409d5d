"""Local cues of a boundary, each against its definition, and the log-odds that weights make of them."""

import math
from functools import partial

import numpy as np
import pytest
from scipy import ndimage

from spinseg.graph.adjacency import region_adjacency
from spinseg.graph.merging import merge_heights
from spinseg.image.boundary.cues import SiteStatistics, edge_cues
from spinseg.image.boundary.log_odds import (
    KINDS,
    PLAIN_LOG_ODDS,
    BoundaryEvidence,
    final_log_odds,
    first_log_odds,
    fitted_weights,
    is_gray,
    plain_log_odds,
)
from spinseg.image.boundary.maps import N_TEXTONS, boundary_maps
from spinseg.image.features import site_histograms
from spinseg.image.picture import as_picture
from spinseg.image.superpixels import superpixels

N_WORDS = 12


class TwoHalves:
    """The image and its cues; the methods compute the parts of cues slowly, pixel by pixel."""

    def __init__(self, masked):
        rng = np.random.default_rng(0)
        image = rng.normal(0.5, 0.05, (41, 50, 3))
        image[:, 25:] += [0.3, -0.2, 0.1]
        image[:20, :25] += 0.1 * rng.normal(size=(20, 25, 1))
        mask = np.ones((41, 50), bool)
        if masked:
            mask[15:27, 20:31] = mask[:3] = False
        self.picture = as_picture(image.clip(0, 1))
        self.sites = superpixels(self.picture, n_sites=18, mask=mask)
        y, x = np.argwhere(self.sites == 0).mean(axis=0).astype(int)
        self.sites[y - 1 : y + 2, x : x + 3] = self.sites.max() + 1  # a site within another
        self.adjacency = region_adjacency(self.sites)
        self.edges = self.adjacency.edges
        self.words = rng.integers(0, N_WORDS // 2, self.sites.shape) + N_WORDS // 2 * (np.arange(50) >= 25)
        self.counts = site_histograms(self.words, self.sites, N_WORDS)
        self.args = self.picture, self.sites, self.adjacency, self.counts
        self.maps = boundary_maps(self.picture)
        self.statistics = SiteStatistics.of(self.picture, self.sites, self.counts, self.maps)
        self.cues = edge_cues(self.statistics, self.sites, self.adjacency, self.maps)
        self.mean_size = np.bincount(self.sites[self.sites >= 0]).mean()
        self.pixels = [list(zip(*np.nonzero(self.sites == s), strict=True)) for s in range(self.sites.max() + 1)]

    def pairs(self, i, j):
        """Pixels of site i and of site j that lie beside each other."""
        height, width = self.sites.shape
        for y, x in self.pixels[i]:
            for v, u in ((y + 1, x), (y - 1, x), (y, x + 1), (y, x - 1)):
                if 0 <= v < height and 0 <= u < width and self.sites[v, u] == j:
                    yield (y, x), (v, u)

    def mean(self, values, site):
        return sum(values[pixel].astype(float) for pixel in self.pixels[site]) / len(self.pixels[site])

    def color(self, site):
        return self.mean(self.picture.colors, site)

    def variance(self, site):
        middle = self.color(site)
        squares = [(self.picture.colors[pixel] - middle) ** 2 for pixel in self.pixels[site]]
        return sum(squares) / len(squares) + 4.0

    def center(self, site):
        y, x = np.mean(self.pixels[site], axis=0)
        return x, y

    def histogram(self, kinds, n_kinds, site):
        return np.bincount(kinds[self.sites == site], minlength=n_kinds).astype(float)


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
    """From pixel to pixel where one site lies around the other."""
    dx, dy, stride = (example.maps.color | example.maps.histogram)[name]

    def across(i, j):
        (x0, y0), (x1, y1) = example.center(i), example.center(j)
        length = math.hypot(x1 - x0, y1 - y0)
        larger = max(np.count_nonzero(example.sites == i), np.count_nonzero(example.sites == j))
        around = length < 0.3 * math.sqrt(larger)

        def step(pixel, other):
            cosine, sine = ((x1 - x0) / length, (y1 - y0) / length) if length else (1.0, 0.0)
            if around:
                cosine, sine = other[1] - pixel[1], other[0] - pixel[0]
            y, x = pixel[0] // stride, pixel[1] // stride
            parts = cosine * dx[:, y, x].astype(float) + sine * dy[:, y, x].astype(float)
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
    "reach": lambda e, i, j: math.log(max(1, math.dist(e.center(i), e.center(j))) / math.sqrt(e.mean_size)),
}


@pytest.mark.parametrize("name", CUES)
def test_a_cue_is_its_definition(example, name):
    assert_cue(example, name, partial(CUES[name], example), rel=1e-3)


@pytest.mark.parametrize("kind", ["words", "textons"])
def test_histograms_are_pooled_with_neighbors_edge_by_edge(example, kind):
    kinds, n_kinds = (example.words, N_WORDS) if kind == "words" else (example.maps.textons, N_TEXTONS)
    n_sites = len(example.pixels)
    own = np.stack([example.histogram(kinds, n_kinds, s) for s in range(n_sites)])
    near = np.zeros((n_sites, n_sites))
    for i, j in example.edges:
        near[i, j] = near[j, i] = math.exp(-math.dist(example.color(i), example.color(j)) / 8)
    pooled = own
    for hops in range(4):
        shares = pooled / pooled.sum(axis=1, keepdims=True)

        def chi(i, j, shares=shares):
            p, q = shares[[i, j]]
            return 0.5 * ((p - q) ** 2 / np.where(p + q > 0, p + q, 1)).sum()

        assert_cue(example, f"{kind}{hops}", chi)
        pooled = own + near @ pooled


N_LOCAL, N_CUES = 33, 45  # of the two sites of an edge, and with those of the whole picture
N_VOLUME_CUES = 16


@pytest.mark.parametrize("kind", KINDS)
def test_the_weights_of_the_package_are_whole(kind):
    found = fitted_weights()[kind]
    expected = random_weights(N_LOCAL, N_CUES, found["output"].size, np.random.default_rng(0))
    if kind == "volume":  # which has other cues, in one stage
        expected = random_weights(0, N_VOLUME_CUES, found["output"].size, np.random.default_rng(0))
        del expected["first"]
    assert {name: numbers.shape for name, numbers in found.items()} == {n: a.shape for n, a in expected.items()}
    assert all(np.isfinite(numbers).all() for name, numbers in found.items() if name != "deviation")
    assert found["deviation"].min() > 0
    assert (
        np.isinf(found["deviation"]).sum() == {"color": 0, "gray": 4, "measured": 1, "volume": 0}[kind]
    )  # of chroma, and the spectrum


def random_weights(n_local, n_cues, n_hidden, rng):
    shapes = {"mean": n_cues, "first": 1 + n_local, "constant": 1, "direct": n_cues, "hidden": (n_hidden, n_cues)}
    drawn = {name: rng.normal(size=shape) for name, shape in (shapes | {"bias": n_hidden, "output": n_hidden}).items()}
    return drawn | {"deviation": rng.uniform(0.5, 2, n_cues)}


def test_log_odds_are_linear_in_the_cues_plus_a_layer_of_tanh():
    rng = np.random.default_rng(1)
    w, table = random_weights(3, 5, 4, rng), rng.normal(size=(6, 5))
    cues = dict(zip("abcde", table.T, strict=True))
    x = (table - w["mean"]) / w["deviation"]
    expected = w["constant"] + x @ w["direct"] + np.tanh(w["bias"] + x @ w["hidden"].T) @ w["output"]
    np.testing.assert_allclose(final_log_odds(w, cues), expected)
    first = first_log_odds(w, {name: cues[name] for name in "abc"})
    np.testing.assert_allclose(first, w["first"][0] + x[:, :3] @ w["first"][1:])


def test_the_second_stage_sees_the_first_ones_log_odds(example):
    zeros = {name: 0 * numbers for name, numbers in fitted_weights()["color"].items()}
    first = np.append(-3.0, np.arange(N_LOCAL) == list(example.cues).index("dLab"))
    merged = 1.0 * (np.arange(N_CUES) == N_LOCAL + 1)
    weights = zeros | {"deviation": np.ones(N_CUES), "first": first, "direct": merged}
    found = BoundaryEvidence(weights={"color": weights}).log_odds(*example.args, example.maps)
    np.testing.assert_allclose(found, merge_heights(example.adjacency, example.cues["dLab"] - 3))


def test_an_image_of_nearly_constant_chroma_is_gray_and_judged_by_weights_of_its_own(example):
    rng = np.random.default_rng(0)
    light = rng.random((*example.sites.shape, 1)) * np.ones(3)
    noisy = (light + rng.normal(0, 0.002, light.shape)).clip(0, 1)
    zeros = {name: 0 * numbers for name, numbers in fitted_weights()["color"].items()} | {"deviation": np.ones(N_CUES)}
    evidence = BoundaryEvidence(weights={kind: zeros | {"constant": len(kind)} for kind in KINDS})
    for image in (example.picture, light, noisy, np.full(light.shape, [0.8, 0.2, 0.1])):
        picture, kind = as_picture(image), "color" if image is example.picture else "gray"
        found = evidence.log_odds(picture, *example.args[1:], boundary_maps(picture))
        assert is_gray(picture) == (kind == "gray") and (found == len(kind)).all()


def test_a_boundary_that_is_there_is_likelier(example):
    columns = np.array([example.center(s)[0] for s in range(len(example.pixels))])
    across = (columns[example.edges] < 24.5).sum(axis=1) == 1
    assert 2 <= across.sum() < len(across)
    for log_odds in (BoundaryEvidence().log_odds(*example.args, example.maps), plain_log_odds(*example.args)):
        assert np.isfinite(log_odds).all() and log_odds[across].min() > log_odds[~across].max()


def test_plain_log_odds_weigh_three_cues(example):
    """The root of the step of color and of the mean slope along the boundary, and the distance of pooled words."""
    lab = example.picture.colors
    slope = np.sqrt(sum(ndimage.gaussian_gradient_magnitude(lab[..., c], 2.0) ** 2 for c in range(3)))
    step = [math.sqrt(math.dist(example.color(i), example.color(j))) for i, j in example.edges]
    steep = [math.sqrt(np.mean([max(slope[p], slope[q]) for p, q in example.pairs(i, j)])) for i, j in example.edges]
    rows = zip(step, steep, example.cues["words1"], strict=True)
    expected = [PLAIN_LOG_ODDS[0] + np.dot(PLAIN_LOG_ODDS[1:], row) for row in rows]
    np.testing.assert_allclose(plain_log_odds(*example.args), expected, rtol=1e-3, atol=1e-3)
