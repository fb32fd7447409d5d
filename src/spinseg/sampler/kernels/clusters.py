"""The statistics of clusters, as groups of sites come and go, and as clusters replace others.

Clusters that are to replace others are proposed in the empty slots from k on, weighed, then accepted or discarded.
"""

import numpy as np

from spinseg._compiled import internal, jit
from spinseg.sampler.kernels.likelihood import bin_value, dense_log_marginal
from spinseg.sampler.kernels.state import LOG_POSTERIOR, N_CLUSTERS, has_kinds


@internal
def pool(target, state, group):
    """Sum the statistics of the sites `group` into the pool; returns how many bins they occupy."""
    row, bins, bin_count, statistic = target.row, target.bin, target.bin_count, target.statistic
    pool_bin, pool_count, pooled, pool_total = state.pool_bin, state.pool_count, state.pooled, state.pool_total
    n_bins = 0
    if group.size == 1:
        for e in range(row[group[0]], row[group[0] + 1]):
            pool_bin[n_bins] = bins[e]
            pool_count[n_bins] = bin_count[e]
            n_bins += 1
    else:
        for q in range(group.size):
            for e in range(row[group[q]], row[group[q] + 1]):
                d = bins[e]
                pool_bin[n_bins] = d  # stays only if the bin is new: no branch to mispredict
                n_bins += pooled[d] == 0
                pooled[d] += bin_count[e]
        for t in range(n_bins):
            pool_count[t] = pooled[pool_bin[t]]
            pooled[pool_bin[t]] = 0
    for s in range(pool_total.size):
        pool_total[s] = statistic[group[0], s]
    for q in range(1, group.size):
        for s in range(pool_total.size):
            pool_total[s] += statistic[group[q], s]
    return n_bins


@internal
def bins_log_predictive(target, state, slot, n_bins, sign):
    """Change of the histograms' log marginal in a slot if the pooled sites join it, or leave it where sign is -1."""
    tables = target.table, target.table_start, target.bin_prior
    counts, value, pool_bin, pool_count = state.counts, state.value, state.pool_bin, state.pool_count
    change = 0.0
    for t in range(n_bins):
        d = pool_bin[t]
        change += bin_value(tables, d, counts[d, slot] + sign * pool_count[t]) - value[d, slot]
    return change


@internal
def likelihood_at(target, state, slot, n_bins, sign):
    """log p(y_C | y_A): C the pooled sites, A those of the slot, without C where sign is -1."""
    log_p = bins_log_predictive(target, state, slot, n_bins, sign)
    if target.block.shape[0] > 0:
        total, joined, pool_total = state.total, state.joined, state.pool_total
        for s in range(joined.size):
            joined[s] = total[slot, s] + sign * pool_total[s]
        log_p += dense_log_marginal(target, joined, state.work) - state.dense_value[slot]
    return sign * log_p


@internal
def add_pooled(target, state, slot, n_members, n_bins, sign):
    """As `update_slot`, but for the log marginal of the blocks."""
    tables = target.table, target.table_start, target.bin_prior
    size, counts, value, total, pool_total = state.size, state.counts, state.value, state.total, state.pool_total
    pool_bin, pool_count = state.pool_bin, state.pool_count
    size[slot] += sign * n_members
    for t in range(n_bins):
        d = pool_bin[t]
        counts[d, slot] += sign * pool_count[t]
        value[d, slot] = bin_value(tables, d, counts[d, slot])
    for s in range(pool_total.size):  # an emptied cluster keeps no rounding error
        total[slot, s] = total[slot, s] + sign * pool_total[s] if size[slot] > 0 else 0.0


@internal
def refresh(target, state, slot):
    """Bring the log marginal of the blocks of a slot up to date."""
    if target.block.shape[0] > 0:
        state.dense_value[slot] = dense_log_marginal(target, state.total[slot], state.work)


@internal
def update_slot(target, state, slot, n_members, n_bins, sign):
    """Add the pooled sites to the statistics of `slot` (sign 1), or remove them (sign -1)."""
    add_pooled(target, state, slot, n_members, n_bins, sign)
    refresh(target, state, slot)


@internal
def clear_slot(state, slot):
    """Empty a slot."""
    counts, value, total = state.counts, state.value, state.total
    state.size[slot] = 0
    state.dense_value[slot] = 0.0
    for d in range(counts.shape[0]):
        counts[d, slot] = 0
        value[d, slot] = 0.0
    for s in range(total.shape[1]):
        total[slot, s] = 0.0


@internal
def drop_slot(state, slot):
    """Remove the empty `slot` by moving the last occupied one into its place."""
    counters, id_of, slot_of = state.counters, state.id_of, state.slot_of
    size, counts, value, total, dense_value = state.size, state.counts, state.value, state.total, state.dense_value
    last = counters[N_CLUSTERS] - 1
    counters[N_CLUSTERS] = last
    if slot == last:
        return
    gone, moved = id_of[slot], id_of[last]
    id_of[slot], id_of[last] = moved, gone
    slot_of[moved], slot_of[gone] = slot, last
    size[slot] = size[last]
    dense_value[slot] = dense_value[last]
    for d in range(counts.shape[0]):
        counts[d, slot] = counts[d, last]
        value[d, slot] = value[d, last]
    for s in range(total.shape[1]):
        total[slot, s] = total[last, s]
    clear_slot(state, last)


@jit
def rebuild(target, state):
    """Fill zeroed tables from `label`, which must use the ids 0..k-1 with k in `counters`."""
    tables = target.table, target.table_start, target.bin_prior
    row, bins, bin_count, statistic = target.row, target.bin, target.bin_count, target.statistic
    label, size, counts, value, total = state.label, state.size, state.counts, state.value, state.total
    for slot in range(size.size):
        state.slot_of[slot] = slot
        state.id_of[slot] = slot
    for i in range(label.size):
        slot = label[i]
        size[slot] += 1
        for e in range(row[i], row[i + 1]):
            counts[bins[e], slot] += bin_count[e]
        for s in range(total.shape[1]):
            total[slot, s] += statistic[i, s]
    for slot in range(state.counters[N_CLUSTERS]):
        for d in range(counts.shape[0]):
            value[d, slot] = bin_value(tables, d, counts[d, slot])
        refresh(target, state, slot)


@internal
def change_of_sizes(state, slots, n_old, n_new):
    """Change of log g if n_new clusters from slot k on replace those in slots[:n_old]; one holds the sites of all.

    0: a prior with tables is all in `log_v` and `log_w`. `exchangeable.py` replaces this.
    """
    return 0.0


@internal
def slot_log_marginal(state, slot):
    """log p(y) of the sites of a slot, up to what does not depend on the partition."""
    log_p = state.dense_value[slot]
    for d in range(state.value.shape[0]):
        log_p += state.value[d, slot]
    return log_p


@internal
def merged_log_marginal(target, state, a, b):
    """log p(y) of the sites of slots a and b together, up to what does not depend on the partition."""
    tables = target.table, target.table_start, target.bin_prior
    counts, total, joined = state.counts, state.total, state.joined
    log_p = 0.0
    for d in range(counts.shape[0]):
        log_p += bin_value(tables, d, counts[d, a] + counts[d, b])
    for s in range(joined.size):
        joined[s] = total[a, s] + total[b, s]
    return log_p + dense_log_marginal(target, joined, state.work)


@internal
def change_if_replaced(target, state, slots, n_old, n_new):
    """Change of log posterior, but for couplings, if n_new clusters from slot k on replace those in slots[:n_old].

    Where regions have kinds, `kinds.py` adds that of the likelihood.
    """
    log_v, log_w, size, k = target.log_v, target.log_w, state.size, state.counters[N_CLUSTERS]
    change = log_v[k - n_old + n_new] - log_v[k] + change_of_sizes(state, slots, n_old, n_new)
    for s in range(n_old):
        change -= log_w[size[slots[s]]] + (slot_log_marginal(state, slots[s]) if not has_kinds(target) else 0.0)
    for s in range(n_new):
        change += log_w[size[k + s]] + (slot_log_marginal(state, k + s) if not has_kinds(target) else 0.0)
    return change


@internal
def change_if_merged(target, state, a, b):
    """As `change_if_replaced`, if slots a and b merge."""
    log_v, log_w, size, k = target.log_v, target.log_w, state.size, state.counters[N_CLUSTERS]
    change = log_v[k - 1] - log_v[k] + change_of_sizes(state, (a, b, b), 2, 1)
    change += log_w[size[a] + size[b]] - log_w[size[a]] - log_w[size[b]]
    if has_kinds(target):
        return change
    return change + merged_log_marginal(target, state, a, b) - slot_log_marginal(state, a) - slot_log_marginal(state, b)


@internal
def discard_clusters(state, first, n):
    """Empty n slots from `first` on, in which clusters were proposed."""
    for s in range(n):
        clear_slot(state, first + s)


@internal
def replace_clusters(state, side, slots, n_old, n_new, n_sites, change):
    """Accept n_new clusters from slot k on in place of those in slots[:n_old], whose sites are member[:n_sites].

    side[i] is s + 1 where site i goes to slot k + s.
    """
    counters, label, member, slot_of, id_of = state.counters, state.label, state.member, state.slot_of, state.id_of
    k = counters[N_CLUSTERS]
    gone = id_of[slots[0]], id_of[slots[1]], id_of[slots[2]]
    for q in range(n_sites):
        label[member[q]] = id_of[k + side[member[q]] - 1]
    counters[N_CLUSTERS] = k + n_new
    state.scalars[LOG_POSTERIOR] += change
    for s in range(n_old):
        slot = np.int64(slot_of[gone[s]])
        clear_slot(state, slot)
        drop_slot(state, slot)


@internal
def merge_clusters(target, state, a, b, change):
    """Accept that the sites of slot b, which with those of slot a begin `member`, go to slot a."""
    tables = target.table, target.table_start, target.bin_prior
    size, counts, value, total = state.size, state.counts, state.value, state.total
    size[a] += size[b]
    for q in range(size[a]):
        state.label[state.member[q]] = state.id_of[a]
    for d in range(counts.shape[0]):
        counts[d, a] += counts[d, b]
        value[d, a] = bin_value(tables, d, counts[d, a])
    for s in range(total.shape[1]):
        total[a, s] += total[b, s]
    refresh(target, state, a)
    state.scalars[LOG_POSTERIOR] += change
    clear_slot(state, b)
    drop_slot(state, b)
