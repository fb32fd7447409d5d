"""Clustering of samples with neighbors, as an estimator of scikit-learn."""

import warnings
from typing import Any, Self

from spinseg._errors import InvalidInput, needing
from spinseg._run.progress import Report
from spinseg._validation import counted, invalid
from spinseg.clustering.clustering import MIN_EVIDENCE, LikelihoodOf, clustering_model, find_clusters
from spinseg.graph.site_graph import SiteGraph
from spinseg.model.priors import PartitionPrior

with needing("SpatialClustering needs scikit-learn of at least 1.6: pip install 'spinseg[sklearn]'"):
    from sklearn.base import BaseEstimator, ClusterMixin
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.utils import check_random_state
    from sklearn.utils.validation import validate_data


class SpatialClustering(ClusterMixin, BaseEstimator):
    """Cluster samples by their features and their neighbors, and infer the number of clusters.

    Samples are sites of a graph. Draws from the posterior over their partitions give the labels, those of least
    expected variation of information, and how certain each is. Chains that are stuck far below the best in log
    posterior lower the probabilities, but do not affect the labels.

    Parameters
    ----------
    prior : PartitionPrior, optional
        The prior on cluster sizes. By default each cluster has a price of log n_samples nats and of a share
        `min_evidence` of what clusters explain; without neighbors it is `DirichletProcess(1.0)`. `ss.Potts(k)` allows
        at most k clusters.
    beta : float, optional
        How strongly neighbors attract each other: the coupling of an edge is `beta` times its weight. By default the
        couplings of a sample to all of its neighbors add up to 8 nats, on average.
    likelihood : {"gaussian", "histogram", "poisson"} or callable
        What the features are: numbers that vary independently within a cluster (`DiagonalGaussian`), a histogram of
        counts (`DirichletMultinomial`), or independent counts (`PoissonGamma`). A function from X to a `Likelihood`
        chooses another one, or other parameters, such as `ss.Gaussian`, whose features may be correlated.
    min_evidence : float
        Minimum share of the total evidence gain per cluster: the larger, the fewer clusters. The gain is how much more
        probable than a single cluster a first partition is, in nats. No effect with a `prior`, or without neighbors.
    connected : bool
        Whether each cluster must be connected, as those of `AgglomerativeClustering` are; `fit` then needs
        `connectivity`.
    sweeps, chains : int
        Sweeps of each chain, the first half of which is burn-in, and the number of chains.
    random_state : int, RandomState or None
        The same whole number gives the same labels.
    progress : bool or callable, optional
        As in `sample`: True shows a bar on standard error.

    Attributes
    ----------
    labels_ : (n_samples,) int32
        Numbered from 0 by first appearance.
    n_clusters_ : int
    probability_ : (n_samples,) float64
        How sure each label is: the share of draws in which the sample has it, when the clusters of each draw get the
        labels with which as many samples as possible keep theirs, each label once.
    membership_ : (n_samples, n_clusters) float64
        The same for every label. Clusters of a draw that are left over get no label, so that rows add up to at most 1.
    draws_ : (chain, draw, n_samples) int32
        The partitions, for `credible_ball`, `co_clustering` and others.
    chains_ : Chains
        Their traces, for `chains_.plot()`.
    diagnostics_ : Diagnostics
        Whether the chains have converged. Where they have not, `fit` gives a `ConvergenceWarning`. They start in turn
        from single samples, merged, and from parts of similar features, merged; agreement does not show what both miss.
    n_features_in_ : int
    feature_names_in_ : (n_features,) array
        Where X has them.

    Examples
    --------
    >>> import spinseg as ss
    >>> X = 2 * [[0.1], [0.0], [0.2]] + 2 * [[5.1], [5.0], [5.2]]
    >>> row = ss.SiteGraph.grid((12,))
    >>> estimator = ss.SpatialClustering(random_state=0)
    >>> estimator.fit(X, connectivity=row).labels_
    array([0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1], dtype=int32)
    """

    def __init__(
        self,
        prior: PartitionPrior | None = None,
        beta: float | None = None,
        likelihood: LikelihoodOf = "gaussian",
        *,
        min_evidence: float = MIN_EVIDENCE,
        connected: bool = False,
        sweeps: int = 1000,
        chains: int = 4,
        random_state: Any = None,
        progress: bool | Report | None = None,
    ) -> None:
        self.prior = prior
        self.beta = beta
        self.likelihood = likelihood
        self.min_evidence = min_evidence
        self.connected = connected
        self.sweeps = sweeps
        self.chains = chains
        self.random_state = random_state
        self.progress = progress

    def fit(self, X: Any, y: None = None, connectivity: Any = None) -> Self:
        """Find the clusters of the rows of X.

        Parameters
        ----------
        X : (n_samples, n_features) array, or sparse matrix of a histogram
        y : ignored
        connectivity : SiteGraph, (n_samples, n_samples) sparse matrix or array, or a function from X to one, optional
            Which samples are neighbors, and with which weights; what lies on the diagonal is ignored. Without it there
            are no neighbors.

        Returns
        -------
        SpatialClustering
            The estimator itself, with `labels_` and the other fitted attributes.
        """
        X = validate_data(self, X, accept_sparse="csr" if self.likelihood == "histogram" else False, dtype="float64")
        model = clustering_model(
            X,
            _graph(connectivity, X),
            prior=self.prior,
            beta=self.beta,
            likelihood=self.likelihood,
            connected=self.connected,
            min_evidence=self.min_evidence,
        )
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        found = find_clusters(model, self.sweeps, self.chains, seed, self.progress)
        if found.diagnostics.converged is False:
            warnings.warn(found.diagnostics.verdict, ConvergenceWarning, stacklevel=2)
        self.labels_, self.n_clusters_ = found.labels, found.n_clusters
        self.probability_, self.membership_ = found.probability, found.membership
        self.draws_, self.chains_, self.diagnostics_ = found.chains.labels, found.chains, found.diagnostics
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.likelihood == "histogram"
        tags.input_tags.positive_only = self.likelihood in ("histogram", "poisson")
        return tags


def _graph(connectivity: Any, X: Any) -> SiteGraph:
    """The graph of the samples."""
    if connectivity is None:
        return SiteGraph(X.shape[0], [])
    found = connectivity(X) if callable(connectivity) else connectivity
    if hasattr(found, "nodes") and hasattr(found, "edges"):
        what = f"connectivity is a networkx graph: {type(found).__name__} of {counted(len(found.nodes), 'node')}"
        advice = "Pass SiteGraph.from_networkx(graph), whose sites are the nodes in the order of the graph."
        raise InvalidInput(f"{what}. {advice}")
    graph = found if isinstance(found, SiteGraph) else SiteGraph.from_sparse(found, simplify=True)
    if graph.n_sites != X.shape[0]:
        invalid("connectivity", f"join the {X.shape[0]} samples of X", f"{graph.n_sites} rows")
    return graph
