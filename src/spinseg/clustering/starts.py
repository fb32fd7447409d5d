"""Where the chains of a clustering start."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sparse
from numpy.typing import NDArray
from scipy.sparse.linalg import ArpackError, svds

from spinseg import _validation
from spinseg.image.features import k_means, nearest_center
from spinseg.model.likelihoods import DenseTerm, HistogramTerm
from spinseg.model.posterior import Model
from spinseg.sampler.kernels.state import Target
from spinseg.sampler.pack import pack, terms_of
from spinseg.sampler.plan import bond_strengths
from spinseg.sampler.starts import greedy_labels, starting_labels

N_PARTS = 30  # that k-means divides the sites into
N_SMOOTHINGS = 2  # times that features are averaged over neighbors
MAX_FEATURES = 50  # more are reduced to so many
MAX_SAMPLED = 20_000  # sites that the centers of k-means are found from


def starting_partitions(model: Model, rng: np.random.Generator) -> list[NDArray[np.int32]]:
    """Two partitions for chains to start from in turn, so that their agreement says something; the more probable first.

    One is merged from single sites, or is a single cluster where there are no neighbors. The other is merged from parts
    that k-means finds in the features: where most of these are noise, merging of single sites ends anywhere.
    """
    target = pack(model, bond_strengths(model, None, "auto")[0])
    starts = [starting_labels(model, target, "greedy" if model.graph.n_edges else "one")]
    merged = [_merged_parts(model, target, view, rng) for view in _views(model, rng)]
    allowed = [labels for labels in merged if model.allows(labels)]
    if allowed:
        starts.append(max(allowed, key=model.log_posterior))
    return sorted(starts, key=model.log_posterior, reverse=True)


def _merged_parts(
    model: Model, target: Target, features: NDArray[np.float32], rng: np.random.Generator
) -> NDArray[np.int32]:
    """Parts of similar features, the two of which whose merging gains most merged again and again."""
    n_sites = len(features)
    sampled = features if n_sites <= MAX_SAMPLED else features[rng.choice(n_sites, MAX_SAMPLED, replace=False)]
    parts = nearest_center(features, k_means(sampled, N_PARTS, rng))
    if model.connected:
        parts = model.graph.pieces(parts)
    return greedy_labels(target, _validation.labels("parts", parts, n_sites), model.connected)


def _views(model: Model, rng: np.random.Generator) -> Iterator[NDArray[np.float32]]:
    """Features to divide the sites by: as they are and in units of their spread, averaged over neighbors or not."""
    terms = [_features(term) for term in terms_of(model.likelihood, model.graph.n_sites)]
    if not terms:
        return
    features = np.hstack([_reduced(term, rng) for term in terms])
    if features.shape[1] == 0:  # counts that are all 0
        return
    features -= features.mean(axis=0)
    spread = features.std(axis=0)
    joined = model.graph.to_sparse() != 0
    n_averaged = 1 + np.diff(joined.indptr)[:, None]
    for _ in range(1 + N_SMOOTHINGS if model.graph.n_edges else 1):
        for unit in (np.sqrt(np.square(spread).mean()), spread):
            yield (features / np.where(unit > 0, unit, 1.0)).astype(np.float32)
        features = (features + joined @ features) / n_averaged


def _features(term: HistogramTerm | DenseTerm) -> Any:
    """One term of a likelihood as features, an array or a sparse one, to be compared by their Euclidean distances."""
    if isinstance(term, HistogramTerm):
        counts = term.counts[:, np.flatnonzero(term.sign > 0)].astype(np.float64)
        totals = np.maximum(counts.sum(axis=1), 1.0)
        return sparse.csr_array(sparse.diags_array(1 / totals) @ counts).sqrt()
    weight, sums = term.statistics[:, :1], term.statistics[:, 1 : 1 + term.channels]
    means = sums / np.where(weight > 0, weight, 1.0)
    return np.sqrt(means) if term.family == "poisson_gamma" else means


def _reduced(features: Any, rng: np.random.Generator) -> NDArray[np.float64]:
    """The features, or the strongest of their singular vectors where they are many."""
    if features.shape[1] > MAX_FEATURES and features.shape[0] > MAX_FEATURES:
        try:
            left, strength, _ = svds(features, k=MAX_FEATURES, v0=rng.normal(size=min(features.shape)))
            return left * strength
        except ArpackError:  # of lower rank than MAX_FEATURES, down to 0 where nothing varies
            dense = features.toarray() if sparse.issparse(features) else features
            left, strength, _ = np.linalg.svd(dense, full_matrices=False)
            return left[:, :MAX_FEATURES] * strength[:MAX_FEATURES]
    return features.toarray() if sparse.issparse(features) else features.copy()
