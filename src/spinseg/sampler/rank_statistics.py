"""Rank-normalized, split R-hat and effective sample sizes (Vehtari et al. 2021, doi:10.1214/20-BA1221).

The tests compare them with ArviZ, which takes half a second to load, as much as a photograph takes to segment.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import ndtri

Traces = NDArray[np.floating] | NDArray[np.bool_]  # (chain, draw), at least 4 draws of each


def r_hat(traces: Traces) -> float:
    """The larger R-hat of location and of scale; NaN where the halves of chains never vary."""
    halves = _halves(traces)
    folded = np.abs(halves - np.median(halves))
    return max(_plain_r_hat(_normal_scores(halves)), _plain_r_hat(_normal_scores(folded)))


def ess_bulk(traces: Traces) -> float:
    """The effective sample size of all chains together for location."""
    return _ess(_normal_scores(_halves(traces)))


def ess_tail(traces: Traces) -> float:
    """The smaller of those for the 5% and 95% quantiles."""
    return min(_ess(_halves(traces <= np.quantile(traces, level))) for level in (0.05, 0.95))


def ess_mean(traces: Traces) -> float:
    """That for the mean."""
    return _ess(_halves(traces))


def _halves(traces: Traces) -> NDArray[np.floating]:
    """The first and last halves of chains, as chains of their own."""
    half = traces.shape[1] // 2
    return np.concatenate([traces[:, :half], traces[:, -half:]]).astype(float)


def _normal_scores(values: NDArray[np.floating]) -> NDArray[np.floating]:
    """The normal quantiles of the ranks of all values; those that tie share their mean rank."""
    _, place, times = np.unique(values, return_inverse=True, return_counts=True)
    rank = np.cumsum(times) - (times - 1) / 2
    return ndtri((rank - 3 / 8) / (values.size + 1 / 4))[place].reshape(values.shape)


def _plain_r_hat(chains: NDArray[np.floating]) -> float:
    n = chains.shape[1]
    between, within = chains.mean(axis=1).var(ddof=1), chains.var(axis=1, ddof=1).mean()
    return float(np.sqrt(between / within + (n - 1) / n))


def _ess(chains: NDArray[np.floating]) -> float:
    """The number of values over the sum of their autocorrelations, by Geyer's initial monotone sequence."""
    m, n = chains.shape
    if np.ptp(chains) < np.finfo(float).resolution:
        return float(chains.size)
    transform = rfft(chains - chains.mean(axis=1, keepdims=True), next_fast_len(2 * n, real=True))
    covariance = irfft(np.abs(transform) ** 2, next_fast_len(2 * n, real=True))[:, :n].mean(axis=0) / n
    variance = covariance[0] + (chains.mean(axis=1).var(ddof=1) if m > 1 else 0.0)
    correlation = 1 - (covariance[0] * n / (n - 1) - covariance) / variance
    correlation[0] = 1.0
    n_pairs = max(n - 3, 1) // 2 + 1 if n > 4 else 1
    even, odd = correlation[: 2 * n_pairs : 2], correlation[1 : 2 * n_pairs : 2]
    pairs = even[: odd.size] + odd
    ends = np.flatnonzero(pairs <= 0)
    end = int(ends[0]) if ends.size else pairs.size - 1
    last = even[end] if pairs[end] >= 0 or even[end] > 0 else 0.0
    length = -1 + 2 * np.minimum.accumulate(pairs[:end]).sum() + last
    return float(chains.size / max(length, 1 / np.log10(chains.size)))
