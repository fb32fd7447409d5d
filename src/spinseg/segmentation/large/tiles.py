"""The tiles of an image that is too large for memory: how each is segmented as a small image is, and kept in a file.

A tile has a core, the pixels whose sites it gives, and is segmented in a window that shows more: a margin around the
core, so that what lies beyond has little influence. All windows have the size of a photograph where the image does.
"""

import zlib
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from math import isqrt
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import find_objects

from spinseg._run.atomic import atomic_write, print_warning, printable
from spinseg.graph.adjacency import region_adjacency
from spinseg.image.features import site_sizes
from spinseg.image.intensity import MAX_CODE
from spinseg.image.picture import Picture
from spinseg.image.working import WorkingCopy, block_means
from spinseg.sampler.chains import Chains
from spinseg.sampler.convergence import separation_of_chains
from spinseg.segmentation.large.files import Box
from spinseg.segmentation.presets.photo import REFERENCE_PIXELS, Photo
from spinseg.segmentation.problem import Problem, posed
from spinseg.segmentation.schedule import Schedule, sample_posterior

MARGIN = 48  # analyzed pixels on each side of a core: three to four sites of a photograph
WINDOW = isqrt(REFERENCE_PIXELS)  # analyzed pixels of the sides of a window
MAX_LISTED_TILES = 10  # in a warning about damaged tiles
MAX_SITES = 200_000  # by default, of a photograph; an image with more pixels is reduced

Arrays = dict[str, NDArray[Any]]


class Tile(NamedTuple):
    """The number of a tile, from 0 on, its own pixels, and those that it is segmented with."""

    number: int
    core: Box
    window: Box


class Tiling(NamedTuple):
    """An image of `shape`, (rows, columns), in square cores of `side` pixels, reduced by `step` along each axis."""

    shape: tuple[int, int]
    step: int
    side: int

    @classmethod
    def of(cls, shape: tuple[int, int], preset: Photo, tile: int | None = None) -> "Tiling":
        """The tiling for the number of sites that the preset asks for; one tile where the image is small."""
        n_pixels = shape[0] * shape[1]
        if tile is None and preset.max_pixels and n_pixels <= preset.max_pixels:
            return cls(shape, 1, max(shape))
        step = max(1, round((n_pixels / preset.pixels_per_site / (preset.n_sites or MAX_SITES)) ** 0.5))
        return cls(shape, step, step * (WINDOW - 2 * MARGIN if tile is None else -(-tile // step)))

    def tiles(self) -> Iterator[Tile]:
        """The tiles, row by row."""
        starts = product(*(range(0, length, self.side) for length in self.shape))
        for number, (top, left) in enumerate(starts):
            rows, columns = self._spans(0, top), self._spans(1, left)
            yield Tile(number, (rows[0], columns[0]), (rows[1], columns[1]))

    @property
    def grid(self) -> tuple[int, int]:
        """The number of tiles along each axis."""
        return -(-self.shape[0] // self.side), -(-self.shape[1] // self.side)

    def _spans(self, axis: int, start: int) -> tuple[slice, slice]:
        """The core and the window along an axis; near an end of the image the core is not in the middle."""
        length, margin = self.shape[axis], MARGIN * self.step
        size = min(self.side + 2 * margin, length)
        first = max(min(start - margin, (length - size) // self.step * self.step), 0)
        last = length if first + size + self.step > length else first + size
        return slice(start, min(start + self.side, length)), slice(first, last)


def relative_to(inner: Box, outer: Box, step: int = 1) -> Box:
    """A box in the coordinates of one that contains it, whose pixels are reduced by `step`."""
    spans = (
        slice((i.start - o.start) // step, -(-(i.stop - o.start) // step)) for i, o in zip(inner, outer, strict=True)
    )
    return next(spans), next(spans)


def segment_tile(
    picture: Picture, tile: Tile, tiling: Tiling, preset: Photo, schedule: Schedule, seed: int, like: Picture | None
) -> tuple[NDArray[np.int32], Arrays]:
    """Segment a window, which `picture` shows; return the sites of the core, from 0 on, and what is known of them.

    Intensities are stretched by those of `like`, which shows parts of the whole image, if it is given. `seed` is that
    of the run. The first tile has it, too, so that an image of one tile is segmented as `segment` does.
    """
    codes = picture.codes if tiling.step == 1 else block_means(picture.codes, tiling.step)
    reduced = Picture(codes, channel_kind=picture.channel_kind)
    if preset.n_sites is not None:
        share = np.prod(picture.shape) / np.prod(tiling.shape)
        preset = replace(preset, n_sites=max(1, round(preset.n_sites * share)))
    copy = WorkingCopy(reduced, None, tiling.step, None, picture.shape)
    problem = posed(picture, preset, preset.analyzed(copy, like), {})
    own_seed = seed if tile.number == 0 else int(np.random.default_rng([seed, tile.number]).integers(2**63))
    how: dict[str, Any] = {"workers": 1, "progress": False}
    drawn = sample_posterior(problem.model, preset, schedule, own_seed, site_sizes(problem.sites), **how)
    within = relative_to(tile.core, tile.window)
    numbers, flat = np.unique(problem.outlined_sites(drawn, drawn.best_labels)[within], return_inverse=True)
    sites = flat.reshape([span.stop - span.start for span in within]).astype(np.int32)
    found = _of_sites(picture.codes[within], sites, tile) | _of_draws(drawn, problem, numbers)
    graph = region_adjacency(sites)
    apart = separation_of_chains(drawn, numbers[graph.edges])
    return sites, found | {"edges": graph.edges, "length": graph.length, "apart": apart.astype(np.float32)}


def _of_draws(drawn: Chains, problem: Problem, numbers: NDArray[np.int32]) -> Arrays:
    """The draws of all sites of a window, which are `sites`; `numbers` are those of the sites of the core."""
    edges = problem.model.graph.edges
    joined = [[np.count_nonzero(draw[edges[:, 0]] == draw[edges[:, 1]]) for draw in chain] for chain in drawn.labels]
    return {
        "sites": problem.sites.astype(np.uint16 if problem.sites.max() < 2**16 else np.int32),
        "numbers": numbers.astype(np.int32),
        "draws": drawn.labels.astype(np.uint16 if drawn.labels.max() < 2**16 else np.int32),
        "n_clusters": drawn.n_clusters,
        "n_joined": np.array(joined, np.int64).reshape(drawn.n_clusters.shape),
        "n_edges": np.array([len(edges)]),
        "n_sweeps": np.array([drawn.n_sweeps]),
    }


def _of_sites(codes: NDArray[np.uint16], sites: NDArray[np.int32], tile: Tile) -> Arrays:
    """For each site of a core: pixels, sums of intensities and of their squares, sums of positions, and its box."""
    start = np.tile([span.start for span in tile.core], 2)
    rows, columns = (np.arange(span.start, span.stop, dtype=np.float64) for span in tile.core)
    values = [channel / MAX_CODE for channel in np.moveaxis(codes, -1, 0)]
    values += [np.square(value) for value in values] + list(np.broadcast_arrays(rows[:, None], columns))
    sums = [np.bincount(sites.ravel(), value.ravel()) for value in values]
    boxes = [[*(s.start for s in box), *(s.stop for s in box)] for box in find_objects(sites + 1)]
    return {"pixels": site_sizes(sites), "sums": np.stack(sums, axis=1), "boxes": np.array(boxes) + start}


def missing_tiles(folder: Path, tiling: Tiling, sites: Any) -> list[Tile]:
    """The tiles that are unfinished or damaged; `sites` is the Zarr array of the sites."""
    missing, damaged = [], []
    for tile in tiling.tiles():
        try:
            stored = read_tile(folder, tile.number)
            if int(stored["checksum"]) == _checksum(sites[tile.core]):
                continue
            damaged.append(tile.number)
        except FileNotFoundError:
            pass
        except Exception:  # decoders raise nearly anything for a damaged file
            damaged.append(tile.number)
        missing.append(tile)
    if damaged:
        listed = ", ".join(map(str, damaged[:MAX_LISTED_TILES])) + (", ..." if damaged[MAX_LISTED_TILES:] else "")
        print_warning(f"damaged tiles in {printable(folder)} are made again: {listed}")
    return missing


def _tile_path(folder: Path, index: int) -> Path:
    """The file of what is known of a tile, whose existence says that the tile is finished."""
    return folder / "tiles" / f"{index:06d}.npz"


def write_tile(folder: Path, index: int, sites: NDArray[np.int64], found: Arrays) -> None:
    """Write what is known of a tile, with a checksum of its sites, which must be on the disk by then."""
    content: Any = {"checksum": _checksum(sites), **found}
    atomic_write(_tile_path(folder, index), lambda file: np.savez_compressed(file, **content))


def read_tile(folder: Path, index: int) -> Arrays:
    """The content of the file of a tile."""
    with _tile_path(folder, index).open("rb") as file, np.load(file) as stored:
        return {name: stored[name] for name in stored.files}


def _checksum(sites: NDArray[np.int64]) -> int:
    return zlib.crc32(np.ascontiguousarray(sites).data)
