"""How far partitions lie apart: expected losses and credible balls."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinseg import _validation
from spinseg._validation import check_choice, check_real, invalid
from spinseg.inference.estimates.pairs import count_clusters, flat_draws

Counts = NDArray[np.int64]
METRICS = ("vi", "binder")
SAME = 1e-9  # distances closer than this differ by rounding only


def expected_vi(labels: ArrayLike, candidate: ArrayLike) -> float:
    """Mean variation of information between a partition and the draws, in bits.

    VI = (sum of f(n_k) + sum of f(m_j) - 2 sum of f(n_kj)) / n, f(x) = x log2 x, with n_k sites in cluster k of the
    candidate, m_j in cluster j of the draw and n_kj in both.

    Parameters
    ----------
    labels : (.., n_sites) array of int
        Draws, such as `Chains.labels`.
    candidate : (n_sites,) array of int

    References
    ----------
    Meila (2007), https://doi.org/10.1016/j.jmva.2006.11.013

    Examples
    --------
    >>> expected_vi([[0, 0, 1, 1], [0, 0, 0, 0]], [0, 0, 1, 1])
    0.5
    """
    return float(_vi(flat_draws(labels), candidate).mean())


def expected_binder(
    labels: ArrayLike, candidate: ArrayLike, *, cost_apart: float = 1.0, cost_together: float = 1.0
) -> float:
    """Mean of Binder's loss between a partition and the draws, per pair of sites.

    cost_apart (pairs that the draw joins and the candidate parts) + cost_together (pairs that the candidate joins and
    the draw parts), over n (n - 1) / 2. With equal costs of 1 it is one less the Rand index.

    Parameters
    ----------
    labels : (.., n_sites) array of int
        Draws, such as `Chains.labels`.
    candidate : (n_sites,) array of int
    cost_apart, cost_together : float
        What it costs to part two sites that belong together, and to join two that belong apart.

    References
    ----------
    Binder (1978), https://doi.org/10.1093/biomet/65.1.31

    Examples
    --------
    >>> expected_binder([[0, 0, 1, 1], [0, 0, 0, 0]], [0, 0, 1, 1])
    0.3333333333333333
    """
    apart, together = check_real("cost_apart", cost_apart, above=0), check_real("cost_together", cost_together, above=0)
    return float(_binder(flat_draws(labels), candidate, apart, together).mean())


@dataclass(frozen=True, eq=False)
class CredibleBall:
    """The partitions within `radius` of `centre`, and the draws at its bounds.

    Attributes
    ----------
    centre : (n_sites,) int32
    radius : float
        The least one within which the share `level` of the draws lies.
    horizontal : (any, n_sites) int32
        The draws in the ball that lie farthest from its centre.
    upper : (any, n_sites) int32
        Those with the fewest clusters in the ball, and of these the farthest.
    lower : (any, n_sites) int32
        Those with the most clusters in the ball, and of these the farthest.
    level : float
    metric : str
    """

    centre: NDArray[np.int32] = field(repr=False)
    radius: float
    horizontal: NDArray[np.int32] = field(repr=False)
    upper: NDArray[np.int32] = field(repr=False)
    lower: NDArray[np.int32] = field(repr=False)
    level: float
    metric: str


def credible_ball(labels: ArrayLike, centre: ArrayLike, *, level: float = 0.95, metric: str = "vi") -> CredibleBall:
    """The smallest ball around a partition that holds the share `level` of the draws, with its bounds.

    Parameters
    ----------
    labels : (.., n_sites) array of int
        Draws, such as `Chains.labels`.
    centre : (n_sites,) array of int
        A point estimate, such as that of `minimum_vi`.
    level : float
        Above 0, at most 1.
    metric : {"vi", "binder"}
        Variation of information in bits, or the share of pairs of sites that are together in one partition only.

    References
    ----------
    Wade & Ghahramani (2018), https://doi.org/10.1214/17-BA1073

    Examples
    --------
    >>> ball = credible_ball([[0, 0, 1, 1], [0, 0, 1, 2], [0, 0, 0, 0]], [0, 0, 1, 1])
    >>> ball.radius, ball.upper.tolist(), ball.lower.tolist()
    (1.0, [[0, 0, 0, 0]], [[0, 0, 1, 2]])
    """
    check_choice("metric", metric, METRICS)
    if check_real("level", level, above=0) > 1:
        invalid("level", "be at most 1", level)
    draws = flat_draws(labels)
    centre = _validation.labels("centre", centre, draws.shape[1])
    distance = _vi(draws, centre) if metric == "vi" else _binder(draws, centre, 1.0, 1.0)
    # A product such as 0.95 * 20 may come out just above the whole number that it is.
    radius = np.sort(distance)[int(np.ceil(level * len(draws) - SAME)) - 1]
    inside = np.flatnonzero(distance <= radius + SAME)
    n_clusters = count_clusters(draws[inside])

    def farthest(among: NDArray[np.intp]) -> NDArray[np.int32]:
        """The different partitions at the largest distance among these draws."""
        far = among[distance[among] >= distance[among].max() - SAME]
        return np.unique([_validation.labels("labels", draws[d], draws.shape[1]) for d in far], axis=0)

    return CredibleBall(
        centre=centre,
        radius=float(radius),
        horizontal=farthest(inside),
        upper=farthest(inside[n_clusters == n_clusters.min()]),
        lower=farthest(inside[n_clusters == n_clusters.max()]),
        level=level,
        metric=metric,
    )


def _vi(draws: NDArray[np.int32], candidate: ArrayLike) -> NDArray[np.float64]:
    """Variation of information between a partition and each draw."""

    def f(counts: Counts) -> float:
        return float(counts @ np.log2(counts))

    tables = _contingency(draws, candidate)
    return np.array([max(f(n_k) + f(m_j) - 2 * f(n_kj), 0.0) for n_k, m_j, n_kj in tables]) / draws.shape[1]


def _binder(
    draws: NDArray[np.int32], candidate: ArrayLike, cost_apart: float, cost_together: float
) -> NDArray[np.float64]:
    """Binder's loss between a partition and each draw."""

    def pairs(counts: Counts) -> int:
        return int(counts @ (counts - 1)) // 2

    losses = []
    for n_k, m_j, n_kj in _contingency(draws, candidate):
        both = pairs(n_kj)
        losses.append(cost_apart * (pairs(m_j) - both) + cost_together * (pairs(n_k) - both))
    n_sites = draws.shape[1]
    return np.array(losses) / max(n_sites * (n_sites - 1) / 2, 1)  # one site alone has no pair


def _contingency(draws: NDArray[np.int32], candidate: ArrayLike) -> Iterator[tuple[Counts, Counts, Counts]]:
    """For each draw the sizes of the candidate's clusters, of the draw's, and of what they share where it is not 0."""
    z = _validation.labels("candidate", candidate, draws.shape[1]).astype(np.int64)
    n_k = np.bincount(z)
    for draw in draws:
        _, w, m_j = np.unique(draw, return_inverse=True, return_counts=True)
        _, n_kj = np.unique(z * m_j.size + w, return_counts=True)
        yield n_k, m_j, n_kj
