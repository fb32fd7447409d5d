"""The noise of channels, and channels in units of it."""

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import correlate1d

from spinseg.image.intensity import MAX_CODE

REFERENCE_NOISE = 0.02  # of the intensity range: that of photographs, which the constants of "photo" suit
MIN_NOISY_SHARE = 0.2  # of the pixels: where fewer differ from their surroundings, those are details, not noise
OUTLIER_SHARE = 0.001  # of the pixels, at either end of a channel's range
GAUSSIAN_MAD = 0.6745  # the median absolute value of a standard normal


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
    """The codes of a picture, (*shape, n_channels), with the channels scaled so that their noise is equal.

    It becomes REFERENCE_NOISE of the intensity range, unless a channel would then exceed that range: such a channel,
    with hardly any noise, fills it. A channel of noise alone so counts for little, however wide its range, and a faint
    one for as much as its contrast exceeds its noise.
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
