"""Clusters of the sites of a graph from a table of their features, and how sure each label is."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sparse
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment

from spinseg._validation import check_choice, check_int, check_real, invalid
from spinseg.inference.contingency import contingency_table
from spinseg.inference.diagnostics import Diagnostics, diagnose
from spinseg.inference.estimates.minimize import minimize_vi
from spinseg.inference.estimates.pairs import flatten_draws
from spinseg.inference.sampler import sample, thin_to_fit
from spinseg.model.gaussians import DiagonalGaussian
from spinseg.model.graph import SiteGraph
from spinseg.model.likelihoods import DirichletMultinomial, Likelihood, PoissonGamma
from spinseg.model.posterior import Model
from spinseg.model.priors import DirichletProcess, PartitionPrior, TemperedProcess

LikelihoodOf = str | Callable[[Any], Likelihood]
LIKELIHOODS: dict[str, Callable[[Any], Likelihood]] = {
    "gaussian": DiagonalGaussian,
    "histogram": DirichletMultinomial,
    "poisson": PoissonGamma,
}
TOTAL_COUPLING = 8.0  # of a site to all of its neighbors, in nats, on average
MAX_DRAWS = 200  # that the labels are estimated from


class Clustering(NamedTuple):
    """Clusters of sites, and the draws that they were estimated from.

    Attributes
    ----------
    labels : (n_sites,) int32
        The partition of least expected variation of information, numbered by first appearance.
    membership : (n_sites, n_clusters) float64
        As `membership` has it.
    draws : (chain, draw, site) int32
    diagnostics : Diagnostics
    """

    labels: NDArray[np.int32]
    membership: NDArray[np.float64]
    draws: NDArray[np.int32]
    diagnostics: Diagnostics

    @property
    def probability(self) -> NDArray[np.float64]:
        """How sure the label of each site is: its membership in its own cluster."""
        return self.membership[np.arange(self.labels.size), self.labels]


def clustering_model(
    features: Any,
    graph: SiteGraph,
    *,
    prior: PartitionPrior | None,
    beta: float | None,
    likelihood: LikelihoodOf,
    connected: bool,
) -> Model:
    """The posterior over clusters of the rows of a table; couplings are `beta` times the weights of the graph.

    The default of `beta` is strong enough for neighbors to share a cluster if the features do not say otherwise, and
    that of `prior` is a price of log n_sites for each cluster. A Dirichlet process with such couplings would put all
    into one cluster: it favors unequal sizes by as many nats as make up for independent labels of the sites. It is the
    default where there are no neighbors.
    """
    if not callable(likelihood):
        check_choice("likelihood", likelihood, tuple(LIKELIHOODS))
    if sparse.issparse(features) and likelihood != "histogram":
        features = features.toarray()
    of_features = likelihood if callable(likelihood) else LIKELIHOODS[likelihood]
    weights = np.ones(graph.n_edges) if graph.weights is None else graph.weights
    if beta is None:
        total = 2 * np.abs(weights).sum() / graph.n_sites
        beta = TOTAL_COUPLING / total if total > 0 else 0.0
    if prior is None:
        prior = TemperedProcess(1 / graph.n_sites, power=0.0) if weights.any() else DirichletProcess(1.0)
    return Model(graph, of_features(features), prior, check_real("beta", beta) * weights, connected=connected)


def find_clusters(model: Model, sweeps: int, chains: int, seed: int) -> Clustering:
    """Sample chains, of which the first half is burn-in, and estimate clusters from the draws.

    Chains start from the greedy partition: under couplings as strong as these, few find out of one cluster.
    """
    sweeps, chains = check_int("sweeps", sweeps, at_least=1), check_int("chains", chains, at_least=1)
    burn_in, start = sweeps // 2, "greedy" if model.graph.n_edges else "one"
    thin = thin_to_fit(sweeps - burn_in, chains * model.graph.n_sites)
    drawn = sample(model, sweeps, chains, init=start, burn_in=burn_in, thin=thin, rng=seed)
    among = model.graph if model.connected else None
    labels = minimize_vi(drawn.labels, graph=among, max_draws=MAX_DRAWS, rng=seed).labels
    return Clustering(labels, membership(drawn.labels, labels), drawn.labels, diagnose(drawn, model.graph))


def membership(draws: ArrayLike, labels: NDArray[np.int32]) -> NDArray[np.float64]:
    """How often each site is in each cluster of `labels`, (n_sites, n_clusters), over draws of shape (.., n_sites).

    The clusters of a draw get the labels with which as many sites as possible keep theirs, each label once. Clusters
    that are left over get none, so that the memberships of a site add up to at most 1.

    References
    ----------
    Papastamoulis & Iliopoulos (2010), https://doi.org/10.1198/jcgs.2010.09008

    Examples
    --------
    >>> membership([[0, 0, 1, 1], [1, 1, 0, 0], [0, 1, 1, 1], [0, 1, 2, 2]], np.array([0, 0, 1, 1])).tolist()
    [[1.0, 0.0], [0.5, 0.25], [0.0, 1.0], [0.0, 1.0]]
    """
    rows = flatten_draws(draws)
    sites, n_labels = np.arange(labels.size), int(labels.max()) + 1
    if rows.shape[1] != labels.size:
        invalid("labels", f"have the {rows.shape[1]} sites of the draws", labels.shape)
    n_times = np.zeros((labels.size, n_labels))
    for draw in rows:
        table = contingency_table(labels, draw)
        shared = np.zeros((n_labels, table.column_sizes.size), np.int64)
        shared[table.row, table.column] = table.shared
        label, cluster = linear_sum_assignment(shared, maximize=True)
        matched = shared[label, cluster] > 0
        label_of = np.full(table.column_sizes.size, -1)
        label_of[cluster[matched]] = label[matched]
        found = label_of[draw]
        n_times[sites[found >= 0], found[found >= 0]] += 1
    return n_times / len(rows)
