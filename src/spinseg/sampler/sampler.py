"""Draw partitions from the posterior."""

from __future__ import annotations

import inspect
import math
import os
import time
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinseg._errors import InvalidInput
from spinseg._run.executor import n_processors
from spinseg._run.progress import Report, reporting
from spinseg._validation import check_choice, check_int, check_real, generator, invalid
from spinseg.model.posterior import Model
from spinseg.model.seeds import keeps_seeds
from spinseg.sampler.chain import Arrays, Chain, ParallelTempering, checked_temperatures
from spinseg.sampler.chains import Chains, SamplingInterrupted, collect
from spinseg.sampler.checkpoint import (
    DAMAGED,
    Checkpoint,
    check_resumable,
    check_whole,
    fingerprint,
    read_checkpoint,
    write_checkpoint,
)
from spinseg.sampler.concentration import ConcentrationUpdate, checked_gamma
from spinseg.sampler.kernels.moves import REGROUP, REGROW
from spinseg.sampler.kernels.state import Plan, Target
from spinseg.sampler.pack import Records, couplings_of, new_records, pack, record_of
from spinseg.sampler.plan import (
    MOVES,
    Lam,
    bonds_that_move,
    iteration_plan,
    similar_sites,
    unreachable,
    warn_of_unreachable,
)
from spinseg.sampler.starts import (
    common_refinement,
    greedy_labels,
    starting_kinds,
    starts_of_chains,
    with_seeds,
)
from spinseg.sampler.workers import advance_all

MAX_DRAW_BYTES = 8 * 2**30
MAX_LABELS, MIN_DRAWS = 2**26, 4  # kept of all chains together: 256 MB, but at least a few draws
CLEARLY = 1e-6  # better; less is rounding, which differs between processors
COMBINED_AFTER = 8  # sweeps of dispersed chains of a mixture, most of which have then left their starts


class Sampler:
    """Chains that leave the posterior of a model invariant, for callers that look at them between sweeps.

    `sample` is the short way to advance it to its last sweep.

    Parameters
    ----------
    model : Model
    sweeps, chains : int
        The most sweeps of each chain, for which memory is reserved, and the number of chains. A mixture, a model with
        several components, runs `chains` chains for each of them.
    moves : {"auto", "gsw"}
        "gsw" is the paper's generalized Swendsen-Wang sampler and nothing else, which hardly ever changes the number of
        large clusters. "auto" draws its lambda from {0, 1, 3, 10, 20} before each sweep, and after it tries ten splits
        or merges by sequential allocation and three regroupings of two clusters into three or back. On more than 20,000
        sites it tries one split or merge, and in nine of ten sweeps spin-clusters go only where they touch. If clusters
        must be connected, lambda comes from {0.25, 0.5, 1, 2, 4}, and splits, merges, redrawn borders and regroupings
        follow growth orders. If the prior limits sizes or numbers of clusters, it also exchanges pairs of sites.
    lam : float, (n_edges,) array, DataDriven or None
        Bond strengths: 0 is single-site Gibbs, 1 Swendsen-Wang. None is 10 with "gsw", and the set above with "auto".
    init : "opposite", "dispersed", or "one", "singletons", "greedy", labels, or one of the latter for each chain
        Where chains start. "opposite" is "one" and "singletons" in turn. So is "dispersed", but each component of a
        mixture starts from the greedy partitions of the components before and after it; after 8 sweeps, chains that
        have missed boundaries which the same chain of other components has found, or keep needless ones, are moved. If
        clusters must be connected, "one" is a cluster for each component of the graph, and "singletons" the smallest
        blocks that the prior allows.
    burn_in, thin : int
        Keep every `thin`-th sweep after the first `burn_in` as a draw.
    rng : int, Generator or None
        Random seed. The same seed gives the same draws on one machine, whatever the number of workers. Other
        processors, and other versions of NumPy, round differently.
    temperatures : sequence of float, optional
        Parallel tempering: rising temperatures from 1, between which partitions are exchanged after each sweep. The
        time of a chain grows with the number of temperatures; draws are those at temperature 1.
    concentration_prior : (shape, rate), optional
        Sample the concentration of a Dirichlet process or Pitman-Yor prior with the partition; its own prior is this
        gamma distribution. `log_posterior` is then the joint one, with the prior of the sizes normalized.
    resume_from : path or Chains, optional
        Continue a checkpoint or saved chains. The draws are those of one uninterrupted run, bit by bit. The model and
        the settings must be the same, except that `sweeps` may be larger; `init` and `rng` are then ignored.
    checkpoint : path, optional
        Write the state of all chains to this file while they advance, about every `checkpoint_seconds`, and at the end.
    workers : int, optional
        Threads; by default one for each chain, up to the number of processors.
    progress : bool or callable, optional
        True shows a bar on standard error; a callable is called with a `Progress`. By default, and for False,
        nothing is printed.

    Attributes
    ----------
    max_sweeps : int
        The `sweeps` above.
    unreachable : str or None
        Why chains cannot reach every partition that the prior allows, and what to do. `sample` warns of it.
    runners : list
        The chains, one component after the other; each may be advanced in a thread of its own.
    records : named tuple of arrays
        Traces, draws, best partitions and the latest spin-clusters, with a leading axis for the runners.

    Examples
    --------
    >>> import spinseg as ss
    >>> graph = ss.SiteGraph(4, [[0, 1], [1, 2], [2, 3]])
    >>> model = ss.Model(
    ...     graph,
    ...     ss.PoissonGamma([1, 2, 40, 50]),
    ...     ss.DirichletProcess(1.0),
    ...     beta=0.5,
    ... )
    >>> sampler = ss.Sampler(model, sweeps=200, chains=2, rng=0)
    >>> sampler.advance(20)
    >>> sampler.chains.labels.shape
    (2, 20, 4)
    >>> sampler.advance()
    >>> sampler.n_sweeps, sampler.chains.best_labels
    (200, array([0, 0, 1, 1], dtype=int32))
    """

    def __init__(
        self,
        model: Model,
        sweeps: int = 1000,
        chains: int = 4,
        moves: str = "auto",
        lam: Lam = None,
        init: str | ArrayLike | Sequence[str] = "one",
        burn_in: int = 0,
        thin: int = 1,
        rng: int | np.random.Generator | None = None,
        *,
        temperatures: Sequence[float] | None = None,
        concentration_prior: tuple[float, float] | None = None,
        resume_from: str | os.PathLike[str] | Chains | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_seconds: float = 30.0,
        workers: int | None = None,
        progress: bool | Report | None = None,
    ) -> None:
        if not isinstance(model, Model):
            invalid("model", "be a Model", model)
        check_choice("moves", moves, MOVES)
        sweeps, chains, burn_in, thin = _checked_lengths(model, sweeps, chains, burn_in, thin)
        replicas = checked_temperatures(temperatures)
        gamma = None if concentration_prior is None else checked_gamma(concentration_prior)
        if gamma is not None and len(replicas) > 1:
            invalid("concentration_prior", "be left out with temperatures", concentration_prior)
        self.max_sweeps, self._checkpoint, self._progress = sweeps, checkpoint, progress
        self._every = check_real("checkpoint_seconds", checkpoint_seconds, above=0)
        n_runners = model.n_components * chains
        default = min(n_runners, n_processors())
        self._workers = default if workers is None else check_int("workers", workers, at_least=1)

        components = [model.component(c) for c in range(model.n_components)]
        is_plain = len(replicas) == 1 and gamma is None and model.n_components > 1
        self._combined_after = COMBINED_AFTER if is_plain and isinstance(init, str) and init == "dispersed" else None
        self._components = components
        targets, plan = _packed(components, lam, moves, burn_in, thin)
        self.unreachable = unreachable(model, moves, splits_only=plan.attempts[REGROUP] + plan.attempts[REGROW] == 0)
        settings = {"chains": chains, "temperatures": replicas, "concentration_prior": gamma and list(gamma)}
        listed = {"plan": [np.asarray(part).tolist() for part in plan]}
        self._about: dict[str, Any] = {"n_sites": model.graph.n_sites, "n_components": model.n_components}
        self._about |= {"moves": moves, "burn_in": burn_in, "thin": thin, **settings}
        self._about["fingerprint"] = fingerprint(model, targets, settings | listed)
        before = None if resume_from is None else _checkpoint_of(resume_from, self._about, sweeps)
        if before is not None:
            self._combined_after = before[0]["combined_after"]
        self._seconds: float = 0.0 if before is None else before[0]["seconds"]
        self._started = math.inf  # when the `advance` in progress was called

        has_kinds = model.kinds is not None
        self.records = new_records(n_runners, sweeps, (sweeps - burn_in) // thin, model.graph.n_sites, has_kinds)
        streams = generator(rng).spawn(n_runners)
        if before is None:
            starts = starts_of_chains(components, targets, init, chains, self._workers)
        else:  # any partition that is allowed: the states of the runners are restored
            starts = [state["best"] for state in before[1]]
            if not all(components[r // chains].allows(start) for r, start in enumerate(starts)):
                _refuse_damaged(resume_from)
        self.runners = _runners(components, targets, plan, replicas, gamma, starts, self.records, streams)
        if before is not None:
            try:
                for runner, state in zip(self.runners, before[1], strict=True):
                    runner.restore(state)
            except InvalidInput:
                raise
            except DAMAGED:
                _refuse_damaged(resume_from)
        self._states: list[Arrays] = [{}] * n_runners  # of the runners, when they were last looked at
        self._due = 0.0  # when the next checkpoint is

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a copied or unpickled sampler: its runners write to its own records, and its clocks start again.

        A copy of a view is an array of its own, and another process counts time from another moment.
        """
        self.__dict__ |= state
        self._due = 0.0
        for r, runner in enumerate(self.runners):
            runner.record, runner.began = record_of(self.records, r), math.inf

    @property
    def n_sweeps(self) -> int:
        """The number of sweeps that every chain has finished."""
        return min(runner.done for runner in self.runners)

    @property
    def chains(self) -> Chains:
        """The draws so far, up to the last sweep that every chain has finished; no chain may be advancing."""
        return collect(self._checkpointed(), self.records._asdict())

    def advance(self, n_sweeps: int | None = None) -> None:
        """Make this many more sweeps with every chain, by default all up to the last.

        Ctrl-C, as any exception, stops the chains before it is raised: `chains` has the sweeps that all of them have
        finished, and `advance` continues.
        """
        left = self.max_sweeps - self.n_sweeps
        n_sweeps = left if n_sweeps is None else check_int("n_sweeps", n_sweeps, at_least=1)
        if n_sweeps > left:
            invalid("n_sweeps", f"be at most the {left} sweeps that are left of {self.max_sweeps}", n_sweeps)
        self.stop(False)
        self._started = time.perf_counter()
        how: dict[str, Any] = {"total_sweeps": self.max_sweeps}
        if self._checkpoint is not None:
            self._checkpointed()
            how |= {"after_turn": self._look_at, "meanwhile": self._write_if_due}
        try:
            with reporting(self._progress) as report:
                end, pause = self.n_sweeps + n_sweeps, self._combined_after
                if pause is not None and pause <= end:
                    advance_all(self.runners, pause, self._workers, report, **how)
                    if self.n_sweeps == pause:
                        self._combine()
                advance_all(self.runners, end, self._workers, report, **how)
        finally:
            self._seconds, self._started = self._elapsed(), math.inf
            if self._checkpoint is not None:
                self.save(self._checkpoint)

    def _combine(self) -> None:
        """Move chains to what their boundaries, and those of the same chain of other components, are merged into.

        A chain stays if it has visited anything better. Chains with different numbers remain independent.
        """
        n_chains = len(self.runners) // len(self._components)
        for c in range(n_chains):
            runners = self.runners[c::n_chains]
            found = common_refinement(self._components[0], np.array([runner.state.label for runner in runners]))
            for model, runner in zip(self._components, runners, strict=True):
                labels = greedy_labels(runner.target, found, model.connected)
                if model.seeds is not None and not keeps_seeds(labels, model.seeds):  # parts of one that do not touch
                    labels = with_seeds(model, labels)
                if model.kinds is None or model.allows(labels):
                    kinds = starting_kinds(model, runner.target, labels)
                    value = model.log_posterior_of_connected(labels, kinds)
                    if value > runner.record.best_log_posterior[0] + CLEARLY:
                        stopped = runner.stopped
                        runner.place_at(labels, value, kinds)
                        runner.stop(stopped)
        self._combined_after = None
        self._checkpointed()  # what is written next must not hold chains from before

    def stop(self, stopped: bool = True) -> None:
        """Make an `advance` in another thread return soon, with the chains at different sweeps; the next continues."""
        for runner in self.runners:
            runner.stop(stopped)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state of all chains to a file, for `resume_from` and `Chains.load`; no chain may be advancing."""
        write_checkpoint(path, self._checkpointed())

    def _look_at(self, r: int) -> None:
        self._states[r] = self.runners[r].state_dict()

    def _checkpointed(self, now: bool = True) -> Checkpoint:
        """The state of each chain now, when none may be advancing, or when it was last looked at."""
        for r in range(len(self.runners) if now else 0):
            self._look_at(r)
        about = {**self._about, "seconds": self._elapsed(), "combined_after": self._combined_after}
        return about, list(self._states)

    def _elapsed(self) -> float:
        """Seconds spent in `advance`."""
        began = max(self._started, min(runner.began for runner in self.runners))
        return self._seconds + max(time.perf_counter() - began, 0.0)

    def _write_if_due(self) -> None:
        """Write the checkpoint, less often if that is slow: it takes at most a tenth of the time."""
        began = time.perf_counter()
        if self._checkpoint is not None and began >= self._due:
            write_checkpoint(self._checkpoint, self._checkpointed(now=False))
            now = time.perf_counter()
            self._due = now + max(self._every, 10 * (now - began))


def sample(
    *args: Any,
    until: Callable[[Chains], bool] | None = None,
    check_every: int = 100,
    progress: bool | Report | None = None,
    **options: Any,
) -> Chains:
    """The chains of a `Sampler` after its last sweep: `sample(model, sweeps=1000, chains=4, moves="auto", ...)`.

    Parameters
    ----------
    *args, progress, **options
        As in `Sampler`.
    until : callable, optional
        Stop before the last sweep if it returns true: it is called with the chains so far after every `check_every`
        sweeps, as soon as there are draws.
    check_every : int

    Returns
    -------
    Chains
        The draws of all chains.

    Raises
    ------
    SamplingInterrupted
        On Ctrl-C; a KeyboardInterrupt whose `chains` holds the sweeps finished so far.

    Examples
    --------
    >>> import spinseg as ss
    >>> graph = ss.SiteGraph(4, [[0, 1], [1, 2], [2, 3]])
    >>> model = ss.Model(
    ...     graph,
    ...     ss.PoissonGamma([1, 2, 40, 50]),
    ...     ss.DirichletProcess(1.0),
    ...     beta=0.5,
    ... )
    >>> chains = ss.sample(model, sweeps=200, chains=2, rng=0)
    >>> chains.best_labels
    array([0, 0, 1, 1], dtype=int32)
    """
    every = check_int("check_every", check_every, at_least=1)
    with reporting(progress) as report:
        sampler = Sampler(*args, progress=report, **options)
        warn_of_unreachable(sampler.unreachable, stacklevel=3)
        try:
            while True:
                done, left = sampler.n_sweeps, sampler.max_sweeps - sampler.n_sweeps
                if until is not None and done > 0 and left > 0 and done % every == 0:
                    drawn = sampler.chains
                    if drawn.labels.size > 0 and until(drawn):
                        break
                sampler.advance(None if until is None or not left else min(every - done % every, left))
                if sampler.n_sweeps == sampler.max_sweeps:
                    break
        except KeyboardInterrupt:
            raise SamplingInterrupted(sampler.chains) from None
    return sampler.chains


def _signature_of_sample() -> inspect.Signature:
    """All parameters of `sample`, for `help`."""
    shared, own = inspect.signature(Sampler).parameters, inspect.signature(sample).parameters
    more = [own[name] for name in ("until", "check_every")]
    return inspect.Signature([*shared.values(), *more], return_annotation="Chains")


sample.__signature__ = _signature_of_sample()  # type: ignore[attr-defined]


def _checked_lengths(model: Model, sweeps: int, chains: int, burn_in: int, thin: int) -> tuple[int, int, int, int]:
    """The last four as whole numbers, refused if draws and traces would not fit into memory."""
    n_sites, n_components = model.graph.n_sites, model.n_components
    sweeps, chains = check_int("sweeps", sweeps, at_least=1), check_int("chains", chains, at_least=1)
    burn_in, thin = check_int("burn_in", burn_in, at_least=0), check_int("thin", thin, at_least=1)
    if burn_in > sweeps:
        invalid("burn_in", f"be at most sweeps, {sweeps}", burn_in)
    n_draws = (sweeps - burn_in) // thin
    if 4 * n_components * chains * n_draws * n_sites > MAX_DRAW_BYTES:
        drawn = f"{chains} x {n_draws} draws" + (f" of {n_components} components" if n_components > 1 else "")
        invalid("thin", f"keep the draws below {MAX_DRAW_BYTES >> 30} GB ({drawn})", thin)
    check_length(sweeps, chains * n_components)
    return sweeps, chains, burn_in, thin


def check_length(sweeps: int, chains: int) -> None:
    """Refuse numbers of sweeps and chains that are not positive, or whose traces would not fit into memory."""
    sweeps, chains = check_int("sweeps", sweeps, at_least=1), check_int("chains", chains, at_least=1)
    if 12 * chains * sweeps > MAX_DRAW_BYTES:
        invalid("sweeps", f"keep the traces below {MAX_DRAW_BYTES >> 30} GB", sweeps)


def thin_to_fit(n_draws: int, n_labels: int) -> int:
    """The thinning at which the kept draws, of `n_labels` labels each, take at most about 256 MB."""
    return max(1, -(-n_draws // max(MIN_DRAWS, MAX_LABELS // n_labels)))


def _checkpoint_of(source: str | os.PathLike[str] | Chains, about: dict[str, Any], sweeps: int) -> Checkpoint:
    """The checkpoint to resume from."""
    if isinstance(source, Chains):
        run, states = source._checkpoint
        try:
            check_whole((run, states))
        except DAMAGED:
            _refuse_damaged(source)
        check_resumable((run, states), "Chains", about, sweeps)
        return {**run, "seconds": source.seconds}, states
    found = read_checkpoint(source)
    check_resumable(found, os.fspath(source), about, sweeps)
    return found


def _refuse_damaged(source: object) -> NoReturn:
    """Refuse chains whose arrays were changed."""
    invalid("resume_from", "hold chains as spinseg saved them", source if isinstance(source, Chains) else f"{source}")


def _packed(components: Sequence[Model], lam: Lam, moves: str, burn_in: int, thin: int) -> tuple[list[Target], Plan]:
    """The target of each component, which share all but their couplings, and the moves of one iteration."""
    first, bonds = components[0], [bonds_that_move(component, lam, moves) for component in components]
    plan = iteration_plan(first, moves, bonds[0][1], burn_in, thin)
    targets = [pack(first, bonds[0][0], similar_sites(first) if plan.attempts[REGROUP] else None)]
    for component, (strength, _) in zip(components[1:], bonds[1:], strict=True):
        targets.append(targets[0]._replace(**couplings_of(component, strength)))
    return targets, plan


def _runners(
    components: Sequence[Model],
    targets: Sequence[Target],
    plan: Plan,
    temperatures: list[float],
    gamma: tuple[float, float] | None,
    starts: Sequence[NDArray[np.int32]],
    records: Records,
    streams: Sequence[np.random.Generator],
) -> list[Chain]:
    """The chains before their first sweep, tempered or with their concentration sampled if asked.

    Chains may share a start, whose log posterior is computed once.
    """
    n_chains = len(starts) // len(components)
    runners: list[Chain] = []
    known: dict[tuple[int, int], tuple[float, NDArray[np.int32] | None]] = {}
    for r, (start, rng) in enumerate(zip(starts, streams, strict=True)):
        model, target = components[r // n_chains], targets[r // n_chains]
        record = record_of(records, r)
        place = r // n_chains, id(start)
        if place not in known:
            kinds = starting_kinds(model, target, start)
            known[place] = model.log_posterior_of_connected(start, kinds), kinds
        value, kinds = known[place]
        if gamma is not None:
            update = ConcentrationUpdate(model.prior, gamma, start.size, record.log_posterior.size)
            own = target._replace(log_v=update.table())
            k = int(start.max()) + 1
            value += own.log_v[k] - target.log_v[k]
            runners.append(Chain(model, own, plan, start, value, record, rng, kinds, update))
        elif len(temperatures) == 1:
            runners.append(Chain(model, target, plan, start, value, record, rng, kinds))
        else:
            runners.append(ParallelTempering(temperatures, model, target, plan, start, value, record, rng, kinds))
    return runners
