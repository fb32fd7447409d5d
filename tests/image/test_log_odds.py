"""Log-odds of a boundary from the cues, by the fitted weights and by the plain model."""

import math

import numpy as np
import pytest
from scipy import ndimage
from two_halves import TwoHalves

from spinseg.graph.adjacency import region_adjacency
from spinseg.image.boundary.cues import NEIGHBOR_COLOR_SCALE
from spinseg.image.boundary.log_odds import (
    KINDS,
    NETWORK_LOG_ODDS,
    PLAIN_LOG_ODDS,
    BoundaryEvidence,
    BoundaryWeights,
    is_gray,
    plain_cues,
    plain_log_odds,
    weigh_plain_cues,
)
from spinseg.image.boundary.maps import boundary_maps
from spinseg.image.features import site_histograms, site_means
from spinseg.image.picture import as_picture
from spinseg.image.superpixels import superpixels

N_LOCAL, N_CUES = 33, 45  # of the two sites of an edge, and with those of the whole picture


@pytest.fixture(scope="module", params=[False, True], ids=["whole", "masked"])
def example(request):
    return TwoHalves(request.param)


@pytest.mark.parametrize("kind", KINDS)
def test_the_weights_of_the_package_are_whole(kind):
    weights = BoundaryWeights.fitted(kind)
    n_hidden = weights.output.size
    assert weights.mean.shape == weights.deviation.shape == weights.direct.shape == (N_CUES,)
    assert weights.first.shape == (1 + N_LOCAL,) and weights.constant.size == 1
    assert weights.hidden.shape == (n_hidden, N_CUES) and weights.bias.shape == (n_hidden,)
    assert all(np.isfinite(numbers).all() for name, numbers in vars(weights).items() if name != "deviation")
    assert weights.deviation.min() > 0
    assert np.isinf(weights.deviation).sum() == (4 if kind == "grey" else 0)  # those of chroma


def random_weights(n_local, n_cues, n_hidden, rng):
    return BoundaryWeights(
        mean=rng.normal(size=n_cues),
        deviation=rng.uniform(0.5, 2, n_cues),
        first=rng.normal(size=1 + n_local),
        constant=rng.normal(size=1),
        direct=rng.normal(size=n_cues),
        hidden=rng.normal(size=(n_hidden, n_cues)),
        bias=rng.normal(size=n_hidden),
        output=rng.normal(size=n_hidden),
    )


def test_log_odds_are_linear_in_the_cues_plus_a_layer_of_tanh():
    rng = np.random.default_rng(1)
    w = random_weights(3, 5, 4, rng)
    cues = {name: rng.normal(size=6) for name in "abcde"}
    found, first = w.log_odds(cues), w.first_log_odds({name: cues[name] for name in "abc"})
    assert found.shape == first.shape == (6,)
    for e in range(6):
        x = [(cues[name][e] - w.mean[k]) / w.deviation[k] for k, name in enumerate("abcde")]
        total = w.constant[0]
        for k in range(5):
            total += w.direct[k] * x[k]
        for h in range(4):
            total += w.output[h] * math.tanh(w.bias[h] + sum(w.hidden[h, k] * x[k] for k in range(5)))
        assert found[e] == pytest.approx(total)
        assert first[e] == pytest.approx(w.first[0] + sum(w.first[1 + k] * x[k] for k in range(3)))


def test_the_second_stage_sees_the_first_ones_log_odds(example, monkeypatch):
    names = list(example.cues)
    w = BoundaryWeights(
        mean=np.zeros(N_CUES),
        deviation=np.ones(N_CUES),
        first=np.append(-3.0, np.arange(N_LOCAL) == names.index("dLab")),
        constant=np.array([0.25]),
        direct=2.0 * (np.arange(N_CUES) == N_LOCAL + 1),
        hidden=np.zeros((1, N_CUES)),
        bias=np.zeros(1),
        output=np.ones(1),
    )
    monkeypatch.setattr(BoundaryWeights, "fitted", lambda kind: w)
    found = BoundaryEvidence().log_odds(example.picture, example.sites, example.adjacency, example.counts, example.maps)
    merged = (found - 0.25) / 2
    first = example.cues["dLab"] - 3
    assert merged.min() == pytest.approx(first.min())  # the weakest boundary is the first to go
    assert first.min() < merged.max() <= first.max() + 1e-9
    assert len(np.unique(merged.round(9))) <= len(example.pixels) - 1


def test_pictures_of_one_hue_are_judged_by_weights_of_their_own(example, monkeypatch):
    asked = []
    fitted = random_weights(N_LOCAL, N_CUES, 3, np.random.default_rng(0))
    monkeypatch.setattr(BoundaryWeights, "fitted", lambda kind: asked.append(kind) or fitted)
    gray = np.random.default_rng(1).random((*example.sites.shape, 1)) * np.ones(3)
    for image in (example.picture, gray):
        picture = as_picture(image)
        BoundaryEvidence().log_odds(picture, example.sites, example.adjacency, example.counts, boundary_maps(picture))
    assert asked == ["colour", "grey"]


def test_a_picture_is_gray_if_its_chroma_is_nearly_constant():
    light = np.random.default_rng(0).random((30, 40))
    assert is_gray(as_picture(light)) and is_gray(as_picture(np.full((5, 6, 3), [0.8, 0.2, 0.1])))
    assert is_gray(as_picture((light[..., None] + np.random.default_rng(1).normal(0, 0.002, (30, 40, 3))).clip(0, 1)))
    halves = np.full((30, 40, 3), 0.5)
    halves[:, 20:] = [0.7, 0.4, 0.5]
    assert not is_gray(as_picture(halves))


def is_across(example):
    columns = np.array([example.center(s)[0] for s in range(len(example.pixels))])
    return (columns[example.edges] < 24.5).sum(axis=1) == 1


def test_a_boundary_that_is_there_is_likelier(example):
    across = is_across(example)
    args = example.picture, example.sites, example.adjacency, example.counts
    log_odds = BoundaryEvidence().log_odds(*args, example.maps)
    assert 2 <= across.sum() < len(across) and np.isfinite(log_odds).all()
    assert log_odds[across].min() > log_odds[~across].max()
    plain = plain_log_odds(*args)
    assert plain[across].min() > plain[~across].max()


def plain_example():
    rng = np.random.default_rng(0)
    image = rng.normal(0.5, 0.05, (50, 60, 3)).clip(0, 1)
    image[:, 30:] += [0.3, -0.2, 0.1]
    picture = as_picture(image.clip(0, 1))
    sites = superpixels(picture, n_sites=40)
    words = rng.integers(0, 12, sites.shape) + 12 * (np.arange(60) >= 30)
    return picture, sites, region_adjacency(sites), site_histograms(words, sites, 24)


def test_plain_cues_are_what_they_say():
    picture, sites, adjacency, counts = plain_example()
    found = plain_cues(picture, sites, adjacency, counts)
    lab, edges = picture.colors, adjacency.edges
    means = site_means(lab, sites)
    slope = np.sqrt(sum(ndimage.gaussian_gradient_magnitude(lab[..., c], 2.0) ** 2 for c in range(3)))
    table = counts.toarray()
    for e in (0, 7, len(edges) - 1):
        i, j = edges[e]
        assert found[e, 0] == pytest.approx(np.sqrt(np.linalg.norm(means[i] - means[j])))
        pairs = [
            max(slope[a], slope[b])
            for a in zip(*np.nonzero(sites == i), strict=True)
            for b in ((a[0] + 1, a[1]), (a[0] - 1, a[1]), (a[0], a[1] + 1), (a[0], a[1] - 1))
            if 0 <= b[0] < 50 and 0 <= b[1] < 60 and sites[b] == j
        ]
        assert found[e, 1] == pytest.approx(np.sqrt(np.mean(pairs)), rel=1e-5)

        def around(s):
            total = table[s].astype(float)
            for a, b in edges:
                if s in (a, b):
                    other = a + b - s
                    total += np.exp(-np.linalg.norm(means[a] - means[b]) / NEIGHBOR_COLOR_SCALE) * table[other]
            return total / total.sum()

        p, q = around(i), around(j)
        inner = p + q > 0
        assert found[e, 2] == pytest.approx(0.5 * ((p - q)[inner] ** 2 / (p + q)[inner]).sum())


@pytest.mark.parametrize("numbers", [PLAIN_LOG_ODDS, NETWORK_LOG_ODDS], ids=["plain", "with the network"])
def test_plain_log_odds_weigh_three_cues_or_five_with_the_network(numbers):
    constant, *weights = numbers
    rows = np.random.default_rng(0).normal(size=(7, len(weights)))
    np.testing.assert_allclose(weigh_plain_cues(rows), [constant + np.dot(weights, row) for row in rows])
    np.testing.assert_allclose(plain_log_odds(*plain_example()), weigh_plain_cues(plain_cues(*plain_example())))
