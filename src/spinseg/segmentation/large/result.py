"""`LargeSegmentation`, what `segment_large` returns, and the images that it consists of."""

import os
import shutil
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.ndimage import find_objects

from spinseg._run.atomic import print_warning, printable
from spinseg._run.progress import counting
from spinseg.graph.adjacency import region_adjacency
from spinseg.image.io import write_png
from spinseg.image.layout import Reading
from spinseg.image.render import label_colors, paint_edges
from spinseg.model.posterior import Model
from spinseg.partition.pairs import separation_probability
from spinseg.sampler.chains import Chains
from spinseg.sampler.diagnostics import Diagnostics, diagnose
from spinseg.segmentation.large.files import create_ome_zarr, write_chunk
from spinseg.segmentation.large.tiles import SiteStatistics, Tile, Tiling, relative_to
from spinseg.segmentation.presets.preset import Preset
from spinseg.segmentation.region_table import as_table, region_table
from spinseg.segmentation.verdict import calibration_clause, verdict_sentences

if TYPE_CHECKING:
    from pandas import DataFrame

MAX_OVERVIEW_PIXELS = 1600  # of its longer side
OUTLINE_COLOR = (255, 230, 0)
START_LABEL = 1


@dataclass(frozen=True, eq=False)
class LargeSegmentation:
    """A segmentation whose images lie in a folder.

    Attributes
    ----------
    folder : Path
        Holds labels.zarr and boundary_probability.zarr (OME-Zarr 0.5), overview.png and result.json. An interrupted run
        is resumed from sites.zarr, tiles and chains.npz.
    n_regions : int
    partition : (n_sites,) int32
        The region of each site, from 0 on, the largest first.
    separation : (n_edges,) float64
        How often, over the draws, the two sites of each edge lay in different clusters.
    model, chains
        The posterior, and the chains that sampled it.
    preset, seed
        Those of the run.
    areas, centroids, boxes, colors
        A row for each region: its area in pixels, its centroid, its box, as in `regions`, and its color in sRGB from 0
        to 255 (None where the channels are no colors).
    reading : Reading
        How the picture was read.
    warning : str or None
        What to try where a picture of visible contrast came back as one region.

    Examples
    --------
    >>> import spinseg as ss
    >>> found = ss.segment_large("slide.ome.zarr", "results", rng=0)  # doctest: +SKIP
    >>> found.n_regions, found.verdict  # doctest: +SKIP
    """

    folder: Path
    n_regions: int
    partition: NDArray[np.int32] = field(repr=False)
    separation: NDArray[np.float64] = field(repr=False)
    model: Model = field(repr=False)
    chains: Chains = field(repr=False)
    preset: Preset = field(repr=False)
    seed: int
    areas: NDArray[np.int64] = field(repr=False)
    centroids: NDArray[np.float64] = field(repr=False)
    boxes: NDArray[np.int64] = field(repr=False)
    colors: NDArray[np.float64] | None = field(repr=False)
    reading: Reading = field(repr=False)
    warning: str | None = None

    @property
    def read_as(self) -> str:
        """How the picture was read, in words."""
        return str(self.reading)

    @property
    def n_clusters(self) -> int:
        """Number of clusters of `labels`; each of them is one region."""
        return self.n_regions

    @property
    def labels(self) -> Any:
        """The region of every pixel, from 1 on, the largest first, as a Dask array of int32."""
        return open_labels(self.folder / "labels.zarr")

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

        `color` is that of the mean in CIELAB, and None where the channels are no colors.
        """
        return region_table(
            self.partition,
            self.partition,
            self.model.graph,
            self.chains,
            self.separation,
            areas=self.areas,
            centroids=self.centroids,
            boxes=self.boxes,
            colors=self.colors,
            start_label=START_LABEL,
        )

    @cached_property
    def diagnostics(self) -> Diagnostics:
        """Whether the chains have converged, in numbers."""
        return diagnose(self.chains, self.model.graph)

    @property
    def verdict(self) -> str:
        """Whether the chains have converged, in plain language."""
        warning = f"{self.warning} " if self.warning else ""
        sentences = verdict_sentences(self.diagnostics, self.preset, self.chains.n_sweeps)
        return warning + sentences + calibration_clause("pictures larger than memory")


def open_labels(path: Path) -> Any:
    """An array that `create_ome_zarr` made, as a Dask array."""
    import dask.array

    return dask.array.from_zarr(os.fspath(path), component="0")


def open_image(path: Path, tiling: Tiling, dtype: DTypeLike, fill: int) -> Any:
    """Open or create the Zarr array of an image, a new one where the metadata of the old one are damaged."""
    try:
        return create_ome_zarr(path, tiling.shape, tiling.side, dtype, fill)
    except (ValueError, TypeError, KeyError):  # from damaged JSON; errors of the disk are OSErrors
        print_warning(f"{printable(path)} is damaged, and is made again")
        shutil.rmtree(path)
        return create_ome_zarr(path, tiling.shape, tiling.side, dtype, fill)


def region_colors(statistics: SiteStatistics, partition: NDArray[np.int32]) -> NDArray[np.float64]:
    """The mean color of each region in CIELAB, as sRGB from 0 to 255."""
    from skimage.color import lab2rgb

    sums = [np.bincount(partition, statistics.pixels * channel) for channel in statistics.means[:, :3].T]
    return 255 * lab2rgb(np.stack(sums, axis=1) / np.bincount(partition, statistics.pixels)[:, None])


def region_centroids(statistics: SiteStatistics, partition: NDArray[np.int32]) -> NDArray[np.float64]:
    """The mean row and column of each region."""
    sums = [np.bincount(partition, statistics.pixels * axis) for axis in statistics.means[:, -2:].T]
    return np.stack(sums, axis=1) / np.bincount(partition, statistics.pixels)[:, None]


def write_images(
    folder: Path,
    tiling: Tiling,
    statistics: SiteStatistics,
    partition: NDArray[np.int32],
    draws: NDArray[np.int32],
    is_color: bool,
    shown: bool,
) -> NDArray[np.int64]:
    """Write labels and boundary probabilities tile by tile, and the overview; return the box of each region."""
    labels_path, separation_path = folder / "labels.zarr", folder / "boundary_probability.zarr"
    site_image = create_ome_zarr(folder / "sites.zarr", tiling.shape, tiling.side, np.int32, -1)
    label_image = open_image(labels_path, tiling, np.int32, 0)
    separation_image = open_image(separation_path, tiling, np.uint8, 0)
    step = -(-max(tiling.shape) // MAX_OVERVIEW_PIXELS)
    overview = np.zeros([-(-length // step) for length in tiling.shape], np.int32)
    boxes = np.tile(np.array([*tiling.shape, 0, 0]), (int(partition.max()) + 1, 1))
    tiles = list(tiling.tiles())
    with counting(shown) as count:
        for number, tile in enumerate(tiles, start=1):
            rows, columns = (slice(max(span.start - 1, 0), span.stop + 1) for span in tile.own)
            sites = statistics.site_of[site_image[rows, columns]]
            own = relative_to(tile.own, (rows, columns))
            labels = partition[sites[own]]
            write_chunk(labels_path, label_image, tile.own, labels + np.int32(START_LABEL))
            edges = region_adjacency(sites).edges  # the graph may lack some across the border of a tile
            separation = paint_edges(sites, edges, separation_probability(draws, edges))[own]
            write_chunk(separation_path, separation_image, tile.own, np.rint(255 * separation).astype(np.uint8))
            _extend_boxes(boxes, labels, tile)
            part = sites[own][tuple(slice(-span.start % step, None, step) for span in tile.own)]
            row, column = (-(-span.start // step) for span in tile.own)
            overview[row : row + part.shape[0], column : column + part.shape[1]] = part
            count(number, len(tiles), f"writing tile {number}/{len(tiles)}")
    write_png(folder / "overview.png", _overview(overview, statistics, partition, is_color))
    return boxes


def _extend_boxes(boxes: NDArray[np.int64], labels: NDArray[np.int32], tile: Tile) -> None:
    """Extend the boxes of the regions that a tile shows."""
    regions, local = np.unique(labels, return_inverse=True)
    start = [span.start for span in tile.own] * 2
    for region, (rows, columns) in zip(regions, find_objects(local.reshape(labels.shape) + 1), strict=True):
        box = np.array([rows.start, columns.start, rows.stop, columns.stop]) + start
        boxes[region, :2] = np.minimum(boxes[region, :2], box[:2])
        boxes[region, 2:] = np.maximum(boxes[region, 2:], box[2:])


def _overview(
    sites: NDArray[np.int32], statistics: SiteStatistics, partition: NDArray[np.int32], is_color: bool
) -> NDArray[np.uint8]:
    """Sites in their mean colors, or regions in colors of a palette, with the outlines of regions."""
    from skimage.color import lab2rgb
    from skimage.segmentation import find_boundaries

    regions = partition[sites]
    if is_color:
        picture = np.rint(255 * lab2rgb(statistics.means[:, :3])).astype(np.uint8)[sites]
    else:
        picture = label_colors(int(partition.max()) + 1)[regions].astype(np.uint8)
    picture[find_boundaries(regions, mode="inner")] = OUTLINE_COLOR
    return picture
