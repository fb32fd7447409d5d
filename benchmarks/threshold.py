"""The threshold of the couplings of `photo`, on every second training photograph of BSDS300."""

from functools import partial

from numpy.typing import NDArray

import spinseg as ss
from benchmarks.accuracy import summary
from benchmarks.data import data_root
from spinseg import picture_model
from spinseg.evaluation.datasets import bsds

THRESHOLDS = (-0.9, -1.1, -1.25, -1.4, -1.55)


def with_threshold(image: NDArray, threshold: float) -> NDArray:
    """Labels of `photo` with another threshold."""
    picture_model.COUPLING = picture_model.COUPLING._replace(threshold=threshold)
    return ss.segment(image, chains=1, workers=1, rng=0).labels


def study() -> dict[str, object]:
    """One line for each threshold."""
    examples = bsds(data_root(), "train")[1::2]
    return {
        f"threshold {threshold:g}": summary(partial(with_threshold, threshold=threshold), examples)
        for threshold in THRESHOLDS
    }
