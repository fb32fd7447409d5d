"""Log-odds of a boundary from the cues, by the fitted weights and by the plain model."""

import math

import numpy as np
import pytest
from scipy import ndimage
from two_halves import TwoHalves

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
from spinseg.image.picture import as_picture

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


def test_an_image_of_nearly_constant_chroma_is_gray_and_judged_by_weights_of_its_own(example, monkeypatch):
    rng, asked = np.random.default_rng(0), []
    light = rng.random((*example.sites.shape, 1)) * np.ones(3)
    noisy = (light + rng.normal(0, 0.002, light.shape)).clip(0, 1)
    fitted = random_weights(N_LOCAL, N_CUES, 3, rng)
    monkeypatch.setattr(BoundaryWeights, "fitted", lambda kind: asked.append(kind) or fitted)
    for image in (example.picture, light, noisy, np.full(light.shape, [0.8, 0.2, 0.1])):
        picture = as_picture(image)
        BoundaryEvidence().log_odds(picture, example.sites, example.adjacency, example.counts, boundary_maps(picture))
        assert is_gray(picture) == (asked[-1] == "grey")
    assert asked == ["colour", "grey", "grey", "grey"]


def test_a_boundary_that_is_there_is_likelier(example):
    columns = np.array([example.center(s)[0] for s in range(len(example.pixels))])
    across = (columns[example.edges] < 24.5).sum(axis=1) == 1
    args = example.picture, example.sites, example.adjacency, example.counts
    assert 2 <= across.sum() < len(across)
    for log_odds in (BoundaryEvidence().log_odds(*args, example.maps), plain_log_odds(*args)):
        assert np.isfinite(log_odds).all() and log_odds[across].min() > log_odds[~across].max()


def test_plain_cues_are_what_they_say(example):
    """The root of the step of color and of the mean slope along the boundary, and the distance of pooled words."""
    found = plain_cues(example.picture, example.sites, example.adjacency, example.counts)
    lab = example.picture.colors
    slope = np.sqrt(sum(ndimage.gaussian_gradient_magnitude(lab[..., c], 2.0) ** 2 for c in range(3)))
    for e, (i, j) in enumerate(example.edges):
        assert found[e, 0] == pytest.approx(math.sqrt(math.dist(example.color(i), example.color(j))), rel=1e-4)
        steps = [max(slope[p], slope[q]) for p, q in example.pairs(i, j)]
        assert found[e, 1] == pytest.approx(np.sqrt(np.mean(steps)), rel=1e-5)
    np.testing.assert_allclose(found[:, 2], example.cues["words1"], rtol=1e-4)


def test_plain_log_odds_weigh_three_cues_or_five_with_the_network(example):
    for constant, *weights in (PLAIN_LOG_ODDS, NETWORK_LOG_ODDS):
        rows = np.random.default_rng(0).normal(size=(7, len(weights)))
        np.testing.assert_allclose(weigh_plain_cues(rows), [constant + np.dot(weights, row) for row in rows])
    args = example.picture, example.sites, example.adjacency, example.counts
    np.testing.assert_allclose(plain_log_odds(*args), weigh_plain_cues(plain_cues(*args)))
