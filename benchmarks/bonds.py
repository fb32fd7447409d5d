"""The effect of bond strengths on the search at larger count weights, on every second photograph of figure 4.

`spinseg reproduce figure4` has the histograms and the count weight of the paper preset; here histograms are those of
single sites, as the paper has them. Here, too, it is the best log posterior within 1,000 sweeps from one cluster, one
chain each, compared with single-site Gibbs (lambda = 0). The data are in ../shared/data or SPINSEG_DATA.
"""

from concurrent.futures import ProcessPoolExecutor
from itertools import product

import numpy as np
from scipy.stats import wilcoxon

import spinseg as ss
from benchmarks.data import data_root
from spinseg.evaluation.benchmark import seed_for
from spinseg.evaluation.datasets import Example, labelme
from spinseg.evaluation.paper.figure4 import N_PER_CATEGORY, SWEEPS, choose_examples
from spinseg.image.adjacency import region_adjacency
from spinseg.image.picture import as_picture
from spinseg.image.superpixels import superpixels
from spinseg.segmentation.image_model import picture_model
from spinseg.segmentation.presets import settings_of

COUNT_WEIGHTS = (0.3, 1.0)
LAMS = (0.0, 1.0, 5.0, 10.0, 20.0)


def best(task: tuple[Example, float]) -> list[tuple[float, int]]:
    """Return the best log posterior for each bond strength, and its number of clusters."""
    example, weight = task
    picture = as_picture(example.image())
    sites = superpixels(picture)
    settings = settings_of("paper", {"count_weight": weight, "smoothing": 0})
    model = picture_model(picture, sites, region_adjacency(sites), settings)
    found = []
    for lam in LAMS:
        rng = seed_for(f"{example.name} {lam}", 0)
        chains = ss.sample(model, SWEEPS, 1, "gsw", lam, burn_in=SWEEPS, rng=rng, workers=1)
        found.append((chains.best_log_posterior, int(chains.best_labels.max()) + 1))
    return found


def study() -> dict[str, object]:
    """Return for each weight and strength the median increase, the number of photographs with one, and Wilcoxon's p."""
    examples = choose_examples(labelme(data_root()), N_PER_CATEGORY)[::2]
    tasks = [(example, weight) for weight, example in product(COUNT_WEIGHTS, examples)]
    with ProcessPoolExecutor() as pool:
        table = np.array(list(pool.map(best, tasks))).reshape(len(COUNT_WEIGHTS), len(examples), len(LAMS), 2)
    figures: dict[str, object] = {"photographs": len(examples)}
    for weight, rows, clusters in zip(COUNT_WEIGHTS, table[..., 0], table[..., 1], strict=True):
        figures[f"count weight {weight:g}, median clusters"] = float(np.median(clusters[:, LAMS.index(10.0)]))
        for lam, increase in zip(LAMS[1:], (rows[:, 1:] - rows[:, :1]).T, strict=True):
            line = f"{np.median(increase):+.1f} nats, {np.sum(increase > 0)} better, p {wilcoxon(increase).pvalue:.2g}"
            figures[f"count weight {weight:g}, lambda {lam:g}"] = line
    return figures
