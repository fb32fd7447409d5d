"""Kinds of the regions of one partition, from draws in which every site has a kind."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def kind_shares(regions: NDArray[np.integer], kinds: NDArray[np.integer], weights: NDArray[Any]) -> NDArray[np.float64]:
    """Return the share of each kind in the weight of each region, (n_regions, n_kinds), in one draw."""
    n_regions, n_kinds = int(regions.max()) + 1, int(kinds.max()) + 1
    table = np.bincount(regions * n_kinds + kinds, weights, n_regions * n_kinds).reshape(n_regions, n_kinds)
    return table / table.sum(axis=1, keepdims=True)


def same_kind_probability(
    regions: NDArray[np.integer], draws: NDArray[np.integer], weights: NDArray[Any]
) -> NDArray[np.float64]:
    """Return how often a point of one region and a point of another are of one kind, (n_regions, n_regions).

    `draws`, (n_draws, n_sites), have the kinds of the sites. Points of one region may be of two kinds in a draw, so
    that the diagonal need not be 1.
    """
    shares = [kind_shares(regions, kinds, weights) for kinds in draws]
    return np.mean([share @ share.T for share in shares], axis=0)


def majority_kinds(
    regions: NDArray[np.integer], draws: NDArray[np.integer], weights: NDArray[Any]
) -> NDArray[np.int32]:
    """Return the kind that most of each region has in each draw, (n_draws, n_regions)."""
    return np.array([kind_shares(regions, kinds, weights).argmax(axis=1) for kinds in draws], dtype=np.int32)
