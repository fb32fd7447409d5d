"""What a method says of a picture: labels, and where it has them probabilities of boundaries and draws; its scores."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinseg.image.features import site_sizes
from spinseg.segmentation.presets.preset import Preset
from spinseg.segmentation.problem import prepare
from spinseg.segmentation.result import Segmentation
from spinseg.segmentation.schedule import Schedule, sample_posterior
from studies.evaluation.boundaries import BoundaryCounts, boundary_map, outlines
from studies.evaluation.calibration import LEAST, Reliability, annotated_separation, energy_distance
from studies.evaluation.metrics import Scores, consecutive, scores
from studies.evaluation.objects import ObjectScores, object_scores

N_DRAWS = 16  # of a picture, for the energy distance
GRADED = (0.05, 0.95)  # a probability between these tells less than sure


class EdgeProbabilities(NamedTuple):
    """The probability that the two sites of each edge lie apart.

    Attributes
    ----------
    sites : the picture's shape
        The site of every pixel.
    edges : (n_edges, 2)
        Touching sites.
    length : (n_edges,)
        How long their common boundary is, in pixels.
    separation : (n_edges,)
        The probabilities.
    """

    sites: NDArray[np.int32]
    edges: NDArray[np.int32]
    length: NDArray[np.float64]
    separation: NDArray[np.float64]


class Answer(NamedTuple):
    """The label image that a method gives; its probabilities of boundaries; and draws of site labels, (draw, site)."""

    labels: NDArray[np.int32]
    probabilities: EdgeProbabilities | None = None
    draws: NDArray[np.int32] | None = None


def answer_and_segmentation(image: NDArray[Any], preset: Preset, seed: int) -> tuple[Answer, Segmentation]:
    """The answer of `segment` with this preset on one thread, and the segmentation itself.

    The answer has N_DRAWS of the draws, or all where there are fewer. Its probabilities are those of the sites before
    outlines are refined, so that they can be compared with other probabilities of the same edges.
    """
    problem, schedule = prepare(image, preset), Schedule.of(preset)
    drawn = sample_posterior(problem.model, preset, schedule, seed, area=site_sizes(problem.sites), workers=1)
    found, graph = problem.segmentation(drawn, seed, schedule), problem.model.graph
    sites = problem.working_image.to_original(problem.sites, outside=-1)
    probabilities = EdgeProbabilities(sites, graph.edges, graph.length, found.separation)
    draws = drawn.labels.reshape(-1, graph.n_sites)
    chosen = np.random.default_rng(0).permutation(len(draws))[:N_DRAWS]
    labels = found.labels - np.int32(found.start_label)  # here they count from 0, with -1 outside
    return Answer(labels, probabilities, draws[chosen]), found


class AnswerScores(NamedTuple):
    """The scores of an answer. Without probabilities there is no `reliability`, and `graded` is None.

    Attributes
    ----------
    regions : Scores
        Of the labels.
    boundaries : BoundaryCounts or None
        Of the probabilities, or else of the outlines of the labels. Matching pixels takes longer than all the rest.
    reliability : Reliability or None
        Of the probabilities of edges, weighted by length.
    graded : float or None
        The share of boundary pixels whose probability lies between .05 and .95.
    energy_distance : float
        Of the draws, or else of the labels, as if they were drawn every time.
    """

    regions: Scores
    boundaries: BoundaryCounts | None
    reliability: Reliability | None
    graded: float | None
    energy_distance: float


def score_answer(
    answer: Answer, annotations: Sequence[NDArray[np.integer]], *, boundaries: bool = False
) -> AnswerScores:
    """The scores of an answer against one or more annotators, with or without those of `boundaries`."""
    regions, predicted = scores(answer.labels, annotations), answer.probabilities
    if predicted is None or answer.draws is None:
        sites = consecutive("labels", answer.labels)
        distance = energy_distance(np.arange(sites.max() + 1)[None], sites.astype(np.int32), annotations)
    else:
        distance = energy_distance(answer.draws, predicted.sites, annotations)
    if predicted is None:
        counts = BoundaryCounts.of(outlines(answer.labels), annotations) if boundaries else None
        return AnswerScores(regions, counts, None, None, distance)
    drawn = boundary_map(predicted.sites, predicted.edges, predicted.separation)
    counts = BoundaryCounts.of(drawn, annotations) if boundaries else None
    return AnswerScores(regions, counts, _reliability(predicted, annotations), _graded_share(drawn), distance)


class ObjectAnswerScores(NamedTuple):
    """The scores of an answer where there are objects on a background: of its labels, and of its probabilities."""

    regions: Scores
    objects: ObjectScores
    reliability: Reliability | None


def score_objects(answer: Answer, truth: NDArray[np.integer]) -> ObjectAnswerScores:
    """The scores of an answer against the objects of one label image."""
    predicted = None if answer.probabilities is None else _reliability(answer.probabilities, [truth])
    return ObjectAnswerScores(scores(answer.labels, [truth]), object_scores(answer.labels, truth), predicted)


def _reliability(predicted: EdgeProbabilities, annotations: Sequence[NDArray[np.integer]]) -> Reliability:
    return Reliability.of(
        predicted.separation, annotated_separation(predicted.sites, predicted.edges, annotations), predicted.length
    )


def _graded_share(image: NDArray[np.float64]) -> float:
    """The share of boundary pixels whose probability lies between those of GRADED; 0 where there is no boundary."""
    boundary = image[image > LEAST]
    return float(np.mean((boundary > GRADED[0]) & (boundary < GRADED[1]))) if boundary.size else 0.0
