"""Regroup two clusters into three, or three into two.

Three anchor sites are drawn whatever the partition is; the first two must lie in different clusters. If the third lies
in one of these, the sites of both clusters are allocated to three new ones, each founded by an anchor; else the sites
of three clusters are allocated to two. Allocation is sequential, as in a split, and the reverse proposal has the
probability of allocating the present clusters.
"""

import math

import numpy as np

from spinseg._compiled import inlined, internal
from spinseg.sampler.kernels.clusters import clear_slot, drop_slot
from spinseg.sampler.kernels.size_prior import change_of_regroup
from spinseg.sampler.kernels.split_merge import allocate, gather_sites, shuffle, slot_log_marginal
from spinseg.sampler.kernels.state import (
    ACCEPTED,
    DONE,
    FORCED,
    FREE,
    FULL,
    LOG_POSTERIOR,
    N_CLUSTERS,
    NONE,
    PROPOSED,
    REGROUP,
    REGROUPS_LEFT,
    STOP,
    STOPPED,
    TWO,
)


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
def order_from(member, seeds, n_seeds, n_sites, rng):
    """Put the seeds first in member[:n_sites], and the others behind them in random order."""
    for s in range(n_seeds):
        for q in range(s, n_sites):
            if member[q] == seeds[s]:
                member[q] = member[s]
                member[s] = seeds[s]
                break
    shuffle(member, n_seeds, n_sites, rng)


@internal
def propose_regroup(target, state, inv_temperature, rng):
    """Allocate the sites of two clusters to three, or of three to two.

    Returns n_old (0 where nothing is proposed), the number of sites, the anchors, the change of log posterior, and log
    q of the proposal. The new clusters are built in the empty slots from k; `first` is the side of each
    site, s + 1 for slot k + s: a copy, since the reverse allocation overwrites `spin`.
    """
    log_v, log_w, start, upper = target.log_v, target.log_w, target.start, target.upper
    neighbor, beta = target.neighbor, target.beta
    label, slot_of, spin, member, first = state.label, state.slot_of, state.spin, state.member, state.first
    size, k = state.size, state.counters[N_CLUSTERS]
    anchors = draw_anchors(target.similar, label.size, rng)
    a, b, c = anchors
    if label[a] == label[b] or a == c or b == c:
        return NONE, NONE, anchors, 0.0, 0.0
    n_old = TWO if label[c] == label[a] or label[c] == label[b] else TWO + 1
    n_new = 5 - n_old
    n_sites, change = NONE, log_v[k - n_old + n_new] - log_v[k]
    for s in range(n_old):
        slot = np.int64(slot_of[label[a if s == 0 else b if s == 1 else c]])
        n_sites = gather_sites(state, slot, n_sites)
        change -= slot_log_marginal(state, slot) + log_w[size[slot]]
    order_from(member, anchors, n_new, n_sites, rng)
    log_q = allocate(target, state, n_sites, n_new, k, FREE, 0.0, inv_temperature, rng)
    for s in range(n_new):
        change += slot_log_marginal(state, k + s) + log_w[size[k + s]]
    for q in range(n_sites):
        u = member[q]
        first[u] = spin[u]
        for h in range(upper[u], start[u + 1]):
            j = neighbor[h]
            if spin[j] > 0:
                change += beta[h] * (1.0 * (spin[u] == spin[j]) - 1.0 * (label[u] == label[j]))
    return n_old, n_sites, anchors, change, log_q


@internal
def log_q_reverse_regroup(target, state, n_old, n_sites, anchors, floor, inv_temperature, rng):
    """Log q of the reverse proposal, which allocates the present clusters; an upper bound once it is below `floor`."""
    base = state.counters[N_CLUSTERS] + 3  # behind the new ones
    order_from(state.member, anchors, n_old, n_sites, rng)
    log_q = allocate(target, state, n_sites, n_old, base, FORCED, floor, inv_temperature, rng)
    for s in range(n_old):
        clear_slot(state, base + s)
    return log_q


@internal
def finish_regroup(state, n_old, n_sites, anchors, change, accepted):
    """Replace the clusters of the anchors by the proposed ones, or discard the proposal."""
    counters, label, member, first = state.counters, state.label, state.member, state.first
    k, n_new = counters[N_CLUSTERS], 5 - n_old
    if not accepted:
        for s in range(n_new):
            clear_slot(state, k + s)
        return
    a, b, c = anchors
    id_a, id_b, id_c = label[a], label[b], label[c]
    for q in range(n_sites):
        label[member[q]] = state.id_of[k + first[member[q]] - 1]
    counters[N_CLUSTERS] = k + n_new
    state.scalars[LOG_POSTERIOR] += change
    for s in range(n_old):
        gone = np.int64(state.slot_of[id_a if s == 0 else id_b if s == 1 else id_c])
        clear_slot(state, gone)
        drop_slot(state, gone)


@inlined
def regroup(target, state, move_counts, inv_temperature, rng):
    """Make the remaining attempts of this iteration to regroup; DONE, FULL or STOPPED."""
    while state.counters[REGROUPS_LEFT] > 0:
        if state.counters[N_CLUSTERS] + 7 >= state.size.size:
            return FULL
        if state.counters[STOP] != 0:
            return STOPPED
        state.counters[REGROUPS_LEFT] -= 1
        move_counts[REGROUP, PROPOSED] += 1
        log_u = math.log(1.0 - rng.random())
        n_old, n_sites, anchors, change, log_q = propose_regroup(target, state, inv_temperature, rng)
        if n_old > 0:
            change += change_of_regroup(state, anchors, n_old, 5 - n_old)
            floor = log_u - inv_temperature * change + log_q
            accepted = floor < 0.0 and floor < log_q_reverse_regroup(
                target, state, n_old, n_sites, anchors, floor, inv_temperature, rng
            )
            finish_regroup(state, n_old, n_sites, anchors, change, accepted)
            move_counts[REGROUP, ACCEPTED] += accepted
    return DONE
