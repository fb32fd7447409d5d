"""Pictures to look at, all uint8 RGB: overlays, boundaries, colours. No statistics here."""

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinseg._validation import check_int, finite_array, integer_array, invalid
from spinseg.image.adjacency import checked_sites, edge_of_pairs, pairs_across
from spinseg.image.features import site_means
from spinseg.image.picture import FULL, ChannelAxis, Picture, as_picture, cielab

LIGHT, DARK = (255, 230, 40), (0, 0, 0)  # the two sides of a boundary: one of them shows on any picture
PIXELS_PER_WIDTH = 650  # of the longest side, for a pixel of width of each side of a boundary

# Dark violet to pale yellow, even steps of lightness: nine colours of matplotlib's magma (CC0).
_HEAT = np.array(
    [
        (0, 0, 4),
        (28, 16, 68),
        (79, 18, 123),
        (129, 37, 129),
        (181, 54, 122),
        (229, 80, 100),
        (251, 135, 97),
        (254, 194, 135),
        (252, 253, 191),
    ]
)


def overlay(image: Picture | ArrayLike, labels: ArrayLike, *, channel_axis: ChannelAxis = "auto") -> NDArray[np.uint8]:
    """The image with the boundaries between labels drawn over it, (*shape, 3); what is outside (-1) is faded.

    A boundary is light on the side of the lower label and dark on the other, so that it shows on light and on dark
    pictures. Each side is a pixel wide for every 650 of the longest side, and at least one, so that it shows on large
    pictures as on small ones.
    """
    picture, array = _matched(image, labels, channel_axis)
    drawn = picture.rgb.copy()
    drawn[array < 0] = drawn[array < 0] // 3 + 170
    lower, upper = _sides(array, max(1, round(max(array.shape) / PIXELS_PER_WIDTH)))
    drawn[upper] = DARK
    drawn[lower] = LIGHT
    return drawn


def boundaries(labels: ArrayLike) -> NDArray[np.bool_]:
    """Whether a pixel has another label, or the outside, beside it along an axis.

    Examples
    --------
    >>> boundaries([[0, 0, 1, 1]])
    array([[False,  True,  True, False]])
    """
    lower, upper = _sides(_labelled(labels), 1)
    return lower | upper


def mean_colours(
    image: Picture | ArrayLike, labels: ArrayLike, *, channel_axis: ChannelAxis = "auto"
) -> NDArray[np.uint8]:
    """Every label painted in the mean of its colours, (*shape, 3); white outside."""
    picture, array = _matched(image, labels, channel_axis)
    painted = np.full((*array.shape, 3), 255, np.uint8)
    if (array >= 0).any():
        means = np.rint(site_means(picture.rgb, array)).astype(np.uint8)
        painted[array >= 0] = means[array[array >= 0]]
    return painted


def label_colours(n: int) -> NDArray[np.uint8]:
    """A colour for each of n labels, (n, 3): label i has the same whatever n is, and the first are the most distinct.

    Each colour is the one farthest in CIELAB from those before it, among colours neither nearly black nor nearly white;
    after 1,000 they repeat.
    """
    n = check_int("n", n, at_least=0)
    palette = _palette(1 << max(4, n - 1).bit_length())
    return palette[np.arange(n) % len(palette)]


def probability_picture(probability: ArrayLike) -> NDArray[np.uint8]:
    """Probabilities as a heat map, (*shape, 3), from black at 0 through violet and orange to pale yellow at 1."""
    array = np.asarray(probability)
    array = finite_array("probability", array, (None,) * array.ndim)
    if array.size and (array.min() < 0 or array.max() > 1):
        invalid("probability", "lie in 0..1", array[(array < 0) | (array > 1)][0])
    steps = np.linspace(0, 1, 256)
    table = np.stack([np.interp(steps, np.linspace(0, 1, len(_HEAT)), channel) for channel in _HEAT.T], axis=1)
    return np.rint(table).astype(np.uint8)[np.rint(array * 255).astype(np.uint8)]


def paint_edges(sites: ArrayLike, edges: NDArray[np.int32], values: NDArray[np.float64]) -> NDArray[np.float32]:
    """The largest value among the edges that pass beside a pixel, 0 elsewhere; edges as `region_adjacency` orders them.

    Examples
    --------
    >>> paint_edges([[0, 0, 1, 1]], np.array([[0, 1]]), np.array([0.5]))
    array([[0. , 0.5, 0.5, 0. ]], dtype=float32)
    """
    array, _ = checked_sites(sites)
    painted = np.zeros(array.size, np.float32)
    lower, upper, places = pairs_across(array)
    found = edge_of_pairs(edges, lower, upper)
    for side in places:
        np.maximum.at(painted, side, values[found].astype(np.float32))
    return painted.reshape(array.shape)


def _matched(
    image: Picture | ArrayLike, labels: ArrayLike, channel_axis: ChannelAxis
) -> tuple[Picture, NDArray[np.int32]]:
    """The picture and the labels, refused where they differ in shape."""
    array = _labelled(labels)
    inside = array >= 0
    picture = as_picture(image, channel_axis=channel_axis, mask=inside if inside.any() and not inside.all() else None)
    if picture.shape != array.shape:
        invalid("labels", f"have the image's shape {picture.shape}", array.shape)
    return picture, array


def _labelled(labels: ArrayLike) -> NDArray[np.int32]:
    """The label image as int32; unlike sites, all of it may be outside, as a plane of a volume may be."""
    array = integer_array("labels", labels)
    if array.size == 0 or array.min() < -1:
        invalid("labels", "number pixels from 0, with -1 outside", array)
    return array.astype(np.int32, copy=False)


def _sides(labels: NDArray[np.int32], reach: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Pixels with a higher label within reach, and pixels with a lower one: the two sides of every boundary."""
    return _within(labels, reach, np.maximum) > labels, _within(labels, reach, np.minimum) < labels


def _within(labels: NDArray[np.int32], reach: int, choose: np.ufunc) -> NDArray[np.int32]:
    """The highest or lowest label within reach of each pixel: diamonds and squares by turns, which is nearly a disc."""
    for step in range(reach):
        chosen = labels.copy()
        for axis in range(labels.ndim):
            source = labels if step % 2 == 0 else chosen.copy()  # what an axis brought spreads along the next: a square
            head = (slice(None),) * axis
            here, there = (*head, slice(-1)), (*head, slice(1, None))
            choose(chosen[here], source[there], out=chosen[here])
            choose(chosen[there], source[here], out=chosen[there])
        labels = chosen
    return labels


@lru_cache
def _palette(count: int) -> NDArray[np.uint8]:
    """The first `count` colours of a sequence, at most 1,000, that keeps its distance from itself."""
    steps = np.linspace(0, FULL, 12).astype(np.uint16)
    codes = np.stack(np.meshgrid(steps, steps, steps, indexing="ij"), axis=-1).reshape(-1, 3)
    colours = cielab(codes)
    fit = (colours[:, 0] > 25) & (colours[:, 0] < 92)
    codes, colours = codes[fit], colours[fit]
    chosen = [int(np.argmax(np.square(colours[:, 1:]).sum(axis=1)))]  # the least grey
    gaps = np.full(len(colours), np.inf)
    while len(chosen) < min(count, 1000):
        gaps = np.minimum(gaps, np.square(colours - colours[chosen[-1]]).sum(axis=1))
        chosen.append(int(np.argmax(gaps)))
    palette = (codes[chosen] // 257).astype(np.uint8)
    palette.flags.writeable = False
    return palette
