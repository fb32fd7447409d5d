"""Any number of channels in three components, for methods made for color. Only NumPy and SciPy are needed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls
from scipy.stats import chi2

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

ENDS = (0.5, 99.8)  # percentiles between which nearly all values lie
MAX_PAIRS = 200_000  # of neighbors, from which the noise is estimated
N_GROUPS = 24  # of equally many pairs, by their level, in each of which the noise is measured
N_KNOTS = 1024  # of the curve that stabilizes the variance
KEPT_SHARE = 0.75  # of the differences, the smallest: others may cross an outline
KEPT_MEAN = 0.5149  # of the absolute values of the smallest three quarters of standard normal numbers
MIN_NOISE = 0.01  # of the range of a channel: one with less is treated as if it had this much
MIN_EIGENVALUE = 0.01  # of the noise covariance, relative to the mean: with a copy of a channel it has one of 0


def three_components(image: NDArray[Any], inside: Mask | None = None) -> NDArray[np.float32]:
    """Return an image of any number of channels, (*shape, n_channels), in three components from 0 to 1, (*shape, 3).

    The variance of each channel is stabilized, so that its noise is equal at every level. The channels are whitened by
    the covariance of their noise, and the three directions of the most variance are taken: those of maximum noise
    fraction, Green et al., IEEE Transactions on Geoscience and Remote Sensing 1988. All of them have one scale. Noise
    is what neighbors differ by. Constant channels are ignored, and a component without a channel is constant. Only
    pixels `inside` count.

    Examples
    --------
    >>> bands = np.random.default_rng(0).poisson(9, (20, 30, 5))
    >>> three_components(bands).shape
    (20, 30, 3)
    """
    seen = np.ones(image.shape[:-1], bool) if inside is None else inside
    varied = [c for c in range(image.shape[-1]) if np.ptp(image[..., c][seen]) > 0]
    components = np.zeros((*seen.shape, 3), np.float32)
    if varied:
        stable = np.stack([_stabilized(image[..., c].astype(np.float64), seen) for c in varied], axis=-1)
        directions = _directions(stable[seen], _noise_covariance(np.subtract(*_neighbors(stable, seen))))
        components[..., : directions.shape[1]] = (stable - stable[seen].mean(axis=0)) @ directions
    low, high = _range(components[seen])
    return np.clip((components - low) / (high - low), 0, 1)


def _range(values: NDArray[np.floating]) -> tuple[float, float]:
    """Return between which numbers nearly all values lie; none of them are equal."""
    low, high = np.percentile(values, ENDS)
    if high <= low:
        low, high = values.min(), values.max()
    return float(low), float(high if high > low else low + 1)


def _neighbors(values: Floats, seen: Mask) -> tuple[Floats, Floats]:
    """Return the values of pixels and of their neighbors below and to the right, where both are seen."""
    pairs: list[tuple[Floats, Floats]] = []
    for axis in (seen.ndim - 2, seen.ndim - 1):
        here, there = ((slice(None),) * axis + (side,) for side in (slice(-1), slice(1, None)))
        both = seen[here] & seen[there]
        every = max(1, 2 * np.count_nonzero(both) // MAX_PAIRS)
        pairs.append((values[here][both][::every], values[there][both][::every]))
    first, second = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
    return first, second


def _stabilized(channel: Floats, seen: Mask) -> Floats:
    """Return a channel on a scale on which its noise has variance 1 at every level.

    Given the mean of two neighbors, the variance of their difference is constant for Gaussian noise, proportional to
    the mean for counts, and to its square for speckle. A polynomial of positive terms is fitted to it, and the scale is
    the integral of 1 / its root. Pairs at an end of the range count nothing, since there values are clipped.
    """
    low, high = float(channel[seen].min()), float(channel[seen].max())
    lower, upper = _range(channel[seen])
    least = MIN_NOISE * (upper - lower)
    first, second = _neighbors(channel, seen)
    level = (first + second) / 2
    unclipped = np.flatnonzero((level > low) & (level < high))
    groups = np.array_split(unclipped[np.argsort(level[unclipped])], min(N_GROUPS, max(1, len(unclipped) // 20)))
    places, variances = [(low + high) / 2], [least**2]
    if len(groups[0]):
        places = [float(level[group].mean()) for group in groups]
        variances = [max(_trimmed_deviation(first[group] - second[group]), least) ** 2 for group in groups]
    terms = _terms((np.array(places) - low) / (high - low)) / np.array(variances)[:, None]
    weights, _ = nnls(terms, np.ones(len(terms)))  # of relative errors: outlines raise the variance, not lower it
    deviation = np.sqrt(np.maximum(_terms(np.linspace(0, 1, N_KNOTS)) @ weights, least**2))
    rises = (high - low) / (N_KNOTS - 1) / ((deviation[1:] + deviation[:-1]) / 2)
    curve = np.concatenate([[0.0], np.cumsum(rises)])
    return np.interp(channel, np.linspace(low, high, N_KNOTS), curve)


def _terms(level: Floats) -> Floats:
    """Return the terms of the variance at levels from 0 to 1: it may rise with the level, or fall in a negative."""
    return np.stack([np.ones_like(level), level, level**2, 1 - level, (1 - level) ** 2], axis=1)


def _trimmed_deviation(differences: Floats) -> float:
    """Return the standard deviation of noise, from differences of two pixels, some of which have another cause."""
    sizes = np.sort(np.abs(differences))
    return float(sizes[: max(1, round(KEPT_SHARE * len(sizes)))].mean()) / (KEPT_MEAN * np.sqrt(2))


def _noise_covariance(differences: Floats) -> Floats:
    """Return the covariance of the noise, from differences of two pixels, (n, n_channels), the nearest of which count.

    These are the concentration steps of the minimum covariance determinant (Rousseeuw and Van Driessen 1999).
    """
    n_channels = differences.shape[1]
    consistency = KEPT_SHARE / chi2.cdf(chi2.ppf(KEPT_SHARE, n_channels), n_channels + 2)
    covariance = np.eye(n_channels)
    for _ in range(5 if len(differences) else 0):
        distances = np.einsum("ij,ij->i", differences @ np.linalg.inv(covariance), differences)
        near = differences[distances <= np.quantile(distances, KEPT_SHARE)]
        values, vectors = np.linalg.eigh(near.T @ near / len(near) * consistency / 2)
        values = np.maximum(values, max(MIN_EIGENVALUE * values.mean(), MIN_EIGENVALUE))
        covariance = (vectors * values) @ vectors.T
    return covariance


def _directions(table: Floats, noise: Floats) -> Floats:
    """Return the three directions of the most variance in units of noise, (n_channels, at most 3), brighter is more."""
    values, vectors = np.linalg.eigh(noise)
    whitening = vectors / np.sqrt(values)
    _, axes = np.linalg.eigh(np.atleast_2d(np.cov(table @ whitening, rowvar=False)))
    directions = whitening @ axes[:, ::-1][:, :3]
    return directions * np.where(directions.sum(axis=0) < 0, -1, 1)
