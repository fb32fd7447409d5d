"""What every pixel of a photograph says of boundaries: gradients at several scales, and the network's log-odds.

The gradients are of colour and of local histograms, after Martin, Fowlkes and Malik, Learning to detect natural image
boundaries using local brightness, color, and texture cues, PAMI 2004, :DOI:`10.1109/TPAMI.2004.1273918`, with Gaussian
derivatives instead of half-discs: the gradient in any direction follows from two.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinseg.image.boundary.filters import (
    Gradient,
    Maps,
    double,
    filter_separable,
    gaussian,
    gaussian_d1,
    gaussian_d2,
    gaussian_gradient,
    halve,
    max_oriented_gradient,
    structure_tensor_norm,
)
from spinseg.image.boundary.network import BoundaryNetwork
from spinseg.image.features import k_means, nearest_center
from spinseg.image.picture import Picture

N_TEXTONS = 24
N_TEXTON_SAMPLES = 2_000  # pixels that textons are fitted to
NETWORK_RELIEF = 8.0  # height of a boundary that the network is sure of; gradients of strong ones add about 2
RESPONSE_SCALE = np.float32(0.3)  # CIELAB units: filter responses r are compressed to log(1 + |r| / RESPONSE_SCALE)


class BoundaryMaps(NamedTuple):
    """Maps of a photograph; scales are in its pixels.

    Attributes
    ----------
    color : dict of Gradient
        Gradients of CIELAB at scales 1, 2 and 4: "g1", "g2", "g4".
    histogram : dict of Gradient
        Gradients of the local histograms of lightness ("L"), chroma ("C") and textons ("T") at scales 3, 6 and 12.
    relief : (height, width) array
        Strength of a boundary at each pixel; the watershed floods it.
    network : (2, height, width) array
        Log-odds of a boundary within 1 and within 3 pixels, by `BoundaryNetwork`.
    textons : (height, width) array
        Texton of each pixel, 0..N_TEXTONS - 1.
    responses : (height, width, 15) array
        Absolute responses of the filters that textons are clusters of: five at each of scales 1, 2 and 4.
    """

    color: dict[str, Gradient]
    histogram: dict[str, Gradient]
    relief: NDArray[np.float32]
    network: Maps
    textons: NDArray[np.int32]
    responses: NDArray[np.float32]

    @property
    def energies(self) -> NDArray[np.float32]:
        """Root mean square of the responses at each of the three scales, (height, width, 3)."""
        height, width, _ = self.responses.shape
        return np.sqrt(np.square(self.responses).reshape(height, width, 3, 5).mean(axis=-1))


def boundary_maps(
    picture: Picture,
    inside: NDArray[np.bool_] | None = None,
    network: BoundaryNetwork | None = None,
    network_relief: float = NETWORK_RELIEF,
) -> BoundaryMaps:
    """Return the maps of a photograph (two axes, three channels); textons are fitted to pixels inside only.

    The network is that of the package unless another is given; `network_relief` is its weight in the relief.
    """
    lab = np.ascontiguousarray(np.moveaxis(picture.colors, -1, 0))
    lab2 = halve(lab)
    color = {"g1": gaussian_gradient(lab, 1.0), "g2": gaussian_gradient(lab, 2.0)}
    color["g4"] = gaussian_gradient(lab2, 2.0, stride=2)
    responses = filter_responses(lab[:1], lab2[:1])
    textons = _textons(responses, inside)
    smooth_lightness = filter_separable(lab[:1], gaussian(0.7), gaussian(0.7))[0]
    lightness = halve(_soft_bins(smooth_lightness, 0, 100, 13))
    chroma = halve(np.concatenate([_soft_bins(channel, -60, 60, 17) for channel in lab[1:]]))
    texture = (textons == np.arange(N_TEXTONS)[:, None, None]).astype(np.float32)
    histogram = {"L3": gaussian_gradient(lightness, 1.5, stride=2), "C3": gaussian_gradient(chroma, 1.5, stride=2)}
    for name, bins in (("L", lightness), ("C", chroma), ("T", texture)):
        histogram[f"{name}6"] = gaussian_gradient(bins, 3.0, stride=2)
        histogram[f"{name}12"] = gaussian_gradient(halve(bins), 3.0, stride=4)

    shape = picture.shape
    strength = {name: max_oriented_gradient(histogram[name]) for name in ("L3", "C3", "C6", "T6")}
    coarse = strength["L3"] + 1.5 * strength["C3"] + 0.5 * strength["C6"] + 0.5 * strength["T6"]
    fine = (structure_tensor_norm(color["g1"]) + structure_tensor_norm(color["g2"])) / 20
    # Without the blur the watershed would follow the sides of blocks of four equal pixels.
    relief = fine + filter_separable(double(coarse, shape)[None], gaussian(0.7), gaussian(0.7))[0]
    log_odds = (network or BoundaryNetwork.fitted()).log_odds(picture.values)
    relief += network_relief / (1 + np.exp(-log_odds[0]))
    return BoundaryMaps(color, histogram, relief, log_odds, double(textons, shape), double(np.abs(responses), shape))


def filter_responses(lightness: Maps, half_lightness: Maps) -> NDArray[np.float32]:
    """Return compressed first and second derivatives of lightness at scales 1, 2 and 4, at half size, (h, w, 15)."""
    found = []
    for maps, scale, stride in ((lightness, 1.0, 2), (lightness, 2.0, 2), (half_lightness, 2.0, 1)):
        smooth, d1, d2 = gaussian(scale), gaussian_d1(scale), gaussian_d2(scale)
        for across, down in ((d1, smooth), (smooth, d1), (d2, smooth), (smooth, d2), (d1, d1)):
            found.append(filter_separable(maps, across, down)[0, ::stride, ::stride])
    responses = np.stack(found, axis=-1)
    return np.sign(responses) * np.log1p(np.abs(responses) / RESPONSE_SCALE)


def _textons(responses: NDArray[np.float32], inside: NDArray[np.bool_] | None) -> NDArray[np.int32]:
    """Return for every pixel the nearest of `N_TEXTONS` centers of responses, by k-means with a fixed seed."""
    points = responses.reshape(-1, responses.shape[-1])
    candidates = points if inside is None or not inside[::2, ::2].any() else responses[inside[::2, ::2]]
    rng = np.random.default_rng(0)
    sample = candidates[rng.choice(len(candidates), min(N_TEXTON_SAMPLES, len(candidates)), replace=False)]
    return nearest_center(points, k_means(sample, N_TEXTONS, rng)).reshape(responses.shape[:-1])


def _soft_bins(channel: NDArray[np.float32], low: float, high: float, n_bins: int) -> Maps:
    """Return the weight of each pixel in each histogram bin, interpolated linearly; bins without weight are omitted."""
    position = np.clip((channel - low) * np.float32((n_bins - 1) / (high - low)), 0, n_bins - 1)
    is_lower = np.bincount(position.ravel().astype(np.int32), minlength=n_bins) > 0
    used = np.flatnonzero(is_lower | np.append(False, is_lower[:-1])).astype(np.float32)
    return np.maximum(0, 1 - np.abs(position - used[:, None, None]))
