"""How maps of a picture step at every pixel: the difference between its two sides, in any direction, at any scale."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinseg.image.boundary import kernels

Maps = NDArray[np.float32]  # (n_maps, height, width)

N_DIRECTIONS = 8  # that the strongest step is looked for in, over half a turn


class Steps(NamedTuple):
    """Steps of maps to the right and downward, (n_maps, height, width) each; cos(t) right + sin(t) down at angle t.

    One pixel of the maps stands for `size` x `size` pixels of the picture.
    """

    right: Maps
    down: Maps
    size: int


def gaussian(scale: float) -> NDArray[np.float32]:
    """Weights that sum to 1, cut at three scales."""
    weights = np.exp(-0.5 * np.square(_places(scale) / scale))
    return (weights / weights.sum()).astype(np.float32)


def slope(scale: float) -> NDArray[np.float32]:
    """Derivative of a Gaussian, its two lobes of weight 1 each: the mean after a pixel less the mean before it."""
    places = _places(scale)
    weights = places * np.exp(-0.5 * np.square(places / scale))
    return (2 * weights / np.abs(weights).sum()).astype(np.float32)


def curvature(scale: float) -> NDArray[np.float32]:
    """Second derivative of a Gaussian, of mean 0 and absolute sum 2."""
    places = _places(scale)
    weights = (np.square(places / scale) - 1) * np.exp(-0.5 * np.square(places / scale))
    weights -= weights.mean()
    return (2 * weights / np.abs(weights).sum()).astype(np.float32)


def filtered(maps: Maps, across: NDArray[np.float32], down: NDArray[np.float32]) -> Maps:
    """Maps correlated with weights along rows and weights along columns; past its border a map is mirrored.

    SciPy's correlate1d takes ten times as long: it works in double precision, one pixel at a time.
    """
    maps = np.ascontiguousarray(maps, np.float32)
    _, height, width = maps.shape
    columns, rows = _mirrored(width, across.size // 2), _mirrored(height, down.size // 2)
    padded, middle = np.empty(columns.size, np.float32), np.empty((height, width), np.float32)
    out = np.empty_like(maps)
    kernels.filter_maps(maps, across, down, columns, rows, padded, middle, out)
    return out


def steps(maps: Maps, scale: float, size: int = 1) -> Steps:
    """Steps at a scale in pixels of the maps."""
    smooth, step = gaussian(scale), slope(scale)
    return Steps(filtered(maps, step, smooth), filtered(maps, smooth, step), size)


def strongest_change(found: Steps) -> NDArray[np.float32]:
    """The largest step of a histogram over directions, 0 to 1: half the sum over its bins of their absolute steps."""
    angles = np.pi * np.arange(N_DIRECTIONS) / N_DIRECTIONS
    cosines, sines = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
    _, height, width = found.right.shape
    out = np.empty((height, width), np.float32)
    kernels.strongest_change(found.right, found.down, cosines, sines, np.empty(width, np.float32), out)
    return out


def steepest_step(found: Steps) -> NDArray[np.float32]:
    """The largest step of a colour over directions: the root of the larger eigenvalue of its structure tensor."""
    xx, yy = np.square(found.right).sum(axis=0), np.square(found.down).sum(axis=0)
    xy = (found.right * found.down).sum(axis=0)
    return np.sqrt((xx + yy) / 2 + np.sqrt(np.square((xx - yy) / 2) + np.square(xy)))


def halved(maps: Maps) -> Maps:
    """Means of blocks of 2 x 2 pixels; a last odd row or column is repeated."""
    _, height, width = maps.shape
    maps = np.pad(maps, ((0, 0), (0, height % 2), (0, width % 2)), mode="edge")
    return (maps[:, ::2, ::2] + maps[:, 1::2, ::2] + maps[:, ::2, 1::2] + maps[:, 1::2, 1::2]) * np.float32(0.25)


def doubled(values: NDArray, shape: tuple[int, ...]) -> NDArray:
    """Values of the pixels of a halved map for those of the picture, whose shape is given."""
    return values.repeat(2, axis=0).repeat(2, axis=1)[: shape[0], : shape[1]]


def _places(scale: float) -> NDArray[np.float64]:
    """Whole numbers from three scales below zero to three above."""
    reach = int(3 * scale + 0.5)
    return np.arange(-reach, reach + 1, dtype=np.float64)


def _mirrored(length: int, reach: int) -> NDArray[np.int64]:
    """The place that stands at each of -reach..length + reach - 1, as if mirrors stood at both ends."""
    places = np.arange(-reach, length + reach) % (2 * length)
    return np.minimum(places, 2 * length - 1 - places)
