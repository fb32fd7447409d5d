"""Run tasks on a Dask cluster, which runs the tasks of a lost worker again on another one."""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from spinseg._errors import MissingExtra, TaskFailure
from spinseg._run.atomic import print_warning
from spinseg._validation import invalid

TASKS_PER_THREAD = 3  # submitted at a time, so that no thread of the cluster waits
RETRIES = 2  # of a task that raised an exception, perhaps on another worker
CONNECT_SECONDS = 20  # to find the scheduler
POLL_SECONDS = 0.02  # between two checks for results
WORKER_CHECK_SECONDS = 2.0  # between two checks for workers, while no result comes
MAX_SECONDS_WITHOUT_WORKERS = 300.0  # after which all tasks fail

CheckInterrupt = Callable[..., None]
Work = Callable[[Any, CheckInterrupt], Any]


def never_interrupted(*_: Any) -> None:
    """A `check_interrupt` for tasks that are never interrupted."""


def run_on_dask(work: Work, tasks: Sequence[Any], address: str) -> Iterator[tuple[int, Any]]:
    """Yield the index of each task and its result or TaskFailure, as `run_tasks` does, from a scheduler's workers.

    Running tasks are not interrupted: on Ctrl-C they are abandoned. Where the scheduler itself is lost, or has no
    workers for MAX_SECONDS_WITHOUT_WORKERS, all tasks without a result fail.
    """
    client = _client(address)
    indices: dict[Any, int] = {}  # by future
    waiting = iter(enumerate(tasks))
    try:
        from distributed import as_completed

        finished = as_completed(loop=client.loop)
        while True:
            n_threads = max(1, sum(client.nthreads().values()))  # workers come and go
            while len(indices) < TASKS_PER_THREAD * n_threads and (following := next(waiting, None)) is not None:
                index, task = following
                future = client.submit(work, task, never_interrupted, pure=False, retries=RETRIES)
                indices[future] = index
                finished.add(future)
            if not indices:
                return
            future = _next_finished(client, finished, address)
            yield indices.pop(future), future.result() if future.status == "finished" else _failure(future)
    except (OSError, _NoWorkers) as error:
        why = str(error) if isinstance(error, _NoWorkers) else f"the scheduler was lost: {error}"
        for index in (*indices.values(), *(index for index, _ in waiting)):
            yield index, TaskFailure(0.0, why)
    finally:
        client.close()  # which cancels the tasks that nobody waits for


def _client(address: str) -> Any:
    """A connection to the scheduler."""
    try:
        from distributed import Client
        from distributed.comm import get_address_host_port
    except ImportError:
        raise MissingExtra("--dask needs Dask: pip install 'spinseg[distributed]'") from None
    try:
        if not address.startswith("inproc:"):  # the address of a cluster in this process has no host
            get_address_host_port(address)  # a client of an invalid address would hang when it is closed
        return Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:  # there is no scheduler, or it is no address
        invalid("dask", "be the address of a scheduler, as tcp://host:8786", f"{address}: {error or 'no answer'}")


class _NoWorkers(Exception):
    """The scheduler had no workers for too long."""


def _next_finished(client: Any, finished: Any, address: str) -> Any:
    """The next future that finishes; a warning is printed once where the scheduler has no workers."""
    last_seen = last_check = time.monotonic()
    warned = False
    while not finished.has_ready():
        time.sleep(POLL_SECONDS)
        if time.monotonic() - last_check < WORKER_CHECK_SECONDS:
            continue
        any_workers, last_check = _has_workers(client), time.monotonic()
        limit = MAX_SECONDS_WITHOUT_WORKERS
        if any_workers:
            last_seen, warned = last_check, False
        elif last_check - last_seen >= limit:
            raise _NoWorkers(f"the Dask scheduler at {address} had no workers for {limit:g} seconds")
        elif not warned:
            warned = True
            print_warning(f"the Dask scheduler at {address} has no workers; waiting up to {limit:g} seconds")
    return next(finished)


def _has_workers(client: Any) -> bool:
    """Whether there are workers; True where the scheduler is lost, since the futures will tell."""
    try:
        return bool(client.nthreads())
    except OSError:
        return True


def _failure(future: Any) -> TaskFailure:
    """The failure of a task, which is a bug where the task itself raised an unexpected exception."""
    error = future.exception() if future.status == "error" else None
    by_cluster = isinstance(error, ImportError) or type(error).__module__.startswith("distributed")
    if error is None or by_cluster:  # workers died over it, or lack a package
        return TaskFailure(0.0, " ".join(f"the cluster gave it up: {error or future.status}".split()))
    return TaskFailure.from_exception(error.with_traceback(future.traceback()))
