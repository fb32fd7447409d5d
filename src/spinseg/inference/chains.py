"""What sampling gives back."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinseg.inference.chain import Arrays
from spinseg.inference.checkpoint import read_chains, write_chains
from spinseg.inference.kernels.state import (
    MERGES_MADE,
    MERGES_TRIED,
    REGROUPS_MADE,
    REGROUPS_TRIED,
    SPLITS_MADE,
    SPLITS_TRIED,
)

COUNTERS = {
    "split": (SPLITS_TRIED, SPLITS_MADE),
    "merge": (MERGES_TRIED, MERGES_MADE),
    "regroup": (REGROUPS_TRIED, REGROUPS_MADE),
}


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
        The share of attempts of each move that were accepted; NaN where none was made.
    concentration : (chain, sweep) float64 or None
        Trace of the prior's concentration, where it was sampled.
    swap_rate : (chain, rung) float64 or None
        How often each rung but the last exchanged partitions with the next, where chains were tempered.
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
    _about: Mapping[str, Any] = field(repr=False)
    _laid_down: list[Arrays] = field(repr=False)

    @property
    def n_chains(self) -> int:
        """Number of chains."""
        return self.log_posterior.shape[0]

    @property
    def n_sweeps(self) -> int:
        """Number of sweeps of each chain."""
        return self.log_posterior.shape[1]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one file, from which `load` reads it and `sample(resume_from=...)` goes on.

        It is NumPy's .npz, or NetCDF where the name ends in .nc (extra [diagnostics]).
        """
        write_chains(path, {**self._about, "seconds": self.seconds}, self._laid_down)

    def to_arviz(self) -> Any:
        """The traces as ArviZ knows them, for its plots and summaries (extra [diagnostics])."""
        from spinseg.inference.diagnostics import to_arviz

        return to_arviz(self)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Chains":
        """The chains that `save`, or a checkpoint, wrote."""
        return collect(*read_chains(path))


def collect(about: Mapping[str, Any], laid_down: list[Arrays], records: Mapping[str, NDArray] | None = None) -> Chains:
    """Chains laid down as arrays, cut to the sweeps that all of them have finished.

    `records` are their traces and draws in one piece, where there is such; else they are put together.
    """
    sweeps = min(int(chain["done"]) for chain in laid_down)
    burn_in, thin = int(about["burn_in"]), int(about["thin"])
    lengths = {"draw": max(sweeps - burn_in, 0) // thin, "log_posterior": sweeps, "n_clusters": sweeps}

    def of_all(name: str) -> NDArray:
        if records is not None:
            return records[name][:, : lengths[name]]
        return np.stack([chain[name][: lengths[name]] for chain in laid_down])

    best = max(laid_down, key=lambda chain: float(chain["best_log_posterior"][0]))
    counters = np.array([chain["tally"] for chain in laid_down])
    tried_made = {move: counters[:, list(places)].T for move, places in COUNTERS.items()}
    swaps = None
    if "swaps_made" in laid_down[0]:
        swaps = np.stack([chain["swaps_made"] / np.maximum(chain["swaps_tried"], 1) for chain in laid_down])
    concentration = None
    if "after_sweep.trace" in laid_down[0]:
        concentration = np.stack([chain["after_sweep.trace"][:sweeps] for chain in laid_down])
    return Chains(
        labels=of_all("draw"),
        log_posterior=of_all("log_posterior"),
        n_clusters=of_all("n_clusters"),
        best_labels=best["best"],
        best_log_posterior=float(best["best_log_posterior"][0]),
        seconds=float(about["seconds"]),
        burn_in=burn_in,
        thin=thin,
        acceptance={
            m: np.where(tried > 0, made / np.maximum(tried, 1), np.nan) for m, (tried, made) in tried_made.items()
        },
        concentration=concentration,
        swap_rate=swaps,
        _about=about,
        _laid_down=laid_down,
    )


class SamplingInterrupted(KeyboardInterrupt):
    """Ctrl-C during sampling; `chains` holds the sweeps that every chain had finished."""

    def __init__(self, chains: Chains) -> None:
        super().__init__(f"sampling interrupted after {chains.n_sweeps} sweeps")
        self.chains = chains
