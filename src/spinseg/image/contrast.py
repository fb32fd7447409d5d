"""The contrast of an image: how far the means of its parts lie apart, against their noise."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from spinseg.image.intensity import MAX_CODE
from spinseg.image.layout import Floats
from spinseg.image.picture import Picture

MIN_BLOCK_PIXELS = 8  # of the side of a block, so that noise averages out in it
BLOCKS_PER_AXIS = 16  # along the longest axis of a large image
VISIBLE_DIFFERENCE = 0.1  # of full intensity: from mid-gray a step that nobody overlooks
HIDDEN_DIFFERENCE = 1 / 256  # one level of 8 bits
MIN_STANDARD_ERRORS = 10  # means of blocks of noise alone lie about 6 apart
USED_SHARE = 0.001  # of the pixels at either end that are not counted as used


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
