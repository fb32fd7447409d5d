"""Accuracy of `photo` with each of its constants changed, on every third training photograph of BSDS300.

Network and weights of the cues are those of a fold without the photograph (`benchmarks/held_out.py`).
"""

from benchmarks.data import data_root
from benchmarks.held_out import held_out_evidence
from benchmarks.variants import Variant, summary
from spinseg.evaluation.datasets import bsds

VARIANTS = {
    "photo": Variant(),
    "threshold -0.45": Variant(threshold=-0.45),
    "threshold -1.05": Variant(threshold=-1.05),
    "strength 0.3": Variant(strength=0.3),
    "strength 0.8": Variant(strength=0.8),
    "count weight 0.0012": Variant(arguments={"count_weight": 0.0012}),
    "count weight 0.0047": Variant(arguments={"count_weight": 0.0047}),
    "no chroma in the likelihood": Variant(feature_weights={"colour": 0}),
    "no texture": Variant(feature_weights={"texture": 0}),
    "rates halved": Variant(variance_rates={"lightness": 5.3, "colour": 4.3, "texture": 0.025, "position": 100}),
    "rates doubled": Variant(variance_rates={"lightness": 21, "colour": 17, "texture": 0.1, "position": 400}),
    "smallest region 0.2 %": Variant(min_region_share=0.002),
    "1200 sites": Variant(arguments={"n_sites": 1200}),
    "estimate vi": Variant(arguments={"estimate": "vi"}),
    "1000 sweeps": Variant(arguments={"sweeps": 1000}),
}


def study() -> dict[str, object]:
    """Return the scores of each variant."""
    examples = bsds(data_root(), "train")[::3]
    evidence = [held_out_evidence(3 * i) for i in range(len(examples))]
    return {name: summary(variant, examples, evidence) for name, variant in VARIANTS.items()}
