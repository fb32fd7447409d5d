"""How the clusters of a partition are numbered. It needs NumPy alone, so that anything may import it."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinseg._validation import check_array, integer_array, invalid


def in_order(labels: NDArray[np.integer]) -> NDArray[np.int64]:
    """The same labels numbered 0..k-1 in increasing order, in the same shape."""
    if labels.size and labels.min() >= 0 and labels.max() <= 4 * labels.size + 1024:  # as in most label images
        numbers = labels.astype(np.int64)
        return (np.cumsum(np.bincount(numbers.ravel()) > 0) - 1)[numbers]
    return np.unique(labels, return_inverse=True)[1].reshape(labels.shape)


def by_first_appearance(labels: NDArray[np.integer]) -> NDArray[np.int32]:
    """The same labels numbered 0..k-1 by first appearance in row-major order, in the same shape."""
    numbers = in_order(labels)
    flat = numbers.ravel()
    first = np.empty(int(flat.max(initial=-1)) + 1, np.int64)
    first[flat[::-1]] = np.arange(flat.size)[::-1]  # backwards, since of repeated indices the last assignment stays
    rank = np.empty(first.size, np.int32)
    rank[np.argsort(first)] = np.arange(first.size, dtype=np.int32)
    return rank[numbers]


def checked_labels(name: str, value: ArrayLike, n_sites: int) -> NDArray[np.int32]:
    """`value` as a partition of the sites: int32 labels numbered 0..k-1 by first appearance."""
    array = check_array(name, value)
    if array.shape != (n_sites,):
        invalid(name, f"have one entry per site, shape ({n_sites},)", array.shape)
    return by_first_appearance(integer_array(name, array))


def largest_first(partition: NDArray[np.int32], pixels: NDArray[np.int64]) -> NDArray[np.int32]:
    """The same partition, numbered 0..k-1 from the largest cluster on; `pixels` are those of each site."""
    areas = np.bincount(partition, pixels)
    number = np.empty(areas.size, np.int32)
    number[np.argsort(-areas, kind="stable")] = np.arange(areas.size)
    return number[partition]


def label_image(partition: NDArray[np.int32], sites: NDArray[np.int32], start_label: int) -> NDArray[np.int32]:
    """The label of every pixel: that of its site's cluster, from `start_label` on, and one less outside (site -1)."""
    return np.append(partition + start_label, start_label - 1).astype(np.int32)[sites]
