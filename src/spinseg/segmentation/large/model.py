"""The sites of a large image, merged from its tiles, and the posterior over their partitions."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sparse
from numpy.typing import NDArray

from spinseg.graph.site_graph import SiteGraph
from spinseg.image.boundary.log_odds import is_gray_chroma, plain_cues, signed_couplings, weigh_plain_cues
from spinseg.image.boundary.network import RADII
from spinseg.image.contrast import Contrast, contrast_of_parts
from spinseg.image.features import Codebook
from spinseg.image.layout import IntensityRange
from spinseg.model.posterior import Model
from spinseg.model.priors import PartitionPrior, TemperedProcess
from spinseg.segmentation.large.files import read_part
from spinseg.segmentation.large.tiles import unique_pairs
from spinseg.segmentation.presets.option import option
from spinseg.segmentation.presets.photo import N_WORDS, REFERENCE_PIXELS, Coupling, Photo
from spinseg.segmentation.presets.preset import Preset, Start
from spinseg.segmentation.presets.site_features import (
    gaussian_likelihood,
    lightness_and_chroma,
)

PHOTO_SIDE_PIXELS = 481  # longer side of the photographs that the constants are for; positions run from 0 to 100 there
CROP_PIXELS, N_CROPS = 64, 8  # sides of the squares, and their number along each axis, that a codebook is fitted to


# From detail 0 to detail 1 the threshold falls by THRESHOLD_RANGE, and the smallest region, as a share of a
# photograph's pixels, shrinks by MIN_REGION_RATIO.
COUPLING = Coupling(strength=0.5, threshold=-0.75)
THRESHOLD_RANGE = 3.0
MIN_REGION_SHARE, MIN_REGION_RATIO = 0.0045, 16.0


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Large(Preset, listed=False):
    """The preset of `segment_large`: clusters need not be connected; the pieces of the best partition are the regions.

    It has the features and the couplings of `Photo` with fewer cues, at one level of detail.
    """

    name: ClassVar[str] = "large"
    about: ClassVar[str] = "For images larger than memory."
    usual_chains: ClassVar[int] = 1
    usual_sweeps: ClassVar[int | None] = 200
    pixels_per_site: ClassVar[float] = Photo.pixels_per_site

    detail: float = option(0.5, "How finely the image is divided, from 0, coarse, to 1, fine.", least=0, most=1)
    prior: PartitionPrior = TemperedProcess()
    estimate: str = "best"
    init: Start = "greedy"

    @property
    def coupling(self) -> Coupling:
        """The finer the detail, the less evidence makes a boundary."""
        return COUPLING._replace(threshold=COUPLING.threshold - THRESHOLD_RANGE * (self.detail - 0.5))

    @property
    def min_region_sites(self) -> float:
        """The smallest region, in sites."""
        share = MIN_REGION_SHARE * MIN_REGION_RATIO ** (0.5 - self.detail)
        return share * REFERENCE_PIXELS / self.pixels_per_site

    finer = Photo.finer


def codebook_for(array: Any, intensity_range: IntensityRange) -> Codebook:
    """The general color words, or for a picture of other channels words that are fitted to squares all over it."""
    if array.shape[-1] in (1, 3):
        return Codebook.general(N_WORDS)
    rows, columns = (np.linspace(0, max(n - CROP_PIXELS, 0), N_CROPS).astype(int) for n in array.shape[:2])
    boxes = [(slice(r, r + CROP_PIXELS), slice(c, c + CROP_PIXELS)) for r in rows for c in columns]
    return Codebook.fit([read_part(array, box, intensity_range) for box in boxes], N_WORDS, rng=0)


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

    def region_means(self, partition: NDArray[np.int32]) -> NDArray[np.float64]:
        """The mean colors, row and column of each region, in the columns of `means`."""
        sums = [np.bincount(partition, self.pixels * column) for column in self.means.T]
        return np.stack(sums, axis=1) / np.bincount(partition, self.pixels)[:, None]


def merge_tiles(tiles: Iterable[Mapping[str, NDArray[Any]]], n_cells: int, n_words: int) -> SiteStatistics:
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


def large_model(statistics: SiteStatistics, preset: Large, pixels_per_site: float) -> Model:
    """The model of `Large`.

    A larger picture shows more things, not the same things larger. So a site counts for as much as one of a photograph,
    and lengths are measured in sites.
    """
    pixel_weight = preset.pixels_per_site / pixels_per_site
    scale = 100 / PHOTO_SIDE_PIXELS * pixel_weight**0.5
    color, position = np.split(statistics.means, [-2], axis=1)
    color_squares, position_squares = np.split(statistics.squares, [-2], axis=1)
    if statistics.is_color:
        means, squares = lightness_and_chroma(color), lightness_and_chroma(color_squares)
        overall = statistics.pixels @ means["color"] / statistics.pixels.sum()
        variance = statistics.pixels @ squares["color"] / statistics.pixels.sum() - overall**2
        if is_gray_chroma(np.sqrt(np.maximum(variance, 0))):
            del means["color"], squares["color"]
    else:
        means, squares = {"color": color}, {"color": color_squares}
    means["position"], squares["position"] = scale * position, scale**2 * position_squares
    features = {name: (means[name], squares[name]) for name in means}
    graph, usual = statistics.graph, Photo()
    cues = plain_cues(color, statistics.gradient, statistics.words, graph.edges)
    if statistics.network is not None:
        cues = np.hstack([cues, statistics.network])
    beta = signed_couplings(weigh_plain_cues(cues), graph.length, *preset.coupling)
    beta *= pixel_weight**0.5
    likelihood = gaussian_likelihood(features, usual.count_weight * statistics.pixels * pixel_weight, usual.kappa)
    return Model(graph, likelihood, preset.prior, beta)
