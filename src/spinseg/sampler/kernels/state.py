"""The arrays of the compiled sampler: the posterior, the state of a chain, and the record of its draws.

Every argument of a kernel is a number, an array or one of the classes here. Inputs are assumed valid: the public
functions check them.

A cluster has a lasting *id*, written in `label`, and a *slot*, its place in the tables of statistics. Slots 0..k-1 are
occupied, slot k is empty and stands for the new cluster. When a cluster vanishes, the last slot moves into its place;
this costs nothing per site, because `label` keeps the id.
"""

import cython
import numpy as np

if cython.compiled:
    from cython.cimports.cpython.pycapsule import PyCapsule_GetPointer
    from cython.cimports.numpy.random import bitgen_t
    from cython.cimports.numpy.random.c_distributions import random_standard_exponential, random_standard_uniform

# Entries of State.counters and State.scalars.
N_CLUSTERS, N_SPIN_CLUSTERS, NEXT_INDEX, STOP, REACH = range(5)
N_COUNTERS = 5
LOG_POSTERIOR, LAM = range(2)

# Columns of State.sides.
COUPLING, LOG_WEIGHT, DENSE_AFTER, IS_STALE = range(4)

# State.counters[REACH], where a spin-cluster may go in the present sweep: to any cluster; to one that it touches; or to
# one that it touches if what it leaves stays connected. It may found a cluster in each case.
ANYWHERE, TOUCHING, CONNECTED = range(3)

# Columns of Record.move_counts, ; `moves.py` names its rows.
PROPOSED, ACCEPTED = range(2)

FREE, FORCED = range(2)  # whether the choices of a reallocation are drawn, or repeat the present clusters
NO_SPIN = -1  # a spin-cluster that no site is in

# Status of a sweep or a run: finished; no empty slot is left, so enlarge the tables and call again; stopped by request.
DONE, FULL, STOPPED = range(3)

Index = cython.typedef(cython.Py_ssize_t)
Real = cython.typedef(cython.double)
INF = cython.declare(cython.double, float("inf"))


@cython.cclass
class Fields:
    """Arrays and numbers by name, which are attributes for Python, and which kernels read and write in place."""

    values: dict

    def __getattr__(self, name):
        if name == "values" or name not in self.values:
            raise AttributeError(name)
        return self.values[name]

    def __iter__(self):
        return iter(self.values.values())

    def __reduce__(self):
        return _with_fields, (type(self), self.values)

    def _asdict(self):
        """Return the arrays by name."""
        return {name: value for name, value in self.values.items() if isinstance(value, np.ndarray)}

    def _replace(self, **changed):
        """Return the same fields but for some."""
        return type(self)(**(self.values | changed))


def writable(arrays):
    """Return the arrays by name, with copies of those that cannot be written to: compiled kernels take no others."""
    return {name: array if array.flags.writeable else array.copy() for name, array in arrays.items()}


def _with_fields(kind, values):
    """Return copied fields as an instance."""
    return kind(**values)


@cython.cclass
class Sums(Fields):
    """Scratch space for the log marginal of summed statistics."""

    joined: cython.double[::1]  # (S,); the statistics
    work: cython.double[::1]  # a triangle for the Cholesky factor


@cython.final
@cython.cclass
class Target(Fields):
    """The posterior, shared by all chains and never written: n sites, D bins, B blocks, S statistics."""

    start: cython.ulonglong[::1]  # (n + 1,); the half-edges of site i are start[i]..start[i+1]
    upper: cython.ulonglong[::1]  # (n,); those to sites after i are upper[i]..start[i+1]
    neighbor: cython.uint[::1]  # (half-edges,)
    beta: cython.double[::1]  # (half-edges,); power * beta of the model
    strength: cython.double[::1]  # (half-edges,); lambda * strength = max(beta, 0) * delta of the paper
    row: cython.ulonglong[::1]  # (n + 1,); the histogram entries of site i are row[i]..row[i+1]
    bin: cython.uint[::1]  # (entries,)
    bin_count: cython.int[::1]  # (entries,)
    table: cython.double[::1]  # for each bin power * sign * (lgamma(pi + s c) - lgamma(pi)), c = 0, 1, ..
    table_start: cython.longlong[::1]  # (D,); where the table of a bin starts, -1 where it has none
    bin_prior: cython.double[:, ::1]  # (D, 4); pi, s, power * sign, lgamma(pi)
    block: cython.longlong[:, ::1]  # (B, 4); family, channels, first statistic, first parameter
    parameter: cython.double[::1]  # the power, then the parameters of the blocks
    statistic: cython.double[:, ::1]  # (n, S); if there are markers, the last two are those of `constraints.py`
    log_v: cython.double[::1]  # (n + 1,)
    log_w: cython.double[::1]  # (n + 1,)
    proposal_log_w: cython.double[::1]  # (n + 1,); log_w with its -inf filled in, so that every split can be proposed
    similar: cython.uint[:, ::1]  # (n, any); sites that look like each one, from which anchors of regroupings are drawn
    # The next two are empty unless clusters must be connected.
    delay: cython.double[::1]  # (half-edges,); exp(-beta), the mean of the key with which a site is reached by growth
    seed_weight: cython.double[::1]  # (n + 1,); summed weights of the half-edges of the sites before, to draw seeds
    marker_size: cython.double[::1]  # (1 + markers,); the sites of each marker, from 1 on; empty if there are none
    # The next two, the prior of kinds of regions (`kinds.py`), have no columns without kinds.
    kind_table: cython.double[:, ::1]  # (3, n + 1)
    kind_log_v: cython.double[:, :, ::1]  # (2, 1 or n + 1, n + 1); a row for each number of regions, or one for all
    log_g: object  # knows log g of sizes where no table does (`exchangeable.py`), or None

    def __init__(self, log_g=None, **arrays):
        arrays = writable(arrays)
        self.values = arrays | {"log_g": log_g}
        self.log_g = log_g
        self.start, self.upper, self.neighbor = arrays["start"], arrays["upper"], arrays["neighbor"]
        self.beta, self.strength = arrays["beta"], arrays["strength"]
        self.row, self.bin, self.bin_count = arrays["row"], arrays["bin"], arrays["bin_count"]
        self.table, self.table_start = arrays["table"], arrays["table_start"]
        self.bin_prior = arrays["bin_prior"]
        self.block, self.parameter, self.statistic = arrays["block"], arrays["parameter"], arrays["statistic"]
        self.log_v, self.log_w, self.proposal_log_w = arrays["log_v"], arrays["log_w"], arrays["proposal_log_w"]
        self.similar, self.delay, self.seed_weight = arrays["similar"], arrays["delay"], arrays["seed_weight"]
        self.marker_size = arrays["marker_size"]
        self.kind_table, self.kind_log_v = arrays["kind_table"], arrays["kind_log_v"]


@cython.final
@cython.cclass
class State(Sums):
    """One chain: its partition, the statistics of its clusters, and scratch space. The capacity is a multiple of 4.

    Where the clusters are regions that have kinds, these are in the nested state (`kinds.py`).
    """

    label: cython.uint[::1]  # (n,); cluster id of each site
    slot_of: cython.uint[::1]  # (capacity,); id -> slot
    id_of: cython.uint[::1]  # (capacity,); slot -> id; a permutation, the ids at k and beyond are free
    size: cython.int[::1]  # (capacity,); sites in each slot
    counts: cython.int[:, ::1]  # (D, capacity); summed counts, 0 in empty slots
    value: cython.double[:, ::1]  # (D, capacity); the bin's table at `counts`
    total: cython.double[:, ::1]  # (capacity, S); summed statistics
    dense_value: cython.double[::1]  # (capacity,); log marginal of the blocks at `total`
    log_weight: cython.double[::1]  # (capacity,); log posterior with the spin-cluster there, up to a constant
    bond_weight: cython.double[::1]  # (capacity,); summed bond strength to each destination; `choose` overwrites it
    touched: cython.uint[::1]  # (capacity,); slot of each destination in a local sweep
    rank: cython.int[::1]  # (capacity,); scratch; in a local sweep the destination of each touched slot
    spin: cython.uint[::1]  # (n,); spin-cluster of each site in a sweep; its side in a split, merge or regrouping
    member: cython.uint[::1]  # (n,); the sites, spin-cluster by spin-cluster
    first: cython.uint[::1]  # (n + 1,); spin-cluster c is member[first[c]..first[c+1]]; scratch between sweeps
    pool_bin: cython.uint[::1]  # (D + 1,); occupied bins of the spin-cluster at hand
    pool_count: cython.int[::1]  # (D,); their counts
    pooled: cython.int[::1]  # (D,); all zero between calls
    pool_total: cython.double[::1]  # (S,); its summed statistics
    sides: cython.double[:, ::1]  # (3, 4); scratch of growth: for each side its coupling to the site at hand, its
    # weight, its log marginal of the blocks with that site, and whether the one in `dense_value` is out of date
    # The next four are empty unless clusters must be connected.
    key: cython.double[::1]  # (n,); the heap of sites that growth has reached: their keys
    queue: cython.uint[::1]  # (n,); and the sites; in a search, the sites in the order in which they were found
    place: cython.uint[::1]  # (n,); 1 + place in the heap; in a search 1 + the site that led here; 0 between calls
    pending: cython.uint[::1]  # (n,); in a search, at the root of each set, how many of its sites are to be followed
    attempts_left: cython.longlong[::1]  # (moves,); of this iteration
    counters: cython.longlong[::1]  # (5,)
    scalars: cython.double[::1]  # (2,)
    nested = cython.declare("State")  # that of kinds, or None

    def __init__(self, nested=None, **arrays):
        self.values = arrays | {"nested": nested}
        self.nested = nested
        self.label, self.slot_of, self.id_of = arrays["label"], arrays["slot_of"], arrays["id_of"]
        self.size, self.counts, self.value = arrays["size"], arrays["counts"], arrays["value"]
        self.total, self.dense_value = arrays["total"], arrays["dense_value"]
        self.log_weight, self.bond_weight = arrays["log_weight"], arrays["bond_weight"]
        self.touched, self.rank = arrays["touched"], arrays["rank"]
        self.spin, self.member, self.first = arrays["spin"], arrays["member"], arrays["first"]
        self.pool_bin, self.pool_count, self.pooled = arrays["pool_bin"], arrays["pool_count"], arrays["pooled"]
        self.pool_total, self.joined, self.work = arrays["pool_total"], arrays["joined"], arrays["work"]
        self.sides, self.key, self.queue = arrays["sides"], arrays["key"], arrays["queue"]
        self.place, self.pending = arrays["place"], arrays["pending"]
        self.attempts_left = arrays["attempts_left"]
        self.counters, self.scalars = arrays["counters"], arrays["scalars"]


@cython.final
@cython.cclass
class Plan(Fields):
    """The moves of one iteration, and which draws are kept."""

    lams: cython.double[::1]  # a sweep draws its lambda from these
    attempts: cython.longlong[::1]  # (moves,); at each move of `moves.py`, after each sweep
    inv_temperature: cython.double
    burn_in: cython.Py_ssize_t
    thin: cython.Py_ssize_t
    local: cython.double  # share of sweeps in which a spin-cluster only moves to a cluster it touches, or founds one
    global_lams: cython.double[::1]  # lambdas of the other sweeps, where some are local
    connected: cython.bint  # whether clusters must be connected
    growth_limit: cython.double  # an attempt to grow m sites has probability min(1, growth_limit / m)^1.5
    growth_shares: cython.double[::1]  # up to which a uniform number means split or merge, or redraw

    def __init__(
        self,
        lams,
        attempts,
        inv_temperature,
        burn_in,
        thin,
        local=0.0,
        global_lams=None,
        connected=False,
        growth_limit=float("inf"),
        growth_shares=(0.5, 0.75),
    ):
        self.values = {
            "lams": lams,
            "attempts": attempts,
            "inv_temperature": inv_temperature,
            "burn_in": burn_in,
            "thin": thin,
            "local": local,
            "global_lams": np.ones(1) if global_lams is None else global_lams,
            "connected": connected,
            "growth_limit": growth_limit,
            "growth_shares": np.asarray(growth_shares, dtype=float),
        }
        self.lams, self.attempts, self.inv_temperature = lams, attempts, inv_temperature
        self.burn_in, self.thin, self.local = burn_in, thin, local
        self.global_lams, self.connected = self.values["global_lams"], connected
        self.growth_limit, self.growth_shares = growth_limit, self.values["growth_shares"]


@cython.final
@cython.cclass
class Record(Fields):
    """Traces, draws and the best partition of a chain."""

    log_posterior: cython.double[::1]  # (sweeps,)
    n_clusters: cython.int[::1]  # (sweeps,)
    draw: cython.int[:, ::1]  # (draws, n); labels numbered by first appearance
    best: cython.int[::1]  # (n,); labels numbered by first appearance
    best_log_posterior: cython.double[::1]  # (1,)
    kind: cython.int[:, ::1]  # (draws, n); the kind of each site in each draw, numbered so; (draws, 0) without kinds
    best_kind: cython.int[::1]  # (n,); the kinds of `best`; (0,) without kinds
    spin: cython.uint[::1]  # (n,); spin-cluster of each site in the last sweep begun
    move_counts: cython.longlong[:, ::1]  # (proposals, 2); how many of each were made and accepted

    def __init__(self, **arrays):
        self.values = arrays
        self.log_posterior, self.n_clusters = arrays["log_posterior"], arrays["n_clusters"]
        self.draw, self.best = arrays["draw"], arrays["best"]
        self.best_log_posterior = arrays["best_log_posterior"]
        self.kind, self.best_kind = arrays["kind"], arrays["best_kind"]
        self.spin, self.move_counts = arrays["spin"], arrays["move_counts"]


@cython.final
@cython.cclass
class Random:
    """The numbers of a NumPy generator, by its C interface: the same stream as of its own methods."""

    generator: object
    bits: cython.p_void

    def __init__(self, generator):
        self.generator = generator
        if cython.compiled:
            self.bits = PyCapsule_GetPointer(generator.bit_generator.capsule, b"BitGenerator")

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def random(self) -> Real:
        """Return a uniform number in [0, 1)."""
        if cython.compiled:
            return random_standard_uniform(cython.cast(cython.pointer(bitgen_t), self.bits))
        else:
            return self.generator.random()

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def below(self, n: Index) -> Index:
        """Return a uniform whole number below n."""
        return cython.cast(cython.longlong, self.random() * n)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def standard_exponential(self) -> Real:
        """Return an exponential number of mean 1."""
        if cython.compiled:
            return random_standard_exponential(cython.cast(cython.pointer(bitgen_t), self.bits))
        else:
            return self.generator.standard_exponential()


@cython.ccall
@cython.nogil
@cython.exceptval(check=False)
def is_connected(target: Target) -> cython.bint:
    """Whether clusters must be connected."""
    return target.seed_weight.shape[0] > 0


@cython.ccall
@cython.nogil
@cython.exceptval(check=False)
def has_kinds(target: Target) -> cython.bint:
    """Whether the clusters are regions that have kinds, and likelihoods are those of kinds (`kinds.py`)."""
    return target.kind_table.shape[1] > 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def at(three: tuple[Index, Index, Index], s: Index) -> Index:
    """Return one of three numbers."""
    return three[0] if s == 0 else three[1] if s == 1 else three[2]
