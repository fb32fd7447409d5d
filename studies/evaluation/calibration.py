"""How good probabilities and draws are: against the shares of annotators, and as answers like theirs.

.. [1] Brier, Verification of forecasts expressed in terms of probability, Monthly Weather Review 1950.
       doi:10.1175/1520-0493(1950)078<0001:VOFEIT>2.0.CO;2
.. [2] Szekely and Rizzo, Energy statistics: a class of statistics based on distances, Journal of Statistical Planning
       and Inference 2013. doi:10.1016/j.jspi.2013.03.018
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinseg.image.features import site_sizes
from spinseg.partition.contingency import ContingencyTable, contingency_table, rand_index_of
from studies.evaluation.metrics import consecutive

N_BINS = 10  # of reliability diagrams
LEAST = 0.005  # a probability nearer to 0 or 1 counts as this far away from it in the log loss


class Reliability(NamedTuple):
    """Sums over edges, weighted by the length of their boundaries, which add up over pictures.

    Attributes
    ----------
    weight, predicted, seen : (N_BINS,) float
        Sums of weights, of weighted probabilities, and of weighted shares of annotators, of the edges whose probability
        lies in each of N_BINS equal parts from 0 to 1.
    squares, logs : float
        Sums of weighted squared errors, and of weighted log losses in nats.
    """

    weight: tuple[float, ...]
    predicted: tuple[float, ...]
    seen: tuple[float, ...]
    squares: float
    logs: float

    @classmethod
    def of(cls, probability: NDArray[np.float64], share: NDArray[np.float64], weight: NDArray[Any]) -> "Reliability":
        """The sums of edges with these probabilities and shares of annotators; edges without a share are left out."""
        known = np.isfinite(share)
        p, h, w = probability[known], share[known], weight[known].astype(np.float64)
        part = np.minimum((p * N_BINS).astype(np.intp), N_BINS - 1)
        weights, predicted, seen = (tuple(np.bincount(part, values, N_BINS).tolist()) for values in (w, w * p, w * h))
        q = p.clip(LEAST, 1 - LEAST)
        logs = -(h * np.log(q) + (1 - h) * np.log1p(-q))
        return cls(weights, predicted, seen, float(w @ (p - h) ** 2), float(w @ logs))

    def plus(self, other: "Reliability") -> "Reliability":
        """The sums over both."""
        weight, predicted, seen = (tuple(np.add(a, b).tolist()) for a, b in zip(self[:3], other[:3], strict=True))
        return Reliability(weight, predicted, seen, self.squares + other.squares, self.logs + other.logs)

    @property
    def brier(self) -> float:
        """The mean squared difference between probability and share of annotators [1]_."""
        return self.squares / max(sum(self.weight), 1e-300)

    @property
    def log_loss(self) -> float:
        """The mean log loss in nats."""
        return self.logs / max(sum(self.weight), 1e-300)

    @property
    def calibration_error(self) -> float:
        """The mean difference, over parts, between the mean probability and the mean share."""
        return float(np.abs(np.subtract(self.predicted, self.seen)).sum() / max(sum(self.weight), 1e-300))


def annotated_separation(
    sites: NDArray[np.int32], edges: NDArray[np.int32], annotations: Sequence[NDArray[np.integer]]
) -> NDArray[np.float64]:
    """The share of annotators who separate the two sites of each edge; NaN where none has labeled both.

    An annotator has a site in the label that most of its pixels have.

    Examples
    --------
    >>> sites, edges = (
    ...     np.array([[0, 0, 1, 1, 2, 2]]),
    ...     np.array([[0, 1], [1, 2]]),
    ... )
    >>> annotated_separation(
    ...     sites,
    ...     edges,
    ...     [
    ...         np.array([[5, 5, 5, 5, 7, 7]]),
    ...         np.array([[5, 5, 6, 6, 7, 7]]),
    ...     ],
    ... ).tolist()
    [0.5, 1.0]
    """
    apart, n_known = np.zeros(len(edges)), np.zeros(len(edges))
    for annotation in annotations:
        votes = site_votes(sites, annotation)
        label = np.where(votes.any(axis=1), votes.argmax(axis=1), -1)[edges]
        known = (label >= 0).all(axis=1)
        apart += known & (label[:, 0] != label[:, 1])
        n_known += known
    return np.divide(apart, n_known, out=np.full(len(edges), np.nan), where=n_known > 0)


def site_votes(sites: NDArray[np.int32], annotation: NDArray[np.integer]) -> NDArray[np.int64]:
    """How many pixels of each site have each label of an annotation, the labels in order, (n_sites, n_labels)."""
    inside = (sites >= 0) & (annotation >= 0)
    values, place = np.unique(annotation[inside], return_inverse=True)  # colors may be labels: few, and large numbers
    n_sites, n_labels = int(sites.max()) + 1, max(values.size, 1)
    cells = sites[inside].astype(np.int64) * n_labels + place
    return np.bincount(cells, minlength=n_sites * n_labels).reshape(n_sites, n_labels)


def energy_distance(
    draws: NDArray[np.integer], sites: NDArray[np.int32], annotations: Sequence[NDArray[np.integer]]
) -> float:
    """The generalized energy distance between draws of site labels, (draw, site), and annotators' label images [2]_.

    2 E d(draw, annotator) - E d(draw, other draw) - E d(annotator, annotator'), d = 1 - Rand index of pixels. The
    annotators are all there are, so that pairs of one with itself count; those of a draw with itself do not. A single
    draw stands for a method that always answers the same. The distance is about 0 where draws are as annotators are.
    """
    area, annotations = site_sizes(sites), [consecutive("annotations", each) for each in annotations]
    overlaps = [_overlap(sites, annotation) for annotation in annotations]
    to_annotators = [_apart(draw[each.row], each.column, each.shared) for draw in draws for each in overlaps]
    between_draws = [_apart(draw, other, area) for i, draw in enumerate(draws) for other in draws[:i]] or [0.0]
    between_annotators = [1 - rand_index_of(_overlap(a, b)) for a in annotations for b in annotations]
    return float(2 * np.mean(to_annotators) - np.mean(between_draws) - np.mean(between_annotators))


def _overlap(first: NDArray[np.integer], second: NDArray[np.integer]) -> ContingencyTable:
    """The pixels that the labels of two images share; those without a label in either are left out."""
    known = (first >= 0) & (second >= 0)
    return contingency_table(first[known], second[known])


def _apart(a: NDArray[np.integer], b: NDArray[np.integer], weights: NDArray[np.integer]) -> float:
    """1 - the Rand index of two vectors of labels, whose items count as often as their weights say."""
    return 1 - rand_index_of(contingency_table(a, b, weights))
