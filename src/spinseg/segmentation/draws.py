"""Single draws to look at: each is one segmentation that the posterior holds for plausible."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinseg.sampler.chains import Chains
from spinseg.segmentation.presets.photo import details_of

N_SHOWN = 10


class Draw(NamedTuple):
    """One draw: its chain, its detail (None where draws have none), its number of clusters, and its labels."""

    chain: int
    detail: float | None
    n_clusters: int
    labels: NDArray[np.int32]


def spread_draws(chains: Chains, n: int = N_SHOWN) -> list[Draw]:
    """Up to `n` draws, from coarse to fine, spread over levels of detail, chains and sweeps."""
    details, n_details = details_of(chains.n_components), chains.n_components
    component = [(2 * i + 1) * n_details // (2 * n) for i in range(n)]  # of each draw, in equal shares
    places: dict[tuple[int, int], int] = {}
    for i, d in enumerate(component):
        of_detail = np.flatnonzero(chains.component == d)
        if of_detail.size:
            order = component[:i].count(d)  # among the draws of the same detail
            draw = of_detail[(2 * order + 1) * of_detail.size // (2 * component.count(d))]
            places.setdefault((i % chains.n_chains, int(draw)), d)
    return [
        Draw(chain, details[d] if n_details > 1 else None, int(labels.max()) + 1, labels)
        for (chain, draw), d in places.items()
        for labels in [chains.labels[chain, draw]]
    ]
