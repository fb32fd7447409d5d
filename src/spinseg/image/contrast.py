"""The noise of an image's channels, and its contrast: how far the means of its parts lie apart, against their noise."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.ndimage import correlate1d

from spinseg.image.intensity import MAX_CODE
from spinseg.image.layout import Floats
from spinseg.image.picture import Picture

REFERENCE_NOISE = 0.02  # of the intensity range: that of photographs, which the constants of "photo" suit
MIN_NOISY_SHARE = 0.2  # of the pixels: where fewer differ from their surroundings, those are details, not noise
OUTLIER_SHARE = 0.001  # of the pixels, at either end of a channel's range
GAUSSIAN_MAD = 0.6745  # the median absolute value of a standard normal

MIN_BLOCK_PIXELS = 8  # of the side of a block, so that noise averages out in it
BLOCKS_PER_AXIS = 16  # along the longest axis of a large picture
VISIBLE_DIFFERENCE = 0.1  # of full intensity: from mid-gray a step that nobody overlooks
HIDDEN_DIFFERENCE = 1 / 256  # one level of 8 bits
MIN_STANDARD_ERRORS = 10  # means of blocks of noise alone lie about 6 apart
USED_SHARE = 0.001  # of the pixels at either end that are not counted as used


def noise_deviation(channel: NDArray[np.floating]) -> float:
    """The standard deviation of the noise of a channel, (*shape), independent from pixel to pixel.

    It is that of second differences along both of the last axes, which are 0 on slopes and along straight edges, from
    their median, on which few details have little influence. Where values are clipped there is no noise to be seen:
    pixels without a difference do not count, unless they are nearly all. Immerkaer, Fast noise variance estimation,
    Computer Vision and Image Understanding 1996. scikit-image's `estimate_sigma` has no such exception, and needs
    PyWavelets.
    """
    difference = np.abs(correlate1d(correlate1d(channel, [1.0, -2.0, 1.0], axis=-1), [1.0, -2.0, 1.0], axis=-2))
    noisy = difference[difference > 0]
    if noisy.size < MIN_NOISY_SHARE * difference.size:
        return 0.0
    return float(np.median(noisy)) / (6.0 * GAUSSIAN_MAD)


def in_units_of_noise(codes: NDArray[np.uint16], inside: NDArray[np.bool_] | None) -> NDArray[np.uint16]:
    """The codes of an image, (*shape, n_channels), with the channels scaled so that their noise is equal.

    It becomes REFERENCE_NOISE of the intensity range, unless a channel would then exceed that range: such a channel,
    with hardly any noise, fills it.
    """
    scaled = np.zeros_like(codes)
    for c in range(codes.shape[-1]):
        channel = codes[..., c].astype(np.float32)
        seen = channel if inside is None else channel[inside]
        low, high = np.quantile(seen, [OUTLIER_SHARE, 1 - OUTLIER_SHARE])
        if high <= low:
            low, high = seen.min(), seen.max()
        if high <= low:
            continue
        most = MAX_CODE / (high - low)
        noise = noise_deviation(channel)
        scale = most if noise == 0 else min(most, REFERENCE_NOISE * MAX_CODE / noise)
        scaled[..., c] = np.rint(np.clip((channel - low) * scale, 0, MAX_CODE))
    return scaled


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
    """Return the contrast of blocks of a picture, of at least 8 pixels along each axis; pixels outside do not count."""
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
