"""Summaries of draws that do not depend on how clusters are numbered."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinseg._validation import check_int, checked_edges, integer_array, invalid
from spinseg.partition.contingency import contingency_table

BLOCK_DRAWS, BLOCK_EDGES = 128, 1024  # that are compared at a time: about what a processor keeps near


@runtime_checkable
class Partition(Protocol):
    """What has the labels of one partition: `Estimate` and `Mode`; or of many: `Chains`."""

    @property
    def labels(self) -> NDArray[np.int32]:
        """(.., n_sites)."""


def labels_of(draws: ArrayLike | Partition) -> ArrayLike:
    """Return the labels of chains, or of a partition; labels themselves as they are."""
    return draws.labels if isinstance(draws, Partition) else draws


def flatten_draws(labels: ArrayLike | Partition) -> NDArray[np.int32]:
    """Return draws of shape (.., n_sites) as the rows of a matrix; there must be at least one."""
    array = integer_array("labels", labels_of(labels))
    if array.ndim == 0 or array.size == 0:
        invalid("labels", "hold at least one draw, shape (.., n_sites)", array.shape)
    return array.reshape(-1, array.shape[-1])


def separation_probability(labels: ArrayLike | Partition, edges: ArrayLike) -> NDArray[np.float64]:
    """Return, for each edge, the fraction of draws in which its two sites are in different clusters; NaN without draws.

    Parameters
    ----------
    labels : Chains or (.., n_sites) array of int
        Draws.
    edges : (n_edges, 2) array of int

    Returns
    -------
    (n_edges,) array of float64
        From 0, always together, to 1, always apart.

    Examples
    --------
    >>> import numpy as np
    >>> import spinseg as ss
    >>> ss.separation_probability(
    ...     np.array([[0, 0, 1], [0, 1, 1]]), np.array([[0, 1], [0, 2]])
    ... ).tolist()
    [0.5, 1.0]
    """
    drawn = integer_array("labels", labels_of(labels))
    if drawn.ndim == 0:
        invalid("labels", "be draws, shape (.., n_sites)", drawn.shape)
    draws, edges = drawn.reshape(-1, drawn.shape[-1]), checked_edges(edges, drawn.shape[-1])
    n_separated = np.zeros(len(edges), np.int64)
    for d in range(0, len(draws), BLOCK_DRAWS):  # in blocks: a table of draws x edges may exceed memory
        of_site = np.ascontiguousarray(draws[d : d + BLOCK_DRAWS].T)
        for e in range(0, len(edges), BLOCK_EDGES):
            first, second = edges[e : e + BLOCK_EDGES].T
            differ = of_site.take(first, axis=0) != of_site.take(second, axis=0)
            n_separated[e : e + BLOCK_EDGES] += differ.sum(axis=1)
    return n_separated / len(draws) if len(draws) else np.full(len(edges), np.nan)


def co_clustering(labels: ArrayLike | Partition, site: int | None = None) -> NDArray[np.float64]:
    """Return, for each site, the fraction of draws in which it is in the cluster of the given site.

    Parameters
    ----------
    labels : Chains or (.., n_sites) array of int
        Draws.
    site : int, optional
        Without it, the result is the matrix of all pairs, (n_sites, n_sites).

    Returns
    -------
    (n_sites,) or (n_sites, n_sites) array of float64
        From 0, never together, to 1, always together.

    Examples
    --------
    >>> import spinseg as ss
    >>> ss.co_clustering([[0, 0, 1], [0, 1, 1]], site=0).tolist()
    [1.0, 0.5, 0.0]
    >>> ss.co_clustering([[0, 0, 1], [0, 1, 1]]).tolist()
    [[1.0, 0.5, 0.0], [0.5, 1.0, 0.5], [0.0, 0.5, 1.0]]
    """
    draws = flatten_draws(labels)
    if site is None:
        together = np.zeros((draws.shape[1], draws.shape[1]))
        for draw in draws:  # one at a time: a table of draws x pairs may exceed memory
            together += draw[:, None] == draw
        return together / len(draws)
    site = check_int("site", site, at_least=0, below=draws.shape[1])
    return (draws == draws[:, [site]]).mean(axis=0)


def count_clusters(labels: ArrayLike | Partition) -> NDArray[np.int64]:
    """Return the number of clusters of each draw, in the shape of the draws."""
    counts = [np.unique(draw).size for draw in flatten_draws(labels)]
    return np.array(counts).reshape(np.shape(labels_of(labels))[:-1])


def cohesion(labels: NDArray[np.int32], regions: NDArray[np.int32]) -> NDArray[np.float64]:
    """How often two sites of a region share a cluster, one number per region, over draws of shape (.., n_sites).

    Per draw it is sum_c n_c (n_c - 1) / n (n - 1), n_c of the region's n sites being in cluster c; 1 for a single site.
    """
    sizes = np.bincount(regions)
    pairs, draws = np.zeros(sizes.size), labels.reshape(-1, labels.shape[-1])
    for draw in draws:
        table = contingency_table(regions, draw)
        pairs += np.bincount(table.row, table.shared * (table.shared - 1), sizes.size)
    return np.where(sizes > 1, pairs / np.maximum(len(draws) * sizes * (sizes - 1), 1), 1.0)


def kind_shares(regions: NDArray[np.integer], kinds: NDArray[np.integer], weights: NDArray[Any]) -> NDArray[np.float64]:
    """Return the share of each kind in the weight of each region, (n_regions, n_kinds), in a draw of kinds of sites."""
    n_regions, n_kinds = int(regions.max()) + 1, int(kinds.max()) + 1
    table = np.bincount(regions * n_kinds + kinds, weights, n_regions * n_kinds).reshape(n_regions, n_kinds)
    return table / table.sum(axis=1, keepdims=True)


def same_kind_probability(
    regions: NDArray[np.integer], draws: NDArray[np.integer], weights: NDArray[Any]
) -> NDArray[np.float64]:
    """Return how often a point of one region and a point of another are of one kind, (n_regions, n_regions).

    Points of one region may be of two kinds in a draw, so that the diagonal need not be 1.
    """
    shares = [kind_shares(regions, kinds, weights) for kinds in draws]
    return np.mean([share @ share.T for share in shares], axis=0)


def majority_kinds(
    regions: NDArray[np.integer], draws: NDArray[np.integer], weights: NDArray[Any]
) -> NDArray[np.int32]:
    """Return the kind that most of each region has in each draw, (n_draws, n_regions)."""
    return np.array([kind_shares(regions, kinds, weights).argmax(axis=1) for kinds in draws], dtype=np.int32)
