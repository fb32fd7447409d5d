"""How sides grow from seeds through the sites of connected clusters, and with which probability.

The order in which sites are reached is random, strong couplings first, and depends on which sites there are, not on who
belongs to which cluster. A site joins a side that has reached it; where several have, one of them is drawn. All sides
are connected by construction. `regrowth.py` makes moves of this.
"""

import cython
from cython.cimports.libc import math

from spinseg.sampler.kernels.clusters import add_pooled, bins_log_predictive, discard_clusters, pool, refresh
from spinseg.sampler.kernels.constraints import marker_in, n_pooled, pooled_marker
from spinseg.sampler.kernels.likelihood import dense_log_marginal
from spinseg.sampler.kernels.state import (
    COUPLING,
    DENSE_AFTER,
    FORCED,
    INF,
    IS_STALE,
    LOG_WEIGHT,
    N_CLUSTERS,
    Index,
    Random,
    Real,
    State,
    Target,
    at,
)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def sift_up(state: State, to: Index, site: Index, value: Real) -> cython.void:
    """Put a site with this key into the heap, to `to` or above it."""
    while to > 0:
        above = (to - 1) >> 1
        if state.key[above] <= value:
            break
        state.key[to], state.queue[to] = state.key[above], state.queue[above]
        state.place[state.queue[to]] = to + 1
        to = above
    state.key[to], state.queue[to], state.place[site] = value, site, to + 1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def pop(state: State, n_reached: Index) -> Index:
    """Take the site with the least key from a heap of n_reached sites."""
    first, last = state.queue[0], n_reached - 1
    value, site, to, below = state.key[last], state.queue[last], 0, 1
    while below < last:
        if below + 1 < last and state.key[below + 1] < state.key[below]:
            below += 1
        if value <= state.key[below]:
            break
        state.key[to], state.queue[to] = state.key[below], state.queue[below]
        state.place[state.queue[to]] = to + 1
        to, below = below, 2 * below + 1
    state.key[to], state.queue[to], state.place[site] = value, site, to + 1
    state.place[first] = 0
    return first


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def reach(
    target: Target, state: State, u: Index, seeds: tuple[Index, Index, Index], n_reached: Index, rng: Random
) -> Index:
    """Reach the neighbors of a placed site that lie in the clusters of the seeds; returns the size of the heap then.

    Each edge gives a site a key, an exponential number of mean exp(-beta), and the site keeps the least.
    """
    a, b, c = state.label[seeds[0]], state.label[seeds[1]], state.label[seeds[2]]
    for h in range(target.start[u], target.start[u + 1]):
        v = target.neighbor[h]
        if state.spin[v] == 0 and (state.label[v] == a or state.label[v] == b or state.label[v] == c):
            value = rng.standard_exponential() * target.delay[h]
            if state.place[v] == 0:
                sift_up(state, n_reached, v, value)
                n_reached += 1
            elif value < state.key[state.place[v] - 1]:
                sift_up(state, state.place[v] - 1, v, value)
    return n_reached


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def find_sides(target: Target, state: State, u: Index, n_sides: Index) -> tuple[Index, Index, Real]:
    """Find the sides that have reached site u: their log weight is then 0, that of others -inf; and their couplings.

    Returns how many there are, the last of them, and the sum of the couplings.
    """
    last: Index = 0
    n_possible: Index = 0
    total = 0.0
    for s in range(n_sides):
        state.sides[s, LOG_WEIGHT], state.sides[s, COUPLING] = -INF, 0.0
    for h in range(target.start[u], target.start[u + 1]):
        if state.spin[target.neighbor[h]] > 0:
            last = state.spin[target.neighbor[h]] - 1
            n_possible += state.sides[last, LOG_WEIGHT] < 0.0
            state.sides[last, LOG_WEIGHT] = 0.0
            state.sides[last, COUPLING] += target.beta[h]
            total += target.beta[h]
    return n_possible, last, total


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def keep_marker(state: State, n_sides: Index) -> tuple[Index, Index, cython.bint]:
    """Of the sides that were found, keep those that may take the pooled site, which has a marker.

    That is the side that holds the marker or, if there is none, each one that holds no other. Returns how many are
    left, the last of them, and whether a side holds the marker.
    """
    k = state.counters[N_CLUSTERS]
    marker, n_possible, last = pooled_marker(state), 0, 0
    is_held: cython.bint = False
    for s in range(n_sides):
        is_held |= marker_in(state.total, k + s) == marker
    for s in range(n_sides):
        held = marker_in(state.total, k + s)
        if held != marker and (held > 0 or is_held):
            state.sides[s, LOG_WEIGHT] = -INF
        if state.sides[s, LOG_WEIGHT] == 0.0:
            n_possible += 1
            last = s
    return n_possible, last, is_held


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def weigh_sides(target: Target, state: State, n_sides: Index, n_bins: Index) -> cython.void:
    """Add to the log weight of each side that was found the log posterior with the pooled site there, less a constant.

    The log marginals of blocks that this takes are kept: those of a side in its slot, those with the site in `sides`.
    """
    for s in range(n_sides):
        if state.sides[s, LOG_WEIGHT] < 0.0:
            continue
        slot = state.counters[N_CLUSTERS] + s
        m = state.size[slot]
        log_weight: Real = state.sides[s, COUPLING] + target.proposal_log_w[m + 1] - target.proposal_log_w[m]
        log_weight += bins_log_predictive(target, state, slot, n_bins, 1)
        if target.block.shape[0] > 0:
            if state.sides[s, IS_STALE] > 0.0:
                refresh(target, state, slot)
                state.sides[s, IS_STALE] = 0.0
            for p in range(state.joined.shape[0]):
                state.joined[p] = state.total[slot, p] + state.pool_total[p]
            state.sides[s, DENSE_AFTER] = dense_log_marginal(target, state)
            log_weight += state.sides[s, DENSE_AFTER] - state.dense_value[slot]
        state.sides[s, LOG_WEIGHT] = log_weight


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def choose_side(state: State, n_sides: Index, wanted: Index, inv_temperature: Real, rng: Random) -> tuple[Index, Real]:
    """A side drawn by the weights, or the one that is wanted unless that is -1; and its probability."""
    top: Real = -INF
    total: Real = 0.0
    for s in range(n_sides):
        top = max(top, state.sides[s, LOG_WEIGHT])
    for s in range(n_sides):
        if state.sides[s, LOG_WEIGHT] > -INF:  # weights that underflow would make impossible what is only unlikely
            state.sides[s, LOG_WEIGHT] = math.exp(max(inv_temperature * (state.sides[s, LOG_WEIGHT] - top), -600.0))
            total += state.sides[s, LOG_WEIGHT]
        else:
            state.sides[s, LOG_WEIGHT] = 0.0
    if wanted < 0:
        point: Real = rng.random() * total
        for s in range(n_sides):
            if state.sides[s, LOG_WEIGHT] > 0.0:
                wanted = s
                point -= state.sides[s, LOG_WEIGHT]
                if point < 0.0:
                    break
    return wanted, state.sides[wanted, LOG_WEIGHT] / total


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def allocate_along(
    target: Target,
    state: State,
    seeds: tuple[Index, Index, Index],
    n_sides: Index,
    second: Index,
    n_sites: Index,
    forced: Index,
    is_ordered: cython.bint,
    floor: Real,
    inv_temperature: Real,
    rng: Random,
) -> tuple[Real, Real, Index, Index]:
    """Let n_sides sides grow from the seeds through the n_sites sites of the clusters of the seeds.

    Two sides are founded by the seeds 0 and `second`, three by all of them; of two seeds, the third repeats the second.
    Side s + 1 is built in slot k + s and written to `spin`, which is zero before. FREE draws each choice. FORCED
    repeats the present clusters, and ends early where log q falls below `floor` or growth cannot give them. The order
    of the sites is left in `member`, or taken from there if `is_ordered`. Returns log q, -inf where there are no such
    sides, the sum of couplings between the sides, and how many sites were placed and are reached.
    """
    k = state.counters[N_CLUSTERS]
    n_seeds = 2 if seeds[2] == seeds[1] else 3
    has_markers: cython.bint = target.marker_size.shape[0] > 0
    cut: Real = 0.0
    n_reached, log_q = 0, 0.0
    chance, least = 1.0, math.exp(floor)  # of the choices since log q was written, and what rejects them
    for q in range(n_sites):
        if not is_ordered and q < n_seeds:
            state.member[q] = at(seeds, q)
        elif not is_ordered:
            state.member[q] = pop(state, n_reached)
            n_reached -= 1
        u = state.member[q]
        n_bins = pool(target, state, q, q + 1)
        n_possible, side, coupling = find_sides(target, state, u, n_sides)
        wanted = -1
        is_founder: cython.bint = q == 0 or q == second or (q == 2 and n_sides == 3)
        if has_markers and n_pooled(state) > 0.0:
            n_possible, side, is_held = keep_marker(state, n_sides)
            if is_held if is_founder else n_possible == 0:
                return -INF, cut, q, n_reached
        if is_founder:
            side = 0 if q == 0 else 1 if q == second else 2
        elif forced == FORCED:
            own, other = state.label[seeds[0]], state.label[at(seeds, second)]
            side = 0 if state.label[u] == own else 1 if state.label[u] == other else 2
            wanted = side
            if state.sides[side, LOG_WEIGHT] < 0.0:
                return -INF, cut, q, n_reached
        if n_possible > 1 and not is_founder:
            weigh_sides(target, state, n_sides, n_bins)
            side, share = choose_side(state, n_sides, wanted, inv_temperature, rng)
            chance *= share
            if chance < least:
                return log_q + math.log(chance), cut, q, n_reached
            if chance < 1e-30:
                log_q += math.log(chance)
                chance, least = 1.0, math.exp(floor - log_q)
            state.dense_value[k + side] = state.sides[side, DENSE_AFTER]
        else:
            state.sides[side, IS_STALE] = 1.0
        state.spin[u] = side + 1
        cut += coupling - state.sides[side, COUPLING]
        add_pooled(target, state, k + side, 1, n_bins, 1)
        if not is_ordered and q == n_seeds - 1:
            for s in range(n_seeds):
                n_reached = reach(target, state, state.member[s], seeds, n_reached, rng)
        elif not is_ordered and q >= n_seeds:
            n_reached = reach(target, state, u, seeds, n_reached, rng)
    for s in range(n_sides):
        if state.sides[s, IS_STALE] > 0.0:
            refresh(target, state, k + s)
    return log_q + math.log(chance), cut, n_sites, n_reached


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def forget(state: State, n_placed: Index, n_reached: Index) -> cython.void:
    """Leave no trace of a growth in the scratch space."""
    for q in range(n_placed):
        state.spin[state.member[q]] = 0
    for q in range(n_reached):
        state.place[state.queue[q]] = 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def discard(state: State, n_sides: Index, n_placed: Index, n_reached: Index) -> cython.void:
    """Discard what a growth has built."""
    forget(state, n_placed, n_reached)
    discard_clusters(state, state.counters[N_CLUSTERS], n_sides)
