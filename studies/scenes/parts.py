"""What scenes are made of: regions and objects of random forms, noise that is smooth, and stains."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage
from scipy.spatial import cKDTree

Floats = NDArray[np.float64]
Labels = NDArray[np.int32]
Flags = NDArray[np.bool_]
Shape = tuple[int, ...]
Change = Callable[[Floats, np.random.Generator], Floats]


@dataclass(frozen=True, eq=False)
class Scene:
    """An image and its ground truth.

    Attributes
    ----------
    image : (height, width, n_channels) array
        Linear intensities from 0 to 1, the brightest pixel. Nothing is stretched or clipped, except where a detector
        is saturated: with debris or stars, all else may lie below .01.
    labels : (height, width) array
        The region of each pixel, from 0 on; every region is connected.
    kinds : (n_regions,) array
        The kind of each region, such as the phase of a material; regions of a kind look alike.
    objects : (n_regions,) boolean array or None
        The regions that are objects; the others are background. None where there are no objects, as in textures.
    """

    image: Floats
    labels: Labels
    kinds: NDArray[np.int64]
    objects: Flags | None = None


# --- random numbers and fields ---


def log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    """Return a random number whose logarithm is uniform."""
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def smooth_noise(shape: Shape, scale: float | Floats, rng: np.random.Generator) -> Floats:
    """Return Gaussian noise of mean 0 and variance 1 that is smooth over `scale` pixels."""
    noise = ndimage.gaussian_filter(rng.normal(size=shape), scale, mode="wrap")
    return (noise - noise.mean()) / max(float(noise.std()), 1e-9)


def wide_noise(shape: Shape, scale: float, rng: np.random.Generator) -> Floats:
    """Return noise as `smooth_noise` that is smooth over many pixels, enlarged from a small image, which is faster."""
    step = max(1, int(scale / 3))
    small = tuple(-(-length // step) + 2 for length in shape)
    noise = smooth_noise(small, scale / step, rng)
    return ndimage.zoom(noise, step, order=1, grid_mode=True, mode="nearest")[tuple(map(slice, shape))]


# --- regions ---


def connected(owner: NDArray[np.integer[Any]], least: int = 9) -> tuple[Labels, NDArray[np.int64]]:
    """Return the connected pieces of an image, and the owner of each; those below `least` pixels join the nearest."""
    pieces = _pieces(owner)
    small = (np.bincount(pieces.ravel()) < least)[pieces]
    if small.any() and not small.all():
        nearest = ndimage.distance_transform_edt(small, return_distances=False, return_indices=True)
        return connected(owner[tuple(nearest)], least=0)
    values, first = np.unique(pieces, return_index=True)
    sources = owner.ravel()[first].astype(np.int64)
    order = np.lexsort((first, sources))  # by owner, then from the top
    rank = np.empty(values.size, np.int32)
    rank[order] = np.arange(values.size)
    return rank[pieces], sources[order]


def _pieces(owner: NDArray[np.integer[Any]]) -> NDArray[np.int32]:
    """Return a number for each pixel, from 0 on, the same for pixels of one owner that are connected."""
    pixels = tuple(slice(None, None, 2) for _ in owner.shape)
    open_to = np.zeros([2 * length - 1 for length in owner.shape], bool)  # pixels, and links between them
    open_to[pixels] = True
    for axis in range(owner.ndim):
        here, there = (tuple([slice(None)] * axis + [part]) for part in (slice(1, None), slice(None, -1)))
        links = (*pixels[:axis], slice(1, None, 2), *pixels[axis + 1 :])
        open_to[links] = owner[here] == owner[there]
    return ndimage.label(open_to)[0][pixels] - 1


def cells(shape: Shape, rng: np.random.Generator, spacing: float, jitter: float) -> tuple[Labels, Floats]:
    """Return cells of a warped Voronoi diagram, and the distance of each pixel to the border of its cell."""
    n_axes = len(shape)
    grid = np.indices([int(length / spacing) + 3 for length in shape]).reshape(n_axes, -1).T - 1.0
    points = (
        grid + 0.5 * (grid[:, :1] % 2) * np.eye(n_axes)[-1] + rng.uniform(-0.5, 0.5, grid.shape) * jitter
    ) * spacing
    places = np.indices(shape).reshape(n_axes, -1).T + 0.0
    warp = rng.uniform(0, 0.12) * spacing
    places += warp * np.stack([smooth_noise(shape, spacing / 4, rng).ravel() for _ in range(n_axes)], axis=1)
    distance, owner = cKDTree(points).query(places, 2)
    labels, _ = connected(owner[:, 0].reshape(shape))
    return labels, ((distance[:, 1] - distance[:, 0]) / 2).reshape(shape)


def border_distance(labels: NDArray[np.integer[Any]]) -> Floats:
    """Return the distance of each pixel to the nearest border between two regions, .5 on either side of it."""
    edge = np.zeros(labels.shape, bool)
    for axis in range(labels.ndim):
        here, there = (tuple([slice(None)] * axis + [part]) for part in (slice(1, None), slice(None, -1)))
        apart = labels[here] != labels[there]
        edge[here] |= apart
        edge[there] |= apart
    if not edge.any():
        return np.full(labels.shape, float(max(labels.shape)))
    return ndimage.distance_transform_edt(~edge) + 0.5


def whitened(labels: Labels) -> tuple[Floats, Floats]:
    """Return the places of pixels in their regions, by offset: a region becomes roughly a disc of radius 1."""
    flat, count = labels.ravel(), np.bincount(labels.ravel())
    y, x = (axis.ravel().astype(float) for axis in np.indices(labels.shape))
    dy, dx = (axis - (np.bincount(flat, axis) / count)[flat] for axis in (y, x))
    yy, xx, xy = (np.bincount(flat, part) / count + 0.1 for part in (dy * dy, dx * dx, dx * dy))
    lower = np.sqrt(yy)  # Cholesky factor of the covariance of places
    slope = (xy - 0.1) / lower
    rest = np.sqrt(np.maximum(xx - slope**2, 0.1))
    v = dy / lower[flat]
    u = (dx - slope[flat] * v) / rest[flat]
    return v.reshape(labels.shape) / 2, u.reshape(labels.shape) / 2


# --- objects ---


@dataclass(frozen=True, eq=False)
class Outlines:
    """Ellipses with waves on their outlines: centers, half axes, angles, and how irregular and angular they are."""

    centers: Floats
    axes: Floats
    angles: Floats
    waves: float = 0.07
    power: float = 2.0


def ellipses(shape: Shape, outlines: Outlines, rng: np.random.Generator) -> tuple[NDArray[np.int64], Floats]:
    """Return the object of each pixel, from 1 on, or 0, and how far out it lies there: 1 on the object's outline."""
    y, x = np.indices(shape)
    owner, nearest = np.zeros(shape, np.int64), np.full(shape, np.inf)
    for i, (center, axes, angle) in enumerate(zip(outlines.centers, outlines.axes, outlines.angles, strict=True), 1):
        window = around(center, 1.5 * max(axes) + 2, shape)
        dy, dx = y[window] - center[0], x[window] - center[1]
        u, v = np.cos(angle) * dx - np.sin(angle) * dy, np.sin(angle) * dx + np.cos(angle) * dy
        bearing = np.arctan2(v, u)
        waves = 1 + sum(
            rng.normal(0, outlines.waves) * np.cos(k * bearing + rng.uniform(0, 2 * np.pi)) for k in (2, 3, 4)
        )
        p = outlines.power
        distance = (np.abs(u / axes[0]) ** p + np.abs(v / axes[1]) ** p) ** (1 / p) / np.maximum(waves, 0.3)
        closer = distance < np.minimum(nearest[window], 1)
        nearest[window][closer], owner[window][closer] = distance[closer], i
    return owner, nearest


def around(center: Sequence[float] | Floats, reach: float, shape: Shape) -> tuple[slice, ...]:
    """Return the window of an image around a place."""
    return tuple(
        slice(max(0, int(c - reach)), max(0, min(n, int(c + reach) + 1))) for c, n in zip(center, shape, strict=True)
    )


def packed(
    shape: Shape, radii: Floats, rng: np.random.Generator, overlap: float = 0.0, within: Flags | None = None
) -> tuple[Floats, Floats]:
    """Return centers and radii of circles, the largest first, that overlap by a share of their radii at most.

    Each radius has one try at a random place; `within` has the pixels that may be centers.
    """
    radii = np.sort(radii)[::-1]
    places = rng.uniform(-0.05, 1.05, (radii.size, 2)) * shape
    kept = np.zeros(radii.size, bool)
    for i, (place, radius) in enumerate(zip(places, radii, strict=True)):
        if within is not None and not within[tuple(np.clip(place, 0, np.array(shape) - 1).astype(int))]:
            continue
        apart = np.hypot(*(places[kept] - place).T)
        kept[i] = bool((apart > (1 - overlap) * (radii[kept] + radius)).all())
    return places[kept], radii[kept]


# --- colors ---


def stained(level: Floats, rng: np.random.Generator) -> Floats:
    """Return a gray image in one channel, or in some scenes stained in three."""
    level = level / max(float(level.max()), 1e-9)
    if rng.random() < 0.75:
        return level[..., None]
    ground, stain = rng.uniform(0, 1, 3), rng.uniform(0, 1, 3)
    return ground + level[..., None] * (stain - ground)


def merged(layers: Sequence[Floats], rng: np.random.Generator) -> Floats:
    """Return layers of one scene as channels in any order, with an irrelevant one at times, or mixed into colors."""
    layers = [layer / max(float(np.percentile(layer, 99.8)), 1e-9) for layer in layers]
    if len(layers) < 3 and rng.random() < 0.4:
        layers.append(_irrelevant(layers[0].shape, rng))
    order = rng.permutation(len(layers))
    channels = np.stack([layers[i] for i in order], axis=-1)
    if rng.random() < 0.5:
        return channels * np.exp(rng.uniform(-0.9, 0, len(layers)))
    colors = np.stack([_color(rng) for _ in layers])
    return np.tensordot(channels, colors * np.exp(rng.uniform(-0.5, 0, (len(layers), 1))), 1)


def _irrelevant(shape: Shape, rng: np.random.Generator) -> Floats:
    """Return a channel that has nothing to do with the others: puncta, haze, or next to nothing."""
    kind = rng.integers(3)
    if kind == 0:
        points = rng.random(shape) < log_uniform(rng, 3e-4, 1e-2)
        layer = ndimage.gaussian_filter(points * rng.exponential(1.0, shape), rng.uniform(0.7, 1.6))
        return layer / max(float(layer.max()), 1e-9)
    haze = np.maximum(1 + 0.5 * wide_noise(shape, rng.uniform(5, 40), rng), 0)
    return haze * rng.uniform(0.2, 0.9) if kind == 1 else haze * 0.05


def _color(rng: np.random.Generator) -> Floats:
    """Return a color of a merged image, most often one of the six that programs offer, or white."""
    choices = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 1, 1], [1, 0, 1], [1, 1, 0], [1, 1, 1]], float)
    return choices[rng.integers(len(choices))] if rng.random() < 0.8 else rng.uniform(0.1, 1, 3)
