"""Split and merge by sequential allocation (Dahl 2005), clusters picked uniformly.

A split picks a cluster and two of its sites, a merge two clusters and a site of each. The two sites found A and B;
the others join one or the other in random order. The proposal is built in the empty slots k and k + 1.
"""

import math

import numpy as np

from spinseg._compiled import inlined, internal
from spinseg.inference.kernels.clusters import clear_slot, drop_slot, pool, shift
from spinseg.inference.kernels.likelihood import bin_value, dense_log_marginal
from spinseg.inference.kernels.state import (
    DONE,
    FORCED,
    FREE,
    FULL,
    LOG_POSTERIOR,
    MERGES_MADE,
    MERGES_TRIED,
    N_CLUSTERS,
    NONE,
    SPLITS_LEFT,
    SPLITS_MADE,
    SPLITS_TRIED,
    STOP,
    STOPPED,
    TWO,
)
from spinseg.inference.kernels.sweep import likelihood_at


@internal
def gather_sites(state, slot, n):
    """Append the sites of `slot` to member[:n]; their number together."""
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
    """Deal member[:n_sites] out to the slots from `base`, founded by the first n_seeds; log probability of the choices.

    FORCED repeats the division between the clusters of the seeds, and gives up when its log probability is below
    `floor`. A site that was dealt to slot base + s has spin s + 1.
    """
    start, neighbour, beta, guide = target.start, target.neighbour, target.beta, target.guide
    size, spin, member, label, gain = state.size, state.spin, state.member, state.label, state.gain
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
                gain[s] = guide[m + 1] - guide[m] + likelihood_at(target, state, base + s, n_bins, 1)
            for h in range(start[u], start[u + 1]):
                if spin[neighbour[h]] > 0:
                    gain[spin[neighbour[h]] - 1] += beta[h]
            top, total = -np.inf, 0.0
            for s in range(n_seeds):
                top = max(top, gain[s])
            for s in range(n_seeds):
                total += math.exp(inv_temperature * (gain[s] - top))
            side = 0
            if forced == FORCED:
                while label[member[side]] != label[u]:
                    side += 1
            else:
                point = rng.random() * total - math.exp(inv_temperature * (gain[0] - top))
                while point >= 0.0 and side < n_seeds - 1:
                    side += 1
                    point -= math.exp(inv_temperature * (gain[side] - top))
            log_q += inv_temperature * (gain[side] - top) - math.log(total)
            if forced == FORCED and log_q < floor:
                return log_q
        spin[u] = side + 1
        shift(target, state, base + side, 1, n_bins, 1)
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
    """Log of the probability of picking the split and its two sites, over that of picking the merge."""
    m = m_a + m_b
    return math.log(k_merged + 1.0) + math.log(m_a * 1.0 * m_b) - math.log(m * (m - 1.0))


@internal
def propose_split(target, state, inv_temperature, rng):
    """Build the split of a random cluster; its slot, the change of log posterior, the log ratio of proposing it."""
    log_v, log_w, start, neighbour, beta = target.log_v, target.log_w, target.start, target.neighbour, target.beta
    size, spin, member = state.size, state.spin, state.member
    k = state.number[N_CLUSTERS]
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
                change -= beta[h] * (spin[neighbour[h]] == 2)
    return slot, change, log_q + log_selection(k, m_a, m_b)


@internal
def finish_split(state, slot, change, accepted):
    """Replace `slot` by the two clusters that were built, or forget them."""
    number, spin, member, label = state.number, state.spin, state.member, state.label
    k = number[N_CLUSTERS]
    if not accepted:
        clear_slot(state, k)
        clear_slot(state, k + 1)
        return
    id_a, id_b = state.id_of[k], state.id_of[k + 1]
    for q in range(state.size[slot]):
        label[member[q]] = id_a if spin[member[q]] == 1 else id_b
    number[N_CLUSTERS] = k + 2
    state.real[LOG_POSTERIOR] += change
    clear_slot(state, slot)
    drop_slot(state, slot)


@internal
def propose_merge(target, state, rng):
    """Pick two clusters; their slots, the change of log posterior if they merge, and the log ratio of picking them."""
    log_v, log_w, start, neighbour, beta = target.log_v, target.log_w, target.start, target.neighbour, target.beta
    table, table_start, law = target.table, target.table_start, target.bin_law
    counts, total, joined, label, size = state.counts, state.total, state.joined, state.label, state.size
    k = state.number[N_CLUSTERS]
    if k < 2:
        return -1, -1, 0.0, 0.0
    a, b = int(rng.random() * k), int(rng.random() * (k - 1))
    b += b >= a
    m_a, m_b = size[a], size[b]
    change = -slot_log_marginal(state, a) - slot_log_marginal(state, b)
    change += log_w[m_a + m_b] - log_w[m_a] - log_w[m_b] + log_v[k - 1] - log_v[k]
    for d in range(counts.shape[0]):
        change += bin_value(table, table_start, law, d, counts[d, a] + counts[d, b])
    for s in range(joined.size):
        joined[s] = total[a, s] + total[b, s]
    change += dense_log_marginal(target.block, target.parameter, joined, state.work)
    label_a, label_b = state.id_of[a], state.id_of[b]
    for u in range(label.size):
        if label[u] == label_a:
            for h in range(start[u], start[u + 1]):
                change += beta[h] * (label[neighbour[h]] == label_b)
    return a, b, change, log_selection(k - 1, m_a, m_b)


@internal
def log_q_of_merged(target, state, a, b, floor, inv_temperature, rng):
    """Log probability that a split of their union deals out the clusters in slots a and b; a bound if below `floor`."""
    member, k = state.member, state.number[N_CLUSTERS]
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
def finish_merge(target, state, a, b, change):
    """Put the sites of slot b into slot a."""
    table, table_start, law = target.table, target.table_start, target.bin_law
    counts, value, total, label = state.counts, state.value, state.total, state.label
    label_a, label_b = state.id_of[a], state.id_of[b]
    for i in range(label.size):
        if label[i] == label_b:
            label[i] = label_a
    state.size[a] += state.size[b]
    for d in range(counts.shape[0]):
        counts[d, a] += counts[d, b]
        value[d, a] = bin_value(table, table_start, law, d, counts[d, a])
    for s in range(total.shape[1]):
        total[a, s] += total[b, s]
    state.dense_value[a] = dense_log_marginal(target.block, target.parameter, total[a], state.work)
    state.real[LOG_POSTERIOR] += change
    clear_slot(state, b)
    drop_slot(state, b)


@inlined
def split_or_merge(target, state, tally, inv_temperature, rng):
    """Try one split or one merge, each with probability one half."""
    log_u = math.log(1.0 - rng.random())
    if rng.random() < 0.5:
        tally[SPLITS_TRIED] += 1
        slot, change, against = propose_split(target, state, inv_temperature, rng)
        if slot >= 0:
            accepted = log_u < inv_temperature * change - against
            finish_split(state, slot, change, accepted)
            tally[SPLITS_MADE] += accepted
    else:
        tally[MERGES_TRIED] += 1
        a, b, change, ratio = propose_merge(target, state, rng)
        # log q is at most 0, so most merges are rejected before it is computed, and the rest as soon as it is too low.
        floor = log_u - inv_temperature * change - ratio
        if a >= 0 and floor < 0.0 and floor < log_q_of_merged(target, state, a, b, floor, inv_temperature, rng):
            finish_merge(target, state, a, b, change)
            tally[MERGES_MADE] += 1


@inlined
def split_merge(target, state, tally, inv_temperature, rng):
    """Do the attempts that are left in this iteration; DONE, FULL or STOPPED."""
    while state.number[SPLITS_LEFT] > 0:
        if state.number[N_CLUSTERS] + 3 >= state.size.size:
            return FULL
        if state.number[STOP] != 0:
            return STOPPED
        split_or_merge(target, state, tally, inv_temperature, rng)
        state.number[SPLITS_LEFT] -= 1
    return DONE
