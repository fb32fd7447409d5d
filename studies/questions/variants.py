"""Scores of variants of `Photo`, and the groups of its cues."""

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial, reduce
from typing import NamedTuple

import numpy as np

from spinseg.image.boundary.network import RADII
from spinseg.segmentation.presets.photo import Photo
from studies.evaluation.answers import AnswerScores, answer_and_segmentation, score_answer
from studies.evaluation.boundaries import BoundaryBenchmark
from studies.evaluation.calibration import Reliability
from studies.evaluation.datasets import Example
from studies.evaluation.metrics import Scores

# Groups of cues.
NETWORK = frozenset(f"{name}{radius}" for name in ("network", "within") for radius in RADII)
SPECTRAL = frozenset({"apart"})
TEXTURE = frozenset({"T6", "T12", "texture", "texture after"}) | {f"textons{hop}" for hop in range(4)}
TEXTURE |= {f"textons after {time}" for time in (2, 4, 8)}
WHOLE_PICTURE = frozenset({"apart", "merged", "calm", "busy", "colors after", "texture after"})
WHOLE_PICTURE |= {f"{name} after {time}" for name in ("words", "textons") for time in (2, 4, 8)}


class Scored(NamedTuple):
    """The scores of one photograph."""

    scores: AnswerScores
    n_clusters: int
    converged: bool


def score(preset: Photo, example: Example) -> Scored:
    """Return the scores of one photograph."""
    answer, found = answer_and_segmentation(example.image(), preset, seed=0)
    return Scored(
        score_answer(answer, example.annotations(), boundaries=True), found.n_clusters, found.converged is True
    )


def summary(preset: Photo, examples: Sequence[Example]) -> str:
    """Return the scores of all photographs as text."""
    with ProcessPoolExecutor() as pool:
        return text_of(list(pool.map(partial(score, preset), examples)))


def text_of(rows: Sequence[Scored]) -> str:
    """Return means over photographs, the median of the Rand index, and the median number of labels, as text."""
    regions = Scores(*np.mean([row.scores.regions for row in rows], axis=0))
    median = np.median([row.scores.regions.probabilistic_rand_index for row in rows])
    together = reduce(Reliability.plus, [row.scores.reliability for row in rows if row.scores.reliability])
    boundaries = BoundaryBenchmark.of(row.scores.boundaries for row in rows if row.scores.boundaries)
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
