"""Outlines: the boundaries of sites, moved so that they are as short as the evidence allows.

The sites of a watershed follow edges, and where there are none, the noise. Of two sites that the draws separate with
some probability, the boundary is drawn that often. So a pixel is given to the site with which the length of all
outlines around it is least, on average over the draws; a boundary that lies on evidence counts for little.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sparse
from numpy.typing import NDArray

from spinseg.graph.adjacency import boundary_pairs
from spinseg.graph.site_graph import SiteGraph
from spinseg.image.outline_kernels import shorten, steepest_change
from spinseg.image.working import WorkingCopy, any_in_blocks, block_means

RADIUS = 3  # pixels, of the window in which the length of outlines is measured
MAX_SITES_AROUND = 64  # that are told apart in a window
SHOWN = 0.01  # a boundary with a smaller probability is left where it is
N_PASSES = 40  # at most, over the pixels at boundaries; nearly all that move do so in the first five

# Where a boundary map, or at full size the change of intensity from pixel to pixel (of 65535), is higher by this much,
# the length of an outline counts for 1/e of what it did. Chosen on training photographs of BSDS300.
RELIEF_SCALE, CHANGE_SCALE = 2.0, 8 * 257.0
FLAT_RELIEF = 6.0  # where the boundary map is higher, boundaries stay where the sites of the working image have them


def outlined_sites(
    sites: NDArray[np.int32],
    relief: NDArray[np.floating[Any]],
    working_image: WorkingCopy,
    codes: NDArray[np.uint16],
    graph: SiteGraph,
    pairs: NDArray[np.int32],
    separation: NDArray[np.float64],
    *,
    held: NDArray[np.bool_] | None = None,
) -> NDArray[np.int32]:
    """The sites of a picture at its full size, with outlines as short as the evidence allows; -1 outside its mask.

    Where the picture was reduced, outlines are refined in steps of at most three, each time with what the picture shows
    at that size.

    Parameters
    ----------
    sites, relief
        The sites of the working image, and its boundary map.
    codes
        The picture at its full size.
    graph, pairs, separation
        As in `shorten_outlines`.
    held : optional
        The pixels of the picture that stay in their sites.
    """
    weight, step = np.exp(-relief / RELIEF_SCALE), working_image.step
    held = np.zeros(working_image.shape, bool) if held is None else held
    free = (relief < FLAT_RELIEF) & ~any_in_blocks(held, step)
    refined = shorten_outlines(sites, weight, graph, pairs, separation, is_free=free)
    while step > 1:
        refined, step = _enlarged(refined, step, step // 2, working_image.shape), step // 2
        reduced = codes if step == 1 else block_means(codes, step)
        change = np.empty(reduced.shape[:2], np.float32)
        steepest_change(reduced, change)
        weight, free = np.exp(-change / CHANGE_SCALE), ~any_in_blocks(held, step)
        refined = shorten_outlines(refined, weight, graph, pairs, separation, is_free=free)
    inside = working_image.original_inside
    return refined if inside is None else np.where(inside, refined, np.int32(-1))


def _enlarged(sites: NDArray[np.int32], step: int, new_step: int, shape: tuple[int, ...]) -> NDArray[np.int32]:
    """Sites of blocks of `step` pixels of a picture of this shape, for its blocks of `new_step`."""
    rows, columns = ((np.arange(0, length, new_step) + new_step // 2) // step for length in shape)
    return sites[np.ix_(np.minimum(rows, sites.shape[0] - 1), np.minimum(columns, sites.shape[1] - 1))]


class Window(NamedTuple):
    """The pixels around one, by their offsets, with the share of each in the length of an outline between them."""

    dy: NDArray[np.int64]
    dx: NDArray[np.int64]
    nearness: NDArray[np.float64]

    @classmethod
    def of(cls, radius: int) -> "Window":
        """The window of a radius in pixels."""
        dy, dx = np.mgrid[-radius : radius + 1, -radius : radius + 1]
        distance = np.hypot(dy, dx)
        within = (distance > 0) & (distance <= radius + 0.3)
        return cls(dy[within], dx[within], 1 / distance[within])


class SitePairs(NamedTuple):
    """Pairs of sites that touch or have a neighbor in common, those of each site together, every pair twice.

    Attributes
    ----------
    start : (n_sites + 1,)
        Where the pairs of each site begin.
    other : (n_pairs,)
        The other site.
    separation : (n_pairs,)
        The probability that they lie apart.
    is_edge : (n_pairs,)
        Whether they touch in the graph.
    n_contacts : (n_pairs,)
        How many pairs of touching pixels they have at present.
    """

    start: NDArray[np.int64]
    other: NDArray[np.int64]
    separation: NDArray[np.float64]
    is_edge: NDArray[np.bool_]
    n_contacts: NDArray[np.int64]


def nearby_pairs(graph: SiteGraph) -> NDArray[np.int32]:
    """Pairs of sites that touch or have a neighbor in common, (n_pairs, 2), sorted.

    Examples
    --------
    >>> nearby_pairs(SiteGraph(4, [[0, 1], [1, 2], [2, 3]])).tolist()
    [[0, 1], [0, 2], [1, 2], [1, 3], [2, 3]]
    """
    i, j = graph.edges.T
    touching = sparse.coo_array((np.ones(i.size, np.int32), (i, j)), (graph.n_sites, graph.n_sites)).tocsr()
    touching = touching + touching.T
    both = sparse.triu(touching + touching @ touching, k=1).tocoo()
    order = np.lexsort((both.col, both.row))
    return np.stack([both.row, both.col], axis=1)[order].astype(np.int32)


def shorten_outlines(
    sites: NDArray[np.int32],
    weight: NDArray[np.floating[Any]],
    graph: SiteGraph,
    pairs: NDArray[np.int32],
    separation: NDArray[np.float64],
    *,
    is_free: NDArray[np.bool_],
) -> NDArray[np.int32]:
    """Sites whose outlines are shorter: a local minimum of their expected weighted length, or nearly one.

    The length is the sum, over pixels within RADIUS of each other, of the product of their weights over their distance,
    times the probability that their sites lie apart. Every site stays connected, and the same sites touch, so that
    the graph is theirs, too.

    Parameters
    ----------
    sites : (H, W)
        The site of every pixel; -1 outside.
    weight : (H, W)
        How much the length of an outline counts at each pixel: less where there is evidence.
    graph : SiteGraph
        Which sites touch.
    pairs, separation
        `nearby_pairs(graph)`, and the probability that each lies apart.
    is_free : (H, W)
        Which pixels may be given to another site.
    """
    moved = np.ascontiguousarray(sites, dtype=np.int32).copy()
    lower, upper, pixels = boundary_pairs(moved)
    table, places = _site_pairs(graph, pairs, separation, lower, upper)
    at_boundary = pixels[:, table.separation[places] > SHOWN]
    waiting = np.zeros((2, moved.size), np.int64)
    first = np.unique(at_boundary)
    waiting[0, : first.size] = first
    shorten(
        moved,
        np.ascontiguousarray(weight, dtype=np.float32),
        is_free,
        table,
        Window.of(RADIUS),
        waiting,
        np.zeros(moved.size, bool),
        first.size,
        N_PASSES,
        np.zeros(MAX_SITES_AROUND, np.int64),
        np.zeros(MAX_SITES_AROUND),
    )
    return moved


def _site_pairs(
    graph: SiteGraph,
    pairs: NDArray[np.int32],
    separation: NDArray[np.float64],
    lower: NDArray[np.int32],
    upper: NDArray[np.int32],
) -> tuple[SitePairs, NDArray[np.int64]]:
    """The table of pairs, with the contacts of pixels in the sites `lower` and `upper`, and the places of these."""
    n = graph.n_sites
    first, other = np.concatenate([pairs, pairs[:, ::-1]]).astype(np.int64).T
    order = np.argsort(first * n + other)
    key = (first * n + other)[order]
    places = np.searchsorted(key, lower.astype(np.int64) * n + upper)
    back = np.searchsorted(key, upper.astype(np.int64) * n + lower)
    contacts = np.bincount(places, minlength=key.size) + np.bincount(back, minlength=key.size)
    edges = graph.edges.astype(np.int64)
    is_edge = np.isin(key, np.concatenate([edges @ [n, 1], edges @ [1, n]]))
    start = np.searchsorted(first[order], np.arange(n + 1))
    twice = np.concatenate([separation, separation])[order]
    return SitePairs(start, other[order], twice, is_edge, contacts), places
