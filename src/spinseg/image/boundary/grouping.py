"""What the whole picture says of an edge, once every edge has a first probability of a boundary.

Sites that few boundaries part lie together in the leading eigenvectors of the graph (after Arbelaez et al., Contour
detection and hierarchical image segmentation, PAMI 2011, :DOI:`10.1109/TPAMI.2010.161`); they merge early when the
weakest boundaries are removed one after another; and their looks grow alike when each takes on its neighbours'.
"""

import heapq

import numpy as np
import scipy.sparse as sparse
from numpy.typing import NDArray

from spinseg.image.adjacency import RegionAdjacency
from spinseg.image.boundary.cues import SiteLooks, chi_square, neighbours

SHARPNESS = 12.0  # affinity is exp(-SHARPNESS * probability of a boundary)
N_VECTORS = 16
MOST_NEIGHBOURS = 64  # more than sites of about equal size have
DIFFUSED = (2, 4, 8)  # steps after which looks are compared


def grouping_cues(
    log_odds: NDArray[np.float64], looks: SiteLooks, adjacency: RegionAdjacency
) -> dict[str, NDArray[np.float64]]:
    """Cues of each edge, by name, (n_edges,) each, from its first log-odds.

    apart is the logarithm of the distance in the leading eigenvectors; merged the mean log-odds along the boundary at
    which the two sides merge; calm and busy the lower and the higher mean of the log-odds around the two sites; the
    rest are differences of looks after some steps of diffusion.
    """
    edges, length = adjacency.graph.edges, adjacency.boundary_length.astype(np.float64)
    n_sites = adjacency.graph.n_sites
    affinity = affinities(1 / (1 + np.exp(-log_odds)), edges, n_sites)
    cues = {"apart": spectral_distance(affinity, edges), "merged": merge_heights(log_odds, length, edges, n_sites)}
    cues["calm"], cues["busy"] = _around(log_odds, length, edges, n_sites)
    return cues | _diffused(affinity, looks, edges)


def affinities(probability: NDArray[np.float64], edges: NDArray[np.int32], n_sites: int) -> sparse.csr_array:
    """exp(-SHARPNESS * p) for sites at most two edges apart, p the probability of a boundary along the best way.

    Along a way of two edges it is the larger of theirs. None leads through a site of more than MOST_NEIGHBOURS: there
    would be too many.
    """
    barrier = neighbours(edges, 1 + probability, n_sites)  # 1 more, for a sparse array keeps no zeros
    degree = np.diff(barrier.indptr)
    middle = np.repeat(np.arange(n_sites), degree)  # the site that each half-edge leaves
    degree = np.where(degree <= MOST_NEIGHBOURS, degree, 0)
    first = np.repeat(np.arange(middle.size), degree[middle])  # every half-edge, with each that leaves the same site
    second = np.arange(first.size) + np.repeat(barrier.indptr[middle] - _starts(degree[middle]), degree[middle])
    onward = barrier.indices[first] < barrier.indices[second]
    first, second = first[onward], second[onward]
    detours = np.stack([barrier.indices[first], barrier.indices[second]], axis=1)
    pairs = np.concatenate([edges, detours]).astype(np.int64)
    lowest = np.append(probability, np.maximum(barrier.data[first], barrier.data[second]) - 1)
    order = np.lexsort((lowest, pairs[:, 1], pairs[:, 0]))
    pairs, lowest = pairs[order], lowest[order]
    best = (np.diff(pairs, axis=0, prepend=-1) != 0).any(axis=1)
    return neighbours(pairs[best], np.exp(-SHARPNESS * lowest[best]), n_sites)


def spectral_distance(affinity: sparse.csr_array, edges: NDArray[np.int32]) -> NDArray[np.float64]:
    """log(.001 + |v_i - v_j|), v the leading non-trivial solutions of (D - W) v = lambda D v over sqrt(lambda).

    Trivial are those that are constant on every connected piece: they are taken out of the matrix.
    """
    n_sites = affinity.shape[0]
    degree = np.asarray(affinity.sum(axis=1)).ravel()
    n_pieces, piece = sparse.csgraph.connected_components(affinity, directed=False)
    count = min(N_VECTORS, n_sites - n_pieces)
    if count == 0:
        return np.full(len(edges), np.log(1e-3))
    scale = 1 / np.sqrt(np.maximum(degree, 1e-300))
    normal = sparse.diags_array(scale) @ affinity @ sparse.diags_array(scale)
    constant = sparse.csr_array((np.sqrt(degree), (np.arange(n_sites), piece)), shape=(n_sites, n_pieces))
    constant = constant @ sparse.diags_array(1 / np.sqrt(np.maximum(np.bincount(piece, degree), 1e-300)))
    if n_sites <= 3 * N_VECTORS:
        values, vectors = np.linalg.eigh((normal - 3 * constant @ constant.T).toarray())
    else:
        from scipy.sparse.linalg import LinearOperator, eigsh  # takes long to load

        start = np.random.default_rng(0).normal(size=n_sites)
        less = LinearOperator(normal.shape, lambda v: normal @ v - 3 * (constant @ (constant.T @ v)), dtype=np.float64)
        values, vectors = eigsh(less, k=count, which="LA", v0=start, tol=1e-8)
    leading = np.argsort(-values)[:count]
    vectors = vectors[:, leading] * scale[:, None]
    vectors /= np.sqrt(np.maximum(np.square(vectors).mean(axis=0), 1e-300))
    vectors /= np.sqrt(np.maximum(1 - values[leading], 1e-5))
    return np.log(1e-3 + np.linalg.norm(vectors[edges[:, 0]] - vectors[edges[:, 1]], axis=1))


def merge_heights(
    log_odds: NDArray[np.float64], length: NDArray[np.float64], edges: NDArray[np.int32], n_sites: int
) -> NDArray[np.float64]:
    """The mean log-odds, weighted by length, between the two pieces that each edge lies between when they merge.

    Pieces are sites at first; always those with the lowest mean between them become one.

    Examples
    --------
    >>> triangle = np.array([[0, 1], [0, 2], [1, 2]])
    >>> merge_heights(np.array([-3.0, 2.0, 0.0]), np.ones(3), triangle, 3).tolist()
    [-3.0, 1.0, 1.0]
    """
    touching: list[dict[int, tuple[float, float, list[int]]]] = [{} for _ in range(n_sites)]
    queue = []
    for e, ((a, b), odds, border) in enumerate(zip(edges.tolist(), log_odds.tolist(), length.tolist(), strict=True)):
        touching[a][b] = touching[b][a] = (odds * border, border, [e])
        queue.append((odds * border / border, a, b))  # as it is computed when it is compared
    heapq.heapify(queue)
    heights = np.empty(len(edges))
    while queue:
        mean, a, b = heapq.heappop(queue)
        total, border, between = touching[a].get(b, (0.0, 1.0, []))
        if not between or total / border != mean:
            continue  # merged or changed since it was queued
        if len(touching[a]) < len(touching[b]):
            a, b = b, a
        heights[between] = mean
        del touching[a][b]
        for c, theirs in touching[b].items():
            if c == a:
                continue
            del touching[c][b]
            ours = touching[a].get(c)
            both = theirs if ours is None else (ours[0] + theirs[0], ours[1] + theirs[1], ours[2] + theirs[2])
            touching[a][c] = touching[c][a] = both
            heapq.heappush(queue, (both[0] / both[1], a, c))
        touching[b] = {}
    return heights


def _around(
    log_odds: NDArray[np.float64], length: NDArray[np.float64], edges: NDArray[np.int32], n_sites: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Lower and higher of the two sites' mean log-odds along their other boundaries."""
    ends = edges.ravel()
    totals = np.bincount(ends, (log_odds * length).repeat(2), n_sites)[edges] - (log_odds * length)[:, None]
    borders = np.bincount(ends, length.repeat(2), n_sites)[edges] - length[:, None]
    means = np.where(borders > 0, totals / np.maximum(borders, 1), log_odds[:, None])
    return means.min(axis=1), means.max(axis=1)


def _diffused(affinity: sparse.csr_array, looks: SiteLooks, edges: NDArray[np.int32]) -> dict[str, NDArray[np.float64]]:
    """Differences of looks after steps in which every site takes the mean over itself and those near it."""
    n_sites = affinity.shape[0]
    kept = affinity + sparse.eye_array(n_sites, format="csr")
    step = sparse.diags_array(1 / np.asarray(kept.sum(axis=1)).ravel()) @ kept
    sizes = looks.sizes[:, None].astype(np.float64)
    parts = np.cumsum([looks.words.shape[1], looks.textons.shape[1], 3, looks.texture.shape[1]])
    table = np.hstack([looks.words, looks.textons, sizes * looks.colours, sizes * looks.texture, sizes])
    cues: dict[str, NDArray[np.float64]] = {}
    for time in range(1, max(DIFFUSED) + 1):
        table = step @ table
        if time not in DIFFUSED:
            continue
        words, textons, colours, texture, weight = np.split(table, parts, axis=1)
        cues |= {f"words after {time}": chi_square(words, edges), f"textons after {time}": chi_square(textons, edges)}
        if time == DIFFUSED[1]:
            cues["colours after"] = np.sqrt(_distance(colours / weight, edges))
            cues["texture after"] = _distance(texture / weight, edges)
    return cues


def _distance(values: NDArray[np.float64], edges: NDArray[np.int32]) -> NDArray[np.float64]:
    """Euclidean distance between the rows of the two sites of each edge."""
    return np.linalg.norm(values[edges[:, 0]] - values[edges[:, 1]], axis=1)


def _starts(lengths: NDArray[np.integer]) -> NDArray[np.integer]:
    """Where each of consecutive runs starts."""
    return np.cumsum(lengths) - lengths
