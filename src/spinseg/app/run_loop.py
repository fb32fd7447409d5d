"""The loop that advances the chains of a session, and what the browser gets of them meanwhile."""

import asyncio
import contextlib
import time
import traceback
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinseg._run.executor import n_processors
from spinseg.app.chain_run import ChainRun, match_labels
from spinseg.sampler.chains import Chains
from spinseg.sampler.sampler import Sampler

MAX_RUNNING_CHAINS = max(4, n_processors())  # of all sessions together
CHAIN_THREADS = ThreadPoolExecutor(MAX_RUNNING_CHAINS, "chain")  # so that chains never wait for other work
ROUND_SECONDS = 0.07
DIAGNOSIS_SECONDS = 1.0  # between two diagnoses
MIN_DIAGNOSED_SWEEPS = 40
IDLE_RATIO = 19  # while the chains run, they have the processor for this many times as long as refining takes
POLL_SECONDS = 0.05
EMPTY_FRAME: dict[str, Any] = {"scene": 0, "stage": 0, "began": 0, "sweeps": 0, "outlined": 0, "chains": []}


class NotYet(Exception):
    """Raised if a request needs settings or a sweep that do not exist yet."""


class RunLoop:
    """Advances all chains of a run by the same number of sweeps in each round, every chain in its own thread.

    Whatever reads or replaces the chains holds `lock`. `changed` is set with each newer frame, and is another event
    then.
    """

    def __init__(self) -> None:
        self.chain_run: ChainRun | None = None
        self.running = self._in_round = self.closed = False
        self._speed: float | None = None
        self._sweeps_per_second = 0.0
        self.doing: str | None = None  # what is being prepared, in words
        self._kept: Sampler | None = None  # whose chains go on, although more sweeps are of no use
        self.lock, self.changed = asyncio.Lock(), asyncio.Event()
        self.labels: list[NDArray[np.int32]] = []  # of each chain, in numbers that clusters keep from frame to frame
        self._latest: tuple[ChainRun, dict[str, Any]] | None = None  # the run of the latest frame, and the frame
        self._agreement: dict[str, Any] | None = None
        self._outlined: tuple[Sampler, int] | None = None  # whose draws, after how many sweeps, outlines are made from
        self._outlines: tuple[NDArray[np.int32], NDArray[np.int32]] | None = None  # sites before and after refining
        self._tasks: dict[str, asyncio.Task[None]] = {}

    # --- running ---

    @property
    def state(self) -> str:
        """One of "building", "paused", "running" and "done"."""
        if self.chain_run is None:
            return "building"
        if not self.chain_run.n_left:
            return "done"
        return "running" if self.running or self._in_round else "paused"

    def start(self, speed: float | None) -> None:
        """Let the chains run, at most `speed` sweeps a second; those that had stopped by themselves go on."""
        if not self.running and self.chain_run is not None and self._agreement and self._agreement["enough"]:
            self._kept = self.chain_run.sampler
        self.running, self._speed = True, speed
        self._in_background(self._run_rounds)

    async def pause(self) -> None:
        """Stop after the round in progress."""
        self.running = False
        async with self.lock:
            self.announce()

    async def step(self) -> None:
        """Make one sweep, and pause."""
        self.running = False
        async with self.lock:
            run = self.prepared()
            if run.n_left:
                await self._advance(run, 1)
            self.announce()

    def report(self, words: str | None) -> None:
        """Show what is being prepared."""
        self.doing = words
        self.notify()

    async def begin(self, run: ChainRun) -> None:
        """Replace the present run by a new one; the caller holds `lock`."""
        if not run.earlier:
            self.labels = []
        await asyncio.to_thread(self._record, run)
        self.chain_run, self._agreement, self._outlined = run, None, None
        self.announce()

    def change_detail(self, run: ChainRun) -> None:
        """Let the present run, with the same draws, show another detail; the caller holds `lock`.

        What was said of the convergence stays until it is known at the new detail.
        """
        self.chain_run = run
        self.announce()

    def close(self) -> None:
        """Stop for good, in the middle of a round."""
        self.running, self.closed = False, True
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
        """The present run and its draws so far; raises NotYet before its first sweep."""
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
            self.announce()
            due = max(due + size / speed, time.perf_counter()) if speed is not None else time.perf_counter()
            while self.running and self._speed == speed and (rest := due - time.perf_counter()) > 0:
                await asyncio.sleep(min(POLL_SECONDS, rest))
            rate, before = size / (time.perf_counter() - began), self._sweeps_per_second
            self._sweeps_per_second += (0.2 if before else 1.0) * (rate - before)
            size = max(1, min(int(size * ROUND_SECONDS / seconds), 2 * size))

    async def _advance(self, run: ChainRun, n_sweeps: int) -> None:
        """Make this many more sweeps, and record where the chains are."""
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(CHAIN_THREADS, run.sampler.advance, n_sweeps)
        await loop.run_in_executor(CHAIN_THREADS, self._record, run)

    def _in_background(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Start a coroutine beside the requests, unless it is running; a failure is printed and stops the chains."""

        def ended(task: asyncio.Task[None]) -> None:
            if not task.cancelled() and (error := task.exception()) is not None:
                self.running = False
                traceback.print_exception(error)

        task = self._tasks.get(work.__name__)
        if task is None or task.done():
            self._tasks[work.__name__] = task = asyncio.create_task(work())
            task.add_done_callback(ended)

    # --- frames ---

    def _record(self, run: ChainRun) -> None:
        """Record where the chains of a run are; they must rest meanwhile."""
        matched: list[NDArray[np.int32]] = []
        for c, labels in enumerate(run.labels()):  # first to the first chain, so that chains can be compared
            matched.append(match_labels(labels, *matched[:1], *self.labels[c : c + 1]))
        self.labels, self._latest = matched, (run, run.frame(matched))

    def frame(self, stage: int, n_sent: int) -> dict[str, Any]:
        """The latest frame, with the traces from sweep `n_sent` on if the present run is still that of `stage`."""
        state = {"state": self.state, "doing": self.doing, "per_second": round(self._sweeps_per_second, 1)}
        if self._latest is None:
            return EMPTY_FRAME | state
        run, frame = self._latest
        sampler, n_outlined = self._outlined or (None, 0)
        outlined = n_outlined if sampler is run.sampler else 0  # the sweep at which outlines were refined
        traces = run.traces(n_sent if stage == frame["stage"] else 0, frame["sweeps"])
        return frame | state | {"agreement": self._agreement, "outlined": outlined, "traces": traces}

    def announce(self) -> None:
        """Wake all who wait for a frame, and diagnose and refine what was drawn since."""
        self._in_background(self._diagnose)
        self._in_background(self._refine)
        self.notify()

    def notify(self) -> None:
        """Wake all who wait for a frame."""
        self.changed.set()
        self.changed = asyncio.Event()

    async def _diagnose(self) -> None:
        """Diagnose the chains about once a second, until all that was drawn is diagnosed.

        Chains that more sweeps are of no use to stop, unless the user has let them go on. They rest while that is
        decided, so that it holds for all that was drawn.
        """
        diagnosed: tuple[ChainRun, int] | None = None
        while not self.closed:
            run = self.chain_run
            if run is None or len(run.starts) < 2 or run.n_sweeps < MIN_DIAGNOSED_SWEEPS:
                return
            if diagnosed == (run, run.n_sweeps):
                return
            with contextlib.suppress(NotYet):  # the chains were restarted meanwhile
                run, draws = await self.draws()
                found = await asyncio.to_thread(run.agreement, draws)
                if found["enough"] and self.running and run.sampler is not self._kept:
                    async with self.lock:
                        run = self.sampled()
                        draws = run.draws()
                        found = await asyncio.to_thread(run.agreement, draws)
                        self.running = self.running and not (found["enough"] and run.sampler is not self._kept)
                diagnosed = run, draws.n_sweeps
                if run is self.chain_run:
                    self._agreement = found
                    self.notify()
            await asyncio.sleep(DIAGNOSIS_SECONDS)

    async def _refine(self) -> None:
        """Refine the outlines until they are those of all that was drawn: now and then while the chains run."""
        while not self.closed:
            run, began = self.chain_run, time.monotonic()
            if run is None or not run.n_sweeps or not run.problem.preset.refines(run.problem):
                return
            if self._outlined == (run.sampler, run.n_sweeps):
                return
            with contextlib.suppress(NotYet):  # the chains were restarted meanwhile
                run, draws = await self.draws()
                if self.running and not run.is_quick_to_estimate(draws):
                    return
                self._outlines = run.problem.sites, await asyncio.to_thread(run.refined_sites, draws)
                self._outlined = run.sampler, draws.n_sweeps
                self.notify()
            due = time.monotonic() + IDLE_RATIO * (time.monotonic() - began)
            while self.state == "running" and time.monotonic() < due:
                await asyncio.sleep(POLL_SECONDS)

    def outlined_sites(self, run: ChainRun) -> NDArray[np.int32]:
        """The sites of a run with the latest outlines; as they are if there are none.

        A refined site is the same site with other pixels, so that labels of sites are labels of refined ones, too.
        """
        sites, outlines = run.problem.sites, self._outlines
        return outlines[1] if outlines is not None and np.array_equal(outlines[0], sites) else sites
