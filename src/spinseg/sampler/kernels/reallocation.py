"""Split, merge and regroup clusters by sequential allocation (Dahl 2005).

A split picks a cluster and two of its sites, a merge two clusters and a site of each. A regrouping draws three anchor
sites, whatever the partition is: if the clusters of the first two differ, and the third lies in one of them, these two
become three; if it lies elsewhere, three become two. Each picked site founds a cluster; the other sites are allocated
in random order, with probabilities proportional to the posterior so far.
"""

import math

import numpy as np

from spinseg._compiled import internal
from spinseg.sampler.kernels.clusters import (
    change_if_merged,
    change_if_replaced,
    discard_clusters,
    likelihood_at,
    merge_clusters,
    pool,
    replace_clusters,
    update_slot,
)
from spinseg.sampler.kernels.state import FORCED, FREE, N_CLUSTERS


@internal
def gather_sites(state, slot, n):
    """Append the sites of `slot` to member[:n]; returns how many there are then."""
    cluster = state.id_of[slot]
    for i in range(state.label.size):
        if state.label[i] == cluster:
            state.member[n] = i
            n += 1
    return n


@internal
def shuffle(member, start, end, rng):
    """Put member[start:end] into random order."""
    for q in range(end - 1, start, -1):
        r = start + int(rng.random() * (q + 1 - start))
        member[q], member[r] = member[r], member[q]


@internal
def order_from(member, founders, n_founders, n_sites, rng):
    """Put the founders first in member[:n_sites], and the others behind them in random order."""
    for s in range(n_founders):
        for q in range(s, n_sites):
            if member[q] == founders[s]:
                member[q] = member[s]
                member[s] = founders[s]
                break
    shuffle(member, n_founders, n_sites, rng)


@internal
def allocate(target, state, n_sites, n_founders, base, forced, floor, inv_temperature, rng):
    """Allocate member[:n_sites] in turn to the slots from `base`, founded by the first n_founders; returns log q.

    FREE draws each choice. FORCED repeats the present clusters of the founders, and returns early when log q falls
    below `floor`. The side of a site, s + 1 for slot base + s, is written to `spin`.
    """
    start, neighbor, beta, proposal_log_w = target.start, target.neighbor, target.beta, target.proposal_log_w
    size, spin, member, label, log_weight = state.size, state.spin, state.member, state.label, state.log_weight
    log_q = 0.0
    for i in range(spin.size):
        spin[i] = 0
    for q in range(n_sites):
        u = member[q]
        n_bins = pool(target, state, member[q : q + 1])
        side = q
        if q >= n_founders:
            for s in range(n_founders):
                m = size[base + s]
                log_weight[s] = (
                    proposal_log_w[m + 1] - proposal_log_w[m] + likelihood_at(target, state, base + s, n_bins, 1)
                )
            for h in range(start[u], start[u + 1]):
                if spin[neighbor[h]] > 0:
                    log_weight[spin[neighbor[h]] - 1] += beta[h]
            top, total = -np.inf, 0.0
            for s in range(n_founders):
                top = max(top, log_weight[s])
            for s in range(n_founders):
                total += math.exp(inv_temperature * (log_weight[s] - top))
            side = 0
            if forced == FORCED:
                while label[member[side]] != label[u]:
                    side += 1
            else:
                point = rng.random() * total - math.exp(inv_temperature * (log_weight[0] - top))
                while point >= 0.0 and side < n_founders - 1:
                    side += 1
                    point -= math.exp(inv_temperature * (log_weight[side] - top))
            log_q += inv_temperature * (log_weight[side] - top) - math.log(total)
            if forced == FORCED and log_q < floor:
                return log_q
        spin[u] = side + 1
        update_slot(target, state, base + side, 1, n_bins, 1)
    return log_q


@internal
def change_if_reallocated(target, state, n_sites):
    """Change of the couplings if member[:n_sites] take their sides in `spin`, which are copied to `first`."""
    start, upper, neighbor, beta = target.start, target.upper, target.neighbor, target.beta
    label, spin, member, first = state.label, state.spin, state.member, state.first
    change = 0.0
    for q in range(n_sites):
        u = member[q]
        first[u] = spin[u]
        for h in range(upper[u], start[u + 1]):
            j = neighbor[h]
            if spin[j] > 0:
                change += beta[h] * (1.0 * (spin[u] == spin[j]) - 1.0 * (label[u] == label[j]))
    return change


@internal
def propose(target, state, slots, n_old, n_new, n_sites, inv_temperature, rng):
    """Allocate member[:n_sites], the sites of slots[:n_old], to n_new clusters; returns change of log posterior, log q.

    The side of each site is left in `first`, since the reverse allocation overwrites `spin`.
    """
    k = state.counters[N_CLUSTERS]
    log_q = allocate(target, state, n_sites, n_new, k, FREE, 0.0, inv_temperature, rng)
    change = change_if_replaced(target, state, slots, n_old, n_new)
    return change + change_if_reallocated(target, state, n_sites), log_q


@internal
def finish(state, slots, n_old, n_new, n_sites, change, accepted):
    """Accept what was proposed, or discard it."""
    if accepted:
        replace_clusters(state, state.first, slots, n_old, n_new, n_sites, change)
    else:
        discard_clusters(state, state.counters[N_CLUSTERS], n_new)


@internal
def log_q_of_present(target, state, n_sites, n_old, base, floor, inv_temperature, rng):
    """Log q of allocating member[:n_sites] to their n_old present clusters; an upper bound once it is below `floor`."""
    log_q = allocate(target, state, n_sites, n_old, base, FORCED, floor, inv_temperature, rng)
    discard_clusters(state, base, n_old)
    return log_q


@internal
def log_selection(k_merged, m_a, m_b):
    """Log ratio of the probabilities of picking the split with its two sites and of picking the merge."""
    m = m_a + m_b
    return math.log(k_merged + 1.0) + math.log(m_a * 1.0 * m_b) - math.log(m * (m - 1.0))


@internal
def split(target, state, log_u, inv_temperature, rng):
    """Try to split a random cluster; returns whether it was."""
    k = state.counters[N_CLUSTERS]
    slot = int(rng.random() * k)
    m = np.int64(state.size[slot])
    if m < 2:
        return False
    gather_sites(state, slot, 0)
    shuffle(state.member, 0, m, rng)
    change, log_q = propose(target, state, (slot, slot, slot), 1, 2, m, inv_temperature, rng)
    log_ratio = log_q + log_selection(k, state.size[k], state.size[k + 1])
    accepted = log_u < inv_temperature * change - log_ratio
    finish(state, (slot, slot, slot), 1, 2, m, change, accepted)
    return accepted


@internal
def couplings_between_slots(target, state, a, b):
    """The summed couplings between the sites of slots a and b."""
    start, neighbor, beta, label = target.start, target.neighbor, target.beta, state.label
    own, other, between = state.id_of[a], state.id_of[b], 0.0
    for u in range(label.size):
        if label[u] == own:
            for h in range(start[u], start[u + 1]):
                between += beta[h] * (label[neighbor[h]] == other)
    return between


@internal
def order_pair(state, a, b, rng):
    """Put the sites of slots a and b into random order in `member`, after one of each; returns how many there are."""
    member = state.member
    m_a = gather_sites(state, a, 0)
    m = gather_sites(state, b, m_a)
    shuffle(member, 0, m_a, rng)
    r = m_a + int(rng.random() * (m - m_a))
    member[1], member[r] = member[r], member[1]
    shuffle(member, 2, m, rng)
    return m


@internal
def merge(target, state, log_u, inv_temperature, rng):
    """Try to merge two random clusters; returns whether they were."""
    k, size = state.counters[N_CLUSTERS], state.size
    if k < 2:
        return False
    a, b = int(rng.random() * k), int(rng.random() * (k - 1))
    b += b >= a
    change = change_if_merged(target, state, a, b) + couplings_between_slots(target, state, a, b)
    # log q is at most 0: most merges are rejected before it is computed, the rest as soon as it is too low.
    floor = log_u - inv_temperature * change - log_selection(k - 1, size[a], size[b])
    if not floor < 0.0:
        return False
    m = order_pair(state, a, b, rng)
    accepted = floor < log_q_of_present(target, state, m, 2, k, floor, inv_temperature, rng)
    if accepted:
        merge_clusters(target, state, a, b, change)
    return accepted


@internal
def split_or_merge(target, state, plan, rng):
    """Try a split (kind 0) or a merge (1), each with probability 0.5; returns which, and whether it was accepted."""
    log_u = math.log(1.0 - rng.random())
    if rng.random() < 0.5:
        return 0, split(target, state, log_u, plan.inv_temperature, rng)
    return 1, merge(target, state, log_u, plan.inv_temperature, rng)


@internal
def draw_anchors(similar, n, rng):
    """Three sites: one anywhere; each other one anywhere with probability 0.3, else among those like the first."""
    a = int(rng.random() * n)
    b, c = int(rng.random() * n), int(rng.random() * n)
    if similar.shape[1] > 0 and rng.random() < 0.7:
        b = np.int64(similar[a, int(rng.random() * similar.shape[1])])
    if similar.shape[1] > 0 and rng.random() < 0.7:
        c = np.int64(similar[a, int(rng.random() * similar.shape[1])])
    return a, b, c


@internal
def regroup(target, state, plan, rng):
    """Try to regroup two clusters into three, or three into two; returns 0, and whether that was accepted."""
    label, slot_of, inv_temperature = state.label, state.slot_of, plan.inv_temperature
    log_u = math.log(1.0 - rng.random())
    anchors = draw_anchors(target.similar, label.size, rng)
    a, b, c = anchors
    if label[a] == label[b] or a == c or b == c:
        return 0, False
    n_old = 2 if label[c] == label[a] or label[c] == label[b] else 3
    n_new, n_sites = 5 - n_old, 0
    slots = np.int64(slot_of[label[a]]), np.int64(slot_of[label[b]]), np.int64(slot_of[label[c]])
    for s in range(n_old):
        n_sites = gather_sites(state, slots[s], n_sites)
    order_from(state.member, anchors, n_new, n_sites, rng)
    change, log_q = propose(target, state, slots, n_old, n_new, n_sites, inv_temperature, rng)
    floor, accepted = log_u - inv_temperature * change + log_q, False
    if floor < 0.0:
        behind = state.counters[N_CLUSTERS] + n_new
        order_from(state.member, anchors, n_old, n_sites, rng)
        accepted = floor < log_q_of_present(target, state, n_sites, n_old, behind, floor, inv_temperature, rng)
    finish(state, slots, n_old, n_new, n_sites, change, accepted)
    return 0, accepted
