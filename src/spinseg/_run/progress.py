"""The progress of long work on standard error: a bar on a terminal, and now and then a line elsewhere."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from spinseg._run.atomic import print_line

LINE_SECONDS = 5.0  # at least, between two lines where there is no terminal to draw a bar on


class Progress(NamedTuple):
    """How far sampling has come: the sweeps of all chains together, and the state of the slowest chain.

    `total` is the number of sweeps that are expected, which may change, and `stage` says what is being done, in words.
    Before the first sweep, as while an image is read, `done` is 0, `total` is 1 and there are no clusters.
    """

    done: int
    total: int
    n_clusters: int
    log_posterior: float
    stage: str = "sampling"


Report = Callable[[Progress], None]
Stage = Callable[..., None]  # takes what is being done, in words, and while sampling the share of sweeps expected
Count = Callable[[int, int, str], None]


@contextmanager
def reporting(progress: bool | Report | None, name: str = "") -> Iterator[Report]:
    """A function to call with a Progress, which has stages: one that calls the caller's, or draws a bar for True.

    For None and False nothing is printed.
    """
    if callable(progress):
        yield progress if hasattr(progress, "stage") else _Staged(progress)
    elif progress:
        with _sampling_bar(name) as report:
            yield report
    else:
        yield lambda progress: None


@contextmanager
def counting(shown: bool) -> Iterator[Count]:
    """A function to call as count(n_done, n_total, text) after each of many tasks; it does nothing if not shown."""
    from rich.console import Console
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    if not shown:
        yield lambda n_done, n_total, text: None
    elif console.is_interactive:
        with Bar(console=console, transient=True) as bar:
            task = bar.add_task("", total=None)
            yield lambda n_done, n_total, text: bar.update(task, completed=n_done, total=n_total, description=text)
    else:
        due = time.monotonic()

        def count(n_done: int, n_total: int, text: str) -> None:
            nonlocal due
            if time.monotonic() >= due or n_done == n_total:
                print_line(text)
                due = time.monotonic() + LINE_SECONDS

        yield count


def stage_of(report: Any) -> Stage:
    """The function of a report that says what is being done; for a report without stages, one that does nothing."""
    return getattr(report, "stage", lambda words, share=None: None)


class _Staged:
    """Calls a function with the sweeps that are expected, and once at the start of each stage.

    A function that has raised, as one that ends sampling does, is not called again.
    """

    def __init__(self, report: Report) -> None:
        self.report, self.share, self.words = report, 1.0, "sampling"
        self.latest = Progress(0, 1, 0, math.nan)

    def stage(self, words: str, share: float | None = None) -> None:
        """Say what is being done, and which share of all sweeps is expected; without a share, that of before."""
        self.words, self.share = words, share or self.share
        self(self.latest)

    def __call__(self, progress: Progress) -> None:
        self.latest = progress
        total = max(progress.done, round(progress.total * self.share), 1)
        try:
            self.report(progress._replace(total=total, stage=self.words))
        except BaseException:
            self.report = lambda progress: None
            raise


@contextmanager
def _sampling_bar(name: str) -> Iterator[Report]:
    """A bar that disappears in the end; nothing where there is no terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bars
    from rich.text import Text

    class Bar(Bars):
        """The name in one line, and in the next how far it is and what is being done."""

        share = 1.0  # of all sweeps, which are expected

        def get_renderables(self) -> Iterator[Any]:
            if name:
                yield Text(name, no_wrap=True, overflow="ellipsis")
            yield self.make_tasks_table(self.tasks)

        def stage(self, words: str, share: float | None = None) -> None:
            """Say what is being done; without a share, nobody knows for how long, and the bar pulses."""
            if share is None:
                for each in self.task_ids:
                    self.remove_task(each)
                self.add_task(words, total=None)
            self.share = share or 1.0
            self.update(self.task_ids[0], description=words)

        def __call__(self, progress: Progress) -> None:
            self.update(self.task_ids[0], completed=progress.done, total=progress.total * self.share)

    console = Console(stderr=True)
    if not console.is_interactive and not console.is_jupyter:
        yield lambda progress: None
        return
    words = TextColumn("{task.description}", markup=False)
    with Bar(BarColumn(), words, console=console, transient=True) as bar:
        bar.stage("sampling")
        yield bar
