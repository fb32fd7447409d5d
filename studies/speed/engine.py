"""Time of one sweep, relative to the limit of the hardware.

The limit is taken as the time of a bare compiled loop that does as many random reads of the same tables, and draws as
many random numbers, as a sweep. A sweep reads, for every spin-cluster, one entry for each of its bins and each
destination (the table of lgamma at the joint count), one for each bin in its own cluster (at the count without it) and
two of log_w for each destination; it draws a random number for each spin-cluster and for each bond.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sparse
from numba import njit
from numpy.typing import NDArray

import spinseg as ss
from spinseg.sampler.kernels.moves import run_iterations
from studies.speed import plain
from studies.speed.problems import chain_at, superpixels

LAM = 10.0
SWEEPS = 100


@njit(nogil=True, error_model="numpy")
def read(table: Any, index: Any) -> float:  # pragma: no cover
    """Read the table at every index."""
    total = 0.0
    for i in range(index.size):
        total += table[np.uint64(index[i])]
    return total


@njit(nogil=True)
def draw(n: int, rng: Any) -> float:  # pragma: no cover
    """Draw n uniform numbers."""
    total = 0.0
    for _ in range(n):
        total += rng.random()
    return total


def timed(function: Callable[[], object]) -> float:
    """Return the seconds of one call."""
    began = time.perf_counter()
    function()
    return time.perf_counter() - began


def sweep_operations(target: Any, spin: NDArray[np.uint32], n_clusters: int) -> NDArray[np.float64]:
    """Return the numbers of reads of the lgamma tables, reads of log_w, and random numbers of a sweep."""
    n_sites, p = spin.size, int(spin.max()) + 1
    histograms = sparse.csr_array((target.bin_count, target.bin.astype(np.int64), target.row.astype(np.int64)))
    members = sparse.csr_array((np.ones(n_sites), (spin, np.arange(n_sites))), shape=(p, n_sites))
    bins = (members @ histograms).nnz
    destinations = n_clusters + 1
    bonds = -np.expm1(-LAM * target.strength).sum() / 2
    return np.array([bins * destinations + bins, 2 * p * destinations, p + bonds])


def study() -> dict[str, Any]:
    """Return milliseconds per sweep, its operations, and the ratio to a bare loop of these operations."""
    model = superpixels()
    start = ss.sample(model, sweeps=500, chains=1, rng=1).labels[0, -1]
    chain = chain_at(model, start, LAM, SWEEPS)
    target, n_sites, rng = chain.target, model.graph.n_sites, chain.rng

    def sweeps() -> None:
        run_iterations(target, chain.state, chain.record, chain.plan, 0, SWEEPS, rng)

    sweeps()
    operations, clusters = [], []
    for _ in range(50):
        chain.done = 0
        chain.advance(1)
        clusters.append(chain.n_clusters)
        operations.append(sweep_operations(target, chain.state.spin, chain.n_clusters))
    n_lgamma, n_log_w, n_numbers = np.rint(np.mean(operations, axis=0)).astype(int).tolist()
    places = rng.integers(0, target.table.size, n_lgamma, dtype=np.int32)
    sizes = rng.integers(0, target.log_w.size, n_log_w, dtype=np.int32)

    def bare() -> None:
        read(target.table, places)
        read(target.log_w, sizes)
        draw(n_numbers, rng)

    best = np.full(2, np.inf)
    for _ in range(30):  # in turn, so that a busy machine slows both alike; each with warm caches
        best = np.minimum(best, [min(timed(task) for _ in range(3)) for task in (sweeps, bare)])
    sweep_s, bare_s = best / [SWEEPS, 1]
    plain_s = min(timed(lambda: plain.sweep(model, start, LAM, rng)) for _ in range(2))
    return {
        "sites": n_sites,
        "mean occupied bins": float(np.diff(target.row.astype(np.int64)).mean() - 1),  # less the total
        "mean degree": 2 * model.graph.n_edges / n_sites,
        "mean clusters": float(np.mean(clusters)),
        "milliseconds a sweep": 1e3 * sweep_s,
        "table reads a sweep": n_lgamma + n_log_w,
        "of these, of the small table log_w": n_log_w,
        "random numbers a sweep": n_numbers,
        "milliseconds of the bare loop": 1e3 * bare_s,
        "ratio to the bare loop": sweep_s / bare_s,
        "milliseconds of a plain NumPy sweep": 1e3 * plain_s,
        "ratio of plain NumPy to spinseg": plain_s / sweep_s,
    }
