"""Summaries of draws that do not depend on how clusters are numbered."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinseg._validation import check_int, integer_array, invalid
from spinseg.inference.regions import regions_of
from spinseg.model.graph import SiteGraph


def flat_draws(labels: ArrayLike) -> NDArray[np.int32]:
    """Draws of shape (.., n_sites) as rows, refused where there is none."""
    array = integer_array("labels", labels)
    if array.ndim == 0 or array.size == 0:
        invalid("labels", "hold at least one draw, shape (.., n_sites)", array.shape)
    return array.reshape(-1, array.shape[-1])


def separation_probability(labels: NDArray[np.int32], edges: NDArray[np.int32]) -> NDArray[np.float64]:
    """How often the two ends of each edge lie in different clusters, over draws of shape (.., n_sites).

    Examples
    --------
    >>> separation_probability(np.array([[0, 0, 1], [0, 1, 1]]), np.array([[0, 1], [0, 2]])).tolist()
    [0.5, 1.0]
    """
    draws = labels.reshape(-1, labels.shape[-1])
    apart = np.zeros(len(edges), np.int64)
    for draw in draws:  # one at a time: a table of draws x edges may not fit
        apart += draw[edges[:, 0]] != draw[edges[:, 1]]
    return apart / max(len(draws), 1)


def co_clustering(labels: ArrayLike, site: int) -> NDArray[np.float64]:
    """How often each site lies in the same cluster as the chosen one: one number per site, over all draws.

    Parameters
    ----------
    labels : (.., n_sites) array of int
        Draws, such as `Chains.labels`.
    site : int

    Examples
    --------
    >>> co_clustering([[0, 0, 1], [0, 1, 1]], site=0).tolist()
    [1.0, 0.5, 0.0]
    """
    draws = flat_draws(labels)
    site = check_int("site", site, at_least=0, below=draws.shape[1])
    return (draws == draws[:, [site]]).mean(axis=0)


def count_clusters(labels: ArrayLike) -> NDArray[np.int64]:
    """Number of clusters of each draw; `pmf` of it is their posterior.

    Parameters
    ----------
    labels : (.., n_sites) array of int
        Draws, such as `Chains.labels`.

    Examples
    --------
    >>> pmf(count_clusters([[0, 0, 1], [0, 1, 1], [0, 1, 2], [0, 1, 0]]))
    {2: 0.75, 3: 0.25}
    """
    counts = [np.unique(draw).size for draw in flat_draws(labels)]
    return np.array(counts).reshape(np.shape(labels)[:-1])


def count_regions(labels: ArrayLike, graph: SiteGraph) -> NDArray[np.int64]:
    """Number of regions of each draw: the connected pieces of its clusters; `pmf` of it is their posterior.

    Parameters
    ----------
    labels : (.., n_sites) array of int
        Draws, such as `Chains.labels`.
    graph : SiteGraph

    Examples
    --------
    >>> count_regions([[0, 0, 0], [0, 1, 0]], SiteGraph(3, [[0, 1], [1, 2]])).tolist()
    [1, 3]
    """
    draws, n_sites = flat_draws(labels), graph.n_sites
    if draws.shape[1] != n_sites:
        invalid("labels", f"have the graph's {n_sites} sites", draws.shape[1])
    counts = [int(regions_of(draw, graph).max()) + 1 for draw in draws]
    return np.array(counts).reshape(np.shape(labels)[:-1])


def pmf(counts: ArrayLike) -> dict[int, float]:
    """How often each whole number occurs, in increasing order.

    Examples
    --------
    >>> pmf([3, 3, 2, 3])
    {2: 0.25, 3: 0.75}
    """
    values, times = np.unique(integer_array("counts", counts), return_counts=True)
    return dict(zip(values.tolist(), (times / times.sum()).tolist(), strict=True))


def aligned(labels: ArrayLike, reference: ArrayLike) -> NDArray[np.int32]:
    """The draws, renumbered so that as many sites as possible keep the number that they have in the reference.

    Each cluster of the reference gives its number to at most one cluster of a draw, which shares sites with it (an
    assignment problem on the contingency table). Other clusters get numbers beyond those of the reference; these say
    nothing from one draw to the next.

    Parameters
    ----------
    labels : (.., n_sites) array of int
        Draws, such as `Chains.labels`.
    reference : (n_sites,) array of int
        A point estimate, say; its numbers are kept.

    Examples
    --------
    >>> aligned([[0, 1, 1, 1], [0, 1, 2, 2]], [0, 0, 1, 1]).tolist()
    [[0, 1, 1, 1], [0, 2, 1, 1]]
    """
    from scipy.optimize import linear_sum_assignment  # takes long to load, and segment() needs this file

    draws = flat_draws(labels)
    wanted = integer_array("reference", reference)
    if wanted.shape != draws.shape[1:]:
        invalid("reference", f"have one entry per site, shape {draws.shape[1:]}", wanted.shape)
    numbers, z = np.unique(wanted, return_inverse=True)
    out = np.empty(draws.shape, np.int32)
    for row, draw in zip(out, draws, strict=True):
        clusters, w = np.unique(draw, return_inverse=True)
        shared = np.bincount(z * clusters.size + w, minlength=numbers.size * clusters.size).reshape(numbers.size, -1)
        ours, theirs = linear_sum_assignment(shared, maximize=True)
        meeting = shared[ours, theirs] > 0
        others = np.setdiff1d(np.arange(clusters.size), theirs[meeting])
        new = np.empty(clusters.size, np.int64)
        new[theirs[meeting]] = numbers[ours[meeting]]
        new[others] = numbers[-1] + 1 + np.arange(others.size)
        row[:] = new[w]
    return out.reshape(np.shape(labels))
