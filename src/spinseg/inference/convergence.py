"""Whether chains have been sampled for long enough, in numbers: R-hat, sample sizes, errors of probabilities."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinseg.inference.chains import Chains
from spinseg.inference.estimates.pairs import separation_probability
from spinseg.model.graph import SiteGraph

R_HAT_LIMIT = 1.05  # chains of partitions mix slowly; Vehtari et al. ask for 1.01
SETTLED_ERROR = 0.02  # of separation probabilities, as a root mean square over edges


def is_settled(chains: Chains, graph: SiteGraph) -> bool:
    """Whether chains may stop: R-hat of log posterior and number of clusters is low, and the probabilities are exact.

    `diagnose` says more, and takes longer.
    """
    error = separation_error(chains, graph)
    if error is None or error > SETTLED_ERROR:
        return False
    traces = chains.kept(chains.log_posterior), chains.kept(chains.n_clusters)
    return all(rank_r_hat(trace.astype(np.float64)) <= R_HAT_LIMIT for trace in traces)


def separation_error(chains: Chains, graph: SiteGraph) -> float | None:
    """How far the separation probabilities of edges are from settled: their standard error, root mean square.

    Each chain gives probabilities of its own, and their spread the error of the mean. It is None for one chain, or
    without draws, and 0 for a graph without edges.
    """
    if chains.n_chains < 2 or not chains.labels.size:
        return None
    each = np.stack([separation_probability(labels, graph.edges) for labels in chains.labels])
    return float(np.sqrt(each.var(axis=0, ddof=1).mean() / chains.n_chains)) if graph.n_edges else 0.0


def rank_r_hat(trace: NDArray[Any]) -> float:
    """Rank-normalized, split R-hat of several chains; 1 where nothing varies, infinite where only chains differ."""
    from arviz_stats.base import array_stats  # takes long to load

    half = trace.shape[1] // 2
    if trace.shape[0] == 1 or np.ptp(np.concatenate([trace[:, :half], trace[:, -half:]])) == 0:
        return 1.0
    with np.errstate(divide="ignore", invalid="ignore"):  # halves without variance
        r_hat = float(array_stats.rhat(trace))
    return np.inf if r_hat > 1e6 else r_hat  # a variance within halves that is rounding only


def stratified_ess(trace: NDArray[Any], n_components: int) -> float:
    """How many independent draws from a mixture would give its mean as exactly, at most as many as there are.

    The mean of the trace is that of its cycles over the components, which have an effective sample size.
    """
    from arviz_stats.base import array_stats

    cycles = trace.reshape(trace.shape[0], -1, n_components).mean(axis=2)
    if np.ptp(cycles) == 0:
        return float(trace.size)
    return min(trace.size, float(trace.var() / cycles.var() * array_stats.ess(cycles, method="mean")))
