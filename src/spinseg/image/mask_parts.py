"""The parts of a mask, which do not touch each other, in an image that is reduced."""

import numpy as np
from numpy.typing import NDArray


def reduce_mask(
    inside: NDArray[np.bool_], step: int, held: NDArray[np.bool_] | None = None
) -> tuple[NDArray[np.bool_], bool]:
    """Return which blocks of `step` pixels along each axis are inside, and whether some are not to keep parts apart.

    A block is inside if any of its pixels is. But where two blocks touch in which most pixels inside belong to
    different parts of the mask, the one with fewer of them is outside: a line one pixel wide would separate nothing
    otherwise. The fullest block of each part, and blocks with a pixel that is `held`, stay inside.

    Examples
    --------
    >>> inside = np.ones((2, 12), bool)
    >>> inside[:, 5] = False
    >>> reduce_mask(inside, 2)[0].tolist()
    [[True, True, False, True, True, True]]
    """
    from skimage.measure import label

    part = label(inside, connectivity=1)
    shape = tuple(-(-length // step) for length in inside.shape)
    pixels = np.nonzero(inside)
    block = np.ravel_multi_index(tuple(axis // step for axis in pixels), shape)
    stride = int(part.max()) + 1
    pairs, counts = np.unique(block * stride + part[pixels], return_counts=True)
    blocks, parts = np.divmod(pairs, stride)
    owner, fullness, kept = (np.zeros(int(np.prod(shape)), kind) for kind in (np.int64, np.int64, bool))
    order = np.argsort(counts, kind="stable")  # of repeated indices the last assignment stays
    owner[blocks[order]], fullness[blocks[order]] = parts[order], counts[order]
    if stride > 2:
        fullest = np.zeros(stride, np.int64)
        fullest[parts[order]] = blocks[order]
        owner[fullest[1:]] = np.arange(1, stride)
        kept[fullest[1:]] = True
    owner, fullness, kept = (each.reshape(shape) for each in (owner, fullness, kept))
    if held is not None:
        rows = tuple(axis // step for axis in np.nonzero(held))
        kept[rows] = True
    reduced = owner > 0
    for axis in range(inside.ndim):
        here, there = ((slice(None),) * axis + (side,) for side in (slice(-1), slice(1, None)))
        apart = (owner[here] != owner[there]) & (owner[here] > 0) & (owner[there] > 0)
        first = (fullness[here] < fullness[there]) | kept[there]
        reduced[here] &= ~(apart & first & ~kept[here])
        reduced[there] &= ~(apart & ~(first & ~kept[here]) & ~kept[there])
    return reduced, bool((reduced != (owner > 0)).any())


def sites_within_parts(sites: NDArray[np.int32], inside: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Return sites of an image at full size none of which has pixels of two parts of the mask.

    A pixel inside without a site, or with one that lies mostly in another part, gets the site of the nearest pixel of
    its own part, and keeps what it has where there is none.
    """
    from skimage.measure import label
    from skimage.segmentation import watershed

    part = label(inside, connectivity=1)
    stride, known = int(part.max()) + 1, inside & (sites >= 0)
    pairs, counts = np.unique(sites[known].astype(np.int64) * stride + part[known], return_counts=True)
    site, of_part = np.divmod(pairs, stride)
    owner = np.zeros(int(sites.max()) + 2, np.int64)  # the last is that of no site
    order = np.argsort(counts, kind="stable")
    owner[site[order]] = of_part[order]
    right = inside & (owner[sites] == part)
    if np.array_equal(right, inside):
        return sites
    flooded = watershed(np.zeros(sites.shape, np.uint8), np.where(right, sites + 1, 0), connectivity=1, mask=inside)
    return np.where(flooded > 0, flooded - 1, sites).astype(np.int32)
