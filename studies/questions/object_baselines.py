"""Choice of settings for the recipes that `python -m studies evaluate nuclei` compares with, on training nuclei.

Every third image of at most MAX_PIXELS is taken.

Of each grid the setting with the highest mean F1 at an intersection over union above .5 is chosen, and is the default
of the method. This takes some four minutes of processor time.
"""

from functools import partial

import numpy as np

from studies.evaluation.baselines import library, objects
from studies.evaluation.datasets import Example, data_root, nuclei
from studies.evaluation.objects import object_scores
from studies.questions.baselines import Method, Methods, grid

MAX_PIXELS = 400_000  # of an image: larger ones would take most of the time


def grids() -> dict[str, Methods]:
    """Return a grid of settings for each recipe."""
    cut = {"min_distance": (5, 7, 10), "min_size": (30,)}
    blocks = {"block_size": (51, 101, 201), "offset": (0.0, 0.01, 0.03)}
    return {
        "otsu_watershed": grid(objects.otsu_watershed, sigma=(1.0, 2.0), **cut),
        "local_watershed": grid(objects.local_watershed, sigma=(1.0,), **blocks, **cut),
        "felzenszwalb": grid(library.felzenszwalb, scale=(200, 400, 800, 1600), sigma=(0.8,), min_size=(30, 60, 120)),
    }


def f1(method: Method, examples: list[Example]) -> float:
    """Return the mean F1 over images."""
    return float(np.mean([object_scores(method(e.image()), e.annotations()[0]).f_50 for e in examples]))


def study() -> dict[str, object]:
    """Return the mean F1 of each setting, and the chosen setting of each recipe."""
    examples = [e for e in nuclei(data_root(), "train")[::3] if np.prod(e.image().shape[:2]) <= MAX_PIXELS]
    figures: dict[str, object] = {"images": len(examples)}
    for name, methods in grids().items():
        found = {setting: f1(method, examples) for setting, method in methods.items()}
        figures |= found | {f"{name}: chosen": max(found, key=partial(dict.__getitem__, found))}
    return figures
