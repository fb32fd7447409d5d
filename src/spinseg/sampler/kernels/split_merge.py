"""Split and merge by sequential allocation (Dahl 2005), clusters picked uniformly.

A split picks a cluster and two of its sites, a merge two clusters and a site of each. The two sites found A and B; the
others are allocated to one or the other in random order, with probabilities proportional to the posterior so far. The
proposal is built in the empty slots k and k + 1.
"""

import math

import numpy as np

from spinseg._compiled import inlined, internal
from spinseg.sampler.kernels.clusters import clear_slot, drop_slot, pool, refresh, update_slot
from spinseg.sampler.kernels.likelihood import bin_value, dense_log_marginal
from spinseg.sampler.kernels.size_prior import change_of_merge, change_of_split
from spinseg.sampler.kernels.state import (
    ACCEPTED,
    DONE,
    FORCED,
    FREE,
    FULL,
    LOG_POSTERIOR,
    MERGE,
    N_CLUSTERS,
    NONE,
    PROPOSED,
    SPLIT,
    SPLITS_LEFT,
    STOP,
    STOPPED,
    TWO,
)
from spinseg.sampler.kernels.sweep import likelihood_at


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
def allocate(target, state, n_sites, n_seeds, base, forced, floor, inv_temperature, rng):
    """Allocate member[:n_sites] in turn to the slots from `base`, founded by the first n_seeds; returns log q.

    FREE draws each choice. FORCED repeats the present clusters of the seeds, and returns early when log q falls below
    `floor`. The side of a site, s + 1 for slot base + s, is written to `spin`.
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
        if q >= n_seeds:
            for s in range(n_seeds):
                m = size[base + s]
                log_weight[s] = (
                    proposal_log_w[m + 1] - proposal_log_w[m] + likelihood_at(target, state, base + s, n_bins, 1)
                )
            for h in range(start[u], start[u + 1]):
                if spin[neighbor[h]] > 0:
                    log_weight[spin[neighbor[h]] - 1] += beta[h]
            top, total = -np.inf, 0.0
            for s in range(n_seeds):
                top = max(top, log_weight[s])
            for s in range(n_seeds):
                total += math.exp(inv_temperature * (log_weight[s] - top))
            side = 0
            if forced == FORCED:
                while label[member[side]] != label[u]:
                    side += 1
            else:
                point = rng.random() * total - math.exp(inv_temperature * (log_weight[0] - top))
                while point >= 0.0 and side < n_seeds - 1:
                    side += 1
                    point -= math.exp(inv_temperature * (log_weight[side] - top))
            log_q += inv_temperature * (log_weight[side] - top) - math.log(total)
            if forced == FORCED and log_q < floor:
                return log_q
        spin[u] = side + 1
        update_slot(target, state, base + side, 1, n_bins, 1)
    return log_q


@internal
def slot_log_marginal(state, slot):
    """log p(y) of the sites of a slot, up to what does not depend on the partition."""
    log_p = state.dense_value[slot]
    for d in range(state.value.shape[0]):
        log_p += state.value[d, slot]
    return log_p


@internal
def log_selection(k_merged, m_a, m_b):
    """Log ratio of the probabilities of picking the split with its two sites and of picking the merge."""
    m = m_a + m_b
    return math.log(k_merged + 1.0) + math.log(m_a * 1.0 * m_b) - math.log(m * (m - 1.0))


@internal
def propose_split(target, state, inv_temperature, rng):
    """Propose a split of a random cluster; returns its slot, the change of log posterior, the log proposal ratio."""
    log_v, log_w, start, neighbor, beta = target.log_v, target.log_w, target.start, target.neighbor, target.beta
    size, spin, member = state.size, state.spin, state.member
    k = state.counters[N_CLUSTERS]
    slot = int(rng.random() * k)
    m = np.int64(size[slot])
    if m < 2:
        return -1, 0.0, 0.0
    gather_sites(state, slot, NONE)
    shuffle(member, NONE, m, rng)
    log_q = allocate(target, state, m, TWO, k, FREE, 0.0, inv_temperature, rng)
    m_a, m_b = size[k], size[k + 1]
    change = slot_log_marginal(state, k) + slot_log_marginal(state, k + 1) - slot_log_marginal(state, slot)
    change += log_w[m_a] + log_w[m_b] - log_w[m] + log_v[k + 1] - log_v[k]
    for q in range(m):
        u = member[q]
        if spin[u] == 1:
            for h in range(start[u], start[u + 1]):
                change -= beta[h] * (spin[neighbor[h]] == 2)
    return slot, change, log_q + log_selection(k, m_a, m_b)


@internal
def finish_split(state, slot, change, accepted):
    """Replace `slot` by the two proposed clusters, or discard the proposal."""
    counters, spin, member, label = state.counters, state.spin, state.member, state.label
    k = counters[N_CLUSTERS]
    if not accepted:
        clear_slot(state, k)
        clear_slot(state, k + 1)
        return
    id_a, id_b = state.id_of[k], state.id_of[k + 1]
    for q in range(state.size[slot]):
        label[member[q]] = id_a if spin[member[q]] == 1 else id_b
    counters[N_CLUSTERS] = k + 2
    state.scalars[LOG_POSTERIOR] += change
    clear_slot(state, slot)
    drop_slot(state, slot)


@internal
def change_if_merged(target, state, a, b):
    """The change of log posterior if slots a and b merge, but for the couplings between them."""
    log_v, log_w = target.log_v, target.log_w
    table, table_start, bin_prior = target.table, target.table_start, target.bin_prior
    counts, total, joined, size, k = state.counts, state.total, state.joined, state.size, state.counters[N_CLUSTERS]
    change = -slot_log_marginal(state, a) - slot_log_marginal(state, b)
    change += log_w[size[a] + size[b]] - log_w[size[a]] - log_w[size[b]] + log_v[k - 1] - log_v[k]
    for d in range(counts.shape[0]):
        change += bin_value(table, table_start, bin_prior, d, counts[d, a] + counts[d, b])
    for s in range(joined.size):
        joined[s] = total[a, s] + total[b, s]
    return change + dense_log_marginal(target.block, target.parameter, joined, state.work)


@internal
def propose_merge(target, state, rng):
    """Pick two clusters; returns their slots, the change of log posterior if merged, and the log selection ratio."""
    start, neighbor, beta, label, size = target.start, target.neighbor, target.beta, state.label, state.size
    k = state.counters[N_CLUSTERS]
    if k < 2:
        return -1, -1, 0.0, 0.0
    a, b = int(rng.random() * k), int(rng.random() * (k - 1))
    b += b >= a
    change = change_if_merged(target, state, a, b)
    label_a, label_b = state.id_of[a], state.id_of[b]
    for u in range(label.size):
        if label[u] == label_a:
            for h in range(start[u], start[u + 1]):
                change += beta[h] * (label[neighbor[h]] == label_b)
    return a, b, change, log_selection(k - 1, size[a], size[b])


@internal
def log_q_reverse_split(target, state, a, b, floor, inv_temperature, rng):
    """Log q of the reverse proposal, a split into the clusters of slots a and b.

    Once it falls below `floor`, where the merge is rejected anyway, the search stops and an upper bound is returned.
    """
    member, k = state.member, state.counters[N_CLUSTERS]
    m_a = gather_sites(state, a, NONE)
    m = gather_sites(state, b, m_a)
    shuffle(member, NONE, m_a, rng)
    r = m_a + int(rng.random() * (m - m_a))
    member[1], member[r] = member[r], member[1]
    shuffle(member, TWO, m, rng)
    log_q = allocate(target, state, m, TWO, k, FORCED, floor, inv_temperature, rng)
    clear_slot(state, k)
    clear_slot(state, k + 1)
    return log_q


@internal
def merge_slots(target, state, a, b, change):
    """Add the statistics of slot b, whose sites have the label of slot a already, to those of slot a."""
    table, table_start, bin_prior = target.table, target.table_start, target.bin_prior
    counts, value, total = state.counts, state.value, state.total
    state.size[a] += state.size[b]
    for d in range(counts.shape[0]):
        counts[d, a] += counts[d, b]
        value[d, a] = bin_value(table, table_start, bin_prior, d, counts[d, a])
    for s in range(total.shape[1]):
        total[a, s] += total[b, s]
    refresh(target, state, a)
    state.scalars[LOG_POSTERIOR] += change
    clear_slot(state, b)
    drop_slot(state, b)


@internal
def finish_merge(target, state, a, b, change):
    """Put the sites of slot b into slot a."""
    label, label_a, label_b = state.label, state.id_of[a], state.id_of[b]
    for i in range(label.size):
        if label[i] == label_b:
            label[i] = label_a
    merge_slots(target, state, a, b, change)


@inlined
def split_or_merge(target, state, move_counts, inv_temperature, rng):
    """Try one split or one merge, each with probability one half."""
    log_u = math.log(1.0 - rng.random())
    if rng.random() < 0.5:
        move_counts[SPLIT, PROPOSED] += 1
        slot, change, log_proposal_ratio = propose_split(target, state, inv_temperature, rng)
        if slot >= 0:
            change += change_of_split(state, slot)
            accepted = log_u < inv_temperature * change - log_proposal_ratio
            finish_split(state, slot, change, accepted)
            move_counts[SPLIT, ACCEPTED] += accepted
    else:
        move_counts[MERGE, PROPOSED] += 1
        a, b, change, log_selection_ratio = propose_merge(target, state, rng)
        if a >= 0:
            change += change_of_merge(state, a, b)
            # log q is at most 0: most merges are rejected before it is computed, the rest as soon as it is too low.
            floor = log_u - inv_temperature * change - log_selection_ratio
            if floor < 0.0 and floor < log_q_reverse_split(target, state, a, b, floor, inv_temperature, rng):
                finish_merge(target, state, a, b, change)
                move_counts[MERGE, ACCEPTED] += 1


@inlined
def split_merge(target, state, move_counts, inv_temperature, rng):
    """Make the remaining attempts of this iteration to split or merge; DONE, FULL or STOPPED."""
    while state.counters[SPLITS_LEFT] > 0:
        if state.counters[N_CLUSTERS] + 3 >= state.size.size:
            return FULL
        if state.counters[STOP] != 0:
            return STOPPED
        split_or_merge(target, state, move_counts, inv_temperature, rng)
        state.counters[SPLITS_LEFT] -= 1
    return DONE
