"""Graphs from grids, label images, matrices, networkx and points, compared with SciPy, networkx and scikit-learn."""

import sys

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sparse
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial import distance_matrix

import spinseg as ss


def random_matrix(seed, n_sites=12, density=0.3):
    """A symmetric sparse matrix without a diagonal."""
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((n_sites, n_sites)) * (rng.random((n_sites, n_sites)) < density), 1)
    return sparse.csr_array(upper + upper.T)


def same(a, b):
    """Whether two graphs have the same sites, edges and weights, bit by bit."""
    return a.n_sites == b.n_sites and np.array_equal(a.edges, b.edges) and np.array_equal(a.weights, b.weights)


@given(st.integers(0, 2**32), st.integers(1, 15))
def test_a_matrix_comes_back_bit_by_bit(seed, n_sites):
    matrix = random_matrix(seed, n_sites)
    for given_matrix in (matrix, matrix.tocoo(), sparse.csc_matrix(matrix), sparse.triu(matrix), matrix.toarray()):
        back = ss.SiteGraph.from_sparse(given_matrix).to_sparse()
        assert back.shape == matrix.shape and (back != matrix).nnz == 0 and back.nnz == matrix.nnz


@given(st.integers(0, 2**32), st.booleans())
def test_networkx_there_and_back_keeps_nodes_edges_their_order_and_weights(seed, weighted):
    rng = np.random.default_rng(seed)
    original = nx.gnm_random_graph(9, 14, seed=int(rng.integers(2**31)))
    if weighted:
        nx.set_edge_attributes(original, {edge: rng.normal() for edge in original.edges}, "weight")
    graph = ss.SiteGraph.from_networkx(original)
    assert graph.edges.tolist() == [list(edge) for edge in original.edges] and (graph.weights is not None) == weighted
    back = graph.to_networkx()
    assert list(back.nodes) == list(original.nodes) and nx.utils.graphs_equal(back, original)
    assert same(ss.SiteGraph.from_networkx(back), graph)
    assert (nx.to_scipy_sparse_array(original, dtype=float) != graph.to_sparse()).nnz == 0


def test_what_is_stored_as_zero_is_an_edge_and_booleans_have_no_weights():
    stored = sparse.coo_array((np.array([0.0, 2.0]), ([0, 1], [1, 2])), shape=(3, 3))
    assert ss.SiteGraph.from_sparse(stored).weights.tolist() == [0.0, 2.0]
    assert ss.SiteGraph.from_sparse(stored.toarray()).edges.tolist() == [[1, 2]]
    joined = ss.SiteGraph.from_sparse(stored.toarray() > 0)
    assert joined.weights is None and joined.edges.tolist() == [[1, 2]]


def test_nodes_of_any_name_get_numbers_in_order_and_missing_weights_are_1():
    named = nx.Graph()
    named.add_nodes_from("cab")
    named.add_edge("a", "b", weight=0.5, length=7)
    named.add_edge("c", "b")
    assert ss.SiteGraph.from_networkx(named).edges.tolist() == [[0, 2], [1, 2]]
    assert ss.SiteGraph.from_networkx(named).weights.tolist() == [1.0, 0.5]
    assert ss.SiteGraph.from_networkx(named, weight="length").weights.tolist() == [1.0, 7.0]
    assert ss.SiteGraph.from_networkx(named, weight="none").weights is None


def test_simplify_drops_loops_and_all_but_the_first_of_equal_edges_with_their_weights():
    edges, weights = [[2, 2], [2, 1], [0, 1], [1, 2], [1, 0]], [9.0, 1.0, 2.0, 3.0, 4.0]
    graph = ss.SiteGraph(3, edges, weights, simplify=True)
    assert graph.edges.tolist() == [[2, 1], [0, 1]] and graph.weights.tolist() == [1.0, 2.0]
    several = nx.MultiDiGraph()
    several.add_weighted_edges_from([(0, 1, 5.0), (1, 0, 6.0), (0, 1, 7.0), (1, 1, 8.0)])
    found = ss.SiteGraph.from_networkx(several, simplify=True)
    assert found.edges.tolist() == [[0, 1]] and found.weights.tolist() == [5.0]
    matrix = ss.SiteGraph.from_sparse([[4, 2, 0], [3, 0, 0], [0, 5, 0]], simplify=True)
    assert matrix.edges.tolist() == [[0, 1], [1, 2]] and matrix.weights.tolist() == [2.0, 5.0]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ss.SiteGraph(0, []), r"n_sites must be a whole number of at least 1: got 0"),
        (lambda: ss.SiteGraph(3, [[0, 0]]), r"edges must join two different sites, unless .* drops loops: got \[0 0\]"),
        (lambda: ss.SiteGraph(3, [[0, 1], [2, 1], [1, 0]]), r"edges must hold each pair of sites once, unless .*: got \[1 0\]"),
        (lambda: ss.SiteGraph(3, [[0, 3]]), r"edges must join sites 0..2: got \[0 3\]"),
        (lambda: ss.SiteGraph(3, [[-1, 2]]), r"edges must join sites 0..2: got \[-1  ?2\]"),
        (lambda: ss.SiteGraph(3, [[0.0, 1.0]]), r"edges must be whole numbers: got 'float64'"),
        (lambda: ss.SiteGraph(3, [0, 1]), r"edges must have shape \(n_edges, 2\): got \(2,\)"),
        (lambda: ss.SiteGraph(2, [[0, 1]], [1.0, 2.0]), r"weights must have shape \(1\): got \(2,\)"),
        (lambda: ss.SiteGraph(2, [[0, 1]], [np.nan]), r"weights must be finite: got nan"),
        (lambda: ss.SiteGraph.from_sparse([[0, 1], [2, 0]]), r"matrix must hold one weight .*: got '1 and 2 between \[0, 1\]'"),
        (lambda: ss.SiteGraph.from_sparse(np.ones((2, 3))), r"matrix must be square: got \(2, 3\)"),
        (lambda: ss.SiteGraph.from_networkx({}), r"graph must be a graph of networkx: got 'dict'"),
        (lambda: ss.SiteGraph.nearest([[0.0], [1.0]], 2), r"k must be below the number of points, 2: got 2"),
        (lambda: ss.SiteGraph.delaunay([[0, 0], [1, 1], [2, 2]]), r"points must span at least 2 axes, .*: got \(3, 2\)"),
        (lambda: ss.SiteGraph.grid(5), r"shape must be a tuple of whole numbers: got 5"),
        (lambda: ss.SiteGraph.grid((2, 2), inside=[True]), r"inside must be booleans of shape \(2, 2\): got"),
        (lambda: ss.SiteGraph.from_regions([[0.5]]), r"labels must be whole numbers: got 'float64'"),
    ],
)  # fmt: skip
def test_what_is_no_graph_gets_one_line(make, message):
    with pytest.raises(ss.InvalidInput, match=message) as raised:
        make()
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("shape", [(7,), (3, 5), (2, 3, 4)])
def test_a_grid_is_that_of_networkx(shape):
    expected = nx.convert_node_labels_to_integers(nx.grid_graph(shape[::-1]), ordering="sorted")
    assert nx.utils.graphs_equal(ss.SiteGraph.grid(shape).to_networkx(), expected)


def test_regions_are_joined_where_they_touch_by_the_length_of_their_boundary():
    labels = np.random.default_rng(0).integers(1, 9, (12, 10))
    labels[:3, :3] = 0
    graph = ss.SiteGraph.from_regions(labels, outside=0)
    lengths = np.zeros((9, 9))
    for here, there in ((labels[1:], labels[:-1]), (labels[:, 1:], labels[:, :-1])):
        np.add.at(lengths, (here.ravel(), there.ravel()), 1)
    lengths = (lengths + lengths.T)[1:, 1:]
    np.fill_diagonal(lengths, 0)
    assert np.array_equal(graph.to_sparse().toarray(), lengths)
    gaps = ss.SiteGraph.from_regions([[7, -1, 30], [7, 2, 30]])  # numbered in increasing order
    assert gaps.n_sites == 3 and gaps.edges.tolist() == [[0, 1], [0, 2]]


@given(st.integers(0, 2**32), st.integers(1, 3), st.integers(1, 6))
def test_the_nearest_points_are_those_at_the_smallest_distances(seed, n_axes, k):
    points = np.random.default_rng(seed).normal(size=(20, n_axes))
    distance = distance_matrix(points, points)
    np.fill_diagonal(distance, np.inf)
    near = distance <= np.sort(distance, axis=1)[:, k - 1 : k]
    graph = ss.SiteGraph.nearest(points, k)
    assert np.array_equal(graph.to_sparse().toarray(), near | near.T) and graph.weights is None


@given(st.integers(0, 2**32))
def test_no_edge_of_a_triangulation_could_be_replaced_by_one_nearer(seed):
    """It holds the graph in which two points are joined if no third lies in the circle between them (Gabriel's)."""
    points = np.random.default_rng(seed).normal(size=(15, 2))
    graph = ss.SiteGraph.delaunay(points)
    joined = graph.to_sparse().toarray() > 0
    squares = distance_matrix(points, points) ** 2
    for a, b in zip(*np.triu_indices(15, 1), strict=True):
        others = np.delete(squares[a] + squares[b], [a, b])
        assert joined[a, b] or (others <= squares[a, b] + 1e-12).any()
    assert graph.n_edges <= 3 * 15 - 6 and graph.component_sizes.tolist() == [15]


def test_points_in_one_place_are_joined():
    graph = ss.SiteGraph.nearest(np.zeros((30, 2)), 3)
    assert (np.bincount(graph.edges.ravel(), minlength=30) >= 3).all()  # and never to themselves
    corners = [[0, 0], [2, 0], [0, 2], [3, 3]]
    graph = ss.SiteGraph.delaunay([*corners, [2, 0]])
    assert graph.n_sites == 5 and sum(4 in edge for edge in graph.edges.tolist()) >= 1
    assert graph.component_sizes.tolist() == [5]


def test_without_networkx_a_line_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(ss.MissingExtra, match=r"^to_networkx needs networkx: pip install 'spinseg\[graphs\]'$"):
        ss.SiteGraph(2, [[0, 1]]).to_networkx()
