"""Choice of settings for the baselines, on every fifth training photograph of BSDS300.

Of each grid the setting is chosen that has the least variation of information among those with a Rand index within
0.01 of the best: the Rand index alone prefers many regions, the variation of information alone few. It is the default
of the method, except for mean shift, whose default is that of the paper. The evidence of boundaries alone, cut at a
level, is that of a fold without the photograph (`held_out.py`). This takes some 40 minutes of processor
time.
"""

import itertools
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from skimage.segmentation import slic

from spinseg.segmentation.presets.photo import Photo
from studies.evaluation.baselines import library, mean_shift
from studies.evaluation.datasets import Example, bsds, data_root
from studies.evaluation.methods import evidence_of
from studies.evaluation.metrics import (
    mean_over_annotators,
    probabilistic_rand_index,
    segmentation_covering,
    variation_of_information,
)
from studies.questions.held_out import held_out_evidence

Method = Callable[..., NDArray]
Methods = dict[str, Method]

LEVELS = (0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55)
MAX_RAND_LOSS = 0.01  # of the chosen setting, relative to the best Rand index


class Row(NamedTuple):
    """Scores of a method: means over photographs, and the median number of labels."""

    rand: float
    information: float
    covering: float
    n_labels: float
    seconds: float

    def text(self, unit: float) -> str:
        """Return the row as text, with time in multiples of that of scikit-image's SLIC."""
        return (
            f"PRI {self.rand:.4f}, VoI {self.information:.3f}, covering {self.covering:.4f}, "
            f"{self.n_labels:g} labels, {self.seconds / unit:.2g} x SLIC"
        )


def grid(method: Method, **values: tuple[float, ...]) -> Methods:
    """Return the method with every combination of settings, by name."""
    combinations = [dict(zip(values, chosen, strict=True)) for chosen in itertools.product(*values.values())]
    return {setting_name(method, settings): partial(method, **settings) for settings in combinations}


def setting_name(method: Method, settings: dict[str, Any]) -> str:
    """Return a name such as "felzenszwalb 300/0.8/300"."""
    return f"{method.__name__} {'/'.join(f'{value:g}' for value in settings.values())}"


def mean_shift_in_luv(image: NDArray, **settings: Any) -> NDArray:
    """Return the labels of mean shift in L*u*v*."""
    return mean_shift.mean_shift(image, colors="luv", **settings)


def paper_settings_with(image: NDArray, change: str) -> NDArray:
    """Return the labels of mean shift with the paper's settings 20, 15 and 1500 and one change."""
    cv2, rgb = import_module("cv2"), library.as_rgb(image)
    if change == "sRGB":
        levels, scale = rgb, 1.0
    elif change == "OpenCV's 8-bit L*u*v*":
        levels, scale = cv2.cvtColor(rgb, cv2.COLOR_RGB2Luv), 1.0
    elif change == "L*u*v* of linear light":
        levels, scale = mean_shift.to_8_bit(cv2.cvtColor(rgb.astype(np.float32) / 255, cv2.COLOR_RGB2Luv))
    else:
        levels, scale = mean_shift.to_8_bit(mean_shift.edison_luv(rgb))
    bandwidth = 15 * scale
    if change == "OpenCV's pyramid and five steps":
        filtered = cv2.pyrMeanShiftFiltering(levels, 20, bandwidth)
    else:
        filtered = mean_shift.apply_filter(levels, 20, bandwidth)
    near = bandwidth if change == "fusion within the whole bandwidth" else mean_shift.FUSION_FRACTION * bandwidth
    return mean_shift.segment_filtered(filtered, mean_shift.PIECE_THRESHOLD * scale, near, 1500)


CHANGES = (
    "OpenCV's 8-bit L*u*v*",
    "sRGB",
    "L*u*v* of linear light",
    "OpenCV's pyramid and five steps",
    "fusion within the whole bandwidth",
)


def grids() -> dict[str, Methods]:
    """Return a grid of settings for each method; those of the extras [cv] and [sklearn] only if they are installed."""
    found = {
        "felzenszwalb": grid(library.felzenszwalb, scale=(200, 300, 450, 600), sigma=(0.8,), min_size=(300, 800, 1500)),
        "slic_merged": grid(library.slic_merged, n_segments=(200, 400), threshold=(25, 35, 45, 60)),
        "quickshift": grid(library.quickshift, kernel_size=(5, 7), max_dist=(40,), ratio=(0.5,)),
    }
    if find_spec("sklearn"):
        found["gaussian_mixture"] = grid(library.gaussian_mixture, n_components=(3, 5, 6, 8, 12, 20))
    if find_spec("cv2"):
        method = mean_shift_in_luv
        found["mean_shift"] = grid(method, spatial_bandwidth=(20,), range_bandwidth=(11, 15), min_size=(1500,))
        found["mean_shift"] |= grid(method, spatial_bandwidth=(10,), range_bandwidth=(6, 8, 11, 15), min_size=(1500,))
    return found


def score(method: Method, example: Example) -> Row:
    """Return the scores on one photograph."""
    image, annotations = example.image(), example.annotations()
    began = time.process_time()
    labels = method(image)
    taken = time.process_time() - began
    return Row(
        probabilistic_rand_index(labels, annotations),
        mean_over_annotators(variation_of_information, labels, annotations),
        mean_over_annotators(segmentation_covering, labels, annotations),
        np.unique(labels).size,
        taken,
    )


def summary(method: Method, examples: list[Example]) -> Row:
    """Return the scores over all photographs."""
    with ProcessPoolExecutor() as pool:
        return mean_row(list(pool.map(partial(score, method), examples)))


def mean_row(rows: list[Row]) -> Row:
    """Return the means over photographs, and the median number of labels."""
    table = np.array(rows)
    return Row(*table.mean(axis=0))._replace(n_labels=float(np.median(table[:, 3])))


def score_levels(i: int, example: Example) -> list[Row]:
    """Return the scores of the evidence of boundaries alone, cut at each of LEVELS, on the i-th training photograph."""
    _, nested = evidence_of(example.image(), Photo(evidence=held_out_evidence(i)))
    return [score(lambda _, level=level: nested.labels(level), example) for level in LEVELS]


def best(rows: dict[str, Row]) -> str:
    """Return the setting of least variation of information among those close to the best Rand index."""
    highest = max(row.rand for row in rows.values())
    return min(
        (name for name in rows if rows[name].rand > highest - MAX_RAND_LOSS), key=lambda name: rows[name].information
    )


def superpixels(image: NDArray) -> NDArray:
    """Return SLIC superpixels, whose time is the unit of time."""
    return slic(image, n_segments=image[..., 0].size // 60)


def study() -> dict[str, object]:
    """Return the scores of each setting, and the chosen setting of each grid."""
    examples = bsds(data_root(), "train")[::5]
    unit = summary(superpixels, examples).seconds
    figures: dict[str, object] = {"photographs": len(examples), "skimage slic, seconds": unit}
    for name, methods in grids().items():
        rows = {setting: summary(method, examples) for setting, method in methods.items()}
        figures |= {setting: row.text(unit) for setting, row in rows.items()}
        figures[f"{name}: chosen"] = best(rows)
    with ProcessPoolExecutor() as pool:
        found = zip(*pool.map(score_levels, range(0, 5 * len(examples), 5), examples), strict=True)
    rows = {f"evidence {level:g}": mean_row(list(each)) for level, each in zip(LEVELS, found, strict=True)}
    figures |= {setting: row.text(unit) for setting, row in rows.items()} | {"evidence: chosen": best(rows)}
    for change in CHANGES if find_spec("cv2") else ():
        figures[f"mean_shift, {change}"] = summary(partial(paper_settings_with, change=change), examples).text(unit)
    return figures
