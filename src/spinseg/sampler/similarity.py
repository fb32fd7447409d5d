"""Sites with similar features, from which the anchors of a regrouping are drawn."""

import numpy as np
import scipy.sparse as sparse
from numpy.typing import NDArray

from spinseg.model.likelihoods import DenseTerm, HistogramTerm
from spinseg.model.posterior import Model
from spinseg.sampler.pack import terms_of

MAX_SIMILAR = 200
DECIMALS = 9  # of distances of order 1, so that processors that round sums differently find the same sites
MAX_SITES = 5_000  # for more, the table would take seconds and megabytes, and anchors are drawn uniformly


def similar_sites(model: Model) -> NDArray[np.uint32]:
    """The sites most similar to each site, (n_sites, up to 200), in order of number; no columns for too many sites.

    The sampler is exact with any table that does not depend on the partition. Sites are compared by features averaged
    over their neighbors: square roots of histogram frequencies, and means in units of their standard deviation.
    """
    n_sites = model.graph.n_sites
    parts = [_site_features(term) for term in terms_of(model.likelihood, n_sites)]
    if not parts or not 1 < n_sites <= MAX_SITES:
        return np.empty((n_sites, 0), np.uint32)
    features = np.hstack([part / max(np.sqrt(part.var(axis=0).sum()), 1e-30) for part in parts])
    ends = np.concatenate(
        [model.graph.edges, model.graph.edges[:, ::-1], np.arange(n_sites)[:, None].repeat(2, axis=1)]
    )
    touching = sparse.coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(n_sites, n_sites)).tocsr()
    features = (touching @ features) / touching.sum(axis=1)[:, None]
    squares = np.square(features).sum(axis=1)
    similar = np.empty((n_sites, min(MAX_SIMILAR, n_sites - 1)), np.uint32)
    for start in range(0, n_sites, 256):
        block = slice(start, start + 256)
        distances = squares[block, None] + squares - 2 * features[block] @ features.T
        distances[np.arange(len(distances)), np.arange(n_sites)[block]] = np.inf  # itself
        similar[block] = _smallest(np.round(distances, DECIMALS), similar.shape[1])
    return similar


def _smallest(values: NDArray[np.float64], n: int) -> NDArray[np.intp]:
    """Columns of the n smallest values of each row, in increasing order; ties go to the first columns."""
    last = np.partition(values, n - 1, axis=1)[:, n - 1 : n]
    below, tied = values < last, values == last
    left = n - below.sum(axis=1, keepdims=True)
    return np.nonzero(below | (tied & (np.cumsum(tied, axis=1) <= left)))[1].reshape(len(values), n)


def _site_features(term: HistogramTerm | DenseTerm) -> NDArray[np.float64]:
    """Features of the sites in one term, (n_sites, any), to be compared by Euclidean distance."""
    if isinstance(term, HistogramTerm):
        counts = np.asarray(term.counts.toarray()[:, term.sign > 0], dtype=np.float64)
        return np.sqrt(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0))
    weight, sums = term.statistics[:, :1], term.statistics[:, 1 : 1 + term.channels]
    means = sums / np.where(weight > 0, weight, 1.0)
    means = np.sqrt(means) if term.family == "poisson_gamma" else means
    return means / np.maximum(means.std(axis=0), 1e-30)
