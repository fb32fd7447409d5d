"""Which sites look like which: where the anchors of a regrouping are drawn from."""

import numpy as np
import scipy.sparse as sparse
from numpy.typing import NDArray

from spinseg.model.likelihoods import DenseTerm, HistogramTerm
from spinseg.model.posterior import Model

MOST_NEAR = 200
DECIMALS = 9  # of distances of about 1: processors round sums differently, and should find the same sites
MOST_SITES = 5_000  # beyond it the table would take seconds and megabytes: anchors are then drawn from anywhere


def near_sites(model: Model) -> NDArray[np.uint32]:
    """The sites that look most like each site, (n_sites, up to 200), by number; no columns where that is not known.

    Any table that does not depend on the partition keeps the sampler exact. Sites are compared by what they show,
    averaged over their neighbours: roots of the shares of a histogram, means in units of their spread.
    """
    n_sites = model.graph.n_sites
    parts = [_looks(term) for term in model.likelihood.terms()]
    if not parts or not 1 < n_sites <= MOST_SITES:
        return np.empty((n_sites, 0), np.uint32)
    looks = np.hstack([part / max(np.sqrt(part.var(axis=0).sum()), 1e-30) for part in parts])
    ends = np.concatenate(
        [model.graph.edges, model.graph.edges[:, ::-1], np.arange(n_sites)[:, None].repeat(2, axis=1)]
    )
    touching = sparse.coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(n_sites, n_sites)).tocsr()
    looks = (touching @ looks) / touching.sum(axis=1)[:, None]
    squares = np.square(looks).sum(axis=1)
    near = np.empty((n_sites, min(MOST_NEAR, n_sites - 1)), np.uint32)
    for start in range(0, n_sites, 256):
        block = slice(start, start + 256)
        distances = squares[block, None] + squares - 2 * looks[block] @ looks.T
        distances[np.arange(len(distances)), np.arange(n_sites)[block]] = np.inf  # itself
        near[block] = _smallest(np.round(distances, DECIMALS), near.shape[1])
    return near


def _smallest(values: NDArray[np.float64], n: int) -> NDArray[np.intp]:
    """Columns of the n smallest values of each row, in order of the columns; of equal values the first are taken."""
    last = np.partition(values, n - 1, axis=1)[:, n - 1 : n]
    below, tied = values < last, values == last
    left = n - below.sum(axis=1, keepdims=True)
    return np.nonzero(below | (tied & (np.cumsum(tied, axis=1) <= left)))[1].reshape(len(values), n)


def _looks(term: HistogramTerm | DenseTerm) -> NDArray[np.float64]:
    """What sites show in one term, (n_sites, any): Euclidean distances tell how alike they are."""
    if isinstance(term, HistogramTerm):
        counts = np.asarray(term.counts.toarray()[:, term.sign > 0], dtype=np.float64)
        return np.sqrt(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0))
    weight, sums = term.statistics[:, :1], term.statistics[:, 1 : 1 + term.channels]
    means = sums / np.where(weight > 0, weight, 1.0)
    means = np.sqrt(means) if term.family == "poisson_gamma" else means
    return means / np.maximum(means.std(axis=0), 1e-30)
