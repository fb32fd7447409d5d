"""Advance several chains in threads, with progress and interruption."""

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from queue import Empty, SimpleQueue

from spinseg._run.progress import Progress, Report
from spinseg.sampler.chain import Chain

TURN_SECONDS = 0.1  # for which a chain is advanced before it is the turn of the next


def advance_all(
    runners: Sequence[Chain],
    sweeps: int,
    workers: int,
    report: Report,
    *,
    total_sweeps: int,
    after_turn: Callable[[int], None] = lambda c: None,
    meanwhile: Callable[[], None] = lambda: None,
) -> None:
    """Advance all runners, in turns, to a number of sweeps; Ctrl-C, as any exception, stops them before it is raised.

    Progress is reported as a part of `total_sweeps`. `after_turn` is called with the number of each runner after its
    turn, and `meanwhile` about ten times a second.
    """
    turns: SimpleQueue[int] = SimpleQueue()  # so that all runners advance, however few the workers are
    for c in range(len(runners)):
        turns.put(c)

    def work() -> None:
        while True:
            try:
                c = turns.get_nowait()
            except Empty:  # all are finished or being advanced
                return
            # The first turn is one sweep, so that an interruption soon finds that all have begun.
            runners[c].advance(sweeps if runners[c].done else 1, TURN_SECONDS)
            after_turn(c)
            if runners[c].done < sweeps and not runners[c].stopped:
                turns.put(c)

    with ThreadPoolExecutor(workers) as pool:
        waiting: set[Future[None]] = set()
        try:
            waiting |= {pool.submit(work) for _ in range(workers)}
            while waiting:
                finished, waiting = wait(waiting, TURN_SECONDS, return_when=FIRST_EXCEPTION)
                report(_progress(runners, total_sweeps))
                for future in finished:
                    future.result()
                meanwhile()
        except BaseException:
            for runner in runners:
                runner.stop()
            wait(waiting)
            raise


def _progress(runners: Sequence[Chain], sweeps: int) -> Progress:
    """Sweeps of all runners together, and the state of the slowest."""
    slowest = min(runners, key=lambda runner: runner.done)
    total = sum(runner.done for runner in runners)
    return Progress(total, sweeps * len(runners), slowest.n_clusters, slowest.log_posterior)
