"""The oracle: on a handful of sites all partitions can be listed, so that samplers can be compared with exact answers."""

from copy import copy
from functools import cache, lru_cache
from typing import ClassVar

import numpy as np
from scipy.stats import chisquare

import spinseg as ss
from spinseg._compiled import jit
from spinseg.sampler.kernels.clusters import clear_slot, rebuild
from spinseg.sampler.kernels.exchange import exchange
from spinseg.sampler.kernels.iterations import renumber
from spinseg.sampler.kernels.regroup import regroup
from spinseg.sampler.kernels.regrowth import grow
from spinseg.sampler.kernels.split_merge import split_merge
from spinseg.sampler.kernels.state import (
    COUNTED_MOVES,
    EXCHANGES_LEFT,
    GROWTHS_LEFT,
    N_CLUSTERS,
    REGROUPS_LEFT,
    SPLITS_LEFT,
    Plan,
)
from spinseg.sampler.kernels.sweep import begin_sweep, sweep
from spinseg.sampler.pack import new_state, pack
from spinseg.sampler.plan import bond_strengths
from spinseg.sampler.similarity import similar_sites

# Six sites: a ring with two chords.
EDGES = np.array([[0, 1], [1, 2], [2, 3], [3, 4], [4, 5], [5, 0], [0, 3], [1, 4]])
POSITIVE = np.array([0.7, 0.3, 0.5, 0.9, 0.2, 0.6, 0.4, 0.35])
MIXED = POSITIVE * np.array([1, -1, 1, -2, 1, 1, -1, 1])


def graph(n_sites: int) -> tuple[ss.SiteGraph, np.ndarray]:
    """The graph on its first n_sites sites, and which of EDGES it keeps."""
    kept = (n_sites > EDGES).all(axis=1)
    return ss.SiteGraph(n_sites, EDGES[kept]), kept


@cache
def partitions(n_sites: int) -> np.ndarray:
    """All partitions, one a row, numbered by first appearance."""
    rows = [[0]]
    for _ in range(n_sites - 1):
        rows = [[*row, label] for row in rows for label in range(max(row) + 2)]
    return np.array(rows, dtype=np.int32)


def code(labels: np.ndarray) -> np.ndarray:
    """A number for each partition, increasing along `partitions`."""
    return labels @ (np.int64(16) ** np.arange(labels.shape[-1])[::-1])


class Remembered:
    """The log marginals of a likelihood, each computed once: partitions of few sites share their clusters."""

    def __init__(self, likelihood) -> None:
        self.likelihood, self.known = likelihood, {}

    def log_marginal(self, sites: np.ndarray) -> float:
        key = tuple(sites.tolist())
        if key not in self.known:
            self.known[key] = self.likelihood.log_marginal(sites)
        return self.known[key]


remembered = lru_cache(maxsize=8)(Remembered)  # many models have one likelihood


class RememberedGraph:
    """A graph that looks whether a partition is connected once, of all models together."""

    known: ClassVar[dict[tuple[bytes, bytes], bool]] = {}

    def __init__(self, graph: ss.SiteGraph) -> None:
        self.graph, self.n_sites, self.edges = graph, graph.n_sites, graph.edges

    def is_connected(self, labels: np.ndarray) -> bool:
        key = self.edges.tobytes(), labels.tobytes()
        if key not in self.known:
            self.known[key] = self.graph.is_connected(labels)
        return self.known[key]


@lru_cache(maxsize=8)
def log_probabilities(model: ss.Model) -> np.ndarray:
    """Exact log probability of each of `partitions`."""
    model = copy(model)
    model.likelihood, model.graph = remembered(model.likelihood), RememberedGraph(model.graph)
    log_p = np.array([model.log_posterior(row) for row in partitions(model.graph.n_sites)])
    return log_p - np.logaddexp.reduce(log_p)


def frequencies(labels: np.ndarray) -> np.ndarray:
    """How often each of `partitions` occurs among the rows of `labels`."""
    all_codes = code(partitions(labels.shape[-1]))
    index = np.searchsorted(all_codes, code(labels))
    assert (all_codes[index] == code(labels)).all()
    return np.bincount(index, minlength=all_codes.size)


def p_value(counts: np.ndarray, probabilities: np.ndarray) -> float:
    """Chi-square p-value of independent counts; a partition of probability zero must not occur."""
    if counts[probabilities == 0].any():
        return 0.0
    expected = counts.sum() * probabilities
    order = np.argsort(expected)
    rare = order[np.cumsum(expected[order]) < 8]
    common = np.setdiff1d(order, rare)
    observed, wanted = counts[common].astype(float), expected[common]
    if expected[rare].sum() > 0:
        observed, wanted = np.append(observed, counts[rare].sum()), np.append(wanted, expected[rare].sum())
    if observed.size == 1:
        return 1.0
    return float(chisquare(observed, wanted * observed.sum() / wanted.sum()).pvalue)


def iterate_each(target, state, move_counts, starts, out, plan, rng):
    """Start at each row of `starts`, do one iteration of a plan, and write the partition to the row of `out`.

    Where the plan has no lambda, there is no sweep.
    """
    for r in range(starts.shape[0]):
        for slot in range(state.size.size):
            clear_slot(state, slot)
        for c in range(state.counters.size):
            state.counters[c] = 0
        for i in range(starts.shape[1]):
            state.label[i] = starts[r, i]
            state.counters[N_CLUSTERS] = max(state.counters[N_CLUSTERS], starts[r, i] + 1)
        rebuild(target, state)
        if plan.lams.size > 0:
            begin_sweep(target, state, plan, rng)
            sweep(target, state, plan.inv_temperature, rng)
        state.counters[SPLITS_LEFT] = plan.splits
        split_merge(target, state, move_counts, plan.inv_temperature, rng)
        state.counters[REGROUPS_LEFT] = plan.regroups
        regroup(target, state, move_counts, plan.inv_temperature, rng)
        state.counters[GROWTHS_LEFT] = plan.growths
        grow(target, state, move_counts, plan, rng)
        state.counters[EXCHANGES_LEFT] = plan.exchanges
        exchange(target, state, move_counts, plan, rng)
        renumber(state.label, state.rank, out[r])


compiled_iterate_each = jit(iterate_each)


def iterated(
    model,
    lam,
    n_draws,
    seed,
    *,
    iterate=compiled_iterate_each,
    temperature=1.0,
    moves="gsw",
    splits=0,
    regroups=0,
    growths=0,
    growth_limit=np.inf,
    exchanges=0,
    local=0.0,
    max_table=2**20,
):
    """(p-value, frequencies) after one iteration from independent exact draws of the posterior at a temperature.

    An iteration is a sweep, local or not, left out where lam is "none", and some attempts at other moves. The p-value of a right sampler is uniform; an alarm at p < q is false with probability q.
    """
    rng = np.random.default_rng(seed)
    log_p = log_probabilities(model) / temperature
    probabilities = np.exp(log_p - np.logaddexp.reduce(log_p))
    rows = partitions(model.graph.n_sites)
    starts = rows[rng.choice(len(rows), n_draws, p=probabilities)]
    sweeping = not isinstance(lam, str)
    strength, lams = bond_strengths(model, lam if sweeping else None, moves)
    lams = lams if sweeping else np.empty(0)
    target = pack(model, strength, similar_sites(model), max_table)
    state = new_state(target, np.arange(model.graph.n_sites, dtype=np.int32), 0.0)
    out = np.empty_like(starts)
    plan = Plan(lams, splits, regroups, 1.0 / temperature, 0, 1, local, lams, model.connected, growths, growth_limit)
    plan = plan._replace(exchanges=exchanges)
    iterate(target, state, np.zeros((len(COUNTED_MOVES), 2), np.int64), starts, out, plan, rng)
    counts = frequencies(out)
    return p_value(counts, probabilities), counts
