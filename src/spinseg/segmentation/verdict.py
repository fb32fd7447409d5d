"""How far to trust a segmentation, in a few sentences."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinseg.inference.chains import Chains
from spinseg.inference.contingency import contingency_table, rand_index_of
from spinseg.inference.diagnostics import R_HAT_LIMIT, SETTLED_ERROR, Diagnostics
from spinseg.model.graph import SiteGraph
from spinseg.segmentation.estimate import estimated_partition
from spinseg.segmentation.settings import Settings

SETTLED_AGREEMENT = 0.95  # of the regions that chains give alone, as a share of pairs of pixels


def agreement_of_chains(
    drawn: Chains, graph: SiteGraph, settings: Settings, seed: int, area: NDArray[np.int64]
) -> float | None:
    """How alike the regions are that each chain alone gives: the Rand index of pixels, its mean over pairs of chains.

    None for one chain or without draws. `area` has the pixels of each site.
    """
    if drawn.n_chains < 2 or not drawn.labels.size:
        return None
    alone = [replace(drawn, labels=drawn.labels[c : c + 1]) for c in range(drawn.n_chains)]
    found = [estimated_partition(chain, graph, settings, seed) for chain in alone]
    pairs = [(a, b) for a in range(len(found)) for b in range(a)]
    return float(np.mean([rand_index_of(contingency_table(found[a], found[b], area)) for a, b in pairs]))


def verdict_of_regions(diagnostics: Diagnostics, agreement: float | None, sweeps: int) -> str:
    """Whether the regions are settled, and whether their probabilities are, after so many sweeps."""
    error, r_hat = diagnostics.separation_error, diagnostics.r_hat
    if agreement is None or error is None or r_hat is None:
        return diagnostics.verdict
    alike = f"chains from different starts, each alone, judge {agreement:.0%} of the pairs of pixels alike"
    if agreement >= SETTLED_AGREEMENT:
        regions = f"The regions are settled: {alike}."
    else:
        regions = (
            f"The regions are not settled: {alike}. Other divisions are about as good as this one; "
            "the boundary probabilities say where."
        )
    exact = f"they are exact to about {error:.2f}, and R-hat is at most {r_hat:.2f}"
    if error <= SETTLED_ERROR and r_hat <= R_HAT_LIMIT:
        return f"{regions} The probabilities are settled: {exact}."
    return (
        f"{regions} The probabilities are not settled after {sweeps:,} sweeps: {exact}. Four times as many halve that."
    )


def verdict_sentence(diagnostics: Diagnostics, start: Any, n_chains: int) -> str:
    """Whether the chains agree, in plain language; `start` is the setting `init`."""
    if not isinstance(start, str) or start not in ("greedy", "coarse") or n_chains < 2:
        return diagnostics.verdict
    return f"{diagnostics.verdict} All of them started from one place, so other modes may have been missed."
