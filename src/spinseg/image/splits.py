"""What a likelihood of intensities alone would gain if it could divide the largest regions of a segmentation."""

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter, maximum_filter, minimum_filter
from skimage.filters import threshold_otsu

from spinseg.image.intensity import MAX_CODE
from spinseg.image.layout import Ints, Mask
from spinseg.image.picture import Picture

MAX_PIXELS = 300_000  # that are looked at, evenly spaced
N_LARGEST, MIN_SHARE = 4, 0.1  # regions that are looked at, and the least share of the image that one has
MIN_PIXELS = 200  # of a region, without its border
BORDER = 3  # pixels at the border of a region that do not count: they mix both sides
SCALE = 2.0  # pixels, of the Gaussian that smooths intensities
REACH = 6  # pixels, between those that are compared, on one side of an outline or on both
LEAST_DEVIATION = 0.03  # of the range of nearly all intensities: what the two parts differ by at least
OUTLINE_COST = 1.25  # nats for each pixel of outline between the parts


def split_gain(picture: Picture, regions: Ints) -> float:
    """Return what splits of the largest regions would gain, in nats per pixel of the image.

    Each region is divided by Otsu's threshold in its first principal component of intensities. Two Gaussians gain over
    one what their distance allows. For it counts only what intensities change more across the outline than on one side
    of it: in light, noise and texture that is little. Each pixel of outline costs OUTLINE_COST. `regions` are those of
    the pixels, connected, from 1 on, the largest first, and 0 outside.
    """
    step = int(np.ceil((regions.size / MAX_PIXELS) ** (1 / regions.ndim)))
    every = (slice(None, None, step),) * regions.ndim
    regions, codes = regions[every], picture.codes[every]
    is_gray = bool((codes == codes[..., :1]).all())
    codes = codes[..., : 1 if is_gray else None].astype(np.float32)
    low, high = np.percentile(codes[regions > 0], [1, 99])
    unit = max(float(high - low), MAX_CODE / 255)
    smooth = np.stack([gaussian_filter(channel, SCALE) / unit for channel in np.moveaxis(codes, -1, 0)], axis=-1)
    width = 2 * BORDER + 1
    is_inner = maximum_filter(regions, width) == minimum_filter(regions, width)
    sizes = np.bincount(regions[regions > 0], minlength=N_LARGEST + 1)
    gain, n_pixels = 0.0, int(sizes.sum())
    for region in range(1, N_LARGEST + 1):
        inner = (regions == region) & is_inner
        if sizes[region] >= MIN_SHARE * n_pixels and np.count_nonzero(inner) >= MIN_PIXELS:
            gain += sizes[region] / n_pixels * max(0.0, _gain_per_pixel(smooth, inner))
    return float(gain)


def _gain_per_pixel(values: NDArray[np.floating], inner: Mask) -> float:
    """Return what the best split of these pixels would gain, in nats for each; `values` has channels last."""
    x = values[inner] - values[inner].mean(axis=0)
    x = x @ np.linalg.eigh(x.T @ x)[1][:, -1] / np.sqrt(x.shape[1])
    if np.ptp(x) == 0:
        return 0.0
    is_upper = x > threshold_otsu(x)
    within = sum(float(np.square(part - part.mean()).sum()) for part in (x[is_upper], x[~is_upper])) / x.size
    level, side = np.zeros((2, *inner.shape), np.float32)
    level[inner], side[inner] = x, np.where(is_upper, 1, -1)
    outline, changes = 0, {True: np.zeros(0), False: np.zeros(0)}
    for axis in range(inner.ndim):
        outline += int(np.count_nonzero(_pairs(side, axis, 1, np.multiply) < 0))
        product, change = _pairs(side, axis, REACH, np.multiply), np.abs(_pairs(level, axis, REACH, np.subtract))
        for across in changes:
            changes[across] = np.append(changes[across], change[product < 0 if across else product > 0])
    if not changes[True].size or not changes[False].size:
        return 0.0
    step = max(0.0, float(changes[True].mean() - changes[False].mean()))
    between = is_upper.mean() * (1 - is_upper.mean()) * step**2
    return 0.5 * float(np.log1p(between / (within + LEAST_DEVIATION**2))) - OUTLINE_COST * outline / x.size


def _pairs(values: NDArray[np.floating], axis: int, distance: int, combined: np.ufunc) -> NDArray[np.floating]:
    """Return values combined with those at a distance along an axis."""
    values = np.moveaxis(values, axis, 0)
    return combined(values[distance:], values[:-distance])
