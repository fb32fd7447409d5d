"""The loop that advances the chains of a session, in rounds that are short enough to display and pause in between."""

import asyncio
import time
import traceback
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from typing import Any

from spinseg.app.chain_run import ChainRun
from spinseg.sampler.chains import Chains

ROUND_SECONDS = 0.07


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
        if self.chain_run.n_sweeps >= self.chain_run.max_sweeps:
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
            if run.n_sweeps < run.max_sweeps:
                await self._advance(run, run.n_sweeps + 1)
            await self._announce()

    def close(self) -> None:
        """Stop in the middle of a round."""
        self.running = False
        for runner in self.chain_run.sampling.runners if self.chain_run else []:
            runner.stop()

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
                if run is None or run.n_sweeps >= run.max_sweeps:
                    self.running = False
                if run is None or not self.running:
                    break
                size = size if speed is None else max(1, round(speed * ROUND_SECONDS))
                size = min(size, run.max_sweeps - run.n_sweeps)
                self._in_round = True
                try:
                    await self._advance(run, run.n_sweeps + size)
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
        """Advance all chains to `n_sweeps`, and record where they are."""
        loop = asyncio.get_running_loop()
        advances = [loop.run_in_executor(self._executor, runner.advance, n_sweeps) for runner in run.sampling.runners]
        await asyncio.gather(*advances)
        await loop.run_in_executor(self._executor, self._record, run)
