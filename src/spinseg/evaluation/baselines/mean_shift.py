"""Mean shift: pixels climb to a mode of colour and position, and neighbours with near modes are one region."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import NamedTuple

import numpy as np
import scipy.sparse as sparse
from numpy.typing import ArrayLike, NDArray

from spinseg import _validation
from spinseg.evaluation.baselines.library import checked_rgb, extra, numbered
from spinseg.image.adjacency import grid_graph, region_adjacency
from spinseg.image.features import site_means, site_sizes
from spinseg.image.picture import Picture

SAME = 1.0  # L*u*v* units: filtered neighbours nearer than this in each channel are one piece; EDISON's LUV_treshold
NEAR = 0.5  # of the range bandwidth: touching regions with modes nearer than this are fused; EDISON's InWindow
ROUNDS = 100  # of the filter, for a pixel: EDISON's LIMIT, and the most that OpenCV allows
FARTHEST = 442.0  # levels between two colours of 8 bits, at most; OpenCV squares the bandwidth as an int


class Regions(NamedTuple):
    """Regions, each a union of connected pieces, and which of them touch; pairs may occur more than once.

    Shapes: of (n_pieces,), pairs (n_pairs, 2), sizes (n_regions,) in pixels, modes (n_regions, n_channels).
    """

    of: NDArray[np.int32]
    pairs: NDArray[np.int32]
    sizes: NDArray[np.int64]
    modes: NDArray[np.float64]


def mean_shift(
    image: Picture | ArrayLike,
    *,
    spatial_bandwidth: float = 20.0,
    range_bandwidth: float = 15.0,
    min_size: int = 1500,
) -> NDArray[np.int32]:
    """Regions of mean shift segmentation, numbered by first appearance; connected along the axes.

    Comaniciu and Meer [1]_, as their program EDISON does it; the defaults are what Xu, Caron and Doucet ran.

    1. *Colours* are L*u*v* of the sRGB numbers taken as linear, as EDISON takes them.
    2. *Filter*: each pixel moves to the mean of the pixels within `spatial_bandwidth` of its place and
       `range_bandwidth` of its colour, until it rests.
    3. *Pieces*: filtered neighbours that differ by less than 1 in each channel are one piece; its mode is their mean.
    4. *Fusion*: touching regions with modes nearer than half of `range_bandwidth` are one, transitively; the mode of
       a union is the mean over its pixels. Again, until nothing changes.
    5. *Absorption*: each region of fewer than `min_size` pixels joins the touching region of the nearest mode, all
       at once. Again, until none is left.

    The filter is OpenCV's, on one thread, at full size (`maxLevel=0`) and until pixels rest: its own defaults, a
    pyramid and five steps, leave ramps between regions, across which step 4 joins nearly everything. It wants 8 bits:
    L*u*v* is shifted and stretched, all channels alike, so that the widest fills 0..255, and the bandwidth with it. So
    a bandwidth is in units of L*u*v*, where L runs to 100, as in EDISON; OpenCV's own 8-bit L*u*v* is not used, for it
    stretches L by 2.55, u by 0.72 and v by 0.97. `python -m benchmarks baselines` has the figures.

    What differs from EDISON: the window is a square in space, not a disc; means are rounded to whole pixels and
    8 bits; pieces are connected along the axes, not along diagonals too, and have their mean as mode, not the value of
    their first pixel; lightness above 80 does not count double; fusion goes on until nothing changes, where EDISON
    stops after the first round that fused something.

    Parameters
    ----------
    image : Picture or array
        Grey, or sRGB.
    spatial_bandwidth : float
        In pixels.
    range_bandwidth : float
        In units of L*u*v*.
    min_size : int
        In pixels.

    Raises
    ------
    ImportError
        Without OpenCV, the extra [cv].

    References
    ----------
    .. [1] Comaniciu and Meer, Mean shift: a robust approach toward feature space analysis, PAMI 2002.
           :DOI:`10.1109/34.1000236`

    Examples
    --------
    >>> halves = np.repeat([[0, 200]], 4, axis=1)
    >>> mean_shift(halves, spatial_bandwidth=2, min_size=1)  # doctest: +SKIP
    array([[0, 0, 0, 0, 1, 1, 1, 1]], dtype=int32)
    """
    spatial_bandwidth = _validation.check_real("spatial_bandwidth", spatial_bandwidth, above=0)
    range_bandwidth = _validation.check_real("range_bandwidth", range_bandwidth, above=0)
    min_size = _validation.check_int("min_size", min_size, at_least=1)
    levels, scale = stretched(edison_luv(checked_rgb(image)))
    settled = filtered(levels, spatial_bandwidth, range_bandwidth * scale)
    return segmented(settled, SAME * scale, NEAR * range_bandwidth * scale, min_size)


def edison_luv(rgb: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Step 1: L*u*v* of sRGB numbers taken as linear."""
    with _opencv() as cv2:
        return cv2.cvtColor(rgb.astype(np.float32) / 255, cv2.COLOR_LRGB2Luv)


def stretched(colours: NDArray[np.float32]) -> tuple[NDArray[np.uint8], float]:
    """Colours in 8-bit levels, the widest channel filling 0..255, and how many levels a unit has in every channel."""
    low, high = colours.min(axis=(0, 1)), colours.max(axis=(0, 1))
    scale = 255 / (float((high - low).max()) or 255.0)
    return np.rint((colours - low) * scale).astype(np.uint8), scale


def filtered(levels: NDArray[np.uint8], spatial_radius: float, radius: float) -> NDArray[np.uint8]:
    """Step 2: the levels at which the pixels come to rest."""
    with _opencv() as cv2:
        stop = (cv2.TERM_CRITERIA_COUNT + cv2.TERM_CRITERIA_EPS, ROUNDS, 0)
        window = min(spatial_radius, float(max(levels.shape))), min(radius, FARTHEST)
        return cv2.pyrMeanShiftFiltering(levels, *window, maxLevel=0, termcrit=stop)


def segmented(levels: NDArray[np.uint8], same: float, near: float, min_size: int) -> NDArray[np.int32]:
    """Steps 3 to 5 on filtered levels: the label image."""
    pieces = connected(levels, same)
    regions = absorbed(fused(regions_of(pieces, levels), near), min_size)
    return numbered(regions.of[pieces])


def connected(values: NDArray, reach: float) -> NDArray[np.int32]:
    """Label image of pieces: pixels beside each other that differ by less than `reach` in each channel are in one.

    Examples
    --------
    >>> connected(np.array([[[0], [1], [2], [9]]]), 1.5)
    array([[0, 0, 0, 1]], dtype=int32)
    """
    table = values.reshape(-1, values.shape[-1]).astype(np.float64)
    pairs = grid_graph(values.shape[:-1]).edges
    same = (np.abs(table[pairs[:, 0]] - table[pairs[:, 1]]) < reach).all(axis=1)
    return _components(pairs[same], len(table)).reshape(values.shape[:-1])


def regions_of(pieces: NDArray[np.int32], values: NDArray) -> Regions:
    """Every piece a region of its own, with the mean of its values as mode."""
    sizes = site_sizes(pieces)
    pairs = region_adjacency(pieces).graph.edges
    return Regions(np.arange(sizes.size, dtype=np.int32), pairs, sizes, site_means(values, pieces))


def fused(regions: Regions, reach: float) -> Regions:
    """Regions of which no two that touch have modes nearer than `reach`: EDISON's TransitiveClosure, to the end."""
    while True:
        near = _gaps(regions.modes, regions.pairs) < reach
        if not near.any():
            return regions
        regions = _joined(regions, regions.pairs[near])


def absorbed(regions: Regions, smallest: int) -> Regions:
    """Regions of at least the smallest size, unless one is alone: EDISON's Prune."""
    while True:
        pairs = np.concatenate([regions.pairs, regions.pairs[:, ::-1]])
        pairs = pairs[regions.sizes[pairs[:, 0]] < smallest]
        if not len(pairs):
            return regions
        order = np.lexsort((pairs[:, 1], _gaps(regions.modes, pairs), pairs[:, 0]))
        pairs = pairs[order]
        nearest = np.diff(pairs[:, 0], prepend=-1) > 0  # the first pair of each small region
        regions = _joined(regions, pairs[nearest])


def _joined(regions: Regions, pairs: NDArray[np.int32]) -> Regions:
    """The regions after those of each pair have become one."""
    into = _components(pairs, regions.sizes.size)
    sizes = np.bincount(into, regions.sizes)
    sums = [np.bincount(into, regions.sizes * channel) for channel in regions.modes.T]
    touching = into[regions.pairs]
    touching = touching[touching[:, 0] != touching[:, 1]]
    return Regions(into[regions.of], touching, sizes.astype(np.int64), np.stack(sums, axis=1) / sizes[:, None])


def _components(pairs: NDArray[np.int32], count: int) -> NDArray[np.int32]:
    """The connected component of each of `count` things."""
    links = sparse.coo_array((np.ones(len(pairs), np.int8), (pairs[:, 0], pairs[:, 1])), shape=(count, count))
    return sparse.csgraph.connected_components(links, directed=False)[1]


def _gaps(modes: NDArray[np.float64], pairs: NDArray[np.int32]) -> NDArray[np.float64]:
    return np.linalg.norm(modes[pairs[:, 0]] - modes[pairs[:, 1]], axis=1)


@contextmanager
def _opencv() -> Iterator[ModuleType]:
    """OpenCV on one thread; the number of its threads is afterwards what it was."""
    cv2 = extra("cv2", "mean_shift needs OpenCV: pip install 'spinseg[cv]'")
    n_threads = cv2.getNumThreads()
    cv2.setNumThreads(1)
    try:
        yield cv2
    finally:
        cv2.setNumThreads(n_threads)
