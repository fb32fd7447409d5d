"""Any number of channels in three components, for methods made for color. Only NumPy and SciPy are needed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls
from scipy.special import gammainc, gammaincinv

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

ENDS = (0.5, 99.8)  # percentiles between which nearly all values lie
MAX_PAIRS = 100_000  # of neighbors along each axis, and pixels, that estimates are made from
N_GROUPS = 24  # of equally many pairs, by their level, in each of which the noise is measured
N_KNOTS = 1024  # of the curve that stabilizes the variance
KEPT_SHARE = 0.75  # of the differences, the smallest: others may cross an outline
KEPT_MEAN = 0.5149  # of the absolute values of the smallest three quarters of standard normal numbers
MIN_NOISE = 0.01  # of the range of a channel: one with less is treated as if it had this much
MIN_EIGENVALUE = 0.01  # of the noise covariance, relative to the mean: with a copy of a channel it has one of 0


def three_components(
    image: NDArray[Any], inside: Mask | None = None, like: NDArray[Any] | None = None
) -> NDArray[np.float32]:
    """Return an image of any number of channels, (*shape, n_channels), in three components from 0 to 1, (*shape, 3).

    The variance of each channel is stabilized, so that its noise is equal at every level. The channels are whitened by
    the covariance of their noise, and the three directions of the most variance are taken: those of maximum noise
    fraction, Green et al., IEEE Transactions on Geoscience and Remote Sensing 1988. All of them have one scale. Noise
    is what neighbors differ by. Constant channels are ignored, and a component without a channel is constant. Only
    pixels `inside` count; or those of `like`, of the same channels, if it is given.

    Examples
    --------
    >>> bands = np.random.default_rng(0).poisson(9, (20, 30, 5))
    >>> three_components(bands).shape
    (20, 30, 3)
    """
    shown = image if like is None else like
    seen = np.ones(shown.shape[:-1], bool) if inside is None or like is not None else inside
    table = image.reshape(-1, image.shape[-1])
    n_pixels, table = len(table), table if like is None else np.concatenate([like.reshape(-1, like.shape[-1]), table])
    pixels, (first, second) = _spread(np.flatnonzero(seen)), _neighbors(seen)
    stable = []  # of each channel that varies, the values of all pixels
    for channel in table.T:
        within = channel[: seen.size][seen.ravel()]
        low, high = float(within.min()), float(within.max())
        if high > low:
            lower, upper = _ends(channel[pixels], low, high)
            curve = _stabilizing(channel[first], channel[second], (low, high), MIN_NOISE * (upper - lower))
            stable.append(np.interp(channel, np.linspace(low, high, N_KNOTS), curve).astype(np.float32))
    components = np.zeros((3, len(table)), np.float32)
    if stable:
        table = np.stack(stable)
        differences = (table[:, first] - table[:, second]).T.astype(np.float64)
        directions = _directions(table[:, pixels].T.astype(np.float64), _noise_covariance(differences))
        components[: directions.shape[1]] = directions.T.astype(np.float32) @ table
        components -= components[:, pixels].mean(axis=1, keepdims=True)
    low, high = _ends(components[:, pixels], float(components.min()), float(components.max()))
    scaled = np.clip((components - np.float32(low)) / np.float32(high - low if high > low else 1), 0, 1)
    return np.ascontiguousarray(scaled.T[-n_pixels:]).reshape(*image.shape[:-1], 3)


def _ends(values: NDArray[Any], low: float, high: float) -> tuple[float, float]:
    """Return between which numbers nearly all values lie; if there is nothing between them, `low` and `high`."""
    lower, upper = np.percentile(values, ENDS).tolist()
    return (lower, upper) if upper > lower else (low, high)


def _spread(indices: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return at most MAX_PAIRS of many indices, evenly spread."""
    return indices[:: -(-len(indices) // MAX_PAIRS) or 1]


def _neighbors(seen: Mask) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return pixels, and their neighbors below and to the right, where both are seen."""
    number, pairs = np.arange(seen.size).reshape(seen.shape), []
    for axis in (seen.ndim - 2, seen.ndim - 1):
        here, there = ((slice(None),) * axis + (side,) for side in (slice(-1), slice(1, None)))
        both = seen[here] & seen[there]
        pairs.append((_spread(number[here][both]), _spread(number[there][both])))
    first, second = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
    return first, second


def _stabilizing(first: NDArray[Any], second: NDArray[Any], ends: tuple[float, float], least: float) -> Floats:
    """Return the curve over a channel's range on which its noise has variance 1 at every level, at N_KNOTS levels.

    Given the mean of two neighbors, the variance of their difference is constant for Gaussian noise, proportional to
    the mean for counts, and to its square for speckle. A polynomial of positive terms is fitted to it, and the curve is
    the integral of 1 / its root. Pairs at an end of the range count nothing, since there values are clipped; noise of
    less than `least` counts as that much.
    """
    low, high = ends
    level, difference = (first.astype(np.float64) + second) / 2, first.astype(np.float64) - second
    unclipped = np.flatnonzero((level > low) & (level < high))
    groups = np.array_split(unclipped[np.argsort(level[unclipped])], min(N_GROUPS, max(1, len(unclipped) // 20)))
    places, variances = [(low + high) / 2], [least**2]
    if len(groups[0]):
        places = [float(level[group].mean()) for group in groups]
        variances = [max(_trimmed_deviation(difference[group]), least) ** 2 for group in groups]
    terms = _terms((np.array(places) - low) / (high - low)) / np.array(variances)[:, None]
    weights, _ = nnls(terms, np.ones(len(terms)))  # of relative errors: outlines raise the variance, not lower it
    deviation = np.sqrt(np.maximum(_terms(np.linspace(0, 1, N_KNOTS)) @ weights, least**2))
    rises = (high - low) / (N_KNOTS - 1) / ((deviation[1:] + deviation[:-1]) / 2)
    return np.concatenate([[0.0], np.cumsum(rises)])


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
    consistency = KEPT_SHARE / gammainc(n_channels / 2 + 1, gammaincinv(n_channels / 2, KEPT_SHARE))  # of chi-square
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
