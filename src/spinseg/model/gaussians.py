"""Normal likelihoods with conjugate priors."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eigvalsh

from spinseg._validation import check_array, check_real, finite_array, invalid, per_item, site_set
from spinseg.model.likelihoods import MAX_SHAPE, DenseTerm, Floats, HistogramTerm, Likelihood, rows, site_weights
from spinseg.model.priors import log_rising
from spinseg.partition.contingency import sums_of_clusters


def _spread(values: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Weighted mean and variance of each channel; a channel that does not vary gets variance 1."""
    total = max(weights.sum(), np.finfo(float).tiny)
    mean = weights @ values / total
    variance = weights @ (values - mean) ** 2 / total
    return mean, np.where(variance > 1e-20 * mean**2, variance, 1.0)  # rounding makes a constant vary


class DiagonalGaussian(Likelihood):
    """Independent channels, each normal with a normal-inverse-gamma prior.

    A cluster has precision ~ Gamma(shape, rate), and its level is normal around the prior mean with variance
    1 / (kappa precision). With N observations x, less the prior mean, kappa_n = kappa + N, shape_n = shape + N / 2
    and rate_n = rate + (sum x^2 - (sum x)^2 / kappa_n) / 2,

        log p(y_A) = lgamma(shape_n) - lgamma(shape) + shape log rate - shape_n log rate_n +
        log(kappa / kappa_n) / 2 - N log(2 pi) / 2

    Parameters
    ----------
    values : (n_sites, channels) array
    mean, rate : float or (channels,) array, optional
        By default the mean over sites, and the rate at which the prior guess of a cluster's variance, rate / shape,
        is a tenth of the variance over sites.
    kappa, shape : float
    weights : (n_sites,) array, optional
        How many observations a site counts for; any number >= 0, by default 1.
    squares : (n_sites, channels) array, optional
        Mean square of the observations in a site, where they vary within it; by default values ** 2.

    Examples
    --------
    >>> import spinseg as ss
    >>> levels = ss.DiagonalGaussian([0.1, 0.2, 0.9])
    >>> bool(levels.log_marginal([0, 1]) > levels.log_marginal([0, 2]))
    True
    """

    def __init__(
        self,
        values: ArrayLike,
        mean: ArrayLike | None = None,
        kappa: float = 0.1,
        shape: float = 2.0,
        rate: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        squares: ArrayLike | None = None,
    ) -> None:
        x = rows("values", values)
        self.n_sites, channels = x.shape
        self.kappa = check_real("kappa", kappa, above=0)
        self.shape = check_real("shape", shape, above=0, at_most=MAX_SHAPE)
        w = site_weights("weights", weights, self.n_sites)
        center, variance = _spread(x, w)
        self.mean = per_item("mean", center if mean is None else mean, channels)
        self.rate = per_item("rate", 0.1 * self.shape * variance if rate is None else rate, channels, positive=True)
        self.values = self.points = x - self.mean
        second = self.values**2
        if squares is not None:
            within = finite_array("squares", squares, x.shape) - x**2
            if (within < -1e-9 * (1 + x**2)).any():
                invalid("squares", "be at least values ** 2", within.min())
            second = second + np.maximum(within, 0.0)
        self.statistics = np.hstack([w[:, None], w[:, None] * self.values, w[:, None] * second])
        smallest = 1e-300 * np.maximum(1.0, self.statistics[:, 1 + channels :].sum(axis=0))
        if (self.rate < smallest).any():  # their ratio would overflow
            invalid("rate", "be at least 1e-300, and 1e-300 times the sum of all squares", self.rate.min())

    def log_marginal(self, sites: ArrayLike) -> float:
        """log p(y_A) of a set of sites, given as indices or as a mask."""
        chosen = site_set("sites", sites, len(self.statistics))
        return float(self._log_marginal(self.statistics[chosen].sum(axis=0)))

    def log_likelihood(self, labels: NDArray[np.integer]) -> float:
        """The log marginals of all clusters together, labeled 0..k-1."""
        return float(self._log_marginal(sums_of_clusters(self.statistics, labels)).sum())

    def _log_marginal(self, totals: Floats) -> Floats:
        """Of one or several sets of sites, with their summed statistics in the last axis."""
        n, first, second = np.split(totals, [1, 1 + self.rate.size], axis=-1)
        kappa_n, shape_n = self.kappa + n, self.shape + n / 2
        growth = np.maximum(second - first**2 / kappa_n, 0.0) / (2 * self.rate)  # rate_n / rate - 1
        log_p = log_rising(self.shape, n / 2) - shape_n * np.log1p(growth) - n / 2 * np.log(self.rate)
        return (log_p + 0.5 * np.log(self.kappa / kappa_n) - 0.5 * n * math.log(2 * math.pi)).sum(axis=-1)

    def terms(self) -> list[HistogramTerm | DenseTerm]:
        """N, sum x, sum x^2."""
        parameters = np.concatenate([[self.kappa, self.shape, 0.0], self.rate])
        return [DenseTerm("diagonal_gaussian", self.rate.size, self.statistics, parameters)]


class Gaussian(Likelihood):
    """Normal with full covariance and a normal-inverse-Wishart prior.

    A cluster has covariance ~ inverse Wishart(dof, scale), and its level is normal around the prior mean with
    covariance / kappa. With N observations x in d channels, less the prior mean, kappa_n = kappa + N, dof_n = dof + N
    and scale_n = scale + sum x x' - (sum x)(sum x)' / kappa_n,

        log p(y_A) = lgamma_d(dof_n / 2) - lgamma_d(dof / 2) +
        (dof log |scale| - dof_n log |scale_n| + d log(kappa / kappa_n) - N d log pi) / 2

    Parameters
    ----------
    values : (n_sites, channels) array
    mean : (channels,) array, optional
        By default the mean over sites.
    kappa : float
    dof : float, optional
        By default channels + 2.
    scale : (channels, channels) array, optional
        Positive definite. By default diagonal, with a tenth of the variance over sites as the guess of a cluster's.
    weights : (n_sites,) array, optional
        How many observations a site counts for; any number >= 0, by default 1.

    Examples
    --------
    >>> import spinseg as ss
    >>> colors = ss.Gaussian([[0.1, 0.2], [0.1, 0.3], [0.9, 0.8]])
    >>> bool(colors.log_marginal([0, 1]) > colors.log_marginal([0, 2]))
    True
    """

    def __init__(
        self,
        values: ArrayLike,
        mean: ArrayLike | None = None,
        kappa: float = 0.1,
        dof: float | None = None,
        scale: ArrayLike | None = None,
        weights: ArrayLike | None = None,
    ) -> None:
        x = rows("values", values)
        self.n_sites, d = x.shape
        self.kappa = check_real("kappa", kappa, above=0)
        self.dof = check_real("dof", d + 2 if dof is None else dof, above=d - 1, at_most=MAX_SHAPE)
        w = site_weights("weights", weights, self.n_sites)
        center, variance = _spread(x, w)
        self.mean = per_item("mean", center if mean is None else mean, d)
        default = np.diag(0.1 * max(self.dof - d - 1, 1.0) * variance)
        self.scale = finite_array(
            "scale", default if scale is None else np.atleast_2d(check_array("scale", scale)), (d, d)
        )
        if not np.allclose(self.scale, self.scale.T) or np.linalg.eigvalsh(self.scale)[0] <= 0:
            invalid("scale", "be symmetric and positive definite", self.scale)
        self.values = self.points = x - self.mean
        self.weights = w

    def log_marginal(self, sites: ArrayLike) -> float:
        """log p(y_A) of a set of sites, given as indices or as a mask."""
        chosen = site_set("sites", sites, len(self.values))
        x, w = self.values[chosen], self.weights[chosen]
        n, first, d = w.sum(), w @ x, x.shape[1]
        kappa_n, dof_n = self.kappa + n, self.dof + n
        scatter = (w * x.T) @ x - np.outer(first, first) / kappa_n
        growth = np.maximum(eigvalsh(scatter, self.scale), 0.0)  # |scale_n| / |scale| is the product of 1 + growth
        log_p = log_rising((self.dof - np.arange(d)) / 2, n / 2).sum() - 0.5 * dof_n * np.log1p(growth).sum()
        log_p -= 0.5 * n * (np.linalg.slogdet(self.scale)[1] + d * math.log(math.pi))
        return float(log_p + 0.5 * d * math.log(self.kappa / kappa_n))

    def terms(self) -> list[HistogramTerm | DenseTerm]:
        """N, sum x and the lower rows of sum x x', with x whitened so that the scale is the unit matrix."""
        factor = np.linalg.cholesky(self.scale)
        x = np.linalg.solve(factor, self.values.T).T
        lower = np.tril_indices(x.shape[1])
        weighted = self.weights[:, None] * np.hstack([np.ones((len(x), 1)), x, x[:, lower[0]] * x[:, lower[1]]])
        d = x.shape[1]
        parameters = np.array([self.kappa, self.dof, 2 * np.log(np.diag(factor)).sum(), 0.0])
        return [DenseTerm("gaussian", d, weighted, parameters)]
