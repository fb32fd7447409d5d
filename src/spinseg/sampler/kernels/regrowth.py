"""Split, merge, redraw and regroup connected clusters along a growth order.

Two neighboring sites, the seeds, are drawn whatever the partition is. If they lie in one cluster, it may be split. If
not, their clusters may be merged, or the border between them redrawn. With a third seed nearby, two clusters may be
regrouped into three, or three into two. In each case sides grow from all or some of the seeds (`growth.py`). The order
of growth has the same probability in both directions, and cancels.
"""

import cython
from cython.cimports.libc import math

from spinseg.sampler.kernels.clusters import (
    change_if_merged,
    change_if_replaced,
    merge_clusters,
    replace_clusters,
)
from spinseg.sampler.kernels.constraints import couplings_between, n_marked
from spinseg.sampler.kernels.growth import allocate_along, discard, forget
from spinseg.sampler.kernels.kinds import keep_kinds, reject_kinds, replace_kinds
from spinseg.sampler.kernels.reallocation import slots_of
from spinseg.sampler.kernels.state import (
    FORCED,
    FREE,
    INF,
    N_CLUSTERS,
    Index,
    Plan,
    Random,
    Real,
    State,
    Target,
    at,
    has_kinds,
)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def seed_weight(delay: Real) -> Real:
    """How likely an edge is to be drawn for its ends to be seeds: the more so, the more it looks like a boundary."""
    return delay / (1.0 + delay) + 0.02


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def draw_seeds(target: Target, rng: Random) -> tuple[Index, Index, Index]:
    """Three sites: the ends of an edge drawn by its weight, in either order, and where a walk from the second ends.

    The third may be one of the others. All three are the same where a site without edges was drawn.
    """
    i, beyond = 0, target.seed_weight.shape[0] - 1
    point = rng.random() * target.seed_weight[beyond]
    while beyond - i > 1:
        middle = (i + beyond) >> 1
        if target.seed_weight[middle] <= point:
            i = middle
        else:
            beyond = middle
    j: Index = i
    point -= target.seed_weight[i]
    for h in range(target.start[i], target.start[i + 1]):
        j = target.neighbor[h]
        point -= seed_weight(target.delay[h])
        if point < 0.0:
            break
    third: Index = j
    while i != j:
        n_neighbors = target.start[third + 1] - target.start[third]
        third = target.neighbor[target.start[third] + rng.below(n_neighbors)]
        if rng.random() < 0.2:
            break
    return i, j, third


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def plan_regrowth(
    state: State, seeds: tuple[Index, Index, Index], plan: Plan, point: Real
) -> tuple[Index, Index, Index, Index]:
    """What to try with these seeds, as (second_old, n_old, second_new, n_new); n_old is 0 for nothing.

    The clusters of n_old seeds are to become n_new, where two are those of seeds 0 and `second`. `point` is uniform on
    (0, 1), and its shares are the same for a move and for its reverse: of splits and merges, of redrawn borders, and of
    regroupings. Of two clusters that are regrouped, the first two seeds are in one, and the third is in the other.
    """
    i, j, third = seeds[0], seeds[1], seeds[2]
    a, b, c = state.label[i], state.label[j], state.label[third]
    until_merge, until_redraw = plan.growth_shares[0], plan.growth_shares[1]
    if i == j or (a == b and until_merge <= point < until_redraw):
        return 1, 0, 1, 0
    if point < until_merge:
        return (1, 1, 1, 2) if a == b else (1, 2, 1, 1)
    if point < until_redraw:
        return 1, 2, 1, 2
    if third in (i, j) or c in (a, b):
        return 1, 0, 1, 0
    return (2, 2, 1, 3) if a == b else (1, 3, 2, 2)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def regrow_one(
    target: Target,
    state: State,
    seeds: tuple[Index, Index, Index],
    slots: tuple[Index, Index, Index],
    n_sites: Index,
    log_u: Real,
    inv_temperature: Real,
    rng: Random,
) -> cython.bint:
    """Try to merge the clusters of the first two seeds; returns whether they were."""
    a, b = slots[0], slots[1]
    if target.marker_size.shape[0] > 0 and n_marked(state.total, a) > 0.0 and n_marked(state.total, b) > 0.0:
        return False
    i, j = (seeds[0], seeds[1]) if state.size[a] <= state.size[b] else (seeds[1], seeds[0])
    change = change_if_merged(target, state, a, b) + couplings_between(target, state, i, j)
    log_ratio = 0.0
    if has_kinds(target):
        change_of_kinds, log_ratio = replace_kinds(target, state, slots, 2, 1, inv_temperature, rng)
        change += change_of_kinds
    # log q is at most 0: most merges are rejected before anything grows, the rest as soon as it is too low.
    floor = log_u - inv_temperature * change - log_ratio
    accepted: cython.bint = False
    if floor < 0.0:
        log_q, _, n_placed, n_reached = allocate_along(
            target, state, seeds, 2, 1, n_sites, FORCED, False, floor, inv_temperature, rng
        )
        discard(state, 2, n_placed, n_reached)
        accepted = log_q > floor
    if accepted:
        if has_kinds(target):
            keep_kinds(state, a, 1)
        merge_clusters(target, state, a, b, change)
    elif has_kinds(target):
        reject_kinds(target, state, slots, 2, 1)
    return accepted


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def regrow_several(
    target: Target,
    state: State,
    seeds: tuple[Index, Index, Index],
    slots: tuple[Index, Index, Index],
    second_old: Index,
    n_old: Index,
    second_new: Index,
    n_new: Index,
    n_sites: Index,
    log_u: Real,
    inv_temperature: Real,
    rng: Random,
) -> cython.bint:
    """Try n_new clusters in place of the n_old clusters of the seeds; returns whether that was accepted.

    `second_old` and `second_new` are the `second` of `allocate_along` for the present clusters and for the new ones.
    The order of the sites is drawn once.
    """
    log_q_old, cut_old = 0.0, 0.0
    if n_old > 1:
        log_q_old, cut_old, n_placed, n_reached = allocate_along(
            target, state, seeds, n_old, second_old, n_sites, FORCED, False, -INF, inv_temperature, rng
        )
        discard(state, n_old, n_placed, n_reached)
        if log_q_old == -INF:
            return False
    log_q, cut, n_placed, n_reached = allocate_along(
        target, state, seeds, n_new, second_new, n_sites, FREE, n_old > 1, -INF, inv_temperature, rng
    )
    if log_q == -INF:
        discard(state, n_new, n_placed, n_reached)
        return False
    change = change_if_replaced(target, state, slots, n_old, n_new) + cut_old - cut
    log_ratio = log_q_old - log_q
    if has_kinds(target):
        change_of_kinds, log_ratio_of_kinds = replace_kinds(target, state, slots, n_old, n_new, inv_temperature, rng)
        change, log_ratio = change + change_of_kinds, log_ratio + log_ratio_of_kinds
    accepted: cython.bint = log_u < inv_temperature * change + log_ratio
    if has_kinds(target):
        if accepted:
            keep_kinds(state, state.counters[N_CLUSTERS], n_new)
        else:
            reject_kinds(target, state, slots, n_old, n_new)
    if accepted:
        replace_clusters(state, state.spin, slots, n_old, n_new, n_sites, change)
        forget(state, n_sites, 0)
    else:
        discard(state, n_new, n_sites, 0)
    return accepted


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def regrow(target: Target, state: State, plan: Plan, rng: Random) -> tuple[Index, cython.bint]:
    """Try one split, merge, redraw or regrouping: of m sites with probability min(1, plan.growth_limit / m)^1.5.

    So the expected work of an attempt has a bound. The reverse has the same sites, and the same probability. Returns
    the kind, or -1 for nothing, and whether it was accepted.
    """
    inv_temperature = plan.inv_temperature
    seeds: tuple[Index, Index, Index] = draw_seeds(target, rng)
    limit = plan.growth_limit * (1.0 - rng.random()) ** (-2 / 3)
    log_u = math.log(1.0 - rng.random())
    second_old, n_old, second_new, n_new = plan_regrowth(state, seeds, plan, rng.random())
    kind = 0 if n_old == 1 else 1 if n_new == 1 else 2 if n_old == n_new else 3  # split, merge, redraw or regroup
    if kind < 3:
        seeds = seeds[0], seeds[1], seeds[1]  # growth is not to enter the cluster of the third
    slots = slots_of(state, (seeds[0], at(seeds, second_old), seeds[2]))
    n_sites = 0
    for s in range(n_old):
        n_sites += state.size[at(slots, s)]
    if n_old == 0 or n_sites > limit:
        return -1, False
    if kind == 1:
        return kind, regrow_one(target, state, seeds, slots, n_sites, log_u, inv_temperature, rng)
    return kind, regrow_several(
        target, state, seeds, slots, second_old, n_old, second_new, n_new, n_sites, log_u, inv_temperature, rng
    )
