"""The posterior over clusters of the rows of a table: likelihood, couplings, price of a cluster, and two starts."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sparse
from numpy.typing import NDArray
from scipy.sparse.linalg import ArpackError, svds

from spinseg._validation import check_choice, check_real, invalid
from spinseg.graph.site_graph import SiteGraph
from spinseg.image.features import k_means, nearest_center
from spinseg.model.gaussians import DiagonalGaussian
from spinseg.model.likelihoods import DenseTerm, DirichletMultinomial, HistogramTerm, Likelihood, PoissonGamma
from spinseg.model.posterior import Model
from spinseg.model.priors import DirichletProcess, PartitionPrior, Table
from spinseg.partition.numbering import checked_labels
from spinseg.sampler.kernels.state import Target
from spinseg.sampler.pack import pack, terms_of
from spinseg.sampler.plan import bond_strengths
from spinseg.sampler.starts import greedy_labels, starting_labels

LikelihoodOf = str | Callable[[Any], Likelihood]
LIKELIHOODS: dict[str, Callable[[Any], Likelihood]] = {
    "gaussian": DiagonalGaussian,
    "histogram": DirichletMultinomial,
    "poisson": PoissonGamma,
}
TOTAL_COUPLING = 8.0  # of a site to all of its neighbors, in nats, on average
MIN_EVIDENCE = 0.03  # that a cluster has to contribute, of all
N_PARTS = 30  # that k-means divides the sites into
N_SMOOTHINGS = 2  # times that features are averaged over neighbors
MAX_FEATURES = 50  # more are reduced to so many
MAX_SAMPLED = 20_000  # sites that the centers of k-means are found from


def clustering_model(
    features: Any,
    graph: SiteGraph,
    *,
    prior: PartitionPrior | None,
    beta: float | None,
    likelihood: LikelihoodOf,
    connected: bool,
    min_evidence: float = MIN_EVIDENCE,
) -> Model:
    """The posterior over clusters of the rows of a table; couplings are `beta` times the weights of the graph.

    The default of `beta` is strong enough for neighbors to share a cluster if the features do not say otherwise, and
    that of `prior` is a price for each cluster, as `with_price` has it. A Dirichlet process with such couplings would
    put all into one cluster: it favors unequal sizes by as many nats as make up for independent labels of the sites. It
    is the default where there are no neighbors.
    """
    min_evidence = check_real("min_evidence", min_evidence, at_least=0)
    if not callable(likelihood):
        check_choice("likelihood", likelihood, tuple(LIKELIHOODS))
    if sparse.issparse(features) and likelihood != "histogram":
        features = features.toarray()
    of_features = likelihood if callable(likelihood) else LIKELIHOODS[likelihood]
    if connected and graph.n_sites > 1 and not graph.n_edges:
        rule = "join some samples where connected=True: without neighbors every sample would be a cluster of its own"
        invalid("connectivity", rule, "no neighbors")
    couplings = coupling_strength(graph, beta) * graph.length
    chosen = DirichletProcess(1.0) if prior is None else prior
    model = Model(graph, of_features(features), chosen, couplings, connected=connected)
    return with_price(model, min_evidence) if prior is None and couplings.any() else model


def coupling_strength(graph: SiteGraph, beta: float | None) -> float:
    """`beta`, or by default that at which the couplings of a site add up to TOTAL_COUPLING, on average."""
    if beta is not None:
        return check_real("beta", beta)
    total = 2 * np.abs(graph.length).sum() / graph.n_sites
    return float(TOTAL_COUPLING / total) if total > 0 else 0.0


class ClusterPrice(PartitionPrior):
    """Each cluster costs `price` nats, whatever its size: log_v[k] = -k price, log_w = 0.

    It is `TemperedProcess(exp(-price), power=0)`, also where that number would be too small for a computer.
    """

    def __init__(self, price: float, *, min_size: int = 1, max_size: int | None = None) -> None:
        super().__init__(min_size=min_size, max_size=max_size)
        self.price = price

    def _tables(self, n_sites: int) -> tuple[Table, Table]:
        return -self.price * np.arange(n_sites + 1.0), np.zeros(n_sites + 1)


def with_price(model: Model, share: float) -> Model:
    """The model with a price for each cluster: log n_sites, and `share` of what clusters explain.

    What they explain is how much more probable than one cluster the better start is, in nats, at log n_sites a cluster.
    A cluster thus has to explain a share of what all do together. Features vary within clusters in ways that no
    likelihood knows, which the evidence for the clusters grows with, too; a price that does not would pay for each.
    """
    n_sites = model.graph.n_sites
    model = model.with_prior(ClusterPrice(math.log(n_sites)))
    one = model.graph.pieces(np.zeros(n_sites, np.int32)) if model.connected else np.zeros(n_sites, np.int32)
    best = starting_partitions(model, np.random.default_rng(0))[0]
    explained = max(model.log_posterior(best) - model.log_posterior(one), 0.0)
    return model.with_prior(ClusterPrice(math.log(n_sites) + share * explained))


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
    return greedy_labels(target, checked_labels("parts", parts, n_sites), model.connected)


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
