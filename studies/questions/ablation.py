"""Accuracy of `Photo` without each of its parts, on the test photographs of BSDS300.

Test photographs should be used rarely: record each use in docs/evidence/notebook.md. Where cues are left out, the
boundary weights are fitted to the training photographs without them. The sites are always found with texture.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from spinseg.graph.site_graph import SiteGraph
from spinseg.image.boundary.log_odds import BoundaryEvidence, fitted_weights
from spinseg.segmentation.presets.photo import FeatureWeights, Photo
from studies.evaluation.datasets import bsds, data_root
from studies.questions.boundaries import fit, training_edges
from studies.questions.variants import SPECTRAL, TEXTURE, WHOLE_PICTURE, summary


class Attraction(Photo, listed=False):
    """`Photo` with negative couplings set to zero."""

    def couplings(self, log_odds: NDArray[np.float64], graph: SiteGraph, detail: float) -> NDArray[np.float64]:
        """The couplings of touching sites at a level of detail."""
        return np.maximum(super().couplings(log_odds, graph, detail), 0)


VARIANTS = {
    "photo": Photo(),
    "couplings not below zero": Attraction(),
    "no likelihood": Photo(feature_weights=FeatureWeights(0.0, 0.0, 0.0, 0.0)),
    "one detail": Photo(n_details=1),
    "mode in place of the estimate": Photo(estimate="best"),
    "power 1": Photo(power=1.0),
}
WITHOUT = {
    "no spectral cue": (SPECTRAL, Photo()),
    "no cue of the whole picture": (WHOLE_PICTURE, Photo()),
    "no texture, in cues or likelihood": (TEXTURE, Photo(feature_weights=FeatureWeights(texture=0.0))),
}


def study() -> dict[str, object]:
    """Return the scores of each variant."""
    examples, photographs = bsds(data_root(), "test"), training_edges()
    figures: dict[str, object] = {name: summary(preset, examples) for name, preset in VARIANTS.items()}
    for name, (cues, preset) in WITHOUT.items():
        weights = fit(photographs, without=cues, held_out=False).weights
        evidence = BoundaryEvidence(weights=fitted_weights() | {"color": weights})
        figures[name] = summary(replace(preset, evidence=evidence), examples)
    return figures
