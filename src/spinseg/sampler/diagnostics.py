"""Convergence diagnostics of chains as a table and in words; the numbers are those of `convergence`."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spinseg.graph.site_graph import SiteGraph
from spinseg.sampler.chains import Chains, in_units
from spinseg.sampler.convergence import (
    AGREEMENT_LIMIT,
    ERROR_LIMIT,
    MIN_DRAWS,
    R_HAT_LIMIT,
    SHOWN_ONLY,
    Partitions,
    Quantity,
    agreement_of_draws,
    agreement_of_partitions,
    error_in_doubt,
    quantity_of,
    rank_r_hat,
    separation_of_chains,
    traces,
)
from spinseg.sampler.plots import plot_r_hat

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The name of each quantity in a sentence, and its decimals.
QUANTITIES = {
    "log_posterior": ("the log posterior", 1),
    "n_clusters": ("the number of clusters", 1),
    "n_kinds": ("the number of kinds", 1),
    "concentration": ("the concentration", 2),
    "entropy": ("the entropy of the cluster sizes", 2),
    "edge_agreement": ("the share of edges within clusters", 3),
}
ESS_PER_CHAIN = 100  # below it R-hat and ESS themselves are unreliable (Vehtari et al., section 4)
ADVICE = (
    "Sample longer if the log posterior of a chain still rises. If each is level, try other moves, temperatures or "
    "more chains."
)
NUMERALS = ("No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten")


@dataclass(frozen=True, repr=False)
class Diagnostics:
    """Convergence diagnostics of several chains, printed as a table and a verdict.

    Attributes
    ----------
    agreement : float or None
        Least adjusted Rand index between the partition that all draws give and those that parts of them give, at least
        0.9 if they have converged.
    standard_error : float or None
        Of the uncertain boundary probabilities, those between 0.2 and 0.8, as a root mean square: at most 0.04 if they
        have converged, and 0 if none is uncertain.
    r_hat : float or None
        The largest R-hat of a property of the partition, at most 1.05 if the probabilities have converged. Each of
        these three is None for one chain or for too few draws.
    table : dict of name to Quantity
        log_posterior, n_clusters, n_kinds where regions have kinds, concentration where it was sampled, entropy (of the
        cluster sizes, in bits) and edge_agreement (the share of edges whose two sites share a cluster).
    verdict : str
        A sentence or two in plain language.

    Examples
    --------
    >>> import spinseg as ss
    >>> model = ss.Model(
    ...     ss.SiteGraph.grid((2, 3)),
    ...     ss.Flat(),
    ...     ss.DirichletProcess(1.0),
    ...     beta=0.5,
    ... )
    >>> found = ss.diagnose(
    ...     ss.sample(model, sweeps=400, chains=4, burn_in=100, rng=0),
    ...     model.graph,
    ... )
    >>> found.r_hat < 1.1
    True
    """

    agreement: float | None
    standard_error: float | None
    r_hat: float | None
    table: dict[str, Quantity] = field(default_factory=dict)
    verdict: str = ""

    @property
    def partition_converged(self) -> bool | None:
        """Whether parts of the draws give nearly the same partition as all; None where that is unknown."""
        return None if self.agreement is None else self.agreement >= AGREEMENT_LIMIT

    @property
    def probabilities_converged(self) -> bool | None:
        """Whether the boundary probabilities are accurate; None where that is unknown."""
        accurate = None if self.standard_error is None else self.standard_error <= ERROR_LIMIT
        return _all_of(accurate, None if self.r_hat is None else self.r_hat <= R_HAT_LIMIT)

    @property
    def converged(self) -> bool | None:
        """Whether the partition and the probabilities have converged; None where that is unknown."""
        return _all_of(self.partition_converged, self.probabilities_converged)

    @property
    def ess(self) -> float | None:
        """The smallest bulk effective sample size; None where there is none."""
        return min((row.ess_bulk for row in self.table.values() if row.ess_bulk is not None), default=None)

    def __repr__(self) -> str:
        of_mixture = any(row.r_hat_of_components is not None for row in self.table.values())
        worst = f"{'(component)':>13}" if of_mixture else ""  # the largest R-hat of a single one
        lines = [f"{'':<16}{'mean':>12}{'sd':>9}{'R-hat':>8}{worst}{'bulk ESS':>10}{'tail ESS':>10}{'ESS/s':>10}"]
        for name, row in self.table.items():
            decimals = QUANTITIES[name][1]
            mean = float(np.mean(row.chain_means)) if row.chain_means else None
            cells = [(mean, 12, decimals), (row.sd, 9, decimals), (row.r_hat, 8, 2)]
            cells += [(row.r_hat_of_components, 13, 2)] if of_mixture else []
            cells += [(row.ess_bulk, 10, 0), (row.ess_tail, 10, 0), (row.ess_per_second, 10, 1)]
            lines.append(f"{name:<16}" + "".join(f"{'-' if x is None else f'{x:.{d}f}':>{w}}" for x, w, d in cells))
        return "\n".join([*lines, self.verdict])

    def plot(self, axes: "Axes | None" = None) -> "Axes":
        """Draw the R-hat of every quantity, and how far it may be from 1, on Matplotlib axes, new ones by default."""
        rows = {QUANTITIES[name][0].removeprefix("the "): row for name, row in self.table.items()}
        return plot_r_hat(rows, R_HAT_LIMIT, axes)


def _all_of(*conditions: bool | None) -> bool | None:
    """Whether all hold; None where that depends on an unknown one."""
    return False if False in conditions else None if None in conditions else True


def diagnose(
    chains: Chains,
    graph: SiteGraph,
    partitions: Partitions | None = None,
    area: NDArray[np.integer] | None = None,
) -> Diagnostics:
    """Whether chains have converged: agreement, standard errors, R-hat and effective sample sizes, and a verdict.

    `Diagnostics` says what each must be. No such number can detect a part of the posterior that no chain reached: start
    chains from different places.

    Parameters
    ----------
    chains : Chains
    graph : SiteGraph
        That of the model.
    partitions : sequence of (n_sites,) arrays, optional
        The partition estimated from all draws, and those estimated from parts of them, such as each half of each chain,
        numbered from 0. The agreement is the least adjusted Rand index between the first and another. By default a few
        draws of different chains are compared, beside draws of the same chain: that is fast, and right for a wide
        posterior.
    area : (n_sites,) array of int, optional
        The weight of each site where `partitions` are compared; 1 by default.

    Returns
    -------
    Diagnostics
        The numbers, `converged` and the verdict.

    References
    ----------
    Vehtari, Gelman, Simpson, Carpenter & Buerkner (2021), https://doi.org/10.1214/20-BA1221;
    Hubert & Arabie (1985), https://doi.org/10.1007/BF01908075

    Examples
    --------
    >>> import spinseg as ss
    >>> graph = ss.SiteGraph(4, [[0, 1], [1, 2], [2, 3]])
    >>> model = ss.Model(
    ...     graph,
    ...     ss.PoissonGamma([1, 2, 4, 5]),
    ...     ss.DirichletProcess(1.0),
    ...     beta=0.5,
    ... )
    >>> found = ss.diagnose(
    ...     ss.sample(model, sweeps=1000, chains=4, rng=0), graph
    ... )
    >>> found.converged, found.verdict[:26]
    (True, 'Four chains have converged')
    """
    rows = {
        name: quantity_of(name, trace, chains.seconds, chains.n_components)
        for name, trace in traces(chains, graph).items()
    }
    apart = separation_of_chains(chains, graph.edges)
    agreement = agreement_of_draws(chains.labels) if partitions is None else agreement_of_partitions(partitions, area)
    return diagnosed(rows, agreement, apart, chains.labels.shape[1])


def diagnosed(rows: dict[str, Quantity], agreement: float | None, apart: NDArray[Any], n_draws: int) -> Diagnostics:
    """The diagnostics from those of quantities, the agreement, and what `separation_of_chains` gives.

    `n_draws` is the number of draws of each chain.
    """
    r_hat = _largest(row.r_hat for row in rows.values() if row.name not in SHOWN_ONLY)
    error = None if r_hat is None else error_in_doubt(apart)
    found = Diagnostics(None if r_hat is None else agreement, error, r_hat, rows)
    return replace(found, verdict=_verdict(found, len(apart), n_draws))


def may_stop(
    chains: Chains,
    graph: SiteGraph,
    partitions: Callable[[Chains], Partitions | None],
    area: NDArray[np.integer] | None = None,
    tell: Callable[[Diagnostics], None] = lambda found: None,
) -> bool:
    """Whether more sweeps are of no use. One chain never stops early: it cannot tell.

    The probabilities must have converged. Then chains stop if parts of the draws give the partition of all, or if the
    standard error is half of what it may be: two partitions are then about as good, which more sweeps do not change.
    `partitions` gives those that `diagnose` compares. What takes longest is computed last, if at all, and `tell` is
    called with what was computed.
    """
    found = Diagnostics(None, error_in_doubt(separation_of_chains(chains, graph.edges)), None)
    if found.standard_error is not None and found.standard_error <= ERROR_LIMIT:
        judged = (trace for name, trace in traces(chains, graph).items() if name not in SHOWN_ONLY)
        r_hat = _largest(rank_r_hat(in_units(trace)[0]) for trace in judged if trace.shape[1] >= MIN_DRAWS)
        found = replace(found, r_hat=r_hat)
    if found.probabilities_converged and not is_enough(found):
        found = replace(found, agreement=agreement_of_partitions(partitions(chains) or [], area))
    tell(found)
    return is_enough(found)


def is_enough(found: Diagnostics) -> bool:
    """Whether more sweeps are of no use to chains with these diagnostics."""
    is_accurate = found.standard_error is not None and found.standard_error <= ERROR_LIMIT / 2
    return found.converged is True or (found.probabilities_converged is True and is_accurate)


def _largest(numbers: Iterable[float | None]) -> float | None:
    """The largest of these numbers; None without one."""
    return max((number for number in numbers if number is not None), default=None)


def _verdict(found: Diagnostics, n_chains: int, n_draws: int) -> str:
    """The verdict in plain language."""
    judged = [row for row in found.table.values() if row.ess_bulk is not None]
    if not judged:
        return (
            f"Too few draws to assess convergence: {n_draws} in each chain after the burn-in; {MIN_DRAWS} are needed. "
            "Sample longer."
        )
    chains = f"{NUMERALS[n_chains] if n_chains < len(NUMERALS) else n_chains} chains"
    scarce = min(judged, key=_least_ess)
    effective = (
        f"The smallest effective sample size, of bulk or tail, is {_least_ess(scarce):,.0f}, of {_called(scarce)}"
    )
    missing = [_called(row) for row in found.table.values() if row.ess_bulk is None]
    note = f" There are too few draws, {n_draws} in each chain, to judge {' and '.join(missing)}." if missing else ""
    if n_chains == 1:
        text = "One chain cannot show whether it has converged. Run two or more chains from different starts."
        return f"{text} {effective}.{note}"
    if found.converged is False:
        return f"The chains have not converged: {'; '.join(_shortfalls(found))}. {ADVICE}{note}"
    if found.converged is None:
        return f"There are too few draws to assess convergence. Sample longer.{note}"
    if all(row.sd == 0 for row in judged):
        return (
            f"{chains} have converged, but nothing in them ever varied: either the posterior is that sure, or all are "
            f"stuck where they started. Start chains from different places to tell.{note}"
        )
    for row in judged:
        if row.name in SHOWN_ONLY and _r_hat(row) > R_HAT_LIMIT:
            note += f" R-hat of {_called(row)} is {_shown(row)}: chains still differ in details."
    numbers = f"agreement is {found.agreement:.2f}, and R-hat is at most {found.r_hat:.2f}"
    advised = ESS_PER_CHAIN * n_chains
    if _least_ess(scarce) < advised:
        text = f"{chains} have converged so far: {numbers}. {effective}"
        return f"{text}, and at least {advised} is advised. Sample longer.{note}"
    return f"{chains} have converged: {numbers}. {effective}.{note}"


def _shortfalls(found: Diagnostics) -> list[str]:
    """What keeps chains from having converged, each with what is needed."""
    lines = []
    if found.partition_converged is False:
        lines.append(f"their agreement is {found.agreement:.2f}, and at least {AGREEMENT_LIMIT} is needed")
    if (error := found.standard_error) is not None and error > ERROR_LIMIT:
        needed = f"at most {ERROR_LIMIT} is needed"
        lines.append(f"the standard error of the uncertain probabilities is {error:.3f}, and {needed}")
    apart = [row for row in found.table.values() if row.name not in SHOWN_ONLY and _r_hat(row) > R_HAT_LIMIT]
    if apart:
        first, *others = sorted(apart, key=_r_hat, reverse=True)
        decimals = QUANTITIES[first.name][1]
        means = ", ".join(f"{round(mean, decimals) + 0.0:.{decimals}f}" for mean in first.chain_means)  # no -0.0
        text = f"R-hat of {_called(first)} is {_shown(first)} (chain means {means})"
        text += "".join(f", that of {_called(row)} {_shown(row)}" for row in others)
        lines.append(f"{text}, and at most {R_HAT_LIMIT} is acceptable")
    return lines


def _called(row: Quantity) -> str:
    """The quantity's name in a sentence."""
    return QUANTITIES[row.name][0]


def _r_hat(row: Quantity) -> float:
    """R-hat as a number; rows without one are not asked."""
    return row.r_hat or 1.0


def _shown(row: Quantity) -> str:
    """R-hat in a sentence."""
    if row.r_hat == np.inf:
        return "infinite"
    return f"{row.r_hat:.2f}" if _r_hat(row) > 1.1 else f"{row.r_hat:.3f}"  # 1.054 is not at most 1.05


def _least_ess(row: Quantity) -> float:
    """The smaller effective sample size; rows without one are not asked."""
    return min(row.ess_bulk or 0.0, row.ess_tail or 0.0)
