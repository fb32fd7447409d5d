"""The statistics of clusters, as groups of sites come and go, and as clusters replace others.

Clusters that are to replace others are proposed in the empty slots from k on, weighed, then accepted or discarded.
"""

import cython

from spinseg.sampler.kernels.likelihood import bin_value, dense_log_marginal
from spinseg.sampler.kernels.state import LOG_POSTERIOR, N_CLUSTERS, Index, Real, State, Target, at, has_kinds


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def pool(target: Target, state: State, begin: Index, end: Index) -> Index:
    """Sum the statistics of the sites member[begin:end] into the pool; returns how many bins they occupy."""
    n_bins: Index = 0
    if end - begin == 1:
        i = state.member[begin]
        for e in range(target.row[i], target.row[i + 1]):
            state.pool_bin[n_bins] = target.bin[e]
            state.pool_count[n_bins] = target.bin_count[e]
            n_bins += 1
    else:
        for q in range(begin, end):
            i = state.member[q]
            for e in range(target.row[i], target.row[i + 1]):
                d = target.bin[e]
                state.pool_bin[n_bins] = d  # stays only if the bin is new: no branch to mispredict
                n_bins += state.pooled[d] == 0
                state.pooled[d] += target.bin_count[e]
        for t in range(n_bins):
            state.pool_count[t] = state.pooled[state.pool_bin[t]]
            state.pooled[state.pool_bin[t]] = 0
    for s in range(state.pool_total.shape[0]):
        state.pool_total[s] = target.statistic[state.member[begin], s]
    for q in range(begin + 1, end):
        for s in range(state.pool_total.shape[0]):
            state.pool_total[s] += target.statistic[state.member[q], s]
    return n_bins


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def bins_log_predictive(target: Target, state: State, slot: Index, n_bins: Index, sign: Index) -> Real:
    """Change of the histograms' log marginal in a slot if the pooled sites join it, or leave it where sign is -1."""
    change: Real = 0.0
    for t in range(n_bins):
        d = state.pool_bin[t]
        change += bin_value(target, d, state.counts[d, slot] + sign * state.pool_count[t]) - state.value[d, slot]
    return change


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def likelihood_at(target: Target, state: State, slot: Index, n_bins: Index, sign: Index) -> Real:
    """log p(y_C | y_A): C the pooled sites, A those of the slot, without C where sign is -1."""
    log_p = bins_log_predictive(target, state, slot, n_bins, sign)
    if target.block.shape[0] > 0:
        for s in range(state.joined.shape[0]):
            state.joined[s] = state.total[slot, s] + sign * state.pool_total[s]
        log_p += dense_log_marginal(target, state) - state.dense_value[slot]
    return sign * log_p


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def add_pooled(target: Target, state: State, slot: Index, n_members: Index, n_bins: Index, sign: Index) -> cython.void:
    """As `update_slot`, but for the log marginal of the blocks."""
    state.size[slot] += sign * n_members
    for t in range(n_bins):
        d = state.pool_bin[t]
        state.counts[d, slot] += sign * state.pool_count[t]
        state.value[d, slot] = bin_value(target, d, state.counts[d, slot])
    for s in range(state.pool_total.shape[0]):  # an emptied cluster keeps no rounding error
        state.total[slot, s] = state.total[slot, s] + sign * state.pool_total[s] if state.size[slot] > 0 else 0.0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def refresh(target: Target, state: State, slot: Index) -> cython.void:
    """Bring the log marginal of the blocks of a slot up to date."""
    if target.block.shape[0] > 0:
        for s in range(state.joined.shape[0]):
            state.joined[s] = state.total[slot, s]
        state.dense_value[slot] = dense_log_marginal(target, state)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def update_slot(target: Target, state: State, slot: Index, n_members: Index, n_bins: Index, sign: Index) -> cython.void:
    """Add the pooled sites to the statistics of `slot` (sign 1), or remove them (sign -1)."""
    add_pooled(target, state, slot, n_members, n_bins, sign)
    refresh(target, state, slot)


@cython.ccall
@cython.nogil
@cython.exceptval(check=False)
def clear_slot(state: State, slot: Index) -> cython.void:
    """Empty a slot."""
    state.size[slot] = 0
    state.dense_value[slot] = 0.0
    for d in range(state.counts.shape[0]):
        state.counts[d, slot] = 0
        state.value[d, slot] = 0.0
    for s in range(state.total.shape[1]):
        state.total[slot, s] = 0.0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def drop_slot(state: State, slot: Index) -> cython.void:
    """Remove the empty `slot` by moving the last occupied one into its place."""
    last = state.counters[N_CLUSTERS] - 1
    state.counters[N_CLUSTERS] = last
    if slot == last:
        return
    gone, moved = state.id_of[slot], state.id_of[last]
    state.id_of[slot], state.id_of[last] = moved, gone
    state.slot_of[moved], state.slot_of[gone] = slot, last
    state.size[slot] = state.size[last]
    state.dense_value[slot] = state.dense_value[last]
    for d in range(state.counts.shape[0]):
        state.counts[d, slot] = state.counts[d, last]
        state.value[d, slot] = state.value[d, last]
    for s in range(state.total.shape[1]):
        state.total[slot, s] = state.total[last, s]
    clear_slot(state, last)


@cython.ccall
@cython.nogil
@cython.exceptval(check=False)
def rebuild(target: Target, state: State) -> cython.void:
    """Fill zeroed tables from `label`, which must use the ids 0..k-1 with k in `counters`."""
    for slot in range(state.size.shape[0]):
        state.slot_of[slot] = slot
        state.id_of[slot] = slot
    for i in range(state.label.shape[0]):
        slot = state.label[i]
        state.size[slot] += 1
        for e in range(target.row[i], target.row[i + 1]):
            state.counts[target.bin[e], slot] += target.bin_count[e]
        for s in range(state.total.shape[1]):
            state.total[slot, s] += target.statistic[i, s]
    for slot in range(state.counters[N_CLUSTERS]):
        for d in range(state.counts.shape[0]):
            state.value[d, slot] = bin_value(target, d, state.counts[d, slot])
        refresh(target, state, slot)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def change_of_sizes(
    target: Target, state: State, slots: tuple[Index, Index, Index], n_old: Index, n_new: Index
) -> Real:
    """Change of log g if n_new clusters from slot k on replace those in slots[:n_old]; one holds the sites of all.

    0 where the prior has tables: it is all in `log_v` and `log_w`.
    """
    change: Real = 0.0
    if target.log_g is not None:
        with cython.gil:
            change = target.log_g.change_of_sizes(state, slots, n_old, n_new)
    return change


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def slot_log_marginal(state: State, slot: Index) -> Real:
    """log p(y) of the sites of a slot, up to what does not depend on the partition."""
    log_p: Real = state.dense_value[slot]
    for d in range(state.value.shape[0]):
        log_p += state.value[d, slot]
    return log_p


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def merged_log_marginal(target: Target, state: State, a: Index, b: Index) -> Real:
    """log p(y) of the sites of slots a and b together, up to what does not depend on the partition."""
    log_p: Real = 0.0
    for d in range(state.counts.shape[0]):
        log_p += bin_value(target, d, state.counts[d, a] + state.counts[d, b])
    for s in range(state.joined.shape[0]):
        state.joined[s] = state.total[a, s] + state.total[b, s]
    return log_p + dense_log_marginal(target, state)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def change_if_replaced(
    target: Target, state: State, slots: tuple[Index, Index, Index], n_old: Index, n_new: Index
) -> Real:
    """Change of log posterior, but for couplings, if n_new clusters from slot k on replace those in slots[:n_old].

    Where regions have kinds, `kinds.py` adds that of the likelihood.
    """
    k = state.counters[N_CLUSTERS]
    change = target.log_v[k - n_old + n_new] - target.log_v[k] + change_of_sizes(target, state, slots, n_old, n_new)
    for s in range(n_old):
        change -= target.log_w[state.size[at(slots, s)]] + (
            slot_log_marginal(state, at(slots, s)) if not has_kinds(target) else 0.0
        )
    for s in range(n_new):
        change += target.log_w[state.size[k + s]] + (slot_log_marginal(state, k + s) if not has_kinds(target) else 0.0)
    return change


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def change_if_merged(target: Target, state: State, a: Index, b: Index) -> Real:
    """As `change_if_replaced`, if slots a and b merge."""
    k = state.counters[N_CLUSTERS]
    change = target.log_v[k - 1] - target.log_v[k] + change_of_sizes(target, state, (a, b, b), 2, 1)
    change += target.log_w[state.size[a] + state.size[b]] - target.log_w[state.size[a]] - target.log_w[state.size[b]]
    if has_kinds(target):
        return change
    return change + merged_log_marginal(target, state, a, b) - slot_log_marginal(state, a) - slot_log_marginal(state, b)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def discard_clusters(state: State, first: Index, n: Index) -> cython.void:
    """Empty n slots from `first` on, in which clusters were proposed."""
    for s in range(n):
        clear_slot(state, first + s)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def replace_clusters(
    state: State,
    side: cython.uint[::1],
    slots: tuple[Index, Index, Index],
    n_old: Index,
    n_new: Index,
    n_sites: Index,
    change: Real,
) -> cython.void:
    """Accept n_new clusters from slot k on in place of those in slots[:n_old], whose sites are member[:n_sites].

    side[i] is s + 1 where site i goes to slot k + s.
    """
    k = state.counters[N_CLUSTERS]
    gone_0, gone_1, gone_2 = state.id_of[slots[0]], state.id_of[slots[1]], state.id_of[slots[2]]
    for q in range(n_sites):
        state.label[state.member[q]] = state.id_of[k + side[state.member[q]] - 1]
    state.counters[N_CLUSTERS] = k + n_new
    state.scalars[LOG_POSTERIOR] += change
    for s in range(n_old):
        slot = state.slot_of[at((gone_0, gone_1, gone_2), s)]
        clear_slot(state, slot)
        drop_slot(state, slot)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def merge_clusters(target: Target, state: State, a: Index, b: Index, change: Real) -> cython.void:
    """Accept that the sites of slot b, which with those of slot a begin `member`, go to slot a."""
    state.size[a] += state.size[b]
    for q in range(state.size[a]):
        state.label[state.member[q]] = state.id_of[a]
    for d in range(state.counts.shape[0]):
        state.counts[d, a] += state.counts[d, b]
        state.value[d, a] = bin_value(target, d, state.counts[d, a])
    for s in range(state.total.shape[1]):
        state.total[a, s] += state.total[b, s]
    refresh(target, state, a)
    state.scalars[LOG_POSTERIOR] += change
    clear_slot(state, b)
    drop_slot(state, b)
