"""Outlines of classes that follow the pixels of a picture or volume, not its sites."""

import numpy as np
from numpy.typing import NDArray
from skimage.measure import label
from skimage.segmentation import watershed

from spinseg.image.class_kernels import move_pixels
from spinseg.image.features import site_histograms, site_sizes

OUTLINE_COUPLING = {2: 0.75, 3: 0.5}  # nats for each touching pixel of the same class, by the number of axes
MAX_PASSES = 20


def refine_classes(
    sites: NDArray[np.int32], class_of: NDArray[np.int32], words: NDArray[np.integer], n_words: int
) -> NDArray[np.int32]:
    """The sites with pixels moved between them, until none at the outline of a class fits a touching class better.

    `class_of` has the class of every site, 0..k-1. A pixel fits a class by the frequency of its word among the pixels
    of that class, before any moved, and by the touching pixels that are of it. Sites need not be connected afterwards.
    Besag, On the statistical analysis of dirty pictures, JRSS B 1986.
    """
    moved = np.pad(sites, 1, constant_values=-1)
    padded_words = np.pad(words, 1).astype(np.int32)
    strides = np.cumprod([1, *moved.shape[:0:-1]])
    offsets = np.concatenate([strides, -strides])
    log_frequency = word_log_frequencies(sites, class_of, words, n_words)
    how = (class_of, offsets, log_frequency, OUTLINE_COUPLING[sites.ndim], site_sizes(sites))
    flat = moved.ravel()
    for _ in range(MAX_PASSES):
        if not move_pixels(flat, padded_words.ravel(), *how):
            break
    return moved[(slice(1, -1),) * sites.ndim].copy()


def with_connected_regions(sites: NDArray[np.int32], region_of: NDArray[np.int32]) -> NDArray[np.int32]:
    """The sites with pixels moved so that regions are connected: those cut off from their region join a touching one.

    `region_of` has the region of every site. Sites that lie in a piece that was cut off alone keep their pixels, so
    that none is lost.

    Examples
    --------
    >>> with_connected_regions(np.array([[0, 0, 1, 1, 0, 1]], np.int32), np.array([0, 1], np.int32))
    array([[0, 0, 1, 1, 1, 1]], dtype=int32)
    """
    pieces = label(np.append(region_of, np.int32(-1))[sites], background=-1, connectivity=1)
    sizes = np.bincount(pieces.ravel())
    region, site = np.zeros(sizes.size, np.int64), sites[sites >= 0]
    region[pieces[sites >= 0]] = region_of[site]
    largest = np.zeros(int(region_of.max()) + 1, np.int64)
    order = np.argsort(sizes[1:], kind="stable") + 1
    largest[region[order]] = order  # of repeated indices the last assignment stays
    kept = (sites >= 0) & (pieces == largest[np.append(region_of, np.int32(0))[sites]])
    lost = np.bincount(sites[kept], minlength=region_of.size) == 0
    kept |= np.append(lost, False)[sites]
    flooded = watershed(np.zeros(sites.shape, np.uint8), np.where(kept, sites + 1, 0), connectivity=1, mask=sites >= 0)
    return np.where(flooded > 0, flooded - 1, sites).astype(np.int32)


def word_log_frequencies(
    sites: NDArray[np.int32], class_of: NDArray[np.int32], words: NDArray[np.integer], n_words: int
) -> NDArray[np.float64]:
    """The log of the expected frequency of every word in every class, (n_classes, n_words), from a uniform prior."""
    classes = np.append(class_of, np.int32(-1))[sites]
    counts = site_histograms(words, classes, n_words).toarray() + 1.0
    return np.log(counts / counts.sum(axis=1, keepdims=True))
