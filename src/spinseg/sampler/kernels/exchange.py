"""Exchange two sites between their clusters, whose sizes stay as they are.

Where the prior leaves clusters no room to grow or to shrink, this is the only move that changes them. The two sites are
drawn whatever the partition is, and the reverse move exchanges the same two, so that the proposal cancels.
"""

import cython
from cython.cimports.libc import math

from spinseg.sampler.kernels.clusters import pool, update_slot
from spinseg.sampler.kernels.constraints import leaves_connected, n_marked
from spinseg.sampler.kernels.kinds import kind_of
from spinseg.sampler.kernels.likelihood import bin_value, dense_log_marginal
from spinseg.sampler.kernels.regrowth import draw_seeds
from spinseg.sampler.kernels.state import (
    LOG_POSTERIOR,
    NO_SPIN,
    Index,
    Plan,
    Random,
    Real,
    State,
    Target,
    has_kinds,
    is_connected,
)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def change_of_marginal(target: Target, state: State, slot: Index, leaving: Index, entering: Index) -> Real:
    """Change of the log marginal of a slot if one of its sites leaves and another one enters."""
    change: Real = 0.0
    for e in range(target.row[leaving], target.row[leaving + 1]):
        state.pooled[target.bin[e]] -= target.bin_count[e]
    for e in range(target.row[entering], target.row[entering + 1]):
        state.pooled[target.bin[e]] += target.bin_count[e]
    for side in range(2):
        site = leaving if side == 0 else entering
        for e in range(target.row[site], target.row[site + 1]):
            d = target.bin[e]
            if state.pooled[d] != 0:  # a bin of both sites is met twice
                change += bin_value(target, d, state.counts[d, slot] + state.pooled[d]) - state.value[d, slot]
                state.pooled[d] = 0
    if target.block.shape[0] > 0:
        for s in range(state.joined.shape[0]):
            state.joined[s] = state.total[slot, s] - target.statistic[leaving, s] + target.statistic[entering, s]
        change += dense_log_marginal(target, state) - state.dense_value[slot]
    return change


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def change_of_couplings(target: Target, label: cython.uint[::1], i: Index, j: Index) -> Real:
    """Change of the couplings of site i if it takes the place of site j, which leaves."""
    change: Real = 0.0
    for h in range(target.start[i], target.start[i + 1]):
        if target.neighbor[h] != j:
            other = label[target.neighbor[h]]
            change += target.beta[h] * (1.0 * (other == label[j]) - 1.0 * (other == label[i]))
    return change


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def may_replace(target: Target, state: State, i: Index, j: Index, slot: Index) -> cython.bint:
    """Whether site i leaves no other site of its marker behind, and meets no other marker in the slot of site j."""
    if target.marker_size.shape[0] == 0 or n_marked(target.statistic, i) == 0.0:
        return True
    marker = cython.cast(cython.longlong, target.statistic[i, target.statistic.shape[1] - 1])
    return target.marker_size[marker] == 1.0 and n_marked(state.total, slot) == n_marked(target.statistic, j)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def stay_connected(target: Target, state: State, i: Index, j: Index) -> cython.bint:
    """Whether both clusters are connected, now that sites i and j have exchanged their labels."""
    for side in range(2):
        gone, entered = (i, j) if side == 0 else (j, i)
        own = state.label[entered]
        touches: cython.bint = state.size[state.slot_of[own]] == 1  # or it needs a neighbor there
        for h in range(target.start[entered], target.start[entered + 1]):
            touches |= state.label[target.neighbor[h]] == own
        if not touches:
            return False
        state.member[0], state.member[1] = gone, entered
        if not leaves_connected(
            target.start,
            target.neighbor,
            state.label,
            own,
            state.spin,
            NO_SPIN,
            state.member,
            0,
            2,
            state.queue,
            state.place,
            state.pending,
        ):
            return False
    return True


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def exchange(target: Target, state: State, plan: Plan, rng: Random) -> tuple[Index, cython.bint]:
    """Try to exchange two sites; returns 0, or -1 if they share a cluster, and whether it was accepted.

    They are any two or, where clusters must be connected, every other time two that are near each other.
    """
    log_u = math.log(1.0 - rng.random())
    if is_connected(target) and rng.random() < 0.5:
        i, _, j = draw_seeds(target, rng)
    else:
        i, j = rng.below(state.label.shape[0]), rng.below(state.label.shape[0])
    if state.label[i] == state.label[j]:
        return -1, False
    a: Index = state.slot_of[state.label[i]]
    b: Index = state.slot_of[state.label[j]]
    if not (may_replace(target, state, i, j, b) and may_replace(target, state, j, i, a)):
        return 0, False
    if has_kinds(target):
        kind_a, kind_b, change = kind_of(state, a), kind_of(state, b), 0.0
        if kind_a != kind_b:
            change = change_of_marginal(target, state.nested, kind_a, i, j)
            change += change_of_marginal(target, state.nested, kind_b, j, i)
    else:
        change = change_of_marginal(target, state, a, i, j) + change_of_marginal(target, state, b, j, i)
    change += change_of_couplings(target, state.label, i, j) + change_of_couplings(target, state.label, j, i)
    if log_u >= plan.inv_temperature * change:
        return 0, False
    state.label[i], state.label[j] = state.label[j], state.label[i]
    if is_connected(target) and not stay_connected(target, state, i, j):
        state.label[i], state.label[j] = state.label[j], state.label[i]
        return 0, False
    for side in range(2):
        old, new = (a, b) if side == 0 else (b, a)
        state.member[0] = i if side == 0 else j
        n_bins = pool(target, state, 0, 1)
        update_slot(target, state, old, 1, n_bins, -1)
        update_slot(target, state, new, 1, n_bins, 1)
        if has_kinds(target) and kind_of(state, a) != kind_of(state, b):
            update_slot(target, state.nested, kind_of(state, old), 0, n_bins, -1)
            update_slot(target, state.nested, kind_of(state, new), 0, n_bins, 1)
    state.scalars[LOG_POSTERIOR] += change
    return 0, True
