"""Rendering of label images and probabilities as uint8 RGB."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinseg._validation import integer_array, invalid
from spinseg.graph.adjacency import boundary_pairs, checked_sites, edge_index
from spinseg.image.features import site_means
from spinseg.image.layout import ChannelAxis, Ints, Mask
from spinseg.image.picture import MAX_CODE, Picture, as_picture, cielab
from spinseg.partition.numbering import in_order

PIXELS_PER_LINE_WIDTH = 650  # pixels of the longest side for each pixel of line width

# Dark violet to pale yellow in even steps of lightness: nine colors of matplotlib's magma (CC0).
_MAGMA_HEX = "000004 1c1044 4f127b 812581 b5367a e55064 fb8761 fec287 fcfdbf"
_MAGMA = np.frombuffer(bytes.fromhex(_MAGMA_HEX), np.uint8).reshape(9, 3)

# RGBA of what `outlines` returns, in files, reports and figures: yellow beside black, one of which is visible on any
# image. Without a color, outlines would disappear in images of bright lines, such as cell walls.
OUTLINE_COLORS = ((0, 0, 0, 0), (0, 0, 0, 150), (255, 230, 40, 255))
DIMMED = 0.4  # brightness of the gray image under graded boundaries
DARK, BRIGHTEST = 1 / 2, 99.8  # of full intensity, and the percentile of pixels that is the brightest
MIN_GRADE, MIN_OPACITY, OPAQUE_FROM = 0.4, 0.35, 0.4  # of their colors: the place of 0 on the map, and the opacity


def overlay(
    image: Picture | ArrayLike, labels: ArrayLike, *, channel_axis: ChannelAxis = "auto", start_label: int = 1
) -> NDArray[np.uint8]:
    """Draw the boundaries between labels over the image, (*shape, 3); pixels below `start_label`, outside, are faded.

    A boundary is yellow on the side of the lower label and black on the other, so it is visible on light and on dark
    images. An image that uses only the lower half of its range is brightened. Each side is one pixel wide for every
    650 pixels of the longest side, and at least one.

    Examples
    --------
    >>> import numpy as np
    >>> import spinseg as ss
    >>> ss.overlay(
    ...     np.zeros((4, 6), np.uint8),
    ...     np.repeat([[1, 2]], 3, axis=1).repeat(4, axis=0),
    ... ).shape
    (4, 6, 3)
    """
    picture, array = _check_pair(image, labels, channel_axis, start_label)
    return outlined(faded(brightened(picture.rgb), array < 0), array)


def brightened(rgb: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return an image that can be seen: brighter by a factor if it is dark, and otherwise as it is."""
    top = np.percentile(rgb.max(axis=-1), BRIGHTEST) if rgb.size else 0.0
    if not 0 < top < 255 * DARK:
        return rgb
    return np.minimum(np.rint(rgb * (255 / top)), 255).astype(np.uint8)


def faded(rgb: NDArray[np.uint8], outside: Mask) -> NDArray[np.uint8]:
    """Return an image that is pale outside."""
    return np.where(outside[..., None], rgb // 3 + np.uint8(170), rgb)


def outlines(labels: ArrayLike) -> NDArray[np.uint8]:
    """Return for each pixel 2 on the side of a boundary with the lower label, 1 on the other, and 0 off boundaries."""
    array = _check_labels(labels)
    width = max(1, round(max(array.shape) / PIXELS_PER_LINE_WIDTH))
    has_lower = _extremum_filter(array, width, np.minimum) < array
    return np.where(_extremum_filter(array, width, np.maximum) > array, 2, has_lower).astype(np.uint8)


def outlined(rgb: NDArray[np.uint8], labels: ArrayLike) -> NDArray[np.uint8]:
    """Return an image with the boundaries between labels in `OUTLINE_COLORS`."""
    drawn, sides = rgb.copy(), outlines(labels)
    for side, (*color, opacity) in enumerate(OUTLINE_COLORS[1:], start=1):
        below = rgb[sides == side].astype(np.float64)
        drawn[sides == side] = np.rint(below + opacity / 255 * (np.array(color) - below))
    return drawn


def graded_boundaries(rgb: NDArray[np.uint8], probability: NDArray[np.floating]) -> NDArray[np.uint8]:
    """Return boundaries over a dimmed gray image, the brighter and the more opaque the more probable, (*shape, 3)."""
    ground = DIMMED * (rgb @ np.array([0.299, 0.587, 0.114]))[..., None]
    clipped = np.clip(probability.astype(np.float64), 0, 1)
    colors = probability_picture(MIN_GRADE + (1 - MIN_GRADE) * clipped).astype(np.float64)
    opacity = np.minimum(1, MIN_OPACITY + (1 - MIN_OPACITY) * clipped / OPAQUE_FROM) * np.minimum(1, clipped / 0.05)
    return np.rint(ground + opacity[..., None] * (colors - ground)).astype(np.uint8)


def mean_colors(
    image: Picture | ArrayLike, labels: ArrayLike, *, channel_axis: ChannelAxis = "auto", start_label: int = 1
) -> NDArray[np.uint8]:
    """Paint every label in its mean color, (*shape, 3); pixels below `start_label`, outside, are white.

    Examples
    --------
    >>> import numpy as np
    >>> import spinseg as ss
    >>> image = np.array([[0, 0, 200, 100]], np.uint8)
    >>> ss.mean_colors(image, [[1, 1, 2, 2]])[0, :, 0].tolist()
    [0, 0, 150, 150]
    """
    picture, array = _check_pair(image, labels, channel_axis, start_label)
    painted = np.full((*array.shape, 3), 255, np.uint8)
    if (array >= 0).any():
        means = np.rint(site_means(picture.rgb, array)).astype(np.uint8)
        painted[array >= 0] = means[array[array >= 0]]
    return painted


def label_colors(n: int) -> NDArray[np.uint8]:
    """Return a color for each of n labels, (n, 3); that of label i does not depend on n.

    Each color is the one farthest in CIELAB from those before it, among colors neither nearly black nor nearly white.
    After 1,000 they repeat.
    """
    palette = _palette(1 << max(4, int(n) - 1).bit_length())
    return palette[np.arange(n) % len(palette)]


def probability_picture(probability: ArrayLike) -> NDArray[np.uint8]:
    """Return a heat map of probabilities, (*shape, 3), from black at 0 through violet and orange to yellow at 1."""
    steps = np.linspace(0, 1, 256)
    table = np.stack([np.interp(steps, np.linspace(0, 1, len(_MAGMA)), channel) for channel in _MAGMA.T], axis=1)
    return np.rint(table).astype(np.uint8)[np.rint(np.asarray(probability) * 255).astype(np.uint8)]


def paint_edges(sites: ArrayLike, edges: Ints, values: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return for each pixel the largest value of the edges whose boundary it touches, and 0 elsewhere.

    `edges` and their `values`, (n_edges,), are in the order of `region_adjacency`. Sites that touch without an edge, as
    where seeds were drawn into each other, have the value 1.
    """
    array, _ = checked_sites(sites)
    painted = np.zeros(array.size, np.float32)
    lower, upper, pixels = boundary_pairs(array)
    edge = np.minimum(edge_index(edges, lower, upper), len(edges) - 1)
    joined = (edges[edge] == np.stack([lower, upper], axis=1)).all(axis=1)
    for side in pixels:
        np.maximum.at(painted, side, np.where(joined, values[edge], 1).astype(np.float32))
    return painted.reshape(array.shape)


def _check_pair(
    image: Picture | ArrayLike, labels: ArrayLike, channel_axis: ChannelAxis, start_label: int
) -> tuple[Picture, Ints]:
    """Return the image, and the labels from 0 on with -1 outside; raise InvalidInput if they differ in shape."""
    array = _check_labels(labels, start_label) - np.int32(start_label)
    inside = array >= 0
    picture = as_picture(image, channel_axis=channel_axis, mask=inside if inside.any() and not inside.all() else None)
    if picture.shape != array.shape:
        invalid("labels", f"have the image's shape {picture.shape}", array.shape)
    return picture, array


def _check_labels(labels: ArrayLike, start_label: int = 0) -> Ints:
    """Return the label image as int32; unlike sites, all pixels may be outside, as in a plane of a volume.

    Labels larger than there are pixels are renumbered in their order.
    """
    array = integer_array("labels", labels)
    if array.size == 0 or array.min() < start_label - 1:
        invalid("labels", f"number pixels from {start_label}, with {start_label - 1} outside", array)
    if array.max() > array.size:
        array = in_order(array) + start_label - (array.min() < start_label)
    return array.astype(np.int32, copy=False)


def _extremum_filter(labels: Ints, radius: int, extreme: np.ufunc) -> Ints:
    """Return the maximum or minimum label within a radius, by diamonds and squares in turn, which is nearly a disc."""
    for iteration in range(radius):
        result = labels.copy()
        for axis in range(labels.ndim):
            source = labels if iteration % 2 == 0 else result.copy()  # with the other axes' results it is a square
            head = (slice(None),) * axis
            here, there = (*head, slice(-1)), (*head, slice(1, None))
            extreme(result[here], source[there], out=result[here])
            extreme(result[there], source[here], out=result[there])
        labels = result
    return labels


@lru_cache
def _palette(count: int) -> NDArray[np.uint8]:
    """Return the first `count` colors, at most 1,000, by farthest-point selection from a grid of sRGB."""
    steps = np.linspace(0, MAX_CODE, 12).astype(np.uint16)
    codes = np.stack(np.meshgrid(steps, steps, steps, indexing="ij"), axis=-1).reshape(-1, 3)
    colors = cielab(codes)
    usable = (colors[:, 0] > 25) & (colors[:, 0] < 92)
    codes, colors = codes[usable], colors[usable]
    chosen = [int(np.argmax(np.square(colors[:, 1:]).sum(axis=1)))]  # the least gray
    distances = np.full(len(colors), np.inf)
    while len(chosen) < min(count, 1000):
        distances = np.minimum(distances, np.square(colors - colors[chosen[-1]]).sum(axis=1))
        chosen.append(int(np.argmax(distances)))
    palette = (codes[chosen] // 257).astype(np.uint8)
    palette.flags.writeable = False
    return palette
