"""The distance-dependent Chinese restaurant process, dd-CRP, and its region-based form rdd-CRP.

Ghosh, Ungureanu, Sudderth & Blei, Spatial distance dependent Chinese restaurant processes for image segmentation, NIPS
2011. Every site links to itself or to a neighbor; sites connected by links form a region. In the dd-CRP every region is
a cluster. In the rdd-CRP a Chinese restaurant process assigns regions to clusters.
"""

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import scipy.sparse as sparse
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from spinseg._validation import check_choice, check_int, check_real, generator, invalid
from spinseg.graph.edges import connected_components
from spinseg.graph.site_graph import SiteGraph
from spinseg.model.likelihoods import HistogramTerm, Likelihood
from spinseg.model.posterior import Model
from spinseg.model.priors import DirichletProcess
from spinseg.partition.numbering import checked_labels
from spinseg.sampler import pack
from spinseg.sampler.kernels.moves import attempts_at
from spinseg.sampler.kernels.state import FULL, LOG_POSTERIOR, N_CLUSTERS
from spinseg.sampler.kernels.state import Target as PackedTarget
from studies.evaluation.baselines.ddcrp_kernels import links as kernels
from studies.evaluation.baselines.ddcrp_kernels.links import Links, Plan, Record, State, Target

STARTS = ("singletons", "one")
CHUNK = 10  # sweeps of one compiled call; Ctrl-C takes effect between calls

Labels = NDArray[np.int32]


class Problem(NamedTuple):
    """The posterior. Prior, couplings and bond strengths of the target are not used."""

    packed: PackedTarget
    target: Target  # the same arrays, for the kernels of links, which are a module of their own
    alpha: float
    log_weight: NDArray[np.float64]  # (n + 1,); as in `Links`
    log_total: NDArray[np.float64]  # (n + 1,)
    regions_are_clusters: bool  # the dd-CRP


@dataclass(frozen=True, eq=False)
class LinkChain:
    """The result of a chain over links and clusters.

    Attributes
    ----------
    best_labels : (n_sites,) int32
        Clusters, numbered by first appearance, of the sweep with the highest log joint probability.
    best_log_joint : float
    log_joint : (sweeps,) float64
        Log joint probability of links, clusters and histograms after each sweep.
    n_clusters, n_regions : (sweeps,) int32
    labels : (draws, n_sites) int32
        Clusters of the draws, numbered by first appearance.
    links : (n_sites,) int32
        The site that each site links to, after the last sweep.
    clusters : (n_sites,) int32
        Clusters after the last sweep.
    """

    best_labels: Labels = field(repr=False)
    best_log_joint: float
    log_joint: NDArray[np.float64] = field(repr=False)
    n_clusters: Labels = field(repr=False)
    n_regions: Labels = field(repr=False)
    labels: Labels = field(repr=False)
    links: Labels = field(repr=False)
    clusters: Labels = field(repr=False)


def sample_ddcrp(
    graph: SiteGraph,
    likelihood: Likelihood,
    sweeps: int = 100,
    *,
    alpha: float = 1e-10,
    gamma: float | None = 1e-2,
    init: str = "singletons",
    burn_in: int = 0,
    thin: int | None = None,
    rng: int | np.random.Generator | None = None,
) -> LinkChain:
    """Sample links and clusters from their posterior, by Gibbs sampling of links.

    A sweep draws each link from its conditional distribution: to itself with weight alpha, to a neighbor with weight 1,
    each times the likelihood of the resulting clusters. If the link joins no other region, the sites whose links lead
    to this site form a region, and its cluster is drawn together with the link. Then the cluster of each region is
    drawn from its conditional distribution.

    Parameters
    ----------
    graph : SiteGraph
        Links lead to neighbors in this graph only (window decay of width 1).
    likelihood : DirichletMultinomial, or a Product of such
        One marginal for each cluster.
    sweeps : int
    alpha : float
        Weight of a link to itself.
    gamma : float or None
        Concentration of the process that assigns regions to clusters. None is the dd-CRP: every region is a cluster.
    init : {"singletons", "one"}
        The start: every site linked to itself and a cluster of its own; or all sites linked along a tree and one
        cluster (in the dd-CRP one for each connected component of the graph).
    burn_in, thin : int
        Keep the clusters of every `thin`-th sweep after the first `burn_in`; by default none. Traces cover every sweep.
    rng : int, Generator or None
        Seed; the same seed gives the same chain.

    References
    ----------
    Ghosh et al. (2011), as above; Blei & Frazier, Distance dependent Chinese restaurant processes, JMLR 2011.

    Examples
    --------
    >>> import spinseg as ss
    >>> graph = ss.SiteGraph(4, [[0, 1], [1, 2], [2, 3]])
    >>> histograms = ss.DirichletMultinomial(
    ...     [[9, 0], [8, 1], [0, 9], [9, 0]], concentration=2.0
    ... )
    >>> sample_ddcrp(
    ...     graph, histograms, sweeps=50, alpha=0.1, gamma=1.0, rng=0
    ... ).best_labels
    array([0, 0, 1, 0], dtype=int32)
    >>> sample_ddcrp(
    ...     graph, histograms, sweeps=50, alpha=0.1, gamma=None, rng=0
    ... ).best_labels
    array([0, 0, 1, 2], dtype=int32)
    """
    sweeps, burn_in = check_int("sweeps", sweeps, at_least=1), check_int("burn_in", burn_in, at_least=0)
    if burn_in > sweeps:
        invalid("burn_in", f"be at most sweeps, {sweeps}", burn_in)
    every = sweeps + 1 if thin is None else check_int("thin", thin, at_least=1)
    n_draws = (sweeps - burn_in) // every
    problem = pack_problem(graph, likelihood, alpha, gamma)
    check_choice("init", init, STARTS)
    start_links = start_labels = np.arange(graph.n_sites, dtype=np.int32)
    if init == "one":
        start_links = spanning_links(graph)
        start_labels = regions_of_links(start_links) if gamma is None else np.zeros_like(start_links)
    clusters, links = new_state(problem, start_links, start_labels)
    log_prior = _log_prior(graph, start_links, start_labels, alpha, gamma)
    clusters.scalars[LOG_POSTERIOR] = log_prior + clusters.value.sum()
    record = record_of(pack.new_records(1, sweeps, n_draws, graph.n_sites))
    record.best[:], record.best_log_posterior[0] = start_labels, clusters.scalars[LOG_POSTERIOR]
    plan, rng = Plan(np.zeros(1), attempts_at(), 1.0, burn_in, every), generator(rng)
    n_regions, done = np.empty(sweeps, np.int32), 0
    while done < sweeps:
        until = min(done + CHUNK, sweeps)
        status, done = kernels.run(problem.target, clusters, links, record, n_regions, plan, done, until, rng)
        if status == FULL or links.n_regions.size > 64 + 8 * clusters.counters[N_CLUSTERS]:
            clusters, links = resized(clusters, links)
    return LinkChain(
        best_labels=record.best,
        best_log_joint=float(record.best_log_posterior[0]),
        log_joint=record.log_posterior,
        n_clusters=record.n_clusters,
        n_regions=n_regions,
        labels=record.draw,
        links=links.link.copy(),
        clusters=checked_labels("clusters", clusters.label, graph.n_sites),
    )


def log_joint(
    graph: SiteGraph,
    likelihood: Likelihood,
    links: Labels,
    clusters: Labels,
    *,
    alpha: float = 1e-10,
    gamma: float | None = 1e-2,
) -> float:
    """Return the log joint probability of links, clusters and data, in plain NumPy: the definition.

        sum_i log [w(c_i) / (alpha + degree_i)]  +  k log gamma + sum_t lgamma(r_t) - log [gamma .. (gamma + r - 1)]
                                                 +  sum_t log p(y_t)

    with w = alpha for a link to itself and 1 for any other, r regions, r_t of them in cluster t, k clusters. For the
    dd-CRP, gamma None, every region is a cluster and the second term is absent.

    Parameters
    ----------
    graph, likelihood, alpha, gamma
        As in `sample_ddcrp`.
    links, clusters : (n_sites,) arrays of int
        The site that each site links to, and its cluster; all sites of a region are in one cluster.

    Examples
    --------
    >>> import spinseg as ss
    >>> links, clusters = np.array([1, 1]), np.array([0, 0])
    >>> value = log_joint(
    ...     ss.SiteGraph(2, [[0, 1]]),
    ...     ss.Flat(),
    ...     links,
    ...     clusters,
    ...     alpha=0.5,
    ...     gamma=1.0,
    ... )
    >>> round(float(np.exp(value)), 3)
    0.222
    """
    log_likelihood = sum(likelihood.log_marginal(clusters == t) for t in range(clusters.max() + 1))
    return _log_prior(graph, links, clusters, alpha, gamma) + log_likelihood


def _log_prior(graph: SiteGraph, links: Labels, clusters: Labels, alpha: float, gamma: float | None) -> float:
    """Return the first two terms of `log_joint`."""
    own = links == np.arange(graph.n_sites)
    log_p = own.sum() * math.log(alpha) - np.log(alpha + np.diff(graph.start)).sum()
    _, first = np.unique(regions_of_links(links), return_index=True)
    n_regions = np.bincount(clusters[first])
    if gamma is not None:
        log_p += n_regions.size * math.log(gamma) + gammaln(n_regions).sum()
        log_p -= np.log(gamma + np.arange(first.size)).sum()
    return float(log_p)


def regions_of_links(links: ArrayLike) -> Labels:
    """Return the region of each site, numbered by first appearance: the sites connected by links in either direction.

    Examples
    --------
    >>> regions_of_links([1, 1, 1, 3, 3])
    array([0, 0, 0, 1, 1], dtype=int32)
    """
    target = np.asarray(links)
    return connected_components(target.size, np.stack([np.arange(target.size), target], axis=1))


def pack_problem(graph: SiteGraph, likelihood: Likelihood, alpha: float, gamma: float | None) -> Problem:
    """Return the posterior as the arrays of the compiled sampler."""
    alpha = check_real("alpha", alpha, above=0)
    gamma = None if gamma is None else check_real("gamma", gamma, above=0)
    if not isinstance(likelihood, Likelihood) or not all(isinstance(t, HistogramTerm) for t in likelihood.terms()):
        invalid("likelihood", "be of histograms: a DirichletMultinomial or a Product of such", likelihood)
    target = pack.pack(Model(graph, likelihood, DirichletProcess(1.0), beta=0.0), np.zeros(graph.n_edges))
    regions = np.arange(graph.n_sites + 1, dtype=np.float64)
    log_weight, log_total = np.full(regions.size, -np.inf), np.zeros(regions.size)
    log_weight[0] = 0.0  # a region of the dd-CRP can only be a new cluster
    if gamma is not None:
        log_weight, log_total = np.log(np.append(gamma, regions[1:])), np.log(gamma + regions)
    return Problem(target, Target(**target._asdict()), alpha, log_weight, log_total, regions_are_clusters=gamma is None)


def new_state(problem: Problem, links: Labels, labels: Labels) -> tuple[State, Links]:
    """Return the state of a chain at these links and clusters, before its first sweep, with a log joint of 0."""
    clusters = State(**pack.new_state(problem.packed, labels, 0.0)._asdict())
    n_sites, capacity = links.size, clusters.size.size
    state = Links(
        problem.alpha,
        problem.regions_are_clusters,
        log_weight=problem.log_weight,
        log_total=problem.log_total,
        link=links.astype(np.int32),
        first_source=np.full(n_sites, -1, np.int32),
        next_source=np.full(n_sites, -1, np.int32),
        previous_source=np.full(n_sites, -1, np.int32),
        n_regions=np.zeros(capacity, np.int64),
        n_joining=np.zeros(capacity, np.int64),
        log_likelihood=np.zeros(capacity),
        mark=np.zeros(n_sites, np.int64),
        counters=np.zeros(2, np.int64),
    )
    kernels.rebuild_links(clusters, state)
    return clusters, state


def record_of(records: pack.Records) -> Record:
    """Return the record of the first chain, for the kernels of links."""
    return Record(**{name: array[0] for name, array in records._asdict().items()})


def resized(clusters: State, links: Links) -> tuple[State, Links]:
    """Return the same state with tables that fit its number of clusters."""
    k = int(clusters.counters[N_CLUSTERS])
    clusters = pack.resized(clusters)
    n_regions = np.zeros(clusters.size.size, np.int64)
    n_regions[:k] = links.n_regions[:k]
    zeros = {"n_joining": np.zeros_like(n_regions), "log_likelihood": np.zeros(n_regions.size)}
    return clusters, links._replace(n_regions=n_regions, **zeros)


def spanning_links(graph: SiteGraph) -> Labels:
    """Return links that connect every connected component of the graph along a breadth-first tree.

    Examples
    --------
    >>> spanning_links(SiteGraph(4, [[0, 1], [1, 2]]))
    array([1, 0, 1, 3], dtype=int32)
    """
    links = np.arange(graph.n_sites, dtype=np.int32)
    ones = np.ones(graph.neighbors.size, np.int8)
    matrix = sparse.csr_array((ones, graph.neighbors, graph.start), shape=(graph.n_sites, graph.n_sites))
    for root in np.unique(connected_components(graph.n_sites, graph.edges), return_index=True)[1]:
        reached, parent = sparse.csgraph.breadth_first_order(matrix, root, directed=False)
        links[reached[1:]] = parent[reached[1:]]
        links[root] = reached[min(1, reached.size - 1)]  # not to itself, which would have the weight alpha
    return links
