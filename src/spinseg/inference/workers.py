"""Advance several chains in threads, with progress, interruption and checkpoints."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from queue import Empty, SimpleQueue
from typing import Protocol

from spinseg.inference.kernels.iterations import run_iterations
from spinseg.inference.progress import Progress, Report, reporting

TURN_SECONDS = 0.5  # that a chain is advanced before the next one has its turn
LOADING_SECONDS = 1.5  # a sampler compiled before is loaded in less


class Runner(Protocol):
    """A chain, or several that count as one."""

    @property
    def done(self) -> int:
        """Sweeps finished."""

    @property
    def stopped(self) -> bool:
        """Whether it was told to stop."""

    @property
    def n_clusters(self) -> int:
        """Number of clusters now."""

    @property
    def log_posterior(self) -> float:
        """Log posterior now."""

    def advance(self, sweeps: int, seconds: float) -> None:
        """Go on to `sweeps` sweeps, for about so many seconds, or until told to stop."""

    def stop(self) -> None:
        """Make `advance` return soon."""


def run_all(
    runners: Sequence[Runner],
    sweeps: int,
    workers: int,
    progress: bool | Report | None,
    after_turn: Callable[[int], None] = lambda c: None,
    checkpoint: Callable[[], None] = lambda: None,
    every: float = 60.0,
) -> None:
    """Advance all runners in turns; on an interruption they are stopped first.

    `after_turn` is called with the number of a runner that rests, and `checkpoint` every so many seconds, less often
    where it is slow: it takes at most a tenth of the time.
    """
    began = time.perf_counter()
    queue: SimpleQueue[int] = SimpleQueue()
    for c in range(len(runners)):
        queue.put(c)
    due = began

    def work() -> None:
        """Advance runners in turn, so that all of them come forward however few the workers are."""
        while (c := _next(queue)) is not None:
            runners[c].advance(sweeps, min(TURN_SECONDS, every))
            after_turn(c)
            if runners[c].done < sweeps and not runners[c].stopped:
                queue.put(c)

    with reporting(progress) as report, ThreadPoolExecutor(workers) as pool:
        waiting: set[Future[None]] = set()
        try:
            waiting |= {pool.submit(work) for _ in range(workers)}
            while waiting:
                finished, waiting = wait(waiting, min(0.1, every), return_when=FIRST_EXCEPTION)
                slowest = min(runners, key=lambda runner: runner.done)
                total = sum(runner.done for runner in runners)
                compiled = total > 0 or getattr(run_iterations, "signatures", True)
                compiling = not compiled and time.perf_counter() - began > LOADING_SECONDS
                state = (slowest.n_clusters, slowest.log_posterior)
                report(Progress(total, sweeps * len(runners), *state, compiling))
                for future in finished:
                    future.result()
                if (clock := time.perf_counter()) >= due:
                    checkpoint()
                    due = time.perf_counter() + max(every, 10 * (time.perf_counter() - clock))
        except BaseException:
            for runner in runners:
                runner.stop()
            wait(waiting)
            raise


def _next(queue: "SimpleQueue[int]") -> int | None:
    """Whose turn it is, None if all are finished or being advanced."""
    try:
        return queue.get_nowait()
    except Empty:
        return None
