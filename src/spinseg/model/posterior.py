"""The posterior over partitions."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinseg import _validation
from spinseg._validation import invalid
from spinseg.model.graph import SiteGraph
from spinseg.model.likelihoods import Likelihood
from spinseg.model.priors import ExchangeablePrior, PartitionPrior, Table


class Model:
    """A posterior over partitions of the sites of a graph.

    log P(partition | y) = sum_j log p(y_Aj) + sum over edges of beta_ij [z_i = z_j] + log g(m_1..m_k) + const
    (the paper's posterior: marginal likelihood times Potts part times exchangeable part).

    Parameters
    ----------
    graph : SiteGraph
    likelihood : Likelihood
    prior : PartitionPrior
    beta : float or (n_edges,) array
        Couplings. A negative one is evidence that its two sites belong apart.

    Attributes
    ----------
    tables : (log_v, log_w) or None
        The prior's tables at n_sites; None for an ExchangeablePrior.

    Examples
    --------
    >>> import spinseg as ss
    >>> graph = ss.SiteGraph(3, [[0, 1], [1, 2]])
    >>> model = ss.Model(graph, ss.DirichletMultinomial([[4, 0], [3, 1], [0, 5]]), ss.DirichletProcess(1.0), beta=0.5)
    >>> round(model.log_posterior([0, 0, 1]) - model.log_posterior([0, 0, 0]), 3)
    -0.673
    """

    def __init__(self, graph: SiteGraph, likelihood: Likelihood, prior: PartitionPrior, beta: ArrayLike = 0.0) -> None:
        for name, value, kind in (
            ("graph", graph, SiteGraph),
            ("likelihood", likelihood, Likelihood),
            ("prior", prior, PartitionPrior),
        ):
            if not isinstance(value, kind):
                invalid(name, f"be a {kind.__name__}", value)
        if likelihood.n_sites not in (None, graph.n_sites):
            invalid("likelihood", f"have the graph's {graph.n_sites} sites", likelihood.n_sites)
        self.graph, self.likelihood, self.prior = graph, likelihood, prior
        self.beta: NDArray[np.float64] = _validation.per_item("beta", beta, graph.n_edges)
        _check_sizes(prior, graph.n_sites)
        self.tables: tuple[Table, Table] | None = None
        if not isinstance(prior, ExchangeablePrior):
            self.tables = prior.tables(graph.n_sites)
            _check_possible(prior, self.tables[0], graph.n_sites)

    def log_posterior(self, labels: ArrayLike) -> float:
        """Unnormalised log posterior of the partition with equal labels together; -inf where the prior forbids it."""
        z = _validation.labels("labels", labels, self.graph.n_sites)
        log_g = self.log_prior_of_sizes(np.bincount(z))
        if log_g == -np.inf:
            return log_g
        order = np.argsort(z, kind="stable")
        clusters = np.split(order, np.cumsum(np.bincount(z))[:-1])
        agree = z[self.graph.edges[:, 0]] == z[self.graph.edges[:, 1]]
        log_likelihood = sum(self.likelihood.log_marginal(sites) for sites in clusters)
        return float(log_likelihood + self.beta[agree].sum() + log_g)

    def log_prior_of_sizes(self, sizes: NDArray[np.int64]) -> float:
        """log g of cluster sizes that add up to n_sites."""
        if self.tables is None:
            return self.prior.log_g(sizes)
        log_v, log_w = self.tables
        return float(log_v[sizes.size] + log_w[sizes].sum())


def _check_sizes(prior: PartitionPrior, n_sites: int) -> None:
    """Refuse size limits that no partition of n_sites sites can meet."""
    if prior.min_size > n_sites:
        invalid("min_size", f"be at most n_sites, {n_sites}", prior.min_size)
    if prior.max_size is not None and -(-n_sites // prior.max_size) > n_sites // prior.min_size:
        limits = f"min_size {prior.min_size} to max_size {prior.max_size}"
        invalid("n_sites", f"be a sum of cluster sizes from {limits}", n_sites)


def _check_possible(prior: PartitionPrior, log_v: Table, n_sites: int) -> None:
    """Refuse a prior whose numbers of clusters and size limits leave no partition."""
    fewest = 1 if prior.max_size is None else -(-n_sites // prior.max_size)
    most = n_sites // prior.min_size
    allowed = np.flatnonzero(log_v[1:] > -np.inf) + 1
    if not ((allowed >= fewest) & (allowed <= most)).any():
        n_labels = getattr(prior, "n_labels", None)
        if n_labels is not None and prior.max_size is not None:
            invalid(
                "max_size",
                f"satisfy max_size * n_labels >= n_sites, {n_labels} labels, {n_sites} sites",
                prior.max_size,
            )
        invalid(
            "prior", f"allow some partition of {n_sites} sites into {fewest}..{most} clusters", type(prior).__name__
        )
