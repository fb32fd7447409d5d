"""Kinds of regions: regions are placed in kinds as sites are in regions.

`state.nested` holds the kinds. Its "sites" are the ids of regions: label[id] is the kind of a region, and the size of a
kind the number of its regions. Its statistics are those of all their sites, and its pool is that of the state. There is
one only where the target has a table of kinds.

A move that replaces regions takes the old ones out of their kinds, and draws kinds for the new ones, one after the
other: each with the probability that it has given the kinds of all others. The reverse would draw the old kinds so.
"""

import cython
from cython.cimports.libc import math

from spinseg.sampler.kernels.clusters import (
    clear_slot,
    discard_clusters,
    drop_slot,
    likelihood_at,
    merge_clusters,
    merged_log_marginal,
    refresh,
    replace_clusters,
    slot_log_marginal,
    update_slot,
)
from spinseg.sampler.kernels.likelihood import bin_value
from spinseg.sampler.kernels.reallocation import order_from
from spinseg.sampler.kernels.state import (
    FORCED,
    FREE,
    INF,
    LOG_POSTERIOR,
    N_CLUSTERS,
    Index,
    Plan,
    Random,
    Real,
    State,
    Target,
    at,
)

# Rows of Target.kind_table, at numbers of regions: log_w, the same with its -inf filled in, so that every kind can be
# proposed, and the log of the sum over all partitions of this number of regions.
LOG_W, PROPOSAL_LOG_W, LOG_TOTAL = range(3)
LOG_V, PROPOSAL_LOG_V = range(2)  # of Target.kind_log_v, likewise, at numbers of regions and of kinds


@cython.ccall
@cython.nogil
@cython.exceptval(check=False)
def sum_kinds(target: Target, state: State) -> cython.void:
    """Sum the statistics of kinds from those of their regions: at the start, and where rounding errors add up."""
    for kind in range(state.nested.counters[N_CLUSTERS]):
        clear_slot(state.nested, kind)
    for slot in range(state.counters[N_CLUSTERS]):
        kind = kind_of(state, slot)
        state.nested.size[kind] += 1
        for d in range(state.nested.counts.shape[0]):
            state.nested.counts[d, kind] += state.counts[d, slot]
        for s in range(state.nested.total.shape[1]):
            state.nested.total[kind, s] += state.total[slot, s]
    for kind in range(state.nested.counters[N_CLUSTERS]):
        for d in range(state.nested.counts.shape[0]):
            state.nested.value[d, kind] = bin_value(target, d, state.nested.counts[d, kind])
        refresh(target, state.nested, kind)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def kinds_are_full(state: State, capacity: Index) -> cython.bint:
    """Whether there is no room for a new kind, or for the destinations of a spin-cluster."""
    n_kinds = state.nested.counters[N_CLUSTERS]
    return n_kinds + 7 >= state.nested.size.shape[0] or state.counters[N_CLUSTERS] + n_kinds + 2 >= capacity


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def kind_of(state: State, slot: Index) -> Index:
    """The slot of the kind of the region in a slot."""
    return state.nested.slot_of[state.nested.label[state.id_of[slot]]]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def set_kind(state: State, slot: Index, kind: Index) -> cython.void:
    """Note that the region in a slot is of a kind, whose statistics have it already."""
    state.nested.label[state.id_of[slot]] = state.nested.id_of[kind]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def log_v_of_kinds(target: Target, which: Index, n_regions: Index, n_kinds: Index) -> Real:
    """LOG_V or PROPOSAL_LOG_V of a number of kinds, given the number of regions."""
    return target.kind_log_v[which, min(n_regions, target.kind_log_v.shape[1] - 1), n_kinds]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def log_prior_of_kinds(target: Target, kinds: State, n_regions: Index) -> Real:
    """Log probability of the kinds given the number of regions."""
    n_kinds = kinds.counters[N_CLUSTERS]
    log_p: Real = log_v_of_kinds(target, LOG_V, n_regions, n_kinds) - target.kind_table[LOG_TOTAL, n_regions]
    for kind in range(n_kinds):
        log_p += target.kind_table[LOG_W, kinds.size[kind]]
    return log_p


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def pool_regions(state: State, slots: tuple[Index, Index, Index], n: Index) -> Index:
    """Sum the statistics of the regions in slots[:n] into the pool; returns how many bins they occupy."""
    n_bins = 0
    for d in range(state.counts.shape[0]):
        count: cython.int = 0
        for s in range(n):
            count += state.counts[d, at(slots, s)]
        if count > 0:
            state.pool_bin[n_bins], state.pool_count[n_bins] = d, count
            n_bins += 1
    for p in range(state.pool_total.shape[0]):
        state.pool_total[p] = 0.0
        for s in range(n):
            state.pool_total[p] += state.total[at(slots, s), p]
    return n_bins


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def pool_region(state: State, slot: Index) -> Index:
    """Pool the region in a slot; returns how many bins it occupies."""
    return pool_regions(state, (slot, slot, slot), 1)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def take_out(target: Target, kinds: State, kind: Index, n_bins: Index) -> cython.void:
    """Take the pooled region out of a kind, which vanishes if it was the last one."""
    update_slot(target, kinds, kind, 1, n_bins, -1)
    if kinds.size[kind] == 0:
        drop_slot(kinds, kind)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def put_in(target: Target, kinds: State, kind: Index, n_bins: Index) -> cython.void:
    """Put the pooled region into a kind, new if it is the first empty slot."""
    update_slot(target, kinds, kind, 1, n_bins, 1)
    if kind == kinds.counters[N_CLUSTERS]:
        kinds.counters[N_CLUSTERS] += 1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def place_region(
    target: Target, kinds: State, n_regions: Index, n_bins: Index, wanted: Index, inv_temperature: Real, rng: Random
) -> tuple[Index, Real, Real]:
    """Put the pooled region, one of n_regions, into a kind that is drawn, or into the one wanted unless that is -1.

    Returns the kind, the log of its probability, and the log likelihood of the region given the others of the kind.
    """
    n_kinds, top, total = kinds.counters[N_CLUSTERS], -INF, 0.0
    for kind in range(n_kinds + 1):
        m = kinds.size[kind]
        kinds.bond_weight[kind] = likelihood_at(target, kinds, kind, n_bins, 1)
        kinds.log_weight[kind] = (
            kinds.bond_weight[kind] + target.kind_table[PROPOSAL_LOG_W, m + 1] - target.kind_table[PROPOSAL_LOG_W, m]
        )
        if kind == n_kinds:
            before = log_v_of_kinds(target, PROPOSAL_LOG_V, n_regions, n_kinds)
            kinds.log_weight[kind] += log_v_of_kinds(target, PROPOSAL_LOG_V, n_regions, n_kinds + 1) - before
        top = max(top, kinds.log_weight[kind])
    for kind in range(n_kinds + 1):  # weights that underflow would make impossible what is only unlikely
        kinds.log_weight[kind] = max(inv_temperature * (kinds.log_weight[kind] - top), -600.0)
        total += math.exp(kinds.log_weight[kind])
    chosen = wanted
    if wanted < 0:
        point, chosen = rng.random() * total, -1
        while point >= 0.0 and chosen < n_kinds:
            chosen += 1
            point -= math.exp(kinds.log_weight[chosen])
    log_q, log_p = kinds.log_weight[chosen] - math.log(total), kinds.bond_weight[chosen]
    put_in(target, kinds, chosen, n_bins)
    return chosen, log_q, log_p


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def deal_each_kind(target: Target, state: State, rng: Random) -> cython.void:
    """Give every region the kind that suits it best, given the regions before it."""
    discard_clusters(state.nested, 0, state.nested.counters[N_CLUSTERS])
    state.nested.counters[N_CLUSTERS] = 0
    for slot in range(state.counters[N_CLUSTERS]):
        n_bins = pool_region(state, slot)
        kind, _, _ = place_region(target, state.nested, state.counters[N_CLUSTERS], n_bins, -1, 1e7, rng)
        set_kind(state, slot, kind)


def deal_kinds(target: Target, state: State, generator):
    """Give every region the kind that suits it best, given the regions before it."""
    rng = Random(generator)
    with cython.nogil:
        deal_each_kind(target, state, rng)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def take_kinds(
    target: Target, state: State, slots: tuple[Index, Index, Index], n_old: Index, inv_temperature: Real, rng: Random
) -> tuple[Real, Real]:
    """Take the regions in slots[:n_old] out of their kinds.

    Returns the log probability of drawing these kinds again, and their log likelihood. `touched` then has the ids of
    the kinds, and `rank` whether other regions are left in them, for `return_kinds`.
    """
    k, log_q, log_p = state.counters[N_CLUSTERS], 0.0, 0.0
    for s in range(n_old):
        state.nested.touched[s] = state.nested.label[state.id_of[at(slots, s)]]
    for s in range(n_old):
        n_bins = pool_region(state, at(slots, s))
        take_out(target, state.nested, state.nested.slot_of[state.nested.touched[s]], n_bins)
    for s in range(n_old):
        state.nested.rank[s] = state.nested.slot_of[state.nested.touched[s]] < state.nested.counters[N_CLUSTERS]
    for s in range(n_old):
        n_bins = pool_region(state, at(slots, s))
        kind, log_share, log_likelihood = place_region(
            target, state.nested, k, n_bins, kind_before(state, slots, s), inv_temperature, rng
        )
        set_kind(state, at(slots, s), kind)
        log_q, log_p = log_q + log_share, log_p + log_likelihood
    for s in range(n_old):
        n_bins = pool_region(state, at(slots, s))
        take_out(target, state.nested, kind_of(state, at(slots, s)), n_bins)
    return log_q, log_p


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def kind_before(state: State, slots: tuple[Index, Index, Index], s: Index) -> Index:
    """The slot of the kind that `take_kinds` took region s out of, now that the regions before it are back."""
    if state.nested.rank[s]:
        return state.nested.slot_of[state.nested.touched[s]]
    for t in range(s):
        if state.nested.touched[t] == state.nested.touched[s]:
            return kind_of(state, at(slots, t))
    return state.nested.counters[N_CLUSTERS]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def return_kinds(target: Target, state: State, slots: tuple[Index, Index, Index], n_regions: Index) -> cython.void:
    """Put the regions back that `take_kinds` took out of their kinds."""
    for s in range(n_regions):
        n_bins = pool_region(state, at(slots, s))
        kind = kind_before(state, slots, s)
        put_in(target, state.nested, kind, n_bins)
        set_kind(state, at(slots, s), kind)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def replace_kinds(
    target: Target,
    state: State,
    slots: tuple[Index, Index, Index],
    n_old: Index,
    n_new: Index,
    inv_temperature: Real,
    rng: Random,
) -> tuple[Real, Real]:
    """Draw kinds for n_new regions that replace those in slots[:n_old]: in slots from k on or, if one, of their sites.

    Returns the change of log posterior, and log q of the old kinds less that of the new ones. Then `keep_kinds` or
    `reject_kinds` must follow.
    """
    k = state.counters[N_CLUSTERS]
    k_new, before = k - n_old + n_new, log_prior_of_kinds(target, state.nested, k)
    log_q, log_p = take_kinds(target, state, slots, n_old, inv_temperature, rng)
    log_ratio, change = log_q, -log_p
    for s in range(n_new):
        n_bins = pool_new(state, slots, n_old, n_new, s)
        kind, log_share, log_likelihood = place_region(target, state.nested, k_new, n_bins, -1, inv_temperature, rng)
        state.nested.first[s] = state.nested.id_of[kind]
        log_ratio, change = log_ratio - log_share, change + log_likelihood
    return change + (log_prior_of_kinds(target, state.nested, k_new) - before), log_ratio


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def pool_new(state: State, slots: tuple[Index, Index, Index], n_old: Index, n_new: Index, s: Index) -> Index:
    """Pool the s-th of the regions that are to replace others; returns how many bins it occupies."""
    if n_new == 1:
        return pool_regions(state, slots, n_old)
    new = state.counters[N_CLUSTERS] + s
    return pool_region(state, new)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def reject_kinds(
    target: Target, state: State, slots: tuple[Index, Index, Index], n_old: Index, n_new: Index
) -> cython.void:
    """Give the old regions their kinds back."""
    for s in range(n_new):
        n_bins = pool_new(state, slots, n_old, n_new, s)
        take_out(target, state.nested, state.nested.slot_of[state.nested.first[s]], n_bins)
    return_kinds(target, state, slots, n_old)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def keep_kinds(state: State, first: Index, n_new: Index) -> cython.void:
    """Note the kinds of the new regions, which are in the slots from `first` on."""
    for s in range(n_new):
        state.nested.label[state.id_of[first + s]] = state.nested.first[s]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def change_kind(target: Target, state: State, plan: Plan, rng: Random) -> tuple[Index, cython.bint]:
    """Draw the kind of a region again; returns 0, and whether it was accepted."""
    slot = rng.below(state.counters[N_CLUSTERS])
    log_u, slots, inv_temperature = math.log(1.0 - rng.random()), (slot, slot, slot), plan.inv_temperature
    change, log_ratio = replace_kinds(target, state, slots, 1, 1, inv_temperature, rng)
    accepted: cython.bint = log_u < inv_temperature * change + log_ratio
    if accepted:
        keep_kinds(state, slot, 1)
        state.scalars[LOG_POSTERIOR] += change
    else:
        reject_kinds(target, state, slots, 1, 1)
    return 0, accepted


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def gather_regions(state: State, kind: Index, n: Index) -> Index:
    """Append the ids of the regions of a kind to member[:n] of the kinds; returns how many there are then."""
    for slot in range(state.counters[N_CLUSTERS]):
        if kind_of(state, slot) == kind:
            state.nested.member[n] = state.id_of[slot]
            n += 1
    return n


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def allocate_regions(
    target: Target, state: State, n_regions: Index, forced: Index, floor: Real, inv_temperature: Real, rng: Random
) -> Real:
    """Allocate member[:n_regions] of the kinds in turn to two new ones, founded by the first two; returns log q.

    FREE draws each choice, and FORCED repeats the present kinds of the founders, or ends when log q falls below
    `floor`. The side of a region, 1 or 2, is written to `spin`.
    """
    log_q = 0.0
    base = state.nested.counters[N_CLUSTERS]
    for q in range(n_regions):
        slot = state.slot_of[state.nested.member[q]]
        n_bins = pool_region(state, slot)
        side: Index = q
        if q > 1:
            gain: Real = likelihood_at(target, state.nested, base + 1, n_bins, 1) - likelihood_at(
                target, state.nested, base, n_bins, 1
            )
            for s in range(2):
                m, sign = state.nested.size[base + s], 2.0 * s - 1.0
                gain += sign * (target.kind_table[PROPOSAL_LOG_W, m + 1] - target.kind_table[PROPOSAL_LOG_W, m])
            gain = min(max(inv_temperature * gain, -600.0), 600.0)
            share = 1.0 / (1.0 + math.exp(-gain))  # of side 1
            if forced == FORCED:
                own = state.nested.label[state.nested.member[0]]
                side = 1 * (state.nested.label[state.nested.member[q]] != own)
            else:
                side = 1 * (rng.random() < share)
            log_q -= math.log1p(math.exp(-gain if side == 1 else gain))
            if forced == FORCED and log_q < floor:
                return log_q
        state.nested.spin[state.nested.member[q]] = side + 1
        update_slot(target, state.nested, base + side, 1, n_bins, 1)
    return log_q


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def split_or_merge_kinds(target: Target, state: State, plan: Plan, rng: Random) -> tuple[Index, cython.bint]:
    """Try to split the kind of two regions (0), or to merge their kinds (1); returns which, and whether it was done.

    The two regions are any, so that the reverse draws them as often; -1 if there is one alone.
    """
    inv_temperature, k = plan.inv_temperature, state.counters[N_CLUSTERS]
    if k < 2:
        return -1, False
    log_u = math.log(1.0 - rng.random())
    first: Index = rng.below(k)
    second: Index = rng.below(k - 1)
    second += second >= first
    a, b, n_kinds = kind_of(state, first), kind_of(state, second), state.nested.counters[N_CLUSTERS]
    n = gather_regions(state, a, 0)
    change: Real = (
        -slot_log_marginal(state.nested, a)
        - target.kind_table[LOG_W, state.nested.size[a]]
        - log_v_of_kinds(target, LOG_V, k, n_kinds)
    )
    if a != b:
        n = gather_regions(state, b, n)
        change += merged_log_marginal(target, state.nested, a, b) - slot_log_marginal(state.nested, b)
        change += (
            target.kind_table[LOG_W, n]
            - target.kind_table[LOG_W, state.nested.size[b]]
            + log_v_of_kinds(target, LOG_V, k, n_kinds - 1)
        )
    floor = log_u - inv_temperature * change
    if a != b and not floor < 0.0:
        return 1, False
    a_region, b_region = state.id_of[first], state.id_of[second]
    order_from(state.nested.member, (a_region, b_region, b_region), 2, n, rng)
    log_q = allocate_regions(target, state, n, FREE if a == b else FORCED, floor, inv_temperature, rng)
    if a != b:
        discard_clusters(state.nested, n_kinds, 2)
        accepted: cython.bint = floor < log_q
        if accepted:
            merge_clusters(target, state.nested, a, b, change)
    else:
        for s in range(2):
            change += slot_log_marginal(state.nested, n_kinds + s)
            change += target.kind_table[LOG_W, state.nested.size[n_kinds + s]]
        change += log_v_of_kinds(target, LOG_V, k, n_kinds + 1)
        accepted = log_u < inv_temperature * change - log_q
        if accepted:
            replace_clusters(state.nested, state.nested.spin, (a, a, a), 1, 2, n, change)
        else:
            discard_clusters(state.nested, n_kinds, 2)
    if accepted:
        state.scalars[LOG_POSTERIOR] += change
    return 1 * (a != b), accepted


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def weigh_with_kinds(
    target: Target, state: State, begin: Index, end: Index, old: Index, n_touched: Index, n_bins: Index
) -> Index:
    """As the second part of `weigh_touching`: here a new region may be of any kind, or of a new one.

    Destination n_touched + j is a new region of the kind in slot j. Returns how many destinations there are.
    """
    n_members, own, n_kinds = end - begin, kind_of(state, old), state.nested.counters[N_CLUSTERS]
    rest = state.size[old] - n_members
    k_rest: Index = state.counters[N_CLUSTERS] - (rest == 0)
    for kind in range(n_kinds + 1):
        state.nested.bond_weight[kind] = likelihood_at(target, state.nested, kind, n_bins, -1 if kind == own else 1)

    state.nested.size[own] -= rest == 0  # as if the region of the spin-cluster were gone, if that is all of it
    is_gone: cython.bint = state.nested.size[own] == 0
    prior: Real = 0.0
    n_forbidden: Index = 0  # of the kinds without it, but for the one that the new region joins
    for kind in range(n_kinds):
        value: Real = target.kind_table[LOG_W, state.nested.size[kind]] if state.nested.size[kind] > 0 else 0.0
        n_forbidden += value == -INF
        prior += value if value > -INF else 0.0
    n_left: Index = n_kinds - is_gone
    with_none: Real = (
        log_v_of_kinds(target, LOG_V, k_rest, n_left) - target.kind_table[LOG_TOTAL, k_rest] if n_left > 0 else 0.0
    )
    with_one: Real = -target.kind_table[LOG_TOTAL, k_rest + 1]
    for t in range(n_touched):
        slot = state.touched[t]
        m: Index = rest if slot == old else state.size[slot]
        state.log_weight[t] += state.nested.bond_weight[kind_of(state, slot)] + target.log_v[k_rest]
        state.log_weight[t] += target.log_w[m + n_members] - target.log_w[m]
        state.log_weight[t] += prior + with_none if n_forbidden == 0 else -INF
    new: Index = old if rest == 0 else k_rest
    n_destinations: Index = n_touched + n_kinds + (not is_gone)
    for t in range(n_touched, n_destinations):
        kind = t - n_touched
        m = state.nested.size[kind]
        value = target.kind_table[LOG_W, m] if m > 0 else 0.0
        state.touched[t], state.bond_weight[t] = new, 0.0
        state.log_weight[t] = state.nested.bond_weight[kind] + target.log_v[k_rest + 1] + target.log_w[n_members]
        state.log_weight[t] += (
            with_one + log_v_of_kinds(target, LOG_V, k_rest + 1, n_left + (m == 0)) + target.kind_table[LOG_W, m + 1]
        )
        state.log_weight[t] += prior - (value if value > -INF else 0.0)
        if n_forbidden > (value == -INF):
            state.log_weight[t] = -INF
    state.nested.size[own] += rest == 0
    state.rank[new] = n_touched + own if rest == 0 else n_touched
    return n_destinations


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def move_between_kinds(
    target: Target, state: State, n_members: Index, there: Index, old: Index, n_bins: Index
) -> cython.void:
    """Move the pooled spin-cluster, now in slot `old`, to the kind of its destination, before it moves itself."""
    own, new = kind_of(state, old), state.touched[there]
    leaves: cython.bint = state.size[old] == n_members  # nothing of its region
    founds: cython.bint = new == (old if leaves else state.counters[N_CLUSTERS])
    kind = kind_of(state, new)
    if founds:
        first = there
        while first > 0 and state.touched[first - 1] == new:
            first -= 1
        kind = there - first
    update_slot(target, state.nested, own, 1 if leaves else 0, n_bins, -1)
    update_slot(target, state.nested, kind, 1 if founds else 0, n_bins, 1)
    if founds:
        state.nested.counters[N_CLUSTERS] += kind == state.nested.counters[N_CLUSTERS]
        set_kind(state, new, kind)
    if state.nested.size[own] == 0:
        drop_slot(state.nested, own)
