"""The chains of a session, and the loop that advances them in rounds short enough to display and pause in between."""

import asyncio
import time
import traceback
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinseg.sampler.chains import Chains
from spinseg.sampler.sampler import Sampler
from spinseg.segmentation.problem import Problem
from spinseg.segmentation.result import LAST_LABELS
from spinseg.segmentation.schedule import Schedule

ROUND_SECONDS = 0.07
MAX_SWEEPS = 5000  # of one run
MAX_STORED_LABELS = 2**24  # sites x sweeps x chains of one run: 64 MB as int32
MAX_ESTIMATED_CLUSTERS = 200  # of a draw, for estimates while the chains run: they would take many seconds else


class ChainRun(NamedTuple):
    """Chains that sample from one posterior, with their seed; `continued` if they started where another run ended."""

    problem: Problem
    sampler: Sampler
    chains: int
    seed: int
    continued: bool = False

    @classmethod
    def create(cls, problem: Problem, chains: int, seed: int, labels: NDArray[np.int32] | None = None) -> "ChainRun":
        """Make a run that starts as the preset says, or from `labels` of shape (n_chains, n_sites)."""
        if labels is not None:
            problem = replace(problem, preset=replace(problem.preset, init=labels))
        model, preset = problem.model, problem.preset
        max_sweeps = MAX_STORED_LABELS // (chains * model.n_components * model.graph.n_sites)
        max_sweeps = max(1, min(MAX_SWEEPS, max_sweeps))
        how = (chains, preset.moves, preset.lam, preset.init)
        sampler = Sampler(model, max_sweeps, *how, rng=seed, progress=False)
        return cls(problem, sampler, chains, seed, labels is not None)

    @property
    def n_sweeps(self) -> int:
        """The number of sweeps that every chain has finished."""
        return self.sampler.n_sweeps

    @property
    def n_left(self) -> int:
        """The number of sweeps that memory is left for."""
        return self.sampler.max_sweeps - self.n_sweeps

    @property
    def shown(self) -> slice:
        """Which runners the web app shows: the chains of the middle component."""
        middle = self.problem.model.n_components // 2
        return slice(middle * self.chains, (middle + 1) * self.chains)

    def labels(self) -> NDArray[np.int32]:
        """The present labels of the chains that are shown, of shape (n_chains, n_sites)."""
        records = self.sampler.records
        return (records.draw[:, self.n_sweeps - 1] if self.n_sweeps else records.best)[self.shown]

    @property
    def schedule(self) -> Schedule:
        """The schedule with which `segment` gives the same result."""
        return Schedule(self.chains, self.n_sweeps)

    def draws(self) -> Chains:
        """The chains without their first half, which `segment` discards as burn-in, too."""
        chains = self.sampler.chains
        return chains.after(chains.n_sweeps // 2)

    def is_quick_to_estimate(self, draws: Chains) -> bool:
        """Whether an estimate from these draws takes little time; those after a start from single sites do not."""
        if self.problem.preset.connected or self.problem.preset.estimate == "best":
            return True
        return bool(draws.n_clusters.max() <= MAX_ESTIMATED_CLUSTERS)

    def python_line(self, source: str) -> str:
        """The Python line that repeats this run; a continued run needs the line of the run before it."""
        preset, provenance = self.problem.preset, self.problem.provenance
        arguments = self.schedule.arguments(preset, self.n_sweeps, self.seed, provenance | {"mask": None})
        return f"found = {preset.call(source, arguments, **({'init': LAST_LABELS} if self.continued else {}))}"


class NotYet(Exception):
    """Raised if a request needs settings or a sweep that do not exist yet."""


class BackgroundTask:
    """A coroutine that runs beside the requests, at most once at a time; a failure is printed and stops the chains."""

    def __init__(self, work: Callable[[], Any], loop: "RunLoop") -> None:
        self._work, self._loop = work, loop
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start the coroutine, unless it is running."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._work())
            self._task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._loop.running = False
            traceback.print_exception(error)


class RunLoop:
    """Advances all chains of a run by the same number of sweeps in each round, every chain in its own thread.

    After each round `record(chain_run)` is called in a thread, while the chains rest, and then `announce()`. Whatever
    reads or replaces the chains holds `lock`, and so waits for the end of a round.
    """

    def __init__(
        self, executor: Executor, record: Callable[[ChainRun], None], announce: Callable[[], Awaitable[None]]
    ) -> None:
        self._executor, self._record, self._announce = executor, record, announce
        self.chain_run: ChainRun | None = None
        self.running = self._in_round = False
        self.sweeps_per_second = 0.0
        self.lock = asyncio.Lock()
        self._speed: float | None = None
        self._rounds = BackgroundTask(self._run_rounds, self)

    @property
    def state(self) -> str:
        """One of "building", "paused", "running" and "done"."""
        if self.chain_run is None:
            return "building"
        if not self.chain_run.n_left:
            return "done"
        return "running" if self.running or self._in_round else "paused"

    def start(self, speed: float | None) -> None:
        """Let the chains run, at most `speed` sweeps a second."""
        self.running, self._speed = True, speed
        self._rounds.start()

    async def pause(self) -> None:
        """Stop after the round in progress."""
        self.running = False
        async with self.lock:
            await self._announce()

    async def step(self) -> None:
        """Make one sweep, and pause."""
        self.running = False
        async with self.lock:
            run = self.prepared()
            if run.n_left:
                await self._advance(run, 1)
            await self._announce()

    def close(self) -> None:
        """Stop in the middle of a round."""
        self.running = False
        if self.chain_run is not None:
            self.chain_run.sampler.stop()

    def prepared(self) -> ChainRun:
        """The present run; raises NotYet before the first settings."""
        if self.chain_run is None:
            raise NotYet
        return self.chain_run

    def sampled(self) -> ChainRun:
        """The present run; raises NotYet before its first sweep."""
        run = self.prepared()
        if not run.n_sweeps:
            raise NotYet
        return run

    async def draws(self) -> tuple[ChainRun, Chains]:
        """The present run and its draws so far."""
        async with self.lock:
            run = self.sampled()
            return run, run.draws()

    async def _run_rounds(self) -> None:
        """Make rounds of about ROUND_SECONDS until the chains are paused or no memory is left.

        Nothing is awaited between the last test of `running` and the end, so that `start` knows whether it has ended.
        """
        size, due = 1, time.perf_counter()
        while self.running:
            async with self.lock:
                began, run, speed = time.perf_counter(), self.chain_run, self._speed
                if run is None or not run.n_left:
                    self.running = False
                if run is None or not self.running:
                    break
                size = size if speed is None else max(1, round(speed * ROUND_SECONDS))
                size = min(size, run.n_left)
                self._in_round = True
                try:
                    await self._advance(run, size)
                finally:
                    self._in_round = False
                seconds = time.perf_counter() - began
            await self._announce()
            due = max(due + size / speed, time.perf_counter()) if speed is not None else time.perf_counter()
            while self.running and self._speed == speed and (rest := due - time.perf_counter()) > 0:
                await asyncio.sleep(min(0.05, rest))
            rate = size / (time.perf_counter() - began)
            self.sweeps_per_second += (0.2 if self.sweeps_per_second else 1.0) * (rate - self.sweeps_per_second)
            size = max(1, min(int(size * ROUND_SECONDS / seconds), 2 * size))

    async def _advance(self, run: ChainRun, n_sweeps: int) -> None:
        """Make this many more sweeps, and record where the chains are."""
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._executor, run.sampler.advance, n_sweeps)
        await loop.run_in_executor(self._executor, self._record, run)
