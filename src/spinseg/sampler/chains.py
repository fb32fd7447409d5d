"""The draws and traces that sampling returns."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spinseg._errors import MissingExtra
from spinseg._validation import check_choice, check_int, counted, invalid
from spinseg.graph.site_graph import SiteGraph
from spinseg.partition.numbering import checked_labels
from spinseg.sampler.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from spinseg.sampler.kernels.moves import PROPOSALS
from spinseg.sampler.plots import plot_traces

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BLOCK_LABELS = 2**20  # of several draws that are looked at together
ROUNDING = 1e-10  # a running log posterior drifts by less than this share of itself


@dataclass(frozen=True, eq=False, repr=False)
class Chains:
    """Draws of several chains after the burn-in, and their traces.

    Attributes
    ----------
    labels : (chain, draw, site) int32
        Each draw is numbered 0..k-1 by first appearance. The draws of a mixture come from its components in turn.
    component, sweep : (draw,) int
        The component of the model that each draw is from, and after how many sweeps, burn-in included.
    kinds : (chain, draw, site) int32 or None
        The kind of the region of each site, numbered so; None where regions have none.
    best_labels : (site,) int32
        The best partition that any chain visited, and `best_log_posterior` its value; for a mixture, those of its
        middle component. It may lie well below the mode, since chains stay in the typical set. `best_kinds` are its
        kinds.
    seconds : float
        Wall time of the sampling.
    burn_in, thin : int
        Sweeps that gave no draws, and the number of sweeps for each draw after them.
    acceptance : dict of (chain,) arrays
        The share of proposals of each move that were accepted; NaN if none was proposed.
    swap_rate : (chain, replica) float64 or None
        With parallel tempering, the share of proposed exchanges between each replica and the next hotter one that were
        accepted.

    Examples
    --------
    >>> import spinseg as ss
    >>> model = ss.Model(
    ...     ss.SiteGraph.grid((2, 3)),
    ...     ss.Flat(),
    ...     ss.DirichletProcess(1.0),
    ...     beta=0.5,
    ... )
    >>> chains = ss.sample(
    ...     model, sweeps=20, chains=2, burn_in=10, thin=2, rng=0
    ... )
    >>> (
    ...     chains.labels.shape,
    ...     chains.log_posterior.shape,
    ...     chains.trace("log_posterior").shape,
    ... )
    ((2, 5, 6), (2, 5), (2, 20))
    """

    labels: NDArray[np.int32]
    kinds: NDArray[np.int32] | None
    component: NDArray[np.intp]
    sweep: NDArray[np.intp]
    best_labels: NDArray[np.int32]
    best_kinds: NDArray[np.int32] | None
    best_log_posterior: float
    seconds: float
    burn_in: int
    thin: int
    acceptance: dict[str, NDArray[np.float64]]
    swap_rate: NDArray[np.float64] | None
    _traces: Mapping[str, NDArray[Any]]  # of every sweep, (chain, sweep x component)
    _checkpoint: Checkpoint

    def __repr__(self) -> str:
        n_draws, n_sites = self.labels.shape[1:]
        drawn = f"{counted(n_draws, 'draw')} of each kept, of {counted(n_sites, 'site')}"
        of = f" of {self.n_components} components" if self.n_components > 1 else ""
        sweeps = f"{counted(self.n_chains, 'chain')}{of}, {counted(self.n_sweeps, 'sweep')}, burn-in {self.burn_in:,}"
        found = f"{self.n_clusters.min()} to {self.n_clusters.max()} clusters, " if n_draws else ""
        return f"Chains: {sweeps}; {drawn}\n  {found}best log posterior {self.best_log_posterior:.1f}"

    @property
    def n_chains(self) -> int:
        """Number of chains."""
        return self.labels.shape[0]

    @property
    def n_sweeps(self) -> int:
        """Number of sweeps of each chain, burn-in included; for a mixture, of each component."""
        return self._traces["n_clusters"].shape[1] // self.n_components

    @property
    def n_components(self) -> int:
        """Number of components of the model."""
        return int(self._checkpoint[0]["n_components"])

    @property
    def log_posterior(self) -> NDArray[np.float64]:
        """Log posterior of each draw, (chain, draw); of a mixture, that of the draw's own component."""
        return self._of_draws("log_posterior")

    @property
    def n_clusters(self) -> NDArray[np.int32]:
        """Number of clusters of each draw, (chain, draw)."""
        return self._of_draws("n_clusters")

    @property
    def concentration(self) -> NDArray[np.float64] | None:
        """The prior's concentration at each draw, (chain, draw); None if it was not sampled."""
        return self._of_draws("concentration") if "concentration" in self._traces else None

    def _of_draws(self, name: str) -> NDArray[Any]:
        return self._traces[name][:, (self.sweep - 1) * self.n_components + self.component]

    def trace(self, name: str) -> NDArray[Any]:
        """A quantity after every sweep, burn-in included, (chain, sweep); for a mixture, the mean over its components.

        `name` is "log_posterior", "n_clusters" or, if it was sampled, "concentration".
        """
        check_choice("name", name, tuple(self._traces))
        whole = self._traces[name]
        if self.n_components == 1:
            return whole
        return whole.reshape(self.n_chains, self.n_sweeps, self.n_components).mean(axis=2)

    def quantities(self, graph: SiteGraph | None = None) -> dict[str, NDArray[Any]]:
        """Quantities of each draw that do not depend on how clusters are numbered, (chain, draw).

        log_posterior, n_clusters, n_kinds if regions have kinds, concentration if it was sampled, the entropy of the
        cluster sizes in bits and, with the model's graph, edge_agreement: the share of edges whose two sites share a
        cluster, 1 if there is no edge.
        """
        found = {name: self._of_draws(name) for name in self._traces}
        if self.kinds is not None:
            found["n_kinds"] = self.kinds.max(axis=-1, initial=-1) + 1
        if graph is not None and self.labels.shape[-1] != graph.n_sites:
            invalid("graph", f"have the {self.labels.shape[-1]} sites of the chains", graph.n_sites)
        edges = np.empty((0, 2)) if graph is None else graph.edges
        first, second = np.ascontiguousarray(edges.T, np.intp)
        found["entropy"], agreement = np.empty(self.labels.shape[:2]), np.ones(self.labels.shape[:2])
        step = max(1, BLOCK_LABELS // max(self.labels.shape[-1], len(edges)))
        for chain, start in product(range(self.n_chains), range(0, self.labels.shape[1], step)):
            labels, block = self.labels[chain, start : start + step], slice(start, start + step)
            found["entropy"][chain, block] = _entropies(labels)
            if len(edges):
                within = labels.take(first, axis=1) == labels.take(second, axis=1)
                agreement[chain, block] = within.mean(axis=1)
        if graph is not None:
            found["edge_agreement"] = agreement
        return found

    @property
    def last_labels(self) -> NDArray[np.int32]:
        """Where the chains ended, (chain, site); for a mixture, those of its middle component.

        Chains that were interrupted may have gone on after the last sweep that all of them finished.
        """
        middle = self.n_components // 2
        states = self._states(middle)
        is_ahead = any(int(state["done"]) > self.n_sweeps for state in states)
        if is_ahead and self.sweep.size and self.sweep[-1] == self.n_sweeps:
            return self.labels[:, self.component == middle][:, -1]
        return np.stack([checked_labels("labels", state["state.label"], state["best"].size) for state in states])

    def best_of(self, component: int, chain: int | None = None) -> NDArray[np.int32]:
        """The best partition of a component that any chain visited, or that this one did."""
        component = check_int("component", component, at_least=0, below=self.n_components)
        chain = None if chain is None else check_int("chain", chain, at_least=0, below=self.n_chains)
        visited = self._states(component)
        return _best(visited if chain is None else visited[chain : chain + 1])["best"]

    def _states(self, component: int) -> list[dict[str, NDArray[Any]]]:
        """The states of the chains of a component."""
        return self._checkpoint[1][component * self.n_chains :][: self.n_chains]

    def after(self, burn_in: int) -> "Chains":
        """The same chains with a longer burn-in, whose draws are left out."""
        burn_in = check_int("burn_in", burn_in, at_least=self.burn_in)
        return replace(self.with_draws(self.sweep > burn_in), burn_in=burn_in)

    def thinned(self, max_draws: int) -> "Chains":
        """The same chains with at most about `max_draws` draws of each, evenly spaced, equally many of each component.

        `max_draws` counts the draws of all components.
        """
        n_draws, max_draws = self.labels.shape[1], check_int("max_draws", max_draws, at_least=1)
        cycles = np.arange(n_draws).reshape(-1, self.n_components)
        kept = cycles[:: max(1, -(-n_draws // max_draws))].ravel()
        return self if kept.size == n_draws else self.with_draws(kept)

    def with_draws(self, kept: NDArray[Any] | slice) -> "Chains":
        """The same chains with these of their draws."""
        kinds = None if self.kinds is None else self.kinds[:, kept]
        labels, component, sweep = self.labels[:, kept], self.component[kept], self.sweep[kept]
        return replace(self, labels=labels, kinds=kinds, component=component, sweep=sweep)

    def plot(self, axes: "Sequence[Axes] | None" = None) -> "Sequence[Axes]":
        """Draw the traces of log posterior and number of clusters on two Matplotlib axes, new ones by default.

        The burn-in is shaded, and only the sweeps after it decide the scale.
        """
        return plot_traces(self, axes)

    def to_arviz(self, graph: SiteGraph | None = None) -> Any:
        """The draws as an ArviZ DataTree, for its plots and summaries; needs the extra `spinseg[diagnostics]`.

        Group `posterior` holds the `quantities` of each draw, and `sample_stats` its log posterior as `lp`, rounded so
        that equal partitions are ties, and the `component` of a mixture that it is from. ArviZ takes the draws of all
        components for one chain: select those of a component before you compute its R-hat. The labels are a group of
        their own, `partition`: they are arbitrary in each draw, and must not be summarized.
        """
        try:
            from_dict = import_module("arviz_base").from_dict
        except ImportError as error:
            missing = f"the module {error.name or 'arviz_base'}, which cannot be imported"
            raise MissingExtra(f'to_arviz needs {missing}: pip install "spinseg[diagnostics]"') from None
        posterior = self.quantities(graph)
        rounded, unit = in_units(posterior.pop("log_posterior"))
        stats = {"lp": unit * rounded}
        if self.n_components > 1:
            stats["component"] = np.broadcast_to(self.component, rounded.shape)
        groups = {"sample_stats": stats, "posterior": posterior, "partition": {"labels": self.labels}}
        return from_dict(groups, dims={"labels": ["site"]})

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one .npz file, for `Chains.load` and for `sample(resume_from=...)`."""
        run, states = self._checkpoint
        write_checkpoint(path, ({**run, "seconds": self.seconds, "left_out": self.burn_in}, states))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Chains":
        """The chains that `save`, or a checkpoint, wrote."""
        run, states = read_checkpoint(path)
        chains = collect((run, states))
        return chains.after(max(int(run.get("left_out", 0)), chains.burn_in))


def collect(checkpoint: Checkpoint, records: Mapping[str, NDArray] | None = None) -> Chains:
    """The chains of a checkpoint, cut to the sweeps that all of them have finished.

    `records` are their traces and draws with a leading axis for the runners, if these arrays exist already; otherwise
    they are stacked from the states.
    """
    run, states = checkpoint
    sweeps = min(int(state["done"]) for state in states)
    burn_in, thin, n_components = int(run["burn_in"]), int(run["thin"]), int(run["n_components"])
    n_draws = max(sweeps - burn_in, 0) // thin
    n_chains = len(states) // n_components

    def stacked(name: str, length: int) -> NDArray:
        if records is not None and name in records:
            return _in_turn(records[name][:, :length], n_components)
        return _in_turn(np.stack([state[name][:length] for state in states]), n_components)

    def counted_over_components(name: str) -> NDArray:
        counts = np.array([state[name] for state in states])
        return counts.reshape(n_components, n_chains, *counts.shape[1:]).sum(axis=0)

    names = {name: name for name in ("log_posterior", "n_clusters")}
    if "after_sweep.trace" in states[0]:
        names["concentration"] = "after_sweep.trace"
    swap_rate = None
    if "swaps_accepted" in states[0]:
        proposed = counted_over_components("swaps_proposed")
        swap_rate = counted_over_components("swaps_accepted") / np.maximum(proposed, 1)
    proposed, accepted = counted_over_components("move_counts").T  # (2, kind, chain)
    rates = np.where(proposed > 0, accepted / np.maximum(proposed, 1), np.nan)
    best = _best(states[n_components // 2 * n_chains :][:n_chains])
    has_kinds = best["best_kind"].size > 0
    return Chains(
        labels=stacked("draw", n_draws),
        kinds=stacked("kind", n_draws) if has_kinds else None,
        component=np.tile(np.arange(n_components), n_draws),
        sweep=np.repeat(burn_in + thin * np.arange(1, n_draws + 1), n_components),
        best_labels=best["best"],
        best_kinds=best["best_kind"] if has_kinds else None,
        best_log_posterior=float(best["best_log_posterior"][0]),
        seconds=float(run["seconds"]),
        burn_in=burn_in,
        thin=thin,
        acceptance=dict(zip(PROPOSALS, rates, strict=True)),
        swap_rate=swap_rate,
        _traces={name: stacked(stored, sweeps) for name, stored in names.items()},
        _checkpoint=checkpoint,
    )


def _entropies(labels: NDArray[np.integer]) -> NDArray[np.float64]:
    """The entropy of the cluster sizes of each partition, a row of `labels`, in bits; the same for the same sizes."""
    n_partitions, n_sites = labels.shape
    k = int(labels.max()) + 1
    sizes = np.bincount((labels + k * np.arange(n_partitions)[:, None]).ravel(), minlength=k * n_partitions)
    share = np.sort(sizes.reshape(n_partitions, k), axis=1)[:, ::-1] / n_sites
    # One after the other, the largest first, so that it does not matter how many empty clusters follow.
    return -np.cumsum(share * np.log2(np.where(share > 0, share, 1.0)), axis=1)[:, -1]


def _best(states: Sequence[Mapping[str, NDArray[Any]]]) -> Mapping[str, NDArray[Any]]:
    """The state of the chain that visited the best partition."""
    return max(states, key=lambda state: float(state["best_log_posterior"][0]))


def _in_turn(array: NDArray[Any], n_components: int) -> NDArray[Any]:
    """Traces or draws of runners as those of chains, whose entries come from the components in turn."""
    if n_components == 1:
        return array
    n_runners, n_cycles, *others = array.shape
    n_chains = n_runners // n_components
    entries = np.moveaxis(array.reshape(n_components, n_chains, n_cycles, *others), 0, 2)
    return np.ascontiguousarray(entries.reshape(n_chains, n_cycles * n_components, *others))


class SamplingInterrupted(KeyboardInterrupt):
    """Ctrl-C during sampling; `chains` holds the sweeps that every chain had finished.

    Examples
    --------
    >>> import spinseg as ss
    >>> model = ss.Model(
    ...     ss.SiteGraph.grid((2, 3)),
    ...     ss.Flat(),
    ...     ss.DirichletProcess(1.0),
    ...     beta=0.5,
    ... )
    >>> try:
    ...     chains = ss.sample(model, sweeps=100, rng=0)
    ... # on Ctrl-C
    ... except ss.SamplingInterrupted as stop:
    ...     chains = stop.chains
    """

    def __init__(self, chains: Chains) -> None:
        super().__init__(f"sampling interrupted after {chains.n_sweeps} sweeps")
        self.chains = chains

    def __reduce__(self) -> tuple[Any, ...]:
        """How it is pickled, with its chains."""
        return type(self), (self.chains,), self.__dict__


def in_units(trace: NDArray[Any]) -> tuple[NDArray[np.float64], float]:
    """A trace in whole numbers of a small unit, and that unit.

    Equal partitions have log posteriors that differ by drift, which ranks and quantiles would take for a signal. In
    whole numbers, ties stay ties when ArviZ folds a trace at its median, on any processor.
    """
    unit = ROUNDING * max(np.abs(trace).max(), 1.0)
    return np.round(trace / unit), unit
