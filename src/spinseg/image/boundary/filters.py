"""Gaussian derivative filters of maps, and gradient magnitudes maximised over orientations."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinseg.image.boundary import kernels

Maps = NDArray[np.float32]  # (n_maps, height, width)

N_ORIENTATIONS = 8  # over half a turn, for the maximum of an oriented gradient


class Gradient(NamedTuple):
    """Derivatives of maps along x (to the right) and y (downward), (n_maps, height, width) each.

    The derivative at angle t is cos(t) dx + sin(t) dy. One pixel of the maps covers `stride` x `stride` pixels of the
    image.
    """

    dx: Maps
    dy: Maps
    stride: int


def gaussian(scale: float) -> NDArray[np.float32]:
    """Return the weights of a Gaussian filter, truncated at three scales and normalised to sum 1."""
    weights = np.exp(-0.5 * np.square(_offsets(scale) / scale))
    return (weights / weights.sum()).astype(np.float32)


def gaussian_d1(scale: float) -> NDArray[np.float32]:
    """Return the first derivative of a Gaussian, normalised so that a step edge of height 1 has response 1.

    The positive and the negative lobe sum to 1 and -1: the response is the mean after a pixel less the mean before it.
    """
    offsets = _offsets(scale)
    weights = offsets * np.exp(-0.5 * np.square(offsets / scale))
    return (2 * weights / np.abs(weights).sum()).astype(np.float32)


def gaussian_d2(scale: float) -> NDArray[np.float32]:
    """Return the second derivative of a Gaussian, normalised to mean 0 and absolute sum 2."""
    offsets = _offsets(scale)
    weights = (np.square(offsets / scale) - 1) * np.exp(-0.5 * np.square(offsets / scale))
    weights -= weights.mean()
    return (2 * weights / np.abs(weights).sum()).astype(np.float32)


def filter_separable(maps: Maps, across: NDArray[np.float32], down: NDArray[np.float32]) -> Maps:
    """Correlate maps with `across` along rows and with `down` along columns; borders are mirrored.

    SciPy's correlate1d takes ten times as long: it works in double precision, one pixel at a time.
    """
    maps = np.ascontiguousarray(maps, np.float32)
    _, height, width = maps.shape
    columns = np.pad(np.arange(width), across.size // 2, mode="symmetric")
    rows = np.pad(np.arange(height), down.size // 2, mode="symmetric")
    padded, middle = np.empty(columns.size, np.float32), np.empty((height, width), np.float32)
    out = np.empty_like(maps)
    kernels.filter_maps(maps, across, down, columns, rows, padded, middle, out)
    return out


def gaussian_gradient(maps: Maps, scale: float, stride: int = 1) -> Gradient:
    """Return the gradient of maps at a scale in pixels of the maps."""
    smooth, d1 = gaussian(scale), gaussian_d1(scale)
    return Gradient(filter_separable(maps, d1, smooth), filter_separable(maps, smooth, d1), stride)


def max_oriented_gradient(gradient: Gradient) -> NDArray[np.float32]:
    """Return max over t of 1/2 sum over maps of |cos(t) dx + sin(t) dy|, (height, width).

    Where the maps are the bins of a histogram this is the largest total variation distance, 0 to 1, between the
    histograms on the two sides of a pixel.
    """
    angles = np.pi * np.arange(N_ORIENTATIONS) / N_ORIENTATIONS
    cosines, sines = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
    _, height, width = gradient.dx.shape
    out = np.empty((height, width), np.float32)
    kernels.max_oriented_gradient(gradient.dx, gradient.dy, cosines, sines, np.empty(width, np.float32), out)
    return out


def structure_tensor_norm(gradient: Gradient) -> NDArray[np.float32]:
    """Return the root of the larger eigenvalue of the structure tensor, (height, width).

    It is the maximum over directions of the Euclidean norm, over maps, of the directional derivative.
    """
    xx, yy = np.square(gradient.dx).sum(axis=0), np.square(gradient.dy).sum(axis=0)
    xy = (gradient.dx * gradient.dy).sum(axis=0)
    return np.sqrt((xx + yy) / 2 + np.sqrt(np.square((xx - yy) / 2) + np.square(xy)))


def halve(maps: Maps) -> Maps:
    """Return the means of blocks of 2 x 2 pixels; an odd last row or column is repeated."""
    _, height, width = maps.shape
    maps = np.pad(maps, ((0, 0), (0, height % 2), (0, width % 2)), mode="edge")
    return (maps[:, ::2, ::2] + maps[:, 1::2, ::2] + maps[:, ::2, 1::2] + maps[:, 1::2, 1::2]) * np.float32(0.25)


def double(values: NDArray, shape: tuple[int, ...]) -> NDArray:
    """Repeat the pixels of a halved map along both axes, cropped to the shape of the image."""
    return values.repeat(2, axis=0).repeat(2, axis=1)[: shape[0], : shape[1]]


def _offsets(scale: float) -> NDArray[np.float64]:
    """Return the integers from -3 to 3 scales."""
    radius = int(3 * scale + 0.5)
    return np.arange(-radius, radius + 1, dtype=np.float64)
