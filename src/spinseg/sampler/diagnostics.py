"""Convergence diagnostics of chains, from quantities that do not depend on how clusters are numbered."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from spinseg.graph.site_graph import SiteGraph
from spinseg.sampler.chains import Chains
from spinseg.sampler.convergence import (
    R_HAT_LIMIT,
    SHOWN_ONLY,
    Judgement,
    Partitions,
    Quantity,
    agreement_of_draws,
    agreement_of_partitions,
    error_in_doubt,
    largest,
    quantity_of,
    separation_of_chains,
    traces,
)
from spinseg.sampler.plots import plot_r_hat
from spinseg.sampler.sentences import QUANTITIES, verdict_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, repr=False)
class Diagnostics:
    """Convergence diagnostics of several chains, printed as a table and a verdict.

    Attributes
    ----------
    table : dict of name to Quantity
        log_posterior, n_clusters, concentration where it was sampled, entropy (of the cluster sizes, in bits) and
        edge_agreement (the share of edges whose two sites share a cluster).
    judgement : Judgement
        Whether the chains have converged, and the numbers that decide it.
    verdict : str
        A sentence or two in plain language.

    Examples
    --------
    >>> import spinseg as ss
    >>> model = ss.Model(ss.SiteGraph.grid((2, 3)), ss.Flat(), ss.DirichletProcess(1.0), beta=0.5)
    >>> found = ss.diagnose(ss.sample(model, sweeps=400, chains=4, burn_in=100, rng=0), model.graph)
    >>> found.r_hat < 1.1
    True
    """

    table: dict[str, Quantity]
    judgement: Judgement
    verdict: str

    @property
    def converged(self) -> bool | None:
        """Whether the chains have converged; None for one chain or too few draws."""
        return self.judgement.converged

    @property
    def agreement(self) -> float | None:
        """The adjusted Rand index between chains, at least 0.9 if they have converged."""
        return self.judgement.agreement

    @property
    def standard_error(self) -> float | None:
        """That of boundary probabilities between 0.2 and 0.8, root mean square: at most 0.04 if they have converged."""
        return self.judgement.standard_error

    @property
    def r_hat(self) -> float | None:
        """The largest R-hat of the table, without that of the log posterior: at most 1.05 if chains have converged."""
        return self.judgement.r_hat

    @property
    def ess(self) -> float | None:
        """The smallest bulk effective sample size; None where there is none."""
        return min((row.ess_bulk for row in self.table.values() if row.ess_bulk is not None), default=None)

    def __repr__(self) -> str:
        lines = [f"{'':<16}{'mean':>12}{'sd':>9}{'R-hat':>8}{'bulk ESS':>10}{'tail ESS':>10}{'ESS/s':>10}"]
        for name, row in self.table.items():
            decimals = QUANTITIES[name][1]
            mean = float(np.mean(row.chain_means)) if row.chain_means else None
            cells = [(mean, 12, decimals), (row.sd, 9, decimals), (row.r_hat, 8, 2)]
            cells += [(row.ess_bulk, 10, 0), (row.ess_tail, 10, 0), (row.ess_per_second, 10, 1)]
            lines.append(f"{name:<16}" + "".join(f"{'-' if x is None else f'{x:.{d}f}':>{w}}" for x, w, d in cells))
        return "\n".join([*lines, self.verdict])

    def plot(self, axes: "Axes | None" = None) -> "Axes":
        """Draw the R-hat of every quantity, and how far it may be from 1, on Matplotlib axes, new ones by default."""
        rows = {QUANTITIES[name][0].removeprefix("the "): row for name, row in self.table.items()}
        return plot_r_hat(rows, R_HAT_LIMIT, axes)


def diagnose(
    chains: Chains,
    graph: SiteGraph,
    partitions: Partitions | None = None,
    area: NDArray[np.integer] | None = None,
) -> Diagnostics:
    """Whether chains have converged: agreement, standard errors, R-hat and effective sample sizes, and a verdict.

    Chains have converged if the adjusted Rand index between them is at least 0.9, the standard error of the boundary
    probabilities in doubt, between 0.2 and 0.8, is at most 0.04, and R-hat of every property of the partition is at
    most 1.05. No such number can detect a part of the posterior that no chain reached: start chains from different
    places.

    Parameters
    ----------
    chains : Chains
    graph : SiteGraph
        That of the model.
    partitions : sequence of sequences of (n_sites,) arrays, optional
        What each chain alone estimates, one or more partitions for each, numbered from 0. By default a few draws of
        different chains are compared, beside draws of the same chain: that is fast, and right for a wide posterior.
    area : (n_sites,) array of int, optional
        The weight of each site where `partitions` are compared; 1 by default.

    References
    ----------
    Vehtari, Gelman, Simpson, Carpenter & Buerkner (2021), https://doi.org/10.1214/20-BA1221;
    Hubert & Arabie (1985), https://doi.org/10.1007/BF01908075

    Examples
    --------
    >>> import spinseg as ss
    >>> graph = ss.SiteGraph(4, [[0, 1], [1, 2], [2, 3]])
    >>> model = ss.Model(graph, ss.PoissonGamma([1, 2, 4, 5]), ss.DirichletProcess(1.0), beta=0.5)
    >>> found = diagnose(ss.sample(model, sweeps=1000, chains=4, rng=0), graph)
    >>> found.converged, found.verdict[:26]
    (True, 'Four chains have converged')
    """
    found = traces(chains, graph)
    table = {name: quantity_of(name, trace, chains.seconds, chains.n_components) for name, trace in found.items()}
    judgement = Judgement(None, None, largest(row.r_hat for name, row in table.items() if name not in SHOWN_ONLY))
    if judgement.r_hat is not None:
        alike = agreement_of_draws(chains.labels) if partitions is None else agreement_of_partitions(partitions, area)
        error = error_in_doubt(separation_of_chains(chains, graph.edges))
        judgement = replace(judgement, agreement=alike, standard_error=error)
    return Diagnostics(table, judgement, verdict_of(list(table.values()), judgement, chains.labels.shape[:2]))
