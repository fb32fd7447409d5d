"""The one way to run tasks: in this process, in processes of their own, or on a Dask cluster."""

import os
import time
from collections.abc import Iterator, Sequence
from typing import Any

from spinseg._errors import TaskFailure
from spinseg._run.dask import run_on_dask
from spinseg._run.processes import CheckInterrupt as CheckInterrupt
from spinseg._run.processes import Work, ignore, run_in_processes
from spinseg._validation import check_int, invalid


def check_jobs(jobs: int | None, dask: str | None, default: int | None = None) -> int:
    """The number of processes to use: `jobs`, else `default`, else one for each processor.

    `jobs` and `dask`, the address of a Dask scheduler, exclude each other.
    """
    if jobs is not None and dask is not None:
        invalid("jobs", "be left out where dask is given", jobs)
    return check_int("jobs", default or os.cpu_count() or 1 if jobs is None else jobs, at_least=1)


def run_tasks(
    work: Work, tasks: Sequence[Any], *, jobs: int, dask: str | None = None, in_process: bool = False
) -> Iterator[tuple[int, Any]]:
    """Yield the index of each task and what `work` returned for it, or a TaskFailure, as tasks finish.

    Parameters
    ----------
    work : callable
        Called as work(task, check_interrupt). A long task calls `check_interrupt` now and then, with any arguments: it
        raises KeyboardInterrupt where the task should return what it has. An exception that `work` raises becomes the
        TaskFailure of that task, and the others go on.
    jobs : int
        The number of processes, as `check_jobs` gives it.
    dask : str, optional
        Address of a Dask scheduler, to use instead of processes.
    in_process : bool
        Run the tasks one after the other in this process instead. `check_interrupt` does nothing then, since Ctrl-C
        raises KeyboardInterrupt in the task itself.
    """
    if in_process:
        return _run_here(work, tasks)
    if dask is not None and tasks:
        return run_on_dask(work, tasks, dask)
    return run_in_processes(work, tasks, jobs)


def _run_here(work: Work, tasks: Sequence[Any]) -> Iterator[tuple[int, Any]]:
    for index, task in enumerate(tasks):
        start = time.perf_counter()
        try:
            result = work(task, ignore)
        except Exception as error:
            result = TaskFailure.from_exception(error, time.perf_counter() - start)
        yield index, result
