"""How well a segmentation agrees with annotators: everything from one contingency table, boundaries apart.

A label image has one whole number per pixel; a negative one says unlabelled, and a pixel that is unlabelled in either
image is left out. A region here is all pixels of one label, touching or not. In the formulas n pixels are labelled in
both images, n_ij of them i in `labels` and j in `truth`; its sums over j and over i, a_i and b_j, are sizes of regions.

References
----------
.. [1] Rand, Objective criteria for the evaluation of clustering methods, JASA 1971.
       :DOI:`10.1080/01621459.1971.10482356`
.. [2] Hubert and Arabie, Comparing partitions, Journal of Classification 1985. :DOI:`10.1007/BF01908075`
.. [3] Meila, Comparing clusterings: an axiomatic view, ICML 2005. :DOI:`10.1145/1102351.1102424`
.. [4] Martin et al., A database of human segmented natural images, ICCV 2001. :DOI:`10.1109/ICCV.2001.937655`
.. [5] Arbelaez et al., Contour detection and hierarchical image segmentation, PAMI 2011.
       :DOI:`10.1109/TPAMI.2010.161`
.. [6] Unnikrishnan et al., Toward objective evaluation of image segmentation algorithms, PAMI 2007.
       :DOI:`10.1109/TPAMI.2007.1046`
.. [7] Martin et al., Learning to detect natural image boundaries using local brightness, color, and texture cues,
       PAMI 2004. :DOI:`10.1109/TPAMI.2004.1273918`
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import ndimage

from spinseg._validation import check_real, integer_array, invalid

TOLERANCE = 0.0075  # of the diagonal: maxDist of the BSDS benchmark, 4.3 pixels for 481 x 321

Labels = NDArray[np.int64]


class Contingency(NamedTuple):
    """The pairs of regions that share pixels, in order of truth, then of labels: i, j, n_ij, a_i and b_j of each."""

    label: NDArray[np.int64]
    truth: NDArray[np.int64]
    shared: NDArray[np.int64]
    a: NDArray[np.int64]
    b: NDArray[np.int64]
    n_pixels: int


class BoundaryScores(NamedTuple):
    """Shares of boundary pixels that are matched, and their harmonic mean."""

    precision: float
    recall: float
    f: float


class Scores(NamedTuple):
    """All metrics of one segmentation; those of the contingency table are means over annotators."""

    probabilistic_rand_index: float
    adjusted_rand_index: float
    variation_of_information: float
    global_consistency_error: float
    segmentation_covering: float
    boundary_precision: float
    boundary_recall: float
    boundary_f: float


def scores(labels: ArrayLike, annotations: Sequence[ArrayLike], *, tolerance: float = TOLERANCE) -> Scores:
    """Every metric of a segmentation against one or more annotators, from one table an annotator.

    Parameters
    ----------
    labels : array of int
        The segmentation.
    annotations : sequence of arrays of int, of the same shape
        One label image an annotator.
    tolerance : float
        As in `boundary_scores`.

    Examples
    --------
    >>> found = scores([[0, 0, 1, 1]], [[[5, 5, 7, 7]], [[5, 5, 5, 5]]])
    >>> round(found.probabilistic_rand_index, 3), found.variation_of_information, found.segmentation_covering
    (0.667, 0.5, 0.75)
    """
    drawn = _numbered("labels", labels)
    truths = _numbered_list(annotations, drawn.shape)
    tables = [_contingency(drawn, truth, name) for name, truth in truths.items()]
    rand, adjusted, voi, gce, covering = np.mean(
        [(_rand(t), _adjusted(t), _voi(t), _gce(t), _covering(t)) for t in tables], axis=0
    ).tolist()
    edges = _boundary_scores(drawn, list(truths.values()), tolerance)
    return Scores(rand, adjusted, voi, gce, covering, *edges)


def contingency(labels: ArrayLike, truth: ArrayLike) -> Contingency:
    """The table that every metric of regions is computed from; labels are numbered from 0 in their order.

    Examples
    --------
    >>> table = contingency([0, 0, 3, 3, -1], [7, 7, 7, 9, 9])
    >>> table.label.tolist(), table.truth.tolist(), table.shared.tolist(), table.n_pixels
    ([0, 1, 1], [0, 0, 1], [2, 1, 1], 4)
    """
    drawn = _numbered("labels", labels)
    return _contingency(drawn, _numbered("truth", truth, drawn.shape), "truth")


def rand_index(labels: ArrayLike, truth: ArrayLike) -> float:
    """Share of the pairs of pixels that both images treat alike, in [0, 1]; symmetric; 1 for a single pixel.

    1 - (sum a_i^2 + sum b_j^2 - 2 sum n_ij^2) / (n (n - 1)), Rand [1]_. It rewards over-segmentation: where regions are
    many, most pairs are apart in both images.

    Examples
    --------
    >>> rand_index([0, 0, 1, 1], [0, 0, 0, 0]) == 2 / 6
    True
    """
    return _rand(contingency(labels, truth))


def adjusted_rand_index(labels: ArrayLike, truth: ArrayLike) -> float:
    """The Rand index on a scale where chance is 0 and agreement 1, at least -1/2; symmetric.

    (S - E) / ((A + B) / 2 - E), where S = sum C(n_ij, 2), A = sum C(a_i, 2), B = sum C(b_j, 2) count the pairs together
    in both images and in each, and E = A B / C(n, 2) is the mean of S when pixels are shuffled, Hubert and Arabie [2]_.
    1 where this is 0/0: the partitions are then the same.

    Examples
    --------
    >>> adjusted_rand_index([0, 0, 1, 1], [0, 1, 0, 1])
    -0.5
    """
    return _adjusted(contingency(labels, truth))


def variation_of_information(labels: ArrayLike, truth: ArrayLike) -> float:
    """Bits in which the partitions differ, H(labels | truth) + H(truth | labels), in [0, log2 n]; a distance.

    1/n sum n_ij (log2 a_i / n_ij + log2 b_j / n_ij), Meila [3]_.

    Examples
    --------
    >>> variation_of_information([0, 0, 1, 1], [0, 1, 0, 1])
    2.0
    """
    return _voi(contingency(labels, truth))


def global_consistency_error(labels: ArrayLike, truth: ArrayLike) -> float:
    """How far neither image refines the other, in [0, 1): symmetric, 0 where one does.

    1/n min(sum n_ij (a_i - n_ij) / a_i, sum n_ij (b_j - n_ij) / b_j), Martin et al. [4]_: the share of a pixel's region
    that lies outside its region in the other image. One region, or one a pixel, scores 0 against anything.

    Examples
    --------
    >>> global_consistency_error([0, 0, 1, 1], [0, 1, 2, 2]), global_consistency_error([0, 0, 1, 1], [0, 1, 0, 1])
    (0.0, 0.5)
    """
    return _gce(contingency(labels, truth))


def segmentation_covering(labels: ArrayLike, truth: ArrayLike) -> float:
    """How well the true regions are covered, each by the best region of `labels`, in (0, 1]; not symmetric.

    1/n sum_j b_j max_i n_ij / (a_i + b_j - n_ij), Arbelaez et al. [5]_, section 3.1: the best intersection over union,
    weighted by the size of the true region.

    Examples
    --------
    >>> segmentation_covering([0, 0, 1, 1], [0, 0, 0, 0]), segmentation_covering([0, 0, 0, 0], [0, 0, 0, 1])
    (0.5, 0.625)
    """
    return _covering(contingency(labels, truth))


def mean_over_annotators(
    metric: Callable[[ArrayLike, ArrayLike], float], labels: ArrayLike, annotations: Sequence[ArrayLike]
) -> float:
    """The mean of a metric of two label images over annotators; `scores` has it for all metrics at once.

    Examples
    --------
    >>> mean_over_annotators(variation_of_information, [0, 0, 1, 1], [[0, 0, 1, 1], [0, 0, 0, 0]])
    0.5
    """
    drawn = _numbered("labels", labels)
    return float(np.mean([metric(drawn, truth) for truth in _numbered_list(annotations, drawn.shape).values()]))


def probabilistic_rand_index(labels: ArrayLike, annotations: Sequence[ArrayLike]) -> float:
    """The Rand index against several annotators: its mean over them, in [0, 1].

    Unnikrishnan et al. [6]_ define the mean over pairs of pixels of c p + (1 - c) (1 - p), where c says that the pair
    is together in `labels` and p is the share of annotators who have it so: the same where all pixels are labelled.

    Examples
    --------
    >>> probabilistic_rand_index([0, 0, 1, 1], [[0, 0, 1, 1], [0, 0, 0, 0]]) == (1 + 2 / 6) / 2
    True
    """
    return mean_over_annotators(rand_index, labels, annotations)


def boundary_scores(
    labels: ArrayLike, annotations: Sequence[ArrayLike], *, tolerance: float = TOLERANCE
) -> BoundaryScores:
    """Share of the drawn boundary that any annotator drew too, share of the annotators' that was drawn, and F.

    precision = pixels of the boundary of `labels` that match any annotator's / all of them; recall = pixels of the
    annotators' boundaries that match the drawn one / all of them, added up over annotators; F = 2 P R / (P + R), as in
    BSDS [7]_. A boundary pixel is one whose block with the next pixel along every axis has two labels or more, which is
    `Boundaries` of the BSDS files before these were thinned. A share of no pixels is 1.

    Matching is not that of BSDS: a pixel matches where a boundary pixel of the other image lies within the tolerance,
    by distance transform. So one pixel may match many, where the BSDS code thins boundaries and assigns one to one.
    Figures come out higher than theirs, and doubled lines go unpunished: do not set them beside published ones.

    Parameters
    ----------
    labels : array of int
        The segmentation.
    annotations : sequence of arrays of int, of the same shape
        One label image an annotator.
    tolerance : float
        The largest distance between matching pixels, as a share of the image's diagonal.

    Examples
    --------
    >>> boundary_scores([[0, 0, 1, 1]], [[[0, 0, 1, 1]], [[0, 1, 2, 2]]])
    BoundaryScores(precision=1.0, recall=0.6666666666666666, f=0.8)
    """
    drawn = _numbered("labels", labels)
    truths = _numbered_list(annotations, drawn.shape)
    for name, truth in truths.items():
        _labelled(drawn, truth, name)
    return _boundary_scores(drawn, list(truths.values()), tolerance)


def _rand(table: Contingency) -> float:
    every, both, first, second = _pairs(table)
    return (every + 2 * both - first - second) / every if every else 1.0


def _adjusted(table: Contingency) -> float:
    every, both, first, second = _pairs(table)
    above = 2 * (both * every - first * second)  # both parts of the fraction times 2 C(n, 2): whole numbers
    below = every * (first + second) - 2 * first * second
    return above / below if below else 1.0


def _voi(table: Contingency) -> float:
    shared = table.shared
    return float(np.sum(shared * (np.log2(table.a / shared) + np.log2(table.b / shared)))) / table.n_pixels


def _gce(table: Contingency) -> float:
    shared = table.shared
    return min(float(np.sum(shared * (sizes - shared) / sizes)) for sizes in (table.a, table.b)) / table.n_pixels


def _covering(table: Contingency) -> float:
    starts = np.flatnonzero(np.diff(table.truth, prepend=-1))  # cells come in order of truth
    best = np.maximum.reduceat(table.shared / (table.a + table.b - table.shared), starts)
    return float(np.sum(table.b[starts] * best)) / table.n_pixels


def _pairs(table: Contingency) -> tuple[int, int, int, int]:
    """Pairs of pixels: all, together in both, in labels, in truth. Python's integers: their products pass 2^63."""
    n = table.n_pixels
    both, first, second = ((int(table.shared @ other) - n) // 2 for other in (table.shared, table.a, table.b))
    return n * (n - 1) // 2, both, first, second


def _boundary_scores(labels: Labels, truths: list[Labels], tolerance: float) -> BoundaryScores:
    reach = check_real("tolerance", tolerance, at_least=0) * float(np.hypot.reduce(labels.shape))
    judged = np.any([truth >= 0 for truth in truths], axis=0)
    drawn = _boundary(np.where(judged, labels, -1))
    true = np.stack([_boundary(np.where(labels >= 0, truth, -1)) for truth in truths])
    precision = _share(drawn & _within(reach, np.logical_or.reduce(true)), drawn)
    recall = _share(true & _within(reach, drawn), true)
    return BoundaryScores(precision, recall, 2 * precision * recall / max(precision + recall, 1e-300))


def _share(part: NDArray[np.bool_], whole: NDArray[np.bool_]) -> float:
    return int(np.count_nonzero(part)) / int(np.count_nonzero(whole)) if whole.any() else 1.0


def _boundary(labels: Labels) -> NDArray[np.bool_]:
    """Labelled pixels whose block with the next pixel along every axis has two labels or more: one pixel wide."""
    low, high = np.where(labels < 0, labels.size, labels), labels.copy()  # so that an unlabelled pixel is neither
    for axis in range(labels.ndim):
        lows, highs = np.moveaxis(low, axis, 0), np.moveaxis(high, axis, 0)
        np.minimum(lows[:-1], lows[1:], out=lows[:-1])
        np.maximum(highs[:-1], highs[1:], out=highs[:-1])
    return (low < high) & (labels >= 0)


def _within(reach: float, boundary: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Pixels at most `reach` away from a boundary pixel."""
    if not boundary.any():
        return boundary  # the transform has no answer where there is nothing to be near
    return np.asarray(ndimage.distance_transform_edt(~boundary) <= reach)


def _contingency(labels: Labels, truth: Labels, name: str) -> Contingency:
    """The table of two numbered label images."""
    kept = _labelled(labels, truth, name)
    labels, truth = (labels.ravel(), truth.ravel()) if kept.all() else (labels[kept], truth[kept])
    label_sizes, truth_sizes = np.bincount(labels), np.bincount(truth)
    key = truth * label_sizes.size + labels
    if label_sizes.size * truth_sizes.size <= 4 * key.size + 1024:  # else a dense table outgrows the image
        counts = np.bincount(key)
        cells = np.flatnonzero(counts)
        shared = counts[cells]
    else:
        cells, shared = np.unique(key, return_counts=True)
    true, label = np.divmod(cells, label_sizes.size)
    return Contingency(label, true, shared, label_sizes[label], truth_sizes[true], key.size)


def _labelled(labels: Labels, truth: Labels, name: str) -> NDArray[np.bool_]:
    """Pixels that are labelled in both images; there must be one."""
    kept = (labels >= 0) & (truth >= 0)
    if not kept.any():
        counts = [int(np.count_nonzero(image >= 0)) for image in (labels, truth)]
        invalid(f"labels and {name}", f"have a pixel labelled in both, of {labels.size}", f"{counts} labelled")
    return kept


def _numbered(name: str, labels: ArrayLike, shape: tuple[int, ...] | None = None) -> Labels:
    """Labels as 0..k-1 in their order, -1 where unlabelled; of the segmentation's shape, where that is given."""
    array = integer_array(name, labels)
    if shape is not None and array.shape != shape:
        invalid(name, f"have the shape of labels, {shape}", array.shape)
    if array.size == 0 or array.max() > 4 * array.size + 1024:  # large numbers, few labels: packed colours, say
        values, inverse = np.unique(array, return_inverse=True)
        return np.maximum(inverse - np.count_nonzero(values < 0), -1).reshape(array.shape)
    above = np.maximum(array.astype(np.int64), -1) + 1
    present = np.bincount(above.ravel()) > 0
    present[0] = False
    return (np.cumsum(present) - 1)[above]


def _numbered_list(annotations: Sequence[ArrayLike], shape: tuple[int, ...]) -> dict[str, Labels]:
    """The annotations by the names that errors give them."""
    stacked = isinstance(annotations, np.ndarray) and annotations.ndim > len(shape)
    if not (stacked or isinstance(annotations, (list, tuple))) or len(annotations) == 0:
        invalid("annotations", "be a list of label images, one or more", annotations)
    return {f"annotations[{a}]": _numbered(f"annotations[{a}]", image, shape) for a, image in enumerate(annotations)}
