"""Shallow basins of a relief filled up: the reconstruction by erosion, in a compiled loop.

scikit-image's takes more than ten times as long: it sorts all pixels first. Vincent, Morphological grayscale
reconstruction in image analysis, IEEE Trans. Image Processing 1993, :DOI:`10.1109/83.217222`.
"""

from itertools import product

import numpy as np
from numpy.typing import NDArray

from spinseg._compiled import jit


def filled(relief: NDArray[np.float32], depth: float) -> NDArray[np.float32]:
    """Return a relief whose basins are filled up by `depth`, or to their lowest saddles, where that is less.

    Pixels touch along the axes and the diagonals.
    """
    ground = np.pad(relief, 1, constant_values=np.inf)
    level = ground + np.float32(depth)
    strides = np.cumprod([1, *ground.shape[:0:-1]])[::-1]
    around = np.array(list(product((-1, 0, 1), repeat=relief.ndim))) @ strides
    queue, is_waiting = np.empty(ground.size, np.int64), np.zeros(ground.size, bool)
    drain(level.ravel(), ground.ravel(), around[around > 0], queue, is_waiting)
    return level[(slice(1, -1),) * relief.ndim]


@jit
def drain(level, ground, after, queue, is_waiting):  # type: ignore[no-untyped-def]
    """Lower the level of every pixel to that of its lowest neighbor, or to the ground, until nothing changes.

    `after` are the steps to the neighbors that come later, in rising order; pixels at the border are infinite.
    queue (n,) and is_waiting (n,), all False, are scratch.
    """
    n, reach = level.size, after[-1]
    for p in range(reach, n - reach):
        for step in after:
            level[p] = min(level[p], level[p - step])
        level[p] = max(level[p], ground[p])
    first, n_waiting = 0, 0
    for p in range(n - reach - 1, reach - 1, -1):
        for step in after:
            level[p] = min(level[p], level[p + step])
        level[p] = max(level[p], ground[p])
        for step in after:
            if level[p + step] > max(level[p], ground[p + step]) and not is_waiting[p]:
                queue[n_waiting], is_waiting[p] = p, True
                n_waiting += 1
    while n_waiting > 0:
        p = queue[first]
        first, n_waiting, is_waiting[p] = (first + 1) % n, n_waiting - 1, False
        for direction in (-1, 1):
            for step in after:
                q = p + direction * step
                lower = max(level[p], ground[q])
                if level[q] > lower:
                    level[q] = lower
                    if not is_waiting[q]:
                        queue[(first + n_waiting) % n], is_waiting[q] = q, True
                        n_waiting += 1
