"""`LargeSegmentation`, what `segment_large` returns, and the images that it consists of."""

import json
import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from spinseg._run.progress import counting
from spinseg._validation import invalid
from spinseg.graph.adjacency import edge_index, region_adjacency
from spinseg.graph.site_graph import SiteGraph
from spinseg.image.io import MAX_PIXELS, type_of_labels, write_png, write_tif_in_parts
from spinseg.image.layout import Reading, in_pixels
from spinseg.image.picture import Picture
from spinseg.image.render import label_colors, paint_edges
from spinseg.sampler.convergence import agreement_of_partitions
from spinseg.sampler.diagnostics import Diagnostics, diagnosed
from spinseg.segmentation.files import geojson_of, write_utf8
from spinseg.segmentation.large.files import create_ome_zarr, open_labels, write_chunk
from spinseg.segmentation.large.joining import LargeGraph
from spinseg.segmentation.large.tiles import Tiling, relative_to
from spinseg.segmentation.presets.photo import Photo
from spinseg.segmentation.presets.preset import chosen_preset
from spinseg.segmentation.region_table import as_csv, as_table, boundary_table, region_table
from spinseg.segmentation.schedule import Schedule
from spinseg.segmentation.verdict import one_region_warning, verdict_sentences

if TYPE_CHECKING:
    from pandas import DataFrame

MAX_OVERVIEW_PIXELS = 1600  # of its longer side
OPTIONAL_FILES = ("regions.geojson", "regions.csv", "boundary_probability.tif")  # that are written if asked
OUTLINE_COLOR = (255, 230, 0)


@dataclass(frozen=True, eq=False)
class LargeSegmentation:
    """A segmentation whose images lie in a folder.

    Attributes
    ----------
    folder : Path
        Holds labels.zarr and boundary_probability.zarr (OME-Zarr 0.5), labels.tif, overview.png and result.json.
        sites.zarr and tiles have what every tile found, from which an interrupted run is resumed.
    partition : (n_sites,) int32
        The region of each site, from 0 on, the largest first.
    joined : LargeGraph
        The sites of all tiles: pixels, intensities, places, and how often draws separate those that touch.
    preset, schedule, seed
        Those of the run.
    reading : Reading
        How the image was read.
    taken_for, source : str or None
        As in `Segmentation`.

    Examples
    --------
    >>> import spinseg as ss
    >>> seg = ss.segment_large(
    ...     "slide.ome.zarr", "results", rng=0
    ... )  # doctest: +SKIP
    >>> seg.n_regions, seg.at(0.9).n_regions, seg.verdict  # doctest: +SKIP
    """

    folder: Path
    partition: NDArray[np.int32] = field(repr=False)
    joined: LargeGraph = field(repr=False)
    preset: Photo
    schedule: Schedule = field(repr=False)
    seed: int
    reading: Reading = field(repr=False)
    shown: Picture = field(repr=False)  # parts of the image
    taken_for: str | None = None
    source: str | None = None
    start_label: ClassVar[int] = 1  # of the largest region

    @property
    def read_as(self) -> str:
        """How the image was read, and in doubt how to read it in another way."""
        return self.reading.with_doubt

    @property
    def graph(self) -> SiteGraph:
        """The graph of the sites that touch, weighted by the length of their boundaries."""
        return self.joined.graph

    @property
    def n_regions(self) -> int:
        """Number of regions, each of which is a cluster of `labels`."""
        return int(self.partition.max()) + 1

    @property
    def n_clusters(self) -> int:
        """Number of clusters of `labels`; each of them is one region."""
        return self.n_regions

    @property
    def detail(self) -> float:
        """The level of detail of `labels`."""
        return self.preset.detail

    def at(self, detail: float) -> "LargeSegmentation":
        """The segmentation at another level of detail, from 0, coarse, to 1, fine, from the same draws.

        Nothing is sampled or written: `labels` are computed from the folder as you use them.
        """
        preset: Any = chosen_preset(self.preset, {"detail": detail})
        return replace(self, preset=preset, partition=self.joined.partition(detail))

    @cached_property
    def separation(self) -> NDArray[np.float64]:
        """How often, over the draws, the two sites of each edge lay in different clusters, (n_edges,)."""
        return self.joined.apart.mean(axis=(0, 1), dtype=np.float64)

    @property
    def labels(self) -> Any:
        """The region of every pixel, from 1 on, the largest first, as a Dask array of int32."""
        label = self.partition + np.int32(self.start_label)
        sites = open_labels(self.folder / "sites.zarr")
        return sites.map_blocks(lambda stored: label[self.joined.sites(stored)], dtype=np.int32)

    @property
    def boundary_probability(self) -> Any:
        """How often neighboring pixels are separated, as a Dask array of uint8: 255 stands for always."""
        return open_labels(self.folder / "boundary_probability.zarr")

    @cached_property
    def regions(self) -> "DataFrame | list[dict[str, Any]]":
        """The regions, largest first: a pandas DataFrame, or `region_rows` without pandas, as in `Segmentation`."""
        return as_table(self.region_rows)

    @cached_property
    def region_rows(self) -> list[dict[str, Any]]:
        """The regions, largest first, with the keys of `Segmentation.region_rows`.

        `color` is None where the channels are no colors. `probability` is None: no tile has draws of all of a region.
        """
        joined, regions, n_regions = self.joined, self.partition, self.n_regions
        areas = np.bincount(regions, joined.pixels).astype(np.int64)
        values = joined.pixels[:, None] * np.hstack([joined.places, joined.means])
        means = np.stack([np.bincount(regions, column) for column in values.T], axis=1) / areas[:, None]
        boxes = np.empty((n_regions, 4), np.int64)
        boxes[:, :2], boxes[:, 2:] = np.iinfo(np.int64).max, 0
        np.minimum.at(boxes[:, :2], regions, joined.boxes[:, :2])
        np.maximum.at(boxes[:, 2:], regions, joined.boxes[:, 2:])
        colors = 255 * means[:, 2:] if self.shown.is_color else None
        return region_table(self, regions, areas, means[:, :2], boxes, colors)

    @cached_property
    def boundaries(self) -> "DataFrame | list[dict[str, Any]]":
        """The boundaries between touching regions: a pandas DataFrame, or `boundary_rows` without pandas."""
        return as_table(self.boundary_rows)

    @cached_property
    def boundary_rows(self) -> list[dict[str, Any]]:
        """The boundaries between touching regions, as in `Segmentation.boundary_rows`; lengths are in pixels."""
        return boundary_table(self.graph, self.joined.apart, self.partition, self.start_label)

    @cached_property
    def diagnostics(self) -> Diagnostics:
        """Whether the chains of all tiles have converged, in numbers.

        `agreement` compares the regions with those that each chain alone gives. R-hat is that of sums over all tiles.
        """
        joined, chains = self.joined, range(len(self.joined.apart))
        compared = [self.partition, *(joined.partition(self.detail, chain) for chain in chains)]
        agreement = agreement_of_partitions(compared if len(chains) > 1 else [], joined.pixels)
        return diagnosed(joined.quantities, agreement, joined.apart, joined.n_draws)

    @property
    def verdict(self) -> str:
        """Whether the regions and the probabilities have converged, in plain language."""
        how = (self.diagnostics, self.preset, self.joined.n_sweeps, self.schedule)
        unknown = self.preset.not_validated(self.shown, False)
        return str(verdict_sentences(*how, warning=self.warning, taken_for=self.taken_for, not_validated=unknown))

    @cached_property
    def warning(self) -> str | None:
        """What to try where an image of visible contrast came back as one region; else None."""
        if self.n_regions > 1:
            return None
        return one_region_warning(self.joined.contrast, self.reading, self.preset, self.preset.advice(self.shown))

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the image."""
        rows, columns = open_labels(self.folder / "sites.zarr").shape
        return rows, columns

    def to_geojson(self) -> dict[str, Any]:
        """The regions as polygons, as in `Segmentation.to_geojson`, of an image of at most 134 million pixels."""
        check_fit_for_polygons(self.shape)
        return geojson_of(self.region_rows, self.labels.compute(), self.reading.georeference)

    def summary(self) -> dict[str, Any]:
        """The content of result.json, under the names that `Segmentation.summary` has for the same things."""
        found, joined, place = self.diagnostics, self.joined, self.reading.georeference
        return {
            "source": self.source,
            "read_as": str(self.reading),
            "read_otherwise": self.reading.otherwise,
            "georeference": None if place is None else place.to_json(),
            "intensity_range": list(self.reading.intensity_range),
            "shape": list(self.shape),
            "n_clusters": self.n_clusters,
            "n_regions": self.n_regions,
            "n_sites": self.graph.n_sites,
            "n_edges": self.graph.n_edges,
            "n_tiles": joined.first.size,
            "sweeps_done": joined.n_sweeps,
            "converged": found.converged,
            "regions_converged": found.partition_converged,
            "probabilities_converged": found.probabilities_converged,
            "taken_for": self.taken_for,
            "warning": self.warning,
            "verdict": self.verdict,
            "seed": self.seed,
            "settings": self.preset.as_json() | self.schedule._asdict(),
            "detail": self.detail,
        }


def check_fit_for_polygons(shape: tuple[int, ...]) -> None:
    """Refuse an image with too many pixels for polygons, which are drawn of all labels at once."""
    if math.prod(shape) > MAX_PIXELS:
        invalid("the image", f"have at most {MAX_PIXELS:,} pixels for polygons", in_pixels(shape))


def site_image(folder: Path, tiling: Tiling) -> Any:
    """The Zarr array of the sites, as `LargeGraph.sites` reads them."""
    return create_ome_zarr(folder / "sites.zarr", tiling.shape, tiling.side, np.int64, -1)


def write_optional(found: LargeSegmentation, names: Collection[str]) -> None:
    """Write some of OPTIONAL_FILES, and those that the folder holds from another level of detail."""
    separation, place = open_labels(found.folder / "boundary_probability.zarr"), found.reading.georeference
    writers: dict[str, Callable[[Path], None]] = {
        "regions.geojson": lambda path: write_utf8(path, json.dumps(found.to_geojson(), ensure_ascii=False) + "\n"),
        "regions.csv": lambda path: write_utf8(path, as_csv(found.region_rows, image=found.source or "")),
        "boundary_probability.tif": lambda path: write_tif_in_parts(
            path, lambda box: separation[box].compute() / np.float32(255), found.shape, np.float32, place
        ),
    }
    for name in OPTIONAL_FILES:
        if name in names or (found.folder / name).exists():
            writers[name](found.folder / name)


def write_images(found: LargeSegmentation, tiling: Tiling, shown: bool) -> None:
    """Write labels and boundary probabilities tile by tile, and the overview."""
    stored, how = site_image(found.folder, tiling), (tiling.shape, tiling.side)
    label_image = create_ome_zarr(found.folder / "labels.zarr", *how, np.int32, 0)
    separation_image = create_ome_zarr(found.folder / "boundary_probability.zarr", *how, np.uint8, 0)
    step = -(-max(tiling.shape) // MAX_OVERVIEW_PIXELS)
    overview = np.zeros([-(-length // step) for length in tiling.shape], np.int64)
    tiles, edges = list(tiling.tiles()), found.graph.edges
    with counting(shown) as count:
        for number, tile in enumerate(tiles, start=1):
            rows, columns = (slice(max(span.start - 1, 0), span.stop + 1) for span in tile.core)
            around, own = found.joined.sites(stored[rows, columns]), relative_to(tile.core, (rows, columns))
            numbers, sites = np.unique(around, return_inverse=True)
            sites, core = sites.reshape(around.shape).astype(np.int32), around[own]
            write_chunk(label_image, tile.core, found.partition[core] + np.int32(found.start_label))
            touching = region_adjacency(sites).edges
            separation = found.separation[edge_index(edges, *numbers[touching].T)]
            painted = paint_edges(sites, touching, separation)[own]
            write_chunk(separation_image, tile.core, np.rint(255 * painted).astype(np.uint8))
            part = core[tuple(slice(-span.start % step, None, step) for span in tile.core)]
            row, column = (-(-span.start // step) for span in tile.core)
            overview[row : row + part.shape[0], column : column + part.shape[1]] = part
            count(number, len(tiles), f"writing tile {number}/{len(tiles)}")
    kind = type_of_labels(0, found.n_regions)
    place = found.reading.georeference
    write_tif_in_parts(found.folder / "labels.tif", lambda box: label_image[box], tiling.shape, kind, place)
    write_png(found.folder / "overview.png", _overview(overview, found))


def _overview(sites: NDArray[np.int64], found: LargeSegmentation) -> NDArray[np.uint8]:
    """Sites in their mean colors, or regions in colors of a palette, with the outlines of regions."""
    from skimage.segmentation import find_boundaries

    regions = found.partition[sites]
    if found.shown.is_color:
        picture = np.rint(255 * found.joined.means).astype(np.uint8)[sites]
    else:
        picture = label_colors(found.n_regions)[regions].astype(np.uint8)
    picture[find_boundaries(regions, mode="inner")] = OUTLINE_COLOR
    return picture
