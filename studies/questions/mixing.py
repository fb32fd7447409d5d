"""Agreement of chains from opposite starts: the paper's sampler and `auto`, at equal wall time.

Ten training photographs of BSDS300 reduced to about 56,000 pixels, paper preset, count weights 0.05 and 0.1. Four
chains, two from one cluster and two from singletons, run for ten times the time of 1,000 sweeps of the paper's sampler;
the first third is burn-in. The data are in ../shared/data or SPINSEG_DATA.
"""

import time
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from PIL import Image

import spinseg as ss
from spinseg.sampler.diagnostics import diagnose
from spinseg.segmentation.presets.paper import Paper
from spinseg.segmentation.problem import prepare
from studies.evaluation.datasets import Example, bsds, data_root

WEIGHTS = (0.05, 0.1)
STARTS = ["one", "one", "singletons", "singletons"]
TIME_FACTOR = 10  # times the time of 1,000 sweeps of the paper's sampler
PIXELS = 56_000


def paper_model(example: Example, weight: float) -> ss.Model:
    """Return the paper's model of a reduced photograph, with histograms of single sites."""
    image = Image.fromarray(example.image())
    factor = (PIXELS / (image.width * image.height)) ** 0.5
    small = image.resize((round(image.width * factor), round(image.height * factor)), Image.Resampling.LANCZOS)
    return prepare(np.asarray(small), Paper(count_weight=weight, smoothing=0)).model


def seconds_per_sweep(model: ss.Model, moves: str, sweeps: int) -> float:
    """Return the time of a sweep of one chain after burn-in."""
    settled = ss.sample(model, 200, 1, moves, rng=1, workers=1)
    began = time.perf_counter()
    ss.sample(model, sweeps, 1, moves, init=settled.labels[0, -1], burn_in=sweeps, rng=2, workers=1)
    return (time.perf_counter() - began) / sweeps


def compare(task: tuple[Example, float]) -> dict[str, object]:
    """Return the results of both samplers on one photograph."""
    example, weight = task
    model = paper_model(example, weight)
    budget = TIME_FACTOR * 1000 * seconds_per_sweep(model, "gsw", 1000)
    row: dict[str, object] = {"image": example.name, "count weight": weight, "sites": model.graph.n_sites}
    for moves in ("gsw", "auto"):
        sweeps = round(budget / seconds_per_sweep(model, moves, 400))
        chains = ss.sample(model, sweeps, 4, moves, init=STARTS, burn_in=sweeps // 3, thin=10, rng=0, workers=1)
        table = diagnose(chains, model.graph).table
        posterior, clusters = table["log_posterior"], table["n_clusters"]
        row |= {
            f"{moves} sweeps": sweeps,
            f"{moves} mean clusters": [round(mean, 1) for mean in clusters.chain_means],
            f"{moves} R-hat log posterior": posterior.r_hat,
            f"{moves} R-hat clusters": clusters.r_hat,
            f"{moves} ESS/s clusters": clusters.ess_bulk / chains.seconds if clusters.ess_bulk else 0.0,
            f"{moves} ESS/s log posterior": posterior.ess_bulk / chains.seconds if posterior.ess_bulk else 0.0,
            f"{moves} best log posterior": round(chains.best_log_posterior, 1),
        }
    return row


def agrees(row: dict[str, object], moves: str) -> bool:
    """Return whether both R-hats are at most 1.05."""
    return all(float(row[f"{moves} R-hat {name}"]) <= 1.05 for name in ("log posterior", "clusters"))  # type: ignore[arg-type]


def study(n_images: int = 10) -> dict[str, object]:
    """Return a line for each photograph, and on how many the chains agree."""
    examples = bsds(data_root(), "train")[7 :: 200 // n_images][:n_images]
    tasks = [(example, weight) for weight in WEIGHTS for example in examples]
    with ProcessPoolExecutor() as pool:
        rows = list(pool.map(compare, tasks))
    figures: dict[str, object] = {}
    for row in rows:
        figures[f"{row['image']} at {row['count weight']}"] = "; ".join(
            f"{moves}: clusters {row[f'{moves} mean clusters']}, R-hat {row[f'{moves} R-hat log posterior']:.2f} "
            f"{row[f'{moves} R-hat clusters']:.2f}, ESS/s {row[f'{moves} ESS/s clusters']:.2f}, "
            f"best {row[f'{moves} best log posterior']}"
            for moves in ("gsw", "auto")
        )
    for weight in WEIGHTS:
        mine = [row for row in rows if row["count weight"] == weight]
        for moves in ("gsw", "auto"):
            figures[f"{moves} at {weight}: both R-hats at most 1.05"] = (
                f"{sum(agrees(r, moves) for r in mine)} of {len(mine)}"
            )
        gains = [float(r["auto ESS/s clusters"]) / float(r["gsw ESS/s clusters"]) for r in mine]  # type: ignore[arg-type]
        figures[f"median gain in ESS/s of the number of clusters at {weight}"] = float(np.median(gains))
    return figures
