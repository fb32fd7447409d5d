"""Split, merge, redraw and regroup connected clusters along a growth order.

Two neighboring sites, the seeds, are drawn whatever the partition is. If they lie in one cluster, it may be split. If
not, their clusters may be merged, or the border between them redrawn. With a third seed nearby, two clusters may be
regrouped into three, or three into two. In each case growth starts at the seeds and runs through the sites of their
clusters, and all or some of the seeds found a side. The order in which sites are reached is random, strong couplings
first, and depends on which sites there are, not on who belongs to which cluster: it has the same probability in both
directions and cancels. A site joins a side that has reached it; where several have, one of them is drawn. All sides are
connected by construction.
"""

import math

import numpy as np

from spinseg._compiled import inlined, internal
from spinseg.inference.kernels.clusters import add_pooled, clear_slot, drop_slot, pool
from spinseg.inference.kernels.connectivity import couplings_between
from spinseg.inference.kernels.likelihood import bin_value, dense_log_marginal
from spinseg.inference.kernels.size_prior import change_of_merge, change_of_regroup
from spinseg.inference.kernels.split_merge import change_if_merged, merge_slots, slot_log_marginal
from spinseg.inference.kernels.state import (
    ACCEPTED,
    COUPLING,
    DENSE_AFTER,
    DONE,
    FORCED,
    FREE,
    FULL,
    GROWTHS_LEFT,
    IS_STALE,
    LOG_POSTERIOR,
    LOG_WEIGHT,
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
def sift_up(state, at, site, value):
    """Put a site with this key into the heap, at `at` or above it."""
    key, queue, place = state.key, state.queue, state.place
    while at > 0:
        above = (at - 1) >> 1
        if key[above] <= value:
            break
        key[at], queue[at] = key[above], queue[above]
        place[queue[at]] = at + 1
        at = above
    key[at], queue[at], place[site] = value, site, at + 1


@internal
def pop(state, n_reached):
    """Take the site with the least key from a heap of n_reached sites."""
    key, queue, place = state.key, state.queue, state.place
    first, last = queue[0], n_reached - 1
    value, site, at, below = key[last], queue[last], 0, 1
    while below < last:
        if below + 1 < last and key[below + 1] < key[below]:
            below += 1
        if value <= key[below]:
            break
        key[at], queue[at] = key[below], queue[below]
        place[queue[at]] = at + 1
        at, below = below, 2 * below + 1
    key[at], queue[at], place[site] = value, site, at + 1
    place[first] = 0
    return first


@internal
def reach(target, state, u, seeds, n_reached, rng):
    """Reach the neighbors of a placed site that lie in the clusters of the seeds; returns the size of the heap then.

    Each edge gives a site a key, an exponential number of mean exp(-beta), and the site keeps the least.
    """
    start, neighbor, delay = target.start, target.neighbor, target.delay
    label, spin, place = state.label, state.spin, state.place
    a, b, c = label[seeds[0]], label[seeds[1]], label[seeds[2]]
    for h in range(start[u], start[u + 1]):
        v = neighbor[h]
        if spin[v] == 0 and (label[v] == a or label[v] == b or label[v] == c):
            value = rng.standard_exponential() * delay[h]
            if place[v] == 0:
                sift_up(state, n_reached, v, value)
                n_reached += 1
            elif value < state.key[place[v] - 1]:
                sift_up(state, np.int64(place[v]) - 1, v, value)
    return n_reached


@internal
def refresh(target, state, slot):
    """Bring the log marginal of the blocks of a slot up to date."""
    if target.block.shape[0] > 0:
        state.dense_value[slot] = dense_log_marginal(target.block, target.parameter, state.total[slot], state.work)


@internal
def find_sides(target, state, u, n_sides):
    """Find the sides that have reached site u: their log weight is then 0, that of others -inf; and their couplings.

    Returns how many there are, the last of them, and the sum of the couplings.
    """
    start, neighbor, beta, spin, sides = target.start, target.neighbor, target.beta, state.spin, state.sides
    n_possible, last, total = 0, 0, 0.0
    for s in range(n_sides):
        sides[s, LOG_WEIGHT], sides[s, COUPLING] = -np.inf, 0.0
    for h in range(start[u], start[u + 1]):
        if spin[neighbor[h]] > 0:
            last = np.int64(spin[neighbor[h]]) - 1
            n_possible += sides[last, LOG_WEIGHT] < 0.0
            sides[last, LOG_WEIGHT] = 0.0
            sides[last, COUPLING] += beta[h]
            total += beta[h]
    return n_possible, last, total


@internal
def weigh_sides(target, state, n_sides, n_bins):
    """Add to the log weight of each side that was found the log posterior with the pooled site there, less a constant.

    The log marginals of blocks that this takes are kept: those of a side in its slot, those with the site in `sides`.
    """
    table, table_start, bin_prior, block = target.table, target.table_start, target.bin_prior, target.block
    counts, value, pool_bin, pool_count = state.counts, state.value, state.pool_bin, state.pool_count
    total, joined, pool_total, sides = state.total, state.joined, state.pool_total, state.sides
    for s in range(n_sides):
        if sides[s, LOG_WEIGHT] < 0.0:
            continue
        slot = state.counters[N_CLUSTERS] + s
        m = state.size[slot]
        log_weight = sides[s, COUPLING] + target.proposal_log_w[m + 1] - target.proposal_log_w[m]
        for t in range(n_bins):
            d = pool_bin[t]
            log_weight += bin_value(table, table_start, bin_prior, d, counts[d, slot] + pool_count[t]) - value[d, slot]
        if block.shape[0] > 0:
            if sides[s, IS_STALE] > 0.0:
                refresh(target, state, slot)
                sides[s, IS_STALE] = 0.0
            for p in range(joined.size):
                joined[p] = total[slot, p] + pool_total[p]
            sides[s, DENSE_AFTER] = dense_log_marginal(block, target.parameter, joined, state.work)
            log_weight += sides[s, DENSE_AFTER] - state.dense_value[slot]
        sides[s, LOG_WEIGHT] = log_weight


@internal
def choose_side(state, n_sides, wanted, inv_temperature, rng):
    """A side drawn by the weights, or the one that is wanted unless that is -1; and its probability."""
    sides, top, total = state.sides, -np.inf, 0.0
    for s in range(n_sides):
        top = max(top, sides[s, LOG_WEIGHT])
    for s in range(n_sides):
        if sides[s, LOG_WEIGHT] > -np.inf:  # weights that underflow would make impossible what is only unlikely
            sides[s, LOG_WEIGHT] = math.exp(max(inv_temperature * (sides[s, LOG_WEIGHT] - top), -600.0))
            total += sides[s, LOG_WEIGHT]
        else:
            sides[s, LOG_WEIGHT] = 0.0
    if wanted < 0:
        point = rng.random() * total
        for s in range(n_sides):
            if sides[s, LOG_WEIGHT] > 0.0:
                wanted = s
                point -= sides[s, LOG_WEIGHT]
                if point < 0.0:
                    break
    return wanted, sides[wanted, LOG_WEIGHT] / total


@internal
def allocate_along(target, state, seeds, n_sides, second, n_sites, forced, is_ordered, floor, inv_temperature, rng):
    """Let n_sides sides grow from the seeds through the n_sites sites of the clusters of the seeds.

    Two sides are founded by the seeds 0 and `second`, three by all of them; where there are two seeds, the third is the
    same as the second. Side s + 1 is built in slot k + s, and the side of each site is written to `spin`, which is zero
    before. FREE draws each choice. FORCED repeats the present clusters of these seeds, and ends early where log q falls
    below `floor`, or where growth cannot give them at all. The order of the sites is left in `member`, or taken from
    there if `is_ordered`. Returns log q, the sum of couplings between the sides, and how many sites were placed and are
    reached.
    """
    label, spin, member, sides, k = state.label, state.spin, state.member, state.sides, state.counters[N_CLUSTERS]
    n_seeds = 2 if seeds[2] == seeds[1] else 3
    n_reached, log_q, cut = 0, 0.0, 0.0
    chance, least = 1.0, math.exp(floor)  # of the choices since log q was written, and what rejects them
    for q in range(n_sites):
        if not is_ordered and q < n_seeds:
            member[q] = seeds[q]
        elif not is_ordered:
            member[q] = pop(state, n_reached)
            n_reached -= 1
        u = member[q]
        n_bins = pool(target, state, member[q : q + 1])
        n_possible, side, coupling = find_sides(target, state, u, n_sides)
        wanted, is_founder = -1, q == 0 or q == second or (q == 2 and n_sides == 3)
        if is_founder:
            side = 0 if q == 0 else 1 if q == second else 2
        elif forced == FORCED:
            wanted = 0 if label[u] == label[seeds[0]] else 1 if label[u] == label[seeds[second]] else 2
            side = wanted
            if sides[side, LOG_WEIGHT] < 0.0:
                return -np.inf, cut, q, n_reached
        if n_possible > 1 and not is_founder:
            weigh_sides(target, state, n_sides, n_bins)
            side, share = choose_side(state, n_sides, wanted, inv_temperature, rng)
            chance *= share
            if chance < least:
                return log_q + math.log(chance), cut, q, n_reached
            if chance < 1e-30:
                log_q += math.log(chance)
                chance, least = 1.0, math.exp(floor - log_q)
            state.dense_value[k + side] = sides[side, DENSE_AFTER]
        else:
            sides[side, IS_STALE] = 1.0
        spin[u] = side + 1
        cut += coupling - sides[side, COUPLING]
        add_pooled(target, state, k + side, 1, n_bins, 1)
        if not is_ordered and q == n_seeds - 1:
            for s in range(n_seeds):
                n_reached = reach(target, state, seeds[s], seeds, n_reached, rng)
        elif not is_ordered and q >= n_seeds:
            n_reached = reach(target, state, u, seeds, n_reached, rng)
    for s in range(n_sides):
        if sides[s, IS_STALE] > 0.0:
            refresh(target, state, k + s)
    return log_q + math.log(chance), cut, n_sites, n_reached


@internal
def forget(state, n_placed, n_reached):
    """Leave no trace of a growth in the scratch space."""
    for q in range(n_placed):
        state.spin[state.member[q]] = 0
    for q in range(n_reached):
        state.place[state.queue[q]] = 0


@internal
def discard(state, n_sides, n_placed, n_reached):
    """Discard what a growth has built."""
    forget(state, n_placed, n_reached)
    for s in range(n_sides):
        clear_slot(state, state.counters[N_CLUSTERS] + s)


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
    Returns how many sites they have, or 0 if the present ones cannot be grown; the change of log posterior; and the log
    ratio of the probabilities of the reverse proposal and of this one. The order of the sites is drawn once.
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
    log_q, cut, _, _ = allocate_along(
        target, state, seeds, n_new, second_new, n_sites, FREE, n_old > 1, -np.inf, inv_temperature, rng
    )
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
