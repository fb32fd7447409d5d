"""Time and memory for each site as the graph grows: pixels of a square image as sites, about ten clusters."""

import json
import resource
import subprocess
import sys
import time
from typing import Any

import numpy as np

from benchmarks.problems import grid
from spinseg.inference import _kernels
from spinseg.inference.bonds import bond_strengths
from spinseg.inference.pack import new_state, pack

SIDES = (32, 100, 316, 1000)
SITE_SWEEPS = 2_000_000  # how much work to time at each size


def measure(side: int) -> dict[str, float]:
    """Nanoseconds a site and sweep; bytes a site, of the sampler's arrays and at the peak, with building the model."""
    _sweeps(8, 1)  # loads the compiled code, which is not to be counted
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    times, arrays, n_clusters = _sweeps(side, 5)
    peak = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    n_sites = side * side
    return {
        "sites": n_sites,
        "clusters": n_clusters,
        "nanoseconds a site and sweep": 1e9 * min(times) / n_sites,
        "bytes a site, sampler": arrays / n_sites,
        "bytes a site, peak": peak / n_sites,
    }


def _sweeps(side: int, repeats: int) -> tuple[list[float], int, int]:
    """Seconds a sweep in several runs, bytes of the sampler's arrays, and the number of clusters at the end."""
    model, truth = grid(side)
    strength, lams = bond_strengths(model, 1.0, "gsw")
    target = pack(model, strength)
    state = new_state(target, truth, 0.0)
    n_sites = side * side
    sweeps = max(SITE_SWEEPS // n_sites, 1)
    draws, best = np.empty((0, n_sites), np.int32), np.empty(n_sites, np.int32)
    record = _kernels.Record(np.empty(sweeps), np.empty(sweeps, np.int32), draws, best, np.full(1, np.inf))
    rng = np.random.default_rng(0)
    times = []
    for _ in range(repeats + 1):
        began = time.perf_counter()
        status, done = _kernels.run(target, state, record, 0, sweeps, sweeps, 1, lams, 1.0, rng)
        times.append((time.perf_counter() - began) / sweeps)
        assert (status, done) == (_kernels.DONE, sweeps)
    return times[1:], sum(array.nbytes for array in (*target, *state)), int(state.number[_kernels.N_CLUSTERS])


def study() -> dict[str, Any]:
    """Each size in a process of its own, so that its peak memory is its own."""
    rows = []
    for side in SIDES:
        command = [sys.executable, "-c", f"import json, benchmarks.scaling as s; print(json.dumps(s.measure({side})))"]
        rows.append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
    times = [row["nanoseconds a site and sweep"] for row in rows]
    return {"rows": rows, "largest over smallest": times[-1] / times[0]}
