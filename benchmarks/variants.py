"""Variants of the `photo` preset, and their scores."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from statistics import NormalDist
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

import spinseg as ss
from benchmarks.held_out import Evidence
from spinseg.evaluation.calibration import LEAST, Reliability, annotated_separation, energy_distance
from spinseg.evaluation.datasets import Example
from spinseg.evaluation.metrics import scores
from spinseg.image.boundary import maps
from spinseg.image.boundary.log_odds import signed_couplings
from spinseg.image.boundary.network import RADII
from spinseg.segmentation import image_model, presets

# The settings of a posterior whose clusters need not be connected, as `photo` was before.
UNCONNECTED = {name: getattr(presets.PHOTO_UNCONNECTED, name) for name in vars(presets.PHOTO)}
N_DRAWS = 16  # of a photograph, for the energy distance

# Groups of cues.
NETWORK = frozenset(f"{name}{radius}" for name in ("network", "within") for radius in RADII)
SPECTRAL = frozenset({"apart"})
TEXTURE = frozenset({"T6", "T12", "texture", "texture after"}) | {f"textons{hop}" for hop in range(4)}
TEXTURE |= {f"textons after {time}" for time in (2, 4, 8)}
WHOLE_PICTURE = frozenset({"apart", "merged", "calm", "busy", "colours after", "texture after"})
WHOLE_PICTURE |= {f"{name} after {time}" for name in ("words", "textons") for time in (2, 4, 8)}


@dataclass(frozen=True)
class Variant:
    """Changes of `photo`: its constants in `presets`, its settings, and arguments of `segment`."""

    strength: float = presets.STRENGTH
    thresholds: tuple[float, float] = (presets.THRESHOLDS.mean, presets.THRESHOLDS.stdev)
    nonnegative: bool = False  # whether negative couplings are set to zero
    feature_weights: Mapping[str, float] = field(default_factory=dict)
    variance_rates: Mapping[str, float] = field(default_factory=dict)
    network_relief: float = maps.NETWORK_RELIEF
    settings: Mapping[str, Any] = field(default_factory=dict)  # of `Settings`, such as `power` and `n_details`
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def segmentation(self, image: NDArray, evidence: Evidence) -> ss.Segmentation:
        """Return the segmentation with seed 0."""
        with ExitStack() as changed:
            changed.enter_context(patch.object(image_model, "STRENGTH", self.strength))
            changed.enter_context(patch.object(presets, "THRESHOLDS", NormalDist(*self.thresholds)))
            changed.enter_context(patch.object(presets, "PHOTO", replace(presets.PHOTO, **self.settings)))
            changed.enter_context(patch.object(maps, "NETWORK_RELIEF", self.network_relief))
            changed.enter_context(patch.dict(presets.FEATURE_WEIGHTS, self.feature_weights))
            changed.enter_context(patch.dict(presets.VARIANCE_RATES, self.variance_rates))
            if self.nonnegative:
                changed.enter_context(patch.object(image_model, "signed_couplings", _attraction))
            changed.enter_context(evidence.used())
            arguments = {"workers": 1, "rng": 0} | dict(self.arguments)
            return ss.segment(image, progress=False, **arguments)


def _attraction(*arguments: Any) -> NDArray[np.float64]:
    """Return the couplings, negative ones set to zero."""
    return np.maximum(signed_couplings(*arguments), 0)


class Scored(NamedTuple):
    """The scores of one photograph."""

    rand: float
    information: float
    covering: float
    labels: float
    reliability: Reliability
    energy_distance: float
    graded: float  # share of boundary pixels whose probability lies between .05 and .95
    converged: float


def score(variant: Variant, example: Example, evidence: Evidence) -> Scored:
    """Return the scores of one photograph."""
    found, annotations = variant.segmentation(example.image(), evidence), example.annotations()
    regions, edges = scores(found.labels, annotations), found.model.graph.edges
    share = annotated_separation(found.sites, edges, annotations)
    drawn = found.chains.labels.reshape(-1, found.model.graph.n_sites)
    some = np.random.default_rng(0).permutation(len(drawn))[:N_DRAWS]
    boundary = found.boundary_probability[found.boundary_probability > LEAST]
    return Scored(
        regions.probabilistic_rand_index,
        regions.variation_of_information,
        regions.segmentation_covering,
        float(found.n_clusters),
        Reliability.of(found.separation, share, found.boundary_length),
        energy_distance(drawn[some], found.sites, annotations),
        float(np.mean((boundary > 0.05) & (boundary < 0.95))) if boundary.size else 0.0,
        float(found.converged is True),
    )


def summary(variant: Variant, examples: Sequence[Example], evidence: Sequence[Evidence]) -> str:
    """Return the scores of all photographs as text."""
    with ProcessPoolExecutor() as pool:
        return text_of(list(pool.map(partial(score, variant), examples, evidence)))


def text_of(rows: Sequence[Scored]) -> str:
    """Return means over photographs, the median of the Rand index, and the median number of labels, as text."""
    rand, information, covering, labels = np.array([row[:4] for row in rows]).T
    together = reduce(Reliability.plus, [row.reliability for row in rows])
    distance, graded, converged = np.mean([row[5:] for row in rows], axis=0)
    return (
        f"PRI {rand.mean():.4f} (median {np.median(rand):.4f}), VoI {information.mean():.3f}, "
        f"covering {covering.mean():.4f}, {np.median(labels):g} labels; Brier {together.brier:.4f}, "
        f"log loss {together.log_loss:.4f}, calibration error {together.calibration_error:.4f}, "
        f"energy distance {distance:.4f}, graded {graded:.2f}, converged {converged:.2f}"
    )
