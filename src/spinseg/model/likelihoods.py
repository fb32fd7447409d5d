"""Conjugate likelihoods: one short class a family.

A family gives the log marginal p(y_A) of a set of sites twice: `log_marginal`, in plain NumPy, which is the definition;
and `terms`, the same as sufficient statistics, which add up when sites join, and constants for the compiled sampler. A
histogram term is a sum over bins of tables of the summed count; a dense term is one branch of the compiled
`dense_log_marginal`, named by `family`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sparse
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from spinseg._validation import (
    check_array,
    check_choice,
    check_real,
    counted,
    finite_array,
    invalid,
    per_item,
    site_set,
)
from spinseg.model.priors import log_rising

Floats = NDArray[np.float64]
MAX_SHAPE = 1e30  # of a gamma or Wishart prior, whose variance is then known anyway; beyond, y^8 overflows in kernels
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
    """Log marginals of sets of sites.

    Examples
    --------
    >>> import spinseg as ss
    >>> levels = ss.DiagonalGaussian([0.1, 0.2, 0.9])
    >>> # alike sites are likelier together
    >>> bool(levels.log_marginal([0, 1]) > levels.log_marginal([0, 2]))
    True
    """

    n_sites: int | None
    points: Floats | None = None  # (n_sites, channels), whose distances are those of the sites
    _column = "channel"  # what a column of the observations is called

    def __repr__(self) -> str:
        observed: Any = getattr(self, "counts", getattr(self, "values", None))
        text = f"{type(self).__name__} of {counted(self.n_sites or 0, 'site')}"
        return text if observed is None else f"{text} and {counted(observed.shape[1], self._column)}"

    @abstractmethod
    def log_marginal(self, sites: ArrayLike) -> float:
        """log p(y_A) of a set of sites, given as indices or as a mask."""

    def log_likelihood(self, labels: NDArray[np.integer]) -> float:
        """The log marginals of all clusters together, labeled 0..k-1."""
        clusters = np.split(np.argsort(labels, kind="stable"), np.cumsum(np.bincount(labels))[:-1])
        return sum(self.log_marginal(sites) for sites in clusters)

    @abstractmethod
    def terms(self) -> list[HistogramTerm | DenseTerm]:
        """What the compiled sampler adds up."""

    def distances(self, edges: NDArray[np.int32], distance: str) -> Floats:
        """d(y_i, y_j) for every edge: the Euclidean distance of `points`, where a likelihood has them."""
        if self.points is None:
            invalid("distance", f"be defined for the data, and {type(self).__name__} has none", distance)
        check_choice("distance", distance, ("euclidean",))
        return np.sqrt(((self.points[edges[:, 0]] - self.points[edges[:, 1]]) ** 2).sum(axis=1))


def rows(name: str, values: ArrayLike) -> Floats:
    """`values` as (n_sites, channels) float64; a vector is one channel."""
    array = check_array(name, values)
    array = finite_array(name, array[:, None] if array.ndim == 1 else array, (None, None))
    if array.shape[1] == 0:
        invalid(name, "have at least one channel", array.shape)
    return array


def site_weights(name: str, values: ArrayLike | None, n_sites: int) -> Floats:
    """Non-negative numbers per site, 1 by default."""
    weights = np.ones(n_sites) if values is None else finite_array(name, values, (n_sites,))
    if (weights < 0).any():
        invalid(name, "not be negative", weights[weights < 0][0])
    return weights


class Flat(Likelihood):
    """No data: log p = 0, which makes the posterior the prior.

    Examples
    --------
    >>> import spinseg as ss
    >>> ss.Flat().log_marginal([0, 1])
    0.0
    """

    n_sites = None

    def __repr__(self) -> str:
        return "Flat()"

    def log_marginal(self, sites: ArrayLike) -> float:
        """0."""
        return 0.0

    def log_likelihood(self, labels: NDArray[np.integer]) -> float:
        """0."""
        return 0.0

    def terms(self) -> list[HistogramTerm | DenseTerm]:
        """None."""
        return []


class DirichletMultinomial(Likelihood):
    """Histograms with G_0 = Dirichlet(phi * ybar), ybar the normalized sum of all histograms, as in the paper.

        log p(y_A) = lgamma(phi) - lgamma(phi + N) + sum_d [lgamma(pi_d + n_d) - lgamma(pi_d)],  pi = phi * ybar,

    where n and N are the counts of A and their total, times `count_weight`. A bin that no site uses is dropped.
    Several histograms a site, as independent views, are a `Product` of these.

    Parameters
    ----------
    counts : (n_sites, D) array or sparse matrix of whole numbers
    concentration : float
        phi.
    count_weight : float
        Effective number of independent observations per count: neighboring pixels are not independent.
    base : (D,) array, optional
        Weights to use instead of ybar, positive where a bin is used.

    Examples
    --------
    >>> import spinseg as ss
    >>> heads = ss.DirichletMultinomial(
    ...     [[1, 0], [1, 0], [0, 1]], concentration=2.0
    ... )
    >>> round(heads.log_marginal([0, 1]), 4)
    -0.6568
    """

    _column = "bin"

    def __init__(
        self, counts: Any, concentration: float = 50.0, count_weight: float = 1.0, base: ArrayLike | None = None
    ) -> None:
        table = count_table("counts", counts)
        self.n_sites = table.shape[0]
        self.concentration = check_real("concentration", concentration, above=0)
        if not 1e-9 <= self.concentration <= 1e9:  # beyond, the compiled lgamma has too few digits
            invalid("concentration", "be from 1e-9 to 1e9", concentration)
        self.count_weight = check_real("count_weight", count_weight, above=0)
        sums = np.asarray(table.sum(axis=0), dtype=np.float64)
        used = np.flatnonzero(sums)
        weights = sums if base is None else finite_array("base", base, (table.shape[1],))
        if (weights[used] <= 0).any() or (weights < 0).any():
            invalid("base", "be positive in every bin that is used and nowhere negative", weights)
        if used.size and weights[used].min() < 1e-9 * weights.sum():
            invalid("base", "give every bin that is used at least 1e-9 of the whole", weights[used].min())
        self.counts = table[:, used]
        self.prior = self.concentration * weights[used] / max(weights.sum(), np.finfo(float).tiny)

    def log_marginal(self, sites: ArrayLike) -> float:
        """log p(y_A) of a set of sites, given as indices or as a mask."""
        n = self.count_weight * _sum_of_rows(self.counts, site_set("sites", sites, self.counts.shape[0]))
        return float(log_rising(self.prior, n).sum() - log_rising(self.concentration, n.sum()))

    def log_likelihood(self, labels: NDArray[np.integer]) -> float:
        """The log marginals of all clusters together, labeled 0..k-1: at once, since there may be one for each site."""
        n_sites, n_clusters = labels.size, int(labels.max()) + 1
        of_cluster = sparse.csr_array((np.ones(n_sites), (labels, np.arange(n_sites))), shape=(n_clusters, n_sites))
        summed = (of_cluster @ self.counts).tocoo()
        n = self.count_weight * summed.data
        totals = np.bincount(summed.coords[0], n, n_clusters)
        return float(log_rising(self.prior[summed.coords[1]], n).sum() - log_rising(self.concentration, totals).sum())

    def terms(self) -> list[HistogramTerm | DenseTerm]:
        """The bins, and the total as one more bin, with a minus sign."""
        totals = sparse.csr_array(self.counts.sum(axis=1, dtype=np.int32)[:, None])
        prior, sign = np.append(self.prior, self.concentration), np.append(np.ones(self.prior.size), -1.0)
        return [HistogramTerm(sparse.hstack([self.counts, totals], format="csr"), prior, sign, self.count_weight)]

    def distances(self, edges: NDArray[np.int32], distance: str) -> Floats:
        """Hellinger, chi-square (0.5 sum (p - q)^2 / (p + q)) or Euclidean distance of the normalized histograms."""
        check_choice("distance", distance, DISTANCES)
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


def _sum_of_rows(table: sparse.csr_array, rows: NDArray[np.int64]) -> NDArray[Any]:
    """The sum of some rows of a table of whole numbers, without a table of them, which takes SciPy longer."""
    n = table.indptr[rows + 1] - table.indptr[rows]
    at = np.repeat(table.indptr[rows] + n - np.cumsum(n), n) + np.arange(n.sum())
    return np.bincount(table.indices[at], table.data[at], minlength=table.shape[1])


def count_table(name: str, counts: Any) -> sparse.csr_array:
    """`counts` as (n_sites, D) int32 compressed rows without zeros, refused where they are not whole numbers >= 0."""
    given = counts if sparse.issparse(counts) else check_array(name, counts)
    if given.ndim != 2 or given.dtype.kind not in "biuf":
        rule = "be a table of numbers of shape (n_sites, n_bins)"
        invalid(name, rule, given.shape if given.ndim != 2 else given.dtype.name)
    table = sparse.csr_array(given, copy=True)
    table.sum_duplicates()
    bad = ~((table.data >= 0) & (table.data == np.floor(table.data)))
    if bad.any():
        invalid(name, "be whole numbers of at least 0", table.data[bad][0])
    if table.data.size and table.data.sum(dtype=np.float64) >= np.iinfo(np.int32).max:
        invalid(name, "sum to less than 2^31", float(table.data.sum(dtype=np.float64)))
    table = table.astype(np.int32)
    table.eliminate_zeros()
    return table


class PoissonGamma(Likelihood):
    """Independent channels of Poisson counts with gamma rates, y_i ~ Poisson(e_i u), u ~ Gamma(shape, rate).

    With Y = sum y and E = sum e over A,

        log p(y_A) = lgamma(shape + Y) - lgamma(shape) + shape log rate - (shape + Y) log(rate + E) +
        sum_i (y_i log e_i - log y_i!)

    of which the last sum does not depend on the partition and is left out of `terms`.

    Parameters
    ----------
    counts : (n_sites, channels) array of whole numbers
    shape, rate : float or (channels,) array
        By default a shape of 1, and the rate at which the prior mean is the mean of the data.
    exposure : (n_sites,) array, optional
        e_i > 0, by default 1.

    Examples
    --------
    >>> import spinseg as ss
    >>> counts = ss.PoissonGamma([3, 4, 20])
    >>> bool(counts.log_marginal([0, 1]) > counts.log_marginal([0, 2]))
    True
    """

    def __init__(
        self,
        counts: ArrayLike,
        shape: ArrayLike = 1.0,
        rate: ArrayLike | None = None,
        exposure: ArrayLike | None = None,
    ) -> None:
        y = rows("counts", counts)
        if (y < 0).any() or (y != np.floor(y)).any():
            invalid("counts", "be whole numbers of at least 0", y[(y < 0) | (y != np.floor(y))][0])
        self.n_sites, channels = y.shape
        self.counts = y
        self.exposure = site_weights("exposure", exposure, self.n_sites)
        if (self.exposure == 0).any():
            invalid("exposure", "be positive", 0.0)
        self.points = y / self.exposure[:, None]
        self.shape = per_item("shape", shape, channels, positive=True)
        if (self.shape > MAX_SHAPE).any():
            invalid("shape", f"be at most {MAX_SHAPE:g}", self.shape.max())
        means = y.sum(axis=0) / max(self.exposure.sum(), np.finfo(float).tiny)
        default = self.shape / np.where(means > 0, means, 1.0)
        self.rate = per_item("rate", default if rate is None else rate, channels, positive=True)

    def log_marginal(self, sites: ArrayLike) -> float:
        """log p(y_A) of a set of sites, given as indices or as a mask."""
        chosen = site_set("sites", sites, len(self.counts))
        y, e = self.counts[chosen], self.exposure[chosen]
        total = y.sum(axis=0)
        log_p = log_rising(self.shape, total) - total * np.log(self.rate)
        log_p -= (self.shape + total) * np.log1p(e.sum() / self.rate)  # with no large terms that cancel
        return float(log_p.sum() + (y * np.log(e)[:, None] - gammaln(y + 1)).sum())

    def terms(self) -> list[HistogramTerm | DenseTerm]:
        """The exposure and the sums of the counts."""
        statistics = np.hstack([self.exposure[:, None], self.counts])
        parameters = np.concatenate([[0.0], self.shape, self.rate])
        return [DenseTerm("poisson_gamma", self.rate.size, statistics, parameters)]


class Product(Likelihood):
    """Independent views of the same sites: the log marginals add up.

    Examples
    --------
    >>> import spinseg as ss
    >>> both = ss.Product(ss.PoissonGamma([3, 4]), ss.PoissonGamma([0, 1]))
    >>> round(both.log_marginal([0, 1]), 4)
    -6.3903
    """

    def __init__(self, *parts: Likelihood) -> None:
        for part in parts:
            if not isinstance(part, Likelihood):
                invalid("parts", "be likelihoods", part)
        sizes = {part.n_sites for part in parts} - {None}
        if len(sizes) > 1:
            invalid("parts", "have the same number of sites", sorted(size for size in sizes if size is not None))
        self.parts = parts
        self.n_sites = next(iter(sizes), None)

    def __repr__(self) -> str:
        parts = ", ".join(type(part).__name__ for part in self.parts)
        return f"Product({parts}) of {counted(self.n_sites or 0, 'site')}"

    def log_marginal(self, sites: ArrayLike) -> float:
        """log p(y_A) of a set of sites, given as indices or as a mask."""
        return sum(part.log_marginal(sites) for part in self.parts)

    def log_likelihood(self, labels: NDArray[np.integer]) -> float:
        """The log marginals of all clusters together, labeled 0..k-1."""
        return sum(part.log_likelihood(labels) for part in self.parts)

    def terms(self) -> list[HistogramTerm | DenseTerm]:
        """Those of the parts."""
        return [term for part in self.parts for term in part.terms()]

    def distances(self, edges: NDArray[np.int32], distance: str) -> Floats:
        """Root of the summed squares of the parts' distances."""
        squares = [part.distances(edges, distance) ** 2 for part in self.parts]
        return np.sqrt(np.sum(squares, axis=0))
