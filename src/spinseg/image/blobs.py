"""Bright blobs of an image, such as stained nuclei, each with a core that can mark it."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_edt, gaussian_filter, maximum_position, minimum_filter
from skimage.filters import threshold_otsu
from skimage.measure import label
from skimage.morphology import h_maxima
from skimage.segmentation import watershed

from spinseg.image.layout import Ints, Mask
from spinseg.image.noise import noise_deviation

# Chosen on 31 training images of nuclei in fluorescence of BBBC038, and on rendered nuclei.
NOISE_SHARE = 0.04  # of the contrast: images with more noise are smoothed, by at most MAX_SIGMA pixels
MAX_SIGMA = 4.0
BACKGROUND_PARTS = 4  # the level of the background is the lowest in squares of a fourth of the shorter side
MIN_CONTRAST = 4.0  # between blobs and background, in standard deviations of the noise that smoothing leaves
NECK = 0.9  # two blobs are one where the neck between them is wider than this share of the narrower one
CORE = 0.5  # a core is the part around the deepest pixel where a blob is at least half as deep
MIN_SHARE, MIN_PIXELS = 0.05, 9  # of a typical blob, and pixels: smaller ones are specks


class Blobs(NamedTuple):
    """The number of each pixel's blob, from 1 on and 0 for none, and where the cores of the blobs are."""

    numbers: Ints
    cores: Mask


def find_blobs(values: NDArray[np.float32], inside: Mask | None = None) -> Blobs:
    """Find the bright blobs of one channel of an image or a volume; pixels that are not inside have none.

    The channel is smoothed as its noise requires, its background is removed, and Otsu's threshold finds what is bright.
    Blobs that touch are divided at their necks.
    """
    bright = _bright(values, inside)
    depth = np.where(bright, gaussian_filter(distance_transform_edt(bright), 1.0), 0.0)
    height = np.log(np.maximum(depth, 0.3))  # necks are compared by ratios
    blobs = watershed(-height, label(h_maxima(height, -np.log(NECK))) * bright, mask=bright)
    areas = np.bincount(blobs.ravel())
    areas[0] = 0
    kept = areas >= max(MIN_PIXELS, MIN_SHARE * _typical(areas))
    kept[0] = False
    numbers = np.where(kept, np.cumsum(kept), 0)[blobs].astype(np.int32)
    middles = maximum_position(depth, numbers, np.arange(1, numbers.max() + 1))
    deepest = np.array([0.0, *(depth[middle] for middle in middles)])
    parts = label(np.where(depth >= CORE * deepest[numbers], numbers, 0), connectivity=1)
    return Blobs(numbers, np.isin(parts, [parts[middle] for middle in middles]))


def _bright(values: NDArray[np.float32], inside: Mask | None) -> Mask:
    """Return where a channel is bright, without holes smaller than a typical blob; nowhere if that may be noise."""
    seen = np.ones(values.shape, bool) if inside is None else inside
    noise = noise_deviation(values)
    low, high = np.percentile(gaussian_filter(values, 2.0)[seen], (1, 99))
    if high <= low:
        return np.zeros(values.shape, bool)
    sigma = float(np.clip(noise / (NOISE_SHARE * (high - low)), 1, MAX_SIGMA))
    smooth = gaussian_filter(values, sigma)
    size = max(3, min(values.shape[-2:]) // BACKGROUND_PARTS)
    smooth -= gaussian_filter(minimum_filter(smooth, size), size / 2)
    bright = seen & (smooth > threshold_otsu(smooth[seen]))
    left = noise / (2 * np.sqrt(np.pi) * sigma)
    if not bright.any() or smooth[bright].mean() - smooth[seen & ~bright].mean() < MIN_CONTRAST * left:
        return np.zeros(values.shape, bool)
    holes = label(~bright, connectivity=1)
    small = np.bincount(holes.ravel()) < _typical(np.bincount(label(bright).ravel())[1:])
    return bright | (seen & small[holes])


def _typical(areas: NDArray[np.int64]) -> int:
    """Return the area of the blob in which half of all their pixels lie in no larger one; 0 without blobs."""
    ordered = np.sort(areas)
    return int(ordered[np.searchsorted(ordered.cumsum(), ordered.sum() / 2)]) if areas.any() else 0
