"""Progress of a comparison, on standard error."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from spinseg.evaluation.benchmark import Report
from spinseg.evaluation.results import Row
from spinseg.inference.progress import QUIET_SECONDS


@contextmanager
def reporting_rows(shown: bool) -> Iterator[Report | None]:
    """A function to call after each row, which says how far it is, and of every failure why; None if not shown."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    if not shown:
        yield None
    elif console.is_interactive:
        with Progress(console=console, transient=True) as bar:
            task = bar.add_task("comparing", total=None)

            def report(n_done: int, total: int, row: Row) -> None:
                bar.update(task, completed=n_done, total=total, description=f"{row.image} {row.method}")
                _tell_failure(row)

            yield report
    else:
        yield _Lines()


class _Lines:
    """A line now and then."""

    def __init__(self) -> None:
        self._due = time.monotonic()

    def __call__(self, n_done: int, total: int, row: Row) -> None:
        _tell_failure(row)
        if time.monotonic() >= self._due or n_done == total:
            print(f"{n_done}/{total} {row.image} {row.method}", file=sys.stderr, flush=True)
            self._due = time.monotonic() + QUIET_SECONDS


def _tell_failure(row: Row) -> None:
    if row.error:
        print(f"spinseg: {row.image}, {row.method}: {row.error}", file=sys.stderr, flush=True)
