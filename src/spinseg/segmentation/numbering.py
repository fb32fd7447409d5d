"""The numbers of labels: clusters are counted from the largest, and the outside comes just before the first."""

import numpy as np
from numpy.typing import NDArray


def largest_first(partition: NDArray[np.int32], pixels: NDArray[np.int64]) -> NDArray[np.int32]:
    """The same partition, numbered 0..k-1 from the largest cluster on; `pixels` are those of each site.

    Examples
    --------
    >>> largest_first(np.array([0, 1]), pixels=np.array([10, 20]))
    array([1, 0], dtype=int32)
    """
    areas = np.bincount(partition, pixels)
    number = np.empty(areas.size, np.int32)
    number[np.argsort(-areas, kind="stable")] = np.arange(areas.size)
    return number[partition]


def label_image(partition: NDArray[np.int32], sites: NDArray[np.int32], start_label: int) -> NDArray[np.int32]:
    """The label of every pixel: that of its site's cluster, from `start_label` on, and one less outside (site -1).

    Examples
    --------
    >>> label_image(np.array([1, 0]), np.array([[0, 1, -1]]), start_label=1)
    array([[2, 1, 0]], dtype=int32)
    """
    return np.append(partition + start_label, start_label - 1).astype(np.int32)[sites]
