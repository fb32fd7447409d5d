"""`LargeSegmentation`, what `segment_large` returns, and the images that it consists of."""

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import find_objects

from spinseg._run.progress import counting
from spinseg.graph.adjacency import region_adjacency
from spinseg.image.io import write_png
from spinseg.image.layout import Reading
from spinseg.image.render import label_colors, paint_edges
from spinseg.model.posterior import Model
from spinseg.partition.pairs import separation_probability
from spinseg.sampler.chains import Chains
from spinseg.sampler.diagnostics import Diagnostics, diagnose
from spinseg.segmentation.large.files import create_ome_zarr, open_labels, write_chunk
from spinseg.segmentation.large.model import Large
from spinseg.segmentation.large.tiles import SiteStatistics, Tiling, relative_to
from spinseg.segmentation.region_table import as_table, region_table
from spinseg.segmentation.verdict import verdict_sentences

if TYPE_CHECKING:
    from pandas import DataFrame

MAX_OVERVIEW_PIXELS = 1600  # of its longer side
OUTLINE_COLOR = (255, 230, 0)


@dataclass(frozen=True, eq=False)
class LargeSegmentation:
    """A segmentation whose images lie in a folder.

    Attributes
    ----------
    folder : Path
        Holds labels.zarr and boundary_probability.zarr (OME-Zarr 0.5), overview.png and result.json. An interrupted run
        is resumed from sites.zarr, tiles and chains.npz.
    partition : (n_sites,) int32
        The region of each site, from 0 on, the largest first.
    boxes : (n_regions, 4) int64
        The box of each region, as in `regions`.
    statistics : SiteStatistics
        Pixels, mean colors and positions of the sites, and their adjacency.
    model, chains
        The posterior, and the chains that sampled it.
    preset, seed
        Those of the run.
    reading : Reading
        How the image was read.
    warning : str or None
        What to try where an image of visible contrast came back as one region.

    Examples
    --------
    >>> import spinseg as ss
    >>> found = ss.segment_large(
    ...     "slide.ome.zarr", "results", rng=0
    ... )  # doctest: +SKIP
    >>> found.n_regions, found.verdict  # doctest: +SKIP
    """

    folder: Path
    partition: NDArray[np.int32] = field(repr=False)
    boxes: NDArray[np.int64] = field(repr=False)
    statistics: SiteStatistics = field(repr=False)
    model: Model = field(repr=False)
    chains: Chains = field(repr=False)
    preset: Large = field(repr=False)
    seed: int
    reading: Reading = field(repr=False)
    warning: str | None = None
    start_label: ClassVar[int] = 1  # of the largest region

    @property
    def read_as(self) -> str:
        """How the image was read, in words."""
        return str(self.reading)

    @property
    def n_regions(self) -> int:
        """Number of regions, each of which is a cluster of `labels`."""
        return len(self.boxes)

    @property
    def n_clusters(self) -> int:
        """Number of clusters of `labels`; each of them is one region."""
        return self.n_regions

    @cached_property
    def separation(self) -> NDArray[np.float64]:
        """How often, over the draws, the two sites of each edge lay in different clusters, (n_edges,)."""
        return separation_probability(self.chains.labels, self.model.graph.edges)

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
        pixels = self.statistics.pixels
        areas = np.bincount(self.partition, pixels)
        sums = [np.bincount(self.partition, pixels * column) for column in self.statistics.means.T]
        means = np.stack(sums, axis=1) / areas[:, None]
        colors = _rgb(means[:, :3]) if self.statistics.is_color else None
        return region_table(self, self.partition, areas.astype(np.int64), means[:, -2:], self.boxes, colors)

    @cached_property
    def diagnostics(self) -> Diagnostics:
        """Whether the chains have converged, in numbers."""
        return diagnose(self.chains, self.model.graph)

    @property
    def verdict(self) -> str:
        """Whether the chains have converged, in plain language."""
        how = (self.diagnostics, self.preset, self.chains.n_sweeps)
        return verdict_sentences(*how, warning=self.warning, not_validated="pictures larger than memory")

    def summary(self) -> dict[str, Any]:
        """The content of result.json."""
        graph, shape = self.model.graph, list(self.labels.shape)
        return {
            "regions": self.n_regions,
            "sites": graph.n_sites,
            "edges": graph.n_edges,
            "shape": shape,
            "tiles": len(list((self.folder / "tiles").glob("*.npz"))),
            "seed": self.seed,
            "sweeps": self.chains.n_sweeps,
            "detail": self.preset.detail,
            "warning": self.warning,
            "read_as": self.read_as,
            "read_otherwise": self.reading.otherwise,
            "intensity_range": list(self.reading.intensity_range),
            "best_log_posterior": self.chains.best_log_posterior,
            "verdict": self.verdict,
        }


def _rgb(colors: NDArray[np.float64]) -> NDArray[np.float64]:
    """CIELAB colors, (n, 3), as sRGB from 0 to 255."""
    from skimage.color import lab2rgb

    return 255 * lab2rgb(colors)


def site_image(folder: Path, tiling: Tiling) -> Any:
    """The Zarr array of the sites."""
    return create_ome_zarr(folder / "sites.zarr", tiling.shape, tiling.side, np.int32, -1)


def write_images(
    folder: Path,
    tiling: Tiling,
    statistics: SiteStatistics,
    partition: NDArray[np.int32],
    draws: NDArray[np.int32],
    shown: bool,
) -> NDArray[np.int64]:
    """Write labels and boundary probabilities tile by tile, and the overview; return the box of each region."""
    all_sites, how = site_image(folder, tiling), (tiling.shape, tiling.side)
    label_image = create_ome_zarr(folder / "labels.zarr", *how, np.int32, 0)
    separation_image = create_ome_zarr(folder / "boundary_probability.zarr", *how, np.uint8, 0)
    step = -(-max(tiling.shape) // MAX_OVERVIEW_PIXELS)
    overview = np.zeros([-(-length // step) for length in tiling.shape], np.int32)
    boxes = np.tile(np.array([*tiling.shape, 0, 0]), (int(partition.max()) + 1, 1))
    tiles = list(tiling.tiles())
    with counting(shown) as count:
        for number, tile in enumerate(tiles, start=1):
            rows, columns = (slice(max(span.start - 1, 0), span.stop + 1) for span in tile.own)
            sites = statistics.site_of[all_sites[rows, columns]]
            own = relative_to(tile.own, (rows, columns))
            labels = partition[sites[own]]
            write_chunk(label_image, tile.own, labels + np.int32(LargeSegmentation.start_label))
            edges = region_adjacency(sites).edges  # the graph may lack some across the border of a tile
            separation = paint_edges(sites, edges, separation_probability(draws, edges))[own]
            write_chunk(separation_image, tile.own, np.rint(255 * separation).astype(np.uint8))
            _extend_boxes(boxes, labels, [span.start for span in tile.own])
            part = sites[own][tuple(slice(-span.start % step, None, step) for span in tile.own)]
            row, column = (-(-span.start // step) for span in tile.own)
            overview[row : row + part.shape[0], column : column + part.shape[1]] = part
            count(number, len(tiles), f"writing tile {number}/{len(tiles)}")
    write_png(folder / "overview.png", _overview(overview, statistics, partition))
    return boxes


def _extend_boxes(boxes: NDArray[np.int64], labels: NDArray[np.int32], start: list[int]) -> None:
    """Extend the boxes of the regions that a tile shows, whose first pixel is at `start`."""
    regions, local = np.unique(labels, return_inverse=True)
    for region, (rows, columns) in zip(regions, find_objects(local.reshape(labels.shape) + 1), strict=True):
        first, last = np.add(start, [rows.start, columns.start]), np.add(start, [rows.stop, columns.stop])
        boxes[region] = *np.minimum(boxes[region, :2], first), *np.maximum(boxes[region, 2:], last)


def _overview(sites: NDArray[np.int32], statistics: SiteStatistics, partition: NDArray[np.int32]) -> NDArray[np.uint8]:
    """Sites in their mean colors, or regions in colors of a palette, with the outlines of regions."""
    from skimage.segmentation import find_boundaries

    regions = partition[sites]
    if statistics.is_color:
        picture = np.rint(_rgb(statistics.means[:, :3])).astype(np.uint8)[sites]
    else:
        picture = label_colors(int(partition.max()) + 1)[regions].astype(np.uint8)
    picture[find_boundaries(regions, mode="inner")] = OUTLINE_COLOR
    return picture
