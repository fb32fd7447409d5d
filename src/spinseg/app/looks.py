"""How a page sees a picture, its sites and its clusters."""

from base64 import b64encode

import numpy as np
from numpy.typing import NDArray

from spinseg.image.picture import Picture, working_copy
from spinseg.segmentation.problem import Scene

MOST_SHOWN = 300_000  # pixels
MOST_NUMBERS = 2**16  # of sites and clusters, as `packed` has them


def shown_picture(picture: Picture) -> NDArray[np.uint8]:
    """A picture as a page shows it, smaller where it is large: (rows, columns, 3)."""
    return working_copy(picture, None, MOST_SHOWN).picture.rgb


def shown_step(image: NDArray, shape: tuple[int, ...]) -> int:
    """Of how many pixels of an image, along each axis, a page that shows `shape` sees one."""
    return -(-image.shape[0] // shape[0])


def shown_sites(scene: Scene, shape: tuple[int, ...]) -> NDArray[np.int32]:
    """The site of each pixel shown."""
    step = shown_step(scene.sites, shape)
    return np.ascontiguousarray(scene.sites[::step, ::step])


def shown_boundaries(probability: NDArray[np.float32], shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """Boundary probabilities of pixels shown, 255 for certain: the largest of each block, so that no line is lost."""
    image, step = np.rint(255 * probability).astype(np.uint8), shown_step(probability, shape)
    for axis in (0, 1):
        image = np.maximum.reduceat(image, np.arange(0, image.shape[axis], step), axis=axis)
    return image


def keeping_numbers(labels: NDArray[np.int32], *references: NDArray[np.int32]) -> NDArray[np.int32]:
    """Labels, numbered so that a cluster has the number of the one in a reference that it shares most sites with.

    That one must share most with it, too; earlier references come first, and clusters without a match get the lowest
    numbers that are free. `aligned` numbers better, but in time that grows with the cube of the number of clusters, and
    chains may start with as many as there are sites.

    Examples
    --------
    >>> keeping_numbers(np.array([0, 0, 1, 2]), np.array([4, 4, 4, 1])).tolist()
    [4, 4, 0, 1]
    """
    k = int(labels.max()) + 1
    number = np.full(k, -1)
    for reference in references:
        pairs, shared = np.unique(reference.astype(np.int64) * k + labels, return_counts=True)
        old, new = np.divmod(pairs, k)
        order = np.argsort(shared, kind="stable")  # what is written last stays: the most
        best_of_new, best_of_old = np.zeros(k, np.int64), np.zeros(int(reference.max()) + 1, np.int64)
        best_of_new[new[order]] = old[order]
        best_of_old[old[order]] = new[order]
        matched = (best_of_old[best_of_new] == np.arange(k)) & (number < 0) & ~np.isin(best_of_new, number)
        number[matched] = best_of_new[matched]
    free = np.setdiff1d(np.arange(2 * k), number)
    number[number < 0] = free[: np.count_nonzero(number < 0)]
    return number[labels].astype(np.int32)


def packed(numbers: NDArray) -> str:
    """Whole numbers below MOST_NUMBERS as text: base64 of two bytes each, the lower first."""
    return b64encode(numbers.astype("<u2").tobytes()).decode()
