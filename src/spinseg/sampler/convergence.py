"""Whether chains have converged, in numbers: agreement of partitions, standard errors of probabilities, R-hat."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinseg.partition.contingency import adjusted_rand_index_of, contingency_table
from spinseg.partition.pairs import separation_probability
from spinseg.sampler.chains import Chains

AGREEMENT_LIMIT = 0.9  # adjusted Rand index; docs/evidence/convergence.md compares it with that of repeated runs
ERROR_LIMIT = 0.04  # standard error of the probabilities in doubt
R_HAT_LIMIT = 1.05  # chains of partitions mix slowly; Vehtari et al. ask for 1.01
IN_DOUBT = (0.2, 0.8)  # a boundary with a probability between these is in doubt
COMPARED_DRAWS = 12  # of each chain, where draws are compared
Partitions = Sequence[Sequence[NDArray[np.integer]]]  # some from each chain, numbered from 0


@dataclass(frozen=True)
class Judgement:
    """Whether chains have converged. Every message, and the rule that ends sampling, reads it from here.

    Attributes
    ----------
    agreement : float or None
        Adjusted Rand index of the partitions that different chains give, at least 0.9 if they have converged.
    standard_error : float or None
        Of the boundary probabilities in doubt, those between 0.2 and 0.8, as a root mean square: at most 0.04 if they
        have converged, and 0 where none is in doubt.
    r_hat : float or None
        The largest R-hat of a property of the partition, at most 1.05 if the probabilities have converged.

    Each is None for one chain or for too few draws.

    Examples
    --------
    >>> Judgement(agreement=0.95, standard_error=0.03, r_hat=1.01).converged
    True
    >>> Judgement(agreement=0.52, standard_error=0.03, r_hat=1.01).converged
    False
    """

    agreement: float | None
    standard_error: float | None
    r_hat: float | None

    @property
    def partition_converged(self) -> bool | None:
        """Whether different chains give nearly the same partition; None where that is unknown."""
        return None if self.agreement is None else self.agreement >= AGREEMENT_LIMIT

    @property
    def probabilities_converged(self) -> bool | None:
        """Whether the boundary probabilities are accurate; None where that is unknown."""
        exact = None if self.standard_error is None else self.standard_error <= ERROR_LIMIT
        return _all_of(exact, None if self.r_hat is None else self.r_hat <= R_HAT_LIMIT)

    @property
    def converged(self) -> bool | None:
        """Whether the partition and the probabilities have converged; None where that is unknown."""
        return _all_of(self.partition_converged, self.probabilities_converged)


def _all_of(*conditions: bool | None) -> bool | None:
    """Whether all hold; None where that depends on an unknown one."""
    return False if False in conditions else None if None in conditions else True


def agreement_of_partitions(partitions: Partitions, area: NDArray[np.integer] | None = None) -> float | None:
    """The mean adjusted Rand index over pairs of partitions from different chains; None for one chain.

    `area` is the weight of each site, 1 by default.

    Examples
    --------
    >>> agreement_of_partitions([[np.array([0, 0, 1])], [np.array([1, 1, 0])]])
    1.0
    """
    pairs = [pair for first, second in combinations(partitions, 2) for pair in product(first, second)]
    return float(np.mean([adjusted_rand_index_of(contingency_table(*pair, area)) for pair in pairs])) if pairs else None


def agreement_of_draws(labels: NDArray[np.int32]) -> float | None:
    """How alike the draws of different chains are, beside draws of the same chain: 1 where they are as alike.

    It is 1 less the difference of two mean adjusted Rand indices: that between early and late draws of one chain, and
    that between early draws of one chain and late draws of another. The posterior may be wide: only what chains add to
    its width counts against them. None for one chain or fewer than two draws.

    Parameters
    ----------
    labels : (chain, draw, site) array
        Draws, each numbered from 0.
    """
    n_chains, n_draws = labels.shape[:2]
    if n_chains < 2 or n_draws < 2:
        return None
    kept = labels[:, np.linspace(0, n_draws - 1, min(n_draws, COMPARED_DRAWS)).round().astype(np.intp)]
    early, late = kept[:, : kept.shape[1] // 2], kept[:, kept.shape[1] // 2 :]
    alike = np.array(
        [
            [np.mean([adjusted_rand_index_of(contingency_table(x, y)) for x in a for y in b]) for b in late]
            for a in early
        ]
    )
    within = float(np.trace(alike)) / n_chains
    between = (float(alike.sum()) - float(np.trace(alike))) / (n_chains * (n_chains - 1))
    return 1 - max(within - between, 0.0)


def separation_of_chains(chains: Chains, edges: NDArray[np.int32]) -> NDArray[np.float64]:
    """The separation probability of each edge in each chain alone, (chain, component, edge); NaN without draws."""
    n_components = chains.n_components
    if not chains.labels.shape[1]:
        return np.full((chains.n_chains, n_components, len(edges)), np.nan)
    return np.array(
        [
            [separation_probability(draws[d::n_components], edges) for d in range(n_components)]
            for draws in chains.labels
        ]
    )


def standard_errors(of_chains: NDArray[np.float64]) -> NDArray[np.float64]:
    """The standard error of the mean over chains and components, from the spread between chains.

    Chains are independent, and draws of one chain are not. Each component has chains of its own: the variances of
    their means add up, and twelve components with two chains each give twelve degrees of freedom. Where chains start
    from different partitions, what is left of the starts is part of the spread. NaN for one chain.

    Parameters
    ----------
    of_chains : (chain, component, ..) array
        The mean over the draws of each.

    Examples
    --------
    >>> standard_errors(np.array([[[0.2, 0.5]], [[0.4, 0.5]]]))
    array([0.1, 0. ])
    """
    n_chains, n_components = of_chains.shape[:2]
    if n_chains < 2:
        return np.full(of_chains.shape[2:], np.nan)
    return np.sqrt(of_chains.var(axis=0, ddof=1).sum(axis=0) / n_chains) / n_components


def error_in_doubt(of_chains: NDArray[np.float64]) -> float | None:
    """The root mean square standard error of the probabilities in doubt, and 0 where none is.

    None for one chain, or without draws.

    Parameters
    ----------
    of_chains : (chain, component, edge) array
        As from `separation_of_chains`.
    """
    if len(of_chains) < 2 or np.isnan(of_chains).any():
        return None
    errors = standard_errors(of_chains)[in_doubt(of_chains.mean(axis=(0, 1)))]
    return float(np.sqrt(np.mean(errors**2))) if errors.size else 0.0


def in_doubt(probability: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which probabilities lie between 0.2 and 0.8."""
    return (probability >= IN_DOUBT[0]) & (probability <= IN_DOUBT[1])


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
