"""Split, merge, redraw and regroup connected clusters along a growth order.

Two neighboring sites, the seeds, are drawn whatever the partition is. If they lie in one cluster, it may be split. If
not, their clusters may be merged, or the border between them redrawn. With a third seed nearby, two clusters may be
regrouped into three, or three into two. In each case sides grow from all or some of the seeds (`growth.py`). The order
of growth has the same probability in both directions, and cancels.
"""

import math

import numpy as np

from spinseg._compiled import inlined, internal
from spinseg.sampler.kernels.clusters import clear_slot, drop_slot
from spinseg.sampler.kernels.connectivity import couplings_between
from spinseg.sampler.kernels.growth import allocate_along, discard, forget
from spinseg.sampler.kernels.markers import n_marked
from spinseg.sampler.kernels.size_prior import change_of_merge, change_of_regroup
from spinseg.sampler.kernels.split_merge import change_if_merged, merge_slots, slot_log_marginal
from spinseg.sampler.kernels.state import (
    ACCEPTED,
    DONE,
    FORCED,
    FREE,
    FULL,
    GROWTHS_LEFT,
    LOG_POSTERIOR,
    MERGE,
    N_CLUSTERS,
    NONE,
    ONE,
    PROPOSED,
    REDRAW,
    REGROUP,
    SPLIT,
    STOP,
    STOPPED,
    TWO,
)


@internal
def seed_weight(delay):
    """How likely an edge is to be drawn for its ends to be seeds: the more so, the more it looks like a boundary."""
    return delay / (1.0 + delay) + 0.02


@internal
def draw_seeds(target, rng):
    """Three sites: the ends of an edge drawn by its weight, in either order, and where a walk from the second ends.

    The third may be one of the others. All three are the same where a site without edges was drawn.
    """
    start, neighbor, delay, weight = target.start, target.neighbor, target.delay, target.seed_weight
    point, i, beyond = rng.random() * weight[weight.size - 1], 0, weight.size - 1
    while beyond - i > 1:
        middle = (i + beyond) >> 1
        if weight[middle] <= point:
            i = middle
        else:
            beyond = middle
    j, point = i, point - weight[i]
    for h in range(start[i], start[i + 1]):
        j = np.int64(neighbor[h])
        point -= seed_weight(delay[h])
        if point < 0.0:
            break
    third = j
    while i != j:
        first, n_neighbors = np.int64(start[third]), np.int64(start[third + 1]) - np.int64(start[third])
        third = np.int64(neighbor[first + int(rng.random() * n_neighbors)])
        if rng.random() < 0.2:
            break
    return i, j, third


@internal
def slot_of_site(state, i):
    """The slot of the cluster of a site."""
    return np.int64(state.slot_of[state.label[i]])


@internal
def propose_regrowth(target, state, seeds, second_old, n_old, second_new, n_new, inv_temperature, rng):
    """Propose n_new clusters in place of the n_old clusters of the seeds.

    `second_old` and `second_new` are the `second` of `allocate_along` for the present clusters and for the new ones.
    Returns how many sites they have, or 0 if the present ones cannot be grown, or the new ones not be ended; the change
    of log posterior; and the log ratio of the probabilities of the reverse proposal and of this one. The order of the
    sites is drawn once.
    """
    log_v, log_w, size, k = target.log_v, target.log_w, state.size, state.counters[N_CLUSTERS]
    n_sites, change, log_q_old = NONE, log_v[k - n_old + n_new] - log_v[k], 0.0
    for s in range(n_old):
        slot = slot_of_site(state, seeds[second_old if s == 1 else s])
        n_sites += size[slot]
        change -= slot_log_marginal(state, slot) + log_w[size[slot]]
    if n_old > 1:
        log_q_old, cut, n_placed, n_reached = allocate_along(
            target, state, seeds, n_old, second_old, n_sites, FORCED, False, -np.inf, inv_temperature, rng
        )
        discard(state, n_old, n_placed, n_reached)
        if log_q_old == -np.inf:
            return NONE, 0.0, 0.0
        change += cut
    log_q, cut, n_placed, n_reached = allocate_along(
        target, state, seeds, n_new, second_new, n_sites, FREE, n_old > 1, -np.inf, inv_temperature, rng
    )
    if log_q == -np.inf:
        discard(state, n_new, n_placed, n_reached)
        return NONE, 0.0, 0.0
    for s in range(n_new):
        change += slot_log_marginal(state, k + s) + log_w[size[k + s]]
    return n_sites, change - cut, log_q_old - log_q


@internal
def finish_regrowth(state, seeds, second_old, n_old, n_new, n_sites, change, accepted):
    """Replace the n_old clusters of the seeds by those that were proposed, or discard these."""
    counters, label, member, id_of = state.counters, state.label, state.member, state.id_of
    k = counters[N_CLUSTERS]
    if not accepted:
        discard(state, n_new, n_sites, NONE)
        return
    ids = label[seeds[0]], label[seeds[second_old]], label[seeds[2]]
    for q in range(n_sites):
        label[member[q]] = id_of[k + state.spin[member[q]] - 1]
    forget(state, n_sites, NONE)
    counters[N_CLUSTERS] = k + n_new
    state.scalars[LOG_POSTERIOR] += change
    for s in range(n_old):
        gone = np.int64(state.slot_of[ids[s]])
        clear_slot(state, gone)
        drop_slot(state, gone)


@internal
def propose_union(target, state, seeds):
    """The slots of the clusters of the first two seeds, and the change of log posterior if they merge."""
    a, b = slot_of_site(state, seeds[0]), slot_of_site(state, seeds[1])
    if target.marker_size.size > 0 and n_marked(state.total[a]) > 0.0 and n_marked(state.total[b]) > 0.0:
        return a, b, -np.inf
    i, j = (seeds[0], seeds[1]) if state.size[a] <= state.size[b] else (seeds[1], seeds[0])
    return a, b, change_if_merged(target, state, a, b) + couplings_between(target, state, i, j)


@internal
def is_regrown(target, state, seeds, floor, inv_temperature, rng):
    """Whether log q of the reverse of a merge, a split into the clusters of the first two seeds, is above `floor`."""
    n_sites = state.size[slot_of_site(state, seeds[0])] + state.size[slot_of_site(state, seeds[1])]
    log_q, _, n_placed, n_reached = allocate_along(
        target, state, seeds, TWO, ONE, np.int64(n_sites), FORCED, False, floor, inv_temperature, rng
    )
    discard(state, TWO, n_placed, n_reached)
    return log_q > floor


@internal
def finish_union(target, state, a, b, change):
    """Put the sites of slot b, which are among those that were grown last, into slot a."""
    label, label_a = state.label, state.id_of[a]
    for q in range(state.size[a] + state.size[b]):
        label[state.member[q]] = label_a
    merge_slots(target, state, a, b, change)


@internal
def plan_regrowth(state, seeds, plan, point, limit):
    """What to try with these seeds: the four numbers of `propose_regrowth`, all 0 for nothing.

    `point` is uniform on (0, 1), and its shares are the same for a move and for its reverse: of splits and merges, of
    redrawn borders, and of regroupings. Where these have two clusters, they are those of the first and the third seed,
    and the second is in that of the first. The clusters may have at most `limit` sites together.
    """
    i, j, third = seeds
    a, b, c = state.label[i], state.label[j], state.label[third]
    second_old, n_old, second_new, n_new = ONE, TWO, ONE, TWO
    until_merge, until_redraw = plan.growth_shares[0], plan.growth_shares[1]
    if i == j or (a == b and until_merge <= point < until_redraw):
        return NONE, NONE, NONE, NONE
    if point < until_merge:
        n_old, n_new = (ONE, TWO) if a == b else (TWO, ONE)
    elif point >= until_redraw:
        if third in (i, j) or c in (a, b):
            return NONE, NONE, NONE, NONE
        second_old, n_old, second_new, n_new = (TWO, TWO, ONE, TWO + ONE) if a == b else (ONE, TWO + ONE, TWO, TWO)
    n_sites = NONE
    for s in range(n_old):
        n_sites += state.size[slot_of_site(state, seeds[second_old if s == 1 else s])]
    return (second_old, n_old, second_new, n_new) if n_sites <= limit else (NONE, NONE, NONE, NONE)


@inlined
def regrow(target, state, move_counts, plan, rng):
    """Try one split, merge, redraw or regrouping: of m sites with probability min(1, plan.growth_limit / m)^1.5.

    So the expected work of an attempt has a bound. The reverse has the same sites, and the same probability.
    """
    seeds, inv_temperature = draw_seeds(target, rng), plan.inv_temperature
    limit = plan.growth_limit * (1.0 - rng.random()) ** (-2 / 3)
    log_u = math.log(1.0 - rng.random())
    second_old, n_old, second_new, n_new = plan_regrowth(state, seeds, plan, rng.random(), limit)
    if n_old > 0:
        move = SPLIT if n_old == 1 else MERGE if n_new == 1 else REDRAW if n_old == n_new else REGROUP
        move_counts[move, PROPOSED] += 1
        if move != REGROUP:
            seeds = seeds[0], seeds[1], seeds[1]  # growth is not to enter the cluster of the third
        if move == MERGE:
            a, b, change = propose_union(target, state, seeds)
            change += change_of_merge(state, a, b)
            # log q is at most 0: most merges are rejected before anything grows, the rest as soon as it is too low.
            floor = log_u - inv_temperature * change
            if floor < 0.0 and is_regrown(target, state, seeds, floor, inv_temperature, rng):
                finish_union(target, state, a, b, change)
                move_counts[MERGE, ACCEPTED] += 1
        else:
            n_sites, change, log_q_ratio = propose_regrowth(
                target, state, seeds, second_old, n_old, second_new, n_new, inv_temperature, rng
            )
            if n_sites > 0:
                change += change_of_regroup(state, (seeds[0], seeds[second_old], seeds[2]), n_old, n_new)
                accepted = log_u < inv_temperature * change + log_q_ratio
                finish_regrowth(state, seeds, second_old, n_old, n_new, n_sites, change, accepted)
                move_counts[move, ACCEPTED] += accepted


@inlined
def grow(target, state, move_counts, plan, rng):
    """Make the remaining attempts of this iteration along growth orders; DONE, FULL or STOPPED."""
    counters = state.counters
    if counters[GROWTHS_LEFT] > 0:
        for i in range(state.spin.size):
            state.spin[i] = 0
    while counters[GROWTHS_LEFT] > 0:
        if counters[N_CLUSTERS] + 4 >= state.size.size:
            return FULL
        if counters[STOP] != 0:
            return STOPPED
        regrow(target, state, move_counts, plan, rng)
        counters[GROWTHS_LEFT] -= 1
    return DONE
