"""Any number of channels in three components: equal noise, nothing lost that tells regions apart, no NaN."""

import numpy as np
import pytest
from scipy.linalg import eigh
from scipy.ndimage import gaussian_filter

from spinseg.image.components import _noise_covariance, three_components
from studies.scenes import speckle


@pytest.fixture
def rng():
    return np.random.default_rng(8)


def regions(rng, shape=(96, 96), n_kinds=4):
    """An image of smooth blobs of equally frequent kinds."""
    field = gaussian_filter(rng.normal(size=shape), 8)
    return np.digitize(field, np.quantile(field, np.arange(1, n_kinds) / n_kinds))


def discriminability(channels, kinds):
    """The trace of (scatter within kinds)^-1 (scatter between kinds), over all directions in which pixels differ."""
    table, of_pixel = channels.reshape(-1, channels.shape[-1]).astype(np.float64), kinds.ravel()
    table = table[:, np.ptp(table, axis=0) > 0]
    means = np.stack([table[of_pixel == kind].mean(axis=0) for kind in range(kinds.max() + 1)])[of_pixel]
    between, within = means - table.mean(axis=0), table - means
    return eigh(between.T @ between, within.T @ within, eigvals_only=True).sum()


NOISE = {
    "Gaussian": lambda level, rng: level + rng.normal(0, 4.0, level.shape),
    "counts": lambda level, rng: rng.poisson(level),
    "speckle": lambda level, rng: level * rng.gamma(20, 1 / 20, level.shape),
    "a negative of counts": lambda level, rng: 400.0 - rng.poisson(level),
}


@pytest.mark.parametrize("noise", NOISE)
def test_noise_becomes_equal_at_every_level(rng, noise):
    kinds = regions(rng, (160, 160))
    levels = np.array([20.0, 60.0, 110.0, 200.0])
    seen = three_components(NOISE[noise](levels[kinds], rng)[..., None])[..., 0]
    spread = [np.subtract(*np.quantile(seen[kinds == kind], [0.8, 0.2])) for kind in range(4)]
    assert max(spread) < 1.25 * min(spread)


@pytest.mark.parametrize("looks", [30, 4])
def test_three_components_of_six_bands_tell_kinds_apart_as_well_as_all_bands(rng, looks):
    """Over 120 seeds at least .967 of it; principal components of square roots have .72 to 1.06."""
    kinds = regions(rng)
    bands = speckle(rng.uniform(0.15, 1, (4, 6))[kinds], rng, looks)
    assert discriminability(three_components(bands), kinds) > 0.9 * discriminability(np.log(bands), kinds)


def test_noise_that_channels_share_is_taken_out(rng):
    """Three sources of it have more variance than what tells the kinds apart."""
    kinds = regions(rng)
    bands = 4 * rng.normal(size=(*kinds.shape, 3)) @ rng.normal(size=(3, 6)) + rng.normal(size=(*kinds.shape, 6))
    bands[..., 2] += 4 * (kinds == 1)
    assert discriminability(three_components(bands), kinds) > 0.9 * discriminability(bands, kinds) > 0.1


def test_a_faint_channel_is_not_hidden_by_noise_or_by_a_clean_one(rng):
    kinds = regions(rng)
    faint, clean = 0.1 * (kinds == 2) + rng.normal(0, 0.01, kinds.shape), 1.0 * (kinds == 0)
    channels = np.stack([faint, clean, *rng.normal(0, 3, (3, *kinds.shape))], axis=-1)
    seen = three_components(channels)
    apart = np.abs(seen[kinds == 2].mean(axis=0) - seen[kinds == 1].mean(axis=0)).max()
    assert apart > 0.08 and apart > 5 * np.median(seen[kinds == 1].std(axis=0))


def test_constant_saturated_copied_and_sparse_channels_do_no_harm(rng):
    kinds = regions(rng)
    signal = rng.poisson(np.array([20, 60, 110, 200])[kinds])
    sparse = np.zeros_like(signal)
    sparse[40, 40] = 9
    channels = np.stack([signal, np.full_like(signal, 7), np.minimum(2 * signal, 200), signal, sparse], axis=-1)
    seen = three_components(channels.astype(np.uint16))
    assert np.isfinite(seen).all() and seen.min() == 0 and seen.max() == 1
    assert discriminability(seen, kinds) > 0.9 * discriminability(np.sqrt(signal)[..., None], kinds)


@pytest.mark.parametrize("shape", [(1, 1, 4), (1, 40, 4), (40, 1, 2), (5, 6, 1), (2, 3, 4, 5)])
def test_tiny_and_thin_images_have_components(rng, shape):
    for image in (rng.poisson(9, shape), np.zeros(shape, np.uint16), 1e12 + rng.poisson(9, shape)):
        seen = three_components(image)
        assert seen.shape == (*shape[:-1], 3) and np.isfinite(seen).all()


def test_two_channels_have_two_components_and_volumes_theirs(rng):
    kinds = regions(rng, (6, 60, 70))
    seen = three_components(rng.poisson(np.array([[20, 20], [60, 20], [20, 90], [90, 90]])[kinds]))
    assert np.ptp(seen[..., 2]) == 0 and discriminability(seen, kinds) > 5


def test_pixels_outside_have_no_influence(rng):
    bands, inside = rng.poisson(50, (40, 50, 4)).astype(np.float64), np.ones((40, 50), bool)
    inside[:, :10] = False
    other = bands.copy()
    other[:, :10] = rng.normal(0, 1e6, (40, 10, 4))
    assert np.array_equal(three_components(bands, inside)[inside], three_components(other, inside)[inside])


def test_the_noise_covariance_is_that_of_the_noise_beside_outlines(rng):
    """With 60,000 pairs each entry has a standard error of about .01 of the largest; outlines are a tenth of the pairs."""
    mixing = rng.normal(size=(4, 4))
    truth = mixing @ mixing.T + 0.5 * np.eye(4)
    pairs = rng.multivariate_normal(np.zeros(4), 2 * truth, 60_000)
    assert np.abs(_noise_covariance(pairs) - truth).max() < 0.06 * truth.max()
    pairs[:6_000] += 40 * rng.normal(size=4)
    assert np.abs(_noise_covariance(pairs) - truth).max() < 0.4 * truth.max()
