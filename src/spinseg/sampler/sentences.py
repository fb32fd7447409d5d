"""The diagnostics of chains in words."""

import numpy as np

from spinseg.sampler.convergence import (
    AGREEMENT_LIMIT,
    ERROR_LIMIT,
    MIN_DRAWS,
    R_HAT_LIMIT,
    SHOWN_ONLY,
    Judgement,
    Quantity,
)

# The name of each quantity in a sentence, and its decimals.
QUANTITIES = {
    "log_posterior": ("the log posterior", 1),
    "n_clusters": ("the number of clusters", 1),
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


def verdict_of(rows: list[Quantity], judgement: Judgement, shape: tuple[int, ...]) -> str:
    """The verdict in plain language; `shape` is the number of chains and of draws of each."""
    n_chains, n_draws = shape
    judged = [row for row in rows if row.ess_bulk is not None]
    if not judged:
        text = (
            f"Too few draws to assess convergence: {n_draws} in each chain after the burn-in; {MIN_DRAWS} are needed."
        )
        return text + " Sample longer."
    chains = f"{NUMERALS[n_chains] if n_chains < len(NUMERALS) else n_chains} chains"
    scarce = min(judged, key=_least_ess)
    effective = f"{_least_ess(scarce):,.0f}, of {_called(scarce)}"
    missing = [_called(row) for row in rows if row.ess_bulk is None]
    note = f" There are too few draws, {n_draws} in each chain, to judge {' and '.join(missing)}." if missing else ""
    if n_chains == 1:
        text = "One chain cannot show whether it has converged. Run two or more chains from different starts."
        return f"{text} The smallest effective sample size is {effective}." + note
    if judgement.converged is False:
        return f"The chains have not converged: {'; '.join(_shortfalls(judged, judgement))}. {ADVICE}" + note
    if judgement.converged is None:
        return f"There are too few draws to assess convergence. Sample longer.{note}"
    if all(row.sd == 0 for row in judged):
        text = (
            f"{chains} have converged, but nothing in them ever varied: either the posterior is that sure, or all are"
        )
        return f"{text} stuck where they started. Start chains from different places to tell." + note
    other = [row for row in judged if row.name in SHOWN_ONLY and _r_hat(row) > R_HAT_LIMIT]
    note += "".join(f" R-hat of {_called(row)} is {_shown(row)}: chains still differ in details." for row in other)
    numbers = f"agreement is {judgement.agreement:.2f}, and R-hat is at most {judgement.r_hat:.2f}"
    if _least_ess(scarce) < ESS_PER_CHAIN * n_chains:
        text = f"{chains} have converged so far: {numbers}. The smallest effective sample size is {effective}"
        return f"{text}, and at least {ESS_PER_CHAIN * n_chains} is advised. Sample longer." + note
    return f"{chains} have converged: {numbers}. The smallest effective sample size is {effective}." + note


def _shortfalls(rows: list[Quantity], judgement: Judgement) -> list[str]:
    """What keeps chains from having converged, each with what is needed."""
    found = []
    if judgement.partition_converged is False:
        found.append(f"their agreement is {judgement.agreement:.2f}, and at least {AGREEMENT_LIMIT} is needed")
    if (error := judgement.standard_error) is not None and error > ERROR_LIMIT:
        needed = f"at most {ERROR_LIMIT} is needed"
        found.append(f"the standard error of the probabilities in doubt is {error:.3f}, and {needed}")
    apart = [row for row in rows if row.name not in SHOWN_ONLY and _r_hat(row) > R_HAT_LIMIT]
    if apart:
        first, *others = sorted(apart, key=_r_hat, reverse=True)
        decimals = QUANTITIES[first.name][1]
        means = ", ".join(f"{round(mean, decimals) + 0.0:.{decimals}f}" for mean in first.chain_means)  # no -0.0
        text = f"R-hat of {_called(first)} is {_shown(first)} (chain means {means})"
        text += "".join(f", that of {_called(row)} {_shown(row)}" for row in others)
        found.append(f"{text}, and at most {R_HAT_LIMIT} is acceptable")
    return found


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
