"""Accuracy of `photo` with each of its constants changed, on every third training photograph of BSDS300.

The boundary weights are cross-validated: those of each photograph were fitted without it.
"""

from benchmarks.boundaries import N_FOLDS, fit, training_edges
from benchmarks.data import data_root
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
    by_fold = fit(training_edges()).by_fold
    examples = bsds(data_root(), "train")[::3]
    return {name: summary(variant, examples, lambda i: by_fold[3 * i % N_FOLDS]) for name, variant in VARIANTS.items()}
