"""Agreement of a segmentation with annotators: metrics of the contingency table, and of boundaries.

A label image has one integer per pixel. A negative label means unlabeled, and pixels that are unlabeled in either
image are left out. A region is the set of all pixels of one label, connected or not. In the formulas n pixels are
labeled in both images, n_ij of them i in `truth` and j in `labels`; a_i and b_j are the sizes of these regions.

References
----------
.. [1] Rand, Objective criteria for the evaluation of clustering methods, JASA 1971.
       doi:10.1080/01621459.1971.10482356
.. [2] Hubert and Arabie, Comparing partitions, Journal of Classification 1985. doi:10.1007/BF01908075
.. [3] Meila, Comparing clusterings: an axiomatic view, ICML 2005. doi:10.1145/1102351.1102424
.. [4] Martin et al., A database of human segmented natural images, ICCV 2001. doi:10.1109/ICCV.2001.937655
.. [5] Arbelaez et al., Contour detection and hierarchical image segmentation, PAMI 2011.
       doi:10.1109/TPAMI.2010.161
.. [6] Unnikrishnan et al., Toward objective evaluation of image segmentation algorithms, PAMI 2007.
       doi:10.1109/TPAMI.2007.1046
.. [7] Martin et al., Learning to detect natural image boundaries using local brightness, color, and texture cues,
       PAMI 2004. doi:10.1109/TPAMI.2004.1273918
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import ndimage

from spinseg._validation import check_real, integer_array, invalid
from spinseg.partition.contingency import (
    ContingencyTable,
    adjusted_rand_index_of,
    contingency_table,
    rand_index_of,
    vi_of,
)
from spinseg.partition.numbering import in_order

TOLERANCE = 0.0075  # fraction of the image diagonal: maxDist of the BSDS benchmark, 4.3 pixels for 481 x 321

Labels = NDArray[np.int64]


class BoundaryScores(NamedTuple):
    """Precision and recall of boundary pixels, and their harmonic mean."""

    precision: float
    recall: float
    f: float


class Scores(NamedTuple):
    """All metrics of one segmentation; the metrics of regions are means over annotators."""

    probabilistic_rand_index: float
    adjusted_rand_index: float
    variation_of_information: float
    global_consistency_error: float
    segmentation_covering: float
    boundary_precision: float
    boundary_recall: float
    boundary_f: float


def scores(labels: ArrayLike, annotations: Sequence[ArrayLike], *, tolerance: float = TOLERANCE) -> Scores:
    """Return every metric of a segmentation against one or more annotators.

    Parameters
    ----------
    labels : array of int
        The segmentation.
    annotations : sequence of arrays of int, of the same shape
        One label image per annotator.
    tolerance : float
        As in `boundary_scores`.

    Examples
    --------
    >>> found = scores([[0, 0, 1, 1]], [[[5, 5, 7, 7]], [[5, 5, 5, 5]]])
    >>> (
    ...     round(found.probabilistic_rand_index, 3),
    ...     found.variation_of_information,
    ...     found.segmentation_covering,
    ... )
    (0.667, 0.5, 0.75)
    """
    segmentation = consecutive("labels", labels)
    truths = _consecutive_list(annotations, segmentation.shape)
    tables = [_contingency(segmentation, truth, name) for name, truth in truths.items()]
    metrics = (rand_index_of, adjusted_rand_index_of, vi_of, _gce, _covering)
    of_regions = [[metric(table) for metric in metrics] for table in tables]
    of_boundaries = _boundary_scores(segmentation, list(truths.values()), tolerance)
    return Scores._make([*np.mean(of_regions, axis=0).tolist(), *of_boundaries])


def contingency(labels: ArrayLike, truth: ArrayLike) -> ContingencyTable:
    """Return the table behind the metrics of regions: rows are regions of `truth`, columns those of `labels`.

    Both are numbered from 0 in the order of their labels.

    Examples
    --------
    >>> table = contingency([0, 0, 3, 3, -1], [7, 7, 7, 9, 9])
    >>> table.row.tolist(), table.column.tolist(), table.shared.tolist()
    ([0, 0, 1], [0, 1, 1], [2, 1, 1])
    """
    segmentation = consecutive("labels", labels)
    return _contingency(segmentation, consecutive("truth", truth, segmentation.shape), "truth")


def rand_index(labels: ArrayLike, truth: ArrayLike) -> float:
    """Return the fraction of pairs of pixels that are together in both images or apart in both, in [0, 1].

    1 - (sum a_i^2 + sum b_j^2 - 2 sum n_ij^2) / (n (n - 1)), Rand [1]_. It is symmetric, and 1 for a single pixel. It
    rewards over-segmentation: where there are many regions, most pairs are apart in both images.

    Examples
    --------
    >>> rand_index([0, 0, 1, 1], [0, 0, 0, 0]) == 2 / 6
    True
    """
    return rand_index_of(contingency(labels, truth))


def adjusted_rand_index(labels: ArrayLike, truth: ArrayLike) -> float:
    """Return the Rand index corrected for chance: 0 expected for random labels, 1 for agreement, at least -1/2.

    (S - E) / ((A + B) / 2 - E), where S = sum C(n_ij, 2), A = sum C(a_i, 2), B = sum C(b_j, 2) count the pairs together
    in both images and in each, and E = A B / C(n, 2) is the mean of S when pixels are shuffled, Hubert and Arabie [2]_.
    It is symmetric. Where it would be 0/0 the partitions are equal, and it is 1.

    Examples
    --------
    >>> adjusted_rand_index([0, 0, 1, 1], [0, 1, 0, 1])
    -0.5
    """
    return adjusted_rand_index_of(contingency(labels, truth))


def variation_of_information(labels: ArrayLike, truth: ArrayLike) -> float:
    """Return H(labels | truth) + H(truth | labels) in bits, in [0, log2 n].

    1/n sum n_ij (log2 a_i / n_ij + log2 b_j / n_ij), Meila [3]_. It is a distance between partitions.

    Examples
    --------
    >>> variation_of_information([0, 0, 1, 1], [0, 1, 0, 1])
    2.0
    """
    return vi_of(contingency(labels, truth))


def global_consistency_error(labels: ArrayLike, truth: ArrayLike) -> float:
    """Return the global consistency error, in [0, 1): 0 where one image refines the other; symmetric.

    1/n min(sum n_ij (a_i - n_ij) / a_i, sum n_ij (b_j - n_ij) / b_j), Martin et al. [4]_: the mean fraction of a
    pixel's region that lies outside its region in the other image. A single region, and one region per pixel, score 0
    against any image.

    Examples
    --------
    >>> (
    ...     global_consistency_error([0, 0, 1, 1], [0, 1, 2, 2]),
    ...     global_consistency_error([0, 0, 1, 1], [0, 1, 0, 1]),
    ... )
    (0.0, 0.5)
    """
    return _gce(contingency(labels, truth))


def segmentation_covering(labels: ArrayLike, truth: ArrayLike) -> float:
    """Return how well the true regions are covered by their best regions of `labels`, in (0, 1]; not symmetric.

    1/n sum_i a_i max_j n_ij / (a_i + b_j - n_ij), Arbelaez et al. [5]_, section 3.1: the best intersection over union,
    weighted by the size of the true region.

    Examples
    --------
    >>> (
    ...     segmentation_covering([0, 0, 1, 1], [0, 0, 0, 0]),
    ...     segmentation_covering([0, 0, 0, 0], [0, 0, 0, 1]),
    ... )
    (0.5, 0.625)
    """
    return _covering(contingency(labels, truth))


def mean_over_annotators(
    metric: Callable[[ArrayLike, ArrayLike], float], labels: ArrayLike, annotations: Sequence[ArrayLike]
) -> float:
    """Return the mean over annotators of a metric of two label images; `scores` has all metrics at once.

    Examples
    --------
    >>> mean_over_annotators(
    ...     variation_of_information,
    ...     [0, 0, 1, 1],
    ...     [[0, 0, 1, 1], [0, 0, 0, 0]],
    ... )
    0.5
    """
    segmentation = consecutive("labels", labels)
    truths = _consecutive_list(annotations, segmentation.shape).values()
    return float(np.mean([metric(segmentation, truth) for truth in truths]))


def probabilistic_rand_index(labels: ArrayLike, annotations: Sequence[ArrayLike]) -> float:
    """Return the mean of the Rand index over annotators, in [0, 1].

    Unnikrishnan et al. [6]_ define it as the mean over pairs of pixels of c p + (1 - c) (1 - p), where c is 1 if the
    pair is together in `labels`, else 0, and p is the fraction of annotators who have it together. The two definitions
    agree where all pixels are labeled.

    Examples
    --------
    >>> probabilistic_rand_index(
    ...     [0, 0, 1, 1], [[0, 0, 1, 1], [0, 0, 0, 0]]
    ... ) == (1 + 2 / 6) / 2
    True
    """
    return mean_over_annotators(rand_index, labels, annotations)


def boundary_scores(
    labels: ArrayLike, annotations: Sequence[ArrayLike], *, tolerance: float = TOLERANCE
) -> BoundaryScores:
    """Return precision, recall and F of boundary pixels, as in BSDS [7]_ but for the matching.

    precision = boundary pixels of `labels` that match any annotator's / all boundary pixels of `labels`; recall =
    annotators' boundary pixels that match those of `labels` / all of them, summed over annotators; F = 2 P R / (P + R).
    A ratio of no pixels is 1. A boundary pixel is one whose block with the next pixel along every axis has two labels
    or more: `Boundaries` of the BSDS files before they were thinned.

    A pixel matches if a boundary pixel of the other image lies within the tolerance, by distance transform, so that
    one pixel may match many. The BSDS code thins boundaries and assigns them one to one: its figures are lower, and it
    penalizes double lines. Do not compare these figures with published ones.

    Parameters
    ----------
    labels : array of int
        The segmentation.
    annotations : sequence of arrays of int, of the same shape
        One label image per annotator.
    tolerance : float
        The largest distance between matching pixels, as a fraction of the image diagonal.

    Examples
    --------
    >>> boundary_scores([[0, 0, 1, 1]], [[[0, 0, 1, 1]], [[0, 1, 2, 2]]])
    BoundaryScores(precision=1.0, recall=0.6666666666666666, f=0.8)
    """
    segmentation = consecutive("labels", labels)
    truths = _consecutive_list(annotations, segmentation.shape)
    for name, truth in truths.items():
        _labeled_in_both(segmentation, truth, name)
    return _boundary_scores(segmentation, list(truths.values()), tolerance)


def _gce(table: ContingencyTable) -> float:
    n_ij, a_i, b_j = table.cells
    return min(float(np.sum(n_ij * (sizes - n_ij) / sizes)) for sizes in (a_i, b_j)) / int(n_ij.sum())


def _covering(table: ContingencyTable) -> float:
    n_ij, a_i, b_j = table.cells
    starts = np.flatnonzero(np.diff(table.row, prepend=-1))  # the first cell of each true region
    best = np.maximum.reduceat(n_ij / (a_i + b_j - n_ij), starts)
    return float(np.sum(a_i[starts] * best)) / int(n_ij.sum())


def _boundary_scores(labels: Labels, truths: list[Labels], tolerance: float) -> BoundaryScores:
    distance = check_real("tolerance", tolerance, at_least=0) * float(np.hypot.reduce(labels.shape))
    annotated = np.any([truth >= 0 for truth in truths], axis=0)
    found = boundary_pixels(np.where(annotated, labels, -1))
    true = np.stack([boundary_pixels(np.where(labels >= 0, truth, -1)) for truth in truths])
    precision = _fraction(found & _dilate(np.logical_or.reduce(true), distance), found)
    recall = _fraction(true & _dilate(found, distance), true)
    return BoundaryScores(precision, recall, 2 * precision * recall / max(precision + recall, 1e-300))


def boundary_pixels(labels: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Return the labeled pixels whose block with the next pixel along every axis has two labels or more.

    Examples
    --------
    >>> boundary_pixels(np.array([[0, 0, 1, 1, -1]])).tolist()
    [[False, True, False, False, False]]
    """
    array = labels.astype(np.int64)
    low, high = np.where(array < 0, np.iinfo(np.int64).max, array), array.copy()  # an unlabeled pixel is neither
    for axis in range(array.ndim):
        lows, highs = np.moveaxis(low, axis, 0), np.moveaxis(high, axis, 0)
        np.minimum(lows[:-1], lows[1:], out=lows[:-1])
        np.maximum(highs[:-1], highs[1:], out=highs[:-1])
    return (low < high) & (array >= 0)


def _fraction(part: NDArray[np.bool_], whole: NDArray[np.bool_]) -> float:
    return int(np.count_nonzero(part)) / int(np.count_nonzero(whole)) if whole.any() else 1.0


def _dilate(boundary: NDArray[np.bool_], distance: float) -> NDArray[np.bool_]:
    """Return the pixels at most `distance` away from a boundary pixel."""
    if not boundary.any():
        return boundary  # the transform is undefined where no pixel is set
    return np.asarray(ndimage.distance_transform_edt(~boundary) <= distance)


def _contingency(labels: Labels, truth: Labels, name: str) -> ContingencyTable:
    kept = _labeled_in_both(labels, truth, name)
    return contingency_table(truth[kept], labels[kept])


def _labeled_in_both(labels: Labels, truth: Labels, name: str) -> NDArray[np.bool_]:
    """Return the mask of pixels that are labeled in both images; there must be one."""
    kept = (labels >= 0) & (truth >= 0)
    if not kept.any():
        counts = [int(np.count_nonzero(image >= 0)) for image in (labels, truth)]
        invalid(f"labels and {name}", f"have a pixel labeled in both, of {labels.size}", f"{counts} labeled")
    return kept


def consecutive(name: str, labels: ArrayLike, shape: tuple[int, ...] | None = None) -> Labels:
    """Return labels renumbered 0..k-1 in their order, -1 where unlabeled, after a check of their type and shape."""
    array = integer_array(name, labels)
    if shape is not None and array.shape != shape:
        invalid(name, f"have the shape of labels, {shape}", array.shape)
    numbered, labeled = np.full(array.shape, -1, np.int64), array >= 0
    numbered[labeled] = in_order(array[labeled])
    return numbered


def _consecutive_list(annotations: Sequence[ArrayLike], shape: tuple[int, ...]) -> dict[str, Labels]:
    """Return the annotations renumbered, by the names that error messages give them."""
    stacked = isinstance(annotations, np.ndarray) and annotations.ndim > len(shape)
    if not (stacked or isinstance(annotations, (list, tuple))) or len(annotations) == 0:
        invalid("annotations", "be a list of label images, one or more", annotations)
    return {f"annotations[{a}]": consecutive(f"annotations[{a}]", image, shape) for a, image in enumerate(annotations)}
