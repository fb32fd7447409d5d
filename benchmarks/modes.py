"""`find_map` compared with generalized Swendsen-Wang at equal wall time: best log posterior over five seeds.

On the photographs of `mixing`, count weights 0.05 and 0.1; one thread each.
"""

import time
from concurrent.futures import ProcessPoolExecutor

import numpy as np

import spinseg as ss
from benchmarks.data import data_root
from benchmarks.mixing import WEIGHTS, paper_model, seconds_per_sweep
from spinseg.evaluation.datasets import Example, bsds

SEEDS = range(5)


def compare(task: tuple[Example, float]) -> dict[str, object]:
    """Return the results of both searches on one photograph, for every seed."""
    example, weight = task
    model = paper_model(example, weight)
    began = time.perf_counter()
    found = [ss.find_map(model, 1, rng=seed, workers=1).log_posterior for seed in SEEDS]
    sweeps = round((time.perf_counter() - began) / len(SEEDS) / seconds_per_sweep(model, "gsw", 1000))
    plain = [ss.sample(model, sweeps, 1, "gsw", rng=seed, workers=1).best_log_posterior for seed in SEEDS]
    return {"image": example.name, "count weight": weight, "found": found, "plain": plain, "sweeps": sweeps}


def study(n_images: int = 10) -> dict[str, object]:
    """Return a line for each photograph, and on how many `find_map` is at least as good."""
    examples = bsds(data_root(), "train")[7 :: 200 // n_images][:n_images]
    with ProcessPoolExecutor() as pool:
        rows = list(pool.map(compare, [(example, weight) for weight in WEIGHTS for example in examples]))
    figures: dict[str, object] = {}
    wins = 0
    for row in rows:
        found, plain = np.array(row["found"]), np.array(row["plain"])
        wins += bool(found.min() >= plain.max() - 1e-6)
        figures[f"{row['image']} at {row['count weight']}"] = (
            f"find_map {found.max():.1f}, worst seed {found.max() - found.min():.1f} below; plain GSW "
            f"({row['sweeps']} sweeps) {found.max() - plain.max():.1f} to {found.max() - plain.min():.1f} below"
        )
    figures["cases where the worst seed of find_map is at least the best of plain GSW"] = f"{wins} of {len(rows)}"
    return figures
