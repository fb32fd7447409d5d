"""Superpixels: the sites of an image."""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import ndimage
from skimage.measure import label
from skimage.morphology import local_minima
from skimage.segmentation import slic, watershed

from spinseg._validation import check_choice, check_int, check_real, finite_array, integer_array, invalid
from spinseg.graph.adjacency import edge_saddles, region_adjacency
from spinseg.graph.merging import merge_in_rounds, nearest_pairs
from spinseg.image.features import gradient_magnitude, site_means, site_sizes
from spinseg.image.kernels.pixels import drain
from spinseg.image.layout import ChannelAxis, Ints, Mask
from spinseg.image.picture import Picture, as_picture
from spinseg.partition.numbering import by_first_appearance

KINDS = ("slic", "watershed", "grid", "pixels")
PIXELS_PER_SITE = 60  # as in the paper
RELIEF_SCALE = 1.0  # pixels, of the gradient that the watershed floods
SLIC_ITERATIONS = 5  # half of skimage's default: later iterations move few pixels
MIN_SIZE_FRACTION = 0.25  # of the mean size of a site: smaller pieces are merged into a neighbor
MAX_SHORTFALL, MAX_ROUNDS = 0.03, 4  # of the watershed: as a share of the sites asked for, and attempts to reach them


def superpixels(
    image: Picture | ArrayLike,
    *,
    kind: str | ArrayLike = "slic",
    n_sites: int | None = None,
    pixels_per_site: float = PIXELS_PER_SITE,
    mask: ArrayLike | None = None,
    compactness: float | None = None,
    relief: ArrayLike | None = None,
    channel_axis: ChannelAxis = "auto",
) -> NDArray[np.int32]:
    """Return the site of every pixel, numbered 0..n-1 in row-major order of first pixels; -1 outside the mask.

    Every site is connected along the axes (4 neighbors in an image, 6 in a volume). Pieces smaller than a quarter of
    the mean size are merged into the adjacent site of the nearest mean color.

    Parameters
    ----------
    image : Picture or array
    kind : {"slic", "watershed", "grid", "pixels"} or label image
        SLIC [1]_; watershed from one marker in each cell of a grid [2]_; rectangles; every pixel a site; or a label
        image of your own, negative outside, which is only renumbered.
    n_sites : int, optional
        Approximate number of sites; by default the number of pixels over `pixels_per_site`. "watershed" then
        returns 15 to 45 percent fewer, since small pieces are merged; a number that you give it meets within a few
        percent.
    mask : (*shape) array of bool, optional
        False where there shall be no sites. Masked and transparent pixels of the image are excluded as well.
    compactness : float
        For "slic" and "watershed": the weight of compact shape against color; by default 10 for "slic", which suits
        CIELAB, and 0 for "watershed".
    relief : (*shape) array, optional
        The relief that "watershed" floods; by default the magnitude of the color gradient.
    channel_axis : int, None or "auto"
        As in `as_picture`.

    Returns
    -------
    array of int32, the shape of the image

    References
    ----------
    .. [1] Achanta et al., SLIC superpixels, PAMI 2012. doi:10.1109/TPAMI.2012.120
    .. [2] Machairas et al., Waterpixels, IEEE Trans. Image Processing 2015. doi:10.1109/TIP.2015.2451011

    Examples
    --------
    >>> import numpy as np
    >>> import spinseg as ss
    >>> ss.superpixels(np.zeros((2, 4)), kind="grid", n_sites=2)
    array([[0, 0, 1, 1],
           [0, 0, 1, 1]], dtype=int32)
    """
    picture = as_picture(image, channel_axis=channel_axis, mask=mask)
    inside = picture.inside
    if not isinstance(kind, str):
        return _renumber_given(kind, picture.shape, inside)
    check_choice("kind", kind, KINDS)
    compactness = (10.0 if kind == "slic" else 0.0) if compactness is None else compactness
    compactness = check_real("compactness", compactness, **({"above": 0} if kind == "slic" else {"at_least": 0}))
    n_inside = int(np.prod(picture.shape)) if inside is None else int(np.count_nonzero(inside))
    per_site = check_real("pixels_per_site", pixels_per_site, above=0)
    target = max(1, round(n_inside / per_site)) if n_sites is None else check_int("n_sites", n_sites, at_least=1)
    if kind == "pixels":
        if n_sites is not None:
            invalid("n_sites", "be None where every pixel is a site", n_sites)
        return _renumber(np.arange(np.prod(picture.shape)).reshape(picture.shape), inside)
    box = (slice(None),) if inside is None else ndimage.find_objects(inside.astype(np.uint8))[0]
    colors = picture.colors[box]
    n_pixels = int(np.prod(colors.shape[:-1]))
    relief = None if relief is None else finite_array("relief", relief, picture.shape)[box]
    sites, asked = np.full(picture.shape, -1), float(target)
    for _ in range(MAX_ROUNDS):
        n_pieces = min(n_pixels, round(asked * n_pixels / n_inside))
        pieces = _pieces(kind, colors, n_pieces, compactness, relief)
        pieces = label(pieces + 1 if inside is None else np.where(inside[box], pieces + 1, 0), connectivity=1) - 1
        merged = _merge_fragments(pieces, colors, MIN_SIZE_FRACTION * n_inside / target)
        n_found = np.unique(merged[merged >= 0]).size
        if n_sites is None or kind != "watershed" or n_found >= (1 - MAX_SHORTFALL) * target:
            break
        asked *= target / n_found  # small catchment basins were merged
    sites[box] = merged
    return _renumber(sites, inside)


def _renumber_given(sites: ArrayLike, shape: tuple[int, ...], inside: Mask | None) -> Ints:
    """Return a label image that the caller passed, renumbered."""
    array = integer_array("sites", sites)
    if array.shape != shape:
        invalid("sites", f"have the image's shape {shape}", array.shape)
    inside = array >= 0 if inside is None else (array >= 0) & inside
    if not inside.any():
        invalid("sites", "number some pixel inside from 0", array)
    return _renumber(array, inside)


def _pieces(
    kind: str, colors: NDArray[np.float32], n_sites: int, compactness: float, relief: NDArray | None
) -> NDArray:
    """Return about `n_sites` pieces of an image, numbered from 0; they need not be connected."""
    shape = colors.shape[:-1]
    if kind == "slic":
        value_range = float(np.ptp(colors)) or 1.0  # skimage scales colors to 0..1, and so the compactness
        return slic(
            colors,
            n_segments=n_sites,
            compactness=compactness / value_range,
            max_num_iter=SLIC_ITERATIONS,
            convert2lab=False,
            enforce_connectivity=False,
            channel_axis=-1,
            start_label=0,
        )
    cells = np.zeros(shape, np.int64)
    for axis, count in cells_per_axis(shape, n_sites).items():
        index = np.arange(shape[axis]) * count // shape[axis]
        cells = cells * count + index.reshape([-1 if other == axis else 1 for other in range(len(shape))])
    if kind == "grid":
        return cells
    return seeded_watershed(gradient_magnitude(colors, RELIEF_SCALE) if relief is None else relief, cells, compactness)


def seeded_watershed(relief: NDArray, cells: NDArray, compactness: float = 0.0) -> NDArray:
    """Return for each pixel the cell whose lowest pixel floods it in a watershed; cells are numbered from 0."""
    n_cells = int(cells.max()) + 1
    markers = np.zeros(cells.shape, np.int32)
    lowest = np.transpose(ndimage.minimum_position(relief, cells, np.arange(n_cells)))
    markers[tuple(lowest)] = np.arange(1, n_cells + 1)
    return watershed(relief, markers, compactness=compactness / 100) - 1


def basins(relief: NDArray, depth: float, max_sites: int, inside: Mask | None = None) -> Ints:
    """Return the basins of a relief that are at least so deep, numbered as in `superpixels`; -1 outside.

    Where there are more than `max_sites`, the least depth is doubled until there are not. Every part of the mask has
    one at least.
    """
    relief = np.asarray(relief, np.float32)
    if inside is not None:
        relief = np.where(inside, relief, relief[inside].max() + 2 * depth)
    # Not `h_minima`, which marks a flat bottom in many places.
    minima = label(local_minima(filled(relief, depth), allow_borders=True), connectivity=2)
    if minima.max() == 0:  # a flat relief
        minima[...] = 1
    found = watershed(relief, minima, mask=inside)
    pieces = label(found if inside is None else np.where(inside, found + 1, 0), connectivity=1) - 1
    if minima.max() > max_sites:
        pieces = np.append(_deeper(pieces, relief, depth, max_sites), -1)[pieces]
    return _renumber(pieces, inside)


def filled(relief: NDArray[np.float32], depth: float) -> NDArray[np.float32]:
    """Return a relief whose basins are filled up by `depth`, or to their lowest saddles, where that is less.

    Pixels touch along the axes and the diagonals. This is scikit-image's `reconstruction` by erosion, which sorts all
    pixels first and takes more than ten times as long.
    """
    ground = np.pad(relief, 1, constant_values=np.inf)
    level = ground + np.float32(depth)
    strides = np.cumprod([1, *ground.shape[:0:-1]])[::-1]
    around = np.array(list(product((-1, 0, 1), repeat=relief.ndim))) @ strides
    queue, is_waiting = np.empty(ground.size, np.int64), np.zeros(ground.size, bool)
    drain(level.ravel(), ground.ravel(), around[around > 0], queue, is_waiting)
    return level[(slice(1, -1),) * relief.ndim]


def _deeper(sites: Ints, relief: NDArray[np.float32], depth: float, max_sites: int) -> Ints:
    """Return the basin that each basin is part of when they must be deeper: `depth` is doubled until few are left.

    As water rises, two basins meet at their lowest saddle, and the one with the higher bottom ends: that is its depth.
    """
    graph = region_adjacency(sites)
    edges = graph.edges
    saddles = edge_saddles(sites, edges, relief)
    bottoms = np.asarray(ndimage.minimum(relief, sites, np.arange(sites.max() + 1)))
    depths, lowest = np.full(len(edges), np.nan), list(range(len(bottoms)))  # NaN: of basins that had met before

    def root(basin: int) -> int:
        while lowest[basin] != basin:
            lowest[basin] = basin = lowest[lowest[basin]]
        return basin

    for edge in np.argsort(saddles, kind="stable"):
        low, high = sorted(map(root, edges[edge].tolist()), key=bottoms.__getitem__)
        if low != high:
            lowest[high], depths[edge] = low, saddles[edge] - bottoms[high]
    n_parts = len(bottoms) - np.isfinite(depths).sum()
    while (depths >= depth).sum() > max(max_sites - n_parts, 0):
        depth *= 2
    return graph.components(depths < depth)


def cells_per_axis(shape: tuple[int, ...], n_sites: int) -> dict[int, int]:
    """Return the number of cells along each axis, for about `n_sites` nearly cubic cells.

    The shortest axis is divided first, and the longer ones make up for its rounding.
    """
    counts = {}
    pixels_left, sites_left = float(np.prod(shape)), float(n_sites)
    for done, axis in enumerate(np.argsort(shape, kind="stable").tolist()):
        side = (pixels_left / sites_left) ** (1 / (len(shape) - done))
        counts[axis] = int(np.clip(round(shape[axis] / side), 1, shape[axis]))
        pixels_left, sites_left = pixels_left / shape[axis], max(1.0, sites_left / counts[axis])
    return counts


def _merge_fragments(pieces: NDArray, colors: NDArray[np.float32], min_size: float) -> NDArray:
    """Merge each connected piece below a size into the adjacent one of the nearest mean color.

    In each round all fragments choose at the same time, and connected choices become one piece, until the only
    fragments left have no neighbor.
    """
    sizes, means = site_sizes(pieces), site_means(colors, pieces)
    if sizes.min() >= min_size:
        return pieces

    def nearest_neighbors(edges: NDArray, sizes: NDArray, means: NDArray) -> NDArray:
        pairs = np.concatenate([edges, edges[:, ::-1]])
        pairs = pairs[sizes[pairs[:, 0]] < min_size]
        return nearest_pairs(pairs, np.square(means[pairs[:, 0]] - means[pairs[:, 1]]).sum(axis=1))

    group = merge_in_rounds(region_adjacency(pieces).edges, sizes, means, nearest_neighbors)
    return np.append(group, -1)[pieces]


def _renumber(sites: NDArray, inside: Mask | None) -> Ints:
    """Return the same sites numbered 0..n-1 in row-major order of their first pixels; -1 outside."""
    if inside is None:
        return by_first_appearance(sites)
    numbered = np.full(sites.shape, -1, np.int32)
    numbered[inside] = by_first_appearance(sites[inside])
    return numbered
