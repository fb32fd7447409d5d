"""How well probabilities of boundaries agree with what annotators drew, pixels matched one to one.

The protocol is that of the Berkeley benchmark: the probabilities are cut at several thresholds, the boundaries that
remain are thinned, and their pixels are matched with those of each annotator, at most one with one, within a distance.
A second line beside a true one is thus an error, where the one-to-many matching of `metrics.boundary_scores` forgives
it.

References
----------
.. [1] Martin, Fowlkes and Malik, Learning to detect natural image boundaries using local brightness, color, and texture
       cues, PAMI 2004. doi:10.1109/TPAMI.2004.1273918
.. [2] Arbelaez et al., Contour detection and hierarchical image segmentation, PAMI 2011.
       doi:10.1109/TPAMI.2010.161
"""

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import min_weight_full_bipartite_matching
from scipy.spatial import cKDTree
from skimage.morphology._skeletonize import G123_LUT, G123P_LUT

from spinseg.graph.adjacency import edge_index
from studies.evaluation.metrics import TOLERANCE, boundary_pixels

THRESHOLDS = np.arange(1, 25) / 25  # of probabilities
UNMATCHED = 100.0  # what a pixel without a partner costs, in largest distances: outlierCost of the Berkeley code
RECALLS = np.linspace(0, 1, 101)  # at which precision is averaged, as in the Berkeley code

Points = NDArray[np.intp]  # (n_points, 2)


class BoundaryCounts(NamedTuple):
    """Numbers of boundary pixels at each of THRESHOLDS, which add up over pictures.

    Attributes
    ----------
    found, correct : (n_thresholds,) int
        Pixels of the boundaries that were found, and those of them that match a pixel of any annotator.
    recalled : (n_thresholds,) int
        Annotators' pixels that match one that was found, summed over annotators.
    true : int
        All pixels of annotators.
    """

    found: tuple[int, ...]
    correct: tuple[int, ...]
    recalled: tuple[int, ...]
    true: int

    @classmethod
    def of(
        cls, probability: NDArray[Any], annotations: Sequence[NDArray[np.integer]], *, tolerance: float = TOLERANCE
    ) -> "BoundaryCounts":
        """The counts of an image of boundary probabilities; a boolean image has the same counts at each threshold.

        `tolerance` is the largest distance between matching pixels, as a fraction of the image diagonal. Pixels that no
        annotator has labeled are left out.
        """
        distance = tolerance * float(np.hypot.reduce(probability.shape))
        annotated = np.any([annotation >= 0 for annotation in annotations], axis=0)
        true = [np.argwhere(outlines(annotation)) for annotation in annotations]
        steps = np.digitize(np.where(annotated, probability, 0), THRESHOLDS)  # thresholds at or below each probability
        rows: list[tuple[int, int, int]] = []
        for step in range(1, THRESHOLDS.size + 1):
            if rows and not np.any(steps == step - 1):
                rows.append(rows[-1])  # the threshold before left the same pixels
            else:
                rows.append(_counts(np.argwhere(thinned(steps >= step)), true, distance))
        found, correct, recalled = zip(*rows, strict=True)
        return cls(found, correct, recalled, sum(map(len, true)))

    def plus(self, other: "BoundaryCounts") -> "BoundaryCounts":
        """The counts over both."""
        found, correct, recalled = (tuple(np.add(a, b).tolist()) for a, b in zip(self[:3], other[:3], strict=True))
        return BoundaryCounts(found, correct, recalled, self.true + other.true)

    @property
    def precision(self) -> NDArray[np.float64]:
        """The share of found pixels that are correct at each threshold; 1 where none was found."""
        return np.divide(self.correct, self.found, out=np.ones(len(self.found)), where=np.array(self.found) > 0)

    @property
    def recall(self) -> NDArray[np.float64]:
        """The share of annotators' pixels that were found at each threshold; 1 where there are none."""
        return np.array(self.recalled) / self.true if self.true else np.ones(len(self.recalled))

    @property
    def f(self) -> NDArray[np.float64]:
        """The harmonic mean of precision and recall at each threshold."""
        precision, recall = self.precision, self.recall
        return 2 * precision * recall / np.maximum(precision + recall, 1e-300)

    def at_best(self) -> "BoundaryCounts":
        """The counts at the threshold of highest F alone."""
        best = int(self.f.argmax())
        return BoundaryCounts((self.found[best],), (self.correct[best],), (self.recalled[best],), self.true)

    @property
    def average_precision(self) -> float:
        """The area under the curve of precision over recall: the mean of precision at RECALLS, interpolated linearly.

        Beyond the highest recall that was reached precision is 0. Below the lowest it is that of the highest threshold
        that leaves any boundary: a part of these pixels, chosen at random, has the same precision. The Berkeley code
        [2]_ has 0 there, too, as if boundaries predicted with certainty were wrong.
        """
        some = np.flatnonzero(self.found)[::-1]
        if not some.size:
            return 0.0
        recall, first = np.unique(self.recall[some], return_index=True)
        return float(np.interp(RECALLS, recall, self.precision[some][first], right=0.0).mean())


class BoundaryBenchmark(NamedTuple):
    """Scores of boundaries over pictures, from 0 to 1.

    `ods` is the highest F at one threshold for all pictures (optimal dataset scale), `ois` is F where each picture has
    its own best threshold (optimal image scale), and `average_precision` is that of all pictures together.
    """

    ods: float
    ois: float
    average_precision: float

    @classmethod
    def of(cls, pictures: Iterable[BoundaryCounts]) -> "BoundaryBenchmark":
        """The scores of pictures, from the sums of their counts."""
        listed = list(pictures)
        together = reduce(BoundaryCounts.plus, listed)
        at_best = reduce(BoundaryCounts.plus, [counts.at_best() for counts in listed])
        return cls(float(together.f.max()), float(at_best.f[0]), together.average_precision)


def thinned(lines: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The lines at a width of one pixel, as `skimage.morphology.thin`, which looks at all pixels again and again."""
    padded = np.pad(lines, 1).astype(np.uint8)
    inside, width = padded.ravel(), padded.shape[1]
    offsets = [1, 1 - width, -width, -1 - width, -1, width - 1, width, width + 1]
    pixels, n_before = np.flatnonzero(inside), -1
    while pixels.size != n_before:
        n_before = pixels.size
        for is_removed in (G123_LUT, G123P_LUT):
            around = np.zeros(pixels.size, np.uint8)
            for bit, offset in enumerate(offsets):
                around |= inside[pixels + offset] << bit
            removed = is_removed[around].astype(bool)
            inside[pixels[removed]] = 0
            pixels = pixels[~removed]
    return padded[1:-1, 1:-1].astype(bool)


def outlines(labels: NDArray[np.integer]) -> NDArray[np.bool_]:
    """The boundaries between labels as lines of one pixel's width: `boundary_pixels`, thinned."""
    return thinned(boundary_pixels(labels))


def boundary_map(
    sites: NDArray[np.int32], edges: NDArray[np.int32], values: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The largest value of the edges that cross the block of a pixel with the next along every axis, and 0 elsewhere.

    Where all values are 1, these are the `boundary_pixels` of the sites: labels and probabilities are drawn alike.
    `edges` and their `values`, (n_edges,), are in the order of `region_adjacency`.

    Examples
    --------
    >>> boundary_map(
    ...     np.array([[0, 0, 1, 1]], np.int32),
    ...     np.array([[0, 1]]),
    ...     np.array([0.5]),
    ... ).tolist()
    [[0.0, 0.5, 0.0, 0.0]]
    """
    drawn = np.zeros(sites.shape)
    for axis in range(sites.ndim):
        here, there = np.moveaxis(sites, axis, 0)[:-1], np.moveaxis(sites, axis, 0)[1:]
        apart = (here != there) & (here >= 0) & (there >= 0)
        first, second = here[apart], there[apart]
        crossed = np.zeros(sites.shape)
        edge = edge_index(edges, np.minimum(first, second), np.maximum(first, second))
        np.moveaxis(crossed, axis, 0)[:-1][apart] = values[edge]
        for other in set(range(sites.ndim)) - {axis}:
            along = np.moveaxis(crossed, other, 0)
            np.maximum(along[:-1], along[1:], out=along[:-1])
        np.maximum(drawn, crossed, out=drawn)
    return np.where(sites >= 0, drawn, 0.0)


def match_pixels(found: Points, true: Points, distance: float) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which pixels of either set are matched, at most one with one, within a distance.

    The sum of the distances of pairs, and of UNMATCHED distances for each pixel of `found` without a partner, is as
    small as possible: nearly as many pairs as there can be, and of those choices the closest pairs, so that a line
    beside a true one is not matched in its place.

    Examples
    --------
    >>> one_line, two_lines = (
    ...     np.array([[0, 0], [1, 0]]),
    ...     np.array([[0, 0], [1, 0], [0, 1], [1, 1]]),
    ... )
    >>> [
    ...     matched.tolist()
    ...     for matched in match_pixels(two_lines, one_line, 2.0)
    ... ]
    [[True, True, False, False], [True, True]]
    """
    matched = np.zeros(len(found), bool), np.zeros(len(true), bool)
    if not len(found) or not len(true):
        return matched
    near = cKDTree(found).sparse_distance_matrix(cKDTree(true), distance, output_type="ndarray")
    if not near.size:
        return matched
    # Only pixels with another one near take part. Each may stay alone: it then has a partner of its own, at a price.
    rows, row = np.unique(near["i"], return_inverse=True)
    columns, column = np.unique(near["j"], return_inverse=True)
    alone = np.arange(rows.size, dtype=np.int32)
    price = np.concatenate([near["v"], np.full(rows.size, UNMATCHED * max(distance, 1.0))]) + 1  # 0 would be no pair
    ends = np.concatenate([[row, column], [alone, columns.size + alone]], axis=1).astype(np.int32)
    _, partner = min_weight_full_bipartite_matching(csr_array((price, (ends[0], ends[1]))))
    matched[0][rows[partner < columns.size]] = True
    matched[1][columns[partner[partner < columns.size]]] = True
    return matched


def _counts(found: Points, true: Sequence[Points], distance: float) -> tuple[int, int, int]:
    """How many pixels were found, how many of them are correct, and how many of annotators' are recalled."""
    correct, recalled = np.zeros(len(found), bool), 0
    for pixels in true:
        of_found, of_true = match_pixels(found, pixels, distance)
        correct |= of_found
        recalled += int(of_true.sum())
    return len(found), int(correct.sum()), recalled
