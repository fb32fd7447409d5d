"""Kinds of regions: regions are placed in kinds as sites are in regions.

`state.nested` holds the kinds. Its "sites" are the ids of regions: label[id] is the kind of a region, and the size of a
kind the number of its regions. Its statistics are those of all their sites, and its pool is that of the state. There is
one only where the target has a table of kinds.

A move that replaces regions takes the old ones out of their kinds, and draws kinds for the new ones, one after the
other: each with the probability that it has given the kinds of all others. The reverse would draw the old kinds so.
"""

import math

import numpy as np

from spinseg._compiled import internal, jit
from spinseg.sampler.kernels.clusters import (
    clear_slot,
    discard_clusters,
    drop_slot,
    likelihood_at,
    merge_clusters,
    merged_log_marginal,
    replace_clusters,
    slot_log_marginal,
    update_slot,
)
from spinseg.sampler.kernels.likelihood import bin_value, dense_log_marginal
from spinseg.sampler.kernels.reallocation import order_from
from spinseg.sampler.kernels.state import FORCED, FREE, LOG_POSTERIOR, N_CLUSTERS

# Rows of Target.kind_table, at numbers of regions: log_w, the same with its -inf filled in, so that every kind can be
# proposed, and the log of the sum over all partitions of this number of regions.
LOG_W, PROPOSAL_LOG_W, LOG_TOTAL = range(3)
LOG_V, PROPOSAL_LOG_V = range(2)  # of Target.kind_log_v, likewise, at numbers of regions and of kinds


@jit
def sum_kinds(target, state):
    """Sum the statistics of kinds from those of their regions: at the start, and where rounding errors add up."""
    tables = target.table, target.table_start, target.bin_prior
    kinds = state.nested
    for kind in range(kinds.counters[N_CLUSTERS]):
        clear_slot(kinds, kind)
    for slot in range(state.counters[N_CLUSTERS]):
        kind = kind_of(state, slot)
        kinds.size[kind] += 1
        for d in range(kinds.counts.shape[0]):
            kinds.counts[d, kind] += state.counts[d, slot]
        for s in range(kinds.total.shape[1]):
            kinds.total[kind, s] += state.total[slot, s]
    for kind in range(kinds.counters[N_CLUSTERS]):
        for d in range(kinds.counts.shape[0]):
            kinds.value[d, kind] = bin_value(tables, d, kinds.counts[d, kind])
        if target.block.shape[0] > 0:
            kinds.dense_value[kind] = dense_log_marginal(target, kinds.total[kind], kinds.work)


@internal
def kinds_are_full(state, capacity):
    """Whether there is no room for a new kind, or for the destinations of a spin-cluster."""
    kinds = state.nested
    n_kinds = kinds.counters[N_CLUSTERS]
    return n_kinds + 7 >= kinds.size.size or state.counters[N_CLUSTERS] + n_kinds + 2 >= capacity


@internal
def kind_of(state, slot):
    """The slot of the kind of the region in a slot."""
    kinds = state.nested
    return np.int64(kinds.slot_of[kinds.label[state.id_of[slot]]])


@internal
def set_kind(state, slot, kind):
    """Note that the region in a slot is of a kind, whose statistics have it already."""
    state.nested.label[state.id_of[slot]] = state.nested.id_of[kind]


@internal
def log_v_of_kinds(target, which, n_regions, n_kinds):
    """LOG_V or PROPOSAL_LOG_V of a number of kinds, given the number of regions."""
    table = target.kind_log_v
    return table[which, min(n_regions, table.shape[1] - 1), n_kinds]


@internal
def log_prior_of_kinds(target, kinds, n_regions):
    """Log probability of the kinds given the number of regions."""
    n_kinds, table = kinds.counters[N_CLUSTERS], target.kind_table
    log_p = log_v_of_kinds(target, LOG_V, n_regions, n_kinds) - table[LOG_TOTAL, n_regions]
    for kind in range(n_kinds):
        log_p += table[LOG_W, kinds.size[kind]]
    return log_p


@internal
def pool_regions(state, slots, n):
    """Sum the statistics of the regions in slots[:n] into the pool; returns how many bins they occupy."""
    counts, total, pool_bin, pool_count, pool_total = (
        state.counts,
        state.total,
        state.pool_bin,
        state.pool_count,
        state.pool_total,
    )
    n_bins = 0
    for d in range(counts.shape[0]):
        count = 0
        for s in range(n):
            count += counts[d, slots[s]]
        if count > 0:
            pool_bin[n_bins], pool_count[n_bins] = d, count
            n_bins += 1
    for p in range(pool_total.size):
        pool_total[p] = 0.0
        for s in range(n):
            pool_total[p] += total[slots[s], p]
    return n_bins


@internal
def take_out(target, kinds, kind, n_bins):
    """Take the pooled region out of a kind, which vanishes if it was the last one."""
    update_slot(target, kinds, kind, 1, n_bins, -1)
    if kinds.size[kind] == 0:
        drop_slot(kinds, kind)


@internal
def put_in(target, kinds, kind, n_bins):
    """Put the pooled region into a kind, new if it is the first empty slot."""
    update_slot(target, kinds, kind, 1, n_bins, 1)
    if kind == kinds.counters[N_CLUSTERS]:
        kinds.counters[N_CLUSTERS] += 1


@internal
def place_region(target, kinds, n_regions, n_bins, wanted, inv_temperature, rng):
    """Put the pooled region, one of n_regions, into a kind that is drawn, or into the one wanted unless that is -1.

    Returns the kind, the log of its probability, and the log likelihood of the region given the others of the kind.
    """
    table, size, log_weight, log_likelihood = target.kind_table, kinds.size, kinds.log_weight, kinds.bond_weight
    n_kinds, top, total = kinds.counters[N_CLUSTERS], -np.inf, 0.0
    for kind in range(n_kinds + 1):
        m = size[kind]
        log_likelihood[kind] = likelihood_at(target, kinds, kind, n_bins, 1)
        log_weight[kind] = log_likelihood[kind] + table[PROPOSAL_LOG_W, m + 1] - table[PROPOSAL_LOG_W, m]
        if kind == n_kinds:
            before = log_v_of_kinds(target, PROPOSAL_LOG_V, n_regions, n_kinds)
            log_weight[kind] += log_v_of_kinds(target, PROPOSAL_LOG_V, n_regions, n_kinds + 1) - before
        top = max(top, log_weight[kind])
    for kind in range(n_kinds + 1):  # weights that underflow would make impossible what is only unlikely
        log_weight[kind] = max(inv_temperature * (log_weight[kind] - top), -600.0)
        total += math.exp(log_weight[kind])
    chosen = wanted
    if wanted < 0:
        point, chosen = rng.random() * total, -1
        while point >= 0.0 and chosen < n_kinds:
            chosen += 1
            point -= math.exp(log_weight[chosen])
    log_q, log_p = log_weight[chosen] - math.log(total), log_likelihood[chosen]
    put_in(target, kinds, chosen, n_bins)
    return chosen, log_q, log_p


@jit
def deal_kinds(target, state, rng):
    """Give every region the kind that suits it best, given the regions before it."""
    kinds = state.nested
    discard_clusters(kinds, 0, kinds.counters[N_CLUSTERS])
    kinds.counters[N_CLUSTERS] = 0
    for slot in range(state.counters[N_CLUSTERS]):
        n_bins = pool_regions(state, (slot, slot, slot), 1)
        kind, _, _ = place_region(target, kinds, state.counters[N_CLUSTERS], n_bins, -1, 1e7, rng)
        set_kind(state, slot, kind)


@internal
def take_kinds(target, state, slots, n_old, inv_temperature, rng):
    """Take the regions in slots[:n_old] out of their kinds.

    Returns the log probability of drawing these kinds again, and their log likelihood. `touched` then has the ids of
    the kinds, and `rank` whether other regions are left in them, for `return_kinds`.
    """
    kinds, k, log_q, log_p = state.nested, state.counters[N_CLUSTERS], 0.0, 0.0
    for s in range(n_old):
        kinds.touched[s] = kinds.label[state.id_of[slots[s]]]
    for s in range(n_old):
        n_bins = pool_regions(state, (slots[s], slots[s], slots[s]), 1)
        take_out(target, kinds, np.int64(kinds.slot_of[kinds.touched[s]]), n_bins)
    for s in range(n_old):
        kinds.rank[s] = kinds.slot_of[kinds.touched[s]] < kinds.counters[N_CLUSTERS]
    for s in range(n_old):
        n_bins = pool_regions(state, (slots[s], slots[s], slots[s]), 1)
        kind, log_share, log_likelihood = place_region(
            target, kinds, k, n_bins, kind_before(state, slots, s), inv_temperature, rng
        )
        set_kind(state, slots[s], kind)
        log_q, log_p = log_q + log_share, log_p + log_likelihood
    for s in range(n_old):
        n_bins = pool_regions(state, (slots[s], slots[s], slots[s]), 1)
        take_out(target, kinds, kind_of(state, slots[s]), n_bins)
    return log_q, log_p


@internal
def kind_before(state, slots, s):
    """The slot of the kind that `take_kinds` took region s out of, now that the regions before it are back."""
    kinds = state.nested
    if kinds.rank[s]:
        return np.int64(kinds.slot_of[kinds.touched[s]])
    for t in range(s):
        if kinds.touched[t] == kinds.touched[s]:
            return kind_of(state, slots[t])
    return kinds.counters[N_CLUSTERS]


@internal
def return_kinds(target, state, slots, n_regions):
    """Put the regions back that `take_kinds` took out of their kinds."""
    for s in range(n_regions):
        n_bins = pool_regions(state, (slots[s], slots[s], slots[s]), 1)
        kind = kind_before(state, slots, s)
        put_in(target, state.nested, kind, n_bins)
        set_kind(state, slots[s], kind)


@internal
def replace_kinds(target, state, slots, n_old, n_new, inv_temperature, rng):
    """Draw kinds for n_new regions that replace those in slots[:n_old]: in slots from k on or, if one, of their sites.

    Returns the change of log posterior, and log q of the old kinds less that of the new ones. Then `keep_kinds` or
    `reject_kinds` must follow.
    """
    kinds, k = state.nested, state.counters[N_CLUSTERS]
    k_new, before = k - n_old + n_new, log_prior_of_kinds(target, kinds, k)
    log_q, log_p = take_kinds(target, state, slots, n_old, inv_temperature, rng)
    log_ratio, change = log_q, -log_p
    for s in range(n_new):
        n_bins = pool_new(state, slots, n_old, n_new, s)
        kind, log_share, log_likelihood = place_region(target, kinds, k_new, n_bins, -1, inv_temperature, rng)
        kinds.first[s] = kinds.id_of[kind]
        log_ratio, change = log_ratio - log_share, change + log_likelihood
    return change + (log_prior_of_kinds(target, kinds, k_new) - before), log_ratio


@internal
def pool_new(state, slots, n_old, n_new, s):
    """Pool the s-th of the regions that are to replace others; returns how many bins it occupies."""
    if n_new == 1:
        return pool_regions(state, slots, n_old)
    new = state.counters[N_CLUSTERS] + s
    return pool_regions(state, (new, new, new), 1)


@internal
def reject_kinds(target, state, slots, n_old, n_new):
    """Give the old regions their kinds back."""
    kinds = state.nested
    for s in range(n_new):
        n_bins = pool_new(state, slots, n_old, n_new, s)
        take_out(target, kinds, np.int64(kinds.slot_of[kinds.first[s]]), n_bins)
    return_kinds(target, state, slots, n_old)


@internal
def keep_kinds(state, first, n_new):
    """Note the kinds of the new regions, which are in the slots from `first` on."""
    for s in range(n_new):
        state.nested.label[state.id_of[first + s]] = state.nested.first[s]


@internal
def change_kind(target, state, plan, rng):
    """Draw the kind of a region again; returns 0, and whether it was accepted."""
    slot = int(rng.random() * state.counters[N_CLUSTERS])
    log_u, slots, inv_temperature = math.log(1.0 - rng.random()), (slot, slot, slot), plan.inv_temperature
    change, log_ratio = replace_kinds(target, state, slots, 1, 1, inv_temperature, rng)
    accepted = log_u < inv_temperature * change + log_ratio
    if accepted:
        keep_kinds(state, slot, 1)
        state.scalars[LOG_POSTERIOR] += change
    else:
        reject_kinds(target, state, slots, 1, 1)
    return 0, accepted


@internal
def gather_regions(state, kind, n):
    """Append the ids of the regions of a kind to member[:n] of the kinds; returns how many there are then."""
    kinds = state.nested
    for slot in range(state.counters[N_CLUSTERS]):
        if kind_of(state, slot) == kind:
            kinds.member[n] = state.id_of[slot]
            n += 1
    return n


@internal
def allocate_regions(target, state, n_regions, forced, floor, inv_temperature, rng):
    """Allocate member[:n_regions] of the kinds in turn to two new ones, founded by the first two; returns log q.

    FREE draws each choice, and FORCED repeats the present kinds of the founders, or ends when log q falls below
    `floor`. The side of a region, 1 or 2, is written to `spin`.
    """
    kinds, table, log_q = state.nested, target.kind_table, 0.0
    member, label, size, base = kinds.member, kinds.label, kinds.size, kinds.counters[N_CLUSTERS]
    for q in range(n_regions):
        slot = np.int64(state.slot_of[member[q]])
        n_bins = pool_regions(state, (slot, slot, slot), 1)
        side = q
        if q > 1:
            gain = likelihood_at(target, kinds, base + 1, n_bins, 1) - likelihood_at(target, kinds, base, n_bins, 1)
            for s in range(2):
                m, sign = size[base + s], 2.0 * s - 1.0
                gain += sign * (table[PROPOSAL_LOG_W, m + 1] - table[PROPOSAL_LOG_W, m])
            gain = min(max(inv_temperature * gain, -600.0), 600.0)
            share = 1.0 / (1.0 + math.exp(-gain))  # of side 1
            side = 1 * (label[member[q]] != label[member[0]]) if forced == FORCED else 1 * (rng.random() < share)
            log_q -= math.log1p(math.exp(-gain if side == 1 else gain))
            if forced == FORCED and log_q < floor:
                return log_q
        kinds.spin[member[q]] = side + 1
        update_slot(target, kinds, base + side, 1, n_bins, 1)
    return log_q


@internal
def split_or_merge_kinds(target, state, plan, rng):
    """Try to split the kind of two regions (0), or to merge their kinds (1); returns which, and whether it was done.

    The two regions are any, so that the reverse draws them as often; -1 if there is one alone.
    """
    kinds, table, inv_temperature, k = state.nested, target.kind_table, plan.inv_temperature, state.counters[N_CLUSTERS]
    if k < 2:
        return -1, False
    log_u, first, second = math.log(1.0 - rng.random()), int(rng.random() * k), int(rng.random() * (k - 1))
    second += second >= first
    a, b, n_kinds = kind_of(state, first), kind_of(state, second), kinds.counters[N_CLUSTERS]
    n = gather_regions(state, a, 0)
    change = -slot_log_marginal(kinds, a) - table[LOG_W, kinds.size[a]] - log_v_of_kinds(target, LOG_V, k, n_kinds)
    if a != b:
        n = gather_regions(state, b, n)
        change += merged_log_marginal(target, kinds, a, b) - slot_log_marginal(kinds, b)
        change += table[LOG_W, n] - table[LOG_W, kinds.size[b]] + log_v_of_kinds(target, LOG_V, k, n_kinds - 1)
    floor = log_u - inv_temperature * change
    if a != b and not floor < 0.0:
        return 1, False
    order_from(kinds.member, (state.id_of[first], state.id_of[second]), 2, n, rng)
    log_q = allocate_regions(target, state, n, FREE if a == b else FORCED, floor, inv_temperature, rng)
    if a != b:
        discard_clusters(kinds, n_kinds, 2)
        accepted = floor < log_q
        if accepted:
            merge_clusters(target, kinds, a, b, change)
    else:
        for s in range(2):
            change += slot_log_marginal(kinds, n_kinds + s) + table[LOG_W, kinds.size[n_kinds + s]]
        change += log_v_of_kinds(target, LOG_V, k, n_kinds + 1)
        accepted = log_u < inv_temperature * change - log_q
        if accepted:
            replace_clusters(kinds, kinds.spin, (a, a, a), 1, 2, n, change)
        else:
            discard_clusters(kinds, n_kinds, 2)
    if accepted:
        state.scalars[LOG_POSTERIOR] += change
    return 1 * (a != b), accepted


@internal
def weigh_with_kinds(target, state, group, old, n_touched, n_bins):
    """As the second part of `weigh_touching`: here a new region may be of any kind, or of a new one.

    Destination n_touched + j is a new region of the kind in slot j. Returns how many destinations there are.
    """
    log_v, log_w, table, kinds = target.log_v, target.log_w, target.kind_table, state.nested
    touched, log_weight, log_likelihood = state.touched, state.log_weight, kinds.bond_weight
    own, rest, n_kinds = kind_of(state, old), state.size[old] - group.size, kinds.counters[N_CLUSTERS]
    k_rest = state.counters[N_CLUSTERS] - (rest == 0)
    for kind in range(n_kinds + 1):
        log_likelihood[kind] = likelihood_at(target, kinds, kind, n_bins, -1 if kind == own else 1)

    kinds.size[own] -= rest == 0  # as if the region of the spin-cluster were gone, if that is all of it
    is_gone = kinds.size[own] == 0
    n_forbidden, prior = 0, 0.0  # of the kinds without it, but for the one that the new region joins
    for kind in range(n_kinds):
        value = table[LOG_W, kinds.size[kind]] if kinds.size[kind] > 0 else 0.0
        n_forbidden += value == -np.inf
        prior += value if value > -np.inf else 0.0
    n_left = n_kinds - is_gone
    with_none = log_v_of_kinds(target, LOG_V, k_rest, n_left) - table[LOG_TOTAL, k_rest] if n_left > 0 else 0.0
    with_one = -table[LOG_TOTAL, k_rest + 1]
    for t in range(n_touched):
        slot = np.int64(touched[t])
        m = rest if slot == old else state.size[slot]
        log_weight[t] += log_likelihood[kind_of(state, slot)] + log_v[k_rest]
        log_weight[t] += log_w[np.uint64(m + group.size)] - log_w[np.uint64(m)]
        log_weight[t] += prior + with_none if n_forbidden == 0 else -np.inf
    new = np.int64(old) if rest == 0 else k_rest
    n_destinations = n_touched + n_kinds + (not is_gone)
    for t in range(n_touched, n_destinations):
        kind = t - n_touched
        m = kinds.size[kind]
        value = table[LOG_W, m] if m > 0 else 0.0
        touched[t], state.bond_weight[t] = new, 0.0
        log_weight[t] = log_likelihood[kind] + log_v[k_rest + 1] + log_w[group.size]
        log_weight[t] += with_one + log_v_of_kinds(target, LOG_V, k_rest + 1, n_left + (m == 0)) + table[LOG_W, m + 1]
        log_weight[t] += prior - (value if value > -np.inf else 0.0)
        if n_forbidden > (value == -np.inf):
            log_weight[t] = -np.inf
    kinds.size[own] += rest == 0
    state.rank[new] = n_touched + own if rest == 0 else n_touched
    return n_destinations


@internal
def move_between_kinds(target, state, n_members, there, old, n_bins):
    """Move the pooled spin-cluster, now in slot `old`, to the kind of its destination, before it moves itself."""
    kinds, own, new = state.nested, kind_of(state, old), np.int64(state.touched[there])
    leaves = state.size[old] == n_members  # nothing of its region
    founds = new == (old if leaves else state.counters[N_CLUSTERS])
    kind = kind_of(state, new)
    if founds:
        first = there
        while first > 0 and state.touched[first - 1] == new:
            first -= 1
        kind = np.int64(there - first)
    update_slot(target, kinds, own, 1 if leaves else 0, n_bins, -1)
    update_slot(target, kinds, kind, 1 if founds else 0, n_bins, 1)
    if founds:
        kinds.counters[N_CLUSTERS] += kind == kinds.counters[N_CLUSTERS]
        set_kind(state, new, kind)
    if kinds.size[own] == 0:
        drop_slot(kinds, own)
