"""What bond strengths do for the search, by count weight: figure 4 of the paper on every second of its photographs.

Best log posterior within 1,000 sweeps from one cluster, one chain each, against single-site Gibbs (lambda = 0). Under
../shared/data or SPINSEG_DATA.
"""

from concurrent.futures import ProcessPoolExecutor
from itertools import product

import numpy as np
from scipy.stats import wilcoxon

import spinseg as ss
from benchmarks.data import data_root
from spinseg.evaluation.benchmark import seed_for
from spinseg.evaluation.datasets import Example, labelme
from spinseg.evaluation.paper.figure4 import N_PER_CATEGORY, SWEEPS, chosen
from spinseg.image.adjacency import region_adjacency
from spinseg.image.picture import as_picture
from spinseg.image.superpixels import superpixels
from spinseg.segmentation.image_model import picture_model
from spinseg.segmentation.settings import settings_of

WEIGHTS = (0.09, 0.3, 1.0)
LAMS = (0.0, 1.0, 5.0, 10.0, 20.0)


def best(task: tuple[Example, float]) -> list[tuple[float, int]]:
    """The best log posterior for each bond strength, and its number of clusters."""
    example, weight = task
    picture = as_picture(example.image())
    sites = superpixels(picture)
    model = picture_model(picture, sites, region_adjacency(sites), settings_of("paper", {"count_weight": weight}))
    found = []
    for lam in LAMS:
        rng = seed_for(f"{example.name} {lam}", 0)
        chains = ss.sample(model, SWEEPS, 1, "gsw", lam, burn_in=SWEEPS, rng=rng, workers=1)
        found.append((chains.best_log_posterior, int(chains.best_labels.max()) + 1))
    return found


def study() -> dict[str, object]:
    """A line for each weight and strength: median increase, on how many photographs there is one, and Wilcoxon's p."""
    examples = chosen(labelme(data_root()), N_PER_CATEGORY)[::2]
    tasks = [(example, weight) for weight, example in product(WEIGHTS, examples)]
    with ProcessPoolExecutor() as pool:
        table = np.array(list(pool.map(best, tasks))).reshape(len(WEIGHTS), len(examples), len(LAMS), 2)
    figures: dict[str, object] = {"photographs": len(examples)}
    for weight, rows, clusters in zip(WEIGHTS, table[..., 0], table[..., 1], strict=True):
        figures[f"count weight {weight:g}, median clusters"] = float(np.median(clusters[:, LAMS.index(10.0)]))
        for lam, increase in zip(LAMS[1:], (rows[:, 1:] - rows[:, :1]).T, strict=True):
            told = f"{np.median(increase):+.1f} nats, {np.sum(increase > 0)} better, p {wilcoxon(increase).pvalue:.2g}"
            figures[f"count weight {weight:g}, lambda {lam:g}"] = told
    return figures
