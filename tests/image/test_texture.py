"""Texture: kinds are found where textures differ, and not made of what intensities show."""

from itertools import islice

import numpy as np
import pytest
from scipy.linalg import logm
from scipy.ndimage import gaussian_filter
from skimage.metrics import adapted_rand_error

import spinseg as ss
from spinseg.image.picture import as_picture
from spinseg.image.texture import log_tensor, narrow_covariance, texture_of
from spinseg.segmentation.files import report_of

SHAPE = (160, 200)
Y, X = np.indices(SHAPE)
TRUTH = np.hypot(Y - 80, X - 90) < 60


def noise(scale, rng):
    found = gaussian_filter(rng.normal(size=SHAPE), scale, mode="wrap")
    return found / found.std()


def inlaid(inner, outer, rng):
    """Return one noise in another, of equal mean and variance."""
    return np.clip(0.5 + 0.14 * np.where(TRUTH, noise(inner, rng), noise(outer, rng)), 0, 1)


def found_in(image, inside=None):
    return texture_of(as_picture(image, intensity_range=(0, 1)), inside)


@pytest.mark.parametrize("inner, outer", [(0.7, 3), ((1, 4), (4, 1))])
def test_textures_of_equal_mean_and_variance_are_two_kinds(inner, outer):
    """By texture in two of five images, where nine of ten of the second pair are found; by intensity in none."""
    n_found, how = 0, {"intensity_range": (0, 1), "rng": 0, "sweeps": 20}
    for seed in range(1, 6):
        image = inlaid(inner, outer, np.random.default_rng(seed))
        seg = ss.segment(image, "classes", **how)
        assert seg.texture and "compared by texture" in report_of(seg) and seg.summary()["texture"]
        n_found += seg.n_clusters in (2, 3) and adapted_rand_error(TRUTH + 1, seg.labels)[0] < 0.1
        if n_found == 2:
            break
    assert n_found == 2
    as_is = ss.segment(image, "classes", texture=False, **how)
    assert adapted_rand_error(TRUTH + 1, as_is.labels)[0] > 0.2
    assert "compared by texture" not in report_of(as_is) and not as_is.summary()["texture"]


@pytest.mark.parametrize("scale", [0, 1.5, 3, (1, 4)])
def test_one_texture_mostly_has_no_kinds(scale):
    """The coarsest has some in about one image in twelve."""
    images = (np.clip(0.5 + 0.14 * noise(scale, np.random.default_rng(seed)), 0, 1) for seed in range(6))
    without = (image for image in images if found_in(image) is None)
    assert len(list(islice(without, 3))) == 3


def test_where_texture_is_off_draws_are_those_without_it():
    image = np.clip(0.5 + 0.12 * noise(0, np.random.default_rng(2)), 0, 1)
    on, off = (ss.segment(image, "classes", intensity_range=(0, 1), rng=0, texture=t, sweeps=10) for t in (True, False))
    assert not on.texture
    np.testing.assert_array_equal(on.chains.labels, off.chains.labels)
    np.testing.assert_array_equal(on.labels, off.labels)


def test_regions_and_objects_of_one_intensity_are_no_texture():
    rng = np.random.default_rng(3)
    rough = np.where(TRUTH, noise(1, rng), 0.2 * noise(1, rng))
    assert found_in(np.clip(0.4 + 0.08 * rough, 0, 1)) is not None
    assert found_in(np.clip(0.4 + 0.3 * TRUTH + 0.08 * rough, 0, 1)) is None
    spots = gaussian_filter((np.random.default_rng(3).random(SHAPE) < 0.003) * TRUTH.astype(float), 2.5)
    assert found_in(0.1 + 0.8 * spots / spots.max() + 0.01 * np.abs(noise(0, rng))) is None


def test_what_lies_outside_the_mask_does_not_count():
    rng = np.random.default_rng(4)
    image, inside = inlaid(0.7, 3, rng), X > 20
    other = np.where(inside, image, inlaid(2, 2, rng))
    a, b = (ss.segment(x, "classes", mask=inside, intensity_range=(0, 1), rng=0, sweeps=10) for x in (image, other))
    assert a.texture
    np.testing.assert_array_equal(a.labels, b.labels)


def test_color_volumes_and_small_images_have_no_texture():
    image = inlaid(0.7, 3, np.random.default_rng(5))
    assert found_in(image) is not None
    color = np.stack([image, image, 1 - image], axis=-1)
    volume = np.repeat(image[None, :60, :60], 6, axis=0)
    for each, axis in ((color, -1), (volume, None)):
        assert not ss.segment(each, "classes", channel_axis=axis, intensity_range=(0, 1), rng=0, sweeps=2).texture
    for height, width in ((1, 1), (3, 200), (76, 76)):
        assert found_in(image[:height, :width]) is None
    assert found_in(np.full(SHAPE, 0.5)) is None
    assert found_in(image, (Y < 2) & (X < 2)) is None


@pytest.mark.parametrize("angle", [0, 0.4, 2.5])
def test_the_logarithm_of_the_structure_tensor_is_that_of_scipy(angle):
    wave = np.sin((np.sin(angle) * Y + np.cos(angle) * X) / 2) + 0.2 * noise(1, np.random.default_rng(6))
    y, x = (2 * gaussian_filter(wave, 2, order=order) for order in ((1, 0), (0, 1)))
    yy, xx, xy = (gaussian_filter(product, 2)[70, 90] for product in (y * y, x * x, x * y))
    expected = logm(np.array([[yy, xy], [xy, xx]]) + 1e-6 * np.eye(2))
    mean, along_y, diagonal = (entry[70, 90] for entry in log_tensor(wave, 2.0))
    np.testing.assert_allclose([[mean + along_y, diagonal], [diagonal, mean - along_y]], expected, atol=1e-6)


def test_the_narrow_covariance_is_that_of_most_rows():
    rng = np.random.default_rng(7)
    factor = np.array([[2.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.5, -1.0, 3.0]])
    values = rng.normal(size=(20_000, 3)) @ factor.T
    values[::20] += 50
    expected = factor @ factor.T
    assert np.abs(np.cov(values.T) - expected).max() > 100
    np.testing.assert_allclose(narrow_covariance(values, 1e-9 * np.eye(3)), expected, atol=0.15 * expected.max())
