"""How sides grow from seeds through the sites of connected clusters, and with which probability.

The order in which sites are reached is random, strong couplings first, and depends on which sites there are, not on who
belongs to which cluster. A site joins a side that has reached it; where several have, one of them is drawn. All sides
are connected by construction. `regrowth.py` makes moves of this.
"""

import math

import numpy as np

from spinseg._compiled import internal
from spinseg.sampler.kernels.clusters import add_pooled, bins_log_predictive, discard_clusters, pool, refresh
from spinseg.sampler.kernels.constraints import marker_in, n_marked
from spinseg.sampler.kernels.likelihood import dense_log_marginal
from spinseg.sampler.kernels.state import COUPLING, DENSE_AFTER, FORCED, IS_STALE, LOG_WEIGHT, N_CLUSTERS


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
def keep_marker(state, n_sides):
    """Of the sides that were found, keep those that may take the pooled site, which has a marker.

    That is the side that holds the marker or, if there is none, each one that holds no other. Returns how many are
    left, the last of them, and whether a side holds the marker.
    """
    sides, total, k = state.sides, state.total, state.counters[N_CLUSTERS]
    marker, n_possible, last, is_held = marker_in(state.pool_total), 0, 0, False
    for s in range(n_sides):
        is_held |= marker_in(total[k + s]) == marker
    for s in range(n_sides):
        held = marker_in(total[k + s])
        if held != marker and (held > 0 or is_held):
            sides[s, LOG_WEIGHT] = -np.inf
        if sides[s, LOG_WEIGHT] == 0.0:
            n_possible += 1
            last = s
    return n_possible, last, is_held


@internal
def weigh_sides(target, state, n_sides, n_bins):
    """Add to the log weight of each side that was found the log posterior with the pooled site there, less a constant.

    The log marginals of blocks that this takes are kept: those of a side in its slot, those with the site in `sides`.
    """
    total, joined, pool_total, sides = state.total, state.joined, state.pool_total, state.sides
    for s in range(n_sides):
        if sides[s, LOG_WEIGHT] < 0.0:
            continue
        slot = state.counters[N_CLUSTERS] + s
        m = state.size[slot]
        log_weight = sides[s, COUPLING] + target.proposal_log_w[m + 1] - target.proposal_log_w[m]
        log_weight += bins_log_predictive(target, state, slot, n_bins, 1)
        if target.block.shape[0] > 0:
            if sides[s, IS_STALE] > 0.0:
                refresh(target, state, slot)
                sides[s, IS_STALE] = 0.0
            for p in range(joined.size):
                joined[p] = total[slot, p] + pool_total[p]
            sides[s, DENSE_AFTER] = dense_log_marginal(target, joined, state.work)
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

    Two sides are founded by the seeds 0 and `second`, three by all of them; of two seeds, the third repeats the second.
    Side s + 1 is built in slot k + s and written to `spin`, which is zero before. FREE draws each choice. FORCED
    repeats the present clusters, and ends early where log q falls below `floor` or growth cannot give them. The order
    of the sites is left in `member`, or taken from there if `is_ordered`. Returns log q, -inf where there are no such
    sides, the sum of couplings between the sides, and how many sites were placed and are reached.
    """
    label, spin, member, sides, k = state.label, state.spin, state.member, state.sides, state.counters[N_CLUSTERS]
    n_seeds, has_markers = 2 if seeds[2] == seeds[1] else 3, target.marker_size.size > 0
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
        if has_markers and n_marked(state.pool_total) > 0.0:
            n_possible, side, is_held = keep_marker(state, n_sides)
            if is_held if is_founder else n_possible == 0:
                return -np.inf, cut, q, n_reached
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
                n_reached = reach(target, state, member[s], seeds, n_reached, rng)
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
    discard_clusters(state, state.counters[N_CLUSTERS], n_sides)
