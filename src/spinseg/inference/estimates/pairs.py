"""Summaries of draws that do not depend on how clusters are numbered."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinseg._validation import check_int, integer_array, invalid


def flatten_draws(labels: ArrayLike) -> NDArray[np.int32]:
    """Return draws of shape (.., n_sites) as the rows of a matrix; there must be at least one."""
    array = integer_array("labels", labels)
    if array.ndim == 0 or array.size == 0:
        invalid("labels", "hold at least one draw, shape (.., n_sites)", array.shape)
    return array.reshape(-1, array.shape[-1])


def separation_probability(labels: NDArray[np.int32], edges: NDArray[np.int32]) -> NDArray[np.float64]:
    """Return, for each edge, the fraction of draws (.., n_sites) in which its two sites are in different clusters.

    Examples
    --------
    >>> separation_probability(np.array([[0, 0, 1], [0, 1, 1]]), np.array([[0, 1], [0, 2]])).tolist()
    [0.5, 1.0]
    """
    draws = labels.reshape(-1, labels.shape[-1])
    n_separated = np.zeros(len(edges), np.int64)
    for draw in draws:  # one at a time: a table of draws x edges may exceed memory
        n_separated += draw[edges[:, 0]] != draw[edges[:, 1]]
    return n_separated / max(len(draws), 1)


def co_clustering(labels: ArrayLike, site: int) -> NDArray[np.float64]:
    """Return, for each site, the fraction of draws in which it is in the cluster of the given site.

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
    draws = flatten_draws(labels)
    site = check_int("site", site, at_least=0, below=draws.shape[1])
    return (draws == draws[:, [site]]).mean(axis=0)


def count_clusters(labels: ArrayLike) -> NDArray[np.int64]:
    """Return the number of clusters of each draw.

    Parameters
    ----------
    labels : (.., n_sites) array of int
        Draws, such as `Chains.labels`.

    Examples
    --------
    >>> count_clusters([[0, 0, 1], [0, 1, 1], [0, 1, 2]]).tolist()
    [2, 2, 3]
    """
    counts = [np.unique(draw).size for draw in flatten_draws(labels)]
    return np.array(counts).reshape(np.shape(labels)[:-1])
