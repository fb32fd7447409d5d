"""The sites of an image that is too large for memory, tile by tile, whatever the tiles are, and what is known of them.

The picture is divided into cells, and a site is the watershed basin of the lowest pixel of its cell, as in
`superpixels(kind="watershed")`. A tile is flooded together with a halo of whole cells around it, so that its pixels get
the site that they would get in the whole picture, numbered by its cell, and nothing has to be stitched. The boundary
network, too, sees all around a tile that its log-odds in the tile depend on.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sparse
from numpy.typing import NDArray

from spinseg.graph.edges import boundary_pairs
from spinseg.graph.site_graph import SiteGraph
from spinseg.image.boundary.log_odds import GRADIENT_SCALE
from spinseg.image.boundary.network import RADII, BoundaryNetwork, span_seen
from spinseg.image.contrast import Contrast, contrast_of_parts
from spinseg.image.features import Codebook, gradient_magnitude, site_histograms, site_sizes
from spinseg.image.picture import Picture
from spinseg.image.superpixels import RELIEF_SCALE, cells_per_axis, seeded_watershed
from spinseg.image.working import block_means
from spinseg.segmentation.large.files import Box

HALO_CELLS = 8  # around a tile; with 4, some pixels near borders got another site than in the whole picture
BASIN_WEIGHT = 0.01  # CIELAB units per pixel: below the gradients of any picture that is not flat
NETWORK_PIXELS_PER_CELL = 190  # as in photographs; where cells have four times as many, the network sees half the size
GRADIENT_REACH = int(np.ceil(4 * max(RELIEF_SCALE, GRADIENT_SCALE))) + 1  # pixels on each side that enter a gradient

Arrays = dict[str, NDArray[Any]]


class Tile(NamedTuple):
    """The pixels of a tile; with its halo; what the network sees for it; and with what gradients in the halo need."""

    own: Box
    padded: Box
    seen: Box
    read: Box


class Tiling(NamedTuple):
    """A picture of `shape`, (rows, columns), with `cells` along each axis, and square tiles of `side` pixels."""

    shape: tuple[int, int]
    cells: tuple[int, int]
    side: int

    @classmethod
    def of(cls, shape: tuple[int, int], n_sites: int, side: int) -> "Tiling":
        """A tiling with about `n_sites` cells."""
        counts = cells_per_axis(shape, n_sites)
        return cls(shape, (counts[0], counts[1]), side)

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return self.cells[0] * self.cells[1]

    @property
    def pixels_per_cell(self) -> float:
        """Mean number of pixels of a cell."""
        return self.shape[0] * self.shape[1] / self.n_cells

    @property
    def network_step(self) -> int:
        """Pixels along each side of the blocks whose means the network sees."""
        return max(1, round((self.pixels_per_cell / NETWORK_PIXELS_PER_CELL) ** 0.5))

    def tiles(self) -> Iterator[Tile]:
        """The tiles, row by row."""
        for top in range(0, self.shape[0], self.side):
            for left in range(0, self.shape[1], self.side):
                spans = [self._spans(axis, start) for axis, start in enumerate((top, left))]
                yield Tile(*((down, across) for down, across in zip(*spans, strict=True)))

    def _spans(self, axis: int, start: int) -> tuple[slice, slice, slice, slice]:
        """The pixels of a tile along an axis, as in `Tile`."""
        length, count = self.shape[axis], self.cells[axis]
        stop = min(start + self.side, length)
        first = max(start * count // length - HALO_CELLS, 0)
        last = min((stop - 1) * count // length + HALO_CELLS, count - 1)
        padded = slice(-(-first * length // count), -(-(last + 1) * length // count))
        seen = span_seen(slice(start, stop + 1), length, self.network_step)  # a boundary has a pixel on its other side
        read = slice(
            max(min(padded.start - GRADIENT_REACH, seen.start), 0),
            min(max(padded.stop + GRADIENT_REACH, seen.stop), length),
        )
        return slice(start, stop), padded, seen, read

    def cells_of(self, box: Box) -> NDArray[np.int64]:
        """The cell of every pixel of a box."""
        down, across = (coordinates.astype(np.int64) for coordinates in self._cell_coordinates(box))
        return down[:, None] * self.cells[1] + across

    def basins(self, box: Box) -> NDArray[np.float64]:
        """What is added to the relief of a box: a shallow paraboloid in each cell, and a small hash of the position.

        They make heights distinct: the order in which equal ones are flooded would depend on the rest of the tile.
        """
        down, across = (np.square(coordinates % 1 - 0.5) for coordinates in self._cell_coordinates(box))
        rows, columns = (np.arange(span.start, span.stop, dtype=np.uint64) for span in box)
        hashed = (rows[:, None] * np.uint64(0x9E3779B97F4A7C15)) ^ (columns * np.uint64(0xC2B2AE3D27D4EB4F))
        hashed = (hashed ^ (hashed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
        return BASIN_WEIGHT * (down[:, None] + across + 1e-3 * (hashed >> np.uint64(40)) / 2**24)

    def _cell_coordinates(self, box: Box) -> Iterator[NDArray[np.float64]]:
        """The coordinates of the pixels of a box along each axis, in cells."""
        for span, count, length in zip(box, self.cells, self.shape, strict=True):
            yield np.arange(span.start, span.stop) * count / length


def tile_sites(picture: Picture, tile: Tile, tiling: Tiling, codebook: Codebook) -> tuple[NDArray[np.int32], Arrays]:
    """The site of every pixel of a tile, numbered by cells, and the tile's sums over sites and edges.

    `picture` shows the box `tile.read`.
    """
    within = relative_to(tile.padded, tile.read)
    cells, markers = np.unique(tiling.cells_of(tile.padded), return_inverse=True)
    relief = gradient_magnitude(picture.colors, RELIEF_SCALE)[within] + tiling.basins(tile.padded)
    padded = cells.astype(np.int32)[seeded_watershed(relief, markers.reshape(relief.shape))]
    own = relative_to(tile.own, tile.padded)
    sites = padded[own]
    maps = [gradient_magnitude(picture.colors, GRADIENT_SCALE)[within][_and_one_more(own)]]
    if picture.n_channels == 3:
        maps += list(_network_log_odds(picture, tile, tiling.network_step))
    own_picture = Picture(picture.codes[relative_to(tile.own, tile.read)], channel_kind=picture.channel_kind)
    return sites, _site_sums(own_picture, sites, tile, codebook) | _edge_sums(padded, maps, own)


def _network_log_odds(picture: Picture, tile: Tile, step: int) -> NDArray[np.float32]:
    """The network's log-odds of a tile and of the pixels after it, (radii, rows, columns)."""
    seen = picture.codes[relative_to(tile.seen, tile.read)]
    log_odds = BoundaryNetwork.fitted().log_odds(Picture(seen if step == 1 else block_means(seen, step)).values)
    whole = log_odds.repeat(step, axis=1).repeat(step, axis=2)[:, : seen.shape[0], : seen.shape[1]]
    return whole[:, *_and_one_more(relative_to(tile.own, tile.seen))]


def _and_one_more(box: Box) -> Box:
    """A box with one more row and column, which are cut off where the picture ends."""
    down, across = (slice(span.start, span.stop + 1) for span in box)
    return down, across


def relative_to(inner: Box, outer: Box) -> Box:
    """A box in the coordinates of one that contains it."""
    spans = (slice(i.start - o.start, i.stop - o.start) for i, o in zip(inner, outer, strict=True))
    return next(spans), next(spans)


def _site_sums(picture: Picture, sites: NDArray[np.int32], tile: Tile, codebook: Codebook) -> Arrays:
    """For each site of a tile: the number of pixels, sums of colors, positions and their squares, and color words."""
    numbers, local = np.unique(sites, return_inverse=True)
    local = local.reshape(sites.shape)
    rows, columns = (np.arange(span.start, span.stop, dtype=np.float64) for span in tile.own)
    values = [*np.moveaxis(picture.colors, -1, 0).astype(np.float64), *np.broadcast_arrays(rows[:, None], columns)]
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


def _edge_sums(padded: NDArray[np.int32], maps: Sequence[NDArray[np.float32]], own: Box) -> Arrays:
    """For each pair of touching sites: the length of their boundary, and the sums of maps along it.

    A pair of pixels belongs to the tile of its first pixel; the second may lie just outside, as the maps do.
    """
    rows, columns = (span.stop - span.start for span in own)
    part = np.ascontiguousarray(padded[_and_one_more(own)])
    lower, upper, pixels = boundary_pairs(part)
    down, across = np.divmod(pixels[0], part.shape[1])
    inside = (down < rows) & (across < columns)
    edges, which = unique_pairs(np.stack([lower[inside], upper[inside]], axis=1))
    sums = [np.bincount(which, values.ravel()[pixels[:, inside]].max(axis=0), len(edges)) for values in maps]
    return {"edges": edges, "length": np.bincount(which, minlength=len(edges)), "along": np.stack(sums, axis=1)}


def unique_pairs(pairs: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The distinct pairs in increasing order, and the index of each pair among them."""
    stride = int(pairs.max(initial=0)) + 1
    keys, which = np.unique(pairs.astype(np.int64) @ [stride, 1], return_inverse=True)
    return np.stack(np.divmod(keys, stride), axis=1).astype(np.int32), which.ravel()


class SiteStatistics(NamedTuple):
    """Sums over all tiles: for the n sites, which are the cells that have pixels, and for the edges between them."""

    site_of: NDArray[np.int32]  # (n_cells,): the site of each cell, -1 where it has no pixel
    pixels: NDArray[np.int64]
    means: NDArray[np.float64]  # (n, n_channels + 2): colors, row and column
    squares: NDArray[np.float64]  # means of the squares of the same
    words: sparse.csr_array
    graph: SiteGraph  # weighted by length
    gradient: NDArray[np.float64]  # mean along each edge
    network: NDArray[np.float64] | None  # (n_edges, radii): means of its log-odds along each edge, for colors

    @property
    def is_color(self) -> bool:
        """Whether the colors are CIELAB."""
        return self.network is not None

    @property
    def contrast(self) -> Contrast:
        """The contrast of the sites; distances of colors run to 100."""
        means, squares = (values[:, :-2] for values in (self.means / 100, self.squares / 100**2))
        return contrast_of_parts(means, np.maximum(squares - means**2, 0), self.pixels)


def merge_tiles(tiles: Iterable[Arrays], n_cells: int, n_words: int) -> SiteStatistics:
    """Add up what `tile_sites` gave for all tiles."""
    pixels, sums = np.zeros(n_cells, np.int64), np.zeros((n_cells, 0))
    edge_parts: list[tuple[NDArray[Any], ...]] = []
    word_parts: list[tuple[NDArray[Any], ...]] = []
    for tile in tiles:
        sums = np.zeros((n_cells, tile["sums"].shape[1])) if not sums.shape[1] else sums
        pixels[tile["sites"]] += tile["pixels"]  # a tile has each of its sites once
        sums[tile["sites"]] += tile["sums"]
        word_parts.append((tile["word_site"], tile["word"], tile["word_count"]))
        edge_parts.append((tile["edges"], tile["length"], tile["along"]))
    used = pixels > 0
    site_of = np.where(used, np.cumsum(used) - 1, -1).astype(np.int32)
    n_sites = int(used.sum())
    rows, columns, counts = (np.concatenate(column) for column in zip(*word_parts, strict=True))
    words = sparse.coo_array((counts, (site_of[rows], columns)), shape=(n_sites, n_words)).tocsr()
    edges, length, along = (np.concatenate(column) for column in zip(*edge_parts, strict=True))
    edges = site_of[edges]
    kept = (edges >= 0).all(axis=1)  # a cell may have pixels in the halo of a tile only
    edges, which = unique_pairs(edges[kept])
    lengths = np.bincount(which, length[kept], len(edges))
    along = np.stack([np.bincount(which, column, len(edges)) for column in along[kept].T], axis=1) / lengths[:, None]
    means, squares = np.split(sums[used] / pixels[used, None], 2, axis=1)
    return SiteStatistics(
        site_of,
        pixels[used],
        means,
        np.maximum(squares, means**2),
        words,
        SiteGraph(n_sites, edges, lengths),
        along[:, 0],
        along[:, 1:] if along.shape[1] == 1 + len(RADII) else None,
    )
