"""Pixels as sites: time relative to mean shift and quickshift, coarse to fine or from scratch, and accuracy."""

import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from skimage.segmentation import quickshift

import spinseg as ss
from spinseg.partition.metrics import scores
from studies.evaluation.datasets import Example, bsds, data_root
from studies.speed.segment import mean_shift, photograph, ratio

N_PHOTOGRAPHS = 40


def measure(example: Example, **keywords: Any) -> tuple[float, float, float]:
    """Return Rand index, variation of information and covering of one photograph."""
    found = scores(ss.segment(example.image(), chains=1, workers=1, rng=0, **keywords).labels, example.annotations())
    return found.probabilistic_rand_index, found.variation_of_information, found.segmentation_covering


def mean_scores(**keywords: Any) -> str:
    """Return the mean scores over every fifth training photograph of BSDS300."""
    examples = bsds(data_root(), "train")[::5][:N_PHOTOGRAPHS]
    with ProcessPoolExecutor() as pool:
        rand, information, covering = np.mean(list(pool.map(partial(measure, **keywords), examples)), axis=0)
    return f"PRI {rand:.4f}, VoI {information:.3f}, covering {covering:.4f}"


def best_log_posteriors(image: NDArray[np.uint8]) -> dict[str, object]:
    """Return the best log posterior of pixels after 200 sweeps, from the coarse segmentation and from scratch."""
    coarse = ss.segment(image, chains=1, workers=1, rng=0)
    fine = ss.segment(image, sites="pixels", chains=1, workers=1, rng=0)
    assert isinstance(fine.model, ss.Model)
    figures: dict[str, object] = {
        "coarse to fine: log posterior of the start": fine.model.log_posterior(coarse.labels.ravel())
    }
    figures["coarse to fine: best log posterior, 200 sweeps"] = fine.chains.best_log_posterior
    for init in ("one", "greedy"):
        began = time.perf_counter()
        chains = ss.sample(fine.model, 200, 1, init=init, rng=0)
        taken = time.perf_counter() - began
        figures[f"from {init}: best log posterior, 200 sweeps"] = chains.best_log_posterior
        figures[f"from {init}: clusters at the end; seconds over coarse to fine's"] = (
            f"{chains.n_clusters[0, -1]}; {taken / fine.chains.seconds:.2f}"
        )
    return figures


def study() -> dict[str, object]:
    """Return ratios of times, log posteriors, and accuracy on training photographs."""
    image = photograph()
    labels = ss.segment(image, chains=1, workers=1, rng=0).labels.ravel()
    model = ss.segment(image, sites="pixels", chains=1, sweeps=2, workers=1, rng=0).model
    paper = ss.segment(image, "paper", sites="pixels", sweeps=2, workers=1, rng=0).model
    calls = {
        "200 sweeps of pixels, photo": lambda: ss.sample(model, 200, 1, init=labels, rng=0),
        "200 sweeps of pixels, paper (gsw)": lambda: ss.sample(paper, 200, 1, "gsw", init=labels, rng=0),
        "segment(sites='pixels'), all of it": lambda: ss.segment(image, sites="pixels", chains=1, workers=1, rng=0),
    }
    figures: dict[str, object] = {
        f"{name} / OpenCV mean shift + quickshift": ratio(
            call, lambda: (mean_shift(image), quickshift(image, kernel_size=5, max_dist=10))
        )
        for name, call in calls.items()
    }
    figures |= best_log_posteriors(image)
    figures["photo on 40 training photographs"] = mean_scores()
    figures["photo, pixels as sites"] = mean_scores(sites="pixels")
    return figures
