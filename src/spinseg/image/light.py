"""Uneven light: a smooth field that multiplies the intensities of an image, or is added to them, as haze is.

The intensity of a point, or its logarithm, is the level of its class, plus a polynomial of the position with a Gaussian
prior, plus noise of that class. Classes and polynomial are estimated in turn (Wells et al., Adaptive segmentation of
MRI data, IEEE TMI 1996, doi:10.1109/42.511747), for every small number of classes. There is such a field only if it
gains evidence, as classes alone may explain the image as well, and if it makes the small differences between neighbors
likelier, too, as a sharp step is no light.
"""

from collections.abc import Sequence
from functools import reduce
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.polynomial import Legendre
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from spinseg.image.intensity import MAX_CODE
from spinseg.image.layout import Floats, Mask
from spinseg.image.picture import Picture

DEGREE = 2  # of the polynomial
FIELD_DEVIATION = 0.25  # of each coefficient, before the image is seen
SCALE = 1.5  # pixels, of the Gaussian that smooths an image before points are taken
NEAR = 3  # pixels, between those whose difference says what light is
MAX_POINTS, MIN_POINTS = 1200, 200
DARKEST = 0.02  # of the brightest intensity: darker points say nothing about the light
LEAST_DEVIATION = 0.02  # of the points of a class
MAX_CLASSES = 5
OUTLIERS = 0.05  # share of points that belong to no class, such as those on edges
N_ROUNDS = 20


class Light(NamedTuple):
    """Uneven light on an image: a field of its shape that multiplies intensities, 1 on average.

    If it `is_added`, it is added to them instead, 0 on average, as a share of full intensity.
    """

    field: NDArray[np.float32]
    is_added: bool

    def removed_from(self, picture: Picture) -> Picture:
        """Return the image under even light; nearly its brightest pixels keep their intensity."""
        if self.is_added:
            flat = picture.codes - MAX_CODE * self.field[..., None]
            flat -= min(float(np.quantile(flat, 0.001)), 0.0)
        else:
            flat = picture.codes / self.field[..., None]
        flat *= np.quantile(picture.codes, 0.999) / max(float(np.quantile(flat, 0.999)), 1e-9)
        return Picture(np.rint(np.clip(flat, 0, MAX_CODE)).astype(np.uint16))


class Fit(NamedTuple):
    """The coefficients of a field, and the log evidence for it and its classes."""

    coefficients: Floats
    evidence: float


def light_of(picture: Picture, inside: Mask | None) -> Light | None:
    """Return the light on every pixel, or None where even light explains the image as well.

    Whether it multiplies or is added is what gains more evidence.
    """
    inside = np.ones(picture.shape, bool) if inside is None else inside
    share = gaussian_filter(inside.astype(np.float32), SCALE)  # what is outside does not darken the rim
    brightness = gaussian_filter(picture.values.mean(axis=-1) * inside, SCALE) / np.maximum(share, 1e-6)
    shown = inside & (brightness > DARKEST * brightness[inside].max())
    step = max(3, int(np.ceil((brightness.size / MAX_POINTS) ** (1 / brightness.ndim))))
    every = tuple(slice(step // 2, None, step) for _ in brightness.shape)
    points = brightness[every][shown[every]].astype(np.float64)
    if points.size < MIN_POINTS:
        return None
    axes = [np.linspace(-1, 1, length) for length in brightness.shape]
    near = [axis[part] for axis, part in zip(axes, every, strict=True)]
    terms = [term for term in product(range(DEGREE + 1), repeat=len(axes)) if 0 < sum(term) <= DEGREE]
    basis = np.stack([polynomial(near, term)[shown[every]] for term in terms], axis=1)
    unit = float(np.median(points))
    gains = {}
    for is_added in (False, True):
        levels = points / unit if is_added else np.log(points)
        even, uneven = (best_fit(levels, uses) for uses in (basis[:, :0], basis))
        gains[is_added] = uneven.evidence - even.evidence, uneven.coefficients
    is_added = gains[True][0] > gains[False][0]
    gain, coefficients = gains[is_added]
    if gain <= 0:
        return None
    field = np.zeros(brightness.shape, np.float32)
    for coefficient, term in zip(coefficients, terms, strict=True):
        field += np.float32(coefficient) * polynomial(axes, term).astype(np.float32)
    levels = brightness / unit if is_added else np.log(np.maximum(brightness, 1e-9))
    if local_gain(np.where(shown, levels, np.nan), field) <= 0:
        return None
    field -= np.mean(field[shown])
    return Light(np.float32(unit) * field if is_added else np.exp(field), is_added)


def polynomial(axes: Sequence[Floats], degrees: Sequence[int]) -> Floats:
    """Return the product of Legendre polynomials of these degrees on a grid of positions along each axis."""
    return reduce(np.multiply.outer, [Legendre.basis(d)(axis) for axis, d in zip(axes, degrees, strict=True)])


def best_fit(levels: Floats, basis: Floats) -> Fit:
    """Return the fit with the number of classes of largest evidence."""
    return max((fitted(levels, basis, k) for k in range(1, MAX_CLASSES + 1)), key=lambda fit: fit.evidence)


def fitted(levels: Floats, basis: Floats, n_classes: int) -> Fit:
    """Return the best field of a basis, (n_points, n_terms), for points in a number of classes.

    It starts from the field that explains most of the points as a single class.
    """
    n_points, n_terms = basis.shape
    prior = np.eye(n_terms) / FIELD_DEVIATION**2
    variance = float(levels.var()) + LEAST_DEVIATION**2
    centered = levels - levels.mean()
    coefficients = np.linalg.solve(basis.T @ basis / variance + prior, basis.T @ centered / variance)
    means = np.quantile(levels - basis @ coefficients, (np.arange(n_classes) + 0.5) / n_classes)
    variances = np.full(n_classes, variance / n_classes**2)
    shares = np.full(n_classes, (1 - OUTLIERS) / n_classes)
    outlier = OUTLIERS / max(float(np.ptp(levels)), LEAST_DEVIATION)
    log_likelihood, precision = 0.0, prior
    for _ in range(N_ROUNDS):
        residuals = (levels - basis @ coefficients)[:, None] - means
        density = shares / np.sqrt(2 * np.pi * variances) * np.exp(-0.5 * residuals**2 / variances)
        total = density.sum(axis=1) + outlier
        weights = density / total[:, None]
        log_likelihood = float(np.log(total).sum()) - 0.5 * float(coefficients @ prior @ coefficients)
        precise = weights / variances
        precision = basis.T @ (precise.sum(axis=1)[:, None] * basis) + prior
        coefficients = np.linalg.solve(precision, basis.T @ (precise.sum(axis=1) * levels - precise @ means))
        rest, sizes = levels - basis @ coefficients, np.maximum(weights.sum(axis=0), 1e-9)
        means = rest @ weights / sizes
        variances = (weights * (rest[:, None] - means) ** 2).sum(axis=0) / sizes + LEAST_DEVIATION**2
        shares = np.maximum((1 - OUTLIERS) * sizes / sizes.sum(), 1e-9)
    of_field = np.linalg.slogdet(precision * FIELD_DEVIATION**2)[1]
    return Fit(coefficients, log_likelihood - 0.5 * float(of_field) - 0.5 * (3 * n_classes - 1) * np.log(n_points))


def local_gain(levels: NDArray[np.floating], field: NDArray[np.floating]) -> float:
    """Return how much likelier a field makes the differences between near pixels; levels are NaN where unknown.

    Most of them lie in one class, where light is all that makes them differ, apart from noise. Differences have a
    Cauchy distribution, on which edges have little influence.
    """
    every, gain = (slice(None, None, NEAR),) * levels.ndim, 0.0
    for axis in range(levels.ndim):
        seen, light = np.diff(levels[every], axis=axis), np.diff(field[every], axis=axis)
        light, seen = light[np.isfinite(seen)], seen[np.isfinite(seen)]
        if seen.size:
            gain += cauchy(seen - light) - cauchy(seen)
    return gain


def cauchy(values: NDArray[np.floating]) -> float:
    """Return the log-likelihood of values, up to a constant, under a Cauchy distribution around 0 of their scale."""
    scale = float(np.median(np.abs(values))) + 1e-3
    return -float(np.log1p((values / scale) ** 2).sum()) - values.size * float(np.log(scale))
