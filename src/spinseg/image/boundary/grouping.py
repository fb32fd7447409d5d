"""Cues of a boundary from the whole graph of sites, given a first probability of a boundary for every edge.

Three kinds of cues tell whether two sites belong to one group: their distance in the leading eigenvectors of the graph
(after Arbelaez et al., Contour detection and hierarchical image segmentation, PAMI 2011,
doi:10.1109/TPAMI.2010.161), the height at which they merge when the weakest boundaries are removed one after
another, and the difference of their statistics after diffusion over the graph.
"""

import numpy as np
import scipy.sparse as sparse

from spinseg.graph.merging import merge_heights
from spinseg.graph.site_graph import SiteGraph
from spinseg.image.boundary.cues import Cues, SiteStatistics, chi_square, edge_distance, symmetric_matrix
from spinseg.image.layout import Floats, Ints

AFFINITY_DECAY = 12.0  # affinity is exp(-AFFINITY_DECAY * probability of a boundary)
N_EIGENVECTORS = 16
MAX_RESTARTS = 500  # of the search for eigenvectors; photographs need ten to fifty
MAX_NEIGHBORS = 64  # more than sites of about equal size have
DIFFUSION_STEPS = (2, 4, 8)  # after which the statistics of sites are compared


def grouping_cues(log_odds: Floats, statistics: SiteStatistics, graph: SiteGraph, spectral: bool = True) -> Cues:
    """Return the cues of each edge that follow from the first log-odds of all edges.

    - apart: log of the distance of the two sites in the leading eigenvectors; 0 unless `spectral`.
    - merged: mean log-odds along the boundary at which the two sides merge.
    - calm, busy: the lower and the higher of the two sites' mean log-odds along their other boundaries.
    - words, textons, colors, texture after t: differences of these statistics after t steps of diffusion.
    """
    edges, length, n_sites = graph.edges, graph.length, graph.n_sites
    affinity = affinities(1 / (1 + np.exp(-log_odds)), edges, n_sites)
    weighted = log_odds * length
    totals = np.bincount(edges.ravel(), weighted.repeat(2), n_sites)[edges] - weighted[:, None]
    lengths = np.bincount(edges.ravel(), length.repeat(2), n_sites)[edges] - length[:, None]
    around = np.where(lengths > 0, totals / np.maximum(lengths, 1), log_odds[:, None])
    cues = {"apart": spectral_distance(affinity, edges) if spectral else np.zeros(len(edges))}
    cues |= {"merged": merge_heights(graph, log_odds), "calm": around.min(axis=1), "busy": around.max(axis=1)}
    return cues | _diffusion_cues(affinity, statistics, edges)


def affinities(probability: Floats, edges: Ints, n_sites: int) -> sparse.csr_array:
    """Return the matrix of exp(-AFFINITY_DECAY * p) for sites at most two edges apart.

    p is the smallest over such paths of the largest probability of a boundary on the path. Paths through a site of more
    than MAX_NEIGHBORS neighbors are left out: there would be too many.
    """
    barrier = symmetric_matrix(edges, 1 + probability, n_sites)  # plus 1, since a sparse array stores no zeros
    degree = np.diff(barrier.indptr)
    middle = np.repeat(np.arange(n_sites), degree)  # the site that each half-edge leaves
    degree = np.where(degree <= MAX_NEIGHBORS, degree, 0)[middle]
    first = np.repeat(np.arange(middle.size), degree)  # every half-edge, with each that leaves the same site
    starts = np.cumsum(degree) - degree
    second = np.arange(first.size) + np.repeat(barrier.indptr[middle] - starts, degree)
    ordered = barrier.indices[first] < barrier.indices[second]
    first, second = first[ordered], second[ordered]
    two_edges = np.stack([barrier.indices[first], barrier.indices[second]], axis=1)
    pairs = np.concatenate([edges, two_edges]).astype(np.int64)
    largest = np.append(probability, np.maximum(barrier.data[first], barrier.data[second]) - 1)
    order = np.lexsort((largest, pairs[:, 1], pairs[:, 0]))
    pairs, largest = pairs[order], largest[order]
    best = (np.diff(pairs, axis=0, prepend=-1) != 0).any(axis=1)
    return symmetric_matrix(pairs[best], np.exp(-AFFINITY_DECAY * largest[best]), n_sites)


def spectral_distance(affinity: sparse.csr_array, edges: Ints) -> Floats:
    """Return log(.001 + |v_i - v_j|), where v are the leading solutions of (D - W) v = lambda D v over sqrt(lambda).

    The trivial solutions, constant on every connected component, are deflated.
    """
    n_sites = affinity.shape[0]
    degree = np.asarray(affinity.sum(axis=1)).ravel()
    n_components, component = sparse.csgraph.connected_components(affinity, directed=False)
    count = min(N_EIGENVECTORS, n_sites - n_components)
    if count == 0:
        return np.full(len(edges), np.log(1e-3))
    scale = 1 / np.sqrt(np.maximum(degree, 1e-300))
    normal = sparse.diags_array(scale) @ affinity @ sparse.diags_array(scale)
    constant = sparse.csr_array((np.sqrt(degree), (np.arange(n_sites), component)), shape=(n_sites, n_components))
    constant = constant @ sparse.diags_array(1 / np.sqrt(np.maximum(np.bincount(component, degree), 1e-300)))
    if n_sites <= 3 * N_EIGENVECTORS:
        values, vectors = np.linalg.eigh((normal - 3 * constant @ constant.T).toarray())
    else:
        from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh  # slow to import

        start = np.random.default_rng(0).normal(size=n_sites)
        if n_components <= N_EIGENVECTORS:  # a product with few dense columns takes less than SciPy's own overhead
            constant = constant.toarray()
        mean = constant.T
        deflated = LinearOperator(normal.shape, lambda v: normal @ v - 3 * (constant @ (mean @ v)), dtype=float)
        try:
            values, vectors = eigsh(deflated, k=count, which="LA", v0=start, tol=1e-8, maxiter=MAX_RESTARTS)
        except ArpackNoConvergence as error:  # many regions that nothing connects: which come first is arbitrary
            values, vectors = error.eigenvalues, error.eigenvectors
            if not values.size:
                return np.full(len(edges), np.log(1e-3))
    leading = np.argsort(-values)[:count]
    vectors = vectors[:, leading] * scale[:, None]
    vectors /= np.sqrt(np.maximum(np.square(vectors).mean(axis=0), 1e-300))
    vectors /= np.sqrt(np.maximum(1 - values[leading], 1e-5))
    return np.log(1e-3 + edge_distance(vectors, edges))


def _diffusion_cues(affinity: sparse.csr_array, statistics: SiteStatistics, edges: Ints) -> Cues:
    """Return differences of statistics after steps that replace each site's by the mean over it and its neighbors."""
    weights = affinity + sparse.eye_array(affinity.shape[0], format="csr")
    transition = sparse.diags_array(1 / np.asarray(weights.sum(axis=1)).ravel()) @ weights
    sizes = statistics.sizes[:, None].astype(np.float64)
    parts = [statistics.words, statistics.textons, sizes * statistics.colors, sizes * statistics.texture, sizes]
    columns = np.cumsum([part.shape[1] for part in parts[:-1]])
    table = np.hstack(parts)
    cues: Cues = {}
    for time in range(1, max(DIFFUSION_STEPS) + 1):
        table = transition @ table
        if time not in DIFFUSION_STEPS:
            continue
        words, textons, colors, texture, size = np.split(table, columns, axis=1)
        cues |= {f"words after {time}": chi_square(words, edges), f"textons after {time}": chi_square(textons, edges)}
        if time == DIFFUSION_STEPS[1]:
            cues["colors after"] = np.sqrt(edge_distance(colors / size, edges))
            cues["texture after"] = edge_distance(texture / size, edges)
    return cues
