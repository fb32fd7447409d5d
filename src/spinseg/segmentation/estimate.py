"""The partition that a segmentation shows: an estimate from the draws at one detail."""

import numpy as np
from numpy.typing import NDArray

from spinseg.graph.adjacency import regions_of
from spinseg.graph.merging import absorb_small
from spinseg.graph.site_graph import SiteGraph
from spinseg.model.mixture import Mixture
from spinseg.model.posterior import Model
from spinseg.partition.pairs import separation_probability
from spinseg.sampler.chains import Chains
from spinseg.sampler.estimates.minimize import allowed_estimate
from spinseg.sampler.estimates.search import improved
from spinseg.segmentation.presets import details_of
from spinseg.segmentation.settings import Settings

WIDEST = 1 / 4  # details at most so far from the one asked for have a part in an estimate
MAX_DRAWS = 120  # that an estimate is made from
MAX_PIECE_DRAWS = 60  # of those, where pieces are made regions: of which there may be many
MAX_PIECES = 5000  # of a draw: with this many regions the tables of an estimate fill 1 GB


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


def estimated_regions(
    drawn: Chains,
    model: Model,
    settings: Settings,
    seed: int,
    adjacency: SiteGraph,
    area: NDArray[np.int64],
    smallest: float,
) -> NDArray[np.int32]:
    """Connected regions where the clusters of the posterior need not be: none has less than the smallest area.

    They are the estimate from the connected pieces of the clusters of every draw, searched for among connected
    partitions from the pieces of `estimated_partition` on. Regions that are too small have joined the neighbor from
    which the draws separate them least. Where the best partition visited is asked for, its pieces are the regions, and
    small ones have joined the neighbor of largest coupling. Where a draw has MAX_PIECES or more, the search is left
    out.
    """
    graph = model.graph
    regions = regions_of(estimated_partition(drawn, model, settings, seed), graph)
    if settings.estimate == "best" or not drawn.labels.size:
        return absorb_small(regions, adjacency, model.beta, smallest, length=adjacency.length, area=area)
    draws = drawn.labels.reshape(-1, graph.n_sites)
    draws = draws[np.random.default_rng(seed).permutation(len(draws))[:MAX_DRAWS]]
    pieces = np.array([regions_of(draw, graph) for draw in draws])
    if pieces.max() < MAX_PIECES:
        regions = improved(regions, pieces, settings.estimate, graph=graph, max_draws=MAX_PIECE_DRAWS, rng=seed)
    apart = separation_probability(draws, graph.edges) * adjacency.length
    return absorb_small(regions, adjacency, -apart, smallest, length=adjacency.length, area=area)


def details_near(detail: float, n_details: int) -> NDArray[np.intp]:
    """Which details have a part in the estimate at one: those as near as an end is, and always the nearest.

    Examples
    --------
    >>> details_near(0.5, 6), details_near(1.0, 6)
    (array([1, 2, 3, 4]), array([5]))
    """
    distance = np.abs(np.array(details_of(n_details)) - detail)
    return np.flatnonzero(distance <= max(min(detail, 1 - detail, WIDEST), distance.min()) + 1e-9)
