"""The partition that a segmentation shows: an estimate from the draws at one detail."""

import numpy as np
from numpy.typing import NDArray

from spinseg.inference.chains import Chains
from spinseg.inference.estimates.allowed import allowed_estimate
from spinseg.model.mixture import Mixture
from spinseg.model.posterior import Model
from spinseg.segmentation.presets import details_of
from spinseg.segmentation.settings import Settings

WIDEST = 1 / 4  # details at most so far from the one asked for have a part in an estimate
MAX_DRAWS = 120  # that an estimate is made from


def estimated_partition(
    drawn: Chains, model: Model | Mixture, settings: Settings, seed: int, chain: int | None = None
) -> NDArray[np.int32]:
    """The partition that `settings.estimate` asks for; the best one visited where an interruption left no draws.

    It is that of all chains, or of one, and always a partition that the posterior allows (`allowed_estimate`). Where
    the posterior is a mixture over details, the draws are those at the details near `settings.detail`, and the best
    partition is that of the nearest one.
    """
    if settings.estimate == "best" or not drawn.labels.size:
        distance = np.abs(np.array(details_of(drawn.n_components)) - settings.detail)
        return drawn.best_of(int(distance.argmin()), chain)
    draws = drawn.labels if chain is None else drawn.labels[chain : chain + 1]
    if not settings.connected:
        return allowed_estimate(model, draws, settings.estimate, rng=seed)
    near = np.isin(drawn.component, details_near(settings.detail, drawn.n_components))
    labels = draws[:, near].reshape(-1, model.graph.n_sites)
    labels = labels[np.random.default_rng(seed).permutation(len(labels))[:MAX_DRAWS]]
    return allowed_estimate(model, labels, settings.estimate, rng=seed)


def details_near(detail: float, n_details: int) -> NDArray[np.intp]:
    """Which details have a part in the estimate at one: those as near as an end is, and always the nearest.

    Examples
    --------
    >>> details_near(0.5, 6), details_near(1.0, 6)
    (array([1, 2, 3, 4]), array([5]))
    """
    distance = np.abs(np.array(details_of(n_details)) - detail)
    return np.flatnonzero(distance <= max(min(detail, 1 - detail, WIDEST), distance.min()) + 1e-9)
