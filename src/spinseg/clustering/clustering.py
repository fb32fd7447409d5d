"""Clusters of the rows of a table that have neighbors: posterior, two starts, labels, and how sure each label is."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sparse
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment
from scipy.sparse.linalg import ArpackError, svds

from spinseg._run.progress import Report
from spinseg._validation import check_choice, check_int, check_real, invalid
from spinseg.graph.site_graph import SiteGraph
from spinseg.image.features import k_means, nearest_center
from spinseg.model.gaussians import DiagonalGaussian
from spinseg.model.likelihoods import DenseTerm, DirichletMultinomial, HistogramTerm, Likelihood, PoissonGamma
from spinseg.model.posterior import Model
from spinseg.model.priors import DirichletProcess, PartitionPrior, Table
from spinseg.partition.numbering import checked_labels
from spinseg.partition.pairs import flatten_draws
from spinseg.sampler.chains import Chains
from spinseg.sampler.diagnostics import ADVICE, Diagnostics, diagnose
from spinseg.sampler.estimates import allowed_estimate
from spinseg.sampler.pack import pack, terms_of
from spinseg.sampler.plan import bond_strengths
from spinseg.sampler.sampler import sample, thin_to_fit
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
MAX_FEATURES = 50  # more are reduced to these
MAX_SAMPLED = 20_000  # sites that the centers of k-means are found from
FAR_BELOW = 5.0  # standard deviations of the log posterior, with one nat more
MAX_DRAWS = 200  # that the labels are estimated from
CLUSTERING_ADVICE = (
    "Give more sweeps while the log posterior of a chain still rises (`chains.plot()`, or `chains_.plot()` of an "
    "estimator). Where each is level, they found different partitions: trust the labels of high probability alone, and "
    "try fewer features, or a larger min_evidence, which makes fewer clusters."
)
START_APART = "Start chains from different places to tell."  # what a verdict advises where nothing varied


@dataclass(frozen=True, eq=False, repr=False)
class Clustering:
    """Clusters of sites, and the chains that they were estimated from.

    `labels`, (n_sites,), are the partition of least expected variation of information, numbered by first appearance,
    over the draws of those chains whose log posterior is not far below that of the best. `membership`, (n_sites,
    n_clusters), is how often each site is in each cluster, over the draws of all chains.
    """

    labels: NDArray[np.int32]
    membership: NDArray[np.float64]
    chains: Chains
    diagnostics: Diagnostics

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return self.membership.shape[1]

    @property
    def probability(self) -> NDArray[np.float64]:
        """How sure the label of each site is: its membership in its own cluster."""
        return self.membership[np.arange(self.labels.size), self.labels]


class ClusterPrice(PartitionPrior):
    """Each cluster costs `price` nats, whatever its size: `TemperedProcess(exp(-price), power=0)`, for any price."""

    def __init__(self, price: float, *, min_size: int = 1, max_size: int | None = None) -> None:
        super().__init__(min_size=min_size, max_size=max_size)
        self.price = price

    def _tables(self, n_sites: int) -> tuple[Table, Table]:
        return -self.price * np.arange(n_sites + 1.0), np.zeros(n_sites + 1)


def coupling_strength(graph: SiteGraph, beta: float | None) -> float:
    """`beta`, or by default that at which the couplings of a site add up to TOTAL_COUPLING, on average."""
    if beta is not None:
        return check_real("beta", beta)
    total = 2 * np.abs(graph.length).sum() / graph.n_sites
    return float(TOTAL_COUPLING / total) if total > 0 else 0.0


def clustering_model(
    features: Any,
    graph: SiteGraph,
    *,
    prior: PartitionPrior | None = None,
    beta: float | None = None,
    likelihood: LikelihoodOf = "gaussian",
    connected: bool = False,
    min_evidence: float = MIN_EVIDENCE,
) -> Model:
    """The posterior over clusters of the rows of a table; couplings are `beta` times the weights of the graph.

    With couplings of the default `beta` a Dirichlet process would put all into one cluster: it favors unequal sizes by
    as many nats as make up for independent labels. It is the default prior only where there are no neighbors.

    Else each cluster costs log n_sites, and a share `min_evidence` of what clusters explain: how much more probable
    than one cluster the better start is, in nats, at log n_sites a cluster. Features vary within clusters in ways that
    no likelihood knows, and the evidence for such clusters grows with them.
    """
    min_evidence = check_real("min_evidence", min_evidence, at_least=0)
    if not callable(likelihood):
        check_choice("likelihood", likelihood, tuple(LIKELIHOODS))
    if sparse.issparse(features) and likelihood != "histogram":
        features = features.toarray()
    of_features = likelihood if callable(likelihood) else LIKELIHOODS[likelihood]
    n_sites = graph.n_sites
    if connected and n_sites > 1 and not graph.n_edges:
        rule = "join some samples where connected=True: without neighbors every sample would be a cluster of its own"
        invalid("connectivity", rule, "no neighbors")
    couplings = coupling_strength(graph, beta) * graph.length
    usual = DirichletProcess(1.0) if prior is None else prior
    model = Model(graph, of_features(features), usual, couplings, connected=connected)
    if prior is not None or not couplings.any():
        return model
    model = model.with_prior(ClusterPrice(math.log(n_sites)))
    one = np.zeros(n_sites, np.int32)
    best = starting_partitions(model, np.random.default_rng(0))[0]
    explained = model.log_posterior(best) - model.log_posterior(graph.pieces(one) if connected else one)
    return model.with_prior(ClusterPrice(math.log(n_sites) + min_evidence * max(explained, 0.0)))


def starting_partitions(model: Model, rng: np.random.Generator) -> list[NDArray[np.int32]]:
    """Two partitions for chains to start from in turn, so that their agreement says something; the more probable first.

    One is merged from single sites, or is a single cluster where there are no neighbors. The other is merged from parts
    that k-means finds in the features: where most of these are noise, merging of single sites ends anywhere.
    """
    graph, target = model.graph, pack(model, bond_strengths(model, None, "auto")[0])
    starts = [starting_labels(model, target, "greedy" if graph.n_edges else "one")]
    merged = []
    for view in _views(model, rng):
        sampled = view if len(view) <= MAX_SAMPLED else view[rng.choice(len(view), MAX_SAMPLED, replace=False)]
        parts = nearest_center(view, k_means(sampled, N_PARTS, rng))
        parts = checked_labels("parts", graph.pieces(parts) if model.connected else parts, graph.n_sites)
        merged.append(greedy_labels(target, parts, model.connected))
    if allowed := [labels for labels in merged if model.allows(labels)]:
        starts.append(max(allowed, key=model.log_posterior))
    return sorted(starts, key=model.log_posterior, reverse=True)


def _views(model: Model, rng: np.random.Generator) -> Iterator[NDArray[np.float32]]:
    """Features to divide the sites by: as they are and in units of their spread, averaged over neighbors or not."""
    terms = [_reduced(_features(term), rng) for term in terms_of(model.likelihood, model.graph.n_sites)]
    if sum(term.shape[1] for term in terms) == 0:  # no data, or counts that are all 0
        return
    features = np.hstack(terms)
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
    if min(features.shape) > MAX_FEATURES:
        try:
            left, strength, _ = svds(features, k=MAX_FEATURES, v0=rng.normal(size=min(features.shape)))
            return left * strength
        except ArpackError:  # of lower rank than MAX_FEATURES, down to 0 where nothing varies
            dense = features.toarray() if sparse.issparse(features) else features
            left, strength, _ = np.linalg.svd(dense, full_matrices=False)
            return left[:, :MAX_FEATURES] * strength[:MAX_FEATURES]
    return features.toarray() if sparse.issparse(features) else features.copy()


def find_clusters(
    model: Model, sweeps: int, chains: int, seed: int, progress: bool | Report | None = None
) -> Clustering:
    """Sample chains, of which the first half is burn-in, and estimate clusters from the draws.

    Chains start in turn from two partitions: under couplings as strong as these, few find out of one cluster. Those
    that stay far below the best one are stuck, and do not count for the labels, which have at most as many clusters as
    a draw.
    """
    sweeps, chains = check_int("sweeps", sweeps, at_least=1), check_int("chains", chains, at_least=1)
    burn_in, starts = sweeps // 2, starting_partitions(model, np.random.default_rng(seed))
    thin = thin_to_fit(sweeps - burn_in, chains * model.graph.n_sites)
    init = [starts[c % len(starts)] for c in range(chains)]
    drawn = sample(model, sweeps, chains, init=init, burn_in=burn_in, thin=thin, rng=seed, progress=progress)
    values, means = drawn.log_posterior, drawn.log_posterior.mean(axis=1)
    draws = drawn.labels[means >= means.max() - FAR_BELOW * (1 + values[means.argmax()].std())]
    most = int(draws.max()) + 1
    labels = allowed_estimate(model, draws, "vi", max_clusters=most, max_draws=MAX_DRAWS, rng=seed)
    diagnostics = diagnose(drawn, model.graph)
    verdict = diagnostics.verdict.replace(ADVICE, CLUSTERING_ADVICE)
    if len(starts) > 1:
        verdict = verdict.replace(START_APART, "They started from partitions made in two ways.")
    return Clustering(labels, membership(drawn.labels, labels), drawn, replace(diagnostics, verdict=verdict))


def membership(draws: ArrayLike, labels: NDArray[np.int32]) -> NDArray[np.float64]:
    """How often each site is in each cluster of `labels`, (n_sites, n_clusters), over draws of shape (.., n_sites).

    The clusters of a draw get the labels with which as many sites as possible keep theirs, each label once
    (Papastamoulis & Iliopoulos 2010, doi:10.1198/jcgs.2010.09008). Clusters that are left over get none, so that the
    memberships of a site add up to at most 1.
    """
    rows, sites = flatten_draws(draws), np.arange(labels.size)
    n_times = np.zeros((labels.size, int(labels.max()) + 1))
    for row in rows:
        draw = checked_labels("draws", row, labels.size)  # so that ties do not depend on how clusters are numbered
        shared = np.zeros((n_times.shape[1], int(draw.max()) + 1), np.int64)
        np.add.at(shared, (labels, draw), 1)
        label, cluster = linear_sum_assignment(shared, maximize=True)
        matched = shared[label, cluster] > 0
        label_of = np.full(shared.shape[1], -1)
        label_of[cluster[matched]] = label[matched]
        found = label_of[draw]
        n_times[sites[found >= 0], found[found >= 0]] += 1
    return n_times / len(rows)
