"""Scores of objects on a background, such as nuclei: which of them a segmentation finds.

.. [1] Caicedo et al., Nucleus segmentation across imaging experiments: the 2018 Data Science Bowl, Nature Methods 2019.
       doi:10.1038/s41592-019-0612-7
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from studies.evaluation.metrics import contingency

BACKGROUND = 0  # in the ground truth


class ObjectScores(NamedTuple):
    """F1 of objects found with an intersection over union above .5, and above .75 [1]_."""

    f_50: float
    f_75: float


def object_scores(labels: ArrayLike, truth: ArrayLike) -> ObjectScores:
    """Return the scores of a label image against instances, 2 TP / (objects in `labels` + objects in `truth`).

    BACKGROUND is no object of `truth`, and the largest region none of `labels`; where `truth` has no background, all
    regions are objects. TP counts the pairs of objects whose intersection over union is above a threshold; above .5 an
    object has one partner at most. Pixels with a negative label in either image are left out. The scores are 1 where
    neither image has an object.

    Examples
    --------
    >>> object_scores(
    ...     [[5, 5, 5, 7, 7, 7, 5, 5, 5, 8]],
    ...     [[0, 0, 0, 1, 1, 0, 0, 2, 2, 2]],
    ... )
    ObjectScores(f_50=0.5, f_75=0.0)
    """
    table, instances = contingency(labels, truth), np.asarray(truth)
    in_truth, in_labels = table.row_sizes > 0, table.column_sizes > 0
    lies_behind = np.unique(instances[instances >= 0]) == BACKGROUND
    if lies_behind.any():
        in_truth &= ~lies_behind[: in_truth.size]
        in_labels[table.column_sizes.argmax()] = False
    shared, row_size, column_size = table.cells
    overlap = shared / (row_size + column_size - shared)
    overlap = overlap[in_truth[table.row] & in_labels[table.column]]
    n_objects = int(in_truth.sum() + in_labels.sum())
    found = (2 * int(np.count_nonzero(overlap > above)) for above in (0.5, 0.75))
    return ObjectScores(*(n / n_objects if n_objects else 1.0 for n in found))
