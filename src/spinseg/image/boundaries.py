"""Evidence of a boundary between touching sites, and the couplings it gives."""

import numpy as np
import scipy.sparse as sparse
from numpy.typing import NDArray

from spinseg.image.adjacency import RegionAdjacency, edge_means
from spinseg.image.features import gradient, site_means
from spinseg.image.pixels import Picture

# Log-odds of a boundary that people draw, from three cues: the constant and a weight for each. Fitted by
# `python -m benchmarks boundaries` to the training photographs of BSDS300.
LOG_ODDS = (-4.07, -0.05, 0.69, 3.85)
REACH = 8.0  # CIELAB units within which a neighbour's histogram counts


def boundary_log_odds(
    picture: Picture, sites: NDArray[np.int32], adjacency: RegionAdjacency, counts: sparse.csr_array
) -> NDArray[np.float64]:
    """Log-odds that a boundary drawn by a person runs between the two sites of each edge, (n_edges,).

    s = w0 + w1 sqrt(difference) + w2 sqrt(gradient) + w3 chi_square, see `cues`.
    """
    return LOG_ODDS[0] + cues(picture, sites, adjacency, counts) @ LOG_ODDS[1:]


def cues(
    picture: Picture, sites: NDArray[np.int32], adjacency: RegionAdjacency, counts: sparse.csr_array
) -> NDArray[np.float64]:
    """What may tell of a boundary along each edge, (n_edges, 3).

    The root of the distance between the mean colours; the root of the colour gradient at scale 2 along the common
    boundary; and the chi-square distance, 0 to 1, of the colour words around the two sites.
    """
    edges = adjacency.graph.edges
    means = site_means(picture.colours, sites)
    difference = np.linalg.norm(means[edges[:, 0]] - means[edges[:, 1]], axis=1)
    slope = edge_means(sites, edges, gradient(picture.colours, 2.0))
    return np.stack([np.sqrt(difference), np.sqrt(slope), _chi_square(counts, edges, difference)], axis=1)


def _chi_square(
    counts: sparse.csr_array, edges: NDArray[np.int32], difference: NDArray[np.float64]
) -> NDArray[np.float64]:
    """1/2 sum_d (p_d - q_d)^2 / (p_d + q_d) of the two sites' shares of words.

    A site's counts are taken together with its neighbours', each weighted by exp(-difference / REACH): the pixels
    of one site alone say little.
    """
    n_sites = counts.shape[0]
    weight = np.exp(-difference / REACH)
    near = sparse.coo_array((weight, (edges[:, 0], edges[:, 1])), shape=(n_sites, n_sites)).tocsr()
    around = (sparse.eye_array(n_sites, format="csr") + near + near.T) @ counts.astype(np.float64)
    shares = sparse.diags_array(1 / np.maximum(around.sum(axis=1), 1.0)) @ around
    distance = np.empty(len(edges))
    for start in range(0, len(edges), 4096):  # a block at a time: edges x words may not fit
        block = edges[start : start + 4096]
        p, q = (shares[block[:, end]].toarray() for end in (0, 1))
        distance[start : start + 4096] = 0.5 * ((p - q) ** 2 / np.maximum(p + q, 1e-300)).sum(axis=1)
    return distance


def signed_couplings(
    log_odds: NDArray[np.float64], boundary_length: NDArray[np.int32], strength: float, threshold: float
) -> NDArray[np.float64]:
    """beta_ij = strength * boundary_length * (threshold - log_odds): together below the threshold, apart above it."""
    return strength * boundary_length * (threshold - log_odds)
