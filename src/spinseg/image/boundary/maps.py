"""What every pixel of a photograph says of boundaries: steps of colour, and of histograms around it, at several scales.

After Martin, Fowlkes and Malik, Learning to detect natural image boundaries using local brightness, color, and texture
cues, PAMI 2004, :DOI:`10.1109/TPAMI.2004.1273918`, with smooth windows, whose steps in all directions follow from two,
instead of half-discs.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinseg.image.boundary.filters import (
    Maps,
    Steps,
    curvature,
    doubled,
    filtered,
    gaussian,
    halved,
    slope,
    steepest_step,
    steps,
    strongest_change,
)
from spinseg.image.features import k_means, nearest
from spinseg.image.picture import Picture

N_TEXTONS = 24
N_SAMPLED = 2_000  # pixels that textons are fitted to
FAINT = np.float32(0.3)  # CIELAB units: responses count by their logarithm above it


class BoundaryMaps(NamedTuple):
    """Maps of a photograph, by name; scales are in its pixels.

    Attributes
    ----------
    colour : dict of Steps
        Of CIELAB, at scales 1, 2 and 4.
    histogram : dict of Steps
        Of the shares of lightness ("L"), chroma ("C") and textons ("T") around a pixel, at scales 3, 6 and 12.
    relief : (height, width) array
        How strong a boundary at each pixel would be: what the watershed floods.
    textons : (height, width) array
        Which of `N_TEXTONS` kinds of texture a pixel has.
    responses : (height, width, 15) array
        Of the filters that textons are made from, in absolute value: five at each of scales 1, 2 and 4.
    """

    colour: dict[str, Steps]
    histogram: dict[str, Steps]
    relief: NDArray[np.float32]
    textons: NDArray[np.int32]
    responses: NDArray[np.float32]

    @property
    def energies(self) -> NDArray[np.float32]:
        """How strong texture is at each of the three scales, (height, width, 3)."""
        height, width, _ = self.responses.shape
        return np.sqrt(np.square(self.responses).reshape(height, width, 3, 5).mean(axis=-1))


def boundary_maps(picture: Picture, inside: NDArray[np.bool_] | None = None) -> BoundaryMaps:
    """The maps of a photograph: of two axes and three channels. What is not inside has no say in the textons."""
    lab = np.ascontiguousarray(np.moveaxis(picture.colours, -1, 0))
    lab2 = halved(lab)
    colour = {"g1": steps(lab, 1.0), "g2": steps(lab, 2.0), "g4": steps(lab2, 2.0, size=2)}

    responses = filter_responses(lab[:1], lab2[:1])
    textons = _textons(responses, inside)
    soft_lightness = filtered(lab[:1], gaussian(0.7), gaussian(0.7))[0]
    lightness = halved(_shares(soft_lightness, 0, 100, 13))
    chroma = halved(np.concatenate([_shares(channel, -60, 60, 17) for channel in lab[1:]]))
    texture = (textons == np.arange(N_TEXTONS)[:, None, None]).astype(np.float32)
    histogram = {"L3": steps(lightness, 1.5, size=2), "C3": steps(chroma, 1.5, size=2)}
    for name, shares in (("L", lightness), ("C", chroma), ("T", texture)):
        histogram |= {f"{name}6": steps(shares, 3.0, size=2), f"{name}12": steps(halved(shares), 3.0, size=4)}

    changes = {name: strongest_change(histogram[name]) for name in ("L3", "C3", "C6", "T6")}
    coarse = changes["L3"] + 1.5 * changes["C3"] + 0.5 * changes["C6"] + 0.5 * changes["T6"]
    shape = picture.shape
    fine = (steepest_step(colour["g1"]) + steepest_step(colour["g2"])) / 20
    # Without the blur, blocks of four equal pixels would lead the watershed along their sides.
    relief = fine + filtered(doubled(coarse, shape)[None], gaussian(0.7), gaussian(0.7))[0]
    return BoundaryMaps(colour, histogram, relief, doubled(textons, shape), doubled(np.abs(responses), shape))


def filter_responses(lightness: Maps, half_lightness: Maps) -> NDArray[np.float32]:
    """First and second derivatives of lightness at scales 1, 2 and 4, compressed, at half size, (h, w, 15)."""
    found = []
    for maps, scale, stride in ((lightness, 1.0, 2), (lightness, 2.0, 2), (half_lightness, 2.0, 1)):
        smooth, first, second = gaussian(scale), slope(scale), curvature(scale)
        for across, down in ((first, smooth), (smooth, first), (second, smooth), (smooth, second), (first, first)):
            found.append(filtered(maps, across, down)[0, ::stride, ::stride])
    responses = np.stack(found, axis=-1)
    return np.sign(responses) * np.log1p(np.abs(responses) / FAINT)


def _textons(responses: NDArray[np.float32], inside: NDArray[np.bool_] | None) -> NDArray[np.int32]:
    """The nearest of `N_TEXTONS` typical responses of this picture, for every pixel (always the same ones)."""
    points = responses.reshape(-1, responses.shape[-1])
    seen = points if inside is None or not inside[::2, ::2].any() else responses[inside[::2, ::2]]
    rng = np.random.default_rng(0)
    sample = seen[rng.choice(len(seen), min(N_SAMPLED, len(seen)), replace=False)]
    return nearest(points, k_means(sample, N_TEXTONS, rng)).reshape(responses.shape[:-1])


def _shares(channel: NDArray[np.float32], low: float, high: float, n_bins: int) -> Maps:
    """How much of a pixel's value lies in each bin, the nearest two sharing it; bins that are met nowhere left out."""
    place = np.clip((channel - low) * np.float32((n_bins - 1) / (high - low)), 0, n_bins - 1)
    below = np.bincount(place.ravel().astype(np.int32), minlength=n_bins) > 0
    met = np.flatnonzero(below | np.append(False, below[:-1])).astype(np.float32)
    return np.maximum(0, 1 - np.abs(place - met[:, None, None]))
