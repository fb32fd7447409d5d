"""The prior of the kinds of regions: a partition of the regions, whose number is random itself."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

from spinseg._validation import invalid
from spinseg.model.priors import ExchangeablePrior, PartitionPrior, Table

MAX_SITES = 400  # for which the sums over partitions are computed, where no formula is known


def kind_tables(prior: PartitionPrior, n_sites: int) -> tuple[Table, Table, Table]:
    """log_v, log_w and log_total, each of length n_sites + 1.

    p(kinds | r regions) = exp(log_v[k] + sum of log_w[m_j] - log_total[r]) with m_j regions of kind j. log_total is
    infinite where the prior allows no partition of that number of regions.
    """
    if isinstance(prior, ExchangeablePrior):
        invalid("kinds", "be a prior with tables, such as TabulatedPrior", prior)
    log_v, log_w = prior.tables(n_sites)
    has_limits = prior.min_size > 1 or (prior.max_size is not None and prior.max_size < n_sites)
    if not has_limits and _is_one_for_all(prior, n_sites):
        known = [prior.log_normalizer(n) for n in range(1, n_sites + 1)]
        return log_v, log_w, np.array([0.0, *known], dtype=np.float64)
    if n_sites > MAX_SITES:
        rule = (
            f"be a DirichletProcess, PitmanYor, FiniteDirichlet or Potts without limits on more than {MAX_SITES} sites"
        )
        invalid("kinds", rule, prior)
    log_total = _log_sums(log_v, log_w)
    return log_v, log_w, np.where(log_total > -np.inf, log_total, np.inf)


def _is_one_for_all(prior: PartitionPrior, n_sites: int) -> bool:
    """Whether the sums over partitions are known, of tables that do not depend on the number of sites."""
    whole = prior.tables(n_sites)
    for n in {1, n_sites // 2, n_sites - 1} - {0}:
        if not all(np.array_equal(a[1 : n + 1], b[1:]) for a, b in zip(whole, prior.tables(n), strict=True)):
            return False
    return prior.log_normalizer(n_sites) is not None


def _log_sums(log_v: Table, log_w: Table) -> NDArray[np.float64]:
    """The log of the sum of exp(log_v[k] + sum of log_w) over all partitions of 0..n items, with no item's as 0.

    The cluster of the first item has m - 1 of the others, and what is left is partitioned into k - 1 clusters.
    """
    n = log_v.size - 1
    items, size = np.arange(n + 1)[:, None], np.arange(n + 1)
    left = items - size
    ways = np.full((n + 1, n + 1), -np.inf)
    fits = (size >= 1) & (left >= 0)
    ways[fits] = (
        gammaln(np.maximum(items, 1)) - gammaln(np.maximum(size, 1)) - gammaln(np.maximum(left, 0) + 1) + log_w
    )[fits]
    into = np.where(size == 0, 0.0, -np.inf)  # k clusters, from k = 0 on
    total = np.full(n + 1, -np.inf)
    for k in range(1, n + 1):
        with np.errstate(divide="ignore"):
            into = logsumexp(ways + into[np.maximum(left, 0)], axis=1)
        total = np.logaddexp(total, log_v[k] + into)
    total[0] = 0.0
    return total
