"""The preset of large images, and the posterior over partitions of their sites."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from spinseg.image.boundary.log_odds import is_gray_chroma, plain_cues, signed_couplings, weigh_plain_cues
from spinseg.image.features import Codebook
from spinseg.image.layout import ChannelKind, IntensityRange
from spinseg.model.posterior import Model
from spinseg.model.priors import PartitionPrior, TemperedProcess
from spinseg.segmentation.large.files import read_part
from spinseg.segmentation.large.tiles import SiteStatistics
from spinseg.segmentation.presets.option import option
from spinseg.segmentation.presets.photo import (
    N_WORDS,
    REFERENCE_PIXELS,
    Photo,
    gaussian_likelihood,
    lightness_and_chroma,
)
from spinseg.segmentation.presets.preset import Preset, Start

PHOTO_SIDE_PIXELS = 481  # longer side of the photographs that the constants are for; positions run from 0 to 100 there
CROP_PIXELS, N_CROPS = 64, 8  # sides of the squares, and their number along each axis, that a codebook is fitted to


# From detail 0 to detail 1 the threshold falls by THRESHOLD_RANGE, and the smallest region, as a share of a
# photograph's pixels, shrinks by MIN_REGION_RATIO.
STRENGTH, THRESHOLD, THRESHOLD_RANGE = 0.5, -0.75, 3.0
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
    def threshold(self) -> float:
        """The log-odds that make a boundary: the less, the finer the detail."""
        return THRESHOLD - THRESHOLD_RANGE * (self.detail - 0.5)

    @property
    def min_region_sites(self) -> float:
        """The smallest region, in sites."""
        share = MIN_REGION_SHARE * MIN_REGION_RATIO ** (0.5 - self.detail)
        return share * REFERENCE_PIXELS / self.pixels_per_site

    finer = Photo.finer


def codebook_for(array: Any, intensity_range: IntensityRange, kind: ChannelKind) -> Codebook:
    """The general color words, or for measured channels words that are fitted to squares all over the picture."""
    if kind != "measured":
        return Codebook.general(N_WORDS)
    rows, columns = (np.linspace(0, max(n - CROP_PIXELS, 0), N_CROPS).astype(int) for n in array.shape[:2])
    boxes = [(slice(r, r + CROP_PIXELS), slice(c, c + CROP_PIXELS)) for r in rows for c in columns]
    return Codebook.fit([read_part(array, box, intensity_range, kind) for box in boxes], N_WORDS, rng=0)


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
    beta = signed_couplings(weigh_plain_cues(cues), graph.length, STRENGTH, preset.threshold)
    beta *= pixel_weight**0.5
    likelihood = gaussian_likelihood(features, usual.count_weight * statistics.pixels * pixel_weight, usual.kappa)
    return Model(graph, likelihood, preset.prior, beta)
