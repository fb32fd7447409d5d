"""Sweeps under a prior that is only known as log g(sizes): the compiled steps, with log g added in between."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from spinseg._compiled import entry
from spinseg.inference.kernels import iterations
from spinseg.inference.kernels import regroup as regrouping
from spinseg.inference.kernels import split_merge as splitting
from spinseg.inference.kernels import sweep as sweeping
from spinseg.inference.kernels.state import (
    CURSOR,
    DONE,
    FULL,
    MERGES_MADE,
    MERGES_TRIED,
    N_CLUSTERS,
    N_SPINS,
    REGROUPS_LEFT,
    REGROUPS_MADE,
    REGROUPS_TRIED,
    SPLITS_LEFT,
    SPLITS_MADE,
    SPLITS_TRIED,
    STOP,
    STOPPED,
    Plan,
    Record,
    State,
    Target,
)

# The compiled steps, each with an entry for the interpreter.
begin_sweep, keep = entry(sweeping.begin_sweep), entry(iterations.keep)
propose, choose, move = entry(sweeping.propose), entry(sweeping.choose), entry(sweeping.move)
propose_split, finish_split = entry(splitting.propose_split), entry(splitting.finish_split)
propose_merge, finish_merge = entry(splitting.propose_merge), entry(splitting.finish_merge)
propose_regroup, finish_regroup = entry(regrouping.propose_regroup), entry(regrouping.finish_regroup)
log_q_of_merged, log_q_of_groups = entry(splitting.log_q_of_merged), entry(regrouping.log_q_of_groups)

LogG = Callable[[NDArray[np.int64]], float]
Tally = NDArray[np.int64]


def run(
    log_g: LogG,
    target: Target,
    state: State,
    record: Record,
    plan: Plan,
    done: int,
    until: int,
    rng: np.random.Generator,
) -> tuple[int, int]:
    """As the compiled `run`, for a target whose tables leave the prior out."""
    for t in range(done, until):
        if (
            state.number[CURSOR] == state.number[N_SPINS]
            and state.number[SPLITS_LEFT] + state.number[REGROUPS_LEFT] == 0
        ):
            begin_sweep(target, state, plan._replace(local=0.0), rng)
            record.spin[:] = state.spin
            state.number[SPLITS_LEFT] = plan.splits
            state.number[REGROUPS_LEFT] = plan.regroups
        status = sweep(log_g, target, state, plan.inv_temperature, rng)
        if status == DONE:
            status = split_merge(log_g, target, state, record.tally, plan.inv_temperature, rng)
        if status == DONE:
            status = regroup(log_g, target, state, record.tally, plan.inv_temperature, rng)
        if status != DONE:
            return status, t
        keep(state, record, plan, t)
    return DONE, until


def sweep(log_g: LogG, target: Target, state: State, inv_temperature: float, rng: np.random.Generator) -> int:
    """As the compiled `sweep`."""
    for c in range(state.number[CURSOR], state.number[N_SPINS]):
        state.number[CURSOR] = c
        if state.number[N_CLUSTERS] + 1 >= state.size.size:
            return FULL
        if state.number[STOP] != 0:
            return STOPPED
        old, _, n_bins, n_slots = propose(target, state, c)
        if n_slots > 1:
            weigh_prior(log_g, state, int(state.first[c + 1] - state.first[c]), int(old), n_slots)
            new = choose(state, n_slots, inv_temperature, rng)
            if new != old:
                move(target, state, c, old, new, n_bins, state.gain[new] - state.gain[old])
    state.number[CURSOR] = state.number[N_SPINS]
    return DONE


def weigh_prior(log_g: LogG, state: State, n_members: int, old: int, n_slots: int) -> None:
    """Add log g of the sizes after the move to the gain of each destination; equal sizes are evaluated once."""
    sizes = state.size[:n_slots].astype(np.int64)
    sizes[old] -= n_members
    known: dict[int, float] = {}
    for j in range(n_slots):
        m = int(sizes[j])
        if m not in known:
            sizes[j] += n_members
            known[m] = log_g(sizes[sizes > 0])
            sizes[j] -= n_members
        state.gain[j] += known[m]


def split_merge(
    log_g: LogG, target: Target, state: State, tally: Tally, inv_temperature: float, rng: np.random.Generator
) -> int:
    """As the compiled `split_merge`."""
    while state.number[SPLITS_LEFT] > 0:
        if state.number[N_CLUSTERS] + 3 >= state.size.size:
            return FULL
        if state.number[STOP] != 0:
            return STOPPED
        split_or_merge(log_g, target, state, tally, inv_temperature, rng)
        state.number[SPLITS_LEFT] -= 1
    return DONE


def split_or_merge(
    log_g: LogG, target: Target, state: State, tally: Tally, inv_temperature: float, rng: np.random.Generator
) -> None:
    """As the compiled `split_or_merge`, with the change of log g added to that of the log posterior."""
    log_u = math.log(1.0 - rng.random())
    k = int(state.number[N_CLUSTERS])
    sizes = state.size[:k].astype(np.int64)
    if rng.random() < 0.5:
        tally[SPLITS_TRIED] += 1
        slot, change, against = propose_split(target, state, inv_temperature, rng)
        if slot >= 0:
            after = np.append(np.delete(sizes, slot), state.size[k : k + 2])
            change += log_g(after) - log_g(sizes)
            accepted = bool(log_u < inv_temperature * change - against)
            finish_split(state, slot, change, accepted)
            tally[SPLITS_MADE] += accepted
    else:
        tally[MERGES_TRIED] += 1
        a, b, change, ratio = propose_merge(target, state, rng)
        if a >= 0:
            change += log_g(np.append(np.delete(sizes, [a, b]), sizes[a] + sizes[b])) - log_g(sizes)
            floor = log_u - inv_temperature * change - ratio
            if floor < 0.0 and floor < log_q_of_merged(target, state, a, b, floor, inv_temperature, rng):
                finish_merge(target, state, a, b, change)
                tally[MERGES_MADE] += 1


def regroup(
    log_g: LogG, target: Target, state: State, tally: Tally, inv_temperature: float, rng: np.random.Generator
) -> int:
    """As the compiled `regroup`, with the change of log g added to that of the log posterior."""
    while state.number[REGROUPS_LEFT] > 0:
        if state.number[N_CLUSTERS] + 7 >= state.size.size:
            return FULL
        if state.number[STOP] != 0:
            return STOPPED
        state.number[REGROUPS_LEFT] -= 1
        tally[REGROUPS_TRIED] += 1
        log_u = math.log(1.0 - rng.random())
        n_old, n_sites, anchors, change, log_q = propose_regroup(target, state, inv_temperature, rng)
        if n_old > 0:
            k = int(state.number[N_CLUSTERS])
            sizes = state.size[:k].astype(np.int64)
            old = [int(state.slot_of[state.label[anchor]]) for anchor in anchors[:n_old]]
            change += log_g(np.append(np.delete(sizes, old), state.size[k : k + 5 - n_old])) - log_g(sizes)
            floor = log_u - inv_temperature * change + log_q
            accepted = bool(
                floor < 0.0
                and floor < log_q_of_groups(target, state, n_old, n_sites, anchors, floor, inv_temperature, rng)
            )
            finish_regroup(state, n_old, n_sites, anchors, change, accepted)
            tally[REGROUPS_MADE] += accepted
    return DONE
