"""The posterior over partitions."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, logsumexp

from spinseg._validation import check_array, check_real, finite_array, invalid, per_item
from spinseg.graph.site_graph import SiteGraph
from spinseg.model.likelihoods import Likelihood
from spinseg.model.priors import ExchangeablePrior, PartitionPrior, Table
from spinseg.model.seeds import checked_seeds, keeps_seeds
from spinseg.partition.numbering import checked_labels

MAX_SITES_OF_KINDS = 400  # for which the sums over partitions are computed, where no formula is known


class Model:
    """A posterior over partitions of the sites of a graph.

    log P(partition | y) = power (sum_j log p(y_Aj) + sum over edges of beta_ij [z_i = z_j]) + log g(m_1..m_k) + const
    With power 1 it is the paper's posterior: marginal likelihood times Potts part times exchangeable part.

    Parameters
    ----------
    graph : SiteGraph
    likelihood : Likelihood
    prior : PartitionPrior
    beta : float, (n_edges,) or (n_components, n_edges) array
        Couplings. A negative one is evidence that its two sites belong apart. Several rows make an equal mixture of
        posteriors p_c that differ in their couplings, p(z | y) = mean over c of p_c(z | y): one of them is right, and
        it is unknown which. Each p_c is normalized, and sampling draws equally often from each.
    connected : bool
        Whether only partitions count all of whose clusters are connected in the graph. A cluster is then a region.
    power : float
        The weight of likelihood and couplings against the prior. Below 1 it makes up for evidence that is counted more
        than once, such as that of neighboring edges which see the same pixels.
    seeds : (n_sites,) array of int, optional
        Sites with the same positive number lie in one cluster, and sites with different ones in different clusters, in
        every partition that counts. Sites with 0, or less, are free. Clusters must be connected.
    kinds : PartitionPrior, optional
        Every region then has a kind, and this is the prior of the partition of the regions into kinds, given their
        number; `prior` is that of the regions alone. The likelihood is that of kinds, each with the sites of all its
        regions, where the formula above has clusters: regions of one kind share their appearance. Two regions of a kind
        may touch. Clusters must be connected.

    Attributes
    ----------
    tables : (log_v, log_w) or None
        The prior's tables at n_sites; None for an ExchangeablePrior.
    beta : (n_edges,) or, with several components, (n_components, n_edges) float64
    seeds : (n_sites,) int64 or None
        0 for sites without a seed; None where no site has one.
    kind_tables : (log_v, log_w, log_total) or None
        The tables of `kinds`, and the logarithm of their sum over all partitions of each number of regions. log_v has a
        row for each number of regions, or one row for all where the prior has the same log_v for any number.

    Examples
    --------
    >>> import spinseg as ss
    >>> graph = ss.SiteGraph(3, [[0, 1], [1, 2]])
    >>> model = ss.Model(
    ...     graph,
    ...     ss.DirichletMultinomial([[4, 0], [3, 1], [0, 5]]),
    ...     ss.DirichletProcess(1.0),
    ...     beta=0.5,
    ... )
    >>> round(
    ...     model.log_posterior([0, 0, 1]) - model.log_posterior([0, 0, 0]),
    ...     3,
    ... )
    -0.673
    >>> mixture = ss.Model(graph, ss.Flat(), model.prior, [[0, 0], [1, 1]])
    >>> mixture.n_components, mixture.component(1).beta
    (2, array([1., 1.]))
    """

    def __init__(
        self,
        graph: SiteGraph,
        likelihood: Likelihood,
        prior: PartitionPrior,
        beta: ArrayLike = 0.0,
        *,
        connected: bool = False,
        power: float = 1.0,
        seeds: ArrayLike | None = None,
        kinds: PartitionPrior | None = None,
    ) -> None:
        for name, value, kind in (
            ("graph", graph, SiteGraph),
            ("likelihood", likelihood, Likelihood),
            ("prior", prior, PartitionPrior),
            ("kinds", kinds, PartitionPrior | None),
        ):
            if not isinstance(value, kind):
                invalid(name, f"be a {getattr(kind, '__name__', 'PartitionPrior')}", value)
        if likelihood.n_sites not in (None, graph.n_sites):
            invalid("likelihood", f"have the graph's {graph.n_sites} sites", likelihood.n_sites)
        self.graph, self.likelihood, self.prior = graph, likelihood, prior
        self.beta = _couplings(beta, graph.n_edges)
        if not isinstance(connected, (bool, np.bool_)):
            invalid("connected", "be True or False", connected)
        self.connected = bool(connected)
        self.power = check_real("power", power, above=0)
        if seeds is not None and not self.connected:
            invalid("seeds", "not be given unless connected=True", "seeds")
        self.seeds = None if seeds is None else checked_seeds(seeds, graph)
        if kinds is not None and not self.connected:
            invalid("kinds", "not be given unless connected=True", kinds)
        self.kinds, self.kind_tables = kinds, None if kinds is None else kind_tables(kinds, graph.n_sites)
        _check_sizes(prior, self._parts, graph.n_sites)
        self.tables: tuple[Table, Table] | None = None
        if not isinstance(prior, ExchangeablePrior):
            self.tables = prior.tables(graph.n_sites)
        if not self.cluster_numbers.size:
            _refuse_numbers(prior, self._parts, graph.n_sites)

    def __repr__(self) -> str:
        kind = "" if not self.connected else " in connected clusters" if self.kinds is None else " in regions of kinds"
        mixed = f", {self.n_components} components" if self.n_components > 1 else ""
        head = f"Model of {self.graph.size}{kind}{mixed}"
        kinds = "" if self.kinds is None else f", kinds {self.kinds!r}"
        return f"{head}\n  {self.likelihood}\n  {self.prior!r}{kinds}, {_coupling_words(self.beta)}"

    @property
    def n_components(self) -> int:
        """Number of rows of couplings."""
        return 1 if self.beta.ndim == 1 else len(self.beta)

    @property
    def _parts(self) -> NDArray[np.int64]:
        """The numbers of sites in the parts of the graph that no cluster reaches across."""
        return self.graph.component_sizes if self.connected else np.array([self.graph.n_sites])

    @property
    def cluster_numbers(self) -> NDArray[np.intp]:
        """The numbers of clusters that the prior and its size limits allow, in rising order."""
        fewest, most = _limits(self.prior, self._parts)
        if self.tables is None:
            return np.arange(fewest, most + 1)
        return fewest + np.flatnonzero(self.tables[0][fewest : most + 1] > -np.inf)

    def component(self, c: int) -> Model:
        """The model with row `c` of the couplings alone."""
        alone = copy.copy(self)
        alone.beta = np.atleast_2d(self.beta)[c]
        return alone

    def with_prior(self, prior: PartitionPrior) -> Model:
        """The same model with another prior."""
        return self._changed(prior=prior)

    def with_seeds(self, seeds: ArrayLike | None) -> Model:
        """The same model with other seeds."""
        return self._changed(seeds=seeds)

    def _changed(self, **changes: Any) -> Model:
        names = ("graph", "likelihood", "prior", "beta", "connected", "power", "seeds", "kinds")
        return Model(**{name: getattr(self, name) for name in names} | changes)

    def allows(self, labels: ArrayLike) -> bool:
        """Whether the partition with equal labels together has a positive probability, with some kinds of regions."""
        z = checked_labels("labels", labels, self.graph.n_sites)
        has_kinds = self.kind_tables is None or self.kind_tables[2][int(z.max()) + 1] < np.inf
        return has_kinds and self.log_prior_of_sizes(np.bincount(z)) != -np.inf and self._is_connected(z)

    def _is_connected(self, z: NDArray[np.int32]) -> bool:
        """Whether clusters are connected and keep the seeds, where they must."""
        return not self.connected or (keeps_seeds(z, self.seeds) and self.graph.is_connected(z))

    def log_posterior(self, labels: ArrayLike, kinds: ArrayLike | None = None) -> float:
        """Unnormalized log posterior of the partition with equal labels together; -inf if it is not allowed.

        Where regions have kinds, `kinds` has the number of the kind of every site, which is that of its region. Only a
        model with one component has a log posterior: the normalizing constants of a mixture are unknown.
        """
        if self.n_components > 1:
            invalid("model", "have one component, such as model.component(0)", f"{self.n_components} components")
        if (kinds is None) != (self.kinds is None):
            invalid("kinds", "be given if, and only if, the model has kinds", kinds)
        z = checked_labels("labels", labels, self.graph.n_sites)
        of_kinds = None if kinds is None else checked_labels("kinds", kinds, self.graph.n_sites)
        return self.log_posterior_of_connected(z, of_kinds) if self._is_connected(z) else -np.inf

    def log_posterior_of_connected(self, z: NDArray[np.int32], kinds: NDArray[np.int32] | None) -> float:
        """`log_posterior` of checked labels whose clusters are connected and keep the seeds, where they must."""
        log_g, sharing = self.log_prior_of_sizes(np.bincount(z)), z if kinds is None else kinds
        if kinds is not None:
            log_g += self.log_prior_of_kinds(z, kinds)
        if log_g == -np.inf:
            return -np.inf
        agree = z[self.graph.edges[:, 0]] == z[self.graph.edges[:, 1]]
        return float(self.power * (self.likelihood.log_likelihood(sharing) + self.beta[agree].sum()) + log_g)

    def log_prior_of_kinds(self, regions: NDArray[np.integer], kinds: NDArray[np.integer]) -> float:
        """log p(kinds | regions), both as labels of the sites; -inf where a region has several kinds."""
        assert self.kind_tables is not None
        log_v, log_w, log_total = self.kind_tables
        n_regions, n_kinds = int(regions.max()) + 1, int(kinds.max()) + 1
        pairs = np.unique(regions.astype(np.int64) * n_kinds + kinds)
        sizes = np.bincount(pairs % n_kinds)
        if pairs.size > n_regions:
            return -np.inf
        row = min(n_regions, len(log_v) - 1)
        return float(log_v[row, sizes.size] + log_w[sizes].sum() - log_total[n_regions])

    def log_prior_of_sizes(self, sizes: NDArray[np.int64]) -> float:
        """log g of cluster sizes that add up to n_sites."""
        if self.tables is None:
            return self.prior.log_g(sizes)
        log_v, log_w = self.tables
        return float(log_v[sizes.size] + log_w[sizes].sum())


def _couplings(beta: ArrayLike, n_edges: int) -> NDArray[np.float64]:
    """One coupling for each edge, or several rows of these."""
    if check_array("beta", beta).ndim != 2:
        return per_item("beta", beta, n_edges)
    rows = finite_array("beta", beta, (None, n_edges))
    if not len(rows):
        invalid("beta", "have one or more rows", rows.shape)
    return rows[0] if len(rows) == 1 else rows


def _coupling_words(beta: NDArray[np.float64]) -> str:
    """The couplings in a few words."""
    if not beta.size or not beta.any():
        return "no couplings"
    if np.ptp(beta) == 0:
        return f"couplings of {beta.flat[0]:.4g}"
    return f"couplings from {beta.min():.3g} to {beta.max():.3g}"


def _check_sizes(prior: PartitionPrior, parts: NDArray[np.int64], n_sites: int) -> None:
    """Refuse size limits that no partition can meet: of the sites or, where clusters are connected, of a component."""
    smallest = int(parts.min())
    if prior.min_size > smallest:
        of_part = f"the sites of the smallest component of the graph, {smallest}, where clusters are connected"
        invalid("min_size", f"be at most {of_part if parts.size > 1 else f'n_sites, {n_sites}'}", prior.min_size)
    if prior.max_size is not None:
        impossible = parts[-(-parts // prior.max_size) > parts // prior.min_size]
        if impossible.size:
            name = "n_sites" if parts.size == 1 else "the size of each component of the graph"
            limits = f"min_size {prior.min_size} to max_size {prior.max_size}"
            invalid(name, f"be a sum of cluster sizes from {limits}", impossible[0])


def _limits(prior: PartitionPrior, parts: NDArray[np.int64]) -> tuple[int, int]:
    """The fewest and the most clusters that size limits leave, where no cluster has sites of two of the parts."""
    fewest = parts.size if prior.max_size is None else int((-(-parts // prior.max_size)).sum())
    return fewest, int((parts // prior.min_size).sum())


def _refuse_numbers(prior: PartitionPrior, parts: NDArray[np.int64], n_sites: int) -> None:
    """Refuse a prior whose numbers of clusters and size limits leave no partition."""
    n_labels, most_sites = getattr(prior, "n_labels", None), prior.max_size
    if n_labels is not None and most_sites is not None and n_labels * most_sites < n_sites:
        rule = f"satisfy max_size * n_labels >= n_sites, {n_labels} labels, {n_sites} sites"
        invalid("max_size", rule, most_sites)
    numbers = "{}..{}".format(*_limits(prior, parts))
    invalid("prior", f"allow some partition of {n_sites} sites into {numbers} clusters", type(prior).__name__)


def kind_tables(prior: PartitionPrior, n_sites: int) -> tuple[Table, Table, Table]:
    """log_v, (1 or n_sites + 1, n_sites + 1), log_w and log_total, each of length n_sites + 1.

    p(kinds | r regions) = exp(log_v[r, k] + sum of log_w[m_j] - log_total[r]) with m_j regions of kind j; log_v has one
    row where it does not depend on r. log_total is infinite where the prior allows no partition of that number of
    regions.
    """
    if isinstance(prior, ExchangeablePrior):
        invalid("kinds", "be a prior with tables, such as TabulatedPrior", prior)
    is_large = n_sites > MAX_SITES_OF_KINDS
    numbers = {1, n_sites // 2, n_sites - 1, n_sites} - {0} if is_large else range(1, n_sites + 1)
    tables = {n: prior.tables(n) for n in numbers}
    log_v, log_w = whole = tables[n_sites]
    varies_v, varies_w = (
        not all(np.allclose(own[t][1:], whole[t][1 : n + 1], rtol=1e-12, atol=1e-12) for n, own in tables.items())
        for t in (0, 1)
    )
    has_limits = prior.min_size > 1 or (prior.max_size is not None and prior.max_size < n_sites)
    is_known = not has_limits and prior.log_normalizer(n_sites) is not None
    if is_large and (varies_v or varies_w or not is_known):
        of_known_sum = "a DirichletProcess, PitmanYor, FiniteDirichlet or Potts without limits"
        invalid("kinds", f"be {of_known_sum} on more than {MAX_SITES_OF_KINDS} sites", prior)
    if varies_w:
        same = f"such as a TemperedProcess with an n_reference of at least {n_sites}"
        invalid("kinds", f"be a prior with the same log_w for any number of regions, {same}", prior)
    rows = log_v[None]
    if varies_v:
        rows = np.full((n_sites + 1, n_sites + 1), -np.inf)
        for n, (row, _) in tables.items():
            rows[n, : n + 1] = row
    if is_known:
        known = [prior.log_normalizer(n) for n in range(1, n_sites + 1)]
        return rows, log_w, np.array([0.0, *known], dtype=np.float64)
    log_total = _log_sums(rows, log_w)
    return rows, log_w, np.where(log_total > -np.inf, log_total, np.inf)


def _log_sums(rows: Table, log_w: Table) -> NDArray[np.float64]:
    """The log of the sum of exp(log_v[k] + sum of log_w) over all partitions of 0..n items, with no item's as 0.

    `rows` are log_v for each number of items, or for all. The cluster of the first item has m - 1 of the others, and
    what is left is partitioned into k - 1 clusters.
    """
    n = log_w.size - 1
    items, size = np.arange(n + 1)[:, None], np.arange(n + 1)
    left = items - size
    ways = np.full((n + 1, n + 1), -np.inf)
    fits = (size >= 1) & (left >= 0)
    ways[fits] = (
        gammaln(np.maximum(items, 1)) - gammaln(np.maximum(size, 1)) - gammaln(np.maximum(left, 0) + 1) + log_w
    )[fits]
    into = np.where(size == 0, 0.0, -np.inf)  # k clusters, from k = 0 on
    total = np.full(n + 1, -np.inf)
    for k in range(1, n + 1):
        with np.errstate(divide="ignore"):
            into = logsumexp(ways + into[np.maximum(left, 0)], axis=1)
        total = np.logaddexp(total, rows[:, k] + into)
    total[0] = 0.0
    return total
