"""The partition to show: the one of least expected loss among those that a posterior allows."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinseg.graph.merging import absorb_small
from spinseg.model.posterior import Model
from spinseg.partition.pairs import flatten_draws, separation_probability
from spinseg.sampler.estimates.minimize import best_draw, minimize_binder, minimize_vi


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
    has, or larger or smaller ones. The first of these that is allowed is returned:

    1. the partition that `minimize_vi` or `minimize_binder` finds, among connected ones that keep the seeds where the
       posterior asks for them;
    2. the same with at most as many clusters as a draw has;
    3. the draw of least expected loss.

    Where clusters are connected, those of 1 and 2 that are too small have joined the neighbor from which the draws
    separate them least.

    Parameters
    ----------
    model : Model
        The posterior that the draws, (.., n_sites), come from.
    max_clusters, max_draws, rng
        As in `minimize_vi`.

    Examples
    --------
    >>> import spinseg as ss
    >>> draws = np.repeat([[0, 1, 1], [0, 0, 1], [0, 1, 0]], 5, axis=1)
    >>> model = ss.Model(ss.SiteGraph(15, []), ss.Flat(), ss.Potts(2))
    >>> ss.minimize_vi(draws, rng=0).labels.max() + 1, allowed_estimate(model, draws, "vi", rng=0).max() + 1
    (np.int32(3), np.int32(2))
    """
    rows = flatten_draws(draws)
    minimize = minimize_vi if loss == "vi" else minimize_binder
    among: dict[str, Any] = {"graph": model.graph, "seeds": model.seeds} if model.connected else {}
    most = int(rows.max()) + 1
    for limit in (max_clusters, most):
        found = minimize(rows, **among, max_clusters=limit, max_draws=max_draws, rng=rng).labels
        if model.connected and model.prior.min_size > 1:
            apart = separation_probability(rows, model.graph.edges)
            found = absorb_small(found, model.graph, -apart, model.prior.min_size, seeds=model.seeds)
        if model.allows(found):
            return found
        if limit is not None and limit <= most:
            break
    return best_draw(rows, loss, max_draws=max_draws)
