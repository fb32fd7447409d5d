"""One sweep of generalized Swendsen-Wang: for each spin-cluster weigh its destinations, choose one, move there."""

import cython
from cython.cimports.libc import math

from spinseg.sampler.kernels.clusters import drop_slot, likelihood_at, pool, update_slot
from spinseg.sampler.kernels.constraints import holds_part, leaves_connected, n_marked, n_pooled
from spinseg.sampler.kernels.kinds import kinds_are_full, move_between_kinds, weigh_with_kinds
from spinseg.sampler.kernels.likelihood import bin_value, dense_log_marginal
from spinseg.sampler.kernels.state import (
    ANYWHERE,
    DONE,
    FULL,
    INF,
    LAM,
    LOG_POSTERIOR,
    N_CLUSTERS,
    N_SPIN_CLUSTERS,
    NEXT_INDEX,
    REACH,
    STOP,
    STOPPED,
    Index,
    Random,
    Real,
    State,
    Target,
    has_kinds,
    is_connected,
)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def weigh_likelihood(target: Target, state: State, old: Index, n_bins: Index, n_slots: Index) -> cython.void:
    """log_weight[j] = log p(y_C | y_Aj): C the pooled sites, now in slot `old`, and A_j those of slot j without C."""
    tabulated = True
    for quad in range((n_slots + 3) // 4):  # four slots at a time keep their sums in registers
        j0 = 4 * quad
        j1, j2, j3 = j0 + 1, j0 + 2, j0 + 3
        g0: Real = 0.0
        g1: Real = 0.0
        g2: Real = 0.0
        g3: Real = 0.0
        for t in range(n_bins):
            d = state.pool_bin[t]
            first = target.table_start[d] + state.pool_count[t]
            if target.table_start[d] < 0:
                tabulated = False
                continue
            g0 += target.table[first + state.counts[d, j0]] - state.value[d, j0]
            g1 += target.table[first + state.counts[d, j1]] - state.value[d, j1]
            g2 += target.table[first + state.counts[d, j2]] - state.value[d, j2]
            g3 += target.table[first + state.counts[d, j3]] - state.value[d, j3]
        state.log_weight[j0], state.log_weight[j1], state.log_weight[j2], state.log_weight[j3] = g0, g1, g2, g3
    if not tabulated:
        for t in range(n_bins):
            d = state.pool_bin[t]
            if target.table_start[d] < 0:
                for j in range(n_slots):
                    state.log_weight[j] += (
                        bin_value(target, d, state.counts[d, j] + state.pool_count[t]) - state.value[d, j]
                    )

    state.log_weight[old] = 0.0  # this slot holds C already: take it out instead
    for t in range(n_bins):
        d = state.pool_bin[t]
        state.log_weight[old] += state.value[d, old] - bin_value(target, d, state.counts[d, old] - state.pool_count[t])

    if target.block.shape[0] > 0:
        for j in range(n_slots):
            sign = -1.0 if j == old else 1.0
            for s in range(state.joined.shape[0]):
                state.joined[s] = state.total[j, s] + sign * state.pool_total[s]
            log_p = dense_log_marginal(target, state)
            state.log_weight[j] += sign * (log_p - state.dense_value[j])


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def weigh(target: Target, state: State, begin: Index, end: Index, old: Index, n_bins: Index) -> Index:
    """Fill log_weight and bond_weight for each destination of the pooled spin-cluster member[begin:end] of slot `old`.

    Destinations are the occupied slots and a new cluster: slot k, or `old` itself if the spin-cluster is all of it.
    log_weight[j] is the log posterior with the spin-cluster in slot j, less what is the same for all destinations.
    """
    n_members = end - begin
    rest = state.size[old] - n_members
    k_rest: Index = state.counters[N_CLUSTERS] - (rest == 0)
    n_slots = k_rest + 1
    weigh_likelihood(target, state, old, n_bins, n_slots)

    new: Index = k_rest if rest > 0 else old
    gain_new = state.log_weight[new] + target.log_v[k_rest + 1] + target.log_w[n_members]
    state.size[old] = rest
    for j in range(n_slots):
        m = state.size[j]
        state.log_weight[j] += target.log_v[k_rest] + target.log_w[m + n_members] - target.log_w[m]
        state.bond_weight[j] = 0.0
    state.size[old] = rest + n_members
    state.log_weight[new] = gain_new

    mine = state.spin[state.member[begin]]
    for q in range(begin, end):
        i = state.member[q]
        for h in range(target.start[i], target.start[i + 1]):
            j = target.neighbor[h]
            outside: cython.bint = state.spin[j] != mine  # a factor, not a branch to mispredict
            slot = state.slot_of[state.label[j]]
            state.log_weight[slot] += outside * target.beta[h]
            state.bond_weight[slot] += outside * target.strength[h]
    return n_slots


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def weigh_touching(target: Target, state: State, begin: Index, end: Index, old: Index, n_bins: Index) -> Index:
    """As `weigh`, but the destinations are the slots that the spin-cluster touches and, last, a new cluster.

    touched[t] is the slot of destination t, and rank[touched[t]] = t. There are none if the spin-cluster does not touch
    the rest of its own cluster: it could not come back. Otherwise they do not depend on where the spin-cluster is.
    """
    mine, n = state.spin[state.member[begin]], 0
    for q in range(begin, end):
        i = state.member[q]
        for h in range(target.start[i], target.start[i + 1]):
            j = target.neighbor[h]
            if state.spin[j] == mine:
                continue
            slot = state.slot_of[state.label[j]]
            t: Index = state.rank[slot]
            if t < 0 or t >= n or state.touched[t] != slot:  # it was not met yet
                t = n
                state.touched[t], state.rank[slot], state.log_weight[t], state.bond_weight[t] = slot, t, 0.0, 0.0
                n += 1
            state.log_weight[t] += target.beta[h]
            state.bond_weight[t] += target.strength[h]

    n_members = end - begin
    rest = state.size[old] - n_members
    k_rest: Index = state.counters[N_CLUSTERS] - (rest == 0)
    if rest > 0 and (state.rank[old] < 0 or state.rank[old] >= n or state.touched[state.rank[old]] != old):
        return 0
    if has_kinds(target):
        return weigh_with_kinds(target, state, begin, end, old, n, n_bins)
    new: Index = old if rest == 0 else k_rest
    for t in range(n):
        slot = state.touched[t]
        m = rest if slot == old else state.size[slot]
        sign = -1 if slot == old else 1
        state.log_weight[t] += likelihood_at(target, state, slot, n_bins, sign) + target.log_v[k_rest]
        state.log_weight[t] += target.log_w[m + n_members] - target.log_w[m]
    state.touched[n], state.rank[new], state.bond_weight[n] = new, n, 0.0
    state.log_weight[n] = (
        likelihood_at(target, state, new, n_bins, -1 if rest == 0 else 1)
        + target.log_w[n_members]
        + target.log_v[k_rest + 1]
    )
    return n + 1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def weigh_sizes(target: Target, state: State, c: Index, old: Index, n_destinations: Index) -> cython.bint:
    """Add log g of the sizes after spin-cluster c has moved to the log weight of each of its destinations.

    Nothing where the prior has tables: it is all in `log_v` and `log_w`. Returns whether log g was found.
    """
    is_found: cython.bint = True
    if target.log_g is not None:
        with cython.gil:
            is_found = target.log_g.weigh_sizes(state, c, old, n_destinations)
    return is_found


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def exclude_marked(state: State, old: Index, n_destinations: Index) -> cython.void:
    """Give a pooled spin-cluster that holds a marker no other destination that holds one."""
    if n_pooled(state) > 0.0:
        for t in range(n_destinations):
            slot = state.touched[t]
            if slot != old and n_marked(state.total, slot) > 0.0:
                state.log_weight[t] = -INF


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def choose(state: State, n_destinations: Index, inv_temperature: Real, rng: Random) -> Index:
    """A destination drawn with probability proportional to exp(log_weight / temperature - lambda * bond_weight).

    Inversion of the cumulative weights, the largest first. If the uniform draw would pick that even were all others as
    large as the second largest, no other exponential is needed; this is exact.
    """
    lam = state.scalars[LAM]
    top, second, best = -INF, -INF, 0
    for j in range(n_destinations):  # selections, not branches to mispredict
        w = inv_temperature * state.log_weight[j] - lam * state.bond_weight[j]
        state.bond_weight[j] = w
        lesser = w if w < top else top
        second = lesser if lesser > second else second
        best = j if w > top else best
        top = w if w > top else top
    point = 1.0 - rng.random()  # in (0, 1]
    if point * (1.0 + (n_destinations - 1) * math.exp(second - top)) <= 1.0:
        return best
    state.bond_weight[best] = -INF
    others = 0.0
    for j in range(n_destinations):
        others += math.exp(state.bond_weight[j] - top)
        state.bond_weight[j] = others
    left = min(point * (1.0 + others) - 1.0, others)
    if left <= 0.0:
        return best
    chosen: Index = 0
    for j in range(n_destinations):
        chosen += state.bond_weight[j] < left
    return chosen


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def touches_another(target: Target, state: State, begin: Index, end: Index) -> cython.bint:
    """Whether some site of a spin-cluster has a neighbor in another cluster than its own."""
    for q in range(begin, end):
        i = state.member[q]
        for h in range(target.start[i], target.start[i + 1]):
            if state.label[target.neighbor[h]] != state.label[i]:
                return True
    return False


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def weigh_destinations(target: Target, state: State, c: Index) -> tuple[Index, Index, Index, Index]:
    """Weigh the destinations of spin-cluster c.

    Returns its slot, which destination that is, how many bins it occupies, and how many destinations there are: 0 if
    the rest would have a size that the prior forbids, it could not come back, it is too small to found a cluster and
    touches no other, or it would leave a part of its marker behind.
    """
    begin = cython.cast(cython.Py_ssize_t, state.first[c])
    end = cython.cast(cython.Py_ssize_t, state.first[c + 1])
    reach = state.counters[REACH]
    old = state.slot_of[state.label[state.member[begin]]]
    n_members = end - begin
    rest = state.size[old] - n_members
    if rest > 0 and target.log_w[rest] == -INF:
        return old, old, 0, 0
    if reach != ANYWHERE and target.log_w[n_members] == -INF and not touches_another(target, state, begin, end):
        return old, old, 0, 0
    n_bins = pool(target, state, begin, end)
    if not is_connected(target) and reach == ANYWHERE:
        return old, old, n_bins, weigh(target, state, begin, end, old, n_bins)
    if target.marker_size.shape[0] > 0 and holds_part(target, state):
        return old, old, n_bins, 0
    n_destinations = weigh_touching(target, state, begin, end, old, n_bins)
    if target.marker_size.shape[0] > 0:
        exclude_marked(state, old, n_destinations)
    return old, state.rank[old], n_bins, n_destinations


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def may_leave(target: Target, state: State, c: Index) -> cython.bint:
    """Whether the cluster of spin-cluster c is connected, or empty, without it."""
    begin, end = state.first[c], state.first[c + 1]
    return leaves_connected(
        target.start,
        target.neighbor,
        state.label,
        state.label[state.member[begin]],
        state.spin,
        c,
        state.member,
        begin,
        end,
        state.queue,
        state.place,
        state.pending,
    )


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def move(target: Target, state: State, c: Index, old: Index, new: Index, n_bins: Index, change: Real) -> cython.void:
    """Move the pooled spin-cluster c from slot `old` to slot `new`, where `new` = k founds a cluster."""
    begin = cython.cast(cython.Py_ssize_t, state.first[c])
    end = cython.cast(cython.Py_ssize_t, state.first[c + 1])
    n_members = end - begin
    state.scalars[LOG_POSTERIOR] += change
    if old == new:  # a region that changes its kind
        return
    update_slot(target, state, old, n_members, n_bins, -1)
    update_slot(target, state, new, n_members, n_bins, 1)
    cluster = state.id_of[new]
    for q in range(begin, end):
        state.label[state.member[q]] = cluster
    if new == state.counters[N_CLUSTERS]:
        state.counters[N_CLUSTERS] += 1
    if state.size[old] == 0:
        drop_slot(state, old)


@cython.ccall
@cython.nogil
@cython.exceptval(check=False)
def sweep(target: Target, state: State, inv_temperature: Real, rng: Random) -> Index:
    """Move the spin-clusters from the cursor on; DONE, FULL or STOPPED."""
    capacity = state.size.shape[0]
    for c in range(state.counters[NEXT_INDEX], state.counters[N_SPIN_CLUSTERS]):
        state.counters[NEXT_INDEX] = c
        if state.counters[N_CLUSTERS] + 1 >= capacity or (has_kinds(target) and kinds_are_full(state, capacity)):
            return FULL
        if state.counters[STOP] != 0:
            return STOPPED
        old, here, n_bins, n_destinations = weigh_destinations(target, state, c)
        if n_destinations > 1:
            if not weigh_sizes(target, state, c, old, n_destinations):
                return STOPPED
            there = choose(state, n_destinations, inv_temperature, rng)
            # Whether the rest stays connected matters only now: if not, the spin-cluster stays whatever was drawn.
            if there != here and (not is_connected(target) or may_leave(target, state, c)):
                new: Index = there if state.counters[REACH] == ANYWHERE else state.touched[there]
                if has_kinds(target):
                    n_members = state.first[c + 1] - state.first[c]
                    move_between_kinds(target, state, n_members, there, old, n_bins)
                move(target, state, c, old, new, n_bins, state.log_weight[there] - state.log_weight[here])
    state.counters[NEXT_INDEX] = state.counters[N_SPIN_CLUSTERS]
    return DONE
