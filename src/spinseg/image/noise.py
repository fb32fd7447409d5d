"""How much noise an image has, and how many independent observations its pixels make: measured, not assumed.

Pixels of a class share its texture, and noise is correlated between neighbors. So the means of two sites of one class
differ more than those of as many independent pixels, by a factor: the overdispersion. Its inverse is the number of
observations that a pixel counts for.
"""

import numpy as np
import scipy.sparse as sparse
from numpy.typing import NDArray
from scipy.ndimage import correlate1d, gaussian_filter

from spinseg.graph.site_graph import SiteGraph
from spinseg.image.features import site_means, site_sizes
from spinseg.image.layout import Floats, Ints
from spinseg.image.picture import Picture

REFERENCE_NOISE = 0.02  # of the intensity range: that of photographs
MIN_NOISY_SHARE = 0.2  # of the pixels: where fewer differ from their surroundings, those are details, not noise
GAUSSIAN_MAD = 0.6745  # the median absolute value of a standard normal
MIN_SCALE = 0.5  # pixels: a narrower Gaussian changes nothing
MAX_SCALE = 0.45  # of the width of a site: a wider one moves its outline

# Observations of a site of one channel: with one, any classes are as good as a single class of all words. Words of
# several channels tell classes better apart.
LEAST_OBSERVATIONS = 1.8
# Observations of a pixel. With more than the most, sites with pixels of two classes are a third.
LEAST_WEIGHT, MOST_WEIGHT = 0.06, 1 / 3
USUAL_VARIATION = 0.04  # standard deviation, of the intensity range, of the mean of a site in its class
N_DISTANCES = 3  # at which sites are compared, in steps from one to one that touches it
MAX_FIRST_SITES, MAX_PAIRS = 1000, 4000  # of the sites that are compared
MAX_DIRECTIONS = 8  # in which means vary most
N_ROUNDS = 60  # of expectation and maximization


def noise_deviation(channel: NDArray[np.floating]) -> float:
    """The standard deviation of the noise of a channel, (*shape), independent from pixel to pixel.

    It is that of second differences along both of the last axes, which are 0 on slopes and along straight edges, from
    their median, on which few details have little influence. Where values are clipped there is no noise to be seen:
    pixels without a difference do not count, unless they are nearly all. Immerkaer, Fast noise variance estimation,
    Computer Vision and Image Understanding 1996. scikit-image's `estimate_sigma` has no such exception, and needs
    PyWavelets.
    """
    difference = np.abs(correlate1d(correlate1d(channel, [1.0, -2.0, 1.0], axis=-1), [1.0, -2.0, 1.0], axis=-2))
    noisy = difference[difference > 0]
    if noisy.size < MIN_NOISY_SHARE * difference.size:
        return 0.0
    return float(np.median(noisy)) / (6.0 * GAUSSIAN_MAD)


def pixel_noise(picture: Picture) -> tuple[float, float]:
    """Return the standard deviation of the noise, of the intensity range, of all pixels and of every second.

    The second is the larger one where noise is correlated between neighbors.
    """
    channels = np.moveaxis(picture.values, -1, 0)
    every_second = (slice(None, None, 2),) * len(picture.shape)
    fine, coarse = ([noise_deviation(x[part]) for x in channels] for part in ((), every_second))
    return float(np.sqrt(np.mean(np.square(fine)))), float(np.sqrt(np.mean(np.square(coarse))))


def smoothed(picture: Picture, pixels_per_site: float) -> Picture:
    """Return the image, smoothed by a Gaussian until its noise is that of photographs.

    Sites of a noisy image follow the noise otherwise, and each has a mean of its own.
    """
    fine, coarse = pixel_noise(picture)
    n_axes = len(picture.shape)
    if fine == 0:
        return picture
    correlation = max(coarse / fine, 1.0)
    scale = (coarse / REFERENCE_NOISE) ** (2 / n_axes) / (2 * np.sqrt(np.pi)) * np.sqrt(correlation)
    scale = min(scale, MAX_SCALE * pixels_per_site ** (1 / n_axes))
    if scale < MIN_SCALE:
        return picture
    smooth = [gaussian_filter(x.astype(np.float32), scale) for x in np.moveaxis(picture.codes, -1, 0)]
    return Picture(np.rint(np.stack(smooth, axis=-1)).astype(np.uint16))


def observations_per_pixel(picture: Picture, sites: Ints, graph: SiteGraph) -> float:
    """Return how many independent observations a pixel counts for.

    Where classes are so small that hardly any sites lie in the same one, overdispersion cannot be seen, and there is
    none to see without noise. The number is therefore at least the one that follows from the noise if means vary by
    USUAL_VARIATION within a class, and at least LEAST_WEIGHT, or for one channel what gives a site
    LEAST_OBSERVATIONS.
    """
    (fine, coarse), n_pixels = pixel_noise(picture), np.count_nonzero(sites >= 0) / graph.n_sites
    is_gray = np.ptp(picture.codes, axis=-1).max() == 0
    least = min(LEAST_OBSERVATIONS / n_pixels, 1.0) if is_gray else LEAST_WEIGHT
    if fine == 0:
        return least
    share = USUAL_VARIATION**2 / (USUAL_VARIATION**2 + coarse**2)
    usual = 1 / (max(coarse / fine, 1.0) + (n_pixels - 1) * share)
    measured = 1 / max(overdispersion(picture.colors, sites, graph), 1.0)
    return max(least, usual, min(measured, MOST_WEIGHT))


def overdispersion(values: NDArray[np.floating], sites: Ints, graph: SiteGraph) -> float:
    """Return the variance of the mean of a site within its class, relative to that of independent pixels.

    It is the largest over distances, and over directions in the space of channels. `values` has channels last.
    """
    area, means = site_sizes(sites), site_means(values, sites)
    inside = sites >= 0
    residuals = values[inside] - means[sites[inside]]
    spread = residuals.std(axis=0)
    used = spread > 1e-3 * spread.max()
    if not used.any():
        return 1.0
    residuals, means = residuals[:, used], means[:, used]
    each = np.maximum(area - 1, 1)
    variance = np.bincount(sites[inside], np.square(residuals).sum(axis=1), graph.n_sites) / each
    variance += 1e-6 * variance.mean()
    scaled = residuals / np.sqrt(variance[sites[inside]])[:, None]
    whitening = np.linalg.inv(np.linalg.cholesky(scaled.T @ scaled / each.sum()))
    worst = 0.0
    for i, j in _pairs_at_distances(graph):
        pooled = (variance[i] * area[i] + variance[j] * area[j]) / (area[i] + area[j])
        differences = (means[i] - means[j]) / np.sqrt(pooled * (1 / area[i] + 1 / area[j]))[:, None]
        worst = max(worst, _narrow_variance(differences @ whitening.T))
    return worst


def _pairs_at_distances(graph: SiteGraph) -> list[tuple[NDArray[np.integer], NDArray[np.integer]]]:
    """Return pairs of sites 1 to N_DISTANCES steps apart, at most MAX_PAIRS of each, evenly spread over the sites."""
    n = graph.n_sites
    touching = sparse.csr_array((np.ones(graph.neighbors.size, np.int32), graph.neighbors, graph.start), shape=(n, n))
    first = np.arange(0, n, -(-n // MAX_FIRST_SITES))
    seen, found = sparse.eye_array(n, format="csr", dtype=np.int32)[first], []
    reached = seen
    for _ in range(N_DISTANCES):
        ahead = ((reached @ touching) > 0).astype(np.int32)
        reached = ahead - ahead.multiply(seen > 0)
        reached.eliminate_zeros()
        seen = seen + reached
        row, column = reached.nonzero()
        if row.size:
            chosen = np.linspace(0, row.size - 1, min(row.size, MAX_PAIRS)).astype(int)
            found.append((first[row[chosen]], column[chosen]))
    return found


def _narrow_variance(differences: Floats) -> float:
    """Return the largest variance in any direction of the narrower of two normal distributions around 0.

    Pairs in one class follow it, and pairs in two classes the wider one. Both are fitted to the mixture.
    """
    values, vectors = np.linalg.eigh(differences.T @ differences)
    z = differences @ vectors[:, -MAX_DIRECTIONS:]
    lengths = np.square(z).sum(axis=1)
    is_near = lengths <= np.median(lengths)
    shares, ridge = np.array([[0.5], [0.5]]), 1e-9 * (1 + values[-1] / len(z)) * np.eye(z.shape[1])
    weights = np.stack([is_near, ~is_near]).astype(float)
    for _ in range(N_ROUNDS):
        covariances = [(w[:, None] * z).T @ z / max(w.sum(), 1e-9) + ridge for w in weights]
        squares = [np.square(np.linalg.solve(np.linalg.cholesky(c), z.T)).sum(axis=0) for c in covariances]
        log_p = np.log(shares) - 0.5 * (np.array(squares) + np.linalg.slogdet(covariances)[1][:, None])
        weights = np.exp(log_p - np.logaddexp(*log_p))
        shares = np.maximum(weights.mean(axis=1, keepdims=True), 1e-9)
    return float(np.linalg.eigvalsh(covariances[0])[-1])
