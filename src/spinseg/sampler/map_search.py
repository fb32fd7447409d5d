"""Search for the most probable partition."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from spinseg._run.executor import n_processors
from spinseg._run.progress import Report, reporting
from spinseg._validation import check_int, generator, invalid
from spinseg.model.posterior import Model
from spinseg.partition.numbering import checked_labels
from spinseg.sampler.chain import Chain, new_record
from spinseg.sampler.kernels.moves import attempts_for
from spinseg.sampler.kernels.state import Plan, Record, State, Target
from spinseg.sampler.pack import pack
from spinseg.sampler.plan import bond_strengths, is_limited, similar_sites, unreachable, warn_of_unreachable
from spinseg.sampler.starts import greedy_labels, starting_kinds, starting_labels
from spinseg.sampler.workers import advance_all

# Start and first temperature of the two annealings of a run. Neither is robust alone.
SCHEDULES = (("one", 1.5), ("greedy", 1.0))
LAST_TEMPERATURE, STEPS, SWEEPS_PER_STEP = 0.1, 60, 10
ZERO_TEMPERATURE = 1e-7  # so low that only gains are accepted
POLISHING_SWEEPS = 10  # of a hill climb
SINGLE_SITES = np.zeros(1)  # lambda of sweeps without bonds


@dataclass(frozen=True, eq=False)
class Mode:
    """The best partition that a search found.

    Attributes
    ----------
    labels : (site,) int32
        Numbered 0..k-1 by first appearance.
    kinds : (site,) int32 or None
        The kind of the region of each site, numbered so; None where regions have none.
    log_posterior : float
    runs : (run,) float64
        Log posterior that each independent run ended at.
    n_found : int
        How many of the runs ended at this very partition.

    Examples
    --------
    >>> import spinseg as ss
    >>> values = ss.DiagonalGaussian([0, 0, 9, 9])
    >>> model = ss.Model(
    ...     ss.SiteGraph.grid((1, 4)),
    ...     values,
    ...     ss.DirichletProcess(1.0),
    ...     beta=0.5,
    ... )
    >>> mode = ss.find_map(model, rng=0)
    >>> mode.labels.tolist()
    [0, 0, 1, 1]
    """

    labels: NDArray[np.int32] = field(repr=False)
    kinds: NDArray[np.int32] | None = field(repr=False)
    log_posterior: float
    runs: NDArray[np.float64]
    n_found: int


def find_map(
    model: Model,
    runs: int = 2,
    *,
    sweeps: int = STEPS * SWEEPS_PER_STEP,
    rng: int | np.random.Generator | None = None,
    workers: int | None = None,
    progress: bool | Report | None = None,
) -> Mode:
    """The most probable partition that several independent runs find, and how many of them found it.

    Each run anneals twice, from one cluster at temperature 1.5 and from greedy merging at 1, down to 0.1, and then
    climbs: moves of single sites and of bonded groups, merges, splits and regroupings are accepted while they gain. At
    temperature T the target is the posterior to the power 1 / T, and the moves are those of `sample`; where clusters
    must be connected, they stay so.

    Parameters
    ----------
    model : Model
    runs : int
        Independent runs.
    sweeps : int
        Sweeps of each annealing.
    rng, workers, progress
        As in `sample`.

    Returns
    -------
    Mode
        The partition, its log posterior, and the number of runs that found it.

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
    >>> found = ss.find_map(model, rng=0)
    >>> found.labels.tolist(), found.n_found
    ([0, 0, 1, 1], 2)
    """
    if not isinstance(model, Model):
        invalid("model", "be a Model", model)
    if model.n_components > 1:
        invalid("model", "have one component, such as model.component(0)", f"{model.n_components} components")
    runs, sweeps = check_int("runs", runs, at_least=1), check_int("sweeps", sweeps, at_least=1)
    workers = check_int("workers", min(2 * runs, n_processors()) if workers is None else workers, at_least=1)
    warn_of_unreachable(unreachable(model, "auto"), stacklevel=3)
    strength, _ = bond_strengths(model, None, "auto")
    target = pack(model, strength, similar_sites(model))
    streams = generator(rng).spawn(2 * runs)
    starts = {init: starting_labels(model, target, init) for init, _ in SCHEDULES}
    searches = [
        Annealing(model, target, starts[init], hottest, sweeps, stream)
        for stream, (init, hottest) in zip(streams, SCHEDULES * runs, strict=True)
    ]
    with reporting(progress) as report:
        advance_all(searches, sweeps + 1, workers, report, total_sweeps=sweeps + 1)
    found = [search.result for search in searches if search.result is not None]
    values = np.array([value for *_, value in found])
    labels, kinds, best = found[int(values.argmax())]
    n_found = sum(any(_is_same(found[r + half], labels, kinds) for half in (0, 1)) for r in range(0, 2 * runs, 2))
    return Mode(labels, kinds, best, values.reshape(runs, 2).max(axis=1), n_found)


def _is_same(found: Found, labels: NDArray[np.int32], kinds: NDArray[np.int32] | None) -> bool:
    """Whether a search ended at this partition, and at these kinds of its regions if they have any."""
    return np.array_equal(found[0], labels) and (kinds is None or np.array_equal(found[1], kinds))  # type: ignore[arg-type]


Found = tuple[NDArray[np.int32], NDArray[np.int32] | None, float]  # labels, kinds, log posterior


class Annealing(Chain):
    """Simulated annealing, and a hill climb after the last sweep, which counts as one more sweep."""

    def __init__(
        self,
        model: Model,
        target: Target,
        start: NDArray[np.int32],
        hottest: float,
        sweeps: int,
        rng: np.random.Generator,
    ) -> None:
        self.model, self.sweeps = model, sweeps
        self.temperatures = np.geomspace(hottest, LAST_TEMPERATURE, min(STEPS, sweeps))
        _, self.lams = bond_strengths(model, None, "auto")
        plan = self._plan(self.lams, hottest, "anneal", sweeps)
        kinds = starting_kinds(model, target, start)
        record = new_record(sweeps, start.size, kinds is not None)
        super().__init__(model, target, plan, start, model.log_posterior(start, kinds), record, rng, kinds)
        self.climb: Chain | None = None  # the chain that climbs now
        self.result: Found | None = None

    def _plan(self, lams: NDArray[np.float64], temperature: float, purpose: str, sweeps: int) -> Plan:
        """Iterations of which no draws are kept."""
        connected, limited = self.model.connected, is_limited(self.model)
        has_kinds = self.model.kinds is not None
        attempts = attempts_for(
            purpose, self.model.graph.n_sites, connected=connected, limited=limited, kinds=has_kinds
        )
        return Plan(lams, attempts, 1 / temperature, sweeps, 1, connected=connected)

    def advance(self, sweeps: int, seconds: float = math.inf) -> None:
        """Continue for about `seconds`, to the end, or until stopped."""
        began = time.perf_counter()
        while self.done < self.sweeps and not self.stopped and time.perf_counter() - began < seconds:
            step = self.done * len(self.temperatures) // self.sweeps
            self.plan = self.plan._replace(inv_temperature=1 / self.temperatures[step])
            super().advance(-(-(step + 1) * self.sweeps // len(self.temperatures)))
        if self.done == self.sweeps and not self.stopped:
            ends = [self._polished(*partition) for partition in (_best(self.record), _last(self.state))]
            if not self.stopped:
                self.result, self.done = max(ends, key=lambda end: end[2]), self.sweeps + 1

    def _polished(self, labels: NDArray[np.int32], kinds: NDArray[np.int32] | None) -> Found:
        """A partition that no move improves on, its kinds, and its log posterior; the best so far when stopped."""
        value = self.model.log_posterior(labels, kinds)
        while not self.stopped:
            before = value
            single_sites = (SINGLE_SITES, "single sites", 2)
            for lams, purpose, sweeps in (single_sites, (self.lams, "polish", POLISHING_SWEEPS), single_sites):
                value = self.model.log_posterior(labels, kinds)
                record = new_record(sweeps, labels.size, kinds is not None)
                plan = self._plan(lams, ZERO_TEMPERATURE, purpose, sweeps)
                self.climb = Chain(self.model, self.target, plan, labels, value, record, self.rng, kinds)
                if self.stopped:  # after the line before: `stop` finds this chain, or it does not begin
                    return labels, kinds, value
                self.climb.advance(sweeps)
                labels, kinds = _best(record)
            value = self.model.log_posterior(labels, kinds)
            if kinds is None:  # greedy merging knows no kinds
                merged = greedy_labels(self.target, labels, self.model.connected)
                if self.model.log_posterior(merged) > value:
                    labels, value = merged, self.model.log_posterior(merged)
            if value <= before + 1e-9 * abs(before):
                break
        return labels, kinds, value

    def stop(self, stopped: bool = True) -> None:
        """Make `advance` return soon, or let it work again."""
        super().stop(stopped)
        if self.climb is not None:  # looked up after the annealing was stopped: it may have come meanwhile
            self.climb.stop(stopped)


def _best(record: Record) -> tuple[NDArray[np.int32], NDArray[np.int32] | None]:
    """Labels and kinds of the best partition of a record."""
    return record.best.copy(), record.best_kind.copy() if record.best_kind.size else None


def _last(state: State) -> tuple[NDArray[np.int32], NDArray[np.int32] | None]:
    """Labels and kinds of the partition that a chain is at."""
    n_sites = state.label.size
    kinds = None if state.nested is None else checked_labels("kinds", state.nested.label[state.label], n_sites)
    return checked_labels("labels", state.label, n_sites), kinds
