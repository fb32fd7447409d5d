"""Clusters that replace others: proposed in the empty slots from k on, weighed, then accepted or discarded."""

import numpy as np

from spinseg._compiled import internal
from spinseg.sampler.kernels.clusters import clear_slot, drop_slot, refresh
from spinseg.sampler.kernels.likelihood import bin_value, dense_log_marginal
from spinseg.sampler.kernels.state import LOG_POSTERIOR, N_CLUSTERS, ONE, TWO


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
    counts, total, joined = state.counts, state.total, state.joined
    log_p = 0.0
    for d in range(counts.shape[0]):
        log_p += bin_value(target, d, counts[d, a] + counts[d, b])
    for s in range(joined.size):
        joined[s] = total[a, s] + total[b, s]
    return log_p + dense_log_marginal(target, joined, state.work)


@internal
def change_if_replaced(target, state, slots, n_old, n_new):
    """Change of log posterior, but for couplings, if n_new clusters from slot k on replace those in slots[:n_old]."""
    log_v, log_w, size, k = target.log_v, target.log_w, state.size, state.counters[N_CLUSTERS]
    change = log_v[k - n_old + n_new] - log_v[k] + change_of_sizes(state, slots, n_old, n_new)
    for s in range(n_old):
        change -= slot_log_marginal(state, slots[s]) + log_w[size[slots[s]]]
    for s in range(n_new):
        change += slot_log_marginal(state, k + s) + log_w[size[k + s]]
    return change


@internal
def change_if_merged(target, state, a, b):
    """Change of log posterior, but for couplings, if slots a and b merge."""
    log_v, log_w, size, k = target.log_v, target.log_w, state.size, state.counters[N_CLUSTERS]
    change = log_v[k - 1] - log_v[k] + change_of_sizes(state, (a, b, b), TWO, ONE)
    change += log_w[size[a] + size[b]] - log_w[size[a]] - log_w[size[b]]
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
    size, counts, value, total = state.size, state.counts, state.value, state.total
    size[a] += size[b]
    for q in range(size[a]):
        state.label[state.member[q]] = state.id_of[a]
    for d in range(counts.shape[0]):
        counts[d, a] += counts[d, b]
        value[d, a] = bin_value(target, d, counts[d, a])
    for s in range(total.shape[1]):
        total[a, s] += total[b, s]
    refresh(target, state, a)
    state.scalars[LOG_POSTERIOR] += change
    clear_slot(state, b)
    drop_slot(state, b)
