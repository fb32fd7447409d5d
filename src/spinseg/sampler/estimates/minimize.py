"""Point estimates: the partition that minimizes a posterior expected loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinseg import _validation
from spinseg._validation import check_int, check_real, generator, invalid
from spinseg._words import counted
from spinseg.graph.site_graph import SiteGraph
from spinseg.model.seeds import checked_seeds, keeps_seeds
from spinseg.partition.pairs import flatten_draws
from spinseg.sampler.chains import Chains
from spinseg.sampler.estimates.losses import expected_binder, expected_vi
from spinseg.sampler.kernels import least_loss as kernels
from spinseg.sampler.kernels.least_loss import Search

MAX_TABLE_BYTES = 2**30
MIN_GAIN = 1e-9  # loss per draw; smaller differences are rounding errors, and the search might not end
N_COMPARED_DRAWS = 20  # the best N_BEST_DRAWS of these are starts
N_BEST_DRAWS = 2
N_BEST_WITH_SEEDS = 6  # where there are seeds, which other starts do not keep


@dataclass(frozen=True, eq=False, repr=False)
class Estimate:
    """A partition, numbered 0..k-1 by first appearance, and its expected loss over all draws.

    Examples
    --------
    >>> found = minimize_vi([[0, 0, 1], [0, 0, 1], [0, 1, 1]])
    >>> found.labels.tolist()
    [0, 0, 1]
    """

    labels: NDArray[np.int32]
    expected_loss: float

    def __repr__(self) -> str:
        clusters = counted(int(self.labels.max()) + 1, "cluster")
        return f"Estimate of {clusters} for {counted(self.labels.size, 'site')}, expected loss {self.expected_loss:.4g}"


def minimize_vi(
    labels: ArrayLike | Chains,
    *,
    graph: SiteGraph | None = None,
    seeds: ArrayLike | None = None,
    max_clusters: int | None = None,
    max_draws: int = 500,
    starts: int | None = None,
    rng: int | np.random.Generator | None = None,
) -> Estimate:
    """Search for the partition of least posterior expected variation of information (`expected_vi`, in bits).

    A greedy search like SALSO. From each start it moves single sites to the cluster of least loss, and dissolves each
    cluster in turn and reallocates its sites one by one, until neither lowers the loss. The starts are the best draws,
    one cluster, random labels, and sequential allocation of all sites. The best result is returned. Memory does not
    grow with the square of the number of sites.

    Parameters
    ----------
    labels : Chains or (.., n_sites) array of int
        Draws.
    graph : SiteGraph, optional
        Search only among partitions whose clusters are connected in this graph.
    seeds : (n_sites,) array of int, optional
        Search only among partitions that keep these seeds, as in `Model`. All draws must keep them.
    max_clusters : int, optional
        The maximum number of clusters of the estimate; by default as many as tables of 1 GiB can hold, and at least
        twice as many as any draw has.
    max_draws : int
        The search uses at most this many draws, evenly spaced; fewer where its tables would exceed 1 GiB.
    starts : int, optional
        The number of random starts; by default the larger of 4 and 400 / n_sites.
    rng : int, Generator or None
        Seed of the starts and of the order of sites. The same seed gives the same estimate.

    References
    ----------
    Dahl, Johnson & Mueller (2022), https://doi.org/10.1080/10618600.2022.2069779;
    Wade & Ghahramani (2018), https://doi.org/10.1214/17-BA1073

    Examples
    --------
    >>> minimize_vi([[0, 0, 1, 1], [0, 0, 1, 2], [0, 0, 1, 1]], rng=0).labels
    array([0, 0, 1, 1], dtype=int32)
    """
    draws = flatten_draws(labels)
    found = _search(draws, *_costs_of_vi(draws.shape[1]), graph, seeds, max_clusters, max_draws, starts, rng)
    return Estimate(found, expected_vi(draws, found))


def minimize_binder(
    labels: ArrayLike | Chains,
    *,
    cost_apart: float = 1.0,
    cost_together: float = 1.0,
    graph: SiteGraph | None = None,
    seeds: ArrayLike | None = None,
    max_clusters: int | None = None,
    max_draws: int = 500,
    starts: int | None = None,
    rng: int | np.random.Generator | None = None,
) -> Estimate:
    """Search for the partition of least posterior expected loss of Binder (`expected_binder`, per pair of sites).

    The search is that of `minimize_vi`. With equal costs the estimate has a singleton cluster for many uncertain sites;
    a larger `cost_apart`, or `max_clusters`, prevents that.

    Parameters
    ----------
    labels : Chains or (.., n_sites) array of int
        Draws.
    cost_apart, cost_together : float
        The cost of separating two sites that belong together, and of joining two that do not. A graph of two sites
        would be joined where their probability to be together is above cost_together / (cost_apart + cost_together).
    graph, seeds, max_clusters, max_draws, starts, rng
        As in `minimize_vi`.

    Examples
    --------
    >>> draws = [[0, 0, 1, 1], [0, 0, 0, 0], [0, 0, 0, 0]]
    >>> minimize_binder(draws, rng=0).labels, minimize_binder(draws, cost_together=3, rng=0).labels
    (array([0, 0, 0, 0], dtype=int32), array([0, 0, 1, 1], dtype=int32))
    """
    apart, together = check_real("cost_apart", cost_apart, above=0), check_real("cost_together", cost_together, above=0)
    draws = flatten_draws(labels)
    tables = _costs_of_binder(draws.shape[1], apart, together)
    found = _search(draws, *tables, graph, seeds, max_clusters, max_draws, starts, rng)
    return Estimate(found, expected_binder(draws, found, cost_apart=apart, cost_together=together))


def best_draw(draws: NDArray[np.int32], loss: str, *, max_draws: int) -> NDArray[np.int32]:
    """Return the draw of least expected loss, "vi" or "binder", among at most `max_draws`, evenly spaced.

    Examples
    --------
    >>> best_draw(np.array([[0, 0, 1, 1], [0, 0, 1, 2], [0, 0, 1, 1]]), "vi", max_draws=3)
    array([0, 0, 1, 1], dtype=int32)
    """
    n_sites = draws.shape[1]
    used = draws[_evenly_spaced(len(draws), max_draws)]
    used = np.array([_validation.labels("draws", draw, n_sites) for draw in used])
    costs = _costs_of_vi(n_sites) if loss == "vi" else _costs_of_binder(n_sites, 1.0, 1.0)
    search, used, _ = _tables(used, *costs, limit=n_sites)
    return used[np.argmin([_start(search, draw) for draw in used])]


def improved(
    start: NDArray[np.int32], draws: NDArray[np.int32], loss: str, *, graph: SiteGraph, max_draws: int, rng: int
) -> NDArray[np.int32]:
    """Return what the search of `minimize_vi` or `minimize_binder`, among connected partitions, finds from one start.

    Examples
    --------
    >>> improved(np.array([0, 1, 2]), np.array([[0, 0, 1], [0, 0, 1], [0, 1, 1]]), "vi",
    ...          graph=SiteGraph(3, [[0, 1], [1, 2]]), max_draws=3, rng=0)
    array([0, 0, 1], dtype=int32)
    """
    n_sites = draws.shape[1]
    costs = _costs_of_vi(n_sites) if loss == "vi" else _costs_of_binder(n_sites, 1.0, 1.0)
    search, _, limit = _tables(draws[_evenly_spaced(len(draws), max_draws)], *costs, n_sites, graph)
    while search.size.size <= start.max() and search.size.size < limit:
        search = _enlarge(search, limit)
    if start.max() >= search.size.size:  # of which there is no room for a table
        return start
    found = _descend(search, start, limit, generator(rng))[1]
    return _validation.labels("labels", found.label, n_sites)


Costs = tuple[NDArray[np.float64], NDArray[np.float64]]  # of a loss, as `kernels.least_loss` takes them


def _costs_of_vi(n_sites: int) -> Costs:
    sites = np.arange(1.0, n_sites + 1)
    step = np.diff(sites * np.log2(sites), prepend=0.0)  # f(m + 1) - f(m), f(m) = m log2 m
    return step, 2 * step


def _costs_of_binder(n_sites: int, apart: float, together: float) -> Costs:
    others = np.arange(float(n_sites)) / max(apart, together)  # the search does not depend on the unit
    return together * others, (apart + together) * others


def _search(
    draws: NDArray[np.int32],
    size_cost: NDArray[np.float64],
    cell_gain: NDArray[np.float64],
    graph: SiteGraph | None,
    seeds: ArrayLike | None,
    max_clusters: int | None,
    max_draws: int,
    starts: int | None,
    rng: int | np.random.Generator | None,
) -> NDArray[np.int32]:
    """Return the best partition found under the loss given by its two tables (see `kernels.least_loss`)."""
    random, n_sites = generator(rng), draws.shape[1]
    if graph is not None and graph.n_sites != n_sites:
        invalid("graph", f"have the {n_sites} sites of the draws", graph.n_sites)
    held = _seeds_of(draws, graph, seeds)
    starts = max(4, 400 // n_sites) if starts is None else check_int("starts", starts, at_least=0)
    limit = n_sites if max_clusters is None else min(check_int("max_clusters", max_clusters, at_least=1), n_sites)
    used = draws[_evenly_spaced(len(draws), check_int("max_draws", max_draws, at_least=1))]
    used = np.array([_validation.labels("labels", draw, n_sites) for draw in used])
    search, used, limit = _tables(used, size_cost, cell_gain, limit, graph, held)

    compared = used[_evenly_spaced(len(used), N_COMPARED_DRAWS)]
    compared = compared[compared.max(axis=1) < search.size.size]
    if held is not None and not len(compared):
        invalid("max_clusters", "be at least as many as some draw has where there are seeds", max_clusters)
    n_best = N_BEST_DRAWS if held is None else N_BEST_WITH_SEEDS
    best_draws = compared[np.argsort([_start(search, draw) for draw in compared], kind="stable")[:n_best]]
    start_labels: list[NDArray[np.int32] | None] = [*best_draws]
    if held is None:
        start_labels.append(np.zeros(n_sites, np.int32))
    for s in range(starts if held is None else 0):
        k = random.integers(1, search.size.size + 1)
        start_labels.append(None if s % 2 else random.integers(0, k, n_sites, dtype=np.int32))

    best_loss, best = np.inf, search.label
    for start in start_labels:
        if graph is not None and start is not None:
            start = graph.pieces(start)
            if start.max() >= search.size.size:
                continue
        loss, search = _descend(search, start, limit, random)
        if loss < best_loss:
            best_loss, best = loss, search.label.copy()
    return _validation.labels("labels", best, n_sites)


def _seeds_of(draws: NDArray[np.int32], graph: SiteGraph | None, seeds: ArrayLike | None) -> NDArray[np.int64] | None:
    """The seeds of an estimate, which all draws must keep; None where there are none."""
    if seeds is None:
        return None
    if graph is None:
        invalid("seeds", "be left out without a graph", "seeds")
    held = checked_seeds(seeds, graph)
    if not all(keeps_seeds(draw, held) for draw in draws):
        invalid("labels", "be draws that keep the seeds", "others")
    return held


def _descend(
    search: Search, start: NDArray[np.int32] | None, limit: int, rng: np.random.Generator
) -> tuple[float, Search]:
    """Search from one start; return the loss and the tables, with the partition in `label`."""
    n_sites, n_draws = search.row.shape
    min_gain = MIN_GAIN * n_draws
    loss, change, reallocated = _start(search, start), -np.inf, False
    connected = search.start.size > 0
    improve, reallocate = (
        (kernels.improve_connected, kernels.reallocate_connected)
        if connected
        else (kernels.improve_sites, kernels.reallocate)
    )
    if connected and start is None:
        loss += kernels.allocate_connected(search, rng.permutation(n_sites))
        if loss == np.inf:
            return loss, search
    while change < -min_gain:
        order = rng.permutation(n_sites)
        change = improve(search, order, min_gain)
        if change >= -min_gain or not reallocated:  # it costs two sweeps, but one early saves many
            change += reallocate(search, order, min_gain)
            reallocated = True
        loss += change
        if search.size.all() and search.size.size < limit:
            search, change = _enlarge(search, limit), -np.inf
    return loss, search


def _start(search: Search, labels: NDArray[np.int32] | None) -> float:
    """Reset the tables to the partition `labels`, or to no site allocated where it is None; return the loss."""
    search.label.fill(-1)
    for table in (search.size, search.cell, search.value):
        table.fill(0)
    return 0.0 if labels is None else kernels.add_sites(search, labels)


def _tables(
    draws: NDArray[np.int32],
    size_cost: NDArray[np.float64],
    cell_gain: NDArray[np.float64],
    limit: int,
    graph: SiteGraph | None = None,
    seeds: NDArray[np.int64] | None = None,
) -> tuple[Search, NDArray[np.int32], int]:
    """Return tables for the search, the draws that it uses, and the number of clusters to which the tables may grow."""
    n_sites = draws.shape[1]
    max_clusters = int(draws.max()) + 1
    fewest = 1 if graph is None else graph.component_sizes.size
    limit = max(limit, fewest)
    capacity = min(max(2 * max_clusters, fewest), limit)
    draws = draws[_evenly_spaced(len(draws), max(MAX_TABLE_BYTES // (12 * max_clusters * capacity), 1))]
    first = np.concatenate([[0], np.cumsum(draws.max(axis=1) + 1)])
    n_rows = int(first[-1])
    n_searched = 0 if graph is None else n_sites
    search = Search(
        row=np.ascontiguousarray((draws + first[:-1, None]).T, np.uint32),
        size_cost=size_cost,
        cell_gain=np.append(cell_gain, 0.0),
        label=np.empty(n_sites, np.int32),
        size=np.zeros(capacity, np.int32),
        cell=np.zeros((n_rows, capacity), np.uint32),
        value=np.zeros((n_rows, capacity)),
        score=np.zeros(capacity),
        member=np.empty(n_sites, np.int32),
        start=np.empty(0, np.int64) if graph is None else graph.start,
        neighbor=np.empty(0, np.int32) if graph is None else graph.neighbors,
        queue=np.zeros(n_searched, np.int32),
        place=np.zeros(n_searched, np.int32),
        pending=np.zeros(n_searched, np.int32),
        seed=np.empty(0, np.int64) if seeds is None else seeds,
    )
    return search, draws, min(limit, max(capacity, MAX_TABLE_BYTES // (12 * n_rows)))


def _enlarge(search: Search, limit: int) -> Search:
    """Return the tables with twice as many slots, at most `limit`."""
    extra = min(search.size.size, limit - search.size.size)

    def enlarged(table: NDArray[Any]) -> NDArray[Any]:
        return np.concatenate([table, np.zeros((*table.shape[:-1], extra), table.dtype)], axis=-1)

    return search._replace(**{name: enlarged(getattr(search, name)) for name in ("size", "cell", "value", "score")})


def _evenly_spaced(n_items: int, max_items: int) -> NDArray[np.intp]:
    """Return the indices of at most `max_items` items, evenly spaced."""
    return np.linspace(0, n_items - 1, min(n_items, max_items)).round().astype(np.intp)
