"""The graph of sites."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sparse
from numpy.typing import ArrayLike, NDArray

from spinseg._errors import MissingExtra
from spinseg._validation import check_int, checked_edges, counted, finite_array, invalid
from spinseg.graph import edges as found

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
    weights : (E,) array, optional
        A number for each edge, which the graph carries along: `Model(graph, .., beta=strength * graph.weights)`.
    simplify : bool
        Drop edges from a site to itself, and of several edges between the same two sites all but the first. By default
        they are refused.

    Examples
    --------
    >>> import spinseg as ss
    >>> ss.SiteGraph(3, [[0, 1], [2, 1]]).neighbors
    array([1, 0, 2, 1], dtype=int32)
    >>> ss.SiteGraph(
    ...     3, [[0, 1], [1, 0], [2, 2], [1, 2]], simplify=True
    ... ).edges.tolist()
    [[0, 1], [1, 2]]
    """

    n_sites: int
    edges: NDArray[np.int32]
    weights: NDArray[np.float64] | None
    start: NDArray[np.int64]
    neighbors: NDArray[np.int32]
    edge_of: NDArray[np.int32]

    def __init__(
        self, n_sites: int, edges: ArrayLike, weights: ArrayLike | None = None, *, simplify: bool = False
    ) -> None:
        self.n_sites = check_int("n_sites", n_sites, at_least=1, below=MAX_SITES)
        self.edges = checked_edges(edges, self.n_sites)
        self.weights = None if weights is None else finite_array("weights", weights, (len(self.edges),))
        if simplify:
            kept = _simple(self.edges)
            self.edges = self.edges[kept]
            self.weights = None if self.weights is None else self.weights[kept]
        loops = self.edges[:, 0] == self.edges[:, 1]
        if loops.any():
            invalid("edges", "join two different sites, unless simplify=True drops loops", self.edges[loops][0])
        ends = np.concatenate([self.edges, self.edges[:, ::-1]])
        ids = np.tile(np.arange(len(self.edges), dtype=np.int32), 2)
        rows = sparse.coo_array((ids, (ends[:, 0], ends[:, 1])), shape=(self.n_sites, self.n_sites)).tocsr()
        if rows.nnz < len(ends):  # the conversion adds duplicates up
            again = np.setdiff1d(np.arange(len(self.edges)), _simple(self.edges))[0]
            rule = "hold each pair of sites once, unless simplify=True drops the others"
            invalid("edges", rule, self.edges[again])
        rows.sort_indices()
        self.start = rows.indptr.astype(np.int64)
        self.neighbors = rows.indices.astype(np.int32)
        self.edge_of = rows.data

    def __repr__(self) -> str:
        return f"SiteGraph of {self.size}"

    @property
    def n_edges(self) -> int:
        """Number of edges."""
        return len(self.edges)

    @property
    def size(self) -> str:
        """The numbers of sites and edges, in words."""
        return f"{counted(self.n_sites, 'site')} and {counted(self.n_edges, 'edge')}"

    @classmethod
    def grid(cls, shape: tuple[int, ...], *, connectivity: int = 1, inside: ArrayLike | None = None) -> Self:
        """The graph whose sites are the pixels (or voxels) in row-major order; edges are sorted.

        Parameters
        ----------
        shape : tuple of int
        connectivity : int
            Along how many axes two neighbors may differ: 1 for 4 neighbors in an image and 6 in a volume, the number of
            axes for 8 and 26.
        inside : array of bool, optional
            Which pixels are sites; all of them by default.

        Returns
        -------
        SiteGraph

        Examples
        --------
        >>> import spinseg as ss
        >>> ss.SiteGraph.grid((2, 2)).edges.tolist()
        [[0, 1], [0, 2], [1, 3], [2, 3]]
        >>> ss.SiteGraph.grid((2, 2), connectivity=2).n_edges
        6
        """
        return cls(*found.grid_edges(shape, connectivity, inside))

    @classmethod
    def from_regions(cls, labels: ArrayLike, *, outside: int = -1) -> Self:
        """The graph whose sites are the labels of an image, in increasing order; edges are sorted.

        An edge joins labels that have pixels beside each other along an axis; its weight is the number of such pairs.

        Parameters
        ----------
        labels : array of int, any number of axes
        outside : int
            The label of pixels that belong to no site.

        Returns
        -------
        SiteGraph

        Examples
        --------
        >>> import spinseg as ss
        >>> graph = ss.SiteGraph.from_regions([[0, 0, 1], [2, 2, 1]])
        >>> graph.edges.tolist(), graph.weights.tolist()
        ([[0, 1], [0, 2], [1, 2]], [1.0, 2.0, 1.0])
        """
        return cls(*found.region_edges(labels, outside))

    @classmethod
    def from_sparse(cls, matrix: Any, *, simplify: bool = False) -> Self:
        """The graph of a square matrix, sparse or not; edges are sorted.

        Every entry that is stored is an edge, in an array every entry but 0, in one direction or in both. Its weight is
        the entry; a matrix of booleans has none. With `simplify` what lies on the diagonal is dropped, and the entry
        above it counts where the two directions of an edge differ. By default both are refused.

        Examples
        --------
        >>> import spinseg as ss
        >>> graph = ss.SiteGraph.from_sparse([[0, 2, 0], [2, 0, 0], [0, 3, 0]])
        >>> graph.edges.tolist(), graph.weights.tolist()
        ([[0, 1], [1, 2]], [2.0, 3.0])
        """
        return cls(*found.matrix_edges(matrix, simplify), simplify=simplify)

    @classmethod
    def from_networkx(cls, graph: Any, *, weight: str = "weight", simplify: bool = False) -> Self:
        """The graph of a graph of networkx, whose nodes and edges it takes in their order.

        Parameters
        ----------
        graph : networkx.Graph
            Of a directed graph, or of one with several edges between two nodes, those are edges of the same two sites.
        weight : str
            The attribute that is the weight of an edge, 1 where only others have one.
        simplify : bool
            As in `SiteGraph`.

        Returns
        -------
        SiteGraph

        Examples
        --------
        >>> import spinseg as ss
        >>> import networkx as nx
        >>> path = nx.path_graph(["a", "b", "c"])
        >>> ss.SiteGraph.from_networkx(path).edges.tolist()
        [[0, 1], [1, 2]]
        """
        return cls(*found.networkx_edges(graph, weight), simplify=simplify)

    @classmethod
    def nearest(cls, points: ArrayLike, k: int) -> Self:
        """The graph that joins each point, (n_sites, n_axes), with its k nearest; edges are sorted.

        A point has more neighbors where it is one of the nearest of others.

        Examples
        --------
        >>> import spinseg as ss
        >>> ss.SiteGraph.nearest([[0.0], [1.0], [3.0]], k=1).edges.tolist()
        [[0, 1], [1, 2]]
        """
        return cls(*found.nearest_edges(points, k))

    @classmethod
    def delaunay(cls, points: ArrayLike) -> Self:
        """The graph of the Delaunay triangulation of points in the plane or in space; edges are sorted.

        Points, (n_sites, n_axes), around the rim are joined over long distances. A point that lies on another is joined
        to that one alone.

        Examples
        --------
        >>> import spinseg as ss
        >>> ss.SiteGraph.delaunay([[0, 0], [2, 0], [0, 2]]).edges.tolist()
        [[0, 1], [0, 2], [1, 2]]
        """
        return cls(*found.delaunay_edges(points))

    def to_networkx(self) -> Any:
        """The graph as networkx knows it, with the attribute `weight` where edges have weights (extra [graphs]).

        Examples
        --------
        >>> import spinseg as ss
        >>> ss.SiteGraph(2, [[0, 1]], weights=[0.5]).to_networkx().edges[0, 1]
        {'weight': 0.5}
        """
        try:
            import networkx
        except ImportError:
            raise MissingExtra("to_networkx needs networkx: pip install 'spinseg[graphs]'") from None
        graph = networkx.empty_graph(self.n_sites)
        if self.weights is None:
            graph.add_edges_from(self.edges.tolist())
        else:
            graph.add_weighted_edges_from(zip(*self.edges.T.tolist(), self.weights.tolist(), strict=True))
        return graph

    def to_sparse(self) -> sparse.csr_array:
        """The symmetric matrix of the weights, 1 for each edge where there are none.

        Examples
        --------
        >>> import spinseg as ss
        >>> ss.SiteGraph(2, [[0, 1]]).to_sparse().toarray().tolist()
        [[0.0, 1.0], [1.0, 0.0]]
        """
        shape = (self.n_sites, self.n_sites)
        return sparse.csr_array((self.length[self.edge_of], self.neighbors.copy(), self.start.copy()), shape=shape)

    @property
    def length(self) -> NDArray[np.float64]:
        """The weight of each edge, such as the length of a boundary: 1 for each if the graph was given none."""
        return np.ones(self.n_edges) if self.weights is None else self.weights

    @property
    def component_sizes(self) -> NDArray[np.int64]:
        """The number of sites of each connected component of the graph."""
        return np.bincount(self.pieces(np.zeros(self.n_sites, np.int32)))

    def pieces(self, labels: NDArray[np.integer]) -> NDArray[np.int32]:
        """The connected piece of a cluster that each site lies in, numbered by first appearance."""
        return self.components(labels[self.edges[:, 0]] == labels[self.edges[:, 1]])

    def components(self, kept: NDArray[np.bool_]) -> NDArray[np.int32]:
        """The component that each site lies in where only some edges are kept, numbered by first appearance."""
        return found.connected_components(self.n_sites, self.edges[kept])

    def is_connected(self, labels: NDArray[np.int32]) -> bool:
        """Whether each cluster, of labels 0..k-1, is connected."""
        return int(self.pieces(labels).max()) == int(labels.max())


def _simple(edges: NDArray[np.int32]) -> NDArray[np.intp]:
    """The edges between different sites that were not given before, in order."""
    _, first = np.unique(np.sort(edges, axis=1), axis=0, return_index=True)
    return np.sort(first[edges[first, 0] != edges[first, 1]])
