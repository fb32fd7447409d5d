"""Which sites touch, along how much boundary and across what contrast."""

from itertools import product
from typing import NamedTuple

import numpy as np
import scipy.sparse as sparse
from numpy.typing import ArrayLike, NDArray

from spinseg._validation import check_int, invalid
from spinseg.model.graph import SiteGraph


class RegionAdjacency(NamedTuple):
    """The graph of touching sites, with what lies between them, one number per edge.

    `boundary_length` counts the pairs of adjacent pixels with one in each site. `contrast` is the mean absolute
    difference over those pairs and over channels; None where no image was given.
    """

    graph: SiteGraph
    boundary_length: NDArray[np.int32]
    contrast: NDArray[np.float32] | None


def region_adjacency(sites: ArrayLike, contrast_of: ArrayLike | None = None) -> RegionAdjacency:
    """Edges between the sites that have pixels beside each other along an axis, in increasing order.

    Parameters
    ----------
    sites : array of int, any number of axes
        The site of every pixel; -1 outside.
    contrast_of : (*sites.shape) or (*sites.shape, n_channels) array, optional
        What the contrast is measured in, taken as it is: `Picture.colours`, say.

    Examples
    --------
    >>> touching = region_adjacency([[0, 0, 1], [2, 2, 1]], contrast_of=[[5, 5, 7], [9, 6, 6]])
    >>> touching.graph.edges.tolist(), touching.boundary_length.tolist(), touching.contrast.tolist()
    ([[0, 1], [0, 2], [1, 2]], [1, 2, 1], [2.0, 2.5, 0.0])
    """
    array, n_sites = checked_sites(sites)
    lower, upper, pixels = pairs_across(array)
    shape = (n_sites, n_sites)
    lengths = sparse.coo_array((np.ones(lower.size, np.int32), (lower, upper)), shape=shape).tocsr()
    lengths.sort_indices()
    rows = np.repeat(np.arange(n_sites, dtype=np.int32), np.diff(lengths.indptr))
    graph = SiteGraph(n_sites, np.stack([rows, lengths.indices], axis=1))
    if contrast_of is None:
        return RegionAdjacency(graph, lengths.data, None)
    values = per_pixel("contrast_of", contrast_of, array.shape)
    steps = np.abs(values[pixels[0]] - values[pixels[1]]).mean(axis=1)
    sums = sparse.coo_array((steps, (lower, upper)), shape=shape).tocsr()  # the same entries: zeros are kept
    sums.sort_indices()
    return RegionAdjacency(graph, lengths.data, (sums.data / lengths.data).astype(np.float32))


def edge_means(sites: NDArray[np.int32], edges: NDArray[np.int32], values: NDArray) -> NDArray[np.float64]:
    """Mean of a map along the common boundary of each edge, (n_edges,); edges in the order of `region_adjacency`.

    Of the two pixels of a pair across the boundary the larger value counts.

    Examples
    --------
    >>> edge_means(np.array([[0, 0, 1]]), np.array([[0, 1]]), np.array([[5.0, 3.0, 4.0]]))
    array([4.])
    """
    lower, upper, places = pairs_across(sites)
    found = edge_of_pairs(edges, lower, upper)
    largest = values.ravel()[places].max(axis=0)
    return np.bincount(found, largest, len(edges)) / np.bincount(found, minlength=len(edges))


def edge_of_pairs(edges: NDArray[np.int32], lower: NDArray[np.int32], upper: NDArray[np.int32]) -> NDArray[np.int64]:
    """Which edge each pair of touching sites is; edges in the order of `region_adjacency`."""
    stride = int(edges.max(initial=0)) + 1
    return np.searchsorted(edges.astype(np.int64) @ [stride, 1], lower.astype(np.int64) * stride + upper)


def grid_graph(shape: tuple[int, ...], *, connectivity: int = 1, inside: NDArray[np.bool_] | None = None) -> SiteGraph:
    """Pixels (or voxels) as sites, in reading order, joined to those beside them; edges in increasing order.

    Parameters
    ----------
    shape : tuple of int
    connectivity : int
        How many axes two neighbours may differ along: 1 for 4 neighbours in an image and 6 in a volume, as many as
        there are axes for 8 and 26.
    inside : array of bool, optional
        Which pixels are sites; all of them by default.

    Examples
    --------
    >>> grid_graph((2, 2)).edges.tolist()
    [[0, 1], [0, 2], [1, 3], [2, 3]]
    >>> grid_graph((2, 2), connectivity=2).n_edges
    6
    """
    if check_int("connectivity", connectivity, at_least=1) > len(shape):
        invalid("connectivity", f"be at most the {len(shape)} axes of the image", connectivity)
    index = np.arange(np.prod(shape, dtype=np.int64), dtype=np.int32).reshape(shape)
    if inside is not None:
        index = np.full(shape, -1, np.int32)
        index[inside] = np.arange(np.count_nonzero(inside), dtype=np.int32)
    steps = grid_steps(len(shape), connectivity)
    there = np.full((*shape, len(steps)), -1, np.int32)  # the neighbour at each step, -1 where there is none
    for s, step in enumerate(steps):
        here = tuple(slice(max(-d, 0), length - max(d, 0)) for d, length in zip(step, shape, strict=True))
        moved = tuple(slice(max(d, 0), length + min(d, 0)) for d, length in zip(step, shape, strict=True))
        there[..., s][here] = index[moved]
    joined = (there >= 0) & (index >= 0)[..., None]
    ends = np.empty((np.count_nonzero(joined), 2), np.int32)
    ends[:, 0] = np.broadcast_to(index[..., None], there.shape)[joined]
    ends[:, 1] = there[joined]
    return SiteGraph(int(index.max()) + 1, ends)


def grid_steps(n_axes: int, connectivity: int = 1) -> list[tuple[int, ...]]:
    """Steps from a pixel to the neighbours that come after it in reading order, in that order."""
    steps = [step for step in product((-1, 0, 1), repeat=n_axes) if 0 < np.count_nonzero(step) <= connectivity]
    return sorted(step for step in steps if step > (0,) * n_axes)


def checked_sites(sites: ArrayLike) -> tuple[NDArray[np.int32], int]:
    """The label image of sites as int32, and `n_sites`."""
    array = np.asarray(sites)
    if array.dtype.kind not in "iu":
        invalid("sites", "be whole numbers", array.dtype.name)
    if array.size == 0 or array.min() < -1 or array.max() < 0:
        invalid("sites", "number pixels from 0, some of them, with -1 outside", array)
    return array.astype(np.int32, copy=False), int(array.max()) + 1


def per_pixel(name: str, values: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Values with or without a last axis of channels, as (n_pixels, n_channels)."""
    array = np.asarray(values, dtype=np.float32)
    if array.shape != shape and array.shape[:-1] != shape:
        invalid(name, f"have the sites' shape {shape}, and one axis of channels or none", array.shape)
    return array.reshape(int(np.prod(shape)), -1)


def pairs_across(sites: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]:
    """Pairs of adjacent pixels in different sites: their lower and upper site, and their places, (2, n_pairs)."""
    flat = sites.ravel()
    pixels = []
    for axis in range(sites.ndim):
        step = int(np.prod(sites.shape[axis + 1 :]))  # from a pixel to the next along the axis
        head = (slice(None),) * axis
        here, there = sites[(*head, slice(-1))], sites[(*head, slice(1, None))]
        across = np.zeros(sites.shape, bool)
        across[(*head, slice(-1))] = (here != there) & (here >= 0) & (there >= 0)
        first = np.flatnonzero(across)
        pixels.append(np.stack([first, first + step]))
    places = np.concatenate(pixels, axis=1)
    ends = flat[places]
    return ends.min(axis=0), ends.max(axis=0), places
