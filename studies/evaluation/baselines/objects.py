"""Short recipes for objects on a background, as tutorials of scikit-image have them, tuned on training nuclei.

The defaults have the highest mean F1 at an intersection over union above .5 on the training nuclei:
`python -m studies object_baselines`.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import ndimage
from skimage.color import rgb2gray
from skimage.feature import peak_local_max
from skimage.filters import threshold_local, threshold_otsu
from skimage.measure import label
from skimage.morphology import h_minima
from skimage.segmentation import watershed

import spinseg as ss
from spinseg.image.picture import Picture
from studies.evaluation.baselines.library import as_rgb

Floats = NDArray[np.floating[Any]]


def otsu_watershed(
    image: Picture | ArrayLike, *, sigma: float = 1.0, min_distance: int = 7, min_size: int = 30
) -> NDArray[np.int32]:
    """Return the pixels on the rarer side of Otsu's threshold, cut by a watershed of their distance to the others.

    Label 0 is the background. Objects are at least `min_size` pixels large and their centers `min_distance` apart.

    Examples
    --------
    >>> image = np.full((40, 60), 200, np.uint8)
    ... image[5:20, 5:20] = image[20:35, 40:55] = 40
    >>> np.unique(otsu_watershed(image)[[10, 30, 0], [10, 50, 0]]).tolist()
    [0, 1, 2]
    """
    gray = bright_objects(smooth_gray(image, sigma))
    return cut_touching(gray > threshold_otsu(gray), min_distance, min_size)


def local_watershed(
    image: Picture | ArrayLike,
    *,
    sigma: float = 1.0,
    block_size: int = 201,
    offset: float = 0.03,
    min_distance: int = 10,
    min_size: int = 30,
) -> NDArray[np.int32]:
    """Return the same of pixels that exceed the weighted mean around them by `offset`; the image goes from 0 to 1."""
    gray = bright_objects(smooth_gray(image, sigma))
    return cut_touching(gray > threshold_local(gray, block_size) + offset, min_distance, min_size)


def network_watershed(image: Picture | ArrayLike, *, h: float = 0.1) -> NDArray[np.int32]:
    """Return the basins of the boundary network's own map that are deeper than `h`: no cues, and no posterior."""
    return basins(ss.boundary_strength(image), h)


def basins(relief: Floats, h: float) -> NDArray[np.int32]:
    """Return the watershed of a relief from its minima that are deeper than `h`, numbered from 0.

    Examples
    --------
    >>> basins(
    ...     np.array([[0.0, 0.1, 0.9, 0.2, 0.3, 0.25, 0.8, 0.0]]), 0.2
    ... ).tolist()
    [[0, 0, 0, 1, 1, 1, 2, 2]]
    """
    minima = label(h_minima(relief.astype(np.float64), h))
    return watershed(relief, minima).astype(np.int32) - 1 if minima.any() else np.zeros(relief.shape, np.int32)


def smooth_gray(image: Picture | ArrayLike, sigma: float) -> Floats:
    """Return the image in gray, from 0 to 1, smoothed."""
    return ndimage.gaussian_filter(rgb2gray(as_rgb(image)), sigma)


def bright_objects(gray: Floats) -> Floats:
    """Return an image, or its negative, so that objects are bright: the rarer side of Otsu's threshold.

    Examples
    --------
    >>> (
    ...     bright_objects(np.array([0.9, 0.9, 0.2])).round(1).tolist(),
    ...     bright_objects(np.array([0.9, 0.2, 0.2])).tolist(),
    ... )
    ([0.0, 0.0, 0.7], [0.9, 0.2, 0.2])
    """
    return gray if np.mean(gray > threshold_otsu(gray)) <= 0.5 else gray.max() - gray


def cut_touching(mask: NDArray[np.bool_], min_distance: int, min_size: int) -> NDArray[np.int32]:
    """Return objects of a mask, from 1 on, cut where they touch: by a watershed of the distance to what is outside.

    Those of fewer than `min_size` pixels are background, 0.
    """
    distance, pieces = ndimage.distance_transform_edt(mask), label(mask)
    markers = np.zeros(mask.shape, np.int32)
    centers = peak_local_max(distance, min_distance=min_distance, labels=pieces, exclude_border=False)
    markers[tuple(centers.T)] = np.arange(1, len(centers) + 1)
    found = watershed(-distance, markers, mask=mask)
    large = np.bincount(found.ravel()) >= min_size
    large[0] = False
    return np.where(large, np.cumsum(large), 0)[found].astype(np.int32)
