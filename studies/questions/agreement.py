"""Agreement between the chains of a run against that of repeated runs: adjusted Rand indices.

For `photo` the bundled photographs, eight training photographs of BSDS300 (left out where they are not in
../shared/data or SPINSEG_DATA), and two images of scikit-image; for `classes` five of them. Each is segmented with
two random seeds. Printed are the agreement of each run, whether it has converged, and the adjusted Rand index
between the labels of the two seeds.
"""

from concurrent.futures import ProcessPoolExecutor
from itertools import combinations
from typing import Any

import numpy as np
from skimage import data

import spinseg as ss
from studies.evaluation.metrics import adjusted_rand_index
from studies.questions.standard_errors import photographs

N_SEEDS = 2
TRAINING = (5, 20, 55, 80, 105, 130, 155, 180)
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


def study() -> dict[str, object]:
    """Return a line for each image and preset."""
    others = {"coins": data.coins(), "brick": data.brick(), "cell": data.cell()}
    images = photographs(TRAINING) | others
    tasks = {f"photo, {name}": ("photo", image) for name, image in images.items() if name != "cell"}
    tasks |= {f"classes, {name}": ("classes", images[name]) for name in WITH_CLASSES}
    with ProcessPoolExecutor() as pool:
        return dict(zip(tasks, pool.map(compare, tasks.values()), strict=True))
