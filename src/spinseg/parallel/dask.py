"""Tasks on a Dask cluster: a worker that is lost takes nothing along, since what it did is done again elsewhere."""

import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from typing import Any

from spinseg._errors import MissingExtra, expected, line_of
from spinseg._validation import invalid
from spinseg.parallel.processes import Lost, Work

AHEAD = 3  # tasks for each thread of the cluster that are handed over before they are needed
RETRIES = 2  # of a task that fails for a reason of its own, on another worker perhaps
SECONDS = 20  # to find the scheduler
LOOK_SECONDS = 2.0  # between two looks whether there are workers, while nothing comes
NO_WORKERS_SECONDS = 300.0  # without a single worker, after which all is given up


def on_cluster(work: Work, tasks: Sequence[Any], address: str) -> Iterator[tuple[int, Any]]:
    """The place of each task and what `work` made of it, or Lost, as they come from the cluster at an address.

    As `in_processes`, but that tasks under way are not cut short: on Ctrl-C they are given up. Where the scheduler
    itself is lost, or has no workers for NO_WORKERS_SECONDS, so are all tasks that have not come by then.
    """
    client = _client(address)
    places: dict[Any, int] = {}
    waiting = iter(enumerate(tasks))
    try:
        from distributed import as_completed

        coming = as_completed(loop=client.loop)
        while True:
            n_threads = max(1, sum(client.nthreads().values()))  # workers come and go
            while len(places) < AHEAD * n_threads and (following := next(waiting, None)) is not None:
                index, task = following
                future = client.submit(work, task, _heedless, pure=False, retries=RETRIES)
                places[future] = index
                coming.add(future)
            if not places:
                return
            future = _next(client, coming, address)
            found = future.result() if future.status == "finished" else _lost(future)
            yield places.pop(future), found
    except (OSError, _NoWorkers) as error:
        why = str(error) if isinstance(error, _NoWorkers) else f"the scheduler was lost: {error}"
        for index in (*places.values(), *(index for index, _ in waiting)):
            yield index, Lost(0.0, why)
    finally:
        client.close()  # which gives up what nobody waits for


def _client(address: str) -> Any:
    """A connection to the scheduler."""
    try:
        from distributed import Client
        from distributed.comm import get_address_host_port
    except ImportError:
        raise MissingExtra("--dask needs Dask: pip install 'spinseg[distributed]'") from None
    try:
        if not address.startswith("inproc:"):  # of a cluster in this process, which has no host
            get_address_host_port(address)  # a client of what is no address would hang when it goes
        return Client(address, timeout=SECONDS, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:  # nobody there; not an address
        invalid("dask", "be the address of a scheduler, as tcp://host:8786", f"{address}: {error or 'no answer'}")


class _NoWorkers(Exception):
    """A scheduler had no workers for too long."""


def _next(client: Any, coming: Any, address: str) -> Any:
    """The next future to end; where the scheduler has no workers, that is told once, and given up after a while."""
    seen = looked = time.monotonic()
    told = False
    while not coming.has_ready():
        time.sleep(0.02)
        if time.monotonic() - looked < LOOK_SECONDS:
            continue
        there, looked = _has_workers(client), time.monotonic()
        if there:
            seen, told = looked, False
        elif looked - seen >= NO_WORKERS_SECONDS:
            raise _NoWorkers(f"the Dask scheduler at {address} had no workers for {NO_WORKERS_SECONDS:g} seconds")
        elif not told:
            told = True
            line = f"the Dask scheduler at {address} has no workers; waiting up to {NO_WORKERS_SECONDS:g} seconds"
            print(f"spinseg: {line}", file=sys.stderr, flush=True)
    return next(coming)


def _has_workers(client: Any) -> bool:
    """Whether there is a worker, or none can be asked for: that the scheduler is lost shows in the futures."""
    try:
        return bool(client.nthreads())
    except OSError:
        return True


def _lost(future: Any) -> Lost:
    """What is left of a task that did not finish: a bug where it raised an exception of its own."""
    error = future.exception() if future.status == "error" else None
    of_cluster = isinstance(error, ImportError) or type(error).__module__.startswith("distributed")
    if error is None or of_cluster:  # a worker that died over it, or lacks a package
        return Lost(0.0, " ".join(f"the cluster gave it up: {error or future.status}".split()))
    told = "" if expected(error) else "".join(traceback.format_exception(type(error), error, future.traceback()))
    return Lost(0.0, line_of(error), told)


def _heedless(*_: Any) -> None:
    """Nothing cuts a task short there."""
