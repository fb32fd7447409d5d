"""Contrast is visible, hidden or absent, by the means of blocks against their noise."""

import numpy as np
import pytest
from skimage import data

from spinseg.image.contrast import BLOCKS_PER_AXIS, Contrast, contrast_of, contrast_of_parts
from spinseg.image.picture import as_picture

SQUARE = np.zeros((60, 90))
SQUARE[10:50, 20:60] = 1


@pytest.mark.parametrize("scale, dtype", [(0.02, float), (1, np.uint8), (200, np.uint16)])
def test_numbers_that_use_little_of_their_range_hide_contrast(scale, dtype):
    image = (scale * SQUARE).astype(dtype)
    found = contrast_of(as_picture(image, intensity_range=(0, 4095) if scale == 200 else None))
    assert found.is_hidden and not found.is_visible
    assert found.used[0] == 0 and found.used[1] == pytest.approx(found.difference)


@pytest.mark.parametrize("shape", [(30, 40), (200, 300), (5, 40, 40)])
@pytest.mark.parametrize("sd", [0, 0.02, 0.2])
def test_noise_and_flat_pictures_show_none(shape, sd):
    """The means of blocks of noise lie ten standard errors apart less often than once in a million."""
    noise = np.random.default_rng(0).normal(0, sd, (5, *shape))
    for image in (0.5 + noise).clip(0, 1):
        found = contrast_of(as_picture(image, channel_axis=None))
        assert not found.is_visible and not found.is_hidden


@pytest.mark.parametrize("step, seen", [(0.3, True), (0.02, False)])
def test_contrast_is_seen_through_noise_if_it_is_large_enough(step, seen):
    """With an error of 0.15 / 8 in each mean the first step is 16 standard errors, and the second 1."""
    for noise in np.random.default_rng(0).normal(0, 0.15, (5, 60, 90)):
        image = 0.35 + step * (np.arange(90) > 45) + noise
        assert contrast_of(as_picture(image.clip(0, 1))).is_visible == seen


def test_photographs_and_plain_figures_show_contrast_inside_and_in_any_channel():
    many = np.stack([np.full(SQUARE.shape, 0.2)] * 4 + [SQUARE], axis=-1)
    for image in (data.camera(), data.astronaut()[::2, ::2], 0.4 + 0.15 * SQUARE, many):
        found = contrast_of(as_picture(image, channel_axis=-1 if image.ndim == 3 else None))
        assert found.is_visible and not found.is_hidden
    assert not contrast_of(as_picture(0.5 + 0.4 * SQUARE, mask=SQUARE == 0)).is_visible


def test_a_border_too_thin_for_a_block_does_not_count():
    image = np.full((64, 65), 0.2)
    image[:, 64] = 1
    assert not contrast_of(as_picture(image)).is_visible
    image[:, 56:] = 1
    assert contrast_of(as_picture(image)).is_visible


def test_blocks_are_counted_by_hand():
    values = np.repeat(np.repeat(np.arange(6).reshape(2, 3) / 10, 8, axis=0), 8, axis=1)
    found = contrast_of(as_picture(values))
    assert found.difference == pytest.approx(0.5, abs=1e-4) and found.standard_error == pytest.approx(0, abs=1e-6)
    parts = contrast_of_parts(np.array([[0.0], [1.0]]), np.array([[0.04], [0.04]]), [4, 4])
    assert parts == Contrast(1.0, pytest.approx(0.1))
    assert parts.is_visible and not parts._replace(standard_error=0.11).is_visible
    assert contrast_of(as_picture(np.zeros((8 * BLOCKS_PER_AXIS * 2, 9)))).difference == 0
