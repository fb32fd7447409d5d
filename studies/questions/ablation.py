"""Accuracy of `photo` without each of its parts, on the test photographs of BSDS300.

Test photographs should be used rarely: record each use in docs/evidence/notebook.md. Where cues are left out, the
boundary weights are fitted to the training photographs without them. The sites are always found with texture.
"""

from spinseg.image.boundary.log_odds import BoundaryWeights
from studies.evaluation.datasets import bsds, data_root
from studies.questions.boundaries import fit, training_edges
from studies.questions.held_out import Evidence
from studies.questions.variants import SPECTRAL, TEXTURE, UNCONNECTED, WHOLE_PICTURE, Variant, summary

VARIANTS = {
    "photo": Variant(),
    "couplings not below zero": Variant(nonnegative=True),
    "no likelihood": Variant(feature_weights=dict.fromkeys(("lightness", "colour", "texture", "position"), 0.0)),
    "clusters that need not be connected": Variant(settings=UNCONNECTED),
    "one detail": Variant(settings={"n_details": 1}),
    "mode in place of the estimate": Variant(arguments={"estimate": "best"}),
    "power 1": Variant(settings={"power": 1.0}),
}
WITHOUT = {
    "no spectral cue": (SPECTRAL, Variant()),
    "no cue of the whole picture": (WHOLE_PICTURE, Variant()),
    "no texture, in cues or likelihood": (TEXTURE, Variant(feature_weights={"texture": 0.0})),
}


def study() -> dict[str, object]:
    """Return the scores of each variant."""
    examples, photographs = bsds(data_root(), "test"), training_edges()
    packaged = [Evidence()] * len(examples)
    figures: dict[str, object] = {name: summary(variant, examples, packaged) for name, variant in VARIANTS.items()}
    for name, (cues, variant) in WITHOUT.items():
        weights = fit(photographs, without=cues, held_out=False).weights
        fitted = Evidence(weights={"colour": weights, "grey": BoundaryWeights.fitted("grey")})
        figures[name] = summary(variant, examples, [fitted] * len(examples))
    return figures
