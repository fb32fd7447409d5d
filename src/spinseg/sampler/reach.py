"""What chains can reach where the prior limits the sizes or the number of clusters."""

import warnings

import numpy as np
from numpy.typing import NDArray

from spinseg.model.posterior import Model


class UnreachableWarning(UserWarning):
    """Chains cannot reach every partition that the prior allows."""


def is_limited(model: Model) -> bool:
    """Whether the prior keeps clusters from merging and splitting freely, so that sites must be exchanged."""
    fewest = model.graph.component_sizes.size if model.connected else 1
    if model.tables is None:
        return model.prior.max_size is not None and model.prior.max_size < model.graph.n_sites
    log_v, log_w = model.tables
    return log_v[fewest] == -np.inf or bool((log_w[model.prior.min_size :] == -np.inf).any())


def warn_of_unreachable(line: str | None, stacklevel: int) -> None:
    """Warn where `unreachable` returned a line."""
    if line is not None:
        warnings.warn(line, UnreachableWarning, stacklevel=stacklevel)


def unreachable(model: Model, moves: str, splits_only: bool = False) -> str | None:
    """That chains cannot reach every partition that the prior allows, why, and what to do; None where they can.

    `splits_only` says that two clusters are never regrouped into three. One case is not recognized: connected clusters
    that leave no room in a graph with few ways around, such as a ring of three clusters of the same size.
    """
    reason = _limit_of_reach(model, moves, splits_only)
    return f"The chains cannot reach every partition that the prior allows: {reason}" if reason else None


def _limit_of_reach(model: Model, moves: str, splits_only: bool) -> str | None:
    """What keeps chains from reaching every partition that the prior allows, and what to do."""
    n_sites, prior = model.graph.n_sites, model.prior
    numbers = allowed_numbers(model)
    if moves == "gsw":
        if prior.min_size > 1:
            limit = f"min_size is {prior.min_size}"
            return f"with moves='gsw', hardly any cluster can be split or left where {limit}. Use moves='auto'."
        if prior.max_size is not None and numbers[-1] * prior.max_size == n_sites:
            return "with moves='gsw', no site can move where all clusters are full. Use moves='auto'."
    if (np.diff(numbers) > 1).any():
        return f"it allows {numbers[0]} to {numbers[-1]} clusters, but not every number between. Allow these as well."
    if model.tables is not None:
        allowed = np.flatnonzero(model.tables[1][1:] > -np.inf) + 1
        if allowed[-1] - allowed[0] >= allowed.size:
            return "it forbids some sizes between the smallest and the largest one. Allow these as well."
    room = 2 if splits_only else 1.5
    if len(numbers) > 1 and prior.max_size is not None and prior.max_size < room * prior.min_size:
        sizes = f"sizes from {prior.min_size} to {prior.max_size}"
        return (
            f"{sizes} leave no room to split or merge clusters, so that a chain keeps its number of clusters. "
            f"Let max_size be at least {room:g} times min_size."
        )
    return None


def allowed_numbers(model: Model) -> NDArray[np.intp]:
    """The numbers of clusters that the prior and its size limits allow."""
    prior, n_sites = model.prior, model.graph.n_sites
    parts = model.graph.component_sizes if model.connected else np.array([n_sites])
    fewest = parts.size if prior.max_size is None else int((-(-parts // prior.max_size)).sum())
    most = int((parts // prior.min_size).sum())
    if model.tables is None:
        return np.arange(fewest, most + 1)
    return fewest + np.flatnonzero(model.tables[0][fewest : most + 1] > -np.inf)
