"""Uneven light: found where there is some, and not made of what an image shows."""

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

import spinseg as ss
from spinseg.image.light import FIELD_DEVIATION, LEAST_DEVIATION, Light, fitted, light_of
from spinseg.image.picture import as_picture
from spinseg.segmentation.files import report_of

SHAPE = (128, 160)
Y, X = np.meshgrid(*(np.linspace(-1, 1, length) for length in SHAPE), indexing="ij")
BUMP = 0.3 * X - 0.25 * Y**2 + 0.1 * X * Y


def phases(rng, noise=0.03):
    field = gaussian_filter(rng.normal(size=SHAPE), 8, mode="wrap")
    phase = np.digitize(field, np.quantile(field, [0.4, 0.75]))
    return phase, 0.25 + 0.2 * phase + rng.normal(0, noise, SHAPE)


def agreement(seg, truth):
    """Return the share of pairs of pixels, taken at random, that are together in both or apart in both."""
    i, j = np.random.default_rng(0).integers(0, truth.size, (2, 20_000))
    found, truth = seg.labels.ravel(), truth.ravel()
    return np.mean((found[i] == found[j]) == (truth[i] == truth[j]))


@pytest.mark.parametrize("seed", [1, 2])
def test_light_that_multiplies_is_found(seed):
    _, image = phases(np.random.default_rng(seed))
    light = light_of(as_picture(image * np.exp(BUMP), intensity_range=(0, 1.3)), None)
    assert light is not None and not light.is_added
    assert np.std(np.log(light.field) - BUMP) < 0.1 * np.std(BUMP)


def test_light_that_is_added_is_found():
    _, image = phases(np.random.default_rng(3))
    light = light_of(as_picture(image + BUMP, intensity_range=(-0.5, 1.5)), None)
    assert light is not None and light.is_added
    assert np.std(2 * light.field - BUMP) < 0.1 * np.std(BUMP)


@pytest.mark.parametrize("seed", [4, 5, 6])
def test_even_light_is_left_alone(seed):
    assert light_of(as_picture(np.clip(phases(np.random.default_rng(seed))[1], 0, 1)), None) is None


@pytest.mark.parametrize("cut", [0.3, 0.5])
def test_a_step_is_no_light(cut):
    truth = (np.linspace(0, 1, SHAPE[1]) > cut)[None].repeat(SHAPE[0], 0)
    image = 0.3 + 0.3 * truth + np.random.default_rng(7).normal(0, 0.03, SHAPE)
    seg = ss.segment(image, "classes", intensity_range=(0, 1), rng=0, sweeps=20)
    assert seg.light is None
    assert seg.n_clusters == 2
    assert agreement(seg, truth) > 0.98


def test_classes_are_found_in_uneven_light_and_the_report_shows_it():
    truth, image = phases(np.random.default_rng(8))
    image = image * np.exp(BUMP)
    inside = np.hypot(X, Y) < 1.1
    lit, as_is = (
        ss.segment(image, "classes", mask=inside, intensity_range=(0, 1.3), even_light=even, rng=0, sweeps=20)
        for even in (True, False)
    )
    assert lit.n_clusters == 3
    assert agreement(lit, truth * inside) > 0.9 > agreement(as_is, truth * inside)
    assert np.isnan(lit.light.field).sum() == np.count_nonzero(~inside)
    assert as_is.light is None
    assert "Uneven light." in report_of(lit)
    assert "Uneven light." not in report_of(as_is)


def test_volumes_and_small_images_are_read():
    rng = np.random.default_rng(9)
    z = np.linspace(-0.3, 0.3, 24)[:, None, None]
    volume = (0.3 + 0.3 * (np.arange(48) // 6 % 2) + rng.normal(0, 0.02, (24, 24, 48))) * np.exp(z)
    light = light_of(as_picture(volume, channel_axis=None, intensity_range=(0, 1.3)), None)
    assert light is not None and not light.is_added
    assert np.corrcoef(np.log(light.field).ravel(), np.broadcast_to(z, volume.shape).ravel())[0, 1] > 0.95
    assert light_of(as_picture(np.zeros((6, 7))), None) is None


@pytest.mark.parametrize("is_added", [False, True])
def test_light_removed_leaves_the_levels(is_added):
    """What remains is the image under even light, on a scale that keeps the brightest pixels, and 0 stays 0."""
    level = np.where(np.indices(SHAPE).sum(axis=0) // 8 % 2, 0.2, 0.4)
    field = (0.1 * BUMP if is_added else np.exp(BUMP)).astype(np.float32)
    lit = as_picture(level + field if is_added else level * field, intensity_range=(0, 1))
    flat = Light(field, is_added).removed_from(lit).values[..., 0]
    low, high = (flat[level == x] for x in (0.2, 0.4))
    assert np.std(low) < 1e-3 and np.std(high) < 1e-3
    assert np.quantile(flat, 0.999) == pytest.approx(np.quantile(lit.values, 0.999), abs=1e-3)
    assert np.mean(low) / np.mean(high) == pytest.approx(0.5, abs=1e-3)


@pytest.mark.parametrize("n_steps", [6, 8])
def test_stairs_of_more_steps_than_classes_are_no_light(n_steps):
    stairs = np.arange(SHAPE[1]) * n_steps // SHAPE[1] / (n_steps - 1)
    image = 0.25 + 0.5 * stairs + np.random.default_rng(12).normal(0, 0.02, SHAPE)
    assert light_of(as_picture(image, intensity_range=(0, 1)), None) is None


def test_pixels_outside_the_mask_say_nothing():
    _, image = phases(np.random.default_rng(1))
    inside = X > -0.4
    black, white = (
        light_of(as_picture(np.where(inside, image * np.exp(BUMP), outside), intensity_range=(0, 1.3)), inside)
        for outside in (0.0, 1.2)
    )
    assert black is not None and white is not None
    np.testing.assert_allclose(black.field, white.field, rtol=1e-4)
    assert abs(np.mean(np.log(black.field[inside]))) < 0.005


def test_evidence_of_a_field_pays_for_its_terms():
    """Of points without a field, one more term costs about half the logarithm of its precision over the prior's."""
    rng = np.random.default_rng(11)
    levels, basis = rng.normal(0, 0.1, 1000), rng.uniform(-1, 1, (1000, 2))
    losses = [fitted(levels, basis[:, :0], 1).evidence - fitted(levels, basis[:, :n], 1).evidence for n in (1, 2)]
    each = 0.5 * np.log(1 + 1000 / 3 / (0.1**2 + LEAST_DEVIATION**2) * FIELD_DEVIATION**2)
    assert losses == pytest.approx([each, 2 * each], abs=3)  # a term gains half a chi-square by chance
