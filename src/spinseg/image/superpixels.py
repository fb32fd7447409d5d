"""From an image to its sites."""

from collections.abc import Callable

import numpy as np
import scipy.sparse as sparse
from numpy.typing import ArrayLike, NDArray
from scipy import ndimage
from skimage.measure import label
from skimage.segmentation import felzenszwalb, slic, watershed

from spinseg._validation import check_choice, check_int, check_real, finite_array, integer_array, invalid
from spinseg.image.adjacency import region_adjacency
from spinseg.image.features import gradient, site_means, site_sizes
from spinseg.image.picture import ChannelAxis, Picture, as_picture

PIXELS_PER_SITE = 60  # as in the paper
RELIEF_SCALE = 1.0  # pixels
SLIC_ROUNDS = 5  # half of skimage's: later rounds move few pixels
SMALLEST = 0.25  # of the mean size: what is smaller is a fragment, not a site


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
    """The site of every pixel, numbered 0..n-1 in reading order; -1 outside the mask. Every site is connected.

    Pixels are connected along the axes: 4 neighbours in an image, 6 in a volume. Pieces smaller than a quarter of the
    mean size join the touching site of the nearest mean colour.

    Parameters
    ----------
    image : Picture or array
    kind : {"slic", "watershed", "felzenszwalb", "grid", "pixels"} or label image
        SLIC [1]_; watershed from one marker in each cell of a grid [2]_; Felzenszwalb and Huttenlocher's graph-based
        sites [3]_ (not for volumes); rectangles; every pixel a site; or sites of your own, taken as they are, with a
        negative number outside.
    n_sites : int, optional
        About how many; one for `pixels_per_site` by default. A flat image has no more for "felzenszwalb" than it has
        colours.
    mask : (*shape) array of bool, optional
        Where sites are wanted; there are none where the image is masked or transparent.
    compactness : float
        For "slic" and "watershed": how far a site prefers being round to following colours; by default 10 for "slic",
        which suits CIELAB, and 0 for "watershed".
    relief : (*shape) array, optional
        What "watershed" floods, in the image's shape; by default the length of the colour gradient.
    channel_axis : int, None or "auto"
        As in `as_picture`.

    References
    ----------
    .. [1] Achanta et al., SLIC superpixels, PAMI 2012. :DOI:`10.1109/TPAMI.2012.120`
    .. [2] Machairas et al., Waterpixels, IEEE Trans. Image Processing 2015. :DOI:`10.1109/TIP.2015.2451011`
    .. [3] Felzenszwalb and Huttenlocher, Efficient graph-based image segmentation, IJCV 2004.
           :DOI:`10.1023/B:VISI.0000022288.19776.77`

    Examples
    --------
    >>> superpixels(np.zeros((2, 4)), kind="grid", n_sites=2)
    array([[0, 0, 1, 1],
           [0, 0, 1, 1]], dtype=int32)
    """
    picture = as_picture(image, channel_axis=channel_axis, mask=mask)
    inside = picture.inside
    if not isinstance(kind, str):
        return _own_sites(kind, picture.shape, inside)
    check_choice("kind", kind, KINDS)
    compactness = (10.0 if kind == "slic" else 0.0) if compactness is None else compactness
    compactness = check_real("compactness", compactness, **({"above": 0} if kind == "slic" else {"at_least": 0}))
    n_inside = int(np.prod(picture.shape)) if inside is None else int(np.count_nonzero(inside))
    wanted = max(1, round(n_inside / pixels_per_site)) if n_sites is None else check_int("n_sites", n_sites, at_least=1)
    if kind == "pixels":
        if n_sites is not None:
            invalid("n_sites", "be None where every pixel is a site", n_sites)
        return _numbered(np.arange(np.prod(picture.shape)).reshape(picture.shape), inside)
    if kind == "felzenszwalb" and len(picture.shape) == 3:
        invalid("kind", "be another than 'felzenszwalb' for a volume", kind)
    box = (slice(None),) if inside is None else ndimage.find_objects(inside.astype(np.uint8))[0]
    colours = picture.colours[box]
    n_pixels = int(np.prod(colours.shape[:-1]))
    floor = None if relief is None else finite_array("relief", relief, picture.shape)[box]
    pieces = _KINDS[kind](colours, min(n_pixels, round(wanted * n_pixels / n_inside)), compactness, floor)
    pieces = label(pieces + 1 if inside is None else np.where(inside[box], pieces + 1, 0), connectivity=1) - 1
    sites = np.full(picture.shape, -1)
    sites[box] = _without_fragments(pieces, colours, SMALLEST * n_inside / wanted)
    return _numbered(sites, inside)


def _own_sites(sites: ArrayLike, shape: tuple[int, ...], inside: NDArray[np.bool_] | None) -> NDArray[np.int32]:
    """Sites that a caller brings, numbered anew."""
    array = integer_array("sites", sites)
    if array.shape != shape:
        invalid("sites", f"have the image's shape {shape}", array.shape)
    within = array >= 0 if inside is None else (array >= 0) & inside
    if not within.any():
        invalid("sites", "number some pixel inside from 0", array)
    dense = np.full(shape, -1)
    dense[within] = np.unique(array[within], return_inverse=True)[1].ravel()
    return _numbered(dense, within)


def _slic(colours: NDArray[np.float32], n_sites: int, compactness: float, relief: NDArray | None) -> NDArray:
    """SLIC in the units of `colours`: skimage stretches them to 0..1, which the compactness undoes."""
    spread = float(np.ptp(colours)) or 1.0
    return slic(
        colours,
        n_segments=n_sites,
        compactness=compactness / spread,
        max_num_iter=SLIC_ROUNDS,
        convert2lab=False,
        enforce_connectivity=False,
        channel_axis=-1,
        start_label=0,
    )


def _watershed(colours: NDArray[np.float32], n_sites: int, compactness: float, relief: NDArray | None) -> NDArray:
    """Watershed from the lowest pixel of each cell of a grid."""
    relief = gradient(colours, RELIEF_SCALE) if relief is None else relief
    return flooded(relief, _grid(colours, n_sites, compactness, None), compactness)


def flooded(relief: NDArray, cells: NDArray, compactness: float = 0.0) -> NDArray:
    """The cell from whose lowest pixel each pixel is flooded; cells are numbered from 0."""
    n_cells = int(cells.max()) + 1
    markers = np.zeros(cells.shape, np.int32)
    lowest = np.transpose(ndimage.minimum_position(relief, cells, np.arange(n_cells)))
    markers[tuple(lowest)] = np.arange(1, n_cells + 1)
    return watershed(relief, markers, compactness=compactness / 100) - 1


def _felzenszwalb(colours: NDArray[np.float32], n_sites: int, compactness: float, relief: NDArray | None) -> NDArray:
    """Felzenszwalb sites at the scale that gives about `n_sites`, found by halving (fewer sites at larger scales)."""
    smallest = max(1, round(SMALLEST * colours[..., 0].size / n_sites))
    low, high = 1e-2, 1e4
    for _ in range(8):
        scale = np.sqrt(low * high)
        sites = felzenszwalb(colours / 100, scale=scale, sigma=0.5, min_size=smallest, channel_axis=-1)
        n_found = int(sites.max()) + 1
        if abs(n_found - n_sites) <= 0.1 * n_sites:
            break
        low, high = (scale, high) if n_found > n_sites else (low, scale)
    return sites


def _grid(colours: NDArray[np.float32], n_sites: int, compactness: float, relief: NDArray | None) -> NDArray:
    """Rectangles as nearly square as the image allows: the shortest axis is cut first, the others make up for it."""
    shape = colours.shape[:-1]
    cells = np.zeros(shape, np.int64)
    for axis, count in grid_counts(shape, n_sites).items():
        place = np.arange(shape[axis]) * count // shape[axis]
        cells = cells * count + place.reshape([-1 if other == axis else 1 for other in range(len(shape))])
    return cells


def grid_counts(shape: tuple[int, ...], n_sites: int) -> dict[int, int]:
    """Into how many cells each axis is cut, so that there are about `n_sites`; the shortest axis comes first."""
    counts = {}
    pixels_left, sites_left = float(np.prod(shape)), float(n_sites)
    for done, axis in enumerate(np.argsort(shape, kind="stable").tolist()):
        side = (pixels_left / sites_left) ** (1 / (len(shape) - done))
        counts[axis] = int(np.clip(round(shape[axis] / side), 1, shape[axis]))
        pixels_left, sites_left = pixels_left / shape[axis], max(1.0, sites_left / counts[axis])
    return counts


_KINDS: dict[str, Callable[[NDArray[np.float32], int, float, NDArray | None], NDArray]] = {
    "slic": _slic,
    "watershed": _watershed,
    "felzenszwalb": _felzenszwalb,
    "grid": _grid,
}
KINDS = (*_KINDS, "pixels")


def _without_fragments(pieces: NDArray, colours: NDArray[np.float32], smallest: float) -> NDArray:
    """Connected pieces, those below the smallest size joined to the touching one of the nearest mean colour.

    Round by round, all fragments choose at once and what chose each other becomes one piece, until the only fragments
    left touch nothing.
    """
    sizes, means = site_sizes(pieces), site_means(colours, pieces)
    if sizes.min() >= smallest:
        return pieces
    edges = region_adjacency(pieces).graph.edges
    group = np.arange(sizes.size)
    while True:
        ends = np.concatenate([edges, edges[:, ::-1]])
        ends = ends[sizes[ends[:, 0]] < smallest]
        if not len(ends):
            return np.append(group, -1)[pieces]
        gaps = np.square(means[ends[:, 0]] - means[ends[:, 1]]).sum(axis=1)
        ends = ends[np.lexsort((gaps, ends[:, 0]))]
        chosen = ends[np.diff(ends[:, 0], prepend=-1) > 0]  # the nearest of each fragment
        joins = sparse.coo_array((np.ones(len(chosen)), (chosen[:, 0], chosen[:, 1])), shape=(sizes.size, sizes.size))
        n_merged, merged = sparse.csgraph.connected_components(joins, directed=False)
        sums = [np.bincount(merged, sizes * channel, n_merged) for channel in means.T]
        sizes = np.bincount(merged, sizes, n_merged)
        means = np.stack(sums, axis=1) / sizes[:, None]
        edges = merged[edges]
        edges = edges[edges[:, 0] != edges[:, 1]]
        group = merged[group]


def _numbered(sites: NDArray, inside: NDArray[np.bool_] | None) -> NDArray[np.int32]:
    """The same sites numbered 0..n-1 in reading order of their first pixel; -1 outside."""
    flat = sites.ravel() if inside is None else sites[inside]
    first = np.full(int(flat.max()) + 1, flat.size)
    first[flat[::-1]] = np.arange(flat.size)[::-1]  # of equal places the last written stays: the first in reading order
    rank = np.empty(first.size, np.int32)
    rank[np.argsort(first, kind="stable")] = np.arange(first.size, dtype=np.int32)
    numbered = np.full(sites.shape, -1, np.int32)
    numbered[... if inside is None else inside] = rank[flat].reshape(-1 if inside is not None else sites.shape)
    return numbered
