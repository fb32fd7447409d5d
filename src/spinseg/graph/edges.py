"""Edges between sites, found in grids, label images, matrices, graphs of networkx, and points."""

from itertools import combinations, product
from typing import Any

import numpy as np
import scipy.sparse as sparse
from numpy.typing import ArrayLike, NDArray

from spinseg._validation import check_array, check_int, finite_array, integer_array, invalid
from spinseg.partition.numbering import in_order

# The number of sites, (E, 2) edges, and (E,) weights or None: what `SiteGraph` is made of.
Parts = tuple[int, Any, Any]

MAX_FEW_ITEMS = 10_000  # whose components are found in less time than SciPy takes to check its input
MAX_NUMBERS, MAX_NUMBERS_PER_PIXEL = 2**24, 64  # of sites; a tile of a large image has few of them


def grid_edges(shape: tuple[int, ...], connectivity: int, inside: ArrayLike | None) -> Parts:
    """The edges between neighboring pixels, in row-major order."""
    if not isinstance(shape, (tuple, list)):
        invalid("shape", "be a tuple of whole numbers", shape)
    shape = tuple(check_int("shape", length, at_least=1) for length in shape)
    if check_int("connectivity", connectivity, at_least=1) > len(shape):
        invalid("connectivity", f"be at most the {len(shape)} axes of the image", connectivity)
    index = np.arange(np.prod(shape, dtype=np.int64), dtype=np.int32).reshape(shape)
    if inside is not None:
        mask = check_array("inside", inside)
        if mask.dtype.kind != "b" or mask.shape != shape:
            invalid("inside", f"be booleans of shape {shape}", f"{mask.dtype} of shape {mask.shape}")
        index = np.full(shape, -1, np.int32)
        index[mask] = np.arange(np.count_nonzero(mask), dtype=np.int32)
    offsets = [d for d in product((-1, 0, 1), repeat=len(shape)) if d > (0,) * len(shape)]  # that follow in this order
    offsets = [d for d in offsets if np.count_nonzero(d) <= connectivity]
    neighbor = np.full((*shape, len(offsets)), -1, np.int32)  # -1 where there is none
    for k, offset in enumerate(offsets):
        here = tuple(slice(max(-d, 0), length - max(d, 0)) for d, length in zip(offset, shape, strict=True))
        there = tuple(slice(max(d, 0), length + min(d, 0)) for d, length in zip(offset, shape, strict=True))
        neighbor[..., k][here] = index[there]
    joined = (neighbor >= 0) & (index >= 0)[..., None]
    edges = np.empty((np.count_nonzero(joined), 2), np.int32)
    edges[:, 0] = np.broadcast_to(index[..., None], neighbor.shape)[joined]
    edges[:, 1] = neighbor[joined]
    return int(index.max()) + 1, edges, None


def checked_sites(sites: ArrayLike) -> tuple[NDArray[np.int32], int]:
    """The label image of sites as int32, and the number of sites."""
    array = integer_array("sites", sites)
    if array.size == 0 or array.min() < -1 or array.max() < 0:
        invalid("sites", "number pixels from 0, some of them, with -1 outside", array)
    n_sites = int(array.max()) + 1
    if n_sites > max(MAX_NUMBERS, MAX_NUMBERS_PER_PIXEL * array.size):  # memory grows with it
        rule = f"be numbered from 0 with fewer gaps, in {array.size} pixels; SiteGraph.from_regions takes any labels"
        invalid("sites", rule, f"the number {n_sites - 1}")
    return array.astype(np.int32, copy=False), n_sites


def boundary_pairs(sites: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]:
    """All pairs of adjacent pixels in different sites: lower site, upper site, flat indices (2, n_pairs)."""
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


def region_edges(labels: ArrayLike, outside: int) -> Parts:
    """The edges between regions that touch, sorted; the weight of one is the length of the common boundary."""
    array = integer_array("labels", labels)
    inside = array != outside
    image = np.full(array.shape, -1, np.int32)
    image[inside] = in_order(array[inside])
    return site_edges(image, int(image.max(initial=-1)) + 1)


def site_edges(sites: NDArray[np.int32], n_sites: int) -> Parts:
    """As `region_edges`, of an image whose labels number the sites, with -1 outside."""
    lower, upper, _ = boundary_pairs(sites)
    shape = (n_sites, n_sites)
    counts = sparse.coo_array((np.ones(lower.size, np.int32), (lower, upper)), shape=shape).tocsr()
    counts.sort_indices()
    rows = np.repeat(np.arange(n_sites, dtype=np.int32), np.diff(counts.indptr))
    return n_sites, np.stack([rows, counts.indices], axis=1), counts.data


def matrix_edges(matrix: Any, simplify: bool) -> Parts:
    """The edges of a square matrix, sorted; an edge may be stored in both directions with the same weight."""
    table = sparse.coo_array(matrix) if sparse.issparse(matrix) else check_array("matrix", matrix)
    if table.ndim != 2 or table.shape[0] != table.shape[1]:
        invalid("matrix", "be square", table.shape)
    table = sparse.coo_array(table, copy=True)
    table.sum_duplicates()
    row, column = table.coords
    lower, upper = np.minimum(row, column), np.maximum(row, column)
    order = np.lexsort((row > column, upper, lower))
    edges, weights = np.stack([lower, upper], axis=1)[order], table.data[order]
    again = np.flatnonzero((edges[1:] == edges[:-1]).all(axis=1)) + 1
    differ = again[weights[again] != weights[again - 1]]
    if differ.size and not simplify:
        rule = "hold one weight for each edge, unless simplify=True takes the one above the diagonal"
        both = " and ".join(f"{weight:g}" for weight in weights[differ[0] - 1 : differ[0] + 1].tolist())
        invalid("matrix", rule, f"{both} between {edges[differ[0]].tolist()}")
    weights = None if weights.dtype.kind == "b" else np.delete(weights, again)
    return table.shape[0], np.delete(edges, again, axis=0), weights


def networkx_edges(graph: Any, weight: str) -> Parts:
    """The edges of a graph of networkx, in its order."""
    if not (hasattr(graph, "nodes") and hasattr(graph, "edges")):
        invalid("graph", "be a graph of networkx", type(graph).__name__)
    site = {node: i for i, node in enumerate(graph.nodes)}
    edges = [(site[a], site[b]) for a, b in graph.edges()]
    weights = [value for *_, value in graph.edges(data=weight)]
    if all(value is None for value in weights):
        return len(site), edges, None
    return len(site), edges, [1 if value is None else value for value in weights]


def nearest_edges(points: ArrayLike, k: int) -> Parts:
    """The edges between points of which one is among the k nearest of the other, sorted."""
    from scipy.spatial import KDTree

    x = finite_array("points", points, (None, None))
    if check_int("k", k, at_least=1) >= len(x):
        invalid("k", f"be below the number of points, {len(x)}", k)
    near = KDTree(x).query(x, int(k) + 1)[1]
    itself = near == np.arange(len(x))[:, None]
    itself[~itself.any(axis=1), -1] = True  # one of many points in one place may not be found near itself
    return len(x), _different_pairs(np.repeat(np.arange(len(x)), int(k)), near[~itself], len(x)), None


def delaunay_edges(points: ArrayLike) -> Parts:
    """The edges of the Delaunay triangulation, sorted; a point that lies on another is joined to it alone."""
    from scipy.spatial import Delaunay, QhullError

    x = finite_array("points", points, (None, None))
    n_points, n_axes = x.shape
    try:
        found = Delaunay(x)
    except (QhullError, ValueError):  # too few points, or too few axes
        invalid("points", "span at least 2 axes, and all that they have", x.shape)
    corners = [found.simplices[:, pair] for pair in combinations(range(n_axes + 1), 2)]
    pairs = np.concatenate([*corners, found.coplanar[:, [0, 2]]])
    return n_points, _different_pairs(pairs[:, 0], pairs[:, 1], n_points), None


def connected_components(n_items: int, pairs: NDArray[np.integer]) -> NDArray[np.int32]:
    """The component of each item, numbered by first appearance, where the items of each pair belong together."""
    if n_items > MAX_FEW_ITEMS:
        links = sparse.coo_array((np.ones(len(pairs), bool), (pairs[:, 0], pairs[:, 1])), shape=(n_items, n_items))
        return sparse.csgraph.connected_components(links, directed=False)[1]
    root, (first, second) = np.arange(n_items), pairs.T
    while (apart := root.take(first) != root.take(second)).any():  # each round at least halves their number
        first, second = first[apart], second[apart]
        ends = root.take(first), root.take(second)
        root[np.maximum(*ends)] = np.minimum(*ends)
        root = at_last(root)
    return (np.cumsum(root == np.arange(n_items), dtype=np.int32) - 1)[root]


def at_last(into: NDArray[np.int64]) -> NDArray[np.int64]:
    """The region that each one is part of in the end, of the one that each has joined, itself if none."""
    while (into[into] != into).any():  # each round halves the ways, which may be long
        into = into[into]
    return into


def _different_pairs(first: NDArray[Any], second: NDArray[Any], n_sites: int) -> NDArray[np.int64]:
    """Pairs of sites, lower before upper, each once, sorted."""
    pair = np.minimum(first, second).astype(np.int64) * n_sites + np.maximum(first, second)
    return np.stack(np.divmod(np.unique(pair), n_sites), axis=1)
