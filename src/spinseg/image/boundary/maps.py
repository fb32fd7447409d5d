"""What every pixel of a photograph says of boundaries: gradients at several scales, and the network's log-odds.

The gradients are of color and of local histograms, after Martin, Fowlkes and Malik, Learning to detect natural image
boundaries using local brightness, color, and texture cues, PAMI 2004, doi:10.1109/TPAMI.2004.1273918, with Gaussian
derivatives instead of half-discs: the gradient in any direction follows from two.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinseg.image.boundary.network import BoundaryNetwork
from spinseg.image.features import k_means, nearest_center
from spinseg.image.kernels import pixels as kernels
from spinseg.image.picture import Picture

Maps = NDArray[np.float32]  # (n_maps, height, width)
# Derivatives of maps along x (to the right) and y (downward), and how many pixels of the image along each axis one
# pixel of them covers. The derivative at angle t is cos(t) dx + sin(t) dy.
Gradient = tuple[Maps, Maps, int]

N_ORIENTATIONS = 8  # over half a turn, for the maximum of an oriented gradient
N_TEXTONS = 24
N_TEXTON_SAMPLES = 2_000  # pixels that textons are fitted to
NETWORK_RELIEF = 8.0  # height of a boundary that the network is sure of; gradients of strong ones add about 2
RESPONSE_SCALE = np.float32(0.3)  # CIELAB units: filter responses r are compressed to log(1 + |r| / RESPONSE_SCALE)


class BoundaryMaps(NamedTuple):
    """Maps of a photograph; scales are in its pixels.

    `color` has gradients of CIELAB at scales 1, 2 and 4: "g1", "g2", "g4". `histogram` has those of local histograms of
    lightness ("L"), chroma ("C") and textons ("T") at scales 3, 6 and 12. `relief`, (height, width), is the strength of
    a boundary at each pixel, which the watershed floods, and `network`, (2, height, width), the log-odds of one
    within 1 and 3 pixels. `textons` are 0..N_TEXTONS - 1, clusters of `responses`, (height, width, 15): the absolute
    responses of five filters at each of scales 1, 2 and 4. A volume has `relief` and `network` alone.
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
        half = self.responses[::2, ::2]  # where they were computed
        energies = np.sqrt(np.square(half).reshape(*half.shape[:2], 3, 5).mean(axis=-1))
        return double(energies, self.responses.shape[:2])


def boundary_maps(
    picture: Picture,
    inside: NDArray[np.bool_] | None = None,
    network: BoundaryNetwork | None = None,
    network_relief: float = NETWORK_RELIEF,
    sizes: tuple[float, ...] = (1.0,),
) -> BoundaryMaps:
    """Return the maps of a photograph (two axes, three channels); textons are fitted to pixels inside only.

    The network is that of the package unless another is given; `network_relief` is its weight in the relief, and
    `sizes` are those at which it sees the image.
    """
    pool = ThreadPoolExecutor(1)  # the network and the filters take about as long, and both without the interpreter
    seen = pool.submit((network or BoundaryNetwork.fitted()).mean_log_odds, picture.values, sizes)
    pool.shutdown(wait=False)
    lab = np.ascontiguousarray(np.moveaxis(picture.colors, -1, 0))
    lab2 = halve(lab)
    color = {"g1": gaussian_gradient(lab, 1.0), "g2": gaussian_gradient(lab, 2.0)}
    color["g4"] = gaussian_gradient(lab2, 2.0, stride=2)
    responses = filter_responses(lab[:1], lab2[:1])
    textons = _textons(responses, inside)
    smooth_lightness = filter_separable(lab[:1], gaussian(0.7), gaussian(0.7))[0]
    lightness = _soft_bins(smooth_lightness, 0, 100, 13)
    chroma = np.concatenate([_soft_bins(channel, -60, 60, 17) for channel in lab[1:]])
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
    log_odds = seen.result()
    relief += network_relief / (1 + np.exp(-log_odds[0]))
    return BoundaryMaps(color, histogram, relief, log_odds, double(textons, shape), double(np.abs(responses), shape))


def filter_responses(lightness: Maps, half_lightness: Maps) -> NDArray[np.float32]:
    """Return compressed first and second derivatives of lightness at scales 1, 2 and 4, at half size, (h, w, 15)."""
    found = []
    for maps, scale, stride in ((lightness, 1.0, 2), (lightness, 2.0, 2), (half_lightness, 2.0, 1)):
        smooth, d1, d2 = (gaussian(scale, order) for order in range(3))
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
    """Return, at half size, the weight of pixels in each histogram bin that has any, interpolated linearly."""
    position = np.clip((channel - low) * np.float32((n_bins - 1) / (high - low)), 0, n_bins - 1)
    is_lower = np.bincount(position.ravel().astype(np.int32), minlength=n_bins) > 0
    used = np.flatnonzero(is_lower | np.append(False, is_lower[:-1])).astype(np.float32)
    height, width = channel.shape
    out = np.empty((used.size, (height + 1) // 2, (width + 1) // 2), np.float32)
    kernels.halve_soft_bins(position, used, np.empty((2, width), np.float32), out)
    return out


def gaussian(scale: float, order: int = 0) -> NDArray[np.float32]:
    """Return the weights of a Gaussian filter, truncated at three scales, or of its first or second derivative.

    A Gaussian sums to 1. The positive weights of a derivative sum to 1 and the negative ones to -1: the first is the
    mean after a pixel less the mean before it.
    """
    radius = int(3 * scale + 0.5)
    offsets = np.arange(-radius, radius + 1, dtype=np.float64)
    weights = np.exp(-0.5 * np.square(offsets / scale))
    if order == 0:
        return (weights / weights.sum()).astype(np.float32)
    if order == 1:
        weights = offsets * weights
    else:
        weights = (np.square(offsets / scale) - 1) * weights
        weights -= weights.mean()
    return (2 * weights / np.abs(weights).sum()).astype(np.float32)


def filter_separable(maps: Maps, across: NDArray[np.float32], down: NDArray[np.float32]) -> Maps:
    """Correlate maps with `across` along rows and with `down` along columns; borders are mirrored.

    SciPy's correlate1d takes ten times as long: it works in double precision, one pixel at a time.
    """
    maps = np.require(maps, np.float32, ("C", "W"))
    _, height, width = maps.shape
    columns = np.pad(np.arange(width), across.size // 2, mode="symmetric")
    rows = np.pad(np.arange(height), down.size // 2, mode="symmetric")
    padded, middle = np.empty(columns.size, np.float32), np.empty((height, width), np.float32)
    out = np.empty_like(maps)
    kernels.filter_maps(maps, across, down, columns, rows, padded, middle, out)
    return out


def gaussian_gradient(maps: Maps, scale: float, stride: int = 1) -> Gradient:
    """Return the gradient of maps at a scale in pixels of the maps."""
    smooth, derivative = gaussian(scale), gaussian(scale, 1)
    return filter_separable(maps, derivative, smooth), filter_separable(maps, smooth, derivative), stride


def max_oriented_gradient(gradient: Gradient) -> NDArray[np.float32]:
    """Return max over t of 1/2 sum over maps of |cos(t) dx + sin(t) dy|, (height, width).

    Where the maps are the bins of a histogram this is the largest total variation distance, 0 to 1, between the
    histograms on the two sides of a pixel.
    """
    angles = np.pi * np.arange(N_ORIENTATIONS) / N_ORIENTATIONS
    dx, dy, _ = gradient
    out = np.empty(dx.shape[1:], np.float32)
    cosines, sines = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
    kernels.max_oriented_gradient(dx, dy, cosines, sines, np.empty(dx.shape[2], np.float32), out)
    return out


def structure_tensor_norm(gradient: Gradient) -> NDArray[np.float32]:
    """Return the maximum over directions of the norm, over maps, of the directional derivative, (height, width).

    It is the root of the larger eigenvalue of the structure tensor.
    """
    dx, dy, _ = gradient
    xx, yy, xy = np.square(dx).sum(axis=0), np.square(dy).sum(axis=0), (dx * dy).sum(axis=0)
    return np.sqrt((xx + yy) / 2 + np.sqrt(np.square((xx - yy) / 2) + np.square(xy)))


def halve(maps: Maps) -> Maps:
    """Return the means of blocks of 2 x 2 pixels; an odd last row or column is repeated."""
    n_maps, height, width = maps.shape
    out = np.empty((n_maps, (height + 1) // 2, (width + 1) // 2), np.float32)
    kernels.halve_maps(np.require(maps, np.float32, ("C", "W")), out)
    return out


def double(values: NDArray, shape: tuple[int, ...]) -> NDArray:
    """Repeat the pixels of a halved map along both axes, cropped to the shape of the image."""
    return values.repeat(2, axis=0).repeat(2, axis=1)[: shape[0], : shape[1]]
