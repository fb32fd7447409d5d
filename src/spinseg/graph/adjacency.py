"""Graphs of adjacent sites: region adjacency, with boundary length and contrast, and pixel grids."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sparse
from numpy.typing import ArrayLike, NDArray

from spinseg._validation import invalid
from spinseg.graph.edges import boundary_pairs, checked_sites, counted_pairs
from spinseg.graph.site_graph import SiteGraph


class RegionAdjacency(NamedTuple):
    """The graph of adjacent sites, with two numbers for each edge.

    `boundary_length` counts the pairs of adjacent pixels with one in each site. `contrast` is the mean absolute
    difference over those pairs and over channels; it is None if no image was given.

    Examples
    --------
    >>> import spinseg as ss
    >>> found = ss.region_adjacency([[0, 0, 1], [2, 2, 1]])
    >>> found.graph.edges.tolist(), found.boundary_length.tolist()
    ([[0, 1], [0, 2], [1, 2]], [1, 2, 1])
    """

    graph: SiteGraph
    boundary_length: NDArray[np.int32]
    contrast: NDArray[np.float32] | None


grid_graph = SiteGraph.grid


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
    edges, lengths = counted_pairs(lower, upper, n_sites)
    graph = SiteGraph(n_sites, edges)
    if contrast_of is None:
        return RegionAdjacency(graph, lengths, None)
    values = pixel_table("contrast_of", contrast_of, array.shape)
    differences = np.abs(values[pixels[0]] - values[pixels[1]]).mean(axis=1)
    sums = sparse.coo_array((differences, (lower, upper)), shape=(n_sites, n_sites)).tocsr()
    sums.sort_indices()  # zeros are kept: the same entries
    return RegionAdjacency(graph, lengths, (sums.data / lengths).astype(np.float32))


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


def pixel_table(name: str, values: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Return values with or without a last axis of channels as (n_pixels, n_channels)."""
    array = np.asarray(values, dtype=np.float32)
    if array.shape != shape and array.shape[:-1] != shape:
        invalid(name, f"have the sites' shape {shape}, and one axis of channels or none", array.shape)
    return array.reshape(int(np.prod(shape)), -1)
