"""Variants of the `photo` preset, and their scores."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

import spinseg as ss
from spinseg.image.boundary import maps
from spinseg.image.boundary.log_odds import signed_couplings
from spinseg.image.boundary.network import RADII
from spinseg.segmentation import image_model, presets
from studies.evaluation.answers import Answer, AnswerScores, answer_and_segmentation, score_answer
from studies.evaluation.boundaries import BoundaryBenchmark
from studies.evaluation.calibration import Reliability
from studies.evaluation.datasets import Example
from studies.evaluation.metrics import Scores
from studies.questions.held_out import Evidence

# The settings of a posterior whose clusters need not be connected, as `photo` was before.
UNCONNECTED = {name: getattr(presets.PHOTO_UNCONNECTED, name) for name in vars(presets.PHOTO)}

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

    coupling: Mapping[str, float] = field(default_factory=dict)  # of `presets.EVIDENCE`
    thresholds: tuple[float, float] = (0.0, 1.0)  # location and scale of their logistic distribution
    nonnegative: bool = False  # whether negative couplings are set to zero
    feature_weights: Mapping[str, float] = field(default_factory=dict)
    variance_rates: Mapping[str, float] = field(default_factory=dict)
    network_relief: float = maps.NETWORK_RELIEF
    settings: Mapping[str, Any] = field(default_factory=dict)  # of `Settings`, such as `power` and `n_details`
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def coupling_at(self, detail: float) -> presets.Coupling:
        """Return the coupling of regions at a detail."""
        usual, (location, scale) = presets.region_coupling_at(detail), self.thresholds
        return usual._replace(threshold=location + scale * usual.threshold, **self.coupling)

    @contextmanager
    def used(self) -> Iterator[None]:
        """Let `segment` use the constants and settings of this variant."""
        with ExitStack() as changed:
            changed.enter_context(patch.object(image_model, "region_coupling_at", self.coupling_at))
            changed.enter_context(patch.object(presets, "PHOTO", replace(presets.PHOTO, **self.settings)))
            changed.enter_context(patch.object(maps, "NETWORK_RELIEF", self.network_relief))
            changed.enter_context(patch.dict(presets.FEATURE_WEIGHTS, self.feature_weights))
            changed.enter_context(patch.dict(presets.VARIANCE_RATES, self.variance_rates))
            if self.nonnegative:
                changed.enter_context(patch.object(image_model, "signed_couplings", _attraction))
            yield

    def answer_and_segmentation(self, image: NDArray, evidence: Evidence) -> tuple[Answer, ss.Segmentation]:
        """Return the answer and the segmentation with seed 0."""
        with self.used(), evidence.used():
            return answer_and_segmentation(image, presets.settings_of("photo", self.arguments), seed=0)


def _attraction(*arguments: Any) -> NDArray[np.float64]:
    """Return the couplings, negative ones set to zero."""
    return np.maximum(signed_couplings(*arguments), 0)


class Scored(NamedTuple):
    """The scores of one photograph."""

    scores: AnswerScores
    n_clusters: int
    converged: bool


def score(variant: Variant, example: Example, evidence: Evidence) -> Scored:
    """Return the scores of one photograph."""
    answer, found = variant.answer_and_segmentation(example.image(), evidence)
    return Scored(score_answer(answer, example.annotations()), found.n_clusters, found.converged is True)


def summary(variant: Variant, examples: Sequence[Example], evidence: Sequence[Evidence]) -> str:
    """Return the scores of all photographs as text."""
    with ProcessPoolExecutor() as pool:
        return text_of(list(pool.map(partial(score, variant), examples, evidence)))


def text_of(rows: Sequence[Scored]) -> str:
    """Return means over photographs, the median of the Rand index, and the median number of labels, as text."""
    regions = Scores(*np.mean([row.scores.regions for row in rows], axis=0))
    median = np.median([row.scores.regions.probabilistic_rand_index for row in rows])
    together = reduce(Reliability.plus, [row.scores.reliability for row in rows if row.scores.reliability])
    boundaries = BoundaryBenchmark.of(row.scores.boundaries for row in rows)
    distance, graded, converged = np.mean(
        [(row.scores.energy_distance, row.scores.graded or 0.0, row.converged) for row in rows], axis=0
    )
    return (
        f"PRI {regions.probabilistic_rand_index:.4f} (median {median:.4f}), "
        f"VoI {regions.variation_of_information:.3f}, covering {regions.segmentation_covering:.4f}, "
        f"{np.median([row.n_clusters for row in rows]):g} labels; Brier {together.brier:.4f}, "
        f"log loss {together.log_loss:.4f}, calibration error {together.calibration_error:.4f}, "
        f"energy distance {distance:.4f}, graded {graded:.2f}, converged {converged:.2f}; "
        f"ODS {boundaries.ods:.3f}, OIS {boundaries.ois:.3f}, AP {boundaries.average_precision:.3f}"
    )
