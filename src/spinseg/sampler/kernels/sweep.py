"""One sweep of generalized Swendsen-Wang: for each spin-cluster weigh its destinations, choose one, move there."""

import math

import numpy as np

from spinseg._compiled import internal
from spinseg.sampler.kernels.clusters import drop_slot, likelihood_at, pool, update_slot
from spinseg.sampler.kernels.constraints import holds_part, leaves_connected, n_marked
from spinseg.sampler.kernels.kinds import kinds_are_full, move_between_kinds, weigh_with_kinds
from spinseg.sampler.kernels.likelihood import bin_value, dense_log_marginal
from spinseg.sampler.kernels.state import (
    ANYWHERE,
    DONE,
    FULL,
    LAM,
    LOG_POSTERIOR,
    N_CLUSTERS,
    N_SPIN_CLUSTERS,
    NEXT_INDEX,
    REACH,
    STOP,
    STOPPED,
    has_kinds,
    is_connected,
)


@internal
def weigh_likelihood(target, state, old, n_bins, n_slots):
    """log_weight[j] = log p(y_C | y_Aj): C the pooled sites, now in slot `old`, and A_j those of slot j without C."""
    tables = target.table, target.table_start, target.bin_prior
    table, table_start = target.table, target.table_start
    log_weight, counts, value = state.log_weight, state.counts, state.value
    pool_bin, pool_count = state.pool_bin, state.pool_count
    tabulated = True
    for quad in range((n_slots + 3) // 4):  # four slots at a time keep their sums in registers
        j0 = np.uint64(4 * quad)
        j1, j2, j3 = j0 + np.uint64(1), j0 + np.uint64(2), j0 + np.uint64(3)
        g0, g1, g2, g3 = 0.0, 0.0, 0.0, 0.0
        for t in range(n_bins):
            d = pool_bin[t]
            first = table_start[d] + pool_count[t]
            if table_start[d] < 0:
                tabulated = False
                continue
            g0 += table[np.uint64(first + counts[d, j0])] - value[d, j0]
            g1 += table[np.uint64(first + counts[d, j1])] - value[d, j1]
            g2 += table[np.uint64(first + counts[d, j2])] - value[d, j2]
            g3 += table[np.uint64(first + counts[d, j3])] - value[d, j3]
        log_weight[j0], log_weight[j1], log_weight[j2], log_weight[j3] = g0, g1, g2, g3
    if not tabulated:
        for t in range(n_bins):
            d = pool_bin[t]
            if table_start[d] < 0:
                for j in range(n_slots):
                    log_weight[j] += bin_value(tables, d, counts[d, j] + pool_count[t]) - value[d, j]

    log_weight[old] = 0.0  # this slot holds C already: take it out instead
    for t in range(n_bins):
        d = pool_bin[t]
        log_weight[old] += value[d, old] - bin_value(tables, d, counts[d, old] - pool_count[t])

    if target.block.shape[0] > 0:
        total, joined, pool_total = state.total, state.joined, state.pool_total
        for j in range(n_slots):
            sign = -1.0 if j == old else 1.0
            for s in range(joined.size):
                joined[s] = total[j, s] + sign * pool_total[s]
            log_p = dense_log_marginal(target, joined, state.work)
            log_weight[j] += sign * (log_p - state.dense_value[j])


@internal
def weigh(target, state, group, old, n_bins):
    """Fill log_weight and bond_weight for each destination of the pooled spin-cluster `group` of slot `old`.

    Destinations are the occupied slots and a new cluster: slot k, or `old` itself if the spin-cluster is all of it.
    log_weight[j] is the log posterior with the spin-cluster in slot j, less what is the same for all destinations.
    """
    log_v, log_w = target.log_v, target.log_w
    start, neighbor, beta, strength = target.start, target.neighbor, target.beta, target.strength
    size, log_weight, bond_weight = state.size, state.log_weight, state.bond_weight
    spin, slot_of, label = state.spin, state.slot_of, state.label
    rest = size[old] - group.size
    k_rest = state.counters[N_CLUSTERS] - (rest == 0)
    n_slots = k_rest + 1
    weigh_likelihood(target, state, old, n_bins, n_slots)

    new = k_rest if rest > 0 else old
    gain_new = log_weight[new] + log_v[k_rest + 1] + log_w[group.size]
    size[old] = rest
    for j in range(n_slots):
        m = size[j]
        log_weight[j] += log_v[k_rest] + log_w[np.uint64(m + group.size)] - log_w[np.uint64(m)]
        bond_weight[j] = 0.0
    size[old] = rest + group.size
    log_weight[new] = gain_new

    mine = spin[group[0]]
    for q in range(group.size):
        i = group[q]
        for h in range(start[i], start[i + 1]):
            j = neighbor[h]
            outside = spin[j] != mine  # a factor, not a branch to mispredict
            slot = slot_of[label[j]]
            log_weight[slot] += outside * beta[h]
            bond_weight[slot] += outside * strength[h]
    return n_slots


@internal
def weigh_touching(target, state, group, old, n_bins):
    """As `weigh`, but the destinations are the slots that the spin-cluster touches and, last, a new cluster.

    touched[t] is the slot of destination t, and rank[touched[t]] = t. There are none if the spin-cluster does not touch
    the rest of its own cluster: it could not come back. Otherwise they do not depend on where the spin-cluster is.
    """
    log_v, log_w = target.log_v, target.log_w
    start, neighbor, beta, strength = target.start, target.neighbor, target.beta, target.strength
    size, log_weight, bond_weight = state.size, state.log_weight, state.bond_weight
    touched, rank = state.touched, state.rank
    spin, slot_of, label = state.spin, state.slot_of, state.label
    mine, n = spin[group[0]], 0
    for q in range(group.size):
        i = group[q]
        for h in range(start[i], start[i + 1]):
            j = neighbor[h]
            if spin[j] == mine:
                continue
            slot = slot_of[label[j]]
            t = rank[slot]
            if t < 0 or t >= n or touched[t] != slot:  # it was not met yet
                t = n
                touched[t], rank[slot], log_weight[t], bond_weight[t] = slot, t, 0.0, 0.0
                n += 1
            log_weight[t] += beta[h]
            bond_weight[t] += strength[h]

    rest = size[old] - group.size
    k_rest = state.counters[N_CLUSTERS] - (rest == 0)
    if rest > 0 and (rank[old] < 0 or rank[old] >= n or touched[rank[old]] != old):
        return 0
    if has_kinds(target):
        return weigh_with_kinds(target, state, group, old, n, n_bins)
    new = np.int64(old) if rest == 0 else k_rest
    for t in range(n):
        slot = np.int64(touched[t])
        m = rest if slot == old else size[slot]
        sign = -1 if slot == old else 1
        log_weight[t] += likelihood_at(target, state, slot, n_bins, sign) + log_v[k_rest]
        log_weight[t] += log_w[np.uint64(m + group.size)] - log_w[np.uint64(m)]
    touched[n], rank[new], bond_weight[n] = new, n, 0.0
    log_weight[n] = (
        likelihood_at(target, state, new, n_bins, -1 if rest == 0 else 1) + log_w[group.size] + log_v[k_rest + 1]
    )
    return n + 1


@internal
def weigh_sizes(state, c, old, n_destinations):
    """Add log g of the sizes after spin-cluster c has moved to the log weight of each of its destinations.

    Nothing: a prior with tables is all in `log_v` and `log_w`. `exchangeable.py` replaces this.
    """


@internal
def exclude_marked(state, old, n_destinations):
    """Give a pooled spin-cluster that holds a marker no other destination that holds one."""
    if n_marked(state.pool_total) > 0.0:
        for t in range(n_destinations):
            slot = np.int64(state.touched[t])
            if slot != old and n_marked(state.total[slot]) > 0.0:
                state.log_weight[t] = -np.inf


@internal
def choose(state, n_destinations, inv_temperature, rng):
    """A destination drawn with probability proportional to exp(log_weight / temperature - lambda * bond_weight).

    Inversion of the cumulative weights, the largest first. If the uniform draw would pick that even were all others as
    large as the second largest, no other exponential is needed; this is exact.
    """
    log_weight, weight, lam = state.log_weight, state.bond_weight, state.scalars[LAM]
    top, second, best = -np.inf, -np.inf, 0
    for j in range(n_destinations):  # selections, not branches to mispredict
        w = inv_temperature * log_weight[j] - lam * weight[j]
        weight[j] = w
        lesser = w if w < top else top
        second = lesser if lesser > second else second
        best = j if w > top else best
        top = w if w > top else top
    point = 1.0 - rng.random()  # in (0, 1]
    if point * (1.0 + (n_destinations - 1) * math.exp(second - top)) <= 1.0:
        return best
    weight[best] = -np.inf
    others = 0.0
    for j in range(n_destinations):
        others += math.exp(weight[j] - top)
        weight[j] = others
    left = min(point * (1.0 + others) - 1.0, others)
    if left <= 0.0:
        return best
    chosen = 0
    for j in range(n_destinations):
        chosen += weight[j] < left
    return chosen


@internal
def touches_another(target, state, group):
    """Whether some site of a spin-cluster has a neighbor in another cluster than its own."""
    start, neighbor, label = target.start, target.neighbor, state.label
    for q in range(group.size):
        i = group[q]
        for h in range(start[i], start[i + 1]):
            if label[neighbor[h]] != label[i]:
                return True
    return False


@internal
def weigh_destinations(target, state, c):
    """Weigh the destinations of spin-cluster c.

    Returns its slot, which destination that is, how many bins it occupies, and how many destinations there are: 0 if
    the rest would have a size that the prior forbids, it could not come back, it is too small to found a cluster and
    touches no other, or it would leave a part of its marker behind.
    """
    group, reach = state.member[state.first[c] : state.first[c + 1]], state.counters[REACH]
    old = state.slot_of[state.label[group[0]]]
    rest = state.size[old] - group.size
    if rest > 0 and target.log_w[rest] == -np.inf:
        return old, np.int64(old), 0, 0
    if reach != ANYWHERE and target.log_w[group.size] == -np.inf and not touches_another(target, state, group):
        return old, np.int64(old), 0, 0
    n_bins = pool(target, state, group)
    if not is_connected(target) and reach == ANYWHERE:
        return old, np.int64(old), n_bins, weigh(target, state, group, old, n_bins)
    if target.marker_size.size > 0 and holds_part(target, state.pool_total):
        return old, np.int64(old), n_bins, 0
    n_destinations = weigh_touching(target, state, group, old, n_bins)
    if target.marker_size.size > 0:
        exclude_marked(state, old, n_destinations)
    return old, np.int64(state.rank[old]), n_bins, n_destinations


@internal
def may_leave(target, state, c):
    """Whether the cluster of spin-cluster c is connected, or empty, without it."""
    group = state.member[state.first[c] : state.first[c + 1]]
    label, queue, place, pending = state.label, state.queue, state.place, state.pending
    own = label[group[0]]
    return leaves_connected(target.start, target.neighbor, label, own, state.spin, c, group, queue, place, pending)


@internal
def move(target, state, c, old, new, n_bins, change):
    """Move the pooled spin-cluster c from slot `old` to slot `new`, where `new` = k founds a cluster."""
    group, label, counters = state.member[state.first[c] : state.first[c + 1]], state.label, state.counters
    state.scalars[LOG_POSTERIOR] += change
    if old == new:  # a region that changes its kind
        return
    update_slot(target, state, old, group.size, n_bins, -1)
    update_slot(target, state, new, group.size, n_bins, 1)
    cluster = state.id_of[new]
    for q in range(group.size):
        label[group[q]] = cluster
    if new == counters[N_CLUSTERS]:
        counters[N_CLUSTERS] += 1
    if state.size[old] == 0:
        drop_slot(state, old)


@internal
def sweep(target, state, inv_temperature, rng):
    """Move the spin-clusters from the cursor on; DONE, FULL or STOPPED."""
    counters, capacity = state.counters, state.size.size
    for c in range(counters[NEXT_INDEX], counters[N_SPIN_CLUSTERS]):
        counters[NEXT_INDEX] = c
        if counters[N_CLUSTERS] + 1 >= capacity or (has_kinds(target) and kinds_are_full(state, capacity)):
            return FULL
        if counters[STOP] != 0:
            return STOPPED
        old, here, n_bins, n_destinations = weigh_destinations(target, state, c)
        if n_destinations > 1:
            weigh_sizes(state, c, old, n_destinations)
            there = choose(state, n_destinations, inv_temperature, rng)
            # Whether the rest stays connected matters only now: if not, the spin-cluster stays whatever was drawn.
            if there != here and (not is_connected(target) or may_leave(target, state, c)):
                new = there if counters[REACH] == ANYWHERE else np.int64(state.touched[there])
                if has_kinds(target):
                    n_members = np.int64(state.first[c + 1]) - np.int64(state.first[c])
                    move_between_kinds(target, state, n_members, there, np.int64(old), n_bins)
                move(target, state, c, np.int64(old), new, n_bins, state.log_weight[there] - state.log_weight[here])
    counters[NEXT_INDEX] = counters[N_SPIN_CLUSTERS]
    return DONE
