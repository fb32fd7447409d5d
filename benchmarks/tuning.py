"""The constants of `photo`, each changed alone, on every third training photograph of BSDS300.

Boundary weights are fitted within, and each photograph is judged by those of a fit that did not see it.
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
    "no chroma in the likelihood": Variant(shares={"colour": 0}),
    "no texture": Variant(shares={"texture": 0}),
    "rates halved": Variant(rates={"lightness": 5.3, "colour": 4.3, "texture": 0.025, "position": 100}),
    "rates doubled": Variant(rates={"lightness": 21, "colour": 17, "texture": 0.1, "position": 400}),
    "smallest region 0.2 %": Variant(smallest_region=0.002),
    "1200 sites": Variant(arguments={"n_sites": 1200}),
    "estimate vi": Variant(arguments={"estimate": "vi"}),
    "1000 sweeps": Variant(arguments={"sweeps": 1000}),
}


def study() -> dict[str, object]:
    """One line for each variant."""
    by_fold = fit(training_edges()).by_fold
    examples = bsds(data_root(), "train")[::3]
    return {name: summary(variant, examples, lambda i: by_fold[3 * i % N_FOLDS]) for name, variant in VARIANTS.items()}
