"""Time and memory per site, by the number of sites: pixels of a square image, about ten clusters."""

import json
import resource
import subprocess
import sys
import time
from typing import Any

from benchmarks.problems import chain_at, grid

SIDES = (32, 100, 316, 1000, 3162)
SITE_SWEEPS = 2_000_000  # sites x sweeps that are timed at each size


def measure(side: int) -> dict[str, float]:
    """Return nanoseconds per site and sweep, and bytes per site: of the sampler, and at the peak, with the model."""
    _sweeps(8, 1)  # loads the compiled code before memory is measured
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
    """Return seconds per sweep in several runs, bytes of the sampler's arrays, and the final number of clusters."""
    model, truth = grid(side)
    sweeps = max(SITE_SWEEPS // side**2, 1)
    chain = chain_at(model, truth, 1.0, sweeps)
    times = []
    for _ in range(repeats + 1):
        chain.done = 0
        began = time.perf_counter()
        chain.advance(sweeps)
        times.append((time.perf_counter() - began) / sweeps)
    return (
        times[1:],
        sum(array.nbytes for bundle in (chain.target, chain.state) for array in bundle._asdict().values()),
        chain.n_clusters,
    )


def study() -> dict[str, Any]:
    """Return the measurements; each size has its own process, so that its peak memory can be measured."""
    rows = []
    for side in SIDES:
        command = [sys.executable, "-c", f"import json, benchmarks.scaling as s; print(json.dumps(s.measure({side})))"]
        rows.append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
    times = [row["nanoseconds a site and sweep"] for row in rows]
    ten_thousand = times[SIDES.index(100)]
    return {
        "rows": rows,
        **{f"{side**2} over 10000 sites": t / ten_thousand for side, t in zip(SIDES, times, strict=True)},
    }
