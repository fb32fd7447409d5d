"""How far parts of an image lie apart, and what a split of its largest regions would gain: for warnings."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.ndimage import gaussian_filter, maximum_filter, minimum_filter
from skimage.filters import threshold_otsu

from spinseg.image.intensity import MAX_CODE
from spinseg.image.layout import Floats, Ints, Mask
from spinseg.image.picture import Picture

MIN_BLOCK_PIXELS = 8  # of the side of a block, so that noise averages out in it
BLOCKS_PER_AXIS = 16  # along the longest axis of a large image
VISIBLE_DIFFERENCE = 0.1  # of full intensity: from mid-gray a step that nobody overlooks
HIDDEN_DIFFERENCE = 1 / 256  # one level of 8 bits
MIN_STANDARD_ERRORS = 10  # means of blocks of noise alone lie about 6 apart
USED_SHARE = 0.001  # of the pixels at either end that are not counted as used

# Of splits.
MAX_PIXELS = 300_000  # that are looked at, evenly spaced
N_LARGEST, MIN_SHARE = 4, 0.1  # regions that are looked at, and the least share of the image that one has
MIN_PIXELS = 200  # of a region, without its border
BORDER = 3  # pixels at the border of a region that do not count: they mix both sides
SCALE = 2.0  # pixels, of the Gaussian that smooths intensities
REACH = 6  # pixels, between those that are compared, on one side of an outline or on both
LEAST_DEVIATION = 0.03  # of the range of nearly all intensities: what the two parts differ by at least
OUTLINE_COST = 1.25  # nats for each pixel of outline between the parts


class Contrast(NamedTuple):
    """How far parts of an image lie apart, in the channel in which it is most for its noise."""

    difference: float  # between the largest and the smallest mean of a part, as a share of full intensity
    standard_error: float  # of the mean of a part
    used: tuple[float, float] = (0.0, 1.0)  # the intensities between which nearly all pixels lie

    @property
    def is_visible(self) -> bool:
        """Whether anybody sees that the parts differ: by a tenth of full intensity, and by ten standard errors."""
        return self.difference >= VISIBLE_DIFFERENCE and self._exceeds_noise

    @property
    def is_hidden(self) -> bool:
        """Whether the parts differ, by ten standard errors, but by too little of full intensity to be seen."""
        return HIDDEN_DIFFERENCE <= self.difference < VISIBLE_DIFFERENCE and self._exceeds_noise

    @property
    def _exceeds_noise(self) -> bool:
        return self.difference >= MIN_STANDARD_ERRORS * self.standard_error


def contrast_of_parts(means: Floats, variances: Floats, n_pixels: ArrayLike) -> Contrast:
    """Return the contrast of parts with these means and variances, (n_parts, n_channels), and numbers of pixels."""
    differences = np.ptp(means, axis=0)
    errors = np.sqrt(np.median(variances / np.asarray(n_pixels, float)[:, None], axis=0))
    most = int(np.argmax(differences - MIN_STANDARD_ERRORS * errors))
    return Contrast(float(differences[most]), float(errors[most]))


def contrast_of(picture: Picture) -> Contrast:
    """Return the contrast of blocks of an image, of at least 8 pixels along each axis; pixels outside do not count."""
    step = max(MIN_BLOCK_PIXELS, -(-max(picture.shape) // BLOCKS_PER_AXIS))
    inside = np.ones(picture.shape, bool) if picture.inside is None else picture.inside
    counts = _block_sums(inside.astype(np.float64), step)
    means, variances = [], []
    for channel in range(picture.n_channels):
        values = np.where(inside, picture.codes[..., channel] / MAX_CODE, 0.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = _block_sums(values, step) / counts
            means.append(mean)
            variances.append(np.maximum(_block_sums(values**2, step) / counts - mean**2, 0))
    full = counts >= 0.75 * counts.max()  # others are at the border or the mask, and their means less exact
    found = contrast_of_parts(np.stack(means, -1)[full], np.stack(variances, -1)[full], counts[full])
    codes = picture.codes[inside]
    shares = np.cumsum(np.bincount(codes.ravel(), minlength=MAX_CODE + 1)) / codes.size
    low, high = np.searchsorted(shares, [USED_SHARE, 1 - USED_SHARE], side="right")
    return found._replace(used=(float(low) / MAX_CODE, float(min(high, MAX_CODE)) / MAX_CODE))


def _block_sums(values: Floats, step: int) -> Floats:
    """Return the sums over blocks of `step` along each axis; the last blocks may be smaller."""
    for axis, length in enumerate(values.shape):
        values = np.add.reduceat(values, np.arange(0, length, step), axis=axis)
    return values


def split_gain(picture: Picture, regions: Ints) -> float:
    """Return what splits of the largest regions would gain, in nats per pixel of the image.

    Each region is divided by Otsu's threshold in its first principal component of intensities. Two Gaussians gain over
    one what their distance allows, for which counts only what intensities change more across the outline than on one
    side of it. Each pixel of outline costs OUTLINE_COST. `regions` are connected, from 1 on, the largest first.
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
