"""What does a sweep of the dd-CRP and of the rdd-CRP cost, next to one of our own sampler on the same problem?

All three draw the partition of the same sites with the same histograms; each is timed where it has settled. A sweep of
ours moves spin-clusters of a few sites; a sweep of theirs draws every link, and with it moves all sites whose links
lead there, which are many near the root of a region: the mean size of these pieces is given beside the times.
"""

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import spinseg as ss
from benchmarks.problems import chain_at, superpixels
from spinseg.evaluation.baselines import ddcrp_kernels as _ddcrp_kernels
from spinseg.evaluation.baselines.ddcrp import new_record, new_state, pack_problem, sample_ddcrp
from spinseg.inference.kernels.iterations import run_iterations

N_SITES = 1100
LAM = 10.0
SWEEPS = {"GSW": 20, "rdd-CRP": 4, "dd-CRP": 4}  # at a stretch, for each in turn; about as long for all
SETTLED = 200  # sweeps before the clock starts


def study() -> dict[str, Any]:
    """Milliseconds a sweep, and ratios to one of ours."""
    model = superpixels(N_SITES)
    ours, n_clusters = _gsw(model)
    tasks = {"GSW": ours}
    figures: dict[str, Any] = {"sites": N_SITES, "words": 120, "clusters, GSW": n_clusters}
    for name, gamma in (("rdd-CRP", 1e-2), ("dd-CRP", None)):
        tasks[name], facts = _links(model, gamma, SWEEPS[name])
        figures |= {f"{fact}, {name}": value for fact, value in facts.items()}
    best = dict.fromkeys(tasks, math.inf)
    for _ in range(100):  # turn about, so that a busy machine slows all alike
        for name, task in tasks.items():
            began = time.perf_counter()
            task()
            best[name] = min(best[name], (time.perf_counter() - began) / SWEEPS[name])
    figures |= {f"milliseconds a sweep, {name}": 1e3 * seconds for name, seconds in best.items()}
    return figures | {f"ratio of {name} to GSW": best[name] / best["GSW"] for name in ("rdd-CRP", "dd-CRP")}


def _gsw(model: ss.Model) -> tuple[Callable[[], object], int]:
    """Sweeps of the paper's sampler, from where `sample` had settled, and the number of clusters there."""
    start = ss.sample(model, sweeps=SETTLED, chains=1, moves="gsw", lam=LAM, rng=1).labels[0, -1]
    n = SWEEPS["GSW"]
    chain = chain_at(model, start, LAM, n)

    def sweeps() -> None:
        run_iterations(chain.target, chain.state, chain.record, chain.plan, 0, n, chain.rng)

    return sweeps, chain.n_clusters


def _links(model: ss.Model, gamma: float | None, n: int) -> tuple[Callable[[], object], dict[str, Any]]:
    """Sweeps over links, from where `sample_ddcrp` had settled, and what there was."""
    chain = sample_ddcrp(model.graph, model.likelihood, SETTLED, gamma=gamma, rng=1)
    problem = pack_problem(model.graph, model.likelihood, 1e-10, gamma)
    state = new_state(problem, chain.links, chain.clusters)
    record, rng = new_record(n, 0, chain.clusters, math.inf), np.random.default_rng(2)

    def sweeps() -> None:
        status, _ = _ddcrp_kernels.run(problem, state, record, n, 1, 0, n, rng)
        assert status == _ddcrp_kernels.DONE

    facts = {"clusters": int(chain.n_clusters[-1]), "regions": int(chain.n_regions[-1])}
    return sweeps, facts | {"mean sites of a piece": float(_piece_sizes(chain.links).mean())}


def _piece_sizes(links: NDArray[np.int32]) -> NDArray[np.int64]:
    """How many sites' links lead to each site, itself among them."""
    sizes = np.zeros(links.size, np.int64)
    for i in range(links.size):
        path = set()
        while i not in path:
            path.add(i)
            i = int(links[i])
        sizes[list(path)] += 1
    return sizes
