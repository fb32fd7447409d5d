"""The compiled Gibbs sampler of dd-CRP and rdd-CRP: links between sites, and the tables at which regions sit.

A table is a cluster. As in the sampler of spinseg itself, it has a lasting *id*, written in `label`, and a *slot*, its
place in the tables of counts: slots 0..k-1 are occupied, slot k is empty and stands for the new cluster.

With the link of site i taken out, the sites that hang together with i are just those whose links lead to it: n sites
that have n - 1 links among them are a tree, and i, which has none, is its root. So links are kept by target, too, and
walking these lists backwards from i finds its piece and nothing else.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from spinseg._compiled import inlined, jit

# Entries of State.number; State.real has one.
N_CLUSTERS, N_REGIONS, CURSOR, STAMP = range(4)

# What a run answers: it is finished; or no empty slot is left, enlarge the tables and call again.
DONE, FULL = range(2)


class Problem(NamedTuple):
    """The posterior, never written: n sites, D bins (words, and the total as one more)."""

    start: np.ndarray  # (n + 1,) uint64; the neighbours of site i are neighbour[start[i]..start[i+1]]
    neighbour: np.ndarray  # (half-edges,) uint32
    row: np.ndarray  # (n + 1,) uint64; the histogram entries of site i are row[i]..row[i+1]
    bin: np.ndarray  # (entries,) uint32
    bin_count: np.ndarray  # (entries,) int32
    table: np.ndarray  # float64; for each bin sign * (lgamma(pi + s c) - lgamma(pi)), c = 0, 1, ..
    table_start: np.ndarray  # (D,) int64; where the table of a bin starts
    alpha: float
    log_seat: np.ndarray  # (n + 1,) float64; log weight of a table with r regions; of a new one where r = 0
    log_seats: np.ndarray  # (n + 1,) float64; log of the sum of these weights for r regions in all
    plain: bool  # the dd-CRP: every region has a table of its own


class State(NamedTuple):
    """One chain: links, clusters, their counts, and scratch space. The capacity is a multiple of 4."""

    link: np.ndarray  # (n,) int32
    child: np.ndarray  # (n,) int32; the first other site that links to this one, -1 for none
    after: np.ndarray  # (n,) int32; the next one with the same link, -1 for none
    before: np.ndarray  # (n,) int32; the one before, -1 for none
    label: np.ndarray  # (n,) uint32; cluster id of each site
    slot_of: np.ndarray  # (capacity,) uint32; id -> slot
    id_of: np.ndarray  # (capacity,) uint32; slot -> id; a permutation, the ids at k and beyond are free
    n_regions: np.ndarray  # (capacity,) int64; regions at each slot
    counts: np.ndarray  # (D, capacity) int32; summed counts, 0 in empty slots
    value: np.ndarray  # (D, capacity) float64; the bin's table at `counts`
    gain: np.ndarray  # (capacity,) float64; log likelihood of the piece at hand in that slot
    joins: np.ndarray  # (capacity,) int64; links that lead from site i into that slot; all zero between calls
    choice: np.ndarray  # (capacity,) uint32; slots to choose from
    weight: np.ndarray  # (capacity,) float64; their log weights
    mark: np.ndarray  # (n,) int64; equal to the stamp on the sites that were gathered
    member: np.ndarray  # (n,) uint32; the sites that were gathered
    first: np.ndarray  # (n + 1,) uint32; region r is member[first[r]..first[r+1]] while tables are drawn
    pool_bin: np.ndarray  # (D + 1,) uint32; occupied bins of the piece at hand
    pool_count: np.ndarray  # (D,) int32; their counts
    pooled: np.ndarray  # (D,) int32; all zero between calls
    number: np.ndarray  # (4,) int64
    real: np.ndarray  # (1,) float64; the log joint


class Record(NamedTuple):
    """What a chain leaves behind."""

    log_joint: np.ndarray  # (sweeps,) float64
    n_clusters: np.ndarray  # (sweeps,) int32
    n_regions: np.ndarray  # (sweeps,) int32
    draw: np.ndarray  # (draws, n) int32; clusters numbered by first appearance
    best: np.ndarray  # (n,) int32; clusters numbered by first appearance
    best_log_joint: np.ndarray  # (1,) float64


# --- Links and the pieces that they hold together ---


@inlined
def cut(state: State, i: int) -> None:
    """Take the link of site i out of the list of its target; `link` still tells where it led."""
    link, child, after, before = state.link, state.child, state.after, state.before
    if link[i] == i:
        return
    if before[i] >= 0:
        after[before[i]] = after[i]
    else:
        child[link[i]] = after[i]
    if after[i] >= 0:
        before[after[i]] = before[i]


@inlined
def tie(state: State, i: int, j: int) -> None:
    """Link site i, whose link is cut, to site j. A link to itself is in no list: nothing hangs on it."""
    child, after, before = state.child, state.after, state.before
    state.link[i] = j
    if i == j:
        return
    before[i] = -1
    after[i] = child[j]
    if child[j] >= 0:
        before[child[j]] = i
    child[j] = i


@jit
def gather(state: State, i: int, end: int, both_ways: bool) -> int:
    """Mark, and append to member[:end], site i and all whose links lead to it, or its whole region; the new end."""
    link, child, after, mark, member = state.link, state.child, state.after, state.mark, state.member
    stamp = state.number[STAMP]
    mark[i] = stamp
    member[end] = i
    at, end = end, end + 1
    while at < end:
        u = member[at]
        at += 1
        v = child[u]
        while v >= 0:
            if mark[v] != stamp:  # else it is where we came from, both ways
                mark[v] = stamp
                member[end] = v
                end += 1
            v = after[v]
        if both_ways and mark[link[u]] != stamp:
            mark[link[u]] = stamp
            member[end] = link[u]
            end += 1
    return end


@jit
def list_regions(state: State) -> int:
    """List the sites region by region in `member` and `first`; the number of regions."""
    state.number[STAMP] += 1
    n, end = 0, 0
    for i in range(state.link.size):
        if state.mark[i] != state.number[STAMP]:
            state.first[n] = end
            end = gather(state, i, end, True)
            n += 1
    state.first[n] = end
    return n


# --- Clusters: their counts, as pieces come and go ---


@inlined
def pool(problem: Problem, state: State, group: np.ndarray) -> int:
    """Sum the histograms of the sites `group`; the number of bins that they occupy."""
    row, bins, bin_count = problem.row, problem.bin, problem.bin_count
    pool_bin, pool_count, pooled = state.pool_bin, state.pool_count, state.pooled
    n_bins = 0
    for q in range(group.size):
        for e in range(row[group[q]], row[group[q] + 1]):
            d = bins[e]
            pool_bin[n_bins] = d  # stays only if the bin is new: no branch to mispredict
            n_bins += pooled[d] == 0
            pooled[d] += bin_count[e]
    for t in range(n_bins):
        pool_count[t] = pooled[pool_bin[t]]
        pooled[pool_bin[t]] = 0
    return n_bins


@inlined
def shift(problem: Problem, state: State, slot: int, n_bins: int, sign: int) -> None:
    """Add the pooled counts to those of `slot` (sign 1), or take them out (sign -1)."""
    table, table_start, counts, value = problem.table, problem.table_start, state.counts, state.value
    for t in range(n_bins):
        d = state.pool_bin[t]
        counts[d, slot] += sign * state.pool_count[t]
        value[d, slot] = table[np.uint64(table_start[d] + counts[d, slot])]


@jit
def drop_slot(state: State, slot: int) -> None:
    """Remove the empty `slot` by moving the last occupied one into its place."""
    number, id_of, slot_of, n_regions = state.number, state.id_of, state.slot_of, state.n_regions
    counts, value = state.counts, state.value
    last = number[N_CLUSTERS] - 1
    number[N_CLUSTERS] = last
    if slot == last:
        return
    gone, moved = id_of[slot], id_of[last]
    id_of[slot], id_of[last] = moved, gone
    slot_of[moved], slot_of[gone] = slot, last
    n_regions[slot], n_regions[last] = n_regions[last], 0
    for d in range(counts.shape[0]):
        counts[d, slot], counts[d, last] = counts[d, last], 0
        value[d, slot], value[d, last] = value[d, last], 0.0


@jit
def rebuild(problem: Problem, state: State) -> None:
    """Fill everything but the log joint from `link` and `label`, which must use the ids 0..k-1."""
    label, n_regions, number = state.label, state.n_regions, state.number
    n_regions[:] = 0
    state.counts[:] = 0
    state.value[:] = 0.0
    state.joins[:] = 0
    state.child[:] = -1
    number[N_CLUSTERS] = 0
    number[CURSOR] = 0
    for slot in range(n_regions.size):
        state.slot_of[slot] = slot
        state.id_of[slot] = slot
    for i in range(label.size):
        tie(state, i, state.link[i])
        number[N_CLUSTERS] = max(number[N_CLUSTERS], label[i] + 1)
        state.member[0] = i
        shift(problem, state, label[i], pool(problem, state, state.member[:1]), 1)
    number[N_REGIONS] = list_regions(state)
    for r in range(number[N_REGIONS]):
        n_regions[label[state.member[state.first[r]]]] += 1


# --- One step: cut a piece off; weigh the clusters that it could join, choose, move ---


@inlined
def log_seat(problem: Problem, state: State, slot: int) -> float:
    """Log prior probability that one more region sits down at `slot`; an empty one stands for the new table."""
    return problem.log_seat[state.n_regions[slot]] - problem.log_seats[state.number[N_REGIONS]]


@inlined
def look_around(problem: Problem, state: State, i: int) -> tuple[int, int]:
    """Count, in `joins`, the links that site i could have into other regions of each slot, and list these slots.

    Returns how many neighbours are in the piece of i, and how many slots are listed.
    """
    start, neighbour, label, slot_of = problem.start, problem.neighbour, state.label, state.slot_of
    mark, joins, stamp = state.mark, state.joins, state.number[STAMP]
    inside, n_near = 0, 0
    for h in range(start[i], start[i + 1]):
        if mark[neighbour[h]] == stamp:
            inside += 1
            continue
        slot = slot_of[label[neighbour[h]]]
        if joins[slot] == 0:
            state.choice[n_near] = slot
            n_near += 1
        joins[slot] += 1
    return inside, n_near


@inlined
def list_slots(problem: Problem, state: State, old: int, n_near: int) -> int:
    """List in `choice` all slots that the piece could go to, the first n_near of a dd-CRP being there; how many."""
    k, choice, emptied = state.number[N_CLUSTERS], state.choice, state.n_regions[old] == 0
    if not problem.plain:
        for slot in range(k):
            choice[slot] = slot
        choice[k] = k  # the new one; but if the old slot is empty without the piece, that is the new one
        return k + (not emptied)
    choice[n_near] = old if emptied else k
    return n_near + 1


@inlined
def weigh_likelihood(problem: Problem, state: State, old: int, n_bins: int, n_choices: int) -> None:
    """gain[s] = log p(y_P | y_s) for the slots s to choose from: P is the pooled piece, which `old` still counts."""
    table, table_start, counts, value = problem.table, problem.table_start, state.counts, state.value
    pool_bin, pool_count, gain = state.pool_bin, state.pool_count, state.gain
    if problem.plain:
        for c in range(n_choices):
            slot, g = state.choice[c], 0.0
            for t in range(n_bins):
                d = pool_bin[t]
                g += table[np.uint64(table_start[d] + pool_count[t] + counts[d, slot])] - value[d, slot]
            gain[slot] = g
    else:
        for quad in range((n_choices + 3) // 4):  # four slots at a time keep their sums in registers
            j0 = np.uint64(4 * quad)
            j1, j2, j3 = j0 + np.uint64(1), j0 + np.uint64(2), j0 + np.uint64(3)
            g0, g1, g2, g3 = 0.0, 0.0, 0.0, 0.0
            for t in range(n_bins):
                d = pool_bin[t]
                first = table_start[d] + pool_count[t]
                g0 += table[np.uint64(first + counts[d, j0])] - value[d, j0]
                g1 += table[np.uint64(first + counts[d, j1])] - value[d, j1]
                g2 += table[np.uint64(first + counts[d, j2])] - value[d, j2]
                g3 += table[np.uint64(first + counts[d, j3])] - value[d, j3]
            gain[j0], gain[j1], gain[j2], gain[j3] = g0, g1, g2, g3

    gain[old] = 0.0  # there the piece was counted twice
    for t in range(n_bins):
        d = pool_bin[t]
        gain[old] += value[d, old] - table[np.uint64(table_start[d] + counts[d, old] - pool_count[t])]


@inlined
def choose(state: State, n_choices: int, rng: Any) -> int:
    """A slot drawn with probability proportional to exp(weight).

    The weights, as shares of the largest, are laid end to end, the largest first, and a point of that line is drawn.
    Mostly it falls into the first part even if all others were as large as the second: then no other exponential is
    needed.
    """
    weight, choice = state.weight, state.choice
    top, second, best = -np.inf, -np.inf, 0
    for c in range(n_choices):
        w = weight[c]
        lesser = w if w < top else top
        second = lesser if lesser > second else second
        best = c if w > top else best
        top = w if w > top else top
    point = 1.0 - rng.random()  # in (0, 1]
    if point * (1.0 + (n_choices - 1) * math.exp(second - top)) <= 1.0:
        return choice[best]
    weight[best] = -np.inf
    others = 0.0
    for c in range(n_choices):
        others += math.exp(weight[c] - top)
        weight[c] = others
    left = min(point * (1.0 + others) - 1.0, others)
    if left <= 0.0:
        return choice[best]
    chosen = 0
    for c in range(n_choices):
        chosen += weight[c] < left
    return choice[chosen]


@inlined
def draw_slot(problem: Problem, state: State, old: int, n_bins: int, n_near: int, staying: float, rng: Any) -> int:
    """The slot of the pooled piece, drawn from its conditional, with whichever link.

    The weight of slot s is (links into other regions there + staying * seat at s) * p(y_P | y_s): `staying` is the
    weight of all links that join no other region, after which the piece sits down as a region of its own.
    """
    weight, joins, gain, choice = state.weight, state.joins, state.gain, state.choice
    n_choices = list_slots(problem, state, old, n_near)
    weigh_likelihood(problem, state, old, n_bins, n_choices)
    log_staying = math.log(staying)
    for c in range(n_choices):
        slot = choice[c]
        log_mass = log_staying + log_seat(problem, state, slot)
        if joins[slot] > 0:
            log_mass = math.log(joins[slot] + math.exp(log_mass))
        weight[c] = gain[slot] + log_mass
    return choose(state, n_choices, rng)


@inlined
def draw_target(problem: Problem, state: State, i: int, slot: int, inside: int, rng: Any) -> int:
    """The site that i links to, given the slot of its piece: one in another region there, one of the piece, or itself.

    A link inside the piece leaves it a region of its own, whose seat at the slot is part of its weight.
    """
    start, neighbour, mark, stamp = problem.start, problem.neighbour, state.mark, state.number[STAMP]
    joins, staying = state.joins[slot], inside + problem.alpha
    point = rng.random() * (joins + staying * math.exp(log_seat(problem, state, slot)))
    join = point < joins
    if not join:
        point = rng.random() * staying
        if point >= inside:
            return i
    nth = int(point)
    for h in range(start[i], start[i + 1]):
        j = neighbour[h]
        if join == (mark[j] != stamp) and (not join or state.slot_of[state.label[j]] == slot):
            if nth == 0:
                return j
            nth -= 1
    return i


@inlined
def move(problem: Problem, state: State, group: np.ndarray, old: int, new: int, n_bins: int) -> None:
    """Move the pooled sites `group` from slot `old` to slot `new`, where `new` = k founds a cluster."""
    if old != new:
        shift(problem, state, old, n_bins, -1)
        shift(problem, state, new, n_bins, 1)
        for q in range(group.size):
            state.label[group[q]] = state.id_of[new]
        if new == state.number[N_CLUSTERS]:
            state.number[N_CLUSTERS] += 1
    if state.n_regions[old] == 0:
        drop_slot(state, old)


@inlined
def log_prior(problem: Problem, state: State, i: int, j: int, slot: int) -> float:
    """Log weight of the link from i to j, and of a seat at `slot` where the piece of i, marked, stays a region."""
    log_p = math.log(problem.alpha) if i == j else 0.0
    if state.mark[j] == state.number[STAMP]:
        log_p += log_seat(problem, state, slot)
    return log_p


@jit
def draw_link(problem: Problem, state: State, i: int, rng: Any) -> None:
    """Draw the link of site i and, where it joins no other region, the table of its piece, given all else."""
    number, mark, joins, gain, n_regions = state.number, state.mark, state.joins, state.gain, state.n_regions
    number[STAMP] += 1
    cut(state, i)
    piece = state.member[: gather(state, i, 0, False)]
    n_bins = pool(problem, state, piece)
    old, target = np.int64(state.slot_of[state.label[i]]), state.link[i]
    alone = np.int64(mark[target] == number[STAMP])  # the piece is a whole region, and leaves its seat
    n_regions[old] -= alone
    number[N_REGIONS] -= alone

    inside, n_near = look_around(problem, state, i)
    new = np.int64(draw_slot(problem, state, old, n_bins, n_near, inside + problem.alpha, rng))
    new_target = draw_target(problem, state, i, new, inside, rng)
    state.real[0] += gain[new] + log_prior(problem, state, i, new_target, new)
    state.real[0] -= gain[old] + log_prior(problem, state, i, target, old)
    for h in range(problem.start[i], problem.start[i + 1]):
        joins[state.slot_of[state.label[problem.neighbour[h]]]] = 0

    alone = np.int64(mark[new_target] == number[STAMP])
    n_regions[new] += alone
    number[N_REGIONS] += alone
    tie(state, i, new_target)
    move(problem, state, piece, old, new, n_bins)


@jit
def draw_table(problem: Problem, state: State, r: int, rng: Any) -> None:
    """Draw the table of the listed region r, given all else."""
    number, gain, n_regions = state.number, state.gain, state.n_regions
    region = state.member[state.first[r] : state.first[r + 1]]
    n_bins = pool(problem, state, region)
    old = np.int64(state.slot_of[state.label[region[0]]])
    n_regions[old] -= 1
    number[N_REGIONS] -= 1
    new = np.int64(draw_slot(problem, state, old, n_bins, 0, 1.0, rng))
    state.real[0] += gain[new] + log_seat(problem, state, new)
    state.real[0] -= gain[old] + log_seat(problem, state, old)
    n_regions[new] += 1
    number[N_REGIONS] += 1
    move(problem, state, region, old, new, n_bins)


# --- Sweeps ---


@jit
def sweep(problem: Problem, state: State, rng: Any) -> int:
    """Draw every link, then the table of every region; begin where the last call stopped for want of a slot."""
    number, n = state.number, state.link.size
    while True:
        at = number[CURSOR]
        if at == n and not problem.plain:
            list_regions(state)
        if at >= n and (problem.plain or at == n + number[N_REGIONS]):
            number[CURSOR] = 0
            return DONE
        if number[N_CLUSTERS] == state.n_regions.size:
            return FULL
        if at < n:
            draw_link(problem, state, at, rng)
        else:
            draw_table(problem, state, at - n, rng)
        number[CURSOR] = at + 1


@jit
def renumber(state: State, out: np.ndarray) -> None:
    """The clusters of the sites, numbered by first appearance."""
    rank, k = state.choice, 0
    for slot in range(state.number[N_CLUSTERS]):
        rank[slot] = state.number[N_CLUSTERS]
    for i in range(out.size):
        slot = state.slot_of[state.label[i]]
        if rank[slot] == state.number[N_CLUSTERS]:
            rank[slot] = k
            k += 1
        out[i] = rank[slot]


@jit
def run(
    problem: Problem, state: State, record: Record, burn_in: int, thin: int, done: int, until: int, rng: Any
) -> tuple[int, int]:
    """Do sweeps done..until-1, the first perhaps left unfinished before; the status and how many are done."""
    for t in range(done, until):
        if sweep(problem, state, rng) == FULL:
            return FULL, t
        record.log_joint[t] = state.real[0]
        record.n_clusters[t] = state.number[N_CLUSTERS]
        record.n_regions[t] = state.number[N_REGIONS]
        if t >= burn_in and (t + 1 - burn_in) % thin == 0:
            renumber(state, record.draw[(t + 1 - burn_in) // thin - 1])
        if state.real[0] > record.best_log_joint[0]:
            record.best_log_joint[0] = state.real[0]
            renumber(state, record.best)
    return DONE, until
