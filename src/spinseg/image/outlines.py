"""Outlines that follow the pixels of an image: those of sites, and those of classes.

The sites of a watershed follow edges, and where there are none, the noise. The draws separate two sites with some
probability, and draw the boundary between them that often. So each pixel goes to the site with which the length of all
outlines around it is least, on average over the draws; a boundary that lies on evidence counts for little. A watershed
of the full image from the interiors of sites is worse: docs/evidence/accuracy.md.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sparse
from numpy.typing import NDArray
from skimage.measure import label

from spinseg.graph.adjacency import boundary_pairs
from spinseg.graph.site_graph import SiteGraph
from spinseg.image.features import site_histograms, site_sizes
from spinseg.image.kernels.outlines import move_pixels, shorten
from spinseg.image.layout import Floats, Ints, Mask
from spinseg.image.working import WorkingCopy, any_in_blocks, block_means, flooded
from spinseg.partition.pairs import separation_probability

RADIUS = 3  # pixels, of the window in which the length of outlines is measured
MAX_SITES_AROUND = 64  # that are distinguished in a window
SHOWN = 0.01  # a boundary with a smaller probability stays where it is
BLOCK_ROWS = 64  # of pixels that are filtered at a time: about what a processor keeps near
N_PASSES = 40  # at most, over the pixels at boundaries; nearly all that move do so in the first five

# Where a boundary map, or at full size the change of intensity from pixel to pixel (of 65535), is higher by this much,
# the length of an outline counts for 1/e of what it did. Chosen on training photographs of BSDS300.
RELIEF_SCALE, CHANGE_SCALE = 2.0, 8 * 257.0
FLAT_RELIEF = 6.0  # where the boundary map is higher, boundaries stay where the sites of the working image have them

OUTLINE_COUPLING = {2: 0.75, 3: 0.5}  # nats for each touching pixel of the same class, by the number of axes
MAX_CLASS_PASSES = 20


class SitePairs(NamedTuple):
    """Pairs of sites that touch or have a neighbor in common, those of each site together, every pair twice.

    `start`, (n_sites + 1,), is where the pairs of each site begin, and `other` the other site of each pair. They lie
    apart with the probability `separation`, touch in the graph if `is_edge`, and have at present `n_contacts` pairs of
    touching pixels.
    """

    start: NDArray[np.int64]
    other: NDArray[np.int64]
    separation: Floats
    is_edge: Mask
    n_contacts: NDArray[np.int64]

    @classmethod
    def of(cls, graph: SiteGraph, draws: Ints) -> "SitePairs":
        """Return the pairs of a graph, with their separation in draws, (.., n_sites); without draws it is 0."""
        n, (i, j) = graph.n_sites, graph.edges.T
        touching = sparse.coo_array((np.ones(i.size, np.int32), (i, j)), (n, n)).tocsr()
        touching = touching + touching.T
        near = sparse.triu(touching + touching @ touching, k=1).tocoo()
        pairs = np.stack([near.row, near.col], axis=1)
        half = sparse.coo_array((np.arange(1, len(pairs) + 1), (near.row, near.col)), (n, n)).tocsr()
        table = half + half.T
        table.sort_indices()
        pair = table.data - 1
        separation = np.nan_to_num(separation_probability(draws, pairs))[pair]
        is_edge = np.isin(pairs @ [n, 1], np.sort(graph.edges, axis=1) @ [n, 1])[pair]
        start, other = table.indptr.astype(np.int64), table.indices.astype(np.int64)
        return cls(start, other, separation, is_edge, np.zeros(pair.size, np.int64))


def outlined_sites(
    sites: Ints,
    relief: NDArray[np.floating[Any]],
    working_image: WorkingCopy,
    codes: NDArray[np.uint16],
    pairs: SitePairs,
    held: Mask | None = None,
) -> Ints:
    """Return the sites of an image at its full size, with outlines as short as the evidence allows; -1 outside.

    `sites` and `relief` are those of the working image, `codes` the image at its full size, and `held` its pixels that
    stay in their sites. Where the image was reduced, outlines are refined in steps of at most three, each time with
    what the image shows at that size.
    """
    weight, step = np.exp(-relief / RELIEF_SCALE), working_image.step
    held = np.zeros(working_image.shape, bool) if held is None else held
    free = (relief < FLAT_RELIEF) & ~any_in_blocks(held, step)
    refined = shorten_outlines(sites, weight, pairs, free)
    while step > 1:
        refined, step = _enlarged(refined, step, step // 2, working_image.shape), step // 2
        change = _steepest_change(codes if step == 1 else block_means(codes, step))
        refined = shorten_outlines(refined, np.exp(-change / CHANGE_SCALE), pairs, ~any_in_blocks(held, step))
    inside = working_image.original_inside
    return refined if inside is None else np.where(inside, refined, np.int32(-1))


def _enlarged(sites: Ints, step: int, new_step: int, shape: tuple[int, ...]) -> Ints:
    """Return sites of blocks of `step` pixels of an image of this shape, for its blocks of `new_step`."""
    rows, columns = ((np.arange(0, length, new_step) + new_step // 2) // step for length in shape)
    return sites[np.ix_(np.minimum(rows, sites.shape[0] - 1), np.minimum(columns, sites.shape[1] - 1))]


def _steepest_change(codes: NDArray[np.uint16]) -> NDArray[np.floating[Any]]:
    """Return for each pixel the largest change of a channel from pixel to pixel, by Sobel's filter."""
    height, steepest = len(codes), np.empty(codes.shape[:2], np.float32)
    for first in range(0, height, BLOCK_ROWS):
        rows = np.arange(first - 1, min(first + BLOCK_ROWS, height) + 1).clip(0, height - 1)
        padded = np.pad(np.moveaxis(codes[rows], -1, 0), ((0, 0), (0, 0), (1, 1)), mode="edge").astype(np.float32)
        down, across = padded[:, 2:] - padded[:, :-2], padded[..., 2:] - padded[..., :-2]
        down = down[..., :-2] + 2 * down[..., 1:-1] + down[..., 2:]
        across = across[:, :-2] + 2 * across[:, 1:-1] + across[:, 2:]
        steepest[first : first + BLOCK_ROWS] = (np.square(down) + np.square(across)).max(axis=0)
    return np.sqrt(steepest) / 8


def window_around(radius: int) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
    """Return the offsets dy and dx of the pixels around one, and the share of each in the length of an outline."""
    dy, dx = np.mgrid[-radius : radius + 1, -radius : radius + 1]
    distance = np.hypot(dy, dx)
    within = (distance > 0) & (distance <= radius + 0.3)
    return dy[within], dx[within], 1 / distance[within]


def shorten_outlines(sites: Ints, weight: NDArray[np.floating[Any]], pairs: SitePairs, is_free: Mask) -> Ints:
    """Return sites whose outlines are shorter: a local minimum of their expected weighted length, or nearly one.

    The length is the sum, over pixels within RADIUS of each other, of the product of their weights over their distance,
    times the probability that their sites lie apart. Every site stays connected, and the same sites touch, so that
    the graph still holds. `weight`, (H, W), says how much the length of an outline counts at each pixel, and `is_free`
    which pixels may move.
    """
    moved = np.ascontiguousarray(sites, dtype=np.int32).copy()
    lower, upper, pixels = boundary_pairs(moved)
    n = pairs.start.size - 1
    key = np.repeat(np.arange(n), np.diff(pairs.start)) * n + pairs.other
    places = np.searchsorted(key, lower.astype(np.int64) * n + upper)
    back = np.searchsorted(key, upper.astype(np.int64) * n + lower)
    contacts = np.bincount(places, minlength=key.size) + np.bincount(back, minlength=key.size)
    first = np.unique(pixels[:, pairs.separation[places] > SHOWN])
    waiting = np.zeros((2, moved.size), np.int64)
    waiting[0, : first.size] = first
    is_waiting, scratch = np.zeros(moved.size, bool), (np.zeros(MAX_SITES_AROUND, np.int64), np.zeros(MAX_SITES_AROUND))
    is_waiting[first] = True
    weight, table = np.require(weight, np.float32, ("C", "W")), pairs._replace(n_contacts=contacts)
    is_free = np.require(is_free, bool, ("C", "W"))
    shorten(moved, weight, is_free, table, window_around(RADIUS), waiting, is_waiting, first.size, N_PASSES, *scratch)
    return moved


def refine_classes(sites: Ints, class_of: Ints, words: NDArray[np.integer], n_words: int) -> Ints:
    """Return sites with pixels moved until none at the outline of a class fits a touching class better.

    `class_of` has the class of every site, 0..k-1. A pixel fits a class by the frequency of its word among the pixels
    of that class, before any moved, and by the touching pixels that are of it. Sites need not be connected afterwards.
    Besag, On the statistical analysis of dirty pictures, JRSS B 1986.
    """
    moved = np.pad(sites, 1, constant_values=-1)
    padded_words = np.pad(words, 1).astype(np.int32)
    strides = np.cumprod([1, *moved.shape[:0:-1]])
    offsets = np.concatenate([strides, -strides])
    log_frequency = word_log_frequencies(sites, class_of, words, n_words)
    how = (
        np.require(class_of, np.int32, ("C", "W")),
        offsets,
        log_frequency,
        OUTLINE_COUPLING[sites.ndim],
        site_sizes(sites),
    )
    flat = moved.ravel()
    for _ in range(MAX_CLASS_PASSES):
        if not move_pixels(flat, padded_words.ravel(), *how):
            break
    return moved[(slice(1, -1),) * sites.ndim].copy()


def with_connected_regions(sites: Ints, region_of: Ints) -> Ints:
    """Return sites with pixels moved so that regions are connected: those cut off join a touching region.

    `region_of` has the region of every site. Sites that lie in a piece that was cut off alone keep their pixels, so
    that none is lost.
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
    return flooded(sites, kept, sites >= 0)


def word_log_frequencies(sites: Ints, class_of: Ints, words: NDArray[np.integer], n_words: int) -> Floats:
    """Return the log of the expected frequency of each word in each class, (n_classes, n_words)."""
    classes = np.append(class_of, np.int32(-1))[sites]
    counts = site_histograms(words, classes, n_words).toarray() + 1.0
    return np.log(counts / counts.sum(axis=1, keepdims=True))
