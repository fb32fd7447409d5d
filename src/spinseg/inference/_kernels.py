"""The compiled sampler: plain arrays in named tuples, no knowledge of images, priors or classes.

All compiled code that calls each other stands in this one file, because Numba's disk cache does not notice an edit of a
callee in another file. Every argument is a number, an array or a tuple of arrays, so that one compiled signature
serves every model. Inputs are assumed valid: the public functions check them.

A cluster has a lasting *id*, written in `label`, and a *slot*, its place in the tables of statistics. Slots 0..k-1 are
occupied, slot k is empty and stands for the new cluster. When a cluster vanishes, the last slot moves into its place;
this costs nothing per site, because `label` keeps the id.

Arrays that are used as indices are unsigned: Numba then leaves out the test for negative ones.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit

FAMILIES = ("diagonal_gaussian", "gaussian", "poisson_gamma")
DIAGONAL_GAUSSIAN, GAUSSIAN, POISSON_GAMMA = range(len(FAMILIES))

# Entries of State.number and State.real.
N_CLUSTERS, N_SPINS, CURSOR, STOP = range(4)
LOG_POSTERIOR, LAM = range(2)

# What a sweep or a run answers: it is finished; no empty slot is left, enlarge the tables and call again; told to stop.
DONE, FULL, STOPPED = range(3)


def jit(function: Any, **more: Any) -> Any:
    """`function` compiled to run without the interpreter lock, cached on disk where a folder can be written.

    `_nrt=False` leaves out Numba's reference counts: they would take more than half of a sweep, and nothing needs
    them where compiled code makes no array. The option is not documented, so where it is gone we do without.
    """
    more |= {"nogil": True, "error_model": "numpy"}
    for options in ({"_nrt": False, "cache": True}, {"_nrt": False}, {"cache": True}, {}):
        try:
            return njit(**(more | options))(function)
        except (KeyError, RuntimeError, TypeError):  # an unknown option, or no cache folder that can be written
            if not options:
                raise


def inlined(function: Any) -> Any:
    """As `jit`, and copied into its callers: to pass two tuples of arrays takes as long as a short function."""
    return jit(function, inline="always")


class Target(NamedTuple):
    """The posterior, shared by all chains and never written: n sites, D bins, B blocks, S statistics."""

    start: np.ndarray  # (n + 1,) uint64; the half-edges of site i are start[i]..start[i+1]
    upper: np.ndarray  # (n,) uint64; those to sites after i are upper[i]..start[i+1]
    neighbour: np.ndarray  # (half-edges,) uint32
    beta: np.ndarray  # (half-edges,) float64
    strength: np.ndarray  # (half-edges,) float64; max(beta, 0) * delta / lambda: a bond's strength per unit of lambda
    row: np.ndarray  # (n + 1,) uint64; the histogram entries of site i are row[i]..row[i+1]
    bin: np.ndarray  # (entries,) uint32
    bin_count: np.ndarray  # (entries,) int32
    table: np.ndarray  # float64; for each bin sign * (lgamma(pi + s c) - lgamma(pi)), c = 0, 1, ..
    table_start: np.ndarray  # (D,) int64; where the table of a bin starts, -1 where it has none
    bin_law: np.ndarray  # (D, 4) float64; pi, s, sign, lgamma(pi)
    block: np.ndarray  # (B, 4) int64; family, channels, first statistic, first parameter
    parameter: np.ndarray  # float64
    statistic: np.ndarray  # (n, S) float64
    log_v: np.ndarray  # (n + 2,) float64
    log_w: np.ndarray  # (n + 1,) float64


class State(NamedTuple):
    """One chain: its partition, the statistics of its clusters, and scratch space. The capacity is a multiple of 4."""

    label: np.ndarray  # (n,) uint32; cluster id of each site
    slot_of: np.ndarray  # (capacity,) uint32; id -> slot
    id_of: np.ndarray  # (capacity,) uint32; slot -> id; a permutation, the ids at k and beyond are free
    size: np.ndarray  # (capacity,) int32; sites in each slot
    counts: np.ndarray  # (D, capacity) int32; summed counts, 0 in empty slots
    value: np.ndarray  # (D, capacity) float64; the bin's table at `counts`
    total: np.ndarray  # (capacity, S) float64; summed statistics
    dense_value: np.ndarray  # (capacity,) float64; log marginal of the blocks at `total`
    gain: np.ndarray  # (capacity,) float64; log posterior with the spin-cluster in that slot
    held: np.ndarray  # (capacity,) float64; bond strength between the spin-cluster and that slot
    rank: np.ndarray  # (capacity,) int32; scratch
    spin: np.ndarray  # (n,) uint32; spin-cluster of each site in this sweep
    member: np.ndarray  # (n,) uint32; the sites, spin-cluster by spin-cluster
    first: np.ndarray  # (n + 1,) uint32; spin-cluster c is member[first[c]..first[c+1]]
    pool_bin: np.ndarray  # (D + 1,) uint32; occupied bins of the spin-cluster at hand
    pool_count: np.ndarray  # (D,) int32; their counts
    pooled: np.ndarray  # (D,) int32; all zero between calls
    pool_total: np.ndarray  # (S,) float64; its summed statistics
    joined: np.ndarray  # (S,) float64; scratch
    work: np.ndarray  # float64; scratch, a triangle for the Cholesky factor
    number: np.ndarray  # (4,) int64
    real: np.ndarray  # (2,) float64


class Record(NamedTuple):
    """What a chain leaves behind."""

    log_posterior: np.ndarray  # (sweeps,) float64
    n_clusters: np.ndarray  # (sweeps,) int32
    draw: np.ndarray  # (draws, n) int32; labels numbered by first appearance
    best: np.ndarray  # (n,) int32; labels numbered by first appearance
    best_log_posterior: np.ndarray  # (1,) float64


# --- Likelihood: log marginals from sufficient statistics; an empty cluster has 0 ---


@jit
def bin_value(target, d, c):
    """What bin d adds to a log marginal at count c: from its table or, where that was too large to keep, directly."""
    if target.table_start[d] >= 0:
        return target.table[np.uint64(target.table_start[d] + c)]
    law = target.bin_law
    return law[d, 2] * (math.lgamma(law[d, 0] + law[d, 1] * c) - law[d, 3])


@jit
def diagonal_gaussian(d, stat, par):
    """Normal-inverse-gamma; stat = N, sum x (d), sum x^2 (d), x less its prior mean; par = kappa, shape, rate (d)."""
    n, kappa, shape = stat[0], par[0], par[1]
    kappa_n, shape_n = kappa + n, shape + 0.5 * n
    log_p = (
        math.lgamma(shape_n) - math.lgamma(shape) + 0.5 * math.log(kappa / kappa_n) - 0.5 * n * math.log(2 * math.pi)
    )
    log_p *= d
    for c in range(d):
        scatter = stat[1 + d + c] - stat[1 + c] * stat[1 + c] / kappa_n
        log_p += shape * math.log(par[2 + c]) - shape_n * math.log(par[2 + c] + 0.5 * max(scatter, 0.0))
    return log_p


@jit
def gaussian(d, stat, par, work):
    """Normal-inverse-Wishart, whitened x; stat = N, sum x (d), lower rows of sum xx'; par = kappa, dof, log |scale|."""
    n, kappa, dof = stat[0], par[0], par[1]
    kappa_n, dof_n = kappa + n, dof + n
    log_p = 0.5 * d * math.log(kappa / kappa_n) - 0.5 * n * (d * math.log(math.pi) + par[2])
    row = 0
    for i in range(d):  # Cholesky factor of I + sum x x' - (sum x)(sum x)' / kappa_n, row by row
        column = 0
        for j in range(i + 1):
            cell = stat[1 + d + row + j] - stat[1 + i] * stat[1 + j] / kappa_n
            for c in range(j):
                cell -= work[row + c] * work[column + c]
            work[row + j] = math.sqrt(1.0 + max(cell, 0.0)) if i == j else cell / work[column + j]
            column += j + 1
        log_p += math.lgamma(0.5 * (dof_n - i)) - math.lgamma(0.5 * (dof - i)) - dof_n * math.log(work[row + i])
        row += i + 1
    return log_p


@jit
def poisson_gamma(d, stat, par):
    """Poisson counts with gamma rates; stat = exposure, sum y (d); par = shape (d), rate (d)."""
    log_p = 0.0
    for c in range(d):
        shape, rate, y = par[c], par[d + c], stat[1 + c]
        log_p += math.lgamma(shape + y) - math.lgamma(shape)
        log_p += shape * math.log(rate) - (shape + y) * math.log(rate + stat[0])
    return log_p


@jit
def dense_log_marginal(target, stat, work):
    """Log marginal of all blocks at the summed statistics `stat`. A new family is one more branch."""
    log_p = 0.0
    for b in range(target.block.shape[0]):
        family, d = target.block[b, 0], target.block[b, 1]
        part, par = stat[target.block[b, 2] :], target.parameter[target.block[b, 3] :]
        if part[0] == 0.0:  # no observation
            continue
        if family == DIAGONAL_GAUSSIAN:
            log_p += diagonal_gaussian(d, part, par)
        elif family == GAUSSIAN:
            log_p += gaussian(d, part, par, work)
        else:
            log_p += poisson_gamma(d, part, par)
    return log_p


# --- Clusters: their statistics, as groups of sites come and go ---


@inlined
def pool(target, state, group):
    """Sum the statistics of the sites `group`; the number of bins that they occupy."""
    n_bins = 0
    if group.size == 1:
        for e in range(target.row[group[0]], target.row[group[0] + 1]):
            state.pool_bin[n_bins] = target.bin[e]
            state.pool_count[n_bins] = target.bin_count[e]
            n_bins += 1
    else:
        for q in range(group.size):
            for e in range(target.row[group[q]], target.row[group[q] + 1]):
                d = target.bin[e]
                state.pool_bin[n_bins] = d  # stays only if the bin is new: no branch to mispredict
                n_bins += state.pooled[d] == 0
                state.pooled[d] += target.bin_count[e]
        for t in range(n_bins):
            state.pool_count[t] = state.pooled[state.pool_bin[t]]
            state.pooled[state.pool_bin[t]] = 0
    for s in range(state.pool_total.size):
        state.pool_total[s] = 0.0
        for q in range(group.size):
            state.pool_total[s] += target.statistic[group[q], s]
    return n_bins


@inlined
def shift(target, state, slot, n_members, n_bins, sign):
    """Add the pooled sites to the statistics of `slot` (sign 1), or take them out (sign -1)."""
    state.size[slot] += sign * n_members
    for t in range(n_bins):
        d = state.pool_bin[t]
        state.counts[d, slot] += sign * state.pool_count[t]
        state.value[d, slot] = bin_value(target, d, state.counts[d, slot])
    if target.block.shape[0] > 0:
        for s in range(state.pool_total.size):  # an emptied cluster keeps no rounding error
            state.total[slot, s] = state.total[slot, s] + sign * state.pool_total[s] if state.size[slot] > 0 else 0.0
        state.dense_value[slot] = dense_log_marginal(target, state.total[slot], state.work)


@jit
def drop_slot(state, slot):
    """Remove the empty `slot` by moving the last occupied one into its place."""
    last = state.number[N_CLUSTERS] - 1
    state.number[N_CLUSTERS] = last
    if slot == last:
        return
    gone, moved = state.id_of[slot], state.id_of[last]
    state.id_of[slot], state.id_of[last] = moved, gone
    state.slot_of[moved], state.slot_of[gone] = slot, last
    state.size[slot], state.size[last] = state.size[last], 0
    for d in range(state.counts.shape[0]):
        state.counts[d, slot], state.counts[d, last] = state.counts[d, last], 0
        state.value[d, slot], state.value[d, last] = state.value[d, last], 0.0
    for s in range(state.total.shape[1]):
        state.total[slot, s], state.total[last, s] = state.total[last, s], 0.0
    state.dense_value[slot], state.dense_value[last] = state.dense_value[last], 0.0


@jit
def rebuild(target, state):
    """Fill zeroed tables from `label`, which must use the ids 0..k-1 with k in `number`."""
    for slot in range(state.size.size):
        state.slot_of[slot] = slot
        state.id_of[slot] = slot
    for i in range(state.label.size):
        slot = state.label[i]
        state.size[slot] += 1
        for e in range(target.row[i], target.row[i + 1]):
            state.counts[target.bin[e], slot] += target.bin_count[e]
        for s in range(target.statistic.shape[1]):
            state.total[slot, s] += target.statistic[i, s]
    for slot in range(state.number[N_CLUSTERS]):
        for d in range(state.counts.shape[0]):
            state.value[d, slot] = bin_value(target, d, state.counts[d, slot])
        state.dense_value[slot] = dense_log_marginal(target, state.total[slot], state.work)


# --- One sweep of generalised Swendsen-Wang: bonds, spin-clusters; then for each one weigh, choose, move ---


@jit
def root(parent, i):
    """The root of site i, halving the path to it."""
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@jit
def draw_bonds(target, state, lam, rng):
    """Bond neighbours of one cluster with probability 1 - exp(-lambda strength); leaves a forest of parents in `spin`.

    Laid end to end, the edges are a line of length sum(lambda strength). The points of a unit Poisson process on it
    hit an edge with just that probability, independently of the others; so one exponential gap leads to the next
    bond, and after it a new gap starts at the end of the edge. The parent of a site is never after it.
    """
    parent, label = state.spin, state.label
    for i in range(parent.size):
        parent[i] = i
    if lam == 0.0:
        return
    gap = rng.standard_exponential()
    for i in range(parent.size):
        for h in range(target.upper[i], target.start[i + 1]):
            if gap >= lam * target.strength[h]:
                gap -= lam * target.strength[h]
                continue
            gap = rng.standard_exponential()
            j = target.neighbour[h]
            if label[i] == label[j]:
                a, b = root(parent, i), root(parent, j)
                parent[max(a, b)] = min(a, b)


@jit
def list_spin_clusters(spin, member, first):
    """Turn the parents in `spin` into spin-clusters 0..p-1, numbered by their first sites, and list their sites; p."""
    p = 0
    for i in range(spin.size):
        if spin[i] == i:
            spin[i] = p
            first[p] = 0
            p += 1
        else:
            spin[i] = spin[spin[i]]  # the parent comes before, so it has its number already
        first[spin[i]] += 1
    end = 0
    for c in range(p):
        end += first[c]
        first[c] = end
    first[p] = end
    for i in range(spin.size - 1, -1, -1):
        first[spin[i]] -= 1
        member[first[spin[i]]] = i
    return p


@inlined
def weigh_likelihood(target, state, old, n_bins, n_slots):
    """gain[j] = log p(y_C | y_Aj): C the pooled sites, now in slot `old`, and A_j the sites of slot j without C."""
    gain, table, count, value = state.gain, target.table, state.counts, state.value
    tabulated = True
    for quad in range((n_slots + 3) // 4):  # four slots at a time keep their sums in registers: a fifth faster
        j0 = np.uint64(4 * quad)
        j1, j2, j3 = j0 + np.uint64(1), j0 + np.uint64(2), j0 + np.uint64(3)
        g0, g1, g2, g3 = 0.0, 0.0, 0.0, 0.0
        for t in range(n_bins):
            d = state.pool_bin[t]
            first = target.table_start[d] + state.pool_count[t]
            if target.table_start[d] < 0:
                tabulated = False
                continue
            g0 += table[np.uint64(first + count[d, j0])] - value[d, j0]
            g1 += table[np.uint64(first + count[d, j1])] - value[d, j1]
            g2 += table[np.uint64(first + count[d, j2])] - value[d, j2]
            g3 += table[np.uint64(first + count[d, j3])] - value[d, j3]
        gain[j0], gain[j1], gain[j2], gain[j3] = g0, g1, g2, g3
    if not tabulated:
        for t in range(n_bins):
            d = state.pool_bin[t]
            if target.table_start[d] < 0:
                for j in range(n_slots):
                    gain[j] += bin_value(target, d, count[d, j] + state.pool_count[t]) - value[d, j]

    gain[old] = 0.0  # there C was counted twice
    for t in range(n_bins):
        d = state.pool_bin[t]
        gain[old] += value[d, old] - bin_value(target, d, count[d, old] - state.pool_count[t])

    if target.block.shape[0] > 0:
        for j in range(n_slots):
            sign = -1.0 if j == old else 1.0
            for s in range(state.joined.size):
                state.joined[s] = state.total[j, s] + sign * state.pool_total[s]
            gain[j] += sign * (dense_log_marginal(target, state.joined, state.work) - state.dense_value[j])


@inlined
def weigh(target, state, group, old, n_bins):
    """Fill gain and held for every destination of the pooled spin-cluster `group` of slot `old`; their number.

    They are the occupied slots and one for a new cluster: slot k, or `old` itself if the spin-cluster is all of it.
    gain[j] is the log posterior with the spin-cluster in slot j, less what is the same for all destinations.
    """
    gain, held, log_v, log_w = state.gain, state.held, target.log_v, target.log_w
    rest = state.size[old] - group.size
    k_rest = state.number[N_CLUSTERS] - (rest == 0)
    n_slots = k_rest + 1
    weigh_likelihood(target, state, old, n_bins, n_slots)

    new = k_rest if rest > 0 else old
    gain_new = gain[new] + log_v[k_rest + 1] + log_w[group.size]
    state.size[old] = rest
    for j in range(n_slots):
        m = state.size[j]
        gain[j] += log_v[k_rest] + log_w[np.uint64(m + group.size)] - log_w[np.uint64(m)]
        held[j] = 0.0
    state.size[old] = rest + group.size
    gain[new] = gain_new

    spin = state.spin[group[0]]
    for q in range(group.size):
        i = group[q]
        for h in range(target.start[i], target.start[i + 1]):
            j = target.neighbour[h]
            outside = state.spin[j] != spin  # a factor, not a branch to mispredict
            slot = state.slot_of[state.label[j]]
            gain[slot] += outside * target.beta[h]
            held[slot] += outside * target.strength[h]
    return n_slots


@inlined
def choose(state, n_slots, inv_temperature, rng):
    """A slot drawn with probability proportional to exp(gain / temperature - lambda held).

    The weights, as shares of the largest, are laid end to end, the largest first, and a point of that line is drawn.
    Mostly it falls into the first part even if all others were as large as the second: then no other exponential is
    needed.
    """
    weight, lam = state.held, state.real[LAM]
    top, second, best = -np.inf, -np.inf, 0
    for j in range(n_slots):  # selections, not branches to mispredict
        w = inv_temperature * state.gain[j] - lam * weight[j]
        weight[j] = w
        lesser = w if w < top else top
        second = lesser if lesser > second else second
        best = j if w > top else best
        top = w if w > top else top
    point = 1.0 - rng.random()  # in (0, 1]
    if point * (1.0 + (n_slots - 1) * math.exp(second - top)) <= 1.0:
        return best
    weight[best] = -np.inf
    others = 0.0
    for j in range(n_slots):
        others += math.exp(weight[j] - top)
        weight[j] = others
    left = min(point * (1.0 + others) - 1.0, others)
    if left <= 0.0:
        return best
    chosen = 0
    for j in range(n_slots):
        chosen += weight[j] < left
    return chosen


@inlined
def propose(target, state, c):
    """Weigh the destinations of spin-cluster c; its slot, its number of bins and of destinations.

    No destination: what it would leave behind has a size that the prior forbids, so it stays.
    """
    group = state.member[state.first[c] : state.first[c + 1]]
    old = state.slot_of[state.label[group[0]]]
    rest = state.size[old] - group.size
    if rest > 0 and target.log_w[rest] == -np.inf:
        return old, 0, 0
    n_bins = pool(target, state, group)
    return old, n_bins, weigh(target, state, group, old, n_bins)


@inlined
def move(target, state, c, old, new, n_bins):
    """Move the pooled spin-cluster c from slot `old` to slot `new`, where `new` = k founds a cluster."""
    group = state.member[state.first[c] : state.first[c + 1]]
    state.real[LOG_POSTERIOR] += state.gain[new] - state.gain[old]
    shift(target, state, old, group.size, n_bins, -1)
    shift(target, state, new, group.size, n_bins, 1)
    for q in range(group.size):
        state.label[group[q]] = state.id_of[new]
    if new == state.number[N_CLUSTERS]:
        state.number[N_CLUSTERS] += 1
    if state.size[old] == 0:
        drop_slot(state, old)


@jit
def begin_sweep(target, state, lams, rng):
    """Draw lambda, uniformly from `lams`, and the bonds; list the spin-clusters."""
    pick = int(rng.random() * lams.size) if lams.size > 1 else 0
    state.real[LAM] = lams[pick]
    draw_bonds(target, state, lams[pick], rng)
    state.number[N_SPINS] = list_spin_clusters(state.spin, state.member, state.first)
    state.number[CURSOR] = 0


@jit
def sweep(target, state, inv_temperature, rng):
    """Go on with the sweep, from the cursor to the last spin-cluster; DONE, FULL or STOPPED."""
    for c in range(state.number[CURSOR], state.number[N_SPINS]):
        state.number[CURSOR] = c
        if state.number[N_CLUSTERS] + 1 >= state.size.size:
            return FULL
        if state.number[STOP] != 0:
            return STOPPED
        old, n_bins, n_slots = propose(target, state, c)
        if n_slots > 1:
            new = choose(state, n_slots, inv_temperature, rng)
            if new != old:
                move(target, state, c, old, new, n_bins)
    state.number[CURSOR] = state.number[N_SPINS]
    return DONE


# --- A run of sweeps and what is kept of it ---


@jit
def renumber(label, rank, out):
    """Write `label` to `out`, numbered 0..k-1 by first appearance."""
    for r in range(rank.size):
        rank[r] = -1
    k = 0
    for i in range(label.size):
        if rank[label[i]] < 0:
            rank[label[i]] = k
            k += 1
        out[i] = rank[label[i]]


@jit
def keep(state, record, t, burn_in, thin):
    """Note the traces of sweep t, the draw if it is one to keep, and the partition if it is the best so far."""
    record.log_posterior[t] = state.real[LOG_POSTERIOR]
    record.n_clusters[t] = state.number[N_CLUSTERS]
    after = t + 1 - burn_in
    if after > 0 and after % thin == 0:
        renumber(state.label, state.rank, record.draw[after // thin - 1])
    if state.real[LOG_POSTERIOR] > record.best_log_posterior[0]:
        record.best_log_posterior[0] = state.real[LOG_POSTERIOR]
        renumber(state.label, state.rank, record.best)


@jit
def run(target, state, record, done, until, burn_in, thin, lams, inv_temperature, rng):
    """Do sweeps done..until-1, the first of which may have been left unfinished; the status and the sweeps done."""
    for t in range(done, until):
        if state.number[CURSOR] == state.number[N_SPINS]:
            begin_sweep(target, state, lams, rng)
        status = sweep(target, state, inv_temperature, rng)
        if status != DONE:
            return status, t
        keep(state, record, t, burn_in, thin)
    return DONE, until
