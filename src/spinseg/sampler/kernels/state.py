"""The arrays of the compiled sampler: the posterior, the state of a chain, and the record of its draws.

Every argument of a compiled function is a number, an array, a named tuple or a bundle of arrays, so that one compiled
signature serves every model for which the questions of `Target` have the same answers. Inputs are assumed valid: the
public functions check them.

A cluster has a lasting *id*, written in `label`, and a *slot*, its place in the tables of statistics. Slots 0..k-1 are
occupied, slot k is empty and stands for the new cluster. When a cluster vanishes, the last slot moves into its place;
this costs nothing per site, because `label` keeps the id.

Arrays that are used as indices are unsigned: Numba then leaves out the test for negative ones.
"""

from typing import NamedTuple

import numpy as np

from spinseg._bundle import Bundle
from spinseg._compiled import internal

# Entries of State.counters and State.scalars.
N_CLUSTERS, N_SPIN_CLUSTERS, NEXT_INDEX, STOP, REACH = range(5)
N_COUNTERS = 5
LOG_POSTERIOR, LAM = range(2)

# Columns of State.sides.
COUPLING, LOG_WEIGHT, DENSE_AFTER, IS_STALE = range(4)

# State.counters[REACH], where a spin-cluster may go in the present sweep: to any cluster; to one that it touches; or to
# one that it touches if what it leaves stays connected. It may found a cluster in each case.
ANYWHERE, TOUCHING, CONNECTED = range(3)

# Columns of Record.move_counts; `moves.py` names its rows.
PROPOSED, ACCEPTED = range(2)

FREE, FORCED = range(2)  # whether the choices of a reallocation are drawn, or repeat the present clusters
NO_SPIN = -1  # a spin-cluster that no site is in

# Status of a sweep or a run: finished; no empty slot is left, so enlarge the tables and call again; stopped by request.
DONE, FULL, STOPPED = range(3)


@internal
def is_connected(target):
    """Whether clusters must be connected."""
    return target.seed_weight.size > 0


@internal
def has_kinds(target):
    """Whether the clusters are regions that have kinds, and likelihoods are those of kinds (`kinds.py`)."""
    return target.kind_table.shape[1] > 0


class Target(Bundle, questions=(is_connected, has_kinds)):
    """The posterior, shared by all chains and never written: n sites, D bins, B blocks, S statistics."""

    start: np.ndarray  # (n + 1,) uint64; the half-edges of site i are start[i]..start[i+1]
    upper: np.ndarray  # (n,) uint64; those to sites after i are upper[i]..start[i+1]
    neighbor: np.ndarray  # (half-edges,) uint32
    beta: np.ndarray  # (half-edges,) float64; power * beta of the model
    strength: np.ndarray  # (half-edges,) float64; lambda * strength = max(beta, 0) * delta of the paper
    row: np.ndarray  # (n + 1,) uint64; the histogram entries of site i are row[i]..row[i+1]
    bin: np.ndarray  # (entries,) uint32
    bin_count: np.ndarray  # (entries,) int32
    table: np.ndarray  # float64; for each bin power * sign * (lgamma(pi + s c) - lgamma(pi)), c = 0, 1, ..
    table_start: np.ndarray  # (D,) int64; where the table of a bin starts, -1 where it has none
    bin_prior: np.ndarray  # (D, 4) float64; pi, s, power * sign, lgamma(pi)
    block: np.ndarray  # (B, 4) int64; family, channels, first statistic, first parameter
    parameter: np.ndarray  # float64; the power, then the parameters of the blocks
    statistic: np.ndarray  # (n, S) float64; if there are markers, the last two are those of `constraints.py`
    log_v: np.ndarray  # (n + 1,) float64
    log_w: np.ndarray  # (n + 1,) float64
    proposal_log_w: np.ndarray  # (n + 1,) float64; log_w with its -inf filled in, so that every split can be proposed
    similar: np.ndarray  # (n, any) uint32; sites that look like each one, from which anchors of regroupings are drawn
    # The next two are empty unless clusters must be connected.
    delay: np.ndarray  # (half-edges,) float64; exp(-beta), the mean of the key with which a site is reached by growth
    seed_weight: np.ndarray  # (n + 1,) float64; summed weights of the half-edges of the sites before, to draw seeds
    marker_size: np.ndarray  # (1 + markers,) float64; the sites of each marker, from 1 on; empty if there are none
    # The next two, the prior of kinds of regions (`kinds.py`), have no columns without kinds.
    kind_table: np.ndarray  # (3, n + 1) float64
    kind_log_v: np.ndarray  # (2, 1 or n + 1, n + 1) float64; a row for each number of regions, or one for all


class State(Bundle):
    """One chain: its partition, the statistics of its clusters, and scratch space. The capacity is a multiple of 4.

    Where the clusters are regions that have kinds, these are in the nested state (`kinds.py`).
    """

    label: np.ndarray  # (n,) uint32; cluster id of each site
    slot_of: np.ndarray  # (capacity,) uint32; id -> slot
    id_of: np.ndarray  # (capacity,) uint32; slot -> id; a permutation, the ids at k and beyond are free
    size: np.ndarray  # (capacity,) int32; sites in each slot
    counts: np.ndarray  # (D, capacity) int32; summed counts, 0 in empty slots
    value: np.ndarray  # (D, capacity) float64; the bin's table at `counts`
    total: np.ndarray  # (capacity, S) float64; summed statistics
    dense_value: np.ndarray  # (capacity,) float64; log marginal of the blocks at `total`
    log_weight: np.ndarray  # (capacity,) float64; log posterior with the spin-cluster there, up to a constant
    bond_weight: np.ndarray  # (capacity,) float64; summed bond strength to each destination; `choose` overwrites it
    touched: np.ndarray  # (capacity,) uint32; slot of each destination in a local sweep
    rank: np.ndarray  # (capacity,) int32; scratch; in a local sweep the destination of each touched slot
    spin: np.ndarray  # (n,) uint32; spin-cluster of each site in a sweep; its side in a split, merge or regrouping
    member: np.ndarray  # (n,) uint32; the sites, spin-cluster by spin-cluster
    first: np.ndarray  # (n + 1,) uint32; spin-cluster c is member[first[c]..first[c+1]]; scratch between sweeps
    pool_bin: np.ndarray  # (D + 1,) uint32; occupied bins of the spin-cluster at hand
    pool_count: np.ndarray  # (D,) int32; their counts
    pooled: np.ndarray  # (D,) int32; all zero between calls
    pool_total: np.ndarray  # (S,) float64; its summed statistics
    joined: np.ndarray  # (S,) float64; scratch
    work: np.ndarray  # float64; scratch, a triangle for the Cholesky factor
    sides: np.ndarray  # (3, 4) float64; scratch of growth: for each side its coupling to the site at hand, its weight,
    # its log marginal of the blocks with that site, and whether the one in `dense_value` is out of date
    # The next four are empty unless clusters must be connected.
    key: np.ndarray  # (n,) float64; the heap of sites that growth has reached: their keys
    queue: np.ndarray  # (n,) uint32; and the sites; in a search, the sites in the order in which they were found
    place: np.ndarray  # (n,) uint32; 1 + place in the heap; in a search 1 + the site that led here; 0 between calls
    pending: np.ndarray  # (n,) uint32; in a search, at the root of each set, how many of its sites are to be followed
    attempts_left: np.ndarray  # (moves,) int64; of this iteration
    counters: np.ndarray  # (5,) int64
    scalars: np.ndarray  # (2,) float64


class Plan(NamedTuple):
    """The moves of one iteration, and which draws are kept."""

    lams: np.ndarray  # float64; a sweep draws its lambda from these
    attempts: np.ndarray  # (moves,) int64; at each move of `moves.py`, after each sweep
    inv_temperature: float
    burn_in: int
    thin: int
    local: float = 0.0  # share of sweeps in which a spin-cluster only moves to a cluster it touches, or founds one
    global_lams: np.ndarray = np.ones(1)  # float64; lambdas of the other sweeps, where some are local
    connected: bool = False  # whether clusters must be connected
    growth_limit: float = np.inf  # an attempt to grow m sites has probability min(1, growth_limit / m)^1.5
    growth_shares: np.ndarray = np.array([0.5, 0.75])  # up to which a uniform number means split or merge, or redraw


class Record(NamedTuple):
    """Traces, draws and the best partition of a chain."""

    log_posterior: np.ndarray  # (sweeps,) float64
    n_clusters: np.ndarray  # (sweeps,) int32
    draw: np.ndarray  # (draws, n) int32; labels numbered by first appearance
    best: np.ndarray  # (n,) int32; labels numbered by first appearance
    best_log_posterior: np.ndarray  # (1,) float64
    kind: np.ndarray  # (draws, n) int32; the kind of each site in each draw, numbered so; (draws, 0) without kinds
    best_kind: np.ndarray  # (n,) int32; the kinds of `best`; (0,) without kinds
    spin: np.ndarray  # (n,) uint32; spin-cluster of each site in the last sweep begun
    move_counts: np.ndarray  # (proposals, 2) int64; how many of each kind of proposal were made and accepted
