"""Agreement within a run beside that of repeated runs: adjusted Rand indices.

For `photo` the bundled photographs, eight training photographs of BSDS300 (left out where they are not in
../shared/data or SPINSEG_DATA), and two images of scikit-image; for `classes` five of them. Each is segmented with
two random seeds. Printed are the agreement of each run, whether it has converged, and the adjusted Rand index
between the labels of the two seeds. A last line has the median and the least of that index over every sixth training
photograph, by networks that have not seen it (`held_out.py`).
"""

from concurrent.futures import ProcessPoolExecutor
from itertools import combinations
from typing import Any

import numpy as np
from skimage import data

import spinseg as ss
from studies.evaluation.datasets import Example, bsds, data_root
from studies.evaluation.metrics import adjusted_rand_index
from studies.questions.held_out import held_out_evidence
from studies.questions.standard_errors import photographs

N_SEEDS = 2
TRAINING = (5, 20, 55, 80, 105, 130, 155, 180)
EVERY, N_TRAINING = 6, 30
WITH_CLASSES = ("coffee", "cat", "coins", "brick", "cell")


def compare(task: tuple[str, Any]) -> str:
    """Return the agreement of each run, and that between their labels."""
    preset, image = task
    runs = [ss.segment(image, preset, rng=seed, workers=1) for seed in range(N_SEEDS)]
    between = [adjusted_rand_index(a.labels, b.labels) for a, b in combinations(runs, 2)]
    words = ", ".join(f"{seg.agreement:.2f} {'yes' if seg.converged else 'no'}" for seg in runs)
    errors = ", ".join(f"{seg.diagnostics.standard_error:.3f}" for seg in runs)
    sweeps = ", ".join(str(seg.chains.n_sweeps) for seg in runs)
    return f"{words}; between seeds {np.mean(between):.2f}; standard error {errors}; sweeps {sweeps}"


def between_seeds(task: tuple[int, Example]) -> tuple[float, bool]:
    """Return the adjusted Rand index between the labels of two seeds, and whether both have converged."""
    number, example = task
    preset = ss.Photo(evidence=held_out_evidence(number))
    runs = [ss.segment(example.image(), preset, rng=seed, workers=1, progress=False) for seed in range(N_SEEDS)]
    return adjusted_rand_index(runs[0].labels, runs[1].labels), all(seg.converged is True for seg in runs)


def of_training(pool: ProcessPoolExecutor) -> str:
    """Return the median and the least index over training photographs."""
    examples = list(enumerate(bsds(data_root(), "train")))[::EVERY][:N_TRAINING]
    index, converged = map(np.array, zip(*pool.map(between_seeds, examples), strict=True))
    return (
        f"median {np.median(index):.3f}, mean {index.mean():.3f}, least {index.min():.2f}; "
        f"{converged.sum()} converged with both seeds, their least {index[converged].min():.2f}"
    )


def study() -> dict[str, object]:
    """Return a line for each image and preset."""
    others = {"coins": data.coins(), "brick": data.brick(), "cell": data.cell()}
    images = photographs(TRAINING) | others
    tasks = {f"photo, {name}": ("photo", image) for name, image in images.items() if name != "cell"}
    tasks |= {f"classes, {name}": ("classes", images[name]) for name in WITH_CLASSES}
    with ProcessPoolExecutor() as pool:
        found: dict[str, object] = dict(zip(tasks, pool.map(compare, tasks.values()), strict=True))
        return found | {f"{N_TRAINING} training photographs, between seeds": of_training(pool)}
