"""The compiled sampler: plain arrays under names, no knowledge of images, priors or classes.

Every argument is a number, an array, a named tuple or a bundle of arrays, so that one compiled signature serves every
model. Inputs are assumed valid: the public functions check them.

A cluster has a lasting *id*, written in `label`, and a *slot*, its place in the tables of statistics. Slots 0..k-1 are
occupied, slot k is empty and stands for the new cluster. When a cluster vanishes, the last slot moves into its place;
this costs nothing per site, because `label` keeps the id.

Arrays that are used as indices are unsigned: Numba then leaves out the test for negative ones.
"""

import math
from typing import NamedTuple

import numpy as np

from spinseg._bundle import Bundle
from spinseg._compiled import inlined, internal, jit

FAMILIES = ("diagonal_gaussian", "gaussian", "poisson_gamma")
DIAGONAL_GAUSSIAN, GAUSSIAN, POISSON_GAMMA = range(len(FAMILIES))

# Entries of State.number and State.real.
N_CLUSTERS, N_SPINS, CURSOR, SPLITS_LEFT, REGROUPS_LEFT, STOP, LOCAL = range(7)
LOG_POSTERIOR, LAM = range(2)

# Entries of Record.tally. It stays with a chain where chains exchange their states.
SPLITS_TRIED, SPLITS_MADE, MERGES_TRIED, MERGES_MADE, REGROUPS_TRIED, REGROUPS_MADE = range(6)

# Numbers to pass on: a plain constant has a type of its own in Numba, and would compile its function once more.
NONE, TWO = np.int64(0), np.int64(2)
FREE, FORCED = np.int64(0), np.int64(1)

# What a sweep or a run answers: it is finished; no empty slot is left, enlarge the tables and call again; told to stop.
DONE, FULL, STOPPED = range(3)


class Target(Bundle):
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
    log_v: np.ndarray  # (n + 1,) float64
    log_w: np.ndarray  # (n + 1,) float64
    guide: np.ndarray  # (n + 1,) float64; log_w with its -inf filled in, so that every split can be proposed
    near: np.ndarray  # (n, any) uint32; sites that look like each one, for the anchors of regroupings


class State(Bundle):
    """One chain: its partition, the statistics of its clusters, and scratch space. The capacity is a multiple of 4."""

    label: np.ndarray  # (n,) uint32; cluster id of each site
    slot_of: np.ndarray  # (capacity,) uint32; id -> slot
    id_of: np.ndarray  # (capacity,) uint32; slot -> id; a permutation, the ids at k and beyond are free
    size: np.ndarray  # (capacity,) int32; sites in each slot
    counts: np.ndarray  # (D, capacity) int32; summed counts, 0 in empty slots
    value: np.ndarray  # (D, capacity) float64; the bin's table at `counts`
    total: np.ndarray  # (capacity, S) float64; summed statistics
    dense_value: np.ndarray  # (capacity,) float64; log marginal of the blocks at `total`
    gain: np.ndarray  # (capacity,) float64; log posterior with the spin-cluster at each of its destinations
    held: np.ndarray  # (capacity,) float64; bond strength between the spin-cluster and that destination
    touched: np.ndarray  # (capacity,) uint32; in a local sweep the slot of each destination; else that is its number
    rank: np.ndarray  # (capacity,) int32; scratch; in a local sweep the destination of each touched slot
    spin: np.ndarray  # (n,) uint32; spin-cluster of each site in this sweep
    member: np.ndarray  # (n,) uint32; the sites, spin-cluster by spin-cluster
    first: np.ndarray  # (n + 1,) uint32; spin-cluster c is member[first[c]..first[c+1]]; scratch between sweeps
    pool_bin: np.ndarray  # (D + 1,) uint32; occupied bins of the spin-cluster at hand
    pool_count: np.ndarray  # (D,) int32; their counts
    pooled: np.ndarray  # (D,) int32; all zero between calls
    pool_total: np.ndarray  # (S,) float64; its summed statistics
    joined: np.ndarray  # (S,) float64; scratch
    work: np.ndarray  # float64; scratch, a triangle for the Cholesky factor
    number: np.ndarray  # (7,) int64
    real: np.ndarray  # (2,) float64


class Plan(NamedTuple):
    """What an iteration is, and which ones are kept."""

    lams: np.ndarray  # float64; a sweep draws its lambda from these
    splits: int  # attempts to split or merge after each sweep
    regroups: int  # attempts to regroup two clusters into three, or back, after those
    inv_temperature: float
    burn_in: int
    thin: int
    local: float = 0.0  # share of sweeps in which a spin-cluster may only go where it touches, or found a cluster
    far_lams: np.ndarray = np.ones(1)  # float64; where there are local sweeps, the others draw their lambda from these


class Record(NamedTuple):
    """What a chain leaves behind."""

    log_posterior: np.ndarray  # (sweeps,) float64
    n_clusters: np.ndarray  # (sweeps,) int32
    draw: np.ndarray  # (draws, n) int32; labels numbered by first appearance
    best: np.ndarray  # (n,) int32; labels numbered by first appearance
    best_log_posterior: np.ndarray  # (1,) float64
    spin: np.ndarray  # (n,) uint32; spin-cluster of each site in the last sweep begun
    tally: np.ndarray  # (6,) int64; how many moves of each kind were tried and made


# --- Likelihood: log marginals from sufficient statistics; an empty cluster has 0 ---


@internal
def bin_value(table, table_start, law, d, c):
    """What bin d adds to a log marginal at count c: from its table or, where that was too large to keep, directly."""
    if table_start[d] >= 0:
        return table[np.uint64(table_start[d] + c)]
    return law[d, 2] * (math.lgamma(law[d, 0] + law[d, 1] * c) - law[d, 3])


@internal
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


@internal
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


@internal
def poisson_gamma(d, stat, par):
    """Poisson counts with gamma rates; stat = exposure, sum y (d); par = shape (d), rate (d)."""
    log_p = 0.0
    for c in range(d):
        shape, rate, y = par[c], par[d + c], stat[1 + c]
        log_p += math.lgamma(shape + y) - math.lgamma(shape)
        log_p += shape * math.log(rate) - (shape + y) * math.log(rate + stat[0])
    return log_p


@internal
def dense_log_marginal(block, parameter, stat, work):
    """Log marginal of all blocks at the summed statistics `stat`. A new family is one more branch."""
    log_p = 0.0
    for b in range(block.shape[0]):
        family, d = block[b, 0], block[b, 1]
        part, par = stat[block[b, 2] :], parameter[block[b, 3] :]
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


@internal
def pool(target, state, group):
    """Sum the statistics of the sites `group`; the number of bins that they occupy."""
    row, bins, bin_count, statistic = target.row, target.bin, target.bin_count, target.statistic
    pool_bin, pool_count, pooled, pool_total = state.pool_bin, state.pool_count, state.pooled, state.pool_total
    n_bins = 0
    if group.size == 1:
        for e in range(row[group[0]], row[group[0] + 1]):
            pool_bin[n_bins] = bins[e]
            pool_count[n_bins] = bin_count[e]
            n_bins += 1
    else:
        for q in range(group.size):
            for e in range(row[group[q]], row[group[q] + 1]):
                d = bins[e]
                pool_bin[n_bins] = d  # stays only if the bin is new: no branch to mispredict
                n_bins += pooled[d] == 0
                pooled[d] += bin_count[e]
        for t in range(n_bins):
            pool_count[t] = pooled[pool_bin[t]]
            pooled[pool_bin[t]] = 0
    for s in range(pool_total.size):
        pool_total[s] = 0.0
        for q in range(group.size):
            pool_total[s] += statistic[group[q], s]
    return n_bins


@internal
def shift(target, state, slot, n_members, n_bins, sign):
    """Add the pooled sites to the statistics of `slot` (sign 1), or take them out (sign -1)."""
    table, table_start, law, block = target.table, target.table_start, target.bin_law, target.block
    size, counts, value, total, pool_total = state.size, state.counts, state.value, state.total, state.pool_total
    pool_bin, pool_count = state.pool_bin, state.pool_count
    size[slot] += sign * n_members
    for t in range(n_bins):
        d = pool_bin[t]
        counts[d, slot] += sign * pool_count[t]
        value[d, slot] = bin_value(table, table_start, law, d, counts[d, slot])
    if block.shape[0] > 0:
        for s in range(pool_total.size):  # an emptied cluster keeps no rounding error
            total[slot, s] = total[slot, s] + sign * pool_total[s] if size[slot] > 0 else 0.0
        state.dense_value[slot] = dense_log_marginal(block, target.parameter, total[slot], state.work)


@internal
def clear_slot(state, slot):
    """Empty a slot."""
    counts, value, total = state.counts, state.value, state.total
    state.size[slot] = 0
    state.dense_value[slot] = 0.0
    for d in range(counts.shape[0]):
        counts[d, slot] = 0
        value[d, slot] = 0.0
    for s in range(total.shape[1]):
        total[slot, s] = 0.0


@internal
def drop_slot(state, slot):
    """Remove the empty `slot` by moving the last occupied one into its place."""
    number, id_of, slot_of = state.number, state.id_of, state.slot_of
    size, counts, value, total, dense_value = state.size, state.counts, state.value, state.total, state.dense_value
    last = number[N_CLUSTERS] - 1
    number[N_CLUSTERS] = last
    if slot == last:
        return
    gone, moved = id_of[slot], id_of[last]
    id_of[slot], id_of[last] = moved, gone
    slot_of[moved], slot_of[gone] = slot, last
    size[slot] = size[last]
    dense_value[slot] = dense_value[last]
    for d in range(counts.shape[0]):
        counts[d, slot] = counts[d, last]
        value[d, slot] = value[d, last]
    for s in range(total.shape[1]):
        total[slot, s] = total[last, s]
    clear_slot(state, last)


@jit
def rebuild(target, state):
    """Fill zeroed tables from `label`, which must use the ids 0..k-1 with k in `number`."""
    row, bins, bin_count, statistic = target.row, target.bin, target.bin_count, target.statistic
    table, table_start, law = target.table, target.table_start, target.bin_law
    label, size, counts, value, total = state.label, state.size, state.counts, state.value, state.total
    for slot in range(size.size):
        state.slot_of[slot] = slot
        state.id_of[slot] = slot
    for i in range(label.size):
        slot = label[i]
        size[slot] += 1
        for e in range(row[i], row[i + 1]):
            counts[bins[e], slot] += bin_count[e]
        for s in range(total.shape[1]):
            total[slot, s] += statistic[i, s]
    for slot in range(state.number[N_CLUSTERS]):
        for d in range(counts.shape[0]):
            value[d, slot] = bin_value(table, table_start, law, d, counts[d, slot])
        state.dense_value[slot] = dense_log_marginal(target.block, target.parameter, total[slot], state.work)


# --- One sweep of generalised Swendsen-Wang: bonds, spin-clusters; then for each one weigh, choose, move ---


@internal
def root(parent, i):
    """The root of site i, halving the path to it."""
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@internal
def draw_bonds(target, parent, label, lam, rng):
    """Bond neighbours of one cluster with probability 1 - exp(-lambda strength); leaves a forest in `parent`.

    Laid end to end, the edges are a line of length sum(lambda strength). The points of a unit Poisson process on it
    hit an edge with just that probability, independently of the others; so one exponential gap leads to the next
    bond, and after it a new gap starts at the end of the edge. The parent of a site is never after it.
    """
    start, upper, neighbour, strength = target.start, target.upper, target.neighbour, target.strength
    for i in range(parent.size):
        parent[i] = i
    if lam == 0.0:
        return
    gap = rng.standard_exponential()
    for i in range(parent.size):
        for h in range(upper[i], start[i + 1]):
            if gap >= lam * strength[h]:
                gap -= lam * strength[h]
                continue
            gap = rng.standard_exponential()
            j = neighbour[h]
            if label[i] == label[j]:
                a, b = root(parent, i), root(parent, j)
                parent[max(a, b)] = min(a, b)


@internal
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


@internal
def weigh_likelihood(target, state, old, n_bins, n_slots):
    """gain[j] = log p(y_C | y_Aj): C the pooled sites, now in slot `old`, and A_j the sites of slot j without C."""
    table, table_start, law, block = target.table, target.table_start, target.bin_law, target.block
    gain, counts, value, pool_bin, pool_count = state.gain, state.counts, state.value, state.pool_bin, state.pool_count
    tabulated = True
    for quad in range((n_slots + 3) // 4):  # four slots at a time keep their sums in registers
        j0 = np.uint64(4 * quad)
        j1, j2, j3 = j0 + np.uint64(1), j0 + np.uint64(2), j0 + np.uint64(3)
        g0, g1, g2, g3 = 0.0, 0.0, 0.0, 0.0
        for t in range(n_bins):
            d = pool_bin[t]
            first = table_start[d] + pool_count[t]
            if table_start[d] < 0:
                tabulated = False
                continue
            g0 += table[np.uint64(first + counts[d, j0])] - value[d, j0]
            g1 += table[np.uint64(first + counts[d, j1])] - value[d, j1]
            g2 += table[np.uint64(first + counts[d, j2])] - value[d, j2]
            g3 += table[np.uint64(first + counts[d, j3])] - value[d, j3]
        gain[j0], gain[j1], gain[j2], gain[j3] = g0, g1, g2, g3
    if not tabulated:
        for t in range(n_bins):
            d = pool_bin[t]
            if table_start[d] < 0:
                for j in range(n_slots):
                    gain[j] += bin_value(table, table_start, law, d, counts[d, j] + pool_count[t]) - value[d, j]

    gain[old] = 0.0  # there C was counted twice
    for t in range(n_bins):
        d = pool_bin[t]
        gain[old] += value[d, old] - bin_value(table, table_start, law, d, counts[d, old] - pool_count[t])

    if block.shape[0] > 0:
        total, joined, pool_total = state.total, state.joined, state.pool_total
        for j in range(n_slots):
            sign = -1.0 if j == old else 1.0
            for s in range(joined.size):
                joined[s] = total[j, s] + sign * pool_total[s]
            log_p = dense_log_marginal(block, target.parameter, joined, state.work)
            gain[j] += sign * (log_p - state.dense_value[j])


@internal
def weigh(target, state, group, old, n_bins):
    """Fill gain and held for every destination of the pooled spin-cluster `group` of slot `old`; their number.

    They are the occupied slots and one for a new cluster: slot k, or `old` itself if the spin-cluster is all of it.
    gain[j] is the log posterior with the spin-cluster in slot j, less what is the same for all destinations.
    """
    log_v, log_w = target.log_v, target.log_w
    start, neighbour, beta, strength = target.start, target.neighbour, target.beta, target.strength
    size, gain, held = state.size, state.gain, state.held
    spin, slot_of, label = state.spin, state.slot_of, state.label
    rest = size[old] - group.size
    k_rest = state.number[N_CLUSTERS] - (rest == 0)
    n_slots = k_rest + 1
    weigh_likelihood(target, state, old, n_bins, n_slots)

    new = k_rest if rest > 0 else old
    gain_new = gain[new] + log_v[k_rest + 1] + log_w[group.size]
    size[old] = rest
    for j in range(n_slots):
        m = size[j]
        gain[j] += log_v[k_rest] + log_w[np.uint64(m + group.size)] - log_w[np.uint64(m)]
        held[j] = 0.0
    size[old] = rest + group.size
    gain[new] = gain_new

    mine = spin[group[0]]
    for q in range(group.size):
        i = group[q]
        for h in range(start[i], start[i + 1]):
            j = neighbour[h]
            outside = spin[j] != mine  # a factor, not a branch to mispredict
            slot = slot_of[label[j]]
            gain[slot] += outside * beta[h]
            held[slot] += outside * strength[h]
    return n_slots


@internal
def likelihood_at(target, state, slot, n_bins, sign):
    """log p(y_C | y_A): C the pooled sites, A those of the slot, without C where sign is -1."""
    table, table_start, law, block = target.table, target.table_start, target.bin_law, target.block
    counts, value, pool_bin, pool_count = state.counts, state.value, state.pool_bin, state.pool_count
    log_p = 0.0
    for t in range(n_bins):
        d = pool_bin[t]
        log_p += bin_value(table, table_start, law, d, counts[d, slot] + sign * pool_count[t]) - value[d, slot]
    if block.shape[0] > 0:
        total, joined, pool_total = state.total, state.joined, state.pool_total
        for s in range(joined.size):
            joined[s] = total[slot, s] + sign * pool_total[s]
        log_p += dense_log_marginal(block, target.parameter, joined, state.work) - state.dense_value[slot]
    return sign * log_p


@internal
def weigh_touching(target, state, group, old, n_bins):
    """As `weigh`, but the destinations are the slots that the spin-cluster touches and, last, a new cluster.

    touched[t] is the slot of destination t, and rank[touched[t]] = t. None where the spin-cluster does not touch the
    rest of its own cluster: from where it could go it would not come back. Else the destinations are the same at each
    of them, since they do not depend on where the spin-cluster is.
    """
    log_v, log_w = target.log_v, target.log_w
    start, neighbour, beta, strength = target.start, target.neighbour, target.beta, target.strength
    size, gain, held, touched, rank = state.size, state.gain, state.held, state.touched, state.rank
    spin, slot_of, label = state.spin, state.slot_of, state.label
    mine, n = spin[group[0]], 0
    for q in range(group.size):
        i = group[q]
        for h in range(start[i], start[i + 1]):
            j = neighbour[h]
            if spin[j] == mine:
                continue
            slot = slot_of[label[j]]
            t = rank[slot]
            if t < 0 or t >= n or touched[t] != slot:  # it was not met yet
                t = n
                touched[t], rank[slot], gain[t], held[t] = slot, t, 0.0, 0.0
                n += 1
            gain[t] += beta[h]
            held[t] += strength[h]

    rest = size[old] - group.size
    k_rest = state.number[N_CLUSTERS] - (rest == 0)
    if rest > 0 and (rank[old] < 0 or rank[old] >= n or touched[rank[old]] != old):
        return 0
    new = np.int64(old) if rest == 0 else k_rest
    for t in range(n):
        slot = np.int64(touched[t])
        m = rest if slot == old else size[slot]
        sign = -1 if slot == old else 1
        gain[t] += likelihood_at(target, state, slot, n_bins, sign) + log_v[k_rest]
        gain[t] += log_w[np.uint64(m + group.size)] - log_w[np.uint64(m)]
    touched[n], rank[new], held[n] = new, n, 0.0
    gain[n] = likelihood_at(target, state, new, n_bins, -1 if rest == 0 else 1) + log_w[group.size] + log_v[k_rest + 1]
    return n + 1


@internal
def choose(state, n_destinations, inv_temperature, rng):
    """A destination drawn with probability proportional to exp(gain / temperature - lambda held).

    The weights, as shares of the largest, are laid end to end, the largest first, and a point of that line is drawn.
    Mostly it falls into the first part even if all others were as large as the second: then no other exponential is
    needed.
    """
    gain, weight, lam = state.gain, state.held, state.real[LAM]
    top, second, best = -np.inf, -np.inf, 0
    for j in range(n_destinations):  # selections, not branches to mispredict
        w = inv_temperature * gain[j] - lam * weight[j]
        weight[j] = w
        lesser = w if w < top else top
        second = lesser if lesser > second else second
        best = j if w > top else best
        top = w if w > top else top
    point = 1.0 - rng.random()  # in (0, 1]
    if point * (1.0 + (n_destinations - 1) * math.exp(second - top)) <= 1.0:
        return best
    weight[best] = -np.inf
    others = 0.0
    for j in range(n_destinations):
        others += math.exp(weight[j] - top)
        weight[j] = others
    left = min(point * (1.0 + others) - 1.0, others)
    if left <= 0.0:
        return best
    chosen = 0
    for j in range(n_destinations):
        chosen += weight[j] < left
    return chosen


@internal
def propose(target, state, c):
    """Weigh the destinations of spin-cluster c; its slot, which destination that is, its number of bins and of those.

    No destination: what it would leave behind has a size that the prior forbids, or in a local sweep it does not touch
    that; so it stays.
    """
    group = state.member[state.first[c] : state.first[c + 1]]
    old = state.slot_of[state.label[group[0]]]
    rest = state.size[old] - group.size
    if rest > 0 and target.log_w[rest] == -np.inf:
        return old, np.int64(old), 0, 0
    n_bins = pool(target, state, group)
    if state.number[LOCAL] == 0:
        return old, np.int64(old), n_bins, weigh(target, state, group, old, n_bins)
    n_destinations = weigh_touching(target, state, group, old, n_bins)
    return old, np.int64(state.rank[old]), n_bins, n_destinations


@internal
def move(target, state, c, old, new, n_bins, change):
    """Move the pooled spin-cluster c from slot `old` to slot `new`, where `new` = k founds a cluster."""
    group, label, number = state.member[state.first[c] : state.first[c + 1]], state.label, state.number
    state.real[LOG_POSTERIOR] += change
    shift(target, state, old, group.size, n_bins, -1)
    shift(target, state, new, group.size, n_bins, 1)
    cluster = state.id_of[new]
    for q in range(group.size):
        label[group[q]] = cluster
    if new == number[N_CLUSTERS]:
        number[N_CLUSTERS] += 1
    if state.size[old] == 0:
        drop_slot(state, np.int64(old))


@internal
def one_of(numbers, rng):
    """A number drawn uniformly from some."""
    return numbers[int(rng.random() * numbers.size) if numbers.size > 1 else 0]


@internal
def begin_sweep(target, state, plan, rng):
    """Draw whether the sweep is local, lambda, uniformly from those of such a sweep, and bonds; list spin-clusters."""
    number, spin = state.number, state.spin
    far = plan.local > 0.0 and rng.random() >= plan.local
    number[LOCAL] = plan.local > 0.0 and not far
    lam = one_of(plan.far_lams, rng) if far else one_of(plan.lams, rng)
    state.real[LAM] = lam
    draw_bonds(target, spin, state.label, lam, rng)
    number[N_SPINS] = list_spin_clusters(spin, state.member, state.first)
    number[CURSOR] = 0


@internal
def sweep(target, state, inv_temperature, rng):
    """Go on with the sweep, from the cursor to the last spin-cluster; DONE, FULL or STOPPED."""
    number, capacity = state.number, state.size.size
    for c in range(number[CURSOR], number[N_SPINS]):
        number[CURSOR] = c
        if number[N_CLUSTERS] + 1 >= capacity:
            return FULL
        if number[STOP] != 0:
            return STOPPED
        old, here, n_bins, n_destinations = propose(target, state, c)
        if n_destinations > 1:
            there = choose(state, n_destinations, inv_temperature, rng)
            if there != here:
                new = there if number[LOCAL] == 0 else np.int64(state.touched[there])
                move(target, state, c, old, new, n_bins, state.gain[there] - state.gain[here])
    number[CURSOR] = number[N_SPINS]
    return DONE


# --- Split and merge by sequential allocation (Dahl 2005), clusters picked uniformly ---
# A split picks a cluster and two of its sites, a merge two clusters and a site of each. The two sites found A and B;
# the others join one or the other in random order. The proposal is built in the empty slots k and k + 1.


@internal
def gather_sites(state, slot, n):
    """Append the sites of `slot` to member[:n]; their number together."""
    cluster = state.id_of[slot]
    for i in range(state.label.size):
        if state.label[i] == cluster:
            state.member[n] = i
            n += 1
    return n


@internal
def shuffle(member, start, end, rng):
    """Put member[start:end] into random order."""
    for q in range(end - 1, start, -1):
        r = start + int(rng.random() * (q + 1 - start))
        member[q], member[r] = member[r], member[q]


@internal
def allocate(target, state, n_sites, n_seeds, base, forced, floor, inv_temperature, rng):
    """Deal member[:n_sites] out to the slots from `base`, founded by the first n_seeds; log probability of the choices.

    FORCED repeats the division between the clusters of the seeds, and gives up when its log probability is below
    `floor`. A site that was dealt to slot base + s has spin s + 1.
    """
    start, neighbour, beta, guide = target.start, target.neighbour, target.beta, target.guide
    size, spin, member, label, gain = state.size, state.spin, state.member, state.label, state.gain
    log_q = 0.0
    for i in range(spin.size):
        spin[i] = 0
    for q in range(n_sites):
        u = member[q]
        n_bins = pool(target, state, member[q : q + 1])
        side = q
        if q >= n_seeds:
            for s in range(n_seeds):
                m = size[base + s]
                gain[s] = guide[m + 1] - guide[m] + likelihood_at(target, state, base + s, n_bins, 1)
            for h in range(start[u], start[u + 1]):
                if spin[neighbour[h]] > 0:
                    gain[spin[neighbour[h]] - 1] += beta[h]
            top, total = -np.inf, 0.0
            for s in range(n_seeds):
                top = max(top, gain[s])
            for s in range(n_seeds):
                total += math.exp(inv_temperature * (gain[s] - top))
            side = 0
            if forced == FORCED:
                while label[member[side]] != label[u]:
                    side += 1
            else:
                point = rng.random() * total - math.exp(inv_temperature * (gain[0] - top))
                while point >= 0.0 and side < n_seeds - 1:
                    side += 1
                    point -= math.exp(inv_temperature * (gain[side] - top))
            log_q += inv_temperature * (gain[side] - top) - math.log(total)
            if forced == FORCED and log_q < floor:
                return log_q
        spin[u] = side + 1
        shift(target, state, base + side, 1, n_bins, 1)
    return log_q


@internal
def slot_log_marginal(state, slot):
    """log p(y) of the sites of a slot, up to what does not depend on the partition."""
    log_p = state.dense_value[slot]
    for d in range(state.value.shape[0]):
        log_p += state.value[d, slot]
    return log_p


@internal
def log_selection(k_merged, m_a, m_b):
    """Log of the probability of picking the split and its two sites, over that of picking the merge."""
    m = m_a + m_b
    return math.log(k_merged + 1.0) + math.log(m_a * 1.0 * m_b) - math.log(m * (m - 1.0))


@internal
def propose_split(target, state, inv_temperature, rng):
    """Build the split of a random cluster; its slot, the change of log posterior, the log ratio of proposing it."""
    log_v, log_w, start, neighbour, beta = target.log_v, target.log_w, target.start, target.neighbour, target.beta
    size, spin, member = state.size, state.spin, state.member
    k = state.number[N_CLUSTERS]
    slot = int(rng.random() * k)
    m = np.int64(size[slot])
    if m < 2:
        return -1, 0.0, 0.0
    gather_sites(state, slot, NONE)
    shuffle(member, NONE, m, rng)
    log_q = allocate(target, state, m, TWO, k, FREE, 0.0, inv_temperature, rng)
    m_a, m_b = size[k], size[k + 1]
    change = slot_log_marginal(state, k) + slot_log_marginal(state, k + 1) - slot_log_marginal(state, slot)
    change += log_w[m_a] + log_w[m_b] - log_w[m] + log_v[k + 1] - log_v[k]
    for q in range(m):
        u = member[q]
        if spin[u] == 1:
            for h in range(start[u], start[u + 1]):
                change -= beta[h] * (spin[neighbour[h]] == 2)
    return slot, change, log_q + log_selection(k, m_a, m_b)


@internal
def finish_split(state, slot, change, accepted):
    """Replace `slot` by the two clusters that were built, or forget them."""
    number, spin, member, label = state.number, state.spin, state.member, state.label
    k = number[N_CLUSTERS]
    if not accepted:
        clear_slot(state, k)
        clear_slot(state, k + 1)
        return
    id_a, id_b = state.id_of[k], state.id_of[k + 1]
    for q in range(state.size[slot]):
        label[member[q]] = id_a if spin[member[q]] == 1 else id_b
    number[N_CLUSTERS] = k + 2
    state.real[LOG_POSTERIOR] += change
    clear_slot(state, slot)
    drop_slot(state, slot)


@internal
def propose_merge(target, state, rng):
    """Pick two clusters; their slots, the change of log posterior if they merge, and the log ratio of picking them."""
    log_v, log_w, start, neighbour, beta = target.log_v, target.log_w, target.start, target.neighbour, target.beta
    table, table_start, law = target.table, target.table_start, target.bin_law
    counts, total, joined, label, size = state.counts, state.total, state.joined, state.label, state.size
    k = state.number[N_CLUSTERS]
    if k < 2:
        return -1, -1, 0.0, 0.0
    a, b = int(rng.random() * k), int(rng.random() * (k - 1))
    b += b >= a
    m_a, m_b = size[a], size[b]
    change = -slot_log_marginal(state, a) - slot_log_marginal(state, b)
    change += log_w[m_a + m_b] - log_w[m_a] - log_w[m_b] + log_v[k - 1] - log_v[k]
    for d in range(counts.shape[0]):
        change += bin_value(table, table_start, law, d, counts[d, a] + counts[d, b])
    for s in range(joined.size):
        joined[s] = total[a, s] + total[b, s]
    change += dense_log_marginal(target.block, target.parameter, joined, state.work)
    label_a, label_b = state.id_of[a], state.id_of[b]
    for u in range(label.size):
        if label[u] == label_a:
            for h in range(start[u], start[u + 1]):
                change += beta[h] * (label[neighbour[h]] == label_b)
    return a, b, change, log_selection(k - 1, m_a, m_b)


@internal
def log_q_of_merged(target, state, a, b, floor, inv_temperature, rng):
    """Log probability that a split of their union deals out the clusters in slots a and b; a bound if below `floor`."""
    member, k = state.member, state.number[N_CLUSTERS]
    m_a = gather_sites(state, a, NONE)
    m = gather_sites(state, b, m_a)
    shuffle(member, NONE, m_a, rng)
    r = m_a + int(rng.random() * (m - m_a))
    member[1], member[r] = member[r], member[1]
    shuffle(member, TWO, m, rng)
    log_q = allocate(target, state, m, TWO, k, FORCED, floor, inv_temperature, rng)
    clear_slot(state, k)
    clear_slot(state, k + 1)
    return log_q


@internal
def finish_merge(target, state, a, b, change):
    """Put the sites of slot b into slot a."""
    table, table_start, law = target.table, target.table_start, target.bin_law
    counts, value, total, label = state.counts, state.value, state.total, state.label
    label_a, label_b = state.id_of[a], state.id_of[b]
    for i in range(label.size):
        if label[i] == label_b:
            label[i] = label_a
    state.size[a] += state.size[b]
    for d in range(counts.shape[0]):
        counts[d, a] += counts[d, b]
        value[d, a] = bin_value(table, table_start, law, d, counts[d, a])
    for s in range(total.shape[1]):
        total[a, s] += total[b, s]
    state.dense_value[a] = dense_log_marginal(target.block, target.parameter, total[a], state.work)
    state.real[LOG_POSTERIOR] += change
    clear_slot(state, b)
    drop_slot(state, b)


@inlined
def split_or_merge(target, state, tally, inv_temperature, rng):
    """Try one split or one merge, each with probability one half."""
    log_u = math.log(1.0 - rng.random())
    if rng.random() < 0.5:
        tally[SPLITS_TRIED] += 1
        slot, change, against = propose_split(target, state, inv_temperature, rng)
        if slot >= 0:
            accepted = log_u < inv_temperature * change - against
            finish_split(state, slot, change, accepted)
            tally[SPLITS_MADE] += accepted
    else:
        tally[MERGES_TRIED] += 1
        a, b, change, ratio = propose_merge(target, state, rng)
        # log q is at most 0, so most merges are rejected before it is computed, and the rest as soon as it is too low.
        floor = log_u - inv_temperature * change - ratio
        if a >= 0 and floor < 0.0 and floor < log_q_of_merged(target, state, a, b, floor, inv_temperature, rng):
            finish_merge(target, state, a, b, change)
            tally[MERGES_MADE] += 1


@inlined
def split_merge(target, state, tally, inv_temperature, rng):
    """Do the attempts that are left in this iteration; DONE, FULL or STOPPED."""
    while state.number[SPLITS_LEFT] > 0:
        if state.number[N_CLUSTERS] + 3 >= state.size.size:
            return FULL
        if state.number[STOP] != 0:
            return STOPPED
        split_or_merge(target, state, tally, inv_temperature, rng)
        state.number[SPLITS_LEFT] -= 1
    return DONE


# --- Regroup two clusters into three, or three into two ---
# Three sites are drawn without looking at the partition; the first two must lie in different clusters. If the third is
# in one of these, all three found the new clusters of what they hold together, else the first two do. The division
# is dealt out as in a split; the probability of dealing out the present one is that of the way back.


@internal
def draw_anchors(near, n, rng):
    """Three sites: one anywhere, each other one anywhere with probability 0.3, else among those that look like it."""
    a = int(rng.random() * n)
    b, c = int(rng.random() * n), int(rng.random() * n)
    if near.shape[1] > 0 and rng.random() < 0.7:
        b = np.int64(near[a, int(rng.random() * near.shape[1])])
    if near.shape[1] > 0 and rng.random() < 0.7:
        c = np.int64(near[a, int(rng.random() * near.shape[1])])
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
    """Deal two clusters out as three, or three as two; (n_old, n_sites, anchors, change of log posterior, log q).

    n_old = 0 where there is nothing to do. The new clusters are built in the empty slots from k; `first` notes the
    slot of each site, counted from 1.
    """
    log_v, log_w, start, upper = target.log_v, target.log_w, target.start, target.upper
    neighbour, beta = target.neighbour, target.beta
    label, slot_of, spin, member, first = state.label, state.slot_of, state.spin, state.member, state.first
    size, k = state.size, state.number[N_CLUSTERS]
    anchors = draw_anchors(target.near, label.size, rng)
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
            j = neighbour[h]
            if spin[j] > 0:
                change += beta[h] * (1.0 * (spin[u] == spin[j]) - 1.0 * (label[u] == label[j]))
    return n_old, n_sites, anchors, change, log_q


@internal
def log_q_of_groups(target, state, n_old, n_sites, anchors, floor, inv_temperature, rng):
    """Log probability that the present clusters of the anchors are dealt out; a bound if below `floor`."""
    base = state.number[N_CLUSTERS] + 3  # behind the new ones
    order_from(state.member, anchors, n_old, n_sites, rng)
    log_q = allocate(target, state, n_sites, n_old, base, FORCED, floor, inv_temperature, rng)
    for s in range(n_old):
        clear_slot(state, base + s)
    return log_q


@internal
def finish_regroup(state, n_old, n_sites, anchors, change, accepted):
    """Replace the clusters of the anchors by those that were built, or forget these."""
    number, label, member, first = state.number, state.label, state.member, state.first
    k, n_new = number[N_CLUSTERS], 5 - n_old
    if not accepted:
        for s in range(n_new):
            clear_slot(state, k + s)
        return
    a, b, c = anchors
    id_a, id_b, id_c = label[a], label[b], label[c]
    for q in range(n_sites):
        label[member[q]] = state.id_of[k + first[member[q]] - 1]
    number[N_CLUSTERS] = k + n_new
    state.real[LOG_POSTERIOR] += change
    for s in range(n_old):
        gone = np.int64(state.slot_of[id_a if s == 0 else id_b if s == 1 else id_c])
        clear_slot(state, gone)
        drop_slot(state, gone)


@inlined
def regroup(target, state, tally, inv_temperature, rng):
    """Do the attempts to regroup that are left in this iteration; DONE, FULL or STOPPED."""
    while state.number[REGROUPS_LEFT] > 0:
        if state.number[N_CLUSTERS] + 7 >= state.size.size:
            return FULL
        if state.number[STOP] != 0:
            return STOPPED
        state.number[REGROUPS_LEFT] -= 1
        tally[REGROUPS_TRIED] += 1
        log_u = math.log(1.0 - rng.random())
        n_old, n_sites, anchors, change, log_q = propose_regroup(target, state, inv_temperature, rng)
        if n_old > 0:
            floor = log_u - inv_temperature * change + log_q
            accepted = floor < 0.0 and floor < log_q_of_groups(
                target, state, n_old, n_sites, anchors, floor, inv_temperature, rng
            )
            finish_regroup(state, n_old, n_sites, anchors, change, accepted)
            tally[REGROUPS_MADE] += accepted
    return DONE


# --- Greedy agglomeration: a start near a mode ---


@internal
def merged_log_marginal(likelihood, counts, total, joined, a, b):
    """log p(y) of clusters a and b together; of one alone where b = a. Rows of `counts` and `total` are clusters."""
    table, table_start, law, block, parameter, work = likelihood
    log_p = 0.0
    for d in range(counts.shape[1]):
        c = counts[a, d] + (counts[b, d] if b != a else 0)
        if c > 0:
            log_p += bin_value(table, table_start, law, d, c)
    if block.shape[0] > 0:
        for s in range(joined.size):
            joined[s] = total[a, s] + (total[b, s] if b != a else 0.0)
        log_p += dense_log_marginal(block, parameter, joined, work)
    return log_p


@internal
def join_pairs(ends, coupling, gain, mark, n_pairs, a, b):
    """Let cluster a take the place of b in the first `n_pairs` pairs, and merge pairs that became one; their number.

    mark (n,) is -1 everywhere, before and after.
    """
    e = 0
    while e < n_pairs:
        x, y = ends[e, 0], ends[e, 1]
        x, y = a if x == b else x, a if y == b else y
        other = x + y - a
        gone = x == y
        if not gone and (x == a or y == a):
            if mark[other] >= 0:
                coupling[mark[other]] += coupling[e]
                gone = True
            else:
                mark[other] = e
        if gone:  # the last takes its place
            n_pairs -= 1
            ends[e, 0], ends[e, 1] = ends[n_pairs, 0], ends[n_pairs, 1]
            coupling[e], gain[e] = coupling[n_pairs], gain[n_pairs]
        else:
            ends[e, 0], ends[e, 1] = x, y
            e += 1
    for e in range(n_pairs):
        mark[ends[e, 0]] = mark[ends[e, 1]] = -1
    return n_pairs


@jit
def agglomerate(likelihood, log_v, log_w, label, ends, coupling, gain, counts, total, joined, own, size, mark):
    """Merge touching clusters, always the pair with the largest gain of log posterior, while there is a gain.

    label (n,) is the cluster that each belongs to, at first itself; ends (E, 2), coupling (E,) are pairs of touching
    clusters, gain (E,) scratch; counts (n, D), total (n, S), size (n,) and, to be filled, own (n,) belong to clusters.
    """
    n_pairs, k = ends.shape[0], size.size
    for c in range(k):
        own[c] = merged_log_marginal(likelihood, counts, total, joined, c, c)
    a = -1  # the cluster that has just grown
    while True:
        at = -1
        for e in range(n_pairs):
            x, y = ends[e, 0], ends[e, 1]
            if a < 0 or x == a or y == a:
                gain[e] = merged_log_marginal(likelihood, counts, total, joined, x, y) - own[x] - own[y] + coupling[e]
                gain[e] += log_w[size[x] + size[y]] - log_w[size[x]] - log_w[size[y]]
            if at < 0 or gain[e] > gain[at]:
                at = e
        if at < 0 or (log_v[k] > -np.inf and gain[at] + log_v[k - 1] - log_v[k] <= 0.0):
            return
        a, b = ends[at, 0], ends[at, 1]
        for d in range(counts.shape[1]):
            counts[a, d] += counts[b, d]
        for s in range(total.shape[1]):
            total[a, s] += total[b, s]
        own[a] = merged_log_marginal(likelihood, counts, total, joined, a, a)
        size[a] += size[b]
        k -= 1
        for i in range(label.size):
            label[i] = a if label[i] == b else label[i]
        n_pairs = join_pairs(ends, coupling, gain, mark, n_pairs, a, b)


@jit
def pair_gains(likelihood, log_w, ends, coupling, changed, gain, counts, total, joined, own, size):
    """Fill own (n,) of the changed clusters, and gain (E,) of the pairs that one of them belongs to."""
    for c in range(changed.size):
        if changed[c]:
            own[c] = merged_log_marginal(likelihood, counts, total, joined, c, c)
    for e in range(ends.shape[0]):
        x, y = ends[e, 0], ends[e, 1]
        if changed[x] or changed[y]:
            gain[e] = merged_log_marginal(likelihood, counts, total, joined, x, y) - own[x] - own[y] + coupling[e]
            gain[e] += log_w[size[x] + size[y]] - log_w[size[x]] - log_w[size[y]]


@jit
def merge_mutual(ends, gain, least, counts, total, size, best, into, changed):
    """Merge every pair that gains most for both of its clusters, and more than `least`; how many were merged.

    best (n,) is scratch; into (n,) becomes the cluster that each belongs to, changed (n,) whether it grew or vanished.
    """
    for c in range(best.size):
        best[c], into[c], changed[c] = -1, c, False
    for e in range(ends.shape[0]):
        for x in (ends[e, 0], ends[e, 1]):
            if best[x] < 0 or gain[e] > gain[best[x]]:
                best[x] = e
    n_merged = 0
    for e in range(ends.shape[0]):
        a, b = ends[e, 0], ends[e, 1]
        if best[a] == e and best[b] == e and gain[e] > least:
            for d in range(counts.shape[1]):
                counts[a, d] += counts[b, d]
            for s in range(total.shape[1]):
                total[a, s] += total[b, s]
            size[a] += size[b]
            into[b], changed[a], changed[b] = a, True, True
            n_merged += 1
    return n_merged


# --- A run of iterations and what is kept of it ---


@internal
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


@internal
def keep(state, record, plan, t):
    """Note the traces of sweep t, the draw if it is one to keep, and the partition if it is the best so far."""
    record.log_posterior[t] = state.real[LOG_POSTERIOR]
    record.n_clusters[t] = state.number[N_CLUSTERS]
    after = t + 1 - plan.burn_in
    if after > 0 and after % plan.thin == 0:
        renumber(state.label, state.rank, record.draw[after // plan.thin - 1])
    if state.real[LOG_POSTERIOR] > record.best_log_posterior[0]:
        record.best_log_posterior[0] = state.real[LOG_POSTERIOR]
        renumber(state.label, state.rank, record.best)


@jit
def run(target, state, record, plan, done, until, rng):
    """Do iterations done..until-1, the first perhaps left unfinished before; the status and how many are done."""
    for t in range(done, until):
        if (
            state.number[CURSOR] == state.number[N_SPINS]
            and state.number[SPLITS_LEFT] + state.number[REGROUPS_LEFT] == 0
        ):
            begin_sweep(target, state, plan, rng)
            for i in range(state.spin.size):
                record.spin[i] = state.spin[i]
            state.number[SPLITS_LEFT] = plan.splits
            state.number[REGROUPS_LEFT] = plan.regroups
        status = sweep(target, state, plan.inv_temperature, rng)
        if status == DONE:
            status = split_merge(target, state, record.tally, plan.inv_temperature, rng)
        if status == DONE:
            status = regroup(target, state, record.tally, plan.inv_temperature, rng)
        if status != DONE:
            return status, t
        keep(state, record, plan, t)
    return DONE, until
