"""Readings of the paper's mean shift, "20, 15, 1,500": on 12 photographs of LabelMe and 10 of Berkeley.

It reports 12 regions on LabelMe and 23 on Berkeley. The readings differ in the color space, whose units are those of
the range bandwidth, and in how close the modes of adjacent regions must be for their fusion. The data are in
../shared/data or SPINSEG_DATA. With SPINSEG_KEEP=FILE it keeps what is finished there, and goes on from it.
"""

import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module

import numpy as np
from numpy.typing import NDArray

from benchmarks.data import data_root
from benchmarks.kept import Kept
from benchmarks.reading import Score, score_of
from spinseg.evaluation.baselines import library
from spinseg.evaluation.baselines.mean_shift import (
    PIECE_THRESHOLD,
    apply_filter,
    edison_luv,
    segment_filtered,
    to_8_bit,
)
from spinseg.evaluation.datasets import Example, bsds, labelme

SPATIAL_BANDWIDTH, RANGE_BANDWIDTH, MIN_SIZE = 20.0, 15.0, 1500
FUSION_FRACTIONS = (0.0, 0.25, 0.5, 1.0)  # of the range bandwidth


def photographs() -> dict[str, list[Example]]:
    """Return photographs that no count weight was chosen on."""
    train = bsds(data_root(), "train", edition="bsds300")
    return {"LabelMe": labelme(data_root())[3::32][:12], "Berkeley": train[1::2][::10]}


def color_spaces(rgb: NDArray[np.uint8]) -> Iterator[tuple[str, NDArray[np.uint8], float]]:
    """Yield the name of each color space, the colors in 8 bits, and what a unit of the color space is in them."""
    cv2 = import_module("cv2")
    yield "L*u*v*", *to_8_bit(edison_luv(rgb))
    yield "OpenCV's 8-bit L*u*v*", cv2.cvtColor(rgb, cv2.COLOR_RGB2Luv), 1.0
    yield "sRGB", rgb, 1.0
    yield "luminance", np.repeat(cv2.cvtColor(rgb, cv2.COLOR_RGB2GRAY)[..., None], 3, axis=2), 3**0.5


def scores(example: Example) -> dict[str, Score]:
    """Return the score of each reading on one photograph."""
    found, truths = {}, example.annotations()
    for name, levels, unit in color_spaces(library.as_rgb(example.image())):
        threshold = PIECE_THRESHOLD if name == "luminance" else PIECE_THRESHOLD * unit  # its three channels are one
        filtered = apply_filter(levels, SPATIAL_BANDWIDTH, RANGE_BANDWIDTH * unit)
        for fraction in FUSION_FRACTIONS:
            near = fraction * RANGE_BANDWIDTH * unit
            labels = segment_filtered(filtered, threshold, near, MIN_SIZE)
            found[f"{name}, fusion within {fraction:g} of the bandwidth"] = score_of(labels, truths)
    return found


def study() -> dict[str, object]:
    """Return the median Rand index and number of regions of each reading on each dataset."""
    figures: dict[str, object] = {}
    kept = Kept()
    with ProcessPoolExecutor() as pool:
        for dataset, examples in photographs().items():
            missing = [example for example in examples if f"{dataset}, {example.name}" not in kept]
            for example, found in zip(missing, pool.map(scores, missing), strict=True):
                kept.put({f"{dataset}, {example.name}": found})
                print(f"{dataset}: {example.name}", file=sys.stderr)
            rows = [kept[f"{dataset}, {example.name}"] for example in examples]
            for name in rows[0]:
                rand, _, regions, _ = np.median([row[name] for row in rows], axis=0)
                figures[f"{dataset} ({len(rows)}), {name}"] = f"Rand {rand:.4f}, {regions:g} regions"
    return figures
