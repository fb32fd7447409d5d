"""Mean shift: pixels move to modes of the density of color and position; neighbors of similar modes form regions."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from types import ModuleType

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinseg.graph.adjacency import region_adjacency
from spinseg.graph.edges import connected_components
from spinseg.graph.merging import Choice, merge_in_rounds, nearest_pairs
from spinseg.graph.site_graph import SiteGraph
from spinseg.image.features import site_means, site_sizes
from spinseg.image.picture import Picture
from spinseg.partition.numbering import by_first_appearance
from studies.evaluation.baselines.library import as_rgb, import_extra

# Filtered neighbors that differ by less than this in each channel are one piece: EDISON's LUV_treshold.
PIECE_THRESHOLD = 1.0
# Adjacent regions are fused if their modes are closer than this fraction of the range bandwidth: EDISON's InWindow.
FUSION_FRACTION = 0.5
MAX_ITERATIONS = 100  # of the filter per pixel: EDISON's LIMIT, and the maximum of OpenCV
MAX_COLOR_DISTANCE = 442.0  # in 8-bit levels; OpenCV squares the bandwidth as an int, which overflows


def mean_shift(
    image: Picture | ArrayLike,
    *,
    spatial_bandwidth: float = 20.0,
    range_bandwidth: float = 15.0,
    min_size: int = 1500,
    colors: str = "srgb",
) -> NDArray[np.int32]:
    """Return the regions of mean shift segmentation, numbered by first appearance; they are connected along the axes.

    Comaniciu and Meer [1]_, as in their program EDISON. The defaults are those of Xu, Caron and Doucet, who do not say
    in which units their range bandwidth is: in levels of sRGB it gives their numbers of regions, and in L*u*v* a third
    of them (`benchmarks/mean_shift.py` at commit fee328b).

    1. *Colors* are 8-bit levels of sRGB; or, as in EDISON, L*u*v* of the sRGB values taken as linear light.
    2. *Filter*: each pixel moves to the mean of the pixels within `spatial_bandwidth` of its place and
       `range_bandwidth` of its color, until it converges.
    3. *Pieces*: filtered neighbors that differ by less than 1 in each channel are one piece; its mode is their mean.
    4. *Fusion*: adjacent regions with modes closer than half of `range_bandwidth` are merged, transitively; the mode of
       a union is the mean over its pixels. This is repeated until nothing changes.
    5. *Absorption*: each region of fewer than `min_size` pixels is merged with the adjacent region of the closest mode,
       all at once. This is repeated until none is left.

    The filter is OpenCV's, on one thread, at full resolution (`maxLevel=0`) and until convergence: with its own
    defaults, a pyramid and five iterations, color gradients remain between regions, across which step 4 merges nearly
    everything. It takes 8-bit values: L*u*v* is shifted and scaled, by one factor for all channels, so that the channel
    of the largest range fills 0..255, and the bandwidth is scaled by the same factor. So a bandwidth is in units of
    L*u*v*, where L is at most 100, as in EDISON. OpenCV's own 8-bit L*u*v* is not used, because it scales L by 2.55, u
    by 0.72 and v by 0.97. `python -m studies baselines` has figures.

    Differences from EDISON: the window is a square, not a disc; means are rounded to integer pixels and 8 bits; pieces
    are connected along the axes, not along diagonals, and their mode is their mean, not the value of their first pixel;
    differences of lightness above 80 do not count double; fusion is repeated until nothing changes, where EDISON stops
    after the first round that fused something.

    Parameters
    ----------
    image : Picture or array
        Gray, or sRGB.
    spatial_bandwidth : float
        In pixels.
    range_bandwidth : float
        In units of the colors.
    min_size : int
        In pixels.
    colors : {"srgb", "luv"}
        The color space; "luv" is EDISON's.

    Raises
    ------
    ImportError
        Without OpenCV, the extra [cv].

    References
    ----------
    .. [1] Comaniciu and Meer, Mean shift: a robust approach toward feature space analysis, PAMI 2002.
           doi:10.1109/34.1000236

    Examples
    --------
    >>> halves = np.repeat([[0, 200]], 4, axis=1)
    >>> mean_shift(
    ...     halves, spatial_bandwidth=2, min_size=1
    ... )  # doctest: +SKIP
    array([[0, 0, 0, 0, 1, 1, 1, 1]], dtype=int32)
    """
    rgb = as_rgb(image)
    levels, scale = (rgb, 1.0) if colors == "srgb" else to_8_bit(edison_luv(rgb))
    settled = apply_filter(levels, spatial_bandwidth, range_bandwidth * scale)
    return segment_filtered(settled, PIECE_THRESHOLD * scale, FUSION_FRACTION * range_bandwidth * scale, min_size)


def edison_luv(rgb: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Return L*u*v* of sRGB values taken as linear light: step 1."""
    with _opencv() as cv2:
        return cv2.cvtColor(rgb.astype(np.float32) / 255, cv2.COLOR_LRGB2Luv)


def to_8_bit(colors: NDArray[np.float32]) -> tuple[NDArray[np.uint8], float]:
    """Return colors scaled to 8 bits, the channel of the largest range to 0..255, and the factor of all channels."""
    low, high = colors.min(axis=(0, 1)), colors.max(axis=(0, 1))
    scale = 255 / (float((high - low).max()) or 255.0)
    return np.rint((colors - low) * scale).astype(np.uint8), scale


def apply_filter(levels: NDArray[np.uint8], spatial_radius: float, radius: float) -> NDArray[np.uint8]:
    """Return the levels to which the pixels converge: step 2."""
    with _opencv() as cv2:
        stop = (cv2.TERM_CRITERIA_COUNT + cv2.TERM_CRITERIA_EPS, MAX_ITERATIONS, 0)
        window = min(spatial_radius, float(max(levels.shape))), min(radius, MAX_COLOR_DISTANCE)
        return cv2.pyrMeanShiftFiltering(levels, *window, maxLevel=0, termcrit=stop)


def segment_filtered(
    levels: NDArray[np.uint8], piece_threshold: float, fusion_distance: float, min_size: int
) -> NDArray[np.int32]:
    """Return the label image of filtered levels: steps 3 to 5."""
    pieces = connected_pieces(levels, piece_threshold)
    rounds = partial(close_pairs, distance=fusion_distance), partial(pairs_of_small, min_size=min_size)
    return by_first_appearance(merge_pieces(pieces, levels, *rounds))


def connected_pieces(values: NDArray, threshold: float) -> NDArray[np.int32]:
    """Return the label image of pieces: they join adjacent pixels that differ by less than `threshold` per channel.

    Examples
    --------
    >>> connected_pieces(np.array([[[0], [1], [2], [9]]]), 1.5)
    array([[0, 0, 0, 1]], dtype=int32)
    """
    table = values.reshape(-1, values.shape[-1]).astype(np.float64)
    pairs = SiteGraph.grid(values.shape[:-1]).edges
    same = (np.abs(table[pairs[:, 0]] - table[pairs[:, 1]]) < threshold).all(axis=1)
    return connected_components(len(table), pairs[same]).reshape(values.shape[:-1])


def merge_pieces(pieces: NDArray[np.int32], values: NDArray, *choices: Choice) -> NDArray[np.int32]:
    """Return the label image of pieces merged in rounds, in which the mean of the values of a region is its mode."""
    modes = site_means(values, pieces)
    return merge_in_rounds(region_adjacency(pieces).edges, site_sizes(pieces), modes, *choices)[pieces]


def close_pairs(pairs: NDArray, sizes: NDArray, modes: NDArray[np.float64], distance: float) -> NDArray:
    """Return the adjacent regions with modes closer than `distance`: EDISON's TransitiveClosure."""
    return pairs[_mode_distances(modes, pairs) < distance]


def pairs_of_small(pairs: NDArray, sizes: NDArray, modes: NDArray[np.float64], min_size: int) -> NDArray:
    """Return each region below `min_size` with the adjacent one of the closest mode: EDISON's Prune."""
    both = np.concatenate([pairs, pairs[:, ::-1]])
    both = both[sizes[both[:, 0]] < min_size]
    both = both[np.argsort(both[:, 1], kind="stable")]  # of equal distances the lowest region
    return nearest_pairs(both, _mode_distances(modes, both))


def _mode_distances(modes: NDArray[np.float64], pairs: NDArray[np.int32]) -> NDArray[np.float64]:
    return np.linalg.norm(modes[pairs[:, 0]] - modes[pairs[:, 1]], axis=1)


@contextmanager
def _opencv() -> Iterator[ModuleType]:
    """Yield OpenCV limited to one thread, and restore its number of threads afterwards."""
    cv2 = import_extra("cv2", "mean_shift needs OpenCV: pip install 'spinseg[cv]'")
    n_threads = cv2.getNumThreads()
    cv2.setNumThreads(1)
    try:
        yield cv2
    finally:
        cv2.setNumThreads(n_threads)
