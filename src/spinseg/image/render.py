"""Pictures to look at, all uint8 RGB: overlays, boundaries, colours. No statistics here."""

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinseg._checks import finite_array, refuse, whole
from spinseg.image.adjacency import checked_sites, edge_of_pairs, pairs_across
from spinseg.image.features import site_means
from spinseg.image.pixels import FULL, ChannelAxis, Picture, as_picture, cielab

LIGHT, DARK = (255, 230, 40), (0, 0, 0)  # the two sides of a boundary: one of them shows on any picture

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

    A boundary is two pixels wide, one light and one dark, so that it shows on light and on dark pictures.
    """
    picture, array = _matched(image, labels, channel_axis)
    drawn = picture.rgb.copy()
    drawn[array < 0] = drawn[array < 0] // 3 + 170
    before, after = _sides(array)
    drawn[after] = DARK
    drawn[before] = LIGHT
    return drawn


def boundaries(labels: ArrayLike) -> NDArray[np.bool_]:
    """Whether a pixel has another label, or the outside, beside it along an axis.

    Examples
    --------
    >>> boundaries([[0, 0, 1, 1]])
    array([[False,  True,  True, False]])
    """
    before, after = _sides(checked_sites(labels)[0])
    return before | after


def mean_colours(
    image: Picture | ArrayLike, labels: ArrayLike, *, channel_axis: ChannelAxis = "auto"
) -> NDArray[np.uint8]:
    """Every label painted in the mean of its colours, (*shape, 3); white outside."""
    picture, array = _matched(image, labels, channel_axis)
    means = np.rint(site_means(picture.rgb, array)).astype(np.uint8)
    return np.append(means, [[255, 255, 255]], axis=0).astype(np.uint8)[array]


def label_colours(n: int) -> NDArray[np.uint8]:
    """A colour for each of n labels, (n, 3): label i has the same whatever n is, and the first are the most distinct.

    Each colour is the one farthest in CIELAB from those before it, among colours neither nearly black nor nearly white;
    after 1,000 they repeat.
    """
    n = whole("n", n, at_least=0)
    palette = _palette(1 << max(4, n - 1).bit_length())
    return palette[np.arange(n) % len(palette)]


def probability_picture(probability: ArrayLike) -> NDArray[np.uint8]:
    """Probabilities as a heat map, (*shape, 3), from black at 0 through violet and orange to pale yellow at 1."""
    array = np.asarray(probability)
    array = finite_array("probability", array, (None,) * array.ndim)
    if array.size and (array.min() < 0 or array.max() > 1):
        refuse("probability", "lie in 0..1", array[(array < 0) | (array > 1)][0])
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
    array, _ = checked_sites(labels)
    outside = array < 0
    picture = as_picture(image, channel_axis=channel_axis, mask=None if not outside.any() else ~outside)
    if picture.shape != array.shape:
        refuse("labels", f"have the image's shape {picture.shape}", array.shape)
    return picture, array


def _sides(labels: NDArray[np.int32]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Pixels whose next along some axis has another label, and pixels whose last one has."""
    before, after = np.zeros(labels.shape, bool), np.zeros(labels.shape, bool)
    for axis in range(labels.ndim):
        head = (slice(None),) * axis
        differ = labels[(*head, slice(-1))] != labels[(*head, slice(1, None))]
        before[(*head, slice(-1))] |= differ
        after[(*head, slice(1, None))] |= differ
    return before, after


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
