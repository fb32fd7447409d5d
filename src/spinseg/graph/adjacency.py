"""The graph of the regions of a label image, and the means of maps along its edges."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinseg._validation import invalid
from spinseg.graph.edges import boundary_pairs, checked_sites, site_edges
from spinseg.graph.site_graph import SiteGraph
from spinseg.partition.numbering import checked_labels


def region_adjacency(sites: ArrayLike) -> SiteGraph:
    """Return the graph of sites that have pixels beside each other along an axis; edges are sorted.

    The weight of an edge is the length of the common boundary, the number of such pairs of pixels. As opposed to
    `SiteGraph.from_regions`, the numbers of the sites stay, and a number without a pixel is a site without edges.

    Parameters
    ----------
    sites : array of int, any number of axes
        The site of every pixel; -1 outside.

    Returns
    -------
    SiteGraph

    Examples
    --------
    >>> import spinseg as ss
    >>> graph = ss.region_adjacency([[0, 0, 1], [2, 2, 1]])
    >>> graph.edges.tolist(), graph.length.tolist()
    ([[0, 1], [0, 2], [1, 2]], [1.0, 2.0, 1.0])
    """
    return SiteGraph(*site_edges(*checked_sites(sites)))


def regions_of(labels: ArrayLike, graph: SiteGraph) -> NDArray[np.int32]:
    """The region of every site, numbered by first appearance: the connected pieces of the clusters.

    Examples
    --------
    >>> import spinseg as ss
    >>> ss.regions_of([0, 1, 0], ss.SiteGraph(3, [[0, 1], [1, 2]]))
    array([0, 1, 2], dtype=int32)
    """
    return graph.pieces(checked_labels("labels", labels, graph.n_sites))


def edge_means(sites: NDArray[np.int32], edges: NDArray[np.int32], values: NDArray) -> NDArray[np.float64]:
    """Return the mean of a map along the boundary of each edge, (n_edges,); edges are those of `region_adjacency`.

    Of the two pixels of a pair across the boundary the larger value counts.
    """
    edge, largest = _across_edges(sites, edges, values)
    return np.bincount(edge, largest, len(edges)) / np.bincount(edge, minlength=len(edges))


def edge_saddles(sites: NDArray[np.int32], edges: NDArray[np.int32], values: NDArray) -> NDArray[np.float64]:
    """Return the lowest place of a map along the boundary of each edge, (n_edges,), as `edge_means` has the mean."""
    edge, largest = _across_edges(sites, edges, values)
    saddles = np.full(len(edges), np.inf)
    np.minimum.at(saddles, edge, largest)
    return saddles


def _across_edges(sites: NDArray[np.int32], edges: NDArray[np.int32], values: NDArray) -> tuple[NDArray, NDArray]:
    """Return the edge that each pair of adjacent pixels in different sites belongs to, and its larger value."""
    lower, upper, pixels = boundary_pairs(sites)
    return edge_index(edges, lower, upper), values.ravel()[pixels].max(axis=0)


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
