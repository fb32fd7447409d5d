"""How much does the Rand index of the paper's table depend on how fine the ground truth is?

The label images are those that `spinseg reproduce table1 --root DATA` has left in spinseg-paper, or in the folder that
SPINSEG_TABLE names. On LabelMe they are compared with the semantic classes, and with their connected pieces, in which
objects of a class are apart unless they touch; on Berkeley with the coarsest and with the finest annotator of each
photograph. Figures are medians over photographs, of all and by the number of regions in the ground truth.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from skimage.measure import label as connected_pieces

from benchmarks.data import data_root
from spinseg.evaluation.datasets import Example
from spinseg.evaluation.metrics import rand_index
from spinseg.evaluation.paper.table1 import DATASETS

METHODS = ("mean-shift", "rdd-crp-light", "potts-dp")
BINS = {"1 to 3": range(1, 4), "4 or 5": range(4, 6), "6 to 9": range(6, 10), "10 or more": range(10, 10_000)}
SPECKLE = 100  # pixels; smaller pieces of a class are slips of the outline rather than objects

Labels = NDArray[np.int32]


def truths_of(dataset: str, example: Example) -> dict[str, Labels]:
    """Return the coarser and the finer ground truth of a photograph, by name; -1 where there is none."""
    truths = sorted(example.annotations(), key=n_regions)
    if dataset == "LabelMe":
        return {"classes": truths[0], "pieces of classes": pieces_of(truths[0])}
    return {"coarsest annotator": truths[0], "finest annotator": truths[-1]}


def n_regions(truth: Labels) -> int:
    """Return the number of labels, but for -1."""
    return np.unique(truth[truth >= 0]).size


def pieces_of(truth: Labels) -> Labels:
    """Return the connected pieces of each label; -1 where they are small, or where there was -1."""
    pieces = connected_pieces(truth, background=-1, connectivity=2).astype(np.int32)
    area = np.bincount(pieces.ravel())
    return np.where((pieces > 0) & (area >= SPECKLE)[pieces], pieces, -1).astype(np.int32)


def labels_of(folder: Path, dataset: str, method: str, example: Example) -> Labels:
    """Return the label image that the table left."""
    path = folder / f"table1-{dataset.lower()}" / "labels" / method / f"{example.name}.png"
    with Image.open(path) as image:
        return np.asarray(image).astype(np.int32)


def text_of(rows: Sequence[tuple[int, Mapping[str, float]]]) -> str:
    """Return medians over photographs as text."""
    medians = ", ".join(f"{method} {np.median([rands[method] for _, rands in rows]):.3f}" for method in METHODS)
    return f"{medians} ({len(rows)} photographs, {np.median([n for n, _ in rows]):g} regions)"


def study() -> dict[str, object]:
    """Return the median Rand index of each method against each ground truth."""
    folder = Path(os.environ.get("SPINSEG_TABLE", "spinseg-paper"))
    figures: dict[str, object] = {}
    for dataset, examples in DATASETS.items():
        rows: dict[str, list[tuple[int, dict[str, float]]]] = {}
        for example in examples(data_root()):
            found = {method: labels_of(folder, dataset, method, example) for method in METHODS}
            for name, truth in truths_of(dataset, example).items():
                rands = {method: rand_index(labels, truth) for method, labels in found.items()}
                rows.setdefault(name, []).append((n_regions(truth), rands))
        for name, of_truth in rows.items():
            figures[f"{dataset}, {name}"] = text_of(of_truth)
            for words, numbers in BINS.items():
                if some := [row for row in of_truth if row[0] in numbers]:
                    figures[f"{dataset}, {name}, {words} regions"] = text_of(some)
    return figures
