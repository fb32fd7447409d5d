"""Progress of a long run, on standard error."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple


class Progress(NamedTuple):
    """How far sampling has come: sweeps of all chains together, and the state of the slowest chain."""

    done: int
    total: int
    n_clusters: int
    log_posterior: float


Report = Callable[[Progress], None]


@contextmanager
def reporting(progress: bool | Report | None, total: int) -> Iterator[Report]:
    """A function to call with a Progress: the caller's own, a bar on standard error for True, or nothing."""
    if callable(progress):
        yield progress
    elif progress:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        columns = (
            TextColumn("sweep {task.completed:.0f}/{task.total:.0f}"),
            BarColumn(),
            TextColumn("{task.fields[n_clusters]} clusters, log posterior {task.fields[log_posterior]:.1f}"),
            TimeRemainingColumn(),
        )
        with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task("sampling", total=total, n_clusters=0, log_posterior=0.0)
            yield lambda at: bar.update(
                task, completed=at.done, n_clusters=at.n_clusters, log_posterior=at.log_posterior
            )
    else:
        yield lambda at: None
