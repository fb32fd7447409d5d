"""Distance-dependent Chinese restaurants, dd-CRP and its region-based form rdd-CRP, on the same sites and histograms.

Ghosh, Ungureanu, Sudderth & Blei, Spatial distance dependent Chinese restaurant processes for image segmentation, NIPS
2011. Every site links to itself or to a neighbour; sites that links hold together are a region. In the rdd-CRP regions
sit down at the tables of a Chinese restaurant; a table is a cluster. In the plain dd-CRP every region has its own.
"""

import math
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sparse
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from spinseg import _validation
from spinseg._validation import check_choice, check_int, check_real, invalid
from spinseg.evaluation.baselines import ddcrp_kernels as kernels
from spinseg.evaluation.baselines.ddcrp_kernels import FULL, N_CLUSTERS, Problem, Record, State
from spinseg.inference.pack import MAX_TABLE, pack
from spinseg.inference.progress import Progress, Report, reporting
from spinseg.inference.sampling import MAX_DRAW_BYTES, generator
from spinseg.model.graph import SiteGraph
from spinseg.model.likelihoods import HistogramTerm, Likelihood
from spinseg.model.posterior import Model
from spinseg.model.priors import DirichletProcess

STARTS = ("singletons", "one")
CHUNK_SECONDS = 0.05  # of compiled code at a stretch; Ctrl-C waits that long

Labels = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class LinkChain:
    """What a chain over links and tables has found.

    Attributes
    ----------
    best_labels : (n_sites,) int32
        Clusters, numbered by first appearance, of the state with the highest log joint at the end of a sweep.
    best_log_joint : float
    log_joint : (sweeps,) float64
        Log probability of links, tables and histograms together, after each sweep.
    n_clusters, n_regions : (sweeps,) int32
    labels : (draws, n_sites) int32
        Clusters of the sweeps that were kept, numbered by first appearance.
    links : (n_sites,) int32
        Where the sites link to at the end.
    clusters : (n_sites,) int32
        Their clusters at the end; with `links`, where another chain may start.
    seconds : float
    """

    best_labels: Labels = field(repr=False)
    best_log_joint: float
    log_joint: NDArray[np.float64] = field(repr=False)
    n_clusters: Labels = field(repr=False)
    n_regions: Labels = field(repr=False)
    labels: Labels = field(repr=False)
    links: Labels = field(repr=False)
    clusters: Labels = field(repr=False)
    seconds: float


def sample_ddcrp(
    graph: SiteGraph,
    likelihood: Likelihood,
    sweeps: int = 100,
    *,
    alpha: float = 1e-10,
    gamma: float | None = 1e-2,
    init: str | tuple[ArrayLike, ArrayLike] = "singletons",
    burn_in: int = 0,
    thin: int | None = None,
    rng: int | np.random.Generator | None = None,
    progress: bool | Report | None = None,
) -> LinkChain:
    """A chain that leaves the posterior of links and tables invariant, by Gibbs sampling of links.

    A sweep takes out each link in turn and draws it anew: to itself with weight alpha, to a neighbour with weight 1,
    each times the likelihood of the clusters that it makes. A link that joins no other region leaves the piece of its
    site a region by itself, and the table of that piece is drawn with the link. Then each region draws its table anew.

    Parameters
    ----------
    graph : SiteGraph
        Links lead to neighbours in this graph only (window decay of width 1).
    likelihood : DirichletMultinomial, or a Product of such
        One marginal for each cluster.
    sweeps : int
    alpha : float
        Weight of a link to itself.
    gamma : float or None
        Concentration of the restaurant at which regions sit down. None is the plain dd-CRP: each has its own table.
    init : "singletons", "one", or (links, clusters)
        Where to start: every site linked to itself at its own table, all sites linked along a tree at one table (in
        the plain dd-CRP one for each connected piece of the graph), or anywhere.
    burn_in, thin : int
        Keep the clusters of every `thin`-th sweep after the first `burn_in`; by default none. Traces cover every sweep.
    rng : int, Generator or None
        Seed; the same seed gives the same chain.
    progress : bool or callable, optional
        True shows a bar on standard error; a callable is called with a `Progress`.

    References
    ----------
    Ghosh et al. (2011), as above; Blei & Frazier, Distance dependent Chinese restaurant processes, JMLR 2011.

    Examples
    --------
    >>> import spinseg as ss
    >>> graph = ss.SiteGraph(4, [[0, 1], [1, 2], [2, 3]])
    >>> histograms = ss.DirichletMultinomial([[9, 0], [8, 1], [0, 9], [9, 0]], concentration=2.0)
    >>> sample_ddcrp(graph, histograms, sweeps=50, alpha=0.1, gamma=1.0, rng=0).best_labels
    array([0, 0, 1, 0], dtype=int32)
    >>> sample_ddcrp(graph, histograms, sweeps=50, alpha=0.1, gamma=None, rng=0).best_labels
    array([0, 0, 1, 2], dtype=int32)
    """
    sweeps, burn_in = check_int("sweeps", sweeps, at_least=1), check_int("burn_in", burn_in, at_least=0)
    if burn_in > sweeps:
        invalid("burn_in", f"be at most sweeps, {sweeps}", burn_in)
    every = sweeps + 1 if thin is None else check_int("thin", thin, at_least=1)
    n_draws = (sweeps - burn_in) // every
    problem = pack_problem(graph, likelihood, alpha, gamma)
    if 4 * n_draws * graph.n_sites > MAX_DRAW_BYTES:
        invalid("thin", f"keep the draws below {MAX_DRAW_BYTES >> 30} GB ({n_draws} draws)", thin)
    links, clusters = _start(graph, gamma is None, init)
    state = new_state(problem, links, clusters)
    state.real[0] = _log_prior(graph, links, clusters, alpha, gamma) + state.value.sum()
    record = new_record(sweeps, n_draws, clusters, float(state.real[0]))
    began = time.perf_counter()
    state = _run(problem, state, record, (burn_in, every), generator(rng), progress)
    return LinkChain(
        best_labels=record.best,
        best_log_joint=float(record.best_log_joint[0]),
        log_joint=record.log_joint,
        n_clusters=record.n_clusters,
        n_regions=record.n_regions,
        labels=record.draw,
        links=state.link.copy(),
        clusters=_validation.labels("clusters", state.label, graph.n_sites),
        seconds=time.perf_counter() - began,
    )


def log_joint(
    graph: SiteGraph,
    likelihood: Likelihood,
    links: ArrayLike,
    clusters: ArrayLike,
    *,
    alpha: float = 1e-10,
    gamma: float | None = 1e-2,
) -> float:
    """Log probability of links, tables and data, in plain NumPy: the definition.

        sum_i log [w(c_i) / (alpha + degree_i)]  +  k log gamma + sum_t lgamma(r_t) - log [gamma .. (gamma + r - 1)]
                                                 +  sum_t log p(y_t)

    with w = alpha for a link to itself and 1 for any other, r regions, r_t of them at table t, k tables. For the plain
    dd-CRP, gamma None, every region is a table and the second term is not there.

    Parameters
    ----------
    graph, likelihood, alpha, gamma
        As in `sample_ddcrp`.
    links, clusters : (n_sites,) arrays of int
        Where each site links to, and the cluster of each; a region is in one cluster.

    Examples
    --------
    >>> import spinseg as ss
    >>> value = log_joint(ss.SiteGraph(2, [[0, 1]]), ss.Flat(), [1, 1], [0, 0], alpha=0.5, gamma=1.0)
    >>> round(float(np.exp(value)), 3)
    0.222
    """
    alpha, gamma = _weights(alpha, gamma)
    links, clusters = _checked(graph, links, clusters, gamma is None)
    log_likelihood = sum(likelihood.log_marginal(clusters == t) for t in range(clusters.max() + 1))
    return _log_prior(graph, links, clusters, alpha, gamma) + log_likelihood


def _log_prior(graph: SiteGraph, links: Labels, clusters: Labels, alpha: float, gamma: float | None) -> float:
    """The first two terms of `log_joint`."""
    own = links == np.arange(graph.n_sites)
    log_p = own.sum() * math.log(alpha) - np.log(alpha + np.diff(graph.start)).sum()
    _, first = np.unique(regions_of_links(links), return_index=True)
    at_table = np.bincount(clusters[first])
    if gamma is not None:
        log_p += at_table.size * math.log(gamma) + gammaln(at_table).sum()
        log_p -= np.log(gamma + np.arange(first.size)).sum()
    return float(log_p)


def regions_of_links(links: ArrayLike) -> Labels:
    """The region of each site, numbered by first appearance: sites that links hold together, whichever way they lead.

    Examples
    --------
    >>> regions_of_links([1, 1, 1, 3, 3])
    array([0, 0, 0, 1, 1], dtype=int32)
    """
    target = np.asarray(links)
    n_sites = target.size
    matrix = sparse.csr_array((np.ones(n_sites, np.int8), target, np.arange(n_sites + 1)), shape=(n_sites, n_sites))
    return _validation.labels("links", sparse.csgraph.connected_components(matrix, directed=False)[1], n_sites)


def pack_problem(graph: SiteGraph, likelihood: Likelihood, alpha: float, gamma: float | None) -> Problem:
    """The posterior as the arrays of the compiled sampler, with their types and layout."""
    alpha, gamma = _weights(alpha, gamma)
    if not isinstance(graph, SiteGraph):
        invalid("graph", "be a SiteGraph", graph)
    if not isinstance(likelihood, Likelihood) or not all(isinstance(t, HistogramTerm) for t in likelihood.terms()):
        invalid("likelihood", "be of histograms: a DirichletMultinomial or a Product of such", likelihood)
    # The same tables as for our own sampler; prior and couplings of the model have no say in them.
    target = pack(Model(graph, likelihood, DirichletProcess(1.0), beta=0.0), np.zeros(graph.n_edges))
    if (target.table_start < 0).any():
        invalid("likelihood", f"have a table of at most {MAX_TABLE} counts", int(target.bin_count.sum()))
    regions = np.arange(graph.n_sites + 1, dtype=np.float64)
    log_seat, log_seats = np.full(regions.size, -np.inf), np.zeros(regions.size)  # only the new table is free
    log_seat[0] = 0.0
    if gamma is not None:
        log_seat, log_seats = np.log(np.append(gamma, regions[1:])), np.log(gamma + regions)
    return Problem(
        start=target.start,
        neighbour=target.neighbour,
        row=target.row,
        bin=target.bin,
        bin_count=target.bin_count,
        table=target.table,
        table_start=target.table_start,
        alpha=alpha,
        log_seat=log_seat,
        log_seats=log_seats,
        plain=gamma is None,
    )


def new_state(problem: Problem, links: Labels, clusters: Labels) -> State:
    """A chain at these links and clusters, before its first sweep; its log joint is left 0."""
    n_sites, n_bins = links.size, problem.table_start.size
    state = State(
        link=links.astype(np.int32),
        child=np.empty(n_sites, np.int32),
        after=np.full(n_sites, -1, np.int32),
        before=np.full(n_sites, -1, np.int32),
        label=clusters.astype(np.uint32),
        **_cluster_tables(n_bins, int(clusters.max()) + 1),
        mark=np.zeros(n_sites, np.int64),
        member=np.zeros(n_sites, np.uint32),
        first=np.zeros(n_sites + 1, np.uint32),
        pool_bin=np.zeros(n_bins + 1, np.uint32),
        pool_count=np.zeros(n_bins, np.int32),
        pooled=np.zeros(n_bins, np.int32),
        number=np.zeros(4, np.int64),
        real=np.zeros(1),
    )
    kernels.rebuild(problem, state)
    return state


def new_record(sweeps: int, n_draws: int, clusters: Labels, log_joint: float) -> Record:
    """Room for all that is kept; the best so far is the start."""
    return Record(
        log_joint=np.empty(sweeps),
        n_clusters=np.empty(sweeps, np.int32),
        n_regions=np.empty(sweeps, np.int32),
        draw=np.empty((n_draws, clusters.size), np.int32),
        best=clusters.copy(),
        best_log_joint=np.array([log_joint]),
    )


def _cluster_tables(n_bins: int, n_clusters: int) -> dict[str, NDArray[Any]]:
    """The fields of State that have an entry for each slot, all zero, with room to grow."""
    capacity = 4 * (n_clusters // 2 + 3)  # a multiple of 4, but no power of two, which caches do not like
    return {
        "slot_of": np.arange(capacity, dtype=np.uint32),
        "id_of": np.arange(capacity, dtype=np.uint32),
        "n_regions": np.zeros(capacity, np.int64),
        "counts": np.zeros((n_bins, capacity), np.int32),
        "value": np.zeros((n_bins, capacity)),
        "gain": np.zeros(capacity),
        "joins": np.zeros(capacity, np.int64),
        "choice": np.zeros(capacity, np.uint32),
        "weight": np.zeros(capacity),
    }


def resized(state: State) -> State:
    """The same chain with tables that fit its number of clusters; ids are numbered anew by slot."""
    k = int(state.number[N_CLUSTERS])
    fields = _cluster_tables(state.counts.shape[0], k)
    for name in ("n_regions", "counts", "value"):
        fields[name][..., :k] = getattr(state, name)[..., :k]
    return state._replace(label=state.slot_of[state.label], **fields)


def _run(
    problem: Problem,
    state: State,
    record: Record,
    keep: tuple[int, int],
    rng: np.random.Generator,
    progress: bool | Report | None,
) -> State:
    """Do all sweeps, a stretch at a time, and tell how far they have come; the state at the end."""
    sweeps, done, chunk = record.log_joint.size, 0, 1
    with reporting(progress) as report:
        while done < sweeps:
            before, clock = done, time.perf_counter()
            status, done = kernels.run(problem, state, record, *keep, done, min(done + chunk, sweeps), rng)
            if status == FULL or state.n_regions.size > 64 + 8 * state.number[N_CLUSTERS]:
                state = resized(state)
            per_sweep = (time.perf_counter() - clock) / max(done - before, 1)
            chunk = min(max(int(CHUNK_SECONDS / max(per_sweep, 1e-9)), 1), 2 * chunk)
            report(Progress(done, sweeps, int(state.number[N_CLUSTERS]), float(state.real[0])))
    return state


def _weights(alpha: float, gamma: float | None) -> tuple[float, float | None]:
    """Both, checked."""
    alpha = check_real("alpha", alpha, above=0)
    return alpha, None if gamma is None else check_real("gamma", gamma, above=0)


def _start(graph: SiteGraph, plain: bool, init: str | tuple[ArrayLike, ArrayLike]) -> tuple[Labels, Labels]:
    """Links and clusters to start from."""
    sites = np.arange(graph.n_sites, dtype=np.int32)
    if not isinstance(init, (str, tuple)) or (isinstance(init, tuple) and len(init) != 2):
        invalid("init", f"be one of {STARTS} or (links, clusters)", init)
    if isinstance(init, tuple):
        return _checked(graph, *init, plain)
    check_choice("init", init, STARTS)
    if init == "singletons":
        return sites, sites.copy()
    links = spanning_links(graph)
    return links, regions_of_links(links) if plain else np.zeros_like(sites)


def spanning_links(graph: SiteGraph) -> Labels:
    """Links that join every connected piece of the graph, each along a tree found breadth first.

    Examples
    --------
    >>> spanning_links(SiteGraph(4, [[0, 1], [1, 2]]))
    array([1, 0, 1, 3], dtype=int32)
    """
    links = np.arange(graph.n_sites, dtype=np.int32)
    ones = np.ones(graph.neighbours.size, np.int8)
    matrix = sparse.csr_array((ones, graph.neighbours, graph.start), shape=(graph.n_sites, graph.n_sites))
    _, piece = sparse.csgraph.connected_components(matrix, directed=False)
    for root in np.unique(piece, return_index=True)[1]:
        reached, parent = sparse.csgraph.breadth_first_order(matrix, root, directed=False)
        links[reached[1:]] = parent[reached[1:]]
        links[root] = reached[min(1, reached.size - 1)]  # a link back: one to itself would cost log alpha
    return links


def _checked(graph: SiteGraph, links: ArrayLike, clusters: ArrayLike, plain: bool) -> tuple[Labels, Labels]:
    """Links and clusters, refused where they do not fit the graph or each other."""
    target = _validation.integer_array("links", links)
    n_sites = graph.n_sites
    if target.shape != (n_sites,):
        invalid("links", f"have one entry per site, shape ({n_sites},)", target.shape)
    sites = np.arange(n_sites)
    edges = np.repeat(sites, np.diff(graph.start)) * n_sites + graph.neighbours
    inside = (target >= 0) & (target < n_sites)
    wrong = ~inside | ((target != sites) & ~np.isin(sites * n_sites + target, edges))
    if wrong.any():
        i = int(np.flatnonzero(wrong)[0])
        invalid("links", "lead from each site to itself or to a neighbour", f"{i} -> {target[i]}")
    links = target.astype(np.int32)
    tables = _validation.labels("clusters", clusters, n_sites)
    if (tables[links] != tables).any():
        invalid("clusters", "be the same at both ends of a link", tables)
    if plain and (regions_of_links(links) != tables).any():
        invalid("clusters", "be the regions of the links where gamma is None", tables)
    return links, tables
