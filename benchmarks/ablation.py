"""`photo` without each of its parts, on the test photographs of BSDS300: look rarely; log it in docs/accuracy.md.

Where cues are left out, the boundary weights are fitted again without them, to the training photographs. Without
texture, its steps still have their part in the relief that the sites come from.
"""

from functools import partial

from benchmarks.boundaries import fit, training_edges
from benchmarks.data import data_root
from benchmarks.variants import SPECTRAL, TEXTURE, WHOLE_PICTURE, Variant, summary
from spinseg.evaluation.datasets import bsds
from spinseg.image.boundary.log_odds import BoundaryWeights

VARIANTS = {
    "photo": Variant(),
    "couplings not below zero": Variant(positive=True),
    "no likelihood": Variant(shares=dict.fromkeys(("lightness", "colour", "texture", "position"), 0.0)),
    "no sampling, merging alone": Variant(sampled=False),
    "clusters, not regions": Variant(arguments={"regions": False}),
}
WITHOUT = {
    "no spectral cue": (SPECTRAL, Variant()),
    "no cue of the whole picture": (WHOLE_PICTURE, Variant()),
    "no texture, in cues or likelihood": (TEXTURE, Variant(shares={"texture": 0.0})),
}


def _always(weights: BoundaryWeights, i: int) -> BoundaryWeights:
    """The same weights for every photograph."""
    return weights


def study() -> dict[str, object]:
    """One line for each."""
    examples, photographs = bsds(data_root(), "test"), training_edges()
    figures: dict[str, object] = {name: summary(variant, examples) for name, variant in VARIANTS.items()}
    for name, (cues, variant) in WITHOUT.items():
        weights = fit(photographs, without=cues, held_out=False).weights
        figures[name] = summary(variant, examples, partial(_always, weights))
    return figures
