"""Texture: how strongly, and in which direction, intensities vary around every pixel, at several scales.

At each scale the structure tensor, the mean product of the gradient with itself, has energies along two axes. Its
matrix logarithm has three entries, which vary about as much in strong as in weak texture (Arsigny et al., Log-Euclidean
metrics, 2006, doi:10.1002/mrm.20965), and their means over a window describe the texture there. Windows that
lie apart, and mostly in one kind, say how much these means vary within a kind. There are kinds of texture only if
the means of all windows vary far more than that in some direction, and if intensities form no regions or objects.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.ndimage import affine_transform, gaussian_filter
from scipy.special import gammaincinv

from spinseg.image.layout import Floats, Mask
from spinseg.image.picture import Picture

SCALES = (0.5, 1.0, 2.0, 4.0)  # pixels, of the gradients
WINDOW = 8.0  # pixels, of the Gaussian that responses are averaged with
APART = 3  # widths of a window, between those that are compared
STEP = 4  # pixels, between windows
MIN_WINDOWS = 400
LEAST_ENERGY = 1e-6  # of a gradient, squared, of the intensity range: the rounding of 8 bits
LEAST_VARIANCE = 2.9  # of all windows, relative to that within a kind, in the direction where it is largest
USED_VARIANCE = 2.0  # in a direction that is used
MOST_VARIANCE = 4.0  # after scaling: with more, what lies between two kinds, across their outline, is a third
REGION, BLUR = 12, 2.0  # pixels: the least width of a region of one intensity, and the Gaussian before it is looked for
MOST_CORRELATION = 0.25  # of intensities at that distance: more is that of regions of one intensity
# Correlation, over windows, of the mean and the logarithm of the standard deviation of intensities: where those vary in
# bright windows only, there are bright objects on a dark ground.
MOST_DEPENDENCE = 0.67
N_ROUNDS = 20


def texture_of(picture: Picture, inside: Mask | None) -> NDArray[np.float32] | None:
    """Return the texture around every pixel of a gray image, (*shape, n), or None where there are no kinds of it.

    Its variance within a kind is about 1, or less where kinds differ much.
    """
    brightness = picture.values.mean(axis=-1)
    inside = np.ones(brightness.shape, bool) if inside is None else inside
    every = (slice(None, None, STEP),) * 2
    if np.count_nonzero(inside[every]) < MIN_WINDOWS or correlation(brightness, inside) > MOST_CORRELATION:
        return None
    share = np.maximum(gaussian_filter(inside.astype(np.float32), WINDOW)[every], 1e-6)

    def pooled(values: Floats) -> Floats:
        return gaussian_filter(values * inside, WINDOW)[every] / share

    level, square = (pooled(power)[inside[every]] for power in (brightness, brightness**2))
    spread = np.log(np.maximum(square - level**2, LEAST_ENERGY))
    scale = max(float(level.std() * spread.std()), 1e-12)
    if abs(float(((level - level.mean()) * spread).mean())) > MOST_DEPENDENCE * scale:
        return None
    means = np.stack([pooled(x) for scale in SCALES for x in log_tensor(brightness, scale)], axis=-1)
    windows = means[inside[every]].astype(np.float64)
    ridge = 1e-6 * np.eye(means.shape[-1])
    apart = np.concatenate([x - y for x, y in pairs(means, inside[every], round(APART * WINDOW / STEP))])
    if len(apart) <= means.shape[-1]:
        return None
    within = narrow_covariance(apart.astype(np.float64) / np.sqrt(2), ridge)
    variances, directions = eigh(np.cov(windows.T) + ridge, within)
    if variances[-1] < LEAST_VARIANCE:
        return None
    used = directions[:, variances > USED_VARIANCE] / np.sqrt(max(variances[-1] / MOST_VARIANCE, 1.0))
    found = np.moveaxis((means - windows.mean(axis=0)) @ used, -1, 0).astype(np.float32)
    full = [affine_transform(x, [1 / STEP] * 2, output_shape=brightness.shape, order=1, mode="nearest") for x in found]
    return np.stack(full, axis=-1)


def correlation(brightness: Floats, inside: Mask) -> float:
    """Return the correlation of intensities at a distance of REGION; 1 where they hardly vary."""
    smooth = gaussian_filter(brightness, BLUR)
    smooth = smooth - smooth[inside].mean()
    near, far = (np.concatenate(side) for side in zip(*pairs(smooth, inside, REGION), strict=True))
    variance = float(smooth[inside].var())
    return float((near * far).mean()) / variance if near.size and variance > LEAST_ENERGY else 1.0


def log_tensor(brightness: Floats, scale: float) -> tuple[Floats, Floats, Floats]:
    """Return the logarithm of the structure tensor: its mean over axes, and its deviations along y and the diagonal."""
    y, x = (scale * gaussian_filter(brightness, scale, order=order) for order in ((1, 0), (0, 1)))
    yy, xx, xy = (gaussian_filter(product, scale) for product in (y * y, x * x, x * y))
    mean, half = (yy + xx) / 2 + LEAST_ENERGY, (yy - xx) / 2
    radius = np.hypot(half, xy)
    high, low = np.log(mean + radius), np.log(np.maximum(mean - radius, LEAST_ENERGY / 2))
    stretch = (high - low) / 2 / np.maximum(radius, 1e-12)
    return (high + low) / 2, stretch * half, stretch * xy


def pairs(values: Floats, inside: Mask, distance: int) -> list[tuple[Floats, Floats]]:
    """Return the values of pairs inside at a distance in steps, along each of two axes."""
    found = []
    for x, i in ((values, inside), (values.swapaxes(0, 1), inside.T)):
        both = i[distance:] & i[:-distance]
        found.append((x[:-distance][both], x[distance:][both]))
    return found


def narrow_covariance(values: Floats, ridge: Floats) -> Floats:
    """Return the covariance of most rows, around 0, on which those that lie far away have little influence.

    Tyler, A distribution-free M-estimator of multivariate scatter, Annals of Statistics 1987, scaled by the median.
    """
    n = values.shape[1]
    found = values.T @ values / len(values) + ridge
    for _ in range(N_ROUNDS):
        lengths = np.maximum(np.einsum("ij,ij->i", values @ np.linalg.inv(found), values), 1e-9)
        found = n * (values / lengths[:, None]).T @ values / len(values)
        found = found / np.trace(found) + ridge
    lengths = np.einsum("ij,ij->i", values @ np.linalg.inv(found), values)
    return found * float(np.median(lengths)) / (2 * gammaincinv(n / 2, 0.5)) + ridge  # the median of chi-squared
