"""Distances between partitions: expected losses and credible balls."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinseg._validation import check_choice, check_real, invalid
from spinseg.partition.contingency import ContingencyTable, binder_of, contingency_table, vi_of
from spinseg.partition.numbering import checked_labels, in_order
from spinseg.partition.pairs import Partition, count_clusters, flatten_draws, labels_of
from spinseg.sampler.chains import Chains

METRICS = {"vi": vi_of, "binder": binder_of}
ROUNDING_ERROR = 1e-9  # distances that differ by less are taken as equal


def expected_vi(labels: ArrayLike | Chains, candidate: ArrayLike | Partition) -> float:
    """Return the mean variation of information between a partition and the draws, in bits.

    VI = 1/n sum n_kj (log2 n_k / n_kj + log2 m_j / n_kj), with n_k of n sites in cluster k of the candidate, m_j in
    cluster j of the draw and n_kj in both.

    Parameters
    ----------
    labels : Chains or (.., n_sites) array of int
        Draws.
    candidate : Estimate, Mode or (n_sites,) array of int

    References
    ----------
    Meila (2007), https://doi.org/10.1016/j.jmva.2006.11.013

    Examples
    --------
    >>> expected_vi([[0, 0, 1, 1], [0, 0, 0, 0]], [0, 0, 1, 1])
    0.5
    """
    return float(np.mean([vi_of(table) for table in _tables(flatten_draws(labels), candidate)]))


def expected_binder(
    labels: ArrayLike | Chains,
    candidate: ArrayLike | Partition,
    *,
    cost_apart: float = 1.0,
    cost_together: float = 1.0,
) -> float:
    """Return the mean of Binder's loss between a partition and the draws, per pair of sites.

    cost_apart (pairs together in the draw and apart in the candidate) + cost_together (pairs apart in the draw and
    together in the candidate), over n (n - 1) / 2. With both costs 1 it is one minus the Rand index.

    Parameters
    ----------
    labels : Chains or (.., n_sites) array of int
        Draws.
    candidate : Estimate, Mode or (n_sites,) array of int
    cost_apart, cost_together : float
        The cost of separating two sites that belong together, and of joining two that do not.

    References
    ----------
    Binder (1978), https://doi.org/10.1093/biomet/65.1.31

    Examples
    --------
    >>> expected_binder([[0, 0, 1, 1], [0, 0, 0, 0]], [0, 0, 1, 1])
    0.3333333333333333
    """
    apart, together = check_real("cost_apart", cost_apart, above=0), check_real("cost_together", cost_together, above=0)
    return float(np.mean([binder_of(table, apart, together) for table in _tables(flatten_draws(labels), candidate)]))


@dataclass(frozen=True, eq=False)
class CredibleBall:
    """The partitions within `radius` of `center`, and the draws at the bounds of this ball.

    Attributes
    ----------
    center : (n_sites,) int32
    radius : float
        The smallest radius such that the fraction `level` of the draws is in the ball.
    horizontal : (any, n_sites) int32
        The draws in the ball that are farthest from its center.
    upper : (any, n_sites) int32
        Of the draws in the ball with the fewest clusters, those farthest from its center.
    lower : (any, n_sites) int32
        Of the draws in the ball with the most clusters, those farthest from its center.
    level : float
    metric : str

    Examples
    --------
    >>> ball = credible_ball([[0, 0, 1], [0, 0, 1], [0, 1, 1]], center=[0, 0, 1], level=0.5)
    >>> ball.radius
    0.0
    """

    center: NDArray[np.int32] = field(repr=False)
    radius: float
    horizontal: NDArray[np.int32] = field(repr=False)
    upper: NDArray[np.int32] = field(repr=False)
    lower: NDArray[np.int32] = field(repr=False)
    level: float
    metric: str


def credible_ball(
    labels: ArrayLike | Chains, center: ArrayLike | Partition, *, level: float = 0.95, metric: str = "vi"
) -> CredibleBall:
    """Return the smallest ball around a partition that contains the fraction `level` of the draws.

    Parameters
    ----------
    labels : Chains or (.., n_sites) array of int
        Draws.
    center : Estimate, Mode or (n_sites,) array of int
        A point estimate, such as that of `minimize_vi`.
    level : float
        Above 0, at most 1.
    metric : {"vi", "binder"}
        Variation of information in bits, or the fraction of pairs of sites that are together in one partition only.

    References
    ----------
    Wade & Ghahramani (2018), https://doi.org/10.1214/17-BA1073

    Examples
    --------
    >>> ball = credible_ball([[0, 0, 1, 1], [0, 0, 1, 2], [0, 0, 0, 0]], [0, 0, 1, 1])
    >>> ball.radius, ball.upper.tolist(), ball.lower.tolist()
    (1.0, [[0, 0, 0, 0]], [[0, 0, 1, 2]])
    """
    check_choice("metric", metric, tuple(METRICS))
    if check_real("level", level, above=0) > 1:
        invalid("level", "be at most 1", level)
    draws = flatten_draws(labels)
    center = checked_labels("center", labels_of(center), draws.shape[1])
    distance = np.array([METRICS[metric](table) for table in _tables(draws, center)])
    # In floating point 0.95 * 20 is slightly above 19.
    radius = np.sort(distance)[int(np.ceil(level * len(draws) - ROUNDING_ERROR)) - 1]
    inside = np.flatnonzero(distance <= radius + ROUNDING_ERROR)
    n_clusters = count_clusters(draws[inside])

    def farthest(candidates: NDArray[np.intp]) -> NDArray[np.int32]:
        """Return the distinct partitions at the largest distance among these draws."""
        far = candidates[distance[candidates] >= distance[candidates].max() - ROUNDING_ERROR]
        return np.unique([checked_labels("labels", draws[d], draws.shape[1]) for d in far], axis=0)

    return CredibleBall(
        center=center,
        radius=float(radius),
        horizontal=farthest(inside),
        upper=farthest(inside[n_clusters == n_clusters.min()]),
        lower=farthest(inside[n_clusters == n_clusters.max()]),
        level=level,
        metric=metric,
    )


def _tables(draws: NDArray[np.int32], candidate: ArrayLike | Partition) -> Iterator[ContingencyTable]:
    """Yield the table of each draw: rows are clusters of the candidate, columns those of the draw."""
    z = checked_labels("candidate", labels_of(candidate), draws.shape[1])
    for draw in draws:
        yield contingency_table(z, in_order(draw))
