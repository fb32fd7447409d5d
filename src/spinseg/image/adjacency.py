"""Graphs of adjacent sites: region adjacency, with boundary length and contrast, and pixel grids."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np
import scipy.sparse as sparse
from numpy.typing import ArrayLike, NDArray

from spinseg._validation import check_int, integer_array, invalid
from spinseg.model.graph import SiteGraph


class RegionAdjacency(NamedTuple):
    """The graph of adjacent sites, with two numbers for each edge.

    `boundary_length` counts the pairs of adjacent pixels with one in each site. `contrast` is the mean absolute
    difference over those pairs and over channels; it is None if no image was given.
    """

    graph: SiteGraph
    boundary_length: NDArray[np.int32]
    contrast: NDArray[np.float32] | None


def region_adjacency(sites: ArrayLike, contrast_of: ArrayLike | None = None) -> RegionAdjacency:
    """Return the graph of sites that have pixels beside each other along an axis; edges are sorted.

    Parameters
    ----------
    sites : array of int, any number of axes
        The site of every pixel; -1 outside.
    contrast_of : (*sites.shape) or (*sites.shape, n_channels) array, optional
        The values whose contrast is measured, for example `Picture.colors`.

    Examples
    --------
    >>> adjacency = region_adjacency([[0, 0, 1], [2, 2, 1]], contrast_of=[[5, 5, 7], [9, 6, 6]])
    >>> adjacency.graph.edges.tolist(), adjacency.boundary_length.tolist(), adjacency.contrast.tolist()
    ([[0, 1], [0, 2], [1, 2]], [1, 2, 1], [2.0, 2.5, 0.0])
    """
    array, n_sites = checked_sites(sites)
    lower, upper, pixels = boundary_pairs(array)
    shape = (n_sites, n_sites)
    lengths = sparse.coo_array((np.ones(lower.size, np.int32), (lower, upper)), shape=shape).tocsr()
    lengths.sort_indices()
    rows = np.repeat(np.arange(n_sites, dtype=np.int32), np.diff(lengths.indptr))
    graph = SiteGraph(n_sites, np.stack([rows, lengths.indices], axis=1))
    if contrast_of is None:
        return RegionAdjacency(graph, lengths.data, None)
    values = pixel_table("contrast_of", contrast_of, array.shape)
    differences = np.abs(values[pixels[0]] - values[pixels[1]]).mean(axis=1)
    sums = sparse.coo_array((differences, (lower, upper)), shape=shape).tocsr()  # zeros are kept: the same entries
    sums.sort_indices()
    return RegionAdjacency(graph, lengths.data, (sums.data / lengths.data).astype(np.float32))


def edge_means(sites: NDArray[np.int32], edges: NDArray[np.int32], values: NDArray) -> NDArray[np.float64]:
    """Return the mean of a map along the boundary of each edge, (n_edges,); edges are those of `region_adjacency`.

    Of the two pixels of a pair across the boundary the larger value counts.

    Examples
    --------
    >>> edge_means(np.array([[0, 0, 1]]), np.array([[0, 1]]), np.array([[5.0, 3.0, 4.0]]))
    array([4.])
    """
    lower, upper, pixels = boundary_pairs(sites)
    edge = edge_index(edges, lower, upper)
    largest = values.ravel()[pixels].max(axis=0)
    return np.bincount(edge, largest, len(edges)) / np.bincount(edge, minlength=len(edges))


def edge_index(edges: NDArray[np.int32], lower: NDArray[np.int32], upper: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return the index of the edge that joins each pair of adjacent sites; edges are those of `region_adjacency`."""
    stride = int(edges.max(initial=0)) + 1
    return np.searchsorted(edges.astype(np.int64) @ [stride, 1], lower.astype(np.int64) * stride + upper)


def grid_graph(shape: tuple[int, ...], *, connectivity: int = 1, inside: NDArray[np.bool_] | None = None) -> SiteGraph:
    """Return the graph whose sites are the pixels (or voxels) in row-major order; edges are sorted.

    Parameters
    ----------
    shape : tuple of int
    connectivity : int
        Along how many axes two neighbors may differ: 1 for 4 neighbors in an image and 6 in a volume, the number of
        axes for 8 and 26.
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
    offsets = _neighbor_offsets(len(shape), connectivity)
    neighbor = np.full((*shape, len(offsets)), -1, np.int32)  # -1 where there is none
    for k, offset in enumerate(offsets):
        here = tuple(slice(max(-d, 0), length - max(d, 0)) for d, length in zip(offset, shape, strict=True))
        there = tuple(slice(max(d, 0), length + min(d, 0)) for d, length in zip(offset, shape, strict=True))
        neighbor[..., k][here] = index[there]
    joined = (neighbor >= 0) & (index >= 0)[..., None]
    edges = np.empty((np.count_nonzero(joined), 2), np.int32)
    edges[:, 0] = np.broadcast_to(index[..., None], neighbor.shape)[joined]
    edges[:, 1] = neighbor[joined]
    return SiteGraph(int(index.max()) + 1, edges)


def _neighbor_offsets(n_axes: int, connectivity: int) -> list[tuple[int, ...]]:
    """Return the offsets from a pixel to those neighbours that follow it in row-major order, sorted."""
    offsets = product((-1, 0, 1), repeat=n_axes)
    return [d for d in offsets if d > (0,) * n_axes and np.count_nonzero(d) <= connectivity]


def checked_sites(sites: ArrayLike) -> tuple[NDArray[np.int32], int]:
    """Return the label image of sites as int32, and the number of sites."""
    array = integer_array("sites", sites)
    if array.size == 0 or array.min() < -1 or array.max() < 0:
        invalid("sites", "number pixels from 0, some of them, with -1 outside", array)
    return array.astype(np.int32, copy=False), int(array.max()) + 1


def pixel_table(name: str, values: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Return values with or without a last axis of channels as (n_pixels, n_channels)."""
    array = np.asarray(values, dtype=np.float32)
    if array.shape != shape and array.shape[:-1] != shape:
        invalid(name, f"have the sites' shape {shape}, and one axis of channels or none", array.shape)
    return array.reshape(int(np.prod(shape)), -1)


def boundary_pairs(sites: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]:
    """Return all pairs of adjacent pixels in different sites: lower site, upper site, flat indices (2, n_pairs)."""
    parts = []
    for axis in range(sites.ndim):
        stride = int(np.prod(sites.shape[axis + 1 :]))  # from a pixel to the next along the axis
        head = (slice(None),) * axis
        here, there = sites[(*head, slice(-1))], sites[(*head, slice(1, None))]
        across = np.zeros(sites.shape, bool)
        across[(*head, slice(-1))] = (here != there) & (here >= 0) & (there >= 0)
        first = np.flatnonzero(across)
        parts.append(np.stack([first, first + stride]))
    pixels = np.concatenate(parts, axis=1)
    pairs = sites.ravel()[pixels]
    return pairs.min(axis=0), pairs.max(axis=0), pixels
