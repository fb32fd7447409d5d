"""Point estimates: the partition that minimises a posterior expected loss."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinseg import _validation
from spinseg._validation import check_int, check_real
from spinseg.inference.estimates.losses import expected_binder, expected_vi
from spinseg.inference.estimates.pairs import flat_draws
from spinseg.inference.kernels import partitions as kernels
from spinseg.inference.kernels.partitions import Search

MAX_TABLE_BYTES = 2**30
LEAST_GAIN = 1e-9  # per draw; smaller ones are rounding, and might go round in circles
N_COMPARED = 20  # draws of which the best are starts
N_BEST = 2


@dataclass(frozen=True, eq=False)
class Estimate:
    """A partition, numbered 0..k-1 by first appearance, and its expected loss over all the draws given."""

    labels: NDArray[np.int32] = field(repr=False)
    expected_loss: float


def minimum_vi(
    labels: ArrayLike,
    *,
    max_clusters: int | None = None,
    max_draws: int = 500,
    starts: int | None = None,
    rng: int | np.random.Generator | None = None,
) -> Estimate:
    """The partition found to have the least posterior expected variation of information (`expected_vi`, in bits).

    A greedy search in the manner of SALSO. It starts from the best draws, from one cluster, from random labels and from
    no cluster at all; moves one site at a time to where it costs least; dissolves each cluster in turn and places its
    sites anew; until neither helps. The best result is kept. No table of sites x sites is made.

    Parameters
    ----------
    labels : (.., n_sites) array of int
        Draws, such as `Chains.labels`.
    max_clusters : int, optional
        The most clusters that the estimate may have; by default as many as tables of 1 GiB can hold, and at least
        twice as many as any draw has.
    max_draws : int
        The search uses at most so many draws, evenly spaced; fewer where its tables would exceed 1 GiB.
    starts : int, optional
        How many starts are random; by default 4, and 400 / n_sites on few sites, where they cost nothing.
    rng : int, Generator or None
        Seed of the starts and orders. The same seed gives the same estimate.

    References
    ----------
    Dahl, Johnson & Mueller (2022), https://doi.org/10.1080/10618600.2022.2069779;
    Wade & Ghahramani (2018), https://doi.org/10.1214/17-BA1073

    Examples
    --------
    >>> minimum_vi([[0, 0, 1, 1], [0, 0, 1, 2], [0, 0, 1, 1]], rng=0).labels
    array([0, 0, 1, 1], dtype=int32)
    """
    draws = flat_draws(labels)
    sites = np.arange(1.0, draws.shape[1] + 1)
    step = np.diff(sites * np.log2(sites), prepend=0.0)  # f(m + 1) - f(m) of `expected_vi`
    found = _search(draws, step, 2 * step, max_clusters, max_draws, starts, rng)
    return Estimate(found, expected_vi(draws, found))


def minimum_binder(
    labels: ArrayLike,
    *,
    cost_apart: float = 1.0,
    cost_together: float = 1.0,
    max_clusters: int | None = None,
    max_draws: int = 500,
    starts: int | None = None,
    rng: int | np.random.Generator | None = None,
) -> Estimate:
    """The partition found to have the least posterior expected loss of Binder (`expected_binder`, per pair of sites).

    The search is that of `minimum_vi`. With equal costs this loss gives many doubtful sites a cluster of their own;
    a larger `cost_apart`, or `max_clusters`, keeps them together.

    Parameters
    ----------
    labels : (.., n_sites) array of int
        Draws, such as `Chains.labels`.
    cost_apart, cost_together : float
        What it costs to part two sites that belong together, and to join two that belong apart. Two sites, were they
        alone, are joined where they are together with probability above cost_together / (cost_apart + cost_together).
    max_clusters, max_draws, starts, rng
        As in `minimum_vi`.

    Examples
    --------
    >>> draws = [[0, 0, 1, 1], [0, 0, 0, 0], [0, 0, 0, 0]]
    >>> minimum_binder(draws, rng=0).labels, minimum_binder(draws, cost_together=3, rng=0).labels
    (array([0, 0, 0, 0], dtype=int32), array([0, 0, 1, 1], dtype=int32))
    """
    apart, together = check_real("cost_apart", cost_apart, above=0), check_real("cost_together", cost_together, above=0)
    draws = flat_draws(labels)
    others = np.arange(float(draws.shape[1])) / max(apart, together)  # so that costs of any size search alike
    found = _search(draws, together * others, (apart + together) * others, max_clusters, max_draws, starts, rng)
    return Estimate(found, expected_binder(draws, found, cost_apart=apart, cost_together=together))


def _search(
    draws: NDArray[np.int32],
    size_cost: NDArray[np.float64],
    cell_gain: NDArray[np.float64],
    max_clusters: int | None,
    max_draws: int,
    starts: int | None,
    rng: int | np.random.Generator | None,
) -> NDArray[np.int32]:
    """The best partition that the search finds under a loss given by its two tables (`_partition_kernels`)."""
    generator, n_sites = np.random.default_rng(rng), draws.shape[1]
    starts = max(4, 400 // n_sites) if starts is None else check_int("starts", starts, at_least=0)
    limit = n_sites if max_clusters is None else min(check_int("max_clusters", max_clusters, at_least=1), n_sites)
    used = draws[_evenly(len(draws), check_int("max_draws", max_draws, at_least=1))]
    used = np.array([_validation.labels("labels", draw, n_sites) for draw in used])
    search, used, limit = _tables(used, size_cost, cell_gain, limit)

    compared = used[_evenly(len(used), N_COMPARED)]
    compared = compared[compared.max(axis=1) < search.size.size]
    best_draws = compared[np.argsort([_begin(search, draw) for draw in compared], kind="stable")[:N_BEST]]
    begin_at: list[NDArray[np.int32] | None] = [*best_draws, np.zeros(n_sites, np.int32)]
    for s in range(starts):
        k = generator.integers(1, search.size.size + 1)
        begin_at.append(None if s % 2 else generator.integers(0, k, n_sites, dtype=np.int32))

    best_loss, best = np.inf, search.label
    for start in begin_at:
        loss, search = _descend(search, start, limit, generator)
        if loss < best_loss:
            best_loss, best = loss, search.label.copy()
    return _validation.labels("labels", best, n_sites)


def _descend(
    search: Search, start: NDArray[np.int32] | None, limit: int, rng: np.random.Generator
) -> tuple[float, Search]:
    """The loss at which the search from one start ends, and the tables with the partition in `label`."""
    n_sites, n_draws = search.row.shape
    least = LEAST_GAIN * n_draws
    loss, change, dealt = _begin(search, start), -np.inf, False
    while change < -least:
        order = rng.permutation(n_sites)
        change = kernels.sweep(search, order, least)
        if change >= -least or not dealt:  # dealing costs two sweeps; early on it saves many
            change += kernels.deal_again(search, order, least)
            dealt = True
        loss += change
        if search.size.all() and search.size.size < limit:
            search, change = _widened(search, limit), -np.inf
    return loss, search


def _begin(search: Search, labels: NDArray[np.int32] | None) -> float:
    """Empty the tables and put the sites where `labels` says, if anywhere; the loss."""
    search.label.fill(-1)
    for table in (search.size, search.cell, search.value):
        table.fill(0)
    return 0.0 if labels is None else kernels.fill(search, labels)


def _tables(
    draws: NDArray[np.int32], size_cost: NDArray[np.float64], cell_gain: NDArray[np.float64], limit: int
) -> tuple[Search, NDArray[np.int32], int]:
    """Tables for the search, the draws that it uses, and the most clusters to which the tables may grow."""
    n_sites = draws.shape[1]
    most = int(draws.max()) + 1
    capacity = min(2 * most, limit)
    draws = draws[_evenly(len(draws), max(MAX_TABLE_BYTES // (12 * most * capacity), 1))]
    first = np.concatenate([[0], np.cumsum(draws.max(axis=1) + 1)])
    n_rows = int(first[-1])
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
    )
    return search, draws, min(limit, max(capacity, MAX_TABLE_BYTES // (12 * n_rows)))


def _widened(search: Search, limit: int) -> Search:
    """The tables with twice as many slots, at most `limit`."""
    extra = min(search.size.size, limit - search.size.size)

    def wider(table: NDArray[Any]) -> NDArray[Any]:
        return np.concatenate([table, np.zeros((*table.shape[:-1], extra), table.dtype)], axis=-1)

    return search._replace(
        size=wider(search.size), cell=wider(search.cell), value=wider(search.value), score=wider(search.score)
    )


def _evenly(n_items: int, at_most: int) -> NDArray[np.intp]:
    """Indices of at most so many items, evenly spaced."""
    return np.linspace(0, n_items - 1, min(n_items, at_most)).round().astype(np.intp)
