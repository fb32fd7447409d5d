"""Readings of intensities: what a few bright pixels and uneven light hide in one is seen in another."""

import numpy as np
import pytest

from spinseg.image.boundary.readings import READINGS, compressed, linear, local


def disc(background, contrast, shape=(96, 128)):
    """A disc on a background with noise of deviation 1, and the disc."""
    rows, columns = np.indices(shape)
    within = np.hypot(rows - 48, columns - 40) < 12
    return background + contrast * within + np.random.default_rng(0).normal(size=shape), within


def visible(seen, within):
    """The difference between inside and a ring outside, in deviations of the ring."""
    rows, columns = np.nonzero(within)
    around = np.zeros_like(within)
    around[rows.min() - 6 : rows.max() + 7, columns.min() - 6 : columns.max() + 7] = True
    ring = seen[..., 0][around & ~within]
    return abs(np.median(seen[..., 0][within]) - np.median(ring)) / max(ring.std(), 1e-3)


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("n_channels", [1, 3, 5])
def test_any_image_becomes_three_channels_from_0_to_1(reading, n_channels):
    image = np.random.default_rng(1).gamma(1.0, 1000.0, (40, 50, n_channels))
    seen = reading(image)
    assert seen.shape == (40, 50, 3) and seen.dtype == np.float32 and seen.min() >= 0 and seen.max() <= 1
    assert np.ptp(seen) > 0.5
    flat = reading(np.full((40, 50, n_channels), 7.0))
    assert np.isfinite(flat).all() and np.ptp(flat) == 0


def test_bright_debris_hides_a_disc_from_the_linear_reading_alone():
    image, within = disc(100.0, 20.0)
    image[70:76, 90:96] = 40_000.0
    shown = [visible(reading(image[..., None]), within) for reading in (linear, compressed, local)]
    assert shown[0] < 1 and min(shown[1:]) > 3


def test_the_local_reading_evens_out_the_light():
    image, _ = disc(0.0, 0.0)
    lit = 200 * np.exp(np.linspace(0, 3, 128)) + 5 * image
    sides = [np.abs(np.diff([half.mean() for half in np.split(f(lit[..., None]), 2, axis=1)])) for f in (linear, local)]
    assert sides[0] > 0.3 and sides[1] < sides[0] / 2


@pytest.mark.parametrize("reading", READINGS)
def test_what_is_outside_changes_nothing_inside(reading):
    image, _ = disc(100.0, 20.0)
    inside = np.zeros(image.shape, bool)
    inside[:, :80] = True
    other = np.where(inside, image, 1e6)
    first, second = (reading(each[..., None], inside)[:, :60] for each in (image, other))
    np.testing.assert_allclose(first, second, atol=1e-5)
