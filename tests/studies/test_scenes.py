"""Rendered scenes: their ground truth is what was drawn, and the instrument does what it says."""

import numpy as np
import pytest
from scipy import ndimage

from studies.scenes import RENDERERS, Scene, fields, in_three_channels, light, observe, phases, render, speckle


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", RENDERERS)
def test_regions_are_connected_and_numbered_and_values_are_from_0_to_1(kind, seed):
    scene = render(kind, (90, 120), np.random.default_rng(seed))
    assert scene.image.shape[:2] == scene.labels.shape == (90, 120) and scene.image.ndim == 3
    assert scene.image.min() >= 0 and scene.image.max() <= 1
    np.testing.assert_array_equal(np.unique(scene.labels), np.arange(scene.kinds.size))
    assert all(ndimage.label(scene.labels == region)[1] == 1 for region in range(scene.kinds.size))


@pytest.mark.parametrize("kind", RENDERERS)
def test_the_same_seed_gives_the_same_scene_and_another_seed_another(kind):
    first, again, other = (render(kind, (64, 64), np.random.default_rng(seed)) for seed in (5, 5, 6))
    np.testing.assert_array_equal(first.image, again.image)
    np.testing.assert_array_equal(first.labels, again.labels)
    assert not np.array_equal(first.image, other.image)


@pytest.mark.parametrize("renderer", [fields, phases])
def test_regions_of_a_kind_never_touch(renderer):
    n_borders = 0
    for seed in range(5):
        scene = renderer((100, 100), np.random.default_rng(seed))
        for here, there in ((scene.labels[1:], scene.labels[:-1]), (scene.labels[:, 1:], scene.labels[:, :-1])):
            apart = here != there
            n_borders += np.count_nonzero(apart)
            assert (scene.kinds[here[apart]] != scene.kinds[there[apart]]).all()
    assert n_borders > 0


def test_speckle_multiplies_by_noise_of_mean_1_and_variance_1_over_looks():
    noise = speckle(np.ones((400, 400, 1)), np.random.default_rng(0), looks=4.0)
    assert noise.mean() == pytest.approx(1, abs=0.02) and noise.var() == pytest.approx(0.25, rel=0.05)


def test_light_falls_from_1_by_its_strength():
    field = light((50, 80), 0.5, np.random.default_rng(2))
    assert field.max() == pytest.approx(1) and field.min() == pytest.approx(np.exp(-0.5))
    assert np.abs(np.diff(field, axis=0)).max() < 0.05


def test_an_instrument_leaves_the_ground_truth_as_it_is():
    scene = phases((60, 60), np.random.default_rng(4))
    seen = observe(scene, np.random.default_rng(0))
    assert seen.labels is scene.labels and seen.kinds is scene.kinds and not np.array_equal(seen.image, scene.image)


@pytest.mark.parametrize("n_channels", [1, 2, 3, 6])
def test_any_number_of_channels_becomes_three_that_still_show_the_regions(n_channels):
    labels = np.repeat([0, 1], 32)[:, None] * np.ones((1, 64), int)
    spectra = np.stack([np.linspace(0.3, 0.6, n_channels), np.linspace(0.9, 0.5, n_channels)])
    image = spectra[labels] + np.random.default_rng(1).normal(0, 0.01, (64, 64, n_channels))
    seen = in_three_channels(Scene(image, labels, np.arange(2)).image)
    assert seen.shape == (64, 64, 3) and seen.min() >= 0 and seen.max() <= 1
    means = np.stack([seen[labels == region].mean(axis=0) for region in (0, 1)])
    assert np.abs(means[0] - means[1]).max() > 0.5
