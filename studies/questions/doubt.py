"""Which column of `seg.regions` points to objects that are wrong: `boundary`, or `probability`.

Every third training nuclei image, with a network that has not seen it. An object, which is any region but the largest,
is wrong if no annotated nucleus has an intersection over union above .5 with it. A number ranks well if wrong objects
have smaller ones: 1 is the best area under the curve, and .5 that of chance. A region of one superpixel has no
`probability`, which here counts as 1. The data are in ../shared/data or SPINSEG_DATA.
"""

import warnings
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace

import numpy as np
from scipy.stats import rankdata

import spinseg as ss
from studies.evaluation.datasets import Example, data_root, get_dataset
from studies.evaluation.metrics import contingency
from studies.evaluation.objects import BACKGROUND
from studies.questions.held_out import held_out_evidence

EVERY = 3  # of the training images
LIMITS = (0.7, 0.8, 0.9)


def of_image(task: tuple[int, Example]) -> list[tuple[float, float, bool]]:
    """Return `boundary`, `probability` and whether it is wrong, for each object found in an image."""
    number, example = task
    preset = ss.Measured()
    preset = replace(preset, evidence=held_out_evidence(number, preset.evidence))
    found = ss.segment(example.image(), preset, rng=0, workers=1, progress=False)
    table = contingency(found.labels, example.annotations()[0])
    shared, nucleus_size, region_size = table.cells
    overlap = np.where(np.unique(example.annotations()[0])[table.row] == BACKGROUND, 0, shared) / (
        nucleus_size + region_size - shared
    )
    best = np.zeros(table.column_sizes.size)
    np.maximum.at(best, table.column, overlap)
    best = best[np.searchsorted(np.unique(found.labels), [row["label"] for row in found.region_rows])]
    return [
        (row["boundary"], 1.0 if row["probability"] is None else row["probability"], bool(overlap <= 0.5))
        for row, overlap in zip(found.region_rows[1:], best[1:], strict=True)
        if row["boundary"] is not None
    ]


def study() -> dict[str, object]:
    """Return how well each column ranks, and for some limits how many objects are below, and how many of them wrong."""
    warnings.simplefilter("ignore")
    images = list(enumerate(get_dataset("nuclei", data_root(), "train")))[::EVERY]
    with ProcessPoolExecutor() as pool:
        objects = np.array([row for rows in pool.map(of_image, images) for row in rows])
    wrong = objects[:, 2] == 1
    figures: dict[str, object] = {"objects": f"{len(objects)} in {len(images)} images, {wrong.sum()} wrong"}
    for column, name in enumerate(("boundary", "probability")):
        values = objects[:, column]
        ranks, n_right = rankdata(-values), np.count_nonzero(~wrong)
        area = (ranks[wrong].sum() - wrong.sum() * (wrong.sum() + 1) / 2) / (wrong.sum() * n_right)
        below = (f"{(values < at).sum()} below {at}, {(wrong & (values < at)).sum()} of them wrong" for at in LIMITS)
        figures[name] = f"area under the curve {area:.2f}; {'; '.join(below)}"
    figures["without a probability"] = f"{(objects[:, 1] == 1).mean():.0%}, or one of exactly 1"
    return figures
