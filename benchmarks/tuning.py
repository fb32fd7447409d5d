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
from spinseg.segmentation.presets import REGION_COST

LIKELIHOOD = ("lightness", "colour", "texture", "position")


def _prior(cost: float = REGION_COST, power: float = 0.0, min_size: int = 1) -> dict[str, object]:
    """Return the arguments that change the prior."""
    return {"prior": ss.TemperedProcess(math.exp(-cost), power=power, min_size=min_size)}


VARIANTS = {
    "photo": Variant(),
    "power 0.07": Variant(settings={"power": 0.07}),
    "power 0.15": Variant(settings={"power": 0.15}),
    "power 1": Variant(settings={"power": 1.0}),
    "strength 0.6": Variant(coupling={"strength": 0.6}),
    "strength 1.1": Variant(coupling={"strength": 1.1}),
    "saturation 1.4": Variant(coupling={"saturation": 1.4}),
    "saturation 3": Variant(coupling={"saturation": 3.0}),
    "no saturation": Variant(coupling={"strength": 0.5, "saturation": math.inf}),
    "thresholds around -0.3": Variant(thresholds=(-0.3, 1.0)),
    "thresholds around 0.3": Variant(thresholds=(0.3, 1.0)),
    "thresholds nearer": Variant(thresholds=(0.0, 0.8)),
    "thresholds farther": Variant(thresholds=(0.0, 1.25)),
    "one detail": Variant(settings={"n_details": 1}),
    "6 details": Variant(settings={"n_details": 6}),
    "18 details": Variant(settings={"n_details": 18}),
    "1 nat for a region": Variant(arguments=_prior(1.0)),
    "3 nats for a region": Variant(arguments=_prior(3.0)),
    "larger regions as a Dirichlet process has them": Variant(arguments=_prior(power=0.02)),
    "at least 3 sites": Variant(arguments=_prior(min_size=3)),
    "count weight 0.0008": Variant(arguments={"count_weight": 0.0008}),
    "count weight 0.0072": Variant(arguments={"count_weight": 0.0072}),
    "no likelihood": Variant(feature_weights=dict.fromkeys(LIKELIHOOD, 0.0)),
    "no texture": Variant(feature_weights={"texture": 0}),
    "no position": Variant(feature_weights={"position": 0}),
    "1200 sites": Variant(arguments={"n_sites": 1200}),
    "detail 0.5": Variant(arguments={"detail": 0.5}),
    "detail 0.7": Variant(arguments={"detail": 0.7}),
    "estimate vi": Variant(arguments={"estimate": "vi"}),
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
