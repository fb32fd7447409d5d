"""The posterior over partitions of the sites of a large picture."""

from typing import Any

import numpy as np

from spinseg.image.boundary.log_odds import is_gray_chroma, plain_cues_from, signed_couplings, weigh_plain_cues
from spinseg.image.features import Codebook
from spinseg.image.layout import IntensityRange
from spinseg.image.picture import Picture, as_picture
from spinseg.model.posterior import Model
from spinseg.segmentation.image_model import SiteFeatures, gaussian_likelihood, lightness_and_chroma
from spinseg.segmentation.large.files import read_region
from spinseg.segmentation.large.tiles import Box, SiteStatistics
from spinseg.segmentation.presets import coupling_at
from spinseg.segmentation.settings import Settings

PHOTO_SIDE_PIXELS = 481  # longer side of the photographs that the constants are for; positions run from 0 to 100 there
CROP_PIXELS, N_CROPS = 64, 8  # sides of the squares, and their number along each axis, that a codebook is fitted to


def read_picture_part(array: Any, box: Box, intensity_range: IntensityRange, source: Any = None) -> Picture:
    """A box of a large picture, with the value range of the whole."""
    return as_picture(read_region(array, box, source), channel_axis=-1, intensity_range=intensity_range)


def codebook_for(array: Any, settings: Settings, intensity_range: IntensityRange) -> Codebook:
    """The general color words, or for a picture of other channels words that are fitted to squares all over it."""
    if array.shape[-1] in (1, 3):
        return Codebook.general(settings.n_words)
    rows, columns = (np.linspace(0, max(n - CROP_PIXELS, 0), N_CROPS).astype(int) for n in array.shape[:2])
    boxes = [(slice(r, r + CROP_PIXELS), slice(c, c + CROP_PIXELS)) for r in rows for c in columns]
    return Codebook.fit([read_picture_part(array, box, intensity_range) for box in boxes], settings.n_words, rng=0)


def large_model(statistics: SiteStatistics, settings: Settings, pixels_per_site: float, is_color: bool) -> Model:
    """The model of the preset "photo" with fewer cues and no texture, where `is_color` says that colors are CIELAB.

    A larger picture shows more things, not the same things larger. So a site counts for as much as one of a photograph,
    and lengths are measured in sites.
    """
    pixel_weight = settings.pixels_per_site / pixels_per_site
    scale = 100 / PHOTO_SIDE_PIXELS * pixel_weight**0.5
    color, position = np.split(statistics.means, [-2], axis=1)
    color_squares, position_squares = np.split(statistics.squares, [-2], axis=1)
    if is_color:
        means, squares = lightness_and_chroma(color), lightness_and_chroma(color_squares)
        overall = statistics.pixels @ means["colour"] / statistics.pixels.sum()
        variance = statistics.pixels @ squares["colour"] / statistics.pixels.sum() - overall**2
        if is_gray_chroma(np.sqrt(np.maximum(variance, 0))):
            del means["colour"], squares["colour"]
    else:
        means, squares = {"colour": color}, {"colour": color_squares}
    means["position"], squares["position"] = scale * position, scale**2 * position_squares
    features = SiteFeatures(statistics.pixels, {name: (means[name], squares[name]) for name in means})
    adjacency = statistics.adjacency
    cues = plain_cues_from(color, statistics.gradient, statistics.words, adjacency.edges)
    if statistics.network is not None:
        cues = np.hstack([cues, statistics.network])
    beta = signed_couplings(weigh_plain_cues(cues), adjacency.length, *coupling_at(settings.detail))
    beta *= pixel_weight**0.5
    return Model(adjacency, gaussian_likelihood(features, settings, pixel_weight), settings.prior, beta)
