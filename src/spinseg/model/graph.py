"""The graph of sites."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sparse
from numpy.typing import ArrayLike, NDArray

from spinseg._validation import check_array, check_int, integer_array, invalid
from spinseg._words import counted

MAX_SITES = 2**31 - 1  # sites are numbered in 32 bits


class SiteGraph:
    """Sites 0..n_sites-1 and the undirected edges between them.

    The edges are kept in the order given, since couplings are numbers per edge, and as compressed rows: the neighbors
    of site i are `neighbors[start[i]:start[i + 1]]`, in increasing order, reached over the edges
    `edge_of[start[i]:start[i + 1]]`.

    Parameters
    ----------
    n_sites : int
    edges : (E, 2) array of int
        Pairs of different sites, each pair once.

    Examples
    --------
    >>> SiteGraph(3, [[0, 1], [2, 1]]).neighbors
    array([1, 0, 2, 1], dtype=int32)
    """

    n_sites: int
    edges: NDArray[np.int32]
    start: NDArray[np.int64]
    neighbors: NDArray[np.int32]
    edge_of: NDArray[np.int32]

    def __init__(self, n_sites: int, edges: ArrayLike) -> None:
        self.n_sites = check_int("n_sites", n_sites, at_least=1, below=MAX_SITES)
        self.edges = _checked_edges(edges, self.n_sites)
        ends = np.concatenate([self.edges, self.edges[:, ::-1]])
        ids = np.tile(np.arange(len(self.edges), dtype=np.int32), 2)
        rows = sparse.coo_array((ids, (ends[:, 0], ends[:, 1])), shape=(self.n_sites, self.n_sites)).tocsr()
        if rows.nnz < len(ends):  # the conversion adds duplicates up
            invalid("edges", "hold each pair of sites once", _first_duplicate(self.edges))
        rows.sort_indices()
        self.start = rows.indptr.astype(np.int64)
        self.neighbors = rows.indices.astype(np.int32)
        self.edge_of = rows.data

    def __repr__(self) -> str:
        return f"SiteGraph of {self.size}"

    @property
    def size(self) -> str:
        """The numbers of sites and edges, in words."""
        return f"{counted(self.n_sites, 'site')} and {counted(self.n_edges, 'edge')}"

    @property
    def n_edges(self) -> int:
        """Number of edges."""
        return len(self.edges)

    @property
    def component_sizes(self) -> NDArray[np.int64]:
        """The number of sites of each connected component of the graph."""
        return np.bincount(self.pieces(np.zeros(self.n_sites, np.int32)))

    def pieces(self, labels: NDArray[np.int32]) -> NDArray[np.int32]:
        """The connected piece of a cluster that each site lies in."""
        return self.components(labels[self.edges[:, 0]] == labels[self.edges[:, 1]])

    def components(self, kept: NDArray[np.bool_]) -> NDArray[np.int32]:
        """The component that each site lies in where only the edges that are kept join sites."""
        inner = kept[self.edge_of]
        start = np.concatenate([[0], np.cumsum(inner)])[self.start]
        rows = np.ones(start[-1]), self.neighbors[inner], start
        joined = sparse.csr_array(rows, shape=(self.n_sites, self.n_sites))
        return sparse.csgraph.connected_components(joined, directed=False)[1]

    def is_connected(self, labels: NDArray[np.int32]) -> bool:
        """Whether each cluster, of labels 0..k-1, is connected."""
        return int(self.pieces(labels).max()) == int(labels.max())


def _checked_edges(edges: ArrayLike, n_sites: int) -> NDArray[np.int32]:
    """`edges` as (E, 2) int32, refused where they are not pairs of different sites."""
    array = check_array("edges", edges)
    if array.size == 0:
        array = np.empty((0, 2), np.int32)
    if array.ndim != 2 or array.shape[1] != 2:
        invalid("edges", "have shape (n_edges, 2)", array.shape)
    array = integer_array("edges", array)
    outside = ((array < 0) | (array >= n_sites)).any(axis=1)
    if outside.any():
        invalid("edges", f"join sites 0..{n_sites - 1}", array[outside][0])
    loops = array[:, 0] == array[:, 1]
    if loops.any():
        invalid("edges", "join two different sites", array[loops][0])
    return array.astype(np.int32)


def _first_duplicate(edges: NDArray[np.int32]) -> NDArray[np.int32]:
    """The first edge that was given before."""
    _, first = np.unique(np.sort(edges, axis=1), axis=0, return_index=True)
    return edges[np.setdiff1d(np.arange(len(edges)), first)[0]]
