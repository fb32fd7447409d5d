"""The moves, and a run of iterations: a sweep, then attempts at each move in turn.

To add a move, write its file, and here an entry of MOVES, its number and its branch of `attempt`. All else follows.
"""

from collections.abc import Callable
from typing import NamedTuple

import cython
import numpy as np

from spinseg.sampler.kernels.exchange import exchange
from spinseg.sampler.kernels.kinds import change_kind, kinds_are_full, split_or_merge_kinds, sum_kinds
from spinseg.sampler.kernels.reallocation import regroup, split_or_merge
from spinseg.sampler.kernels.records import record_iteration
from spinseg.sampler.kernels.regrowth import regrow
from spinseg.sampler.kernels.spin_clusters import begin_sweep
from spinseg.sampler.kernels.state import (
    ACCEPTED,
    DONE,
    FULL,
    N_CLUSTERS,
    N_SPIN_CLUSTERS,
    NEXT_INDEX,
    PROPOSED,
    STOP,
    STOPPED,
    Index,
    Plan,
    Random,
    Record,
    State,
    Target,
    has_kinds,
    is_connected,
)
from spinseg.sampler.kernels.sweep import sweep

ROOM = 7  # empty slots that an attempt may need


class Move(NamedTuple):
    """A move: an attempt proposes at most one change of the partition, and accepts or rejects it."""

    proposals: tuple[str, ...]  # names of what it proposes, in the order of the numbers that an attempt returns
    attempts: Callable[[str, int], int]  # after a sweep, by purpose and number of sites
    connected: bool | None = None  # whether clusters must be connected; None if it is for either
    if_limited: bool = False  # only where the prior limits the sizes or the number of clusters
    if_kinds: bool = False  # only where regions have kinds


# In the order in which an iteration makes them. The purposes are to sample few sites or many, and three parts of the
# search for the mode: "anneal", "polish" and "single sites". An attempt to reallocate takes time in proportion to the
# number of sites, and one that reallocates thousands is rarely accepted.
MOVES = {
    "split_or_merge": Move(
        ("split", "merge"),
        lambda purpose, n_sites: {"few": 10, "many": 1, "anneal": 10, "polish": 20}.get(purpose, 0),
        connected=False,
    ),
    "regroup": Move(
        ("regroup",),
        lambda purpose, n_sites: {"few": 3, "anneal": 3, "polish": 20}.get(purpose, 0),
        connected=False,
    ),
    "regrow": Move(
        ("split", "merge", "redraw", "regroup"),
        lambda purpose, n_sites: {"anneal": 13, "polish": 40, "single sites": 0}.get(purpose, max(4, n_sites // 150)),
        connected=True,
    ),
    "exchange": Move(("exchange",), lambda purpose, n_sites: max(10, n_sites // 2), if_limited=True),
    "change_kind": Move(("change kind",), lambda purpose, n_sites: 4 + n_sites // 8, connected=True, if_kinds=True),
    "split_or_merge_kinds": Move(
        ("split kind", "merge kind"), lambda purpose, n_sites: 4, connected=True, if_kinds=True
    ),
}
SPLIT_OR_MERGE, REGROUP, REGROW, EXCHANGE, CHANGE_KIND, SPLIT_OR_MERGE_KINDS = range(len(MOVES))


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def attempt_connected(move: Index, target: Target, state: State, plan: Plan, rng: Random) -> tuple[Index, cython.bint]:
    """As `attempt`, for the moves of connected clusters."""
    if move == REGROW:
        return regrow(target, state, plan, rng)
    if has_kinds(target):
        if move == CHANGE_KIND:
            return change_kind(target, state, plan, rng)
        if move == SPLIT_OR_MERGE_KINDS:
            return split_or_merge_kinds(target, state, plan, rng)
    return -1, False


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def attempt(move: Index, target: Target, state: State, plan: Plan, rng: Random) -> tuple[Index, cython.bint]:
    """Attempt a move once; returns the number of its proposal, or -1 if there was none, and whether it was accepted.

    `spin` is zero before the first attempt of an iteration at each move.
    """
    if move == EXCHANGE:
        return exchange(target, state, plan, rng)
    if is_connected(target):
        return attempt_connected(move, target, state, plan, rng)
    if move == SPLIT_OR_MERGE:
        return split_or_merge(target, state, plan, rng)
    if move == REGROUP:
        return regroup(target, state, plan, rng)
    return -1, False


# All proposals, the rows of Record.move_counts, and ROW[move, number of the proposal].
PROPOSALS = tuple(dict.fromkeys(name for move in MOVES.values() for name in move.proposals))
ROW = cython.declare(cython.longlong[:, ::1], np.full((len(MOVES), len(PROPOSALS)), -1))
for place, made in enumerate(MOVES.values()):
    for number, name in enumerate(made.proposals):
        ROW[place, number] = PROPOSALS.index(name)


def attempts_for(purpose: str, n_sites: int, *, connected: bool, limited: bool, kinds: bool) -> np.ndarray:
    """Plan.attempts for a purpose.

    `limited` says that the prior limits the sizes or the number of clusters, and `kinds` that regions have kinds.
    """
    fitting = {
        name: move.attempts(purpose, n_sites)
        for name, move in MOVES.items()
        if move.connected in (None, connected) and limited >= move.if_limited and kinds >= move.if_kinds
    }
    return attempts_at(**fitting)


def attempts_at(**numbers: int) -> np.ndarray:
    """Plan.attempts with these numbers of attempts by move, and 0 for all others."""
    assert numbers.keys() <= MOVES.keys(), numbers
    return np.array([numbers.get(name, 0) for name in MOVES])


@cython.ccall
@cython.nogil
@cython.exceptval(check=False)
def make_moves(target: Target, state: State, move_counts: cython.longlong[:, ::1], plan: Plan, rng: Random) -> Index:
    """Make the attempts that are left of this iteration; DONE, FULL or STOPPED."""
    for move in range(state.attempts_left.shape[0]):
        if state.attempts_left[move] > 0:
            for i in range(state.spin.shape[0]):
                state.spin[i] = 0
        while state.attempts_left[move] > 0:
            if state.counters[N_CLUSTERS] + ROOM >= state.size.shape[0]:
                return FULL
            if has_kinds(target) and kinds_are_full(state, state.size.shape[0]):
                return FULL
            if state.counters[STOP] != 0:
                return STOPPED
            state.attempts_left[move] -= 1
            kind, accepted = attempt(move, target, state, plan, rng)
            if kind >= 0:
                move_counts[ROW[move, kind], PROPOSED] += 1
                move_counts[ROW[move, kind], ACCEPTED] += accepted
    return DONE


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def begin_iteration(target: Target, state: State, record: Record, plan: Plan, rng: Random) -> cython.void:
    """Begin an iteration, unless the last one was interrupted."""
    left = state.counters[N_SPIN_CLUSTERS] - state.counters[NEXT_INDEX]
    for move in range(state.attempts_left.shape[0]):
        left += state.attempts_left[move]
    if left == 0:
        if has_kinds(target):
            sum_kinds(target, state)
        begin_sweep(target, state, plan, rng)
        for i in range(state.spin.shape[0]):
            record.spin[i] = state.spin[i]
        for move in range(state.attempts_left.shape[0]):
            state.attempts_left[move] = plan.attempts[move]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def iterate(
    target: Target, state: State, record: Record, plan: Plan, done: Index, until: Index, rng: Random
) -> tuple[Index, Index]:
    """Do iterations done..until-1, the first perhaps interrupted before; returns the status, and how many are done."""
    for t in range(done, until):
        begin_iteration(target, state, record, plan, rng)
        status = sweep(target, state, plan.inv_temperature, rng)
        if status == DONE:
            status = make_moves(target, state, record.move_counts, plan, rng)
        if status != DONE:
            return status, t
        record_iteration(state, record, plan, t)
    return DONE, until


def run_iterations(target: Target, state: State, record: Record, plan: Plan, done: Index, until: Index, generator):
    """As `iterate`, without the interpreter lock."""
    rng = Random(generator)
    with cython.nogil:
        status, done = iterate(target, state, record, plan, done, until, rng)
    return status, done
