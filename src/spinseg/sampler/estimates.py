"""Point estimates: the partition that minimizes a posterior expected loss, expected losses, and credible balls."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinseg._validation import check_choice, check_real, counted, invalid
from spinseg.graph.merging import absorb_small
from spinseg.graph.site_graph import SiteGraph
from spinseg.model.posterior import Model
from spinseg.partition.contingency import ContingencyTable, binder_of, contingency_table, vi_of
from spinseg.partition.numbering import checked_labels, in_order
from spinseg.partition.pairs import Partition, count_clusters, flatten_draws, labels_of, separation_probability
from spinseg.sampler.chains import Chains
from spinseg.sampler.estimate_search import COSTS, best_draw, costs_of_binder, costs_of_vi, search

METRICS = {"vi": vi_of, "binder": binder_of}
ROUNDING_ERROR = 1e-9  # distances that differ by less are taken as equal


@dataclass(frozen=True, eq=False, repr=False)
class Estimate:
    """A partition, numbered 0..k-1 by first appearance, and its expected loss over all draws.

    Examples
    --------
    >>> import spinseg as ss
    >>> found = ss.minimize_vi([[0, 0, 1], [0, 0, 1], [0, 1, 1]])
    >>> found.labels.tolist()
    [0, 0, 1]
    """

    labels: NDArray[np.int32]
    expected_loss: float

    def __repr__(self) -> str:
        clusters = counted(int(self.labels.max()) + 1, "cluster")
        return f"Estimate of {clusters} for {counted(self.labels.size, 'site')}, expected loss {self.expected_loss:.4g}"


def minimize_vi(
    labels: ArrayLike | Chains,
    *,
    graph: SiteGraph | None = None,
    seeds: ArrayLike | None = None,
    max_clusters: int | None = None,
    max_draws: int = 500,
    rng: int | np.random.Generator | None = None,
) -> Estimate:
    """Search for the partition of least posterior expected variation of information (`expected_vi`, in bits).

    A greedy search like SALSO. From each start it moves single sites to the cluster of least loss, and dissolves each
    cluster in turn and reallocates its sites one by one, until neither lowers the loss. The starts are the best draws,
    one cluster, random labels, and sequential allocation of all sites. Memory does not grow with the square of the
    number of sites.

    Parameters
    ----------
    labels : Chains or (.., n_sites) array of int
        Draws.
    graph : SiteGraph, optional
        Search only among partitions whose clusters are connected in this graph. The draws need not be connected. Where
        they are, and there are more than 100 sites, parts that no draw joins are searched apart: a cluster that would
        need a site of another part as a bridge is not found.
    seeds : (n_sites,) array of int, optional
        Search only among partitions that keep these seeds, as in `Model`. All draws must keep them.
    max_clusters : int, optional
        The maximum number of clusters of the estimate; by default as many as tables of 1 GiB can hold, and at least
        twice as many as any draw has. With a graph it must be at least the number of seeds and of components without a
        seed.
    max_draws : int
        The search uses at most this many draws, evenly spaced; fewer where its tables would exceed 1 GiB.
    rng : int, Generator or None
        Seed of the starts and of the order of sites. The same seed gives the same estimate.

    Returns
    -------
    Estimate
        The partition and its expected loss.

    References
    ----------
    Dahl, Johnson & Mueller (2022), https://doi.org/10.1080/10618600.2022.2069779;
    Wade & Ghahramani (2018), https://doi.org/10.1214/17-BA1073

    Examples
    --------
    >>> import spinseg as ss
    >>> ss.minimize_vi(
    ...     [[0, 0, 1, 1], [0, 0, 1, 2], [0, 0, 1, 1]], rng=0
    ... ).labels
    array([0, 0, 1, 1], dtype=int32)
    """
    draws = flatten_draws(labels)
    found = search(draws, costs_of_vi(draws.shape[1]), graph, seeds, max_clusters, max_draws, rng)
    return Estimate(found, expected_vi(draws, found))


def minimize_binder(
    labels: ArrayLike | Chains,
    *,
    cost_apart: float = 1.0,
    cost_together: float = 1.0,
    graph: SiteGraph | None = None,
    seeds: ArrayLike | None = None,
    max_clusters: int | None = None,
    max_draws: int = 500,
    rng: int | np.random.Generator | None = None,
) -> Estimate:
    """Search for the partition of least posterior expected loss of Binder (`expected_binder`, per pair of sites).

    The search is that of `minimize_vi`. With equal costs the estimate has a singleton cluster for many uncertain sites;
    a larger `cost_apart`, or `max_clusters`, prevents that.

    Parameters
    ----------
    labels : Chains or (.., n_sites) array of int
        Draws.
    cost_apart, cost_together : float
        The cost of separating two sites that belong together, and of joining two that do not. A graph of two sites
        would be joined where their probability to be together is above cost_together / (cost_apart + cost_together).
    graph, seeds, max_clusters, max_draws, rng
        As in `minimize_vi`.

    Returns
    -------
    Estimate
        The partition and its expected loss.

    Examples
    --------
    >>> import spinseg as ss
    >>> draws = [[0, 0, 1, 1], [0, 0, 0, 0], [0, 0, 0, 0]]
    >>> (
    ...     ss.minimize_binder(draws, rng=0).labels,
    ...     ss.minimize_binder(draws, cost_together=3, rng=0).labels,
    ... )
    (array([0, 0, 0, 0], dtype=int32), array([0, 0, 1, 1], dtype=int32))
    """
    apart, together = check_real("cost_apart", cost_apart, above=0), check_real("cost_together", cost_together, above=0)
    draws = flatten_draws(labels)
    costs = costs_of_binder(draws.shape[1], apart, together)
    found = search(draws, costs, graph, seeds, max_clusters, max_draws, rng)
    return Estimate(found, expected_binder(draws, found, cost_apart=apart, cost_together=together))


def allowed_estimate(
    model: Model,
    draws: NDArray[np.int32],
    loss: str,
    *,
    max_clusters: int | None = None,
    max_draws: int = 500,
    rng: int,
) -> NDArray[np.int32]:
    """The partition of least expected loss, "vi" or "binder", over the draws that has a positive probability.

    The least loss over all partitions may be that of one which the posterior forbids: with more clusters than any draw
    has, or larger or smaller ones. The first of these that is allowed is returned: the partition that `minimize_vi` or
    `minimize_binder` finds, among connected ones that keep the seeds where the posterior asks for them; the same with
    at most as many clusters as a draw has; the draw of least expected loss. Where clusters are connected, those of the
    first two that are too small have joined the neighbor from which the draws separate them least.

    Examples
    --------
    >>> import spinseg as ss
    >>> draws = np.repeat([[0, 1, 1], [0, 0, 1], [0, 1, 0]], 5, axis=1)
    >>> model = ss.Model(ss.SiteGraph(15, []), ss.Flat(), ss.Potts(2))
    >>> (
    ...     ss.minimize_vi(draws, rng=0).labels.max() + 1,
    ...     allowed_estimate(model, draws, "vi", rng=0).max() + 1,
    ... )
    (np.int32(3), np.int32(2))
    """
    rows = flatten_draws(draws)
    graph, costs, most = model.graph if model.connected else None, COSTS[loss](rows.shape[1]), int(rows.max()) + 1
    for limit in (max_clusters, most):
        found = search(rows, costs, graph, model.seeds, limit, max_draws, rng)
        if model.connected and model.prior.min_size > 1:
            apart = separation_probability(rows, model.graph.edges)
            found = absorb_small(found, model.graph, -apart, model.prior.min_size, seeds=model.seeds)
        if model.allows(found):
            return found
        if limit is not None and limit <= most:
            break
    return best_draw(rows, loss, max_draws=max_draws)


def expected_vi(labels: ArrayLike | Chains, candidate: ArrayLike | Partition) -> float:
    """Return the mean variation of information between a partition and the draws, in bits.

    VI = 1/n sum n_kj (log2 n_k / n_kj + log2 m_j / n_kj), with n_k of n sites in cluster k of the candidate, m_j in
    cluster j of the draw and n_kj in both.

    Parameters
    ----------
    labels : Chains or (.., n_sites) array of int
        Draws.
    candidate : Estimate, Mode or (n_sites,) array of int

    Returns
    -------
    float
        0 if all draws equal the candidate.

    References
    ----------
    Meila (2007), https://doi.org/10.1016/j.jmva.2006.11.013

    Examples
    --------
    >>> import spinseg as ss
    >>> ss.expected_vi([[0, 0, 1, 1], [0, 0, 0, 0]], [0, 0, 1, 1])
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

    Returns
    -------
    float
        0 if all draws equal the candidate.

    References
    ----------
    Binder (1978), https://doi.org/10.1093/biomet/65.1.31

    Examples
    --------
    >>> import spinseg as ss
    >>> ss.expected_binder([[0, 0, 1, 1], [0, 0, 0, 0]], [0, 0, 1, 1])
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
    >>> import spinseg as ss
    >>> ball = ss.credible_ball(
    ...     [[0, 0, 1], [0, 0, 1], [0, 1, 1]], center=[0, 0, 1], level=0.5
    ... )
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

    Returns
    -------
    CredibleBall
        Its radius, and the partitions at its bounds.

    References
    ----------
    Wade & Ghahramani (2018), https://doi.org/10.1214/17-BA1073

    Examples
    --------
    >>> import spinseg as ss
    >>> ball = ss.credible_ball(
    ...     [[0, 0, 1, 1], [0, 0, 1, 2], [0, 0, 0, 0]], [0, 0, 1, 1]
    ... )
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
