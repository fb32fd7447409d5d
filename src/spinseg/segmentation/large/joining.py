"""One graph of the sites of all tiles, with the probability of a boundary between each two that touch.

The sites of different tiles are not the same: each tile has made its own. Where a site x of one tile touches a site y
of the next, both windows show the place. In the window of x's tile, y is the site that has most of its pixels, and the
draws of that tile say how often x and that one lie apart; so do those of y's tile. The probability is the mean of both.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sparse
from numpy.typing import NDArray

from spinseg.graph.merging import merge_heights
from spinseg.graph.site_graph import SiteGraph
from spinseg.image.contrast import Contrast, contrast_of_parts
from spinseg.partition.numbering import largest_first
from spinseg.sampler.convergence import Quantity, quantity_of, separation_of_draws
from spinseg.segmentation.large.tiles import Arrays, Tile, Tiling, relative_to
from spinseg.segmentation.presets.photo import details_near

MIN_PROBABILITY = 0.5  # of a boundary between regions, on average along it: docs/howto/large.md
NUMBERS_OF_TILE = 2**32  # a site is stored as NUMBERS_OF_TILE * index of its tile + its number there

ReadTile = Callable[[int], Arrays]


class LargeGraph(NamedTuple):
    """All sites of an image, and how often draws separate those that touch.

    `first` is the number of the first site of each tile. `boxes`, (n_sites, 4), has the first row and column of each
    site and those after the last; `means`, (n_sites, n_channels), its intensities from 0 to 1, and `squares` those of
    their squares; `places`, (n_sites, 2), its mean row and column. `apart`, (chain, level of detail, edge), is how
    often the chain of a level separated the two sites of an edge. `quantities` are sums over tiles after each sweep.
    """

    graph: SiteGraph  # weighted by length
    apart: NDArray[np.float32]
    first: NDArray[np.int64]
    pixels: NDArray[np.int64]
    means: NDArray[np.float64]
    squares: NDArray[np.float64]
    places: NDArray[np.float64]
    boxes: NDArray[np.int64]
    quantities: dict[str, Quantity]
    n_draws: int  # of each chain that `quantities` are of
    n_sweeps: int  # of the longest chain

    @property
    def contrast(self) -> Contrast:
        """The contrast of the sites."""
        return contrast_of_parts(self.means, np.maximum(self.squares - self.means**2, 0), self.pixels)

    def partition(self, detail: float, chain: int | None = None) -> NDArray[np.int32]:
        """The region of each site at a level of detail, the largest first, by all chains or one.

        Regions merge while the probability of the boundary between two of them, the mean along it over draws of levels
        near `detail`, is at most MIN_PROBABILITY; the least probable boundary is always the first to go.
        """
        near = self.apart[:, details_near(detail, self.apart.shape[1])]
        near = near if chain is None else near[chain : chain + 1]
        heights = merge_heights(self.graph, near.mean(axis=(0, 1), dtype=np.float64))
        return largest_first(self.graph.components(heights <= MIN_PROBABILITY), self.pixels)

    def sites(self, stored: NDArray[np.int64]) -> NDArray[np.int64]:
        """The numbers of sites as they are stored in sites.zarr, among those of all tiles."""
        tile, number = np.divmod(stored, NUMBERS_OF_TILE)
        return self.first[tile] + number


def join_tiles(tiling: Tiling, read_tile: ReadTile, stored_sites: Any) -> LargeGraph:
    """Join the sites of all tiles; no more than three tiles are in memory at a time. `stored_sites` is sites.zarr."""
    tiles = list(tiling.tiles())
    columns: dict[str, list[NDArray[Any]]] = {name: [] for name in ("pixels", "sums", "boxes", "n_sweeps", "n_edges")}
    edges, lengths, apart, traces = [], [], [], []
    first = np.zeros(len(tiles) + 1, np.int64)
    for tile in tiles:
        found = read_tile(tile.number)
        first[tile.number + 1] = first[tile.number] + found["pixels"].size
        for name, column in columns.items():
            column.append(found[name])
        edges.append(found["edges"] + first[tile.number])
        lengths.append(found["length"])
        apart.append(found["apart"])
        traces.append((found["n_clusters"], found["n_joined"]))
    for tile, other in seams(tiling, tiles):
        between, length, probability = seam_edges(tiling, tile, other, read_tile, stored_sites)
        edges.append(between + first[[tile.number, other.number]])
        lengths.append(length)
        apart.append(probability)
    all_edges = np.concatenate(edges)
    order = np.lexsort(all_edges.T[::-1])
    graph = SiteGraph(int(first[-1]), all_edges[order], np.concatenate(lengths)[order])
    joined = {name: np.concatenate(column) for name, column in columns.items()}
    pixels, sums = joined["pixels"], joined["sums"] / joined["pixels"][:, None]
    means, squares, places = np.split(sums, [(sums.shape[1] - 2) // 2, sums.shape[1] - 2], axis=1)
    of_edges = np.concatenate(apart, axis=-1)[..., order]
    n_draws, n_levels = min(clusters.shape[1] for clusters, _ in traces), of_edges.shape[1]
    quantities = _quantities(traces, n_draws, int(joined["n_edges"].sum()), n_levels)
    of_sites = (first[:-1], pixels, means, squares, places, joined["boxes"])
    return LargeGraph(graph, of_edges, *of_sites, quantities, n_draws, int(joined["n_sweeps"].max()))


def seams(tiling: Tiling, tiles: list[Tile]) -> Iterator[tuple[Tile, Tile]]:
    """Each tile with its neighbor to the right, and with the one below."""
    n_columns = tiling.grid[1]
    for tile in tiles:
        if (tile.number + 1) % n_columns:
            yield tile, tiles[tile.number + 1]
        if tile.number + n_columns < len(tiles):
            yield tile, tiles[tile.number + n_columns]


def seam_edges(
    tiling: Tiling, tile: Tile, other: Tile, read_tile: ReadTile, stored_sites: Any
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]:
    """Pairs of sites of two tiles that touch, each numbered in its own tile; lengths; and how often they lie apart.

    The last, (chain, level of detail, pair), is as in `LargeGraph`.
    """
    here, there = read_tile(tile.number), read_tile(other.number)
    axis = int(tile.core[0] == other.core[0])  # across which they touch
    at, along = other.core[axis].start, tile.core[1 - axis]
    strip = (along, slice(at - 1, at + 1)) if axis else (slice(at - 1, at + 1), along)
    numbers = np.moveaxis(stored_sites[strip] % NUMBERS_OF_TILE, axis, 0).reshape(2, -1)
    pairs, lengths = np.unique(numbers.T, axis=0, return_counts=True)
    shared = tuple(
        slice(max(a.start, b.start), min(a.stop, b.stop)) for a, b in zip(tile.window, other.window, strict=True)
    )
    shown = [
        found["sites"][relative_to((shared[0], shared[1]), each.window, tiling.step)].ravel()
        for found, each in ((here, tile), (there, other))
    ]
    own = [found["numbers"][column] for found, column in ((here, pairs[:, 0]), (there, pairs[:, 1]))]
    seen_here, seen_there = most_shared(shown[1], shown[0], own[1]), most_shared(shown[0], shown[1], own[0])
    n_levels = here["apart"].shape[1]
    views = [
        separation_of_draws(here["draws"], np.stack([own[0], seen_here], axis=1), n_levels),
        separation_of_draws(there["draws"], np.stack([seen_there, own[1]], axis=1), n_levels),
    ]
    return pairs, lengths, np.mean(views, axis=0, dtype=np.float32)


def most_shared(sites: NDArray[Any], others: NDArray[Any], wanted: NDArray[np.integer]) -> NDArray[np.int64]:
    """For each of the `wanted` sites the other site with which it shares most pixels, the first of these."""
    shape = (max(int(sites.max()), int(wanted.max())) + 1, int(others.max()) + 1)
    shared = sparse.coo_array((np.ones(sites.size, np.int32), (sites, others)), shape).tocsr()
    return np.asarray(shared.argmax(axis=1)).ravel()[wanted]


def _quantities(
    traces: list[tuple[NDArray[Any], NDArray[Any]]], n_draws: int, n_edges: int, n_components: int
) -> dict[str, Quantity]:
    """The number of clusters in all windows, and the share of edges within clusters, in the last draws of each."""
    latest = [[trace[:, trace.shape[1] - n_draws :] for trace in column] for column in zip(*traces, strict=True)]
    clusters, joined = (np.sum(column, axis=0) for column in latest)
    found = {"n_clusters": clusters, "edge_agreement": joined / max(n_edges, 1)}
    return {name: quantity_of(name, trace, 0.0, n_components) for name, trace in found.items()}
