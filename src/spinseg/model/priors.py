"""Priors on partitions: one short class each.

Every prior of product form is two tables, log g(m_1..m_k) = log_v[k] + sum_j log_w[m_j], and the compiled sampler reads
nothing else. `log_v[0]` and `log_w[0]` belong to no partition. Constants that do not depend on the partition are left
out; `log_normalizer` gives them back. Sizes outside min_size..max_size get log_w = -inf: a truncated prior is the same
prior, restricted and renormalised.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, logsumexp

from spinseg._checks import number, refuse, whole

Table = NDArray[np.float64]


class PartitionPrior(ABC):
    """A prior on partitions, log g(sizes), symmetric in the sizes; clusters hold min_size to max_size sites."""

    def __init__(self, *, min_size: int = 1, max_size: int | None = None) -> None:
        self.min_size = whole("min_size", min_size, at_least=1)
        self.max_size = None if max_size is None else whole("max_size", max_size, at_least=1)
        if self.max_size is not None and self.max_size < self.min_size:
            refuse("max_size", f"be at least min_size, {self.min_size}", max_size)

    @abstractmethod
    def _tables(self, n_sites: int) -> tuple[Table, Table]:
        """(log_v, log_w) of the prior without size limits, each of length n_sites + 1."""

    def tables(self, n_sites: int, *, truncated: bool = True) -> tuple[Table, Table]:
        """(log_v, log_w), each of length n_sites + 1; `truncated=False` ignores min_size and max_size."""
        log_v, log_w = self._tables(n_sites)
        if truncated:
            log_w[1 : self.min_size] = -np.inf
            if self.max_size is not None:
                log_w[self.max_size + 1 :] = -np.inf
        return log_v, log_w

    def log_g(self, sizes: ArrayLike) -> float:
        """Unnormalised log probability of a partition with these cluster sizes."""
        m = np.asarray(sizes, dtype=np.int64)
        log_v, log_w = self.tables(int(m.sum()))
        return float(log_v[m.size] + log_w[m].sum())

    def log_normalizer(self, n_sites: int) -> float | None:
        """Log of the sum of exp(log_g) over all partitions, without size limits; None where it is not known."""
        return None


def _falling(n_labels: int, n_sites: int) -> Table:
    """log K! - log (K - k)! for k = 0..n_sites; -inf beyond K labels."""
    k = np.arange(n_sites + 1)
    return np.where(k <= n_labels, gammaln(n_labels + 1.0) - gammaln(np.maximum(n_labels - k, 0) + 1.0), -np.inf)


def _rising(a: float, n_sites: int) -> Table:
    """lgamma(a + m) - lgamma(a) for m = 0..n_sites."""
    return gammaln(a + np.arange(n_sites + 1)) - gammaln(a)


class Potts(PartitionPrior):
    """The Potts model with at most K labels: log_v[k] = log K!/(K - k)!, log_w = 0.

    (The paper prints K/(K - k)!, which does not give the Potts model back.)
    """

    def __init__(self, n_labels: int, *, min_size: int = 1, max_size: int | None = None) -> None:
        super().__init__(min_size=min_size, max_size=max_size)
        self.n_labels = whole("n_labels", n_labels, at_least=1)

    def _tables(self, n_sites: int) -> tuple[Table, Table]:
        return _falling(self.n_labels, n_sites), np.zeros(n_sites + 1)

    def log_normalizer(self, n_sites: int) -> float:
        """n log K: every site chooses its label freely."""
        return n_sites * math.log(self.n_labels)


class FiniteDirichlet(PartitionPrior):
    """K labels with symmetric Dirichlet(a) weights: log_v as Potts, log_w[m] = lgamma(a + m) - lgamma(a).

    The paper leaves out Gamma(a)^-k, which depends on k and so does not cancel.
    """

    def __init__(
        self, n_labels: int, concentration: float = 1.0, *, min_size: int = 1, max_size: int | None = None
    ) -> None:
        super().__init__(min_size=min_size, max_size=max_size)
        self.n_labels = whole("n_labels", n_labels, at_least=1)
        self.concentration = number("concentration", concentration, above=0)

    def _tables(self, n_sites: int) -> tuple[Table, Table]:
        return _falling(self.n_labels, n_sites), _rising(self.concentration, n_sites)

    def log_normalizer(self, n_sites: int) -> float:
        """lgamma(K a + n) - lgamma(K a)."""
        return float(_rising(self.n_labels * self.concentration, n_sites)[-1])


class DirichletProcess(PartitionPrior):
    """The Chinese restaurant process: log_v[k] = k log alpha, log_w[m] = lgamma(m)."""

    def __init__(self, concentration: float, *, min_size: int = 1, max_size: int | None = None) -> None:
        super().__init__(min_size=min_size, max_size=max_size)
        self.concentration = number("concentration", concentration, above=0)

    def _tables(self, n_sites: int) -> tuple[Table, Table]:
        sizes = np.arange(n_sites + 1, dtype=np.float64)
        return sizes * math.log(self.concentration), gammaln(np.maximum(sizes, 1.0))

    def log_normalizer(self, n_sites: int) -> float:
        """lgamma(alpha + n) - lgamma(alpha)."""
        return float(_rising(self.concentration, n_sites)[-1])


class PitmanYor(PartitionPrior):
    """Two-parameter Poisson-Dirichlet with concentration alpha and discount theta.

    log_v[k] = sum_{i=1}^{k-1} log(alpha + i theta), log_w[m] = lgamma(m - theta) - lgamma(1 - theta). Either
    0 <= theta < 1 and alpha > -theta, or theta < 0 and alpha = -L theta for a whole L >= 1: then at most L clusters,
    and the prior is the finite Dirichlet with K = L, a = -theta. theta = 0 is the Dirichlet process.
    """

    def __init__(
        self, concentration: float, discount: float, *, min_size: int = 1, max_size: int | None = None
    ) -> None:
        super().__init__(min_size=min_size, max_size=max_size)
        self.discount = number("discount", discount)
        if self.discount >= 1:
            refuse("discount", "be below 1", discount)
        self.concentration = number("concentration", concentration, above=-max(self.discount, 0.0))
        self.n_labels: int | None = None
        if self.discount < 0:
            ratio = -self.concentration / self.discount
            self.n_labels = round(ratio)
            if not math.isclose(ratio, self.n_labels, rel_tol=1e-9):
                rule = f"be a whole multiple of {-self.discount:g} where discount = {self.discount:g} is negative"
                refuse("concentration", rule, concentration)

    def _tables(self, n_sites: int) -> tuple[Table, Table]:
        i = np.arange(1, n_sites)
        if self.n_labels is None:
            steps = self.concentration + i * self.discount
        else:
            steps = -self.discount * np.maximum(self.n_labels - i, 0)
        with np.errstate(divide="ignore"):
            log_v = np.concatenate([[0.0, 0.0], np.cumsum(np.log(steps))])
        log_w = gammaln(np.maximum(np.arange(n_sites + 1), 1) - self.discount) - gammaln(1 - self.discount)
        return log_v[: n_sites + 1], log_w

    def log_normalizer(self, n_sites: int) -> float:
        """lgamma(alpha + n) - lgamma(alpha + 1)."""
        return float(gammaln(self.concentration + n_sites) - gammaln(self.concentration + 1))


class MixtureOfFiniteMixtures(PartitionPrior):
    """A finite Dirichlet(gamma) whose number of labels K is random.

    Miller & Harrison 2018, doi:10.1080/01621459.2016.1255636. log_w[m] = lgamma(gamma + m) - lgamma(gamma) and
    log_v[k] = log V_n(k), V_n(k) = sum_K K!/(K - k)! p(K) / [(gamma K)(gamma K + 1)..(gamma K + n - 1)].

    Parameters
    ----------
    concentration : float
        gamma.
    mean_labels : float
        K - 1 is Poisson with mean `mean_labels - 1`. Ignored where `log_p_labels` is given.
    log_p_labels : callable, optional
        log p(K) for an array of whole K >= 1.
    """

    def __init__(
        self,
        concentration: float = 1.0,
        mean_labels: float = 5.0,
        log_p_labels: Callable[[NDArray[np.int64]], ArrayLike] | None = None,
        *,
        min_size: int = 1,
        max_size: int | None = None,
    ) -> None:
        super().__init__(min_size=min_size, max_size=max_size)
        self.concentration = number("concentration", concentration, above=0)
        self.mean_labels = number("mean_labels", mean_labels, above=1)
        self.log_p_labels = log_p_labels or self._poisson

    def _poisson(self, n_labels: NDArray[np.int64]) -> Table:
        rate = self.mean_labels - 1
        return (n_labels - 1) * math.log(rate) - rate - gammaln(n_labels)

    def _tables(self, n_sites: int) -> tuple[Table, Table]:
        log_v = np.full(n_sites + 1, -np.inf)
        log_v[0] = 0.0
        k = np.arange(1, n_sites + 1)
        spare = 0  # labels without a site: the sum over K = k + spare, a block of terms at a time
        while k.size:
            n_labels = k[:, None] + np.arange(spare, spare + 64)
            shares = self.concentration * n_labels
            terms = gammaln(n_labels + 1.0) - gammaln(n_labels - k[:, None] + 1.0)
            terms += gammaln(shares) - gammaln(shares + n_sites) + np.asarray(self.log_p_labels(n_labels))
            so_far = np.logaddexp(log_v[k], logsumexp(terms, axis=1))
            log_v[k] = so_far
            falling = terms[:, -1] <= terms[:, -2]
            k = k[~(falling & (terms[:, -1] < so_far - 45))]  # what is left out is beyond double precision
            spare += 64
            if spare > 1_000_000:
                refuse("log_p_labels", "fall fast enough for its series to converge", self.log_p_labels)
        return log_v, _rising(self.concentration, n_sites)

    def log_normalizer(self, n_sites: int) -> float:
        """0: V_n(k) is the normalised probability."""
        return 0.0


class TabulatedPrior(PartitionPrior):
    """Any prior of product form, from its tables: arrays indexed by k and by m (entry 0 unused), or functions."""

    def __init__(
        self,
        log_v: ArrayLike | Callable[[int], float],
        log_w: ArrayLike | Callable[[int], float],
        *,
        min_size: int = 1,
        max_size: int | None = None,
    ) -> None:
        super().__init__(min_size=min_size, max_size=max_size)
        self.log_v, self.log_w = log_v, log_w

    def _tables(self, n_sites: int) -> tuple[Table, Table]:
        return self._table("log_v", self.log_v, n_sites), self._table("log_w", self.log_w, n_sites)

    @staticmethod
    def _table(name: str, source: ArrayLike | Callable[[int], float], n_sites: int) -> Table:
        if callable(source):
            table = np.array([0.0] + [float(source(i)) for i in range(1, n_sites + 1)])
        else:
            table = np.array(source, dtype=np.float64).ravel()[: n_sites + 1]
            if table.size < n_sites + 1:
                refuse(name, f"have at least n_sites + 1 = {n_sites + 1} entries", table.size)
            table[0] = 0.0
        bad = np.isnan(table) | (table == np.inf)
        if bad.any():
            refuse(name, "hold finite numbers or -inf", table[bad][0])
        return table


class ExchangeablePrior(PartitionPrior):
    """Any exchangeable prior, given as log g of the cluster sizes (largest first); -inf forbids.

    It has no tables: the sampler calls `log_g` for every distinct destination, exact but slower.
    """

    def __init__(
        self, log_g: Callable[[NDArray[np.int64]], float], *, min_size: int = 1, max_size: int | None = None
    ) -> None:
        super().__init__(min_size=min_size, max_size=max_size)
        if not callable(log_g):
            refuse("log_g", "be a function of the cluster sizes", log_g)
        self._log_g = log_g

    def _tables(self, n_sites: int) -> tuple[Table, Table]:
        raise TypeError("an ExchangeablePrior has no tables log_v, log_w: use log_g(sizes), or TabulatedPrior")

    def log_g(self, sizes: ArrayLike) -> float:
        """Unnormalised log probability of a partition with these cluster sizes."""
        m = -np.sort(-np.asarray(sizes, dtype=np.int64))
        if m[-1] < self.min_size or (self.max_size is not None and m[0] > self.max_size):
            return -math.inf
        value = float(self._log_g(m))
        if math.isnan(value) or value == math.inf:
            refuse("log_g(sizes)", f"be a finite number or -inf at sizes {m.tolist()}", value)
        return value
