"""Readings of the intensities of an image: what the network is shown of numbers that are no photograph.

A linear reading hides everything behind a few bright pixels. So an image is also read with bright parts compressed, and
with light and contrast that are the same everywhere.
"""

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from spinseg.image.boundary.network import resized
from spinseg.image.components import ENDS, three_components

SOFTNESS = 3.0  # typical deviations from the median within which the compressed reading is nearly linear
LOCAL_SCALE = 24.0  # pixels over which the local reading takes means and deviations
STEP = 8  # pixels of the image along each axis that one pixel of the smooth maps stands for
LOCAL_RANGE = 3.0  # local deviations that become the ends of its range
LEAST_CONTRAST = 0.02  # of the range of values; where there is less, the local reading does not enhance it further

Floats = NDArray[np.floating]
Mask = NDArray[np.bool_]


def linear(image: Floats, inside: Mask | None = None) -> NDArray[np.float32]:
    """Return an image, (height, width, n_channels), in three channels from 0 to 1: most values inside fill the range.

    One channel is repeated, three stay. Others become the components that `segment` analyzes.
    """
    if image.shape[-1] not in (1, 3):
        image = three_components(image, inside)
    seen = image if inside is None else image[inside]
    low, high = np.percentile(seen, ENDS)
    values = np.clip((image - low) / max(high - low, 1e-9), 0, 1).astype(np.float32)
    return np.broadcast_to(values, (*image.shape[:-1], 3))


def compressed(image: Floats, inside: Mask | None = None) -> NDArray[np.float32]:
    """Return the inverse hyperbolic sine of deviations from the median, in three channels as `linear` has them."""
    seen = (image if inside is None else image[inside]).reshape(-1, image.shape[-1])
    middle = np.median(seen, axis=0)
    spread = np.median(np.abs(seen - middle), axis=0)
    spread = np.where(spread > 0, spread, np.abs(seen - middle).mean(axis=0))
    return linear(np.arcsinh((image - middle) / np.maximum(SOFTNESS * spread, 1e-9)), inside)


def local(image: Floats, inside: Mask | None = None) -> NDArray[np.float32]:
    """Return the compressed reading less its local mean, relative to its local deviation, from 0 to 1."""
    values = np.moveaxis(compressed(image, inside), -1, 0)
    weight = np.ones(values.shape[1:], np.float32) if inside is None else inside.astype(np.float32)
    center = values - _local_mean(values, weight)
    deviation = np.sqrt(_local_mean(np.square(center).mean(axis=0, keepdims=True), weight))
    found = 0.5 + center / (2 * LOCAL_RANGE * np.maximum(deviation, LEAST_CONTRAST))
    return np.moveaxis(np.clip(found, 0, 1), 0, -1)


def _local_mean(maps: NDArray[np.float32], weight: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the weighted means over LOCAL_SCALE of maps, (n, height, width), from maps of a STEP-th of the size."""
    small = tuple(-(-length // STEP) for length in weight.shape)
    sums = resized(np.concatenate([maps * weight, weight[None]]), (small[0], small[1]))
    sums = ndimage.gaussian_filter(sums, (0, LOCAL_SCALE / STEP, LOCAL_SCALE / STEP), mode="reflect")
    return resized(sums[:-1] / np.maximum(sums[-1], 1e-6), (weight.shape[0], weight.shape[1]))


READINGS = (linear, compressed, local)
