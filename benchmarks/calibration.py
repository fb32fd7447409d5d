"""The count weight of the `paper` preset: how many clusters each weight gives, against the paper's medians.

On every eighth training photograph of BSDS300 and every sixteenth of LabelMe, under ../shared/data or SPINSEG_DATA.
"""

import numpy as np

import spinseg as ss
from benchmarks.data import data_root
from spinseg.evaluation.datasets import Example, bsds, labelme

WEIGHTS = (0.05, 0.07, 0.09, 0.12)
PAPER = {"labelme": 9, "bsds300": 12}  # its medians for T_min = 0


def clusters(examples: list[Example], weight: float) -> list[int]:
    """Number of clusters of each picture."""
    return [ss.segment(example.image(), "paper", count_weight=weight, rng=0).n_clusters for example in examples]


def study() -> dict[str, object]:
    """Median and quartiles of the number of clusters for each weight."""
    root = data_root()
    sets = {"labelme": labelme(root)[::16], "bsds300": bsds(root, "train")[::8]}
    figures: dict[str, object] = {}
    for name, examples in sets.items():
        figures[f"{name}: pictures"] = len(examples)
        figures[f"{name}: the paper's median"] = PAPER[name]
        for weight in WEIGHTS:
            low, median, high = np.percentile(clusters(examples, weight), [25, 50, 75])
            figures[f"{name}: median (quartiles) at {weight:g}"] = f"{median:g} ({low:g}-{high:g})"
    return figures
