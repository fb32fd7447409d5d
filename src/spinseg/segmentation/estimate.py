"""The partition that a segmentation shows: an estimate from the draws at one detail."""

import numpy as np
from numpy.typing import NDArray

from spinseg.image.adjacency import RegionAdjacency
from spinseg.inference.chains import Chains
from spinseg.inference.estimates.minimize import minimize_binder, minimize_vi
from spinseg.inference.estimates.pairs import separation_probability
from spinseg.inference.regions import absorb_small_regions
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

    It is that of all chains, or of one. Where the posterior is a mixture over details, the draws are those at the
    details near `settings.detail`, and the best partition is that of the nearest one. Where clusters are connected, so
    are those of the estimate, and it keeps the seeds. Where the prior allows no small clusters, such as are too small
    have joined the neighbor from which the draws separate them least.
    """
    graph, seeds = model.graph, model.seeds
    if settings.estimate == "best" or not drawn.labels.size:
        distance = np.abs(np.array(details_of(drawn.n_components)) - settings.detail)
        return drawn.best_of(int(distance.argmin()), chain)
    draws = drawn.labels if chain is None else drawn.labels[chain : chain + 1]
    minimize = minimize_vi if settings.estimate == "vi" else minimize_binder
    if not settings.connected:
        return minimize(draws, rng=seed).labels
    near = np.isin(drawn.component, details_near(settings.detail, drawn.n_components))
    labels = draws[:, near].reshape(-1, graph.n_sites)
    labels = labels[np.random.default_rng(seed).permutation(len(labels))[:MAX_DRAWS]]
    found = minimize(labels, graph=graph, seeds=seeds, rng=seed).labels
    if settings.prior.min_size == 1:
        return found
    apart, ones = separation_probability(labels, graph.edges), np.ones(graph.n_edges, np.int32)
    each, area = RegionAdjacency(graph, ones, None), np.ones(graph.n_sites, np.int64)
    return absorb_small_regions(found, each, area, -apart, settings.prior.min_size, seeds)


def details_near(detail: float, n_details: int) -> NDArray[np.intp]:
    """Which details have a part in the estimate at one: those as near as an end is, and always the nearest.

    Examples
    --------
    >>> details_near(0.5, 6), details_near(1.0, 6)
    (array([1, 2, 3, 4]), array([5]))
    """
    distance = np.abs(np.array(details_of(n_details)) - detail)
    return np.flatnonzero(distance <= max(min(detail, 1 - detail, WIDEST), distance.min()) + 1e-9)
