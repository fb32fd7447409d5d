"""The draws and traces that sampling returns."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spinseg import _validation
from spinseg._words import counted
from spinseg.graph.site_graph import SiteGraph
from spinseg.sampler.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from spinseg.sampler.kernels.moves import KINDS
from spinseg.sampler.kernels.state import ACCEPTED, PROPOSED

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False, repr=False)
class Chains:
    """Draws and traces of several chains.

    Attributes
    ----------
    labels : (chain, draw, site) int32
        Draws after the burn-in, each numbered 0..k-1 by first appearance. Those of a `Mixture` come from its components
        in turn.
    component : (draw,) int
        The component of a `Mixture` that each draw is of; 0 where there is but one posterior.
    sweep : (draw,) int
        After how many sweeps each draw was taken, burn-in included.
    log_posterior, n_clusters : (chain, sweep)
        Traces over every sweep, burn-in included. Those of a `Mixture` are of its components in turn, each under its
        own posterior.
    best_labels : (site,) int32
        The best partition that any chain visited, and `best_log_posterior` its value, of a `Mixture` that of its middle
        component. It may lie well below the mode, since the chain stays in the typical set.
    seconds : float
        Wall time of the sampling, without the compilation before the first sweep.
    burn_in, thin : int
        Sweeps that gave no draws, and how many sweeps there are for each draw after them.
    acceptance : dict of (chain,) arrays
        The share of proposals of each move that were accepted; NaN where none was proposed.
    concentration : (chain, sweep) float64 or None
        Trace of the prior's concentration, where it was sampled.
    swap_rate : (chain, replica) float64 or None
        The share of proposed exchanges between each replica and the next hotter one that were accepted, where
        parallel tempering was used.

    Examples
    --------
    >>> import spinseg as ss
    >>> model = ss.Model(ss.SiteGraph.grid((2, 3)), ss.Flat(), ss.DirichletProcess(1.0), beta=0.5)
    >>> chains = ss.sample(model, sweeps=20, chains=2, burn_in=10, rng=0)
    >>> chains.labels.shape, chains.log_posterior.shape
    ((2, 10, 6), (2, 20))
    """

    labels: NDArray[np.int32]
    component: NDArray[np.intp]
    sweep: NDArray[np.intp]
    log_posterior: NDArray[np.float64]
    n_clusters: NDArray[np.int32]
    best_labels: NDArray[np.int32]
    best_log_posterior: float
    seconds: float
    burn_in: int
    thin: int
    acceptance: dict[str, NDArray[np.float64]]
    concentration: NDArray[np.float64] | None
    swap_rate: NDArray[np.float64] | None
    _checkpoint: Checkpoint

    def __repr__(self) -> str:
        n_draws, n_sites = self.labels.shape[1:]
        kept = self.kept(self.n_clusters)
        drawn = f"{counted(n_draws, 'draw')} of each kept, of {counted(n_sites, 'site')}"
        of = f" of {self.n_components} components" if self.n_components > 1 else ""
        sweeps = f"{counted(self.n_chains, 'chain')}{of}, {counted(self.n_sweeps, 'sweep')}, burn-in {self.burn_in:,}"
        found = f"{kept.min()} to {kept.max()} clusters, " if kept.size else ""
        return f"Chains: {sweeps}; {drawn}\n  {found}best log posterior {self.best_log_posterior:.1f}"

    def plot(self, axes: "Sequence[Axes] | None" = None) -> "Sequence[Axes]":
        """Draw the traces of log posterior and number of clusters on two Matplotlib axes, new ones by default.

        The burn-in is shaded, and only the sweeps after it decide the scale.
        """
        from spinseg.sampler.plots import plot_chains

        return plot_chains(self, axes)

    @property
    def n_chains(self) -> int:
        """Number of chains."""
        return self.log_posterior.shape[0]

    @property
    def n_sweeps(self) -> int:
        """Number of sweeps of each chain, of a `Mixture` for each of its components."""
        return self.log_posterior.shape[1] // self.n_components

    @property
    def last_labels(self) -> NDArray[np.int32]:
        """Where the chains ended, (chain, site), of a `Mixture` those of its middle component.

        Chains that were interrupted may have gone on after the last sweep that all of them finished.
        """
        middle = self.n_components // 2
        states = self._checkpoint.states[middle * self.n_chains :][: self.n_chains]
        is_ahead = any(int(state["done"]) > self.n_sweeps for state in states)
        if is_ahead and self.sweep.size and self.sweep[-1] == self.n_sweeps:
            return self.labels[:, self.component == middle][:, -1]
        return np.stack([_validation.labels("labels", state["state.label"], state["best"].size) for state in states])

    def best_of(self, component: int, chain: int | None = None) -> NDArray[np.int32]:
        """The best partition of a component of a `Mixture` that any chain visited, or that this one did."""
        visited = self._checkpoint.states[component * self.n_chains :][: self.n_chains]
        return _best(visited if chain is None else visited[chain : chain + 1])["best"]

    @property
    def n_components(self) -> int:
        """Number of components of the posterior; 1 where it is no `Mixture`."""
        return int(self._checkpoint.run["n_components"])

    def by_sweep(self, trace: NDArray[Any]) -> NDArray[Any]:
        """A trace as one value for each sweep, (chain, sweep): of a `Mixture`, the mean over its components."""
        if self.n_components == 1:
            return trace
        return trace.reshape(self.n_chains, self.n_sweeps, self.n_components).mean(axis=2)

    def kept(self, trace: NDArray[Any]) -> NDArray[Any]:
        """The part of a trace after the burn-in."""
        return trace[:, self.burn_in * self.n_components :]

    def of_draws(self, trace: NDArray[Any]) -> NDArray[Any]:
        """The entries of a trace that belong to the draws, (chain, draw)."""
        return trace[:, (self.sweep - 1) * self.n_components + self.component]

    def after(self, burn_in: int) -> "Chains":
        """The same chains with a longer burn-in, whose draws are left out."""
        burn_in = _validation.check_int("burn_in", burn_in, at_least=self.burn_in)
        return replace(self.with_draws(self.sweep > burn_in), burn_in=burn_in)

    def thinned(self, max_draws: int) -> "Chains":
        """The same chains with at most about `max_draws` draws of each, evenly spaced, of each component as many."""
        n_draws = self.labels.shape[1]
        cycles = np.arange(n_draws).reshape(-1, self.n_components)
        kept = cycles[:: max(1, -(-n_draws // max_draws))].ravel()
        return self if kept.size == n_draws else self.with_draws(kept)

    def with_draws(self, kept: NDArray[Any] | slice) -> "Chains":
        """The same chains with these of their draws."""
        return replace(self, labels=self.labels[:, kept], component=self.component[kept], sweep=self.sweep[kept])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one .npz file, for `Chains.load` and for `sample(resume_from=...)`."""
        run = {**self._checkpoint.run, "seconds": self.seconds, "left_out": self.burn_in}
        write_checkpoint(path, self._checkpoint._replace(run=run))

    def to_arviz(self, graph: SiteGraph | None = None) -> Any:
        """The traces as ArviZ knows them, for its plots and summaries (extra [diagnostics]).

        With the graph of the model, `edge_agreement`, the share of edges within clusters, is among them.
        """
        from spinseg.sampler.diagnostics import to_arviz

        return to_arviz(self, graph)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Chains":
        """The chains that `save`, or a checkpoint, wrote."""
        checkpoint = read_checkpoint(path)
        chains = collect(checkpoint)
        return chains.after(max(int(checkpoint.run.get("left_out", 0)), chains.burn_in))


def collect(checkpoint: Checkpoint, records: Mapping[str, NDArray] | None = None) -> Chains:
    """The chains of a checkpoint, cut to the sweeps that all of them have finished.

    `records` are their traces and draws with a leading axis for the runners, where these arrays exist already;
    otherwise they are stacked from the states.
    """
    run, states = checkpoint
    sweeps = min(int(state["done"]) for state in states)
    burn_in, thin, n_components = int(run["burn_in"]), int(run["thin"]), int(run["n_components"])
    n_draws = max(sweeps - burn_in, 0) // thin
    lengths = {"draw": n_draws, "log_posterior": sweeps, "n_clusters": sweeps}

    def stacked(name: str) -> NDArray:
        if records is not None:
            return _in_turn(records[name][:, : lengths[name]], n_components)
        return _in_turn(np.stack([state[name][: lengths[name]] for state in states]), n_components)

    n_chains = len(states) // n_components
    middle = states[n_components // 2 * n_chains :][:n_chains]
    best = _best(middle)
    concentration = None
    if "after_sweep.trace" in states[0]:
        concentration = _in_turn(np.stack([state["after_sweep.trace"][:sweeps] for state in states]), n_components)
    move_counts = np.array([state["move_counts"] for state in states])
    return Chains(
        labels=stacked("draw"),
        component=np.tile(np.arange(n_components), n_draws),
        sweep=np.repeat(burn_in + thin * np.arange(1, n_draws + 1), n_components),
        log_posterior=stacked("log_posterior"),
        n_clusters=stacked("n_clusters"),
        best_labels=best["best"],
        best_log_posterior=float(best["best_log_posterior"][0]),
        seconds=float(run["seconds"]),
        burn_in=burn_in,
        thin=thin,
        acceptance=_acceptance(_by_component(move_counts, n_components).sum(axis=0)),
        concentration=concentration,
        swap_rate=_swap_rate(checkpoint),
        _checkpoint=checkpoint,
    )


def _best(states: Sequence[Mapping[str, NDArray[Any]]]) -> Mapping[str, NDArray[Any]]:
    """The state of the chain that visited the best partition."""
    return max(states, key=lambda state: float(state["best_log_posterior"][0]))


def _by_component(array: NDArray[Any], n_components: int) -> NDArray[Any]:
    """An array with an axis for the runners, component by component, as one with axes for components and chains."""
    return array.reshape(n_components, len(array) // n_components, *array.shape[1:])


def _in_turn(array: NDArray[Any], n_components: int) -> NDArray[Any]:
    """Traces or draws of runners as those of chains, whose entries come from the components in turn."""
    if n_components == 1:
        return array
    entries = np.moveaxis(_by_component(array, n_components), 0, 2)
    n_chains, n_cycles, *_ = entries.shape
    return np.ascontiguousarray(entries.reshape(n_chains, n_cycles * n_components, *entries.shape[3:]))


def _acceptance(move_counts: NDArray[np.int64]) -> dict[str, NDArray[np.float64]]:
    """Acceptance rates by move, one for each chain, from counts of proposed and accepted moves, (chain, move, 2)."""
    proposed, accepted = move_counts[..., PROPOSED], move_counts[..., ACCEPTED]
    rates = np.where(proposed > 0, accepted / np.maximum(proposed, 1), np.nan)
    return dict(zip(KINDS, rates.T, strict=True))


def _swap_rate(checkpoint: Checkpoint) -> NDArray[np.float64] | None:
    """Acceptance rates of exchanges between replicas, (chain, replica)."""
    if "swaps_accepted" not in checkpoint.states[0]:
        return None
    counts = np.array([[state["swaps_accepted"], state["swaps_proposed"]] for state in checkpoint.states])
    accepted, proposed = np.moveaxis(_by_component(counts, int(checkpoint.run["n_components"])).sum(axis=0), 1, 0)
    return accepted / np.maximum(proposed, 1)


class SamplingInterrupted(KeyboardInterrupt):
    """Ctrl-C during sampling; `chains` holds the sweeps that every chain had finished.

    Examples
    --------
    >>> import spinseg as ss
    >>> model = ss.Model(ss.SiteGraph.grid((2, 3)), ss.Flat(), ss.DirichletProcess(1.0), beta=0.5)
    >>> try:
    ...     chains = ss.sample(model, sweeps=100, rng=0)
    ... except ss.SamplingInterrupted as stop:  # on Ctrl-C
    ...     chains = stop.chains
    """

    def __init__(self, chains: Chains) -> None:
        super().__init__(f"sampling interrupted after {chains.n_sweeps} sweeps")
        self.chains = chains

    def __reduce__(self) -> tuple[Any, ...]:
        """How it is pickled, with its chains."""
        return type(self), (self.chains,), self.__dict__
