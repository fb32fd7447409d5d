"""Progress of a long run, on standard error."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

QUIET_SECONDS = 5.0  # between lines, where there is no terminal to draw a bar on


class Progress(NamedTuple):
    """How far sampling has come: sweeps of all chains together, and the state of the slowest chain.

    While `compiling`, no sweep has begun: the sampler is being compiled for this machine.
    """

    done: int
    total: int
    n_clusters: int
    log_posterior: float
    compiling: bool = False


Report = Callable[[Progress], None]


@contextmanager
def reporting(progress: bool | Report | None, name: str = "") -> Iterator[Report]:
    """A function to call with a Progress: the caller's own, a bar on standard error for True, or nothing."""
    if callable(progress):
        yield progress
    elif progress:
        with _bar(name) as report:
            yield report
    else:
        yield lambda at: None


@contextmanager
def counting(shown: bool, what: str, total: int, done: int = 0) -> Iterator[Callable[[], None]]:
    """A function to call after each of `total` things, of which `done` are done: a bar on standard error, or lines."""
    from rich.console import Console
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    if not shown:
        yield lambda: None
    elif console.is_interactive:
        with Bar(console=console, transient=True) as bar:
            task = bar.add_task(f"{what} {done}/{total}", total=total, completed=done)

            def advance() -> None:
                bar.advance(task)
                bar.update(task, description=f"{what} {int(bar.tasks[0].completed)}/{total}")

            yield advance
    else:
        due, at = time.monotonic(), done

        def line() -> None:
            nonlocal due, at
            at += 1
            if time.monotonic() >= due or at == total:
                print(f"{what} {at}/{total}", file=sys.stderr, flush=True)
                due = time.monotonic() + QUIET_SECONDS

        yield line


def compiling_notice() -> Report:
    """A function to call with a Progress that says, once, that the sampler is being compiled, and nothing else."""
    said = False

    def report(at: Progress) -> None:
        nonlocal said
        if at.compiling and not said:
            said = True
            line = "Compiling the sampler for this machine, this once: it takes about half a minute."
            print(line, file=sys.stderr, flush=True)

    return report


@contextmanager
def _bar(name: str) -> Iterator[Report]:
    """A bar on standard error, gone when it is done; where that is no terminal, only the notice of compiling."""
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    console, notice = Console(stderr=True), compiling_notice()
    if not console.is_interactive and not console.is_jupyter:
        yield notice
        return
    columns = (
        TextColumn(f"{name}  " if name else "", markup=False),
        TextColumn("sweep {task.completed:.0f}/{task.total:.0f}"),
        BarColumn(),
        TextColumn("{task.fields[n_clusters]} clusters, log posterior {task.fields[log_posterior]:.1f}"),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task("sampling", total=0, n_clusters=0, log_posterior=0.0)

        def report(at: Progress) -> None:
            notice(at)  # while the bar is up, what is printed appears above it
            bar.update(
                task, completed=at.done, total=at.total, n_clusters=at.n_clusters, log_posterior=at.log_posterior
            )

        yield report
