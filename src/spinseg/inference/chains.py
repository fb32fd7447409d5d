"""What sampling gives back."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Chains:
    """Draws and traces of several chains.

    Attributes
    ----------
    labels : (chain, draw, site) int32
        Draws after the burn-in, each numbered 0..k-1 by first appearance.
    log_posterior, n_clusters : (chain, sweep)
        Traces over every sweep, burn-in included.
    best_labels : (site,) int32
        The best partition that any chain visited, and `best_log_posterior` its value. It may lie well below the mode,
        since the chain stays in the typical set.
    seconds : float
        Wall time of the sampling.
    burn_in, thin : int
    """

    labels: NDArray[np.int32] = field(repr=False)
    log_posterior: NDArray[np.float64] = field(repr=False)
    n_clusters: NDArray[np.int32] = field(repr=False)
    best_labels: NDArray[np.int32] = field(repr=False)
    best_log_posterior: float
    seconds: float
    burn_in: int
    thin: int

    @property
    def n_chains(self) -> int:
        """Number of chains."""
        return self.log_posterior.shape[0]

    @property
    def n_sweeps(self) -> int:
        """Number of sweeps of each chain."""
        return self.log_posterior.shape[1]


class SamplingInterrupted(KeyboardInterrupt):
    """Ctrl-C during sampling; `chains` holds the sweeps that every chain had finished."""

    def __init__(self, chains: Chains) -> None:
        super().__init__(f"sampling interrupted after {chains.n_sweeps} sweeps")
        self.chains = chains
