"""Time and memory per site, by the number of sites: pixels of a square image, about ten clusters.

Once with a sweep of spin-clusters that may go anywhere, and once with clusters that must be connected and all moves of
`auto`.
"""

import json
import resource
import subprocess
import sys
import time
from typing import Any

import spinseg as ss
from spinseg.graph.adjacency import regions_of
from spinseg.sampler.chain import Chain
from studies.speed.problems import chain_at, grid

SIDES = (32, 100, 316, 1000, 3162)
SITE_SWEEPS = 2_000_000  # sites x sweeps that are timed at each size


def measure(side: int, connected: bool) -> dict[str, float]:
    """Return nanoseconds per site and sweep, and bytes per site: of the sampler, and at the peak, with the model."""
    _sweeps(8, 1, connected)  # loads the compiled code before memory is measured
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    times, arrays, n_clusters = _sweeps(side, 5, connected)
    peak = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    n_sites = side * side
    return {
        "sites": n_sites,
        "clusters": n_clusters,
        "nanoseconds a site and sweep": 1e9 * min(times) / n_sites,
        "bytes a site, sampler": arrays / n_sites,
        "bytes a site, peak": peak / n_sites,
    }


def _sweeps(side: int, repeats: int, connected: bool) -> tuple[list[float], int, int]:
    """Return seconds per sweep in several runs, bytes of the sampler's arrays, and the final number of clusters."""
    model, truth = grid(side)
    sweeps = max(SITE_SWEEPS // side**2, 20 if connected else 1)  # whose lambdas differ
    if connected:
        prior = ss.TemperedProcess(1e-20, power=0.0)  # a region costs 46 nats, more than noisy pixels lose
        regions = ss.Model(model.graph, model.likelihood, prior, model.beta, connected=True)
        start = regions_of(truth, model.graph)
        runner = ss.Sampler(regions, sweeps, 1, init=start, burn_in=sweeps, rng=2).runners[0]
        assert isinstance(runner, Chain)
        chain = runner
    else:
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
    figures: dict[str, Any] = {}
    for kind, connected, sides in (("anywhere", False, SIDES), ("connected", True, SIDES[:-1])):
        rows = []
        for side in sides:
            code = f"import json, studies.speed.scaling as s; print(json.dumps(s.measure({side}, {connected})))"
            done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
            rows.append(json.loads(done.stdout))
        times = [row["nanoseconds a site and sweep"] for row in rows]
        ten_thousand = times[sides.index(100)]
        figures[f"{kind}: rows"] = rows
        for side, nanoseconds in zip(sides, times, strict=True):
            figures[f"{kind}: {side**2} over 10000 sites"] = nanoseconds / ten_thousand
    return figures
