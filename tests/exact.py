"""The oracle: on a handful of sites all partitions can be listed, so that samplers can be compared with exact answers."""

from copy import copy
from functools import cache, lru_cache
from typing import ClassVar

import numpy as np
from scipy.stats import chisquare, kstest

import model_cases
import spinseg as ss
from covering import pairwise
from effort import effort
from spinseg.sampler.kernels.clusters import clear_slot, has_kinds, rebuild
from spinseg.sampler.kernels.kinds import sum_kinds
from spinseg.sampler.kernels.moves import MOVES, PROPOSALS, attempts_at, make_moves
from spinseg.sampler.kernels.records import renumber, renumber_kinds
from spinseg.sampler.kernels.spin_clusters import begin_sweep
from spinseg.sampler.kernels.state import N_CLUSTERS, Plan, Random
from spinseg.sampler.kernels.sweep import sweep
from spinseg.sampler.pack import new_state, pack
from spinseg.sampler.plan import bond_strengths, similar_sites

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

    log_likelihood = ss.Likelihood.log_likelihood


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


@cache
def partitions_with_kinds(n_sites: int) -> np.ndarray:
    """All partitions, each with all partitions of its clusters into kinds: labels, then the kinds of the sites."""
    pairs = [[*row, *kinds[row]] for row in partitions(n_sites) for kinds in partitions(int(row.max()) + 1)]
    return np.array(pairs, dtype=np.int32)


def states_of(model: ss.Model) -> np.ndarray:
    """What the posterior is over, one a row."""
    return (partitions if model.kinds is None else partitions_with_kinds)(model.graph.n_sites)


@lru_cache(maxsize=8)
def log_probabilities(model: ss.Model) -> np.ndarray:
    """Exact log probability of each of `states_of`."""
    model, n_sites = copy(model), model.graph.n_sites
    model.likelihood, model.graph = remembered(model.likelihood), RememberedGraph(model.graph)
    parts = [(row[:n_sites], row[n_sites:] if row.size > n_sites else None) for row in states_of(model)]
    log_p = np.array([model.log_posterior(*pair) for pair in parts])
    return log_p - np.logaddexp.reduce(log_p)


def frequencies(labels: np.ndarray, *, kinds: bool = False) -> np.ndarray:
    """How often each of `partitions`, or of `partitions_with_kinds`, occurs among the rows of `labels`."""
    n_sites = labels.shape[-1] // 2 if kinds else labels.shape[-1]
    all_codes = code((partitions_with_kinds if kinds else partitions)(n_sites))
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


def p_of_draws(model: ss.Model, labels: np.ndarray) -> float:
    """The p-value of independent draws, (.., n_sites), followed by their kinds if there are any."""
    counts = frequencies(labels.reshape(-1, labels.shape[-1]), kinds=model.kinds is not None)
    return p_value(counts, np.exp(log_probabilities(model)))


def check_reached(model: ss.Model, labels: np.ndarray, above: float = 0.0) -> None:
    """All partitions of more than some probability are among the draws, (.., n_sites), and none of probability zero."""
    visited = frequencies(labels.reshape(-1, labels.shape[-1]), kinds=model.kinds is not None) > 0
    probabilities = np.exp(log_probabilities(model))
    assert not visited[probabilities == 0].any()
    assert visited[probabilities > above].all()


def best_log_posterior(model: ss.Model) -> float:
    """That of the best of all states."""
    best = states_of(model)[np.argmax(log_probabilities(model))]
    labels, kinds = np.split(best, [model.graph.n_sites])
    return model.log_posterior(labels, kinds if kinds.size else None)


def start_kinds(target, state, kind_of_site):
    """Give the clusters, whose ids are their slots, kinds."""
    kinds = state.nested
    for slot in range(kinds.size.size):
        clear_slot(kinds, slot)
    kinds.slot_of[:] = kinds.id_of[:] = np.arange(kinds.size.size)
    kinds.label[state.label] = kind_of_site
    kinds.counters[N_CLUSTERS] = kind_of_site.max() + 1
    sum_kinds(target, state)


def iterate_each(target, state, move_counts, starts, out, plan, rng):
    """Start at each row of `starts`, do one iteration of a plan, and write the partition to the row of `out`.

    Where the plan has no lambda, there is no sweep.
    """
    label, rank, counters, left, rng = state.label, state.rank, state.counters, state.attempts_left, Random(rng)
    n_sites, n_slots, with_kinds, sweeping = label.size, state.size.size, has_kinds(target), plan.lams.size > 0
    inv_temperature, attempts, k_of = plan.inv_temperature, plan.attempts, starts[:, :n_sites].max(axis=1) + 1
    for r in range(starts.shape[0]):
        for slot in range(n_slots):
            clear_slot(state, slot)
        counters[:] = 0
        label[:] = starts[r, :n_sites]
        counters[N_CLUSTERS] = k_of[r]
        rebuild(target, state)
        if with_kinds:
            start_kinds(target, state, starts[r, n_sites:])
        if sweeping:
            begin_sweep(target, state, plan, rng)
            sweep(target, state, inv_temperature, rng)
        left[:] = attempts
        make_moves(target, state, move_counts, plan, rng)
        renumber(label, rank, out[r, :n_sites])
        if with_kinds:
            renumber_kinds(state, out[r, n_sites:])


def iterated(
    model,
    lam,
    n_draws,
    seed,
    *,
    iterate=iterate_each,
    temperature=1.0,
    moves="gsw",
    local=0.0,
    growth_limit=np.inf,
    max_table=2**20,
    **attempts,
):
    """(p-value, frequencies) after one iteration from independent exact draws of the posterior at a temperature.

    An iteration is a sweep, local or not, left out where lam is "none", and then `attempts` at moves, by their names.
    The p-value of a right sampler is uniform; an alarm at p < q is false with probability q.
    """
    rng = np.random.default_rng(seed)
    log_p = log_probabilities(model) / temperature
    probabilities = np.exp(log_p - np.logaddexp.reduce(log_p))
    rows = states_of(model)
    starts = rows[rng.choice(len(rows), n_draws, p=probabilities)]
    sweeping = not isinstance(lam, str)
    strength, lams = bond_strengths(model, lam if sweeping else None, moves)
    lams = lams if sweeping else np.empty(0)
    target = pack(model, strength, similar_sites(model), max_table)
    apart = np.arange(model.graph.n_sites, dtype=np.int32)
    state = new_state(target, apart, 0.0, None if model.kinds is None else apart)
    out = np.empty_like(starts)
    plan = Plan(lams, attempts_at(**attempts), 1.0 / temperature, 0, 1, local, lams, model.connected, growth_limit)
    iterate(target, state, np.zeros((len(PROPOSALS), 2), np.int64), starts, out, plan, rng)
    counts = frequencies(out, kinds=model.kinds is not None)
    return p_value(counts, probabilities), counts


def moves_of(*, connected: bool, kinds: bool = False) -> list[str]:
    """The moves of chains over connected, or over all, partitions, or over regions of kinds."""
    return [name for name, m in MOVES.items() if m.connected in (None, connected) and kinds >= m.if_kinds]


def iterations(*, connected: bool, kinds: bool = False) -> dict[str, dict]:
    """What to do once, as `iterated` takes it: a sweep with some bonds, each move alone, and all of "auto"."""
    moves = moves_of(connected=connected, kinds=kinds)
    found = {"single sites": {"lam": 0.0}, "all of auto": {"lam": None, "moves": "auto", **dict.fromkeys(moves, 2)}}
    found |= {move: {"lam": "none", move: 3} for move in moves}
    found |= {"Swendsen-Wang": {"lam": 1.0}, "strong bonds": {"lam": 10.0}, "data-driven bonds": {"lam": "data-driven"}}
    if connected:
        return found | {"growth of few sites": {"lam": "none", "regrow": 4, "growth_limit": 2.0}}
    return found | {"local single sites": {"lam": 0.0, "local": 0.8}, "local bonds": {"lam": 3.0, "local": 0.8}}


def tried(**which: bool) -> list[str]:
    """The names of `iterations`: a sweep and all moves in `make test`, and all in `make test-all`."""
    return list(iterations(**which))[: effort(2 + len(moves_of(**which)), None)]


class Cases:
    """Factors of a posterior, and `model_of`, which makes a model of a value of each, or None if it has no partition."""

    def __init__(self, model_of, *, connected: bool, kinds: bool = False, **factors) -> None:
        self.model_of, self.iterations = model_of, iterations(connected=connected, kinds=kinds)
        self.factors = {"iteration": list(self.iterations), **factors}
        self.covering = pairwise(self.factors)

    def check(self, rows: list[dict], n_draws: int) -> None:
        """Every p-value plausible, and all uniform: a false alarm has probability 1e-6 a row and 1e-5 a call."""
        p_values = {}
        for seed, row in enumerate(rows):
            model = self.model_of(**{name: value for name, value in row.items() if name != "iteration"})
            if model is not None:
                how = dict(self.iterations[row["iteration"]])
                how["lam"] = model_cases.bond_rule(row["likelihood"], how["lam"], model.graph.n_edges)
                p_values[str(row)], _ = iterated(model, n_draws=n_draws, seed=seed, **how)
        worst = min(p_values, key=p_values.get)
        assert p_values[worst] > 1e-6, (worst, p_values[worst])
        varied = [p for p in p_values.values() if p < 1]  # it is 1 where only one partition is possible
        assert len(varied) > len(rows) / 3
        assert kstest(varied, "uniform").pvalue > 1e-5

    def check_covering(self, iteration: str, n_draws: int) -> None:
        """Check an iteration with rows in which any two factors take all pairs of their values."""
        self.check([row for row in self.covering if row["iteration"] == iteration], n_draws)

    def check_random(self, iteration: str, n_rows: int, n_draws: int) -> None:
        """Check an iteration with random rows."""
        rng = np.random.default_rng(6)
        rows = [{name: v[rng.integers(len(v))] for name, v in self.factors.items()} for _ in range(n_rows)]
        self.check([{**row, "iteration": iteration} for row in rows], n_draws)


def possible(model: ss.Model) -> ss.Model | None:
    """The model, or None where no partition has a positive probability."""
    with np.errstate(invalid="ignore"):
        return None if np.isnan(log_probabilities(model)).any() else model
