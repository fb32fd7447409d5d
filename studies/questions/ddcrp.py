"""Time of a sweep of the dd-CRP and of the rdd-CRP, compared with generalized Swendsen-Wang on the same problem.

All three sample the partition of the same sites with the same histograms, and are timed after burn-in. A sweep of
generalized Swendsen-Wang moves spin-clusters of a few sites. A sweep over links draws every link, and with it moves all
sites whose links lead to that site, which are many near the root of a region: the mean size of these subtrees is
printed beside the times.
"""

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import spinseg as ss
from spinseg.sampler.kernels.moves import attempts_at, run_iterations
from spinseg.sampler.kernels.state import DONE
from spinseg.sampler.pack import new_records
from studies.evaluation.baselines.ddcrp import new_state, pack_problem, record_of, sample_ddcrp
from studies.evaluation.baselines.ddcrp_kernels import links as kernels
from studies.evaluation.baselines.ddcrp_kernels.links import Plan
from studies.speed.problems import chain_at, superpixels

N_SITES = 1100
LAM = 10.0
SWEEPS = {"GSW": 20, "rdd-CRP": 4, "dd-CRP": 4}  # timed together; about the same time for each
BURN_IN = 200  # sweeps before the timing


def study() -> dict[str, Any]:
    """Return milliseconds per sweep, and ratios to generalized Swendsen-Wang."""
    model = superpixels(N_SITES)
    gsw, n_clusters = _gsw(model)
    tasks = {"GSW": gsw}
    figures: dict[str, Any] = {"sites": N_SITES, "words": 120, "clusters, GSW": n_clusters}
    for name, gamma in (("rdd-CRP", 1e-2), ("dd-CRP", None)):
        tasks[name], facts = _links(model, gamma, SWEEPS[name])
        figures |= {f"{fact}, {name}": value for fact, value in facts.items()}
    best = dict.fromkeys(tasks, math.inf)
    for _ in range(100):  # in turn, so that a busy machine slows all alike
        for name, task in tasks.items():
            began = time.perf_counter()
            task()
            best[name] = min(best[name], (time.perf_counter() - began) / SWEEPS[name])
    figures |= {f"milliseconds per sweep, {name}": 1e3 * seconds for name, seconds in best.items()}
    return figures | {f"ratio of {name} to GSW": best[name] / best["GSW"] for name in ("rdd-CRP", "dd-CRP")}


def _gsw(model: ss.Model) -> tuple[Callable[[], object], int]:
    """Return a function that does sweeps of the paper's sampler after burn-in, and the number of clusters."""
    start = ss.sample(model, sweeps=BURN_IN, chains=1, moves="gsw", lam=LAM, rng=1).labels[0, -1]
    n = SWEEPS["GSW"]
    chain = chain_at(model, start, LAM, n)

    def sweeps() -> None:
        run_iterations(chain.target, chain.state, chain.record, chain.plan, 0, n, chain.rng)

    return sweeps, chain.n_clusters


def _links(model: ss.Model, gamma: float | None, n: int) -> tuple[Callable[[], object], dict[str, Any]]:
    """Return a function that does sweeps over links after burn-in, and facts about the state there."""
    chain = sample_ddcrp(model.graph, model.likelihood, BURN_IN, gamma=gamma, rng=1)
    problem = pack_problem(model.graph, model.likelihood, 1e-10, gamma)
    clusters, links = new_state(problem, chain.links, chain.clusters)
    record = record_of(new_records(1, n, 0, model.graph.n_sites))
    plan, n_regions, rng = Plan(np.zeros(1), attempts_at(), 1.0, n, 1), np.empty(n, np.int32), np.random.default_rng(2)

    def sweeps() -> None:
        status, _ = kernels.run(problem.target, clusters, links, record, n_regions, plan, 0, n, rng)
        assert status == DONE

    facts = {"clusters": int(chain.n_clusters[-1]), "regions": int(chain.n_regions[-1])}
    return sweeps, facts | {"mean sites of a subtree": float(_subtree_sizes(chain.links).mean())}


def _subtree_sizes(links: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return how many sites have links that lead to each site, itself included."""
    sizes = np.zeros(links.size, np.int64)
    for i in range(links.size):
        path = set()
        while i not in path:
            path.add(i)
            i = int(links[i])
        sizes[list(path)] += 1
    return sizes
