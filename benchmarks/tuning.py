"""Accuracy and calibration of `photo` with each of its constants changed, on every third training photograph of BSDS.

Network and weights of the cues are those of a fold without the photograph (`benchmarks/held_out.py`).
"""

import math
import sys

import spinseg as ss
from benchmarks.data import data_root
from benchmarks.held_out import held_out_evidence
from benchmarks.variants import UNCONNECTED, Variant, summary
from spinseg.evaluation.datasets import bsds
from spinseg.segmentation.presets import MIN_REGION_SITES

LIKELIHOOD = ("lightness", "colour", "texture", "position")


def _prior(cost: float, min_size: int = MIN_REGION_SITES) -> dict[str, object]:
    """Return the arguments that change the prior."""
    return {"prior": ss.TemperedProcess(math.exp(-cost), power=0.0, min_size=min_size)}


VARIANTS = {
    "photo": Variant(),
    "power 0.05": Variant(settings={"power": 0.05}),
    "power 0.2": Variant(settings={"power": 0.2}),
    "power 1": Variant(settings={"power": 1.0}),
    "thresholds 0 (1.8)": Variant(thresholds=(0.0, 1.8)),
    "thresholds -0.6 (1.8)": Variant(thresholds=(-0.6, 1.8)),
    "thresholds -0.3 (1.4)": Variant(thresholds=(-0.3, 1.4)),
    "thresholds -0.3 (2.2)": Variant(thresholds=(-0.3, 2.2)),
    "one detail": Variant(settings={"n_details": 1}),
    "4 details": Variant(settings={"n_details": 4}),
    "8 details": Variant(settings={"n_details": 8}),
    "1 nat for a region": Variant(arguments=_prior(1.0)),
    "3 nats for a region": Variant(arguments=_prior(3.0)),
    "at least 1 site": Variant(arguments=_prior(2.0, 1)),
    "at least 5 sites": Variant(arguments=_prior(2.0, 5)),
    "count weight 0.0012": Variant(arguments={"count_weight": 0.0012}),
    "count weight 0.0047": Variant(arguments={"count_weight": 0.0047}),
    "no likelihood": Variant(feature_weights=dict.fromkeys(LIKELIHOOD, 0.0)),
    "no texture": Variant(feature_weights={"texture": 0}),
    "1200 sites": Variant(arguments={"n_sites": 1200}),
    "detail 0.5": Variant(arguments={"detail": 0.5}),
    "detail 0.7": Variant(arguments={"detail": 0.7}),
    "estimate binder": Variant(arguments={"estimate": "binder"}),
    "estimate best": Variant(arguments={"estimate": "best"}),
    "from opposite starts": Variant(arguments={"init": "opposite"}),
    "1000 sweeps": Variant(arguments={"sweeps": 1000}),
    "clusters that need not be connected": Variant(settings=UNCONNECTED),
}


def study() -> dict[str, object]:
    """Return the scores of each variant."""
    examples = bsds(data_root(), "train")[::3]
    evidence = [held_out_evidence(3 * i) for i in range(len(examples))]
    figures: dict[str, object] = {}
    for name, variant in VARIANTS.items():
        figures[name] = summary(variant, examples, evidence)
        print(f"{name}: {figures[name]}", file=sys.stderr, flush=True)
    return figures
