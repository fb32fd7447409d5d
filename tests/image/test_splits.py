"""What a split of a region would gain: much for parts with an outline, nothing for light, noise, texture and regions."""

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter
from scipy.special import ndtr

from spinseg.image.contrast import LEAST_DEVIATION, MAX_PIXELS, OUTLINE_COST, REACH, SCALE, split_gain
from spinseg.image.picture import as_picture

Y, X = np.indices((120, 160))
DISCS = np.any([np.hypot(Y - y, X - x) < 16 for y in (35, 85) for x in (40, 80, 120)], axis=0)
ONE = np.ones(DISCS.shape, np.int32)


def noise(sd=1.0, shape=DISCS.shape, scale=0.0, seed=0):
    return sd * gaussian_filter(np.random.default_rng(seed).normal(size=shape), scale)


def test_the_gain_of_two_halves_is_that_of_two_gaussians_less_the_outline():
    width, height = 160, 120
    found = split_gain(as_picture(np.where(X < 80, 0.2, 0.7)), ONE)
    profile = ndtr((np.arange(width) - 79.5) / SCALE)  # the step, smoothed, from 0 to 1 of the range
    inner = profile[:, None].repeat(height, axis=1)
    within = np.concatenate([inner[:80] - inner[:80].mean(), inner[80:] - inner[80:].mean()]).var()
    change = profile[REACH:] - profile[:-REACH]
    across = (np.arange(REACH, width) >= 80) & (np.arange(width - REACH) < 80)
    elsewhere = change[~across].sum() / (
        np.count_nonzero(~across) + width * (1 - REACH / height)
    )  # 0 along the outline
    step = change[across].mean() - elsewhere
    expected = 0.5 * np.log1p(0.25 * step**2 / (within + LEAST_DEVIATION**2)) - OUTLINE_COST / width
    assert found == pytest.approx(expected, rel=0.02) and found > 1


@pytest.mark.parametrize(
    "image",
    [np.full(DISCS.shape, 0.5), X / 160, np.hypot(Y - 60, X - 80) / 100, np.exp(-((X - 80) ** 2) / 2 / 40**2)],
    ids=["flat", "ramp", "cone", "vignette"],
)
def test_light_gains_nothing(image):
    assert split_gain(as_picture(image), ONE) < 0.01


@pytest.mark.parametrize("scale", [0, 0.7, 1.5, 4])
def test_noise_and_texture_gain_nothing(scale):
    for seed in range(5):
        image = 0.5 + noise(0.1, scale=scale, seed=seed)
        assert split_gain(as_picture(image.clip(0, 1)), ONE) < 0.01


@pytest.mark.parametrize("sd", [0, 0.05, 0.15])
def test_objects_in_uneven_light_gain_until_they_are_regions_of_their_own(sd):
    image = (0.3 + 0.4 * DISCS) * (0.7 + 0.3 * X / 160) + noise(sd)
    picture = as_picture(image.clip(0, 1))
    assert split_gain(picture, ONE) > 0.12
    assert split_gain(picture, np.where(DISCS, 2, 1).astype(np.int32)) < 0.03


def test_gain_and_colors_of_the_image_do_not_matter():
    image = 0.3 + 0.4 * DISCS + noise(0.05)
    usual = split_gain(as_picture(image), ONE)
    for same in (image / 8, 1 - image, np.dstack([image] * 3), image[..., None] * [1, 0.8, 0.5]):
        assert split_gain(as_picture(same), ONE) == pytest.approx(usual, rel=0.15)


def test_outside_does_not_count():
    image = 0.5 + noise(0.02)
    image[:, 80:] = 1
    assert split_gain(as_picture(image), ONE) > 0.5
    assert split_gain(as_picture(image), np.where(X < 80, 1, 0).astype(np.int32)) == 0


def test_volumes_and_large_images_are_looked_at():
    ball = np.linalg.norm(np.indices((30, 40, 40)) - np.array([15, 20, 20])[:, None, None, None], axis=0) < 11
    assert split_gain(as_picture(ball * 1.0, channel_axis=None), np.ones(ball.shape, np.int32)) > 0.1
    thin = ball[13:16]  # less deep than REACH
    assert split_gain(as_picture(thin * 1.0, channel_axis=None), np.ones(thin.shape, np.int32)) > 0.1
    large = np.kron(DISCS, np.ones((6, 6)))
    assert large.size > MAX_PIXELS and split_gain(as_picture(large), np.ones(large.shape, np.int32)) > 0.5
