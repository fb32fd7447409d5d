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
from spinseg.segmentation.schedule import ROUND_SWEEPS

MAX_RUNNING_CHAINS = max(4, n_processors())  # of all sessions together
CHAIN_THREADS = ThreadPoolExecutor(MAX_RUNNING_CHAINS, "chain")  # so that chains never wait for other work
ROUND_SECONDS = 0.07
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
        self._analysis = asyncio.Lock()  # of whatever diagnoses or refines, so that the latest finds the most sweeps
        self.labels: list[NDArray[np.int32]] = []  # of each chain, in numbers that clusters keep from frame to frame
        self._latest: tuple[ChainRun, dict[str, Any]] | None = None  # the run of the latest frame, and the frame
        self.agreement: dict[str, Any] | None = None
        self._diagnosed: tuple[ChainRun, int] | None = None  # the run that the agreement is of, after how many sweeps
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
        if not self.running and self.chain_run is not None and self.agreement and self.agreement["enough"]:
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

    async def begin(self, run: ChainRun, agreement: dict[str, Any] | None = None) -> None:
        """Replace the present run; the caller holds `lock`. Chains of a run that was finished before rest.

        `agreement` is what was known of the run, if there were others since.
        """
        if not run.earlier or run.scene != self.prepared().scene:
            self.labels = []
        await asyncio.to_thread(self._record, run)
        self.chain_run, self.agreement, self._diagnosed, self._outlined = run, agreement, None, None
        self.running = self.running and not (agreement and agreement["enough"])
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

        No round passes a multiple of ROUND_SWEEPS, where it is decided whether the chains stop: by their draws alone,
        however long anything takes. Nothing is awaited between the last test of `running` and the end, so that `start`
        knows whether it has ended.
        """
        size, due = 1, time.perf_counter()
        while self.running:
            run = self.chain_run
            if run is not None and run.n_sweeps % ROUND_SWEEPS == 0 and self._is_undiagnosed(run):
                await self._diagnose_and_stop()
                continue
            async with self.lock:
                began, run, speed = time.perf_counter(), self.chain_run, self._speed
                if run is None or not run.n_left:
                    self.running = False
                if run is None or not self.running:
                    break
                size = size if speed is None else max(1, round(speed * ROUND_SECONDS))
                size = min(size, run.n_left, ROUND_SWEEPS - run.n_sweeps % ROUND_SWEEPS)
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
        self.announce()  # the chains rest: what was drawn since the last diagnosis is diagnosed

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
        return frame | state | {"agreement": self.agreement, "outlined": outlined, "traces": traces}

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
        """Diagnose chains that rest. Those that run are diagnosed where it is decided whether they stop."""
        while not self.running and self.chain_run is not None and self._is_undiagnosed(self.chain_run):
            await self._diagnose_and_stop()

    def _is_undiagnosed(self, run: ChainRun) -> bool:
        """Whether there are sweeps that were not diagnosed, and enough for it."""
        enough = len(run.starts) > 1 and run.n_sweeps >= MIN_DIAGNOSED_SWEEPS
        return enough and not self.closed and self._diagnosed != (run, run.n_sweeps)

    async def _diagnose_and_stop(self) -> None:
        """Diagnose the chains. Those that more sweeps are of no use to stop, unless the user has let them go on.

        That is said once their outlines are refined, so that nothing changes afterwards.
        """
        with contextlib.suppress(NotYet):  # the chains were restarted meanwhile
            async with self._analysis:
                run, draws = await self.draws()
                if not self._is_undiagnosed(run):
                    return
                found = await asyncio.to_thread(run.agreement, draws)
                stops = self.running and found["enough"] and run.sampler is not self._kept
                if stops:
                    await self._refine_outlines(run, draws)
                if run is self.chain_run and run.n_sweeps == draws.n_sweeps:
                    self.agreement, self._diagnosed = found, (run, run.n_sweeps)
                    self.running = self.running and not stops
            self.notify()

    async def _refine(self) -> None:
        """Refine the outlines until they are those of all that was drawn: now and then while the chains run."""
        while not self.closed:
            run, began = self.chain_run, time.monotonic()
            if run is None or not run.n_sweeps or self._outlined == (run.sampler, run.n_sweeps):
                return
            if not run.problem.preset.refines(run.problem):
                return
            with contextlib.suppress(NotYet):  # the chains were restarted meanwhile
                async with self._analysis:
                    run, draws = await self.draws()
                    if self.running and not run.is_quick_to_estimate(draws):
                        return
                    await self._refine_outlines(run, draws)
                self.notify()
            due = time.monotonic() + IDLE_RATIO * (time.monotonic() - began)
            while self.state == "running" and time.monotonic() < due:
                await asyncio.sleep(POLL_SECONDS)

    async def _refine_outlines(self, run: ChainRun, draws: Chains) -> None:
        """Refine the outlines by these draws, where the preset refines any; the caller holds `_analysis`."""
        if run.problem.preset.refines(run.problem) and self._outlined != (run.sampler, draws.n_sweeps):
            self._outlines = run.problem.sites, await asyncio.to_thread(run.refined_sites, draws)
            self._outlined = run.sampler, draws.n_sweeps

    def outlined_sites(self, run: ChainRun) -> NDArray[np.int32]:
        """The sites of a run with the latest outlines; as they are if there are none.

        A refined site is the same site with other pixels, so that labels of sites are labels of refined ones, too.
        """
        sites, outlines = run.problem.sites, self._outlines
        return outlines[1] if outlines is not None and np.array_equal(outlines[0], sites) else sites
