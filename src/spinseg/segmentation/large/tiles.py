"""Sites of a picture that is too large for memory, tile by tile: the same wherever the borders of the tiles run.

The picture is cut into cells, one for each site, and a site is what floods from the lowest pixel of its cell, as in
`superpixels(kind="watershed")`. A tile is flooded with some whole cells around it, so that its pixels get the site that
they would get in the whole picture, numbered by its cell; nothing has to be stitched.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sparse
from numpy.typing import NDArray

from spinseg.image.adjacency import RegionAdjacency, pairs_across
from spinseg.image.boundary.log_odds import SLOPE_SCALE
from spinseg.image.features import Codebook, gradient, site_histograms, site_sizes
from spinseg.image.picture import Picture
from spinseg.image.superpixels import RELIEF_SCALE, flooded, grid_counts
from spinseg.model.graph import SiteGraph

HALO = 8  # cells around a tile; with 4, some pixels near borders got another site than in the whole picture
BOWL = 0.01  # units of CIELAB a pixel: less than what any picture but a flat one has
REACH = int(np.ceil(4 * max(RELIEF_SCALE, SLOPE_SCALE))) + 1  # pixels that a gradient looks at

Box = tuple[slice, slice]
Arrays = dict[str, NDArray[Any]]


class Tile(NamedTuple):
    """A part of a picture: its own pixels, those it is flooded with, and those that must be read for it."""

    own: Box
    wide: Box
    read: Box


class Tiling(NamedTuple):
    """A picture of `shape`, (rows, columns), cut into `cells` along each axis, and into squares of `side` pixels."""

    shape: tuple[int, int]
    cells: tuple[int, int]
    side: int

    @classmethod
    def of(cls, shape: tuple[int, int], n_sites: int, side: int) -> "Tiling":
        """With about `n_sites` cells."""
        counts = grid_counts(shape, n_sites)
        return cls(shape, (counts[0], counts[1]), side)

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return self.cells[0] * self.cells[1]

    def tiles(self) -> Iterator[Tile]:
        """Row by row."""
        for top in range(0, self.shape[0], self.side):
            for left in range(0, self.shape[1], self.side):
                spans = [self._spans(axis, start) for axis, start in enumerate((top, left))]
                yield Tile(*((down, across) for down, across in zip(*spans, strict=True)))

    def _spans(self, axis: int, start: int) -> tuple[slice, slice, slice]:
        """A tile's own pixels along an axis, with HALO whole cells on both sides, and with REACH more pixels."""
        length, count = self.shape[axis], self.cells[axis]
        stop = min(start + self.side, length)
        first = max(start * count // length - HALO, 0)
        last = min((stop - 1) * count // length + HALO, count - 1)
        wide = slice(-(-first * length // count), -(-(last + 1) * length // count))
        return slice(start, stop), wide, slice(max(wide.start - REACH, 0), min(wide.stop + REACH, length))

    def cells_of(self, box: Box) -> NDArray[np.int64]:
        """The cell of every pixel of a box."""
        down, across = (places.astype(np.int64) for places in self._places(box))
        return down[:, None] * self.cells[1] + across

    def bowls(self, box: Box) -> NDArray[np.float64]:
        """What is added to a relief: a shallow bowl in each cell, and a little that hardly two pixels share.

        In which order pixels of one height are flooded would depend on what else is flooded.
        """
        down, across = (np.square(places % 1 - 0.5) for places in self._places(box))
        rows, columns = (np.arange(span.start, span.stop, dtype=np.uint64) for span in box)
        mixed = (rows[:, None] * np.uint64(0x9E3779B97F4A7C15)) ^ (columns * np.uint64(0xC2B2AE3D27D4EB4F))
        mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
        return BOWL * (down[:, None] + across + 1e-3 * (mixed >> np.uint64(40)) / 2**24)

    def _places(self, box: Box) -> Iterator[NDArray[np.float64]]:
        """Where the pixels of a box lie along each axis, counted in cells."""
        for span, count, length in zip(box, self.cells, self.shape, strict=True):
            yield np.arange(span.start, span.stop) * count / length


def tile_sites(picture: Picture, tile: Tile, tiling: Tiling, codebook: Codebook) -> tuple[NDArray[np.int32], Arrays]:
    """The site of every pixel of a tile, by its cell, and what the tile adds to what is known of sites and edges.

    `picture` is what the tile has to read.
    """
    within = _inside(tile.wide, tile.read)
    cells, place = np.unique(tiling.cells_of(tile.wide), return_inverse=True)
    relief = gradient(picture.colours, RELIEF_SCALE)[within] + tiling.bowls(tile.wide)
    wide = cells.astype(np.int32)[flooded(relief, place.reshape(relief.shape))]
    own = _inside(tile.own, tile.wide)
    sites = wide[own]
    slope = gradient(picture.colours, SLOPE_SCALE)[within]
    seen = Picture(picture.codes[_inside(tile.own, tile.read)])
    return sites, _shown(seen, sites, tile, codebook) | _edges(wide, slope, own)


def _inside(inner: Box, outer: Box) -> Box:
    """A box as it lies within another."""
    spans = (slice(i.start - o.start, i.stop - o.start) for i, o in zip(inner, outer, strict=True))
    return next(spans), next(spans)


def _shown(picture: Picture, sites: NDArray[np.int32], tile: Tile, codebook: Codebook) -> Arrays:
    """Of each site in a tile its pixels, the sums of colours and places and of their squares, and its words."""
    numbers, local = np.unique(sites, return_inverse=True)
    local = local.reshape(sites.shape)
    rows, columns = (np.arange(span.start, span.stop, dtype=np.float64) for span in tile.own)
    values = [*np.moveaxis(picture.colours, -1, 0).astype(np.float64), *np.broadcast_arrays(rows[:, None], columns)]
    sums = [np.bincount(local.ravel(), (value**power).ravel(), numbers.size) for power in (1, 2) for value in values]
    words = site_histograms(codebook.words(picture), local, len(codebook)).tocoo()
    return {
        "sites": numbers,
        "pixels": site_sizes(local),
        "sums": np.stack(sums, axis=1),
        "word_site": numbers[words.row],
        "word": words.col.astype(np.int32),
        "word_count": words.data,
    }


def _edges(wide: NDArray[np.int32], slope: NDArray[np.float32], own: Box) -> Arrays:
    """Of each pair of sites the length of their boundary, and the sum of slopes along it.

    A pair of pixels belongs to the tile that its first is in; the second may lie just beyond.
    """
    rows, columns = (span.stop - span.start for span in own)
    more = tuple(slice(span.start, span.stop + 1) for span in own)  # where the picture ends there is no more
    part = np.ascontiguousarray(wide[more])
    lower, upper, places = pairs_across(part)
    down, across = np.divmod(places[0], part.shape[1])
    mine = (down < rows) & (across < columns)
    largest = slope[more].ravel()[places[:, mine]].max(axis=0)
    ends, which = _once(np.stack([lower[mine], upper[mine]], axis=1))
    return {
        "ends": ends,
        "length": np.bincount(which, minlength=len(ends)),
        "slope": np.bincount(which, largest, len(ends)),
    }


def _once(pairs: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Different pairs in increasing order, and which of them each one is."""
    stride = int(pairs.max(initial=0)) + 1
    keys, which = np.unique(pairs.astype(np.int64) @ [stride, 1], return_inverse=True)
    return np.stack(np.divmod(keys, stride), axis=1).astype(np.int32), which.ravel()


class Gathered(NamedTuple):
    """What all tiles together know: of n sites, those cells that have pixels, and of the edges between them."""

    site_of: NDArray[np.int32]  # (n_cells,): the site of each cell, -1 where it has no pixel
    pixels: NDArray[np.int64]
    means: NDArray[np.float64]  # (n, n_channels + 2): colours, row and column
    squares: NDArray[np.float64]
    words: sparse.csr_array
    adjacency: RegionAdjacency
    slope: NDArray[np.float64]  # mean along each edge


def gathered(parts: Iterable[Mapping[str, NDArray[Any]]], n_cells: int, n_words: int) -> Gathered:
    """The parts of all tiles, added up."""
    pixels, sums = np.zeros(n_cells, np.int64), np.zeros((n_cells, 0))
    edges: list[tuple[NDArray[Any], ...]] = []
    counts: list[tuple[NDArray[Any], ...]] = []
    for part in parts:
        sums = np.zeros((n_cells, part["sums"].shape[1])) if not sums.shape[1] else sums
        pixels[part["sites"]] += part["pixels"]  # a tile has each of its sites once
        sums[part["sites"]] += part["sums"]
        counts.append((part["word_site"], part["word"], part["word_count"]))
        edges.append((part["ends"], part["length"], part["slope"]))
    there = pixels > 0
    site_of = np.where(there, np.cumsum(there) - 1, -1).astype(np.int32)
    n_sites = int(there.sum())
    rows, columns, number = (np.concatenate(column) for column in zip(*counts, strict=True))
    words = sparse.coo_array((number, (site_of[rows], columns)), shape=(n_sites, n_words)).tocsr()
    ends, length, slope = (np.concatenate(column) for column in zip(*edges, strict=True))
    ends = site_of[ends]
    kept = (ends >= 0).all(axis=1)  # a cell may be flooded beyond its tile alone
    ends, which = _once(ends[kept])
    lengths = np.bincount(which, length[kept], len(ends))
    means, squares = np.split(sums[there] / pixels[there, None], 2, axis=1)
    return Gathered(
        site_of,
        pixels[there],
        means,
        np.maximum(squares, means**2),
        words,
        RegionAdjacency(SiteGraph(n_sites, ends), lengths.astype(np.int32), None),
        np.bincount(which, slope[kept], len(ends)) / lengths,
    )
