"""Conjugate likelihoods: one short class a family.

A family gives the log marginal p(y_A) of a set of sites twice: `log_marginal`, in plain NumPy, which is the definition; and
`terms`, the same as sufficient statistics, which add up when sites join, and constants for the compiled sampler. A
histogram term is a sum over bins of tables of the summed count; a dense term is one branch of the compiled
`dense_log_marginal`, named by `family`.
"""

import math
from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sparse
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, multigammaln

from spinseg._checks import finite_array, number, one_of, refuse

Floats = NDArray[np.float64]
DISTANCES = ("hellinger", "chi-square", "euclidean")


class HistogramTerm(NamedTuple):
    """sum_d sign_d [lgamma(prior_d + weight n_d) - lgamma(prior_d)], n the summed counts of a cluster."""

    counts: sparse.csr_array  # (n_sites, D) int32
    prior: Floats  # (D,)
    sign: Floats  # (D,)
    weight: float


class DenseTerm(NamedTuple):
    """A function of summed statistics, the first of which is 0 where there is no observation."""

    family: str
    channels: int
    statistics: Floats  # (n_sites, S)
    parameters: Floats


class Likelihood(ABC):
    """Log marginals of sets of sites."""

    n_sites: int | None

    @abstractmethod
    def log_marginal(self, sites: ArrayLike) -> float:
        """log p(y_A) of a set of sites, given as indices or as a mask."""

    @abstractmethod
    def terms(self) -> list[HistogramTerm | DenseTerm]:
        """What the compiled sampler adds up."""

    def distances(self, edges: NDArray[np.int32], distance: str) -> Floats:
        """d(y_i, y_j) for every edge."""
        refuse("distance", f"be defined for the data, and {type(self).__name__} has none", distance)


def _rows(name: str, values: ArrayLike) -> Floats:
    """`values` as (n_sites, channels) float64; a vector is one channel."""
    array = np.asarray(values)
    return finite_array(name, array[:, None] if array.ndim == 1 else array, (None, None))


def _site_weights(name: str, values: ArrayLike | None, n_sites: int) -> Floats:
    """Non-negative numbers per site, 1 by default."""
    weights = np.ones(n_sites) if values is None else finite_array(name, values, (n_sites,))
    if (weights < 0).any():
        refuse(name, "not be negative", weights[weights < 0][0])
    return weights


def _per_channel(name: str, value: ArrayLike, channels: int, *, positive: bool = False) -> Floats:
    """One number for all channels or one for each, as a vector."""
    vector = finite_array(name, np.broadcast_to(value, (channels,)) if np.ndim(value) == 0 else value, (channels,))
    if positive and (vector <= 0).any():
        refuse(name, "be positive", vector[vector <= 0][0])
    return vector


def _spread(values: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Weighted mean and variance of each channel; a channel that does not vary gets variance 1."""
    total = max(weights.sum(), np.finfo(float).tiny)
    mean = weights @ values / total
    variance = weights @ (values - mean) ** 2 / total
    return mean, np.where(variance > 0, variance, 1.0)


def _edge_lengths(values: Floats, edges: NDArray[np.int32]) -> Floats:
    """Euclidean distance between the rows of the two ends."""
    return np.sqrt(((values[edges[:, 0]] - values[edges[:, 1]]) ** 2).sum(axis=1))


class Flat(Likelihood):
    """No data: log p = 0, which makes the posterior the prior."""

    n_sites = None

    def log_marginal(self, sites: ArrayLike) -> float:
        """0."""
        return 0.0

    def terms(self) -> list[HistogramTerm | DenseTerm]:
        """None."""
        return []


class DirichletMultinomial(Likelihood):
    """Histograms with G_0 = Dirichlet(phi * ybar), ybar the normalised sum of all histograms, as in the paper.

    log p(y_A) = lgamma(phi) - lgamma(phi + N) + sum_d [lgamma(pi_d + n_d) - lgamma(pi_d)], pi = phi * ybar, where n and N are the
    counts of A and their total, times `count_weight`. A bin that no site uses is dropped. Several histograms
    a site, as independent views, are a `Product` of these.

    Parameters
    ----------
    counts : (n_sites, D) array or sparse matrix of whole numbers
    concentration : float
        phi.
    count_weight : float
        Effective number of independent observations per count: neighbouring pixels are not independent.
    base : (D,) array, optional
        Weights to use instead of ybar, positive where a bin is used.
    """

    def __init__(
        self,
        counts: Any,
        concentration: float = 50.0,
        count_weight: float = 1.0,
        base: ArrayLike | None = None,
    ) -> None:
        table = _count_table(counts)
        self.n_sites = table.shape[0]
        self.concentration = number("concentration", concentration, above=0)
        self.count_weight = number("count_weight", count_weight, above=0)
        sums = np.asarray(table.sum(axis=0), dtype=np.float64)
        used = np.flatnonzero(sums)
        weights = sums if base is None else finite_array("base", base, (table.shape[1],))
        if (weights[used] <= 0).any() or (weights < 0).any():
            refuse("base", "be positive in every bin that is used and nowhere negative", weights)
        self.counts = table[:, used]
        self.prior = self.concentration * weights[used] / max(weights.sum(), np.finfo(float).tiny)

    def log_marginal(self, sites: ArrayLike) -> float:
        """log p(y_A) of a set of sites, given as indices or as a mask."""
        n = self.count_weight * self.counts[np.asarray(sites)].sum(axis=0)
        total = gammaln(self.concentration) - gammaln(self.concentration + n.sum())
        return float(total + (gammaln(self.prior + n) - gammaln(self.prior)).sum())

    def terms(self) -> list[HistogramTerm | DenseTerm]:
        """The bins, and the total as one more bin, with a minus sign."""
        totals = sparse.csr_array(self.counts.sum(axis=1, dtype=np.int32)[:, None])
        prior, sign = np.append(self.prior, self.concentration), np.append(np.ones(self.prior.size), -1.0)
        return [HistogramTerm(sparse.hstack([self.counts, totals], format="csr"), prior, sign, self.count_weight)]

    def distances(self, edges: NDArray[np.int32], distance: str) -> Floats:
        """Hellinger, chi-square (0.5 sum (p - q)^2 / (p + q)) or Euclidean distance of the normalised histograms."""
        one_of("distance", distance, DISTANCES)
        totals = np.maximum(self.counts.sum(axis=1), 1)
        shares = sparse.diags_array(1.0 / totals).dot(self.counts).tocsr()
        p, q = shares[edges[:, 0]], shares[edges[:, 1]]
        if distance == "euclidean":
            return np.sqrt((p - q).power(2).sum(axis=1))
        if distance == "hellinger":
            return np.sqrt(np.maximum(1.0 - p.sqrt().multiply(q.sqrt()).sum(axis=1), 0.0))
        both = (p + q).tocsr()
        both.data = 1.0 / both.data
        return 0.5 * (p - q).power(2).multiply(both).sum(axis=1)


def _count_table(counts: Any) -> sparse.csr_array:
    """`counts` as (n_sites, D) int32 compressed rows without zeros, refused where they are not whole numbers >= 0."""
    if sparse.issparse(counts):
        table = sparse.csr_array(counts)
    else:
        dense = np.asarray(counts)
        if dense.ndim != 2 or dense.dtype.kind not in "biuf":
            refuse("counts", "be a table of numbers of shape (n_sites, n_bins)", dense.shape)
        table = sparse.csr_array(dense)
    table.sum_duplicates()
    bad = ~((table.data >= 0) & (table.data == np.floor(table.data)))
    if bad.any():
        refuse("counts", "be whole numbers of at least 0", table.data[bad][0])
    if table.data.size and table.data.sum(dtype=np.float64) >= np.iinfo(np.int32).max:
        refuse("counts", "sum to less than 2^31", float(table.data.sum(dtype=np.float64)))
    table = table.astype(np.int32)
    table.eliminate_zeros()
    return table


class DiagonalGaussian(Likelihood):
    """Independent channels, each normal with a normal-inverse-gamma prior.

    precision ~ Gamma(shape, rate), mean | precision ~ N(mean, 1 / (kappa precision)). With N observations, kappa_n = kappa + N,
    shape_n = shape + N / 2 and rate_n = rate + (sum x^2 - (sum x)^2 / kappa_n) / 2, x less the prior mean,

        log p(y_A) = lgamma(shape_n) - lgamma(shape) + shape log rate - shape_n log rate_n + log(kappa / kappa_n) / 2 - N log(2 pi) / 2

    Parameters
    ----------
    values : (n_sites, channels) array
    mean, rate : float or (channels,) array, optional
        By default the mean over sites, and the rate at which the prior guess of a cluster's variance is a tenth of the variance
        over sites.
    kappa, shape : float
    weights : (n_sites,) array, optional
        How many observations a site counts for; any number >= 0, by default 1.
    squares : (n_sites, channels) array, optional
        Mean square of the observations in a site, where they vary within it; by default values ** 2.
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
        x = _rows("values", values)
        self.n_sites, channels = x.shape
        self.kappa, self.shape = number("kappa", kappa, above=0), number("shape", shape, above=0)
        w = _site_weights("weights", weights, self.n_sites)
        centre, variance = _spread(x, w)
        self.mean = _per_channel("mean", centre if mean is None else mean, channels)
        self.rate = _per_channel("rate", 0.1 * self.shape * variance if rate is None else rate, channels, positive=True)
        self.values = x - self.mean
        second = self.values**2
        if squares is not None:
            within = finite_array("squares", squares, x.shape) - x**2
            if (within < -1e-9 * (1 + x**2)).any():
                refuse("squares", "be at least values ** 2", within.min())
            second = second + np.maximum(within, 0.0)
        self.statistics = np.hstack([w[:, None], w[:, None] * self.values, w[:, None] * second])

    def log_marginal(self, sites: ArrayLike) -> float:
        """log p(y_A) of a set of sites, given as indices or as a mask."""
        total = self.statistics[np.asarray(sites)].sum(axis=0)
        n, (first, second) = total[0], np.split(total[1:], 2)
        kappa_n, shape_n = self.kappa + n, self.shape + n / 2
        rate_n = self.rate + np.maximum(second - first**2 / kappa_n, 0.0) / 2
        log_p = gammaln(shape_n) - gammaln(self.shape) + self.shape * np.log(self.rate) - shape_n * np.log(rate_n)
        return float((log_p + 0.5 * math.log(self.kappa / kappa_n) - 0.5 * n * math.log(2 * math.pi)).sum())

    def terms(self) -> list[HistogramTerm | DenseTerm]:
        """N, sum x, sum x^2."""
        parameters = np.concatenate([[self.kappa, self.shape], self.rate])
        return [DenseTerm("diagonal_gaussian", self.rate.size, self.statistics, parameters)]

    def distances(self, edges: NDArray[np.int32], distance: str) -> Floats:
        """Euclidean distance of the values."""
        one_of("distance", distance, ("euclidean",))
        return _edge_lengths(self.values, edges)


class Gaussian(Likelihood):
    """Normal with full covariance and a normal-inverse-Wishart prior.

    covariance ~ inverse Wishart(dof, scale), mean | covariance ~ N(mean, covariance / kappa). With N observations in d channels,
    kappa_n = kappa + N, dof_n = dof + N and scale_n = scale + sum x x' - (sum x)(sum x)' / kappa_n, x less the prior mean,

        log p(y_A) = lgamma_d(dof_n / 2) - lgamma_d(dof / 2) + (dof log |scale| - dof_n log |scale_n| + d log(kappa / kappa_n) - N d log pi) / 2

    Parameters
    ----------
    values : (n_sites, channels) array
    mean : (channels,) array, optional
        By default the mean over sites.
    kappa : float
    dof : float, optional
        By default channels + 2.
    scale : (channels, channels) array, optional
        Positive definite. By default diagonal, with a tenth of the variance over sites as the guess of a cluster's variance.
    weights : (n_sites,) array, optional
        How many observations a site counts for; any number >= 0, by default 1.
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
        x = _rows("values", values)
        self.n_sites, d = x.shape
        self.kappa = number("kappa", kappa, above=0)
        self.dof = number("dof", d + 2 if dof is None else dof, above=d - 1)
        w = _site_weights("weights", weights, self.n_sites)
        centre, variance = _spread(x, w)
        self.mean = _per_channel("mean", centre if mean is None else mean, d)
        default = np.diag(0.1 * max(self.dof - d - 1, 1.0) * variance)
        self.scale = finite_array("scale", default if scale is None else np.atleast_2d(np.asarray(scale)), (d, d))
        if not np.allclose(self.scale, self.scale.T) or np.linalg.eigvalsh(self.scale)[0] <= 0:
            refuse("scale", "be symmetric and positive definite", self.scale)
        self.values = x - self.mean
        self.weights = w

    def log_marginal(self, sites: ArrayLike) -> float:
        """log p(y_A) of a set of sites, given as indices or as a mask."""
        x, w = self.values[np.asarray(sites)], self.weights[np.asarray(sites)]
        n, first, d = w.sum(), w @ x, x.shape[1]
        kappa_n, dof_n = self.kappa + n, self.dof + n
        scale_n = self.scale + (w * x.T) @ x - np.outer(first, first) / kappa_n
        log_det, log_det_n = np.linalg.slogdet(self.scale)[1], np.linalg.slogdet(scale_n)[1]
        log_p = multigammaln(dof_n / 2, d) - multigammaln(self.dof / 2, d)
        log_p += 0.5 * (self.dof * log_det - dof_n * log_det_n)
        return float(log_p + 0.5 * d * math.log(self.kappa / kappa_n) - 0.5 * n * d * math.log(math.pi))

    def terms(self) -> list[HistogramTerm | DenseTerm]:
        """N, sum x and the lower rows of sum x x', with x whitened so that the scale is the unit matrix."""
        factor = np.linalg.cholesky(self.scale)
        x = np.linalg.solve(factor, self.values.T).T
        lower = np.tril_indices(x.shape[1])
        weighted = self.weights[:, None] * np.hstack([np.ones((len(x), 1)), x, x[:, lower[0]] * x[:, lower[1]]])
        parameters = np.array([self.kappa, self.dof, 2 * np.log(np.diag(factor)).sum()])
        return [DenseTerm("gaussian", x.shape[1], weighted, parameters)]

    def distances(self, edges: NDArray[np.int32], distance: str) -> Floats:
        """Euclidean distance of the values."""
        one_of("distance", distance, ("euclidean",))
        return _edge_lengths(self.values, edges)


class PoissonGamma(Likelihood):
    """Independent channels of Poisson counts with gamma rates, y_i ~ Poisson(e_i u), u ~ Gamma(shape, rate).

    With Y = sum y and E = sum e over A, up to a constant that does not depend on the partition, sum_i (y_i log e_i - log y_i!),

        log p(y_A) = lgamma(shape + Y) - lgamma(shape) + shape log rate - (shape + Y) log(rate + E)

    Parameters
    ----------
    counts : (n_sites, channels) array of whole numbers
    shape, rate : float or (channels,) array
        By default a shape of 1, and the rate at which the prior mean is the mean of the data.
    exposure : (n_sites,) array, optional
        e_i > 0, by default 1.
    """

    def __init__(
        self,
        counts: ArrayLike,
        shape: ArrayLike = 1.0,
        rate: ArrayLike | None = None,
        exposure: ArrayLike | None = None,
    ) -> None:
        y = _rows("counts", counts)
        if (y < 0).any() or (y != np.floor(y)).any():
            refuse("counts", "be whole numbers of at least 0", y[(y < 0) | (y != np.floor(y))][0])
        self.n_sites, channels = y.shape
        self.counts = y
        self.exposure = _site_weights("exposure", exposure, self.n_sites)
        if (self.exposure == 0).any():
            refuse("exposure", "be positive", 0.0)
        self.shape = _per_channel("shape", shape, channels, positive=True)
        means = y.sum(axis=0) / max(self.exposure.sum(), np.finfo(float).tiny)
        default = self.shape / np.where(means > 0, means, 1.0)
        self.rate = _per_channel("rate", default if rate is None else rate, channels, positive=True)

    def log_marginal(self, sites: ArrayLike) -> float:
        """log p(y_A) of a set of sites, given as indices or as a mask."""
        y, e = self.counts[np.asarray(sites)], self.exposure[np.asarray(sites)]
        total = y.sum(axis=0)
        log_p = gammaln(self.shape + total) - gammaln(self.shape) + self.shape * np.log(self.rate)
        log_p -= (self.shape + total) * np.log(self.rate + e.sum())
        return float(log_p.sum() + (y * np.log(e)[:, None] - gammaln(y + 1)).sum())

    def terms(self) -> list[HistogramTerm | DenseTerm]:
        """The exposure and the sums of the counts."""
        statistics = np.hstack([self.exposure[:, None], self.counts])
        return [DenseTerm("poisson_gamma", self.rate.size, statistics, np.concatenate([self.shape, self.rate]))]

    def distances(self, edges: NDArray[np.int32], distance: str) -> Floats:
        """Euclidean distance of the counts per unit of exposure."""
        one_of("distance", distance, ("euclidean",))
        return _edge_lengths(self.counts / self.exposure[:, None], edges)


class Product(Likelihood):
    """Independent views of the same sites: the log marginals add up."""

    def __init__(self, *parts: Likelihood) -> None:
        for part in parts:
            if not isinstance(part, Likelihood):
                refuse("parts", "be likelihoods", part)
        sizes = {part.n_sites for part in parts} - {None}
        if len(sizes) > 1:
            refuse("parts", "have the same number of sites", sorted(size for size in sizes if size is not None))
        self.parts = parts
        self.n_sites = next(iter(sizes), None)

    def log_marginal(self, sites: ArrayLike) -> float:
        """log p(y_A) of a set of sites, given as indices or as a mask."""
        return sum(part.log_marginal(sites) for part in self.parts)

    def terms(self) -> list[HistogramTerm | DenseTerm]:
        """Those of the parts."""
        return [term for part in self.parts for term in part.terms()]

    def distances(self, edges: NDArray[np.int32], distance: str) -> Floats:
        """Root of the summed squares of the parts' distances."""
        squares = [part.distances(edges, distance) ** 2 for part in self.parts]
        return np.sqrt(np.sum(squares, axis=0))
