"""Split, merge and regroup clusters by sequential allocation (Dahl 2005).

A split picks a cluster and two of its sites, a merge two clusters and a site of each. A regrouping draws three anchor
sites, whatever the partition is: if the clusters of the first two differ, and the third lies in one of them, these two
become three; if it lies elsewhere, three become two. Each picked site founds a cluster; the other sites are allocated
in random order, with probabilities proportional to the posterior so far.
"""

import cython
from cython.cimports.libc import math

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
from spinseg.sampler.kernels.state import FORCED, FREE, INF, N_CLUSTERS, Index, Plan, Random, Real, State, Target, at


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def slots_of(state: State, sites: tuple[Index, Index, Index]) -> tuple[Index, Index, Index]:
    """The slots of the clusters of three sites."""
    a, b, c = state.label[sites[0]], state.label[sites[1]], state.label[sites[2]]
    return state.slot_of[a], state.slot_of[b], state.slot_of[c]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def gather_sites(state: State, slot: Index, n: Index) -> Index:
    """Append the sites of `slot` to member[:n]; returns how many there are then."""
    cluster = state.id_of[slot]
    for i in range(state.label.shape[0]):
        if state.label[i] == cluster:
            state.member[n] = i
            n += 1
    return n


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def shuffle(member: cython.uint[::1], start: Index, end: Index, rng: Random) -> cython.void:
    """Put member[start:end] into random order."""
    for q in range(end - 1, start, -1):
        r = start + rng.below(q + 1 - start)
        member[q], member[r] = member[r], member[q]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def order_from(
    member: cython.uint[::1], founders: tuple[Index, Index, Index], n_founders: Index, n_sites: Index, rng: Random
) -> cython.void:
    """Put the founders first in member[:n_sites], and the others behind them in random order."""
    for s in range(n_founders):
        for q in range(s, n_sites):
            if member[q] == at(founders, s):
                member[q] = member[s]
                member[s] = at(founders, s)
                break
    shuffle(member, n_founders, n_sites, rng)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def allocate(
    target: Target,
    state: State,
    n_sites: Index,
    n_founders: Index,
    base: Index,
    forced: Index,
    floor: Real,
    inv_temperature: Real,
    rng: Random,
) -> Real:
    """Allocate member[:n_sites] in turn to the slots from `base`, founded by the first n_founders; returns log q.

    FREE draws each choice. FORCED repeats the present clusters of the founders, and returns early when log q falls
    below `floor`. The side of a site, s + 1 for slot base + s, is written to `spin`.
    """
    log_q = 0.0
    for i in range(state.spin.shape[0]):
        state.spin[i] = 0
    for q in range(n_sites):
        u = state.member[q]
        n_bins = pool(target, state, q, q + 1)
        side: Index = q
        if q >= n_founders:
            for s in range(n_founders):
                m = state.size[base + s]
                state.log_weight[s] = (
                    target.proposal_log_w[m + 1]
                    - target.proposal_log_w[m]
                    + likelihood_at(target, state, base + s, n_bins, 1)
                )
            for h in range(target.start[u], target.start[u + 1]):
                if state.spin[target.neighbor[h]] > 0:
                    state.log_weight[state.spin[target.neighbor[h]] - 1] += target.beta[h]
            top, total = -INF, 0.0
            for s in range(n_founders):
                top = max(top, state.log_weight[s])
            for s in range(n_founders):
                total += math.exp(inv_temperature * (state.log_weight[s] - top))
            side = 0
            if forced == FORCED:
                while state.label[state.member[side]] != state.label[u]:
                    side += 1
            else:
                point = rng.random() * total - math.exp(inv_temperature * (state.log_weight[0] - top))
                while point >= 0.0 and side < n_founders - 1:
                    side += 1
                    point -= math.exp(inv_temperature * (state.log_weight[side] - top))
            log_q += inv_temperature * (state.log_weight[side] - top) - math.log(total)
            if forced == FORCED and log_q < floor:
                return log_q
        state.spin[u] = side + 1
        update_slot(target, state, base + side, 1, n_bins, 1)
    return log_q


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def change_if_reallocated(target: Target, state: State, n_sites: Index) -> Real:
    """Change of the couplings if member[:n_sites] take their sides in `spin`, which are copied to `first`."""
    change: Real = 0.0
    for q in range(n_sites):
        u = state.member[q]
        state.first[u] = state.spin[u]
        for h in range(target.upper[u], target.start[u + 1]):
            j = target.neighbor[h]
            if state.spin[j] > 0:
                joined: Real = 1.0 * (state.spin[u] == state.spin[j]) - 1.0 * (state.label[u] == state.label[j])
                change += target.beta[h] * joined
    return change


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def propose(
    target: Target,
    state: State,
    slots: tuple[Index, Index, Index],
    n_old: Index,
    n_new: Index,
    n_sites: Index,
    inv_temperature: Real,
    rng: Random,
) -> tuple[Real, Real]:
    """Allocate member[:n_sites], the sites of slots[:n_old], to n_new clusters; returns change of log posterior, log q.

    The side of each site is left in `first`, since the reverse allocation overwrites `spin`.
    """
    k = state.counters[N_CLUSTERS]
    log_q = allocate(target, state, n_sites, n_new, k, FREE, 0.0, inv_temperature, rng)
    change = change_if_replaced(target, state, slots, n_old, n_new)
    return change + change_if_reallocated(target, state, n_sites), log_q


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def finish(
    state: State,
    slots: tuple[Index, Index, Index],
    n_old: Index,
    n_new: Index,
    n_sites: Index,
    change: Real,
    accepted: cython.bint,
) -> cython.void:
    """Accept what was proposed, or discard it."""
    if accepted:
        replace_clusters(state, state.first, slots, n_old, n_new, n_sites, change)
    else:
        discard_clusters(state, state.counters[N_CLUSTERS], n_new)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def log_q_of_present(
    target: Target,
    state: State,
    n_sites: Index,
    n_old: Index,
    base: Index,
    floor: Real,
    inv_temperature: Real,
    rng: Random,
) -> Real:
    """Log q of allocating member[:n_sites] to their n_old present clusters; an upper bound once it is below `floor`."""
    log_q = allocate(target, state, n_sites, n_old, base, FORCED, floor, inv_temperature, rng)
    discard_clusters(state, base, n_old)
    return log_q


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def log_selection(k_merged: Real, m_a: Index, m_b: Index) -> Real:
    """Log ratio of the probabilities of picking the split with its two sites and of picking the merge."""
    m = m_a + m_b
    return math.log(k_merged + 1.0) + math.log(m_a * 1.0 * m_b) - math.log(m * (m - 1.0))


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def split(target: Target, state: State, log_u: Real, inv_temperature: Real, rng: Random) -> cython.bint:
    """Try to split a random cluster; returns whether it was."""
    k = state.counters[N_CLUSTERS]
    slot = rng.below(k)
    m = state.size[slot]
    if m < 2:
        return False
    gather_sites(state, slot, 0)
    shuffle(state.member, 0, m, rng)
    change, log_q = propose(target, state, (slot, slot, slot), 1, 2, m, inv_temperature, rng)
    log_ratio = log_q + log_selection(k, state.size[k], state.size[k + 1])
    accepted: cython.bint = log_u < inv_temperature * change - log_ratio
    finish(state, (slot, slot, slot), 1, 2, m, change, accepted)
    return accepted


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def couplings_between_slots(target: Target, state: State, a: Index, b: Index) -> Real:
    """The summed couplings between the sites of slots a and b."""
    own, other = state.id_of[a], state.id_of[b]
    between: Real = 0.0
    for u in range(state.label.shape[0]):
        if state.label[u] == own:
            for h in range(target.start[u], target.start[u + 1]):
                between += target.beta[h] * (state.label[target.neighbor[h]] == other)
    return between


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def order_pair(state: State, a: Index, b: Index, rng: Random) -> Index:
    """Put the sites of slots a and b into random order in `member`, after one of each; returns how many there are."""
    m_a = gather_sites(state, a, 0)
    m = gather_sites(state, b, m_a)
    shuffle(state.member, 0, m_a, rng)
    r = m_a + rng.below(m - m_a)
    state.member[1], state.member[r] = state.member[r], state.member[1]
    shuffle(state.member, 2, m, rng)
    return m


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def merge(target: Target, state: State, log_u: Real, inv_temperature: Real, rng: Random) -> cython.bint:
    """Try to merge two random clusters; returns whether they were."""
    k = state.counters[N_CLUSTERS]
    if k < 2:
        return False
    a: Index = rng.below(k)
    b: Index = rng.below(k - 1)
    b += b >= a
    change = change_if_merged(target, state, a, b) + couplings_between_slots(target, state, a, b)
    # log q is at most 0: most merges are rejected before it is computed, the rest as soon as it is too low.
    floor = log_u - inv_temperature * change - log_selection(k - 1, state.size[a], state.size[b])
    if not floor < 0.0:
        return False
    m = order_pair(state, a, b, rng)
    accepted: cython.bint = floor < log_q_of_present(target, state, m, 2, k, floor, inv_temperature, rng)
    if accepted:
        merge_clusters(target, state, a, b, change)
    return accepted


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def split_or_merge(target: Target, state: State, plan: Plan, rng: Random) -> tuple[Index, cython.bint]:
    """Try a split (kind 0) or a merge (1), each with probability 0.5; returns which, and whether it was accepted."""
    log_u = math.log(1.0 - rng.random())
    if rng.random() < 0.5:
        return 0, split(target, state, log_u, plan.inv_temperature, rng)
    return 1, merge(target, state, log_u, plan.inv_temperature, rng)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def draw_anchors(similar: cython.uint[:, ::1], n: Index, rng: Random) -> tuple[Index, Index, Index]:
    """Three sites: one anywhere; each other one anywhere with probability 0.3, else among those like the first."""
    a = rng.below(n)
    b, c = rng.below(n), rng.below(n)
    if similar.shape[1] > 0 and rng.random() < 0.7:
        b = similar[a, rng.below(similar.shape[1])]
    if similar.shape[1] > 0 and rng.random() < 0.7:
        c = similar[a, rng.below(similar.shape[1])]
    return a, b, c


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def regroup(target: Target, state: State, plan: Plan, rng: Random) -> tuple[Index, cython.bint]:
    """Try to regroup two clusters into three, or three into two; returns 0, and whether that was accepted."""
    inv_temperature = plan.inv_temperature
    log_u = math.log(1.0 - rng.random())
    anchors = draw_anchors(target.similar, state.label.shape[0], rng)
    a, b, c = anchors[0], anchors[1], anchors[2]
    if state.label[a] == state.label[b] or a == c or b == c:
        return 0, False
    n_old = 2 if state.label[c] == state.label[a] or state.label[c] == state.label[b] else 3
    n_new, n_sites = 5 - n_old, 0
    slots = slots_of(state, anchors)
    for s in range(n_old):
        n_sites = gather_sites(state, at(slots, s), n_sites)
    order_from(state.member, anchors, n_new, n_sites, rng)
    change, log_q = propose(target, state, slots, n_old, n_new, n_sites, inv_temperature, rng)
    floor = log_u - inv_temperature * change + log_q
    accepted: cython.bint = False
    if floor < 0.0:
        behind = state.counters[N_CLUSTERS] + n_new
        order_from(state.member, anchors, n_old, n_sites, rng)
        accepted = floor < log_q_of_present(target, state, n_sites, n_old, behind, floor, inv_temperature, rng)
    finish(state, slots, n_old, n_new, n_sites, change, accepted)
    return 0, accepted
