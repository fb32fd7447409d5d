"""Exchange two sites between their clusters, whose sizes stay as they are.

Where the prior leaves clusters no room to grow or to shrink, this is the only move that changes them. The two sites are
drawn whatever the partition is, and the reverse move exchanges the same two, so that the proposal cancels.
"""

import math

import numpy as np

from spinseg._compiled import internal
from spinseg.sampler.kernels.clusters import pool, update_slot
from spinseg.sampler.kernels.constraints import leaves_connected, n_marked
from spinseg.sampler.kernels.kinds import kind_of
from spinseg.sampler.kernels.likelihood import bin_value, dense_log_marginal
from spinseg.sampler.kernels.regrowth import draw_seeds
from spinseg.sampler.kernels.state import LOG_POSTERIOR, NO_SPIN, has_kinds, is_connected


@internal
def change_of_marginal(target, state, slot, leaving, entering):
    """Change of the log marginal of a slot if one of its sites leaves and another one enters."""
    tables = target.table, target.table_start, target.bin_prior
    row, bins, bin_count, statistic = target.row, target.bin, target.bin_count, target.statistic
    counts, value, pooled, total, joined = state.counts, state.value, state.pooled, state.total, state.joined
    change = 0.0
    for e in range(row[leaving], row[leaving + 1]):
        pooled[bins[e]] -= bin_count[e]
    for e in range(row[entering], row[entering + 1]):
        pooled[bins[e]] += bin_count[e]
    for site in (leaving, entering):
        for e in range(row[site], row[site + 1]):
            d = bins[e]
            if pooled[d] != 0:  # a bin of both sites is met twice
                change += bin_value(tables, d, counts[d, slot] + pooled[d]) - value[d, slot]
                pooled[d] = 0
    if target.block.shape[0] > 0:
        for s in range(joined.size):
            joined[s] = total[slot, s] - statistic[leaving, s] + statistic[entering, s]
        change += dense_log_marginal(target, joined, state.work) - state.dense_value[slot]
    return change


@internal
def change_of_couplings(target, label, i, j):
    """Change of the couplings of site i if it takes the place of site j, which leaves."""
    start, neighbor, beta = target.start, target.neighbor, target.beta
    change = 0.0
    for h in range(start[i], start[i + 1]):
        if neighbor[h] != j:
            change += beta[h] * (1.0 * (label[neighbor[h]] == label[j]) - 1.0 * (label[neighbor[h]] == label[i]))
    return change


@internal
def may_replace(target, state, i, j, slot):
    """Whether site i leaves no other site of its marker behind, and meets no other marker in the slot of site j."""
    if target.marker_size.size == 0 or n_marked(target.statistic[i]) == 0.0:
        return True
    marker = np.int64(target.statistic[i, target.statistic.shape[1] - 1])
    return target.marker_size[marker] == 1.0 and n_marked(state.total[slot]) == n_marked(target.statistic[j])


@internal
def stay_connected(target, state, i, j):
    """Whether both clusters are connected, now that sites i and j have exchanged their labels."""
    start, neighbor, label, member = target.start, target.neighbor, state.label, state.member
    queue, place, pending, spin = state.queue, state.place, state.pending, state.spin
    for gone, entered in ((i, j), (j, i)):
        own = label[entered]
        touches = state.size[state.slot_of[own]] == 1  # or it needs a neighbor there
        for h in range(start[entered], start[entered + 1]):
            touches |= label[neighbor[h]] == own
        if not touches:
            return False
        member[0], member[1] = gone, entered
        if not leaves_connected(start, neighbor, label, own, spin, NO_SPIN, member[:2], queue, place, pending):
            return False
    return True


@internal
def exchange(target, state, plan, rng):
    """Try to exchange two sites; returns 0, or -1 if they share a cluster, and whether it was accepted.

    They are any two or, where clusters must be connected, every other time two that are near each other.
    """
    label, slot_of = state.label, state.slot_of
    log_u = math.log(1.0 - rng.random())
    if is_connected(target) and rng.random() < 0.5:
        i, _, j = draw_seeds(target, rng)
    else:
        i, j = int(rng.random() * label.size), int(rng.random() * label.size)
    if label[i] == label[j]:
        return -1, False
    a, b = np.int64(slot_of[label[i]]), np.int64(slot_of[label[j]])
    if not (may_replace(target, state, i, j, b) and may_replace(target, state, j, i, a)):
        return 0, False
    if has_kinds(target):
        kind_a, kind_b, change = kind_of(state, a), kind_of(state, b), 0.0
        if kind_a != kind_b:
            change = change_of_marginal(target, state.nested, kind_a, i, j)
            change += change_of_marginal(target, state.nested, kind_b, j, i)
    else:
        change = change_of_marginal(target, state, a, i, j) + change_of_marginal(target, state, b, j, i)
    change += change_of_couplings(target, label, i, j) + change_of_couplings(target, label, j, i)
    if log_u >= plan.inv_temperature * change:
        return 0, False
    label[i], label[j] = label[j], label[i]
    if is_connected(target) and not stay_connected(target, state, i, j):
        label[i], label[j] = label[j], label[i]
        return 0, False
    for site, old, new in ((i, a, b), (j, b, a)):
        state.member[0] = site
        n_bins = pool(target, state, state.member[:1])
        update_slot(target, state, old, 1, n_bins, -1)
        update_slot(target, state, new, 1, n_bins, 1)
        if has_kinds(target) and kind_of(state, a) != kind_of(state, b):
            update_slot(target, state.nested, kind_of(state, old), 0, n_bins, -1)
            update_slot(target, state.nested, kind_of(state, new), 0, n_bins, 1)
    state.scalars[LOG_POSTERIOR] += change
    return 0, True
