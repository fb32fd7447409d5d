"""The draws and traces that sampling returns."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinseg.inference.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from spinseg.inference.kernels.state import ACCEPTED, COUNTED_MOVES, PROPOSED


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
    acceptance : dict of (chain,) arrays
        The share of proposals of each move that were accepted; NaN where none was proposed.
    concentration : (chain, sweep) float64 or None
        Trace of the prior's concentration, where it was sampled.
    swap_rate : (chain, replica) float64 or None
        The share of proposed exchanges between each replica and the next hotter one that were accepted, where
        parallel tempering was used.
    """

    labels: NDArray[np.int32] = field(repr=False)
    log_posterior: NDArray[np.float64] = field(repr=False)
    n_clusters: NDArray[np.int32] = field(repr=False)
    best_labels: NDArray[np.int32] = field(repr=False)
    best_log_posterior: float
    seconds: float
    burn_in: int
    thin: int
    acceptance: dict[str, NDArray[np.float64]] = field(repr=False)
    concentration: NDArray[np.float64] | None = field(repr=False)
    swap_rate: NDArray[np.float64] | None = field(repr=False)
    _checkpoint: Checkpoint = field(repr=False)

    @property
    def n_chains(self) -> int:
        """Number of chains."""
        return self.log_posterior.shape[0]

    @property
    def n_sweeps(self) -> int:
        """Number of sweeps of each chain."""
        return self.log_posterior.shape[1]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one file, for `Chains.load` and for `sample(resume_from=...)`.

        It is NumPy's .npz, or NetCDF where the name ends in .nc (extra [diagnostics]).
        """
        run = {**self._checkpoint.run, "seconds": self.seconds}
        write_checkpoint(path, self._checkpoint._replace(run=run))

    def to_arviz(self) -> Any:
        """The traces as ArviZ knows them, for its plots and summaries (extra [diagnostics])."""
        from spinseg.inference.diagnostics import to_arviz

        return to_arviz(self)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Chains":
        """The chains that `save`, or a checkpoint, wrote."""
        return collect(read_checkpoint(path))


def collect(checkpoint: Checkpoint, records: Mapping[str, NDArray] | None = None) -> Chains:
    """The chains of a checkpoint, cut to the sweeps that all of them have finished.

    `records` are their traces and draws with a leading axis for the chains, where these arrays exist already; otherwise
    they are stacked from the states.
    """
    run, states = checkpoint
    sweeps = min(int(state["done"]) for state in states)
    burn_in, thin = int(run["burn_in"]), int(run["thin"])
    lengths = {"draw": max(sweeps - burn_in, 0) // thin, "log_posterior": sweeps, "n_clusters": sweeps}

    def stacked(name: str) -> NDArray:
        if records is not None:
            return records[name][:, : lengths[name]]
        return np.stack([state[name][: lengths[name]] for state in states])

    best = max(states, key=lambda state: float(state["best_log_posterior"][0]))
    concentration = None
    if "after_sweep.trace" in states[0]:
        concentration = np.stack([state["after_sweep.trace"][:sweeps] for state in states])
    return Chains(
        labels=stacked("draw"),
        log_posterior=stacked("log_posterior"),
        n_clusters=stacked("n_clusters"),
        best_labels=best["best"],
        best_log_posterior=float(best["best_log_posterior"][0]),
        seconds=float(run["seconds"]),
        burn_in=burn_in,
        thin=thin,
        acceptance=_acceptance(np.array([state["move_counts"] for state in states])),
        concentration=concentration,
        swap_rate=_swap_rate(checkpoint),
        _checkpoint=checkpoint,
    )


def _acceptance(move_counts: NDArray[np.int64]) -> dict[str, NDArray[np.float64]]:
    """Acceptance rates by move, one for each chain, from counts of proposed and accepted moves, (chain, move, 2)."""
    proposed, accepted = move_counts[..., PROPOSED], move_counts[..., ACCEPTED]
    rates = np.where(proposed > 0, accepted / np.maximum(proposed, 1), np.nan)
    return dict(zip(COUNTED_MOVES, rates.T, strict=True))


def _swap_rate(checkpoint: Checkpoint) -> NDArray[np.float64] | None:
    """Acceptance rates of exchanges between replicas, (chain, replica)."""
    if "swaps_accepted" not in checkpoint.states[0]:
        return None
    return np.stack([state["swaps_accepted"] / np.maximum(state["swaps_proposed"], 1) for state in checkpoint.states])


class SamplingInterrupted(KeyboardInterrupt):
    """Ctrl-C during sampling; `chains` holds the sweeps that every chain had finished."""

    def __init__(self, chains: Chains) -> None:
        super().__init__(f"sampling interrupted after {chains.n_sweeps} sweeps")
        self.chains = chains
