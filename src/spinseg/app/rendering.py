"""The image, its sites and its clusters as the page displays them."""

from base64 import b64encode

import numpy as np
from numpy.typing import NDArray

from spinseg.image.picture import Picture
from spinseg.image.working import working_copy
from spinseg.partition.contingency import contingency_table

MAX_DISPLAYED_PIXELS = 300_000
MAX_PACKED_LABELS = 2**16  # `packed` has two bytes for each


def displayed_image(picture: Picture) -> NDArray[np.uint8]:
    """The image as the page displays it, (rows, columns, 3), reduced if it has more than MAX_DISPLAYED_PIXELS."""
    return working_copy(picture, None, MAX_DISPLAYED_PIXELS).picture.rgb


def displayed_sites(sites: NDArray[np.int32], shape: tuple[int, ...]) -> NDArray[np.int32]:
    """The site of each displayed pixel, where the displayed image has this shape."""
    step = -(-sites.shape[0] // shape[0])
    return np.ascontiguousarray(sites[::step, ::step])


def displayed_boundaries(probability: NDArray[np.float32], shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """Boundary probabilities of the displayed pixels, scaled to 0..255; block maxima, so that thin lines are kept."""
    image, step = np.rint(255 * probability).astype(np.uint8), -(-probability.shape[0] // shape[0])
    for axis in (0, 1):
        image = np.maximum.reduceat(image, np.arange(0, image.shape[axis], step), axis=axis)
    return image


def match_labels(labels: NDArray[np.int32], *references: NDArray[np.int32]) -> NDArray[np.int32]:
    """Renumber clusters so that they keep the numbers, and hence the colors, of similar clusters in the references.

    A cluster takes the number of a reference cluster if each shares more sites with the other than with any other
    cluster. Earlier references take precedence. The remaining clusters get the lowest free numbers. An
    optimal assignment would take time cubic in the number of clusters, of which there may be one for every site.

    Examples
    --------
    >>> match_labels(
    ...     np.array([0, 0, 1, 2]), np.array([4, 4, 4, 1])
    ... ).tolist()
    [4, 4, 0, 1]
    """
    k = int(labels.max()) + 1
    number = np.full(k, -1)
    for reference in references:
        old, new, shared, *_ = contingency_table(reference, labels)
        order = np.argsort(shared, kind="stable")  # the last assignment wins: the largest overlap
        best_of_new, best_of_old = np.zeros(k, np.int64), np.zeros(int(reference.max()) + 1, np.int64)
        best_of_new[new[order]] = old[order]
        best_of_old[old[order]] = new[order]
        matched = (best_of_old[best_of_new] == np.arange(k)) & (number < 0) & ~np.isin(best_of_new, number)
        number[matched] = best_of_new[matched]
    free = np.setdiff1d(np.arange(2 * k), number)
    number[number < 0] = free[: np.count_nonzero(number < 0)]
    return number[labels].astype(np.int32)


def packed(labels: NDArray) -> str:
    """Labels below MAX_PACKED_LABELS as base64 of little-endian 16-bit integers."""
    return b64encode(labels.astype("<u2").tobytes()).decode()
