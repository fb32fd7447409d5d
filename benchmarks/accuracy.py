"""Scores of the presets and of felzenszwalb on the test photographs of BSDS300, averaged over annotators.

Look at them rarely, and log each look in docs/accuracy.md. Under ../shared/data or SPINSEG_DATA.
"""

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np
from numpy.typing import NDArray
from skimage.segmentation import felzenszwalb

import spinseg as ss
from benchmarks.data import data_root
from spinseg.evaluation.datasets import Example, bsds
from spinseg.evaluation.metrics import scores

Method = Callable[[NDArray], NDArray]


def by_preset(image: NDArray, preset: str) -> NDArray:
    """Labels of a preset, one chain."""
    return ss.segment(image, preset, chains=1, workers=1, rng=0).labels


METHODS: dict[str, Method] = {
    "photo": partial(by_preset, preset="photo"),
    "paper": partial(by_preset, preset="paper"),
    "felzenszwalb 300/.8/300": partial(felzenszwalb, scale=300, sigma=0.8, min_size=300),
    "felzenszwalb 600/.8/800": partial(felzenszwalb, scale=600, sigma=0.8, min_size=800),
}


def score(method: Method, example: Example) -> tuple[float, float, float, int]:
    """Rand index, variation of information, covering and number of labels for one photograph."""
    labels = method(example.image())
    found = scores(labels, example.annotations())
    numbers = (found.probabilistic_rand_index, found.variation_of_information, found.segmentation_covering)
    return *numbers, np.unique(labels).size


def summary(method: Method, examples: list[Example]) -> str:
    """Means over photographs, the median of the Rand index, and the median number of labels."""
    with ProcessPoolExecutor() as pool:
        table = np.array(list(pool.map(partial(score, method), examples)))
    rand, information, covering, labels = table.T
    return (
        f"PRI {rand.mean():.4f} (median {np.median(rand):.4f}), VoI {information.mean():.3f}, "
        f"covering {covering.mean():.4f}, {np.median(labels):g} labels"
    )


def study() -> dict[str, object]:
    """One line for each method."""
    examples = bsds(data_root(), "test")
    return {"photographs": len(examples), **{name: summary(method, examples) for name, method in METHODS.items()}}
