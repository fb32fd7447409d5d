"""Tasks on a Dask cluster: a worker that is lost takes nothing along, since what it did is done again elsewhere."""

from collections.abc import Iterator, Sequence
from typing import Any

from spinseg._checks import refuse
from spinseg.processes import Lost, Work

AHEAD = 3  # tasks for each thread of the cluster that are handed over before they are needed
RETRIES = 2  # of a task that fails for a reason of its own, on another worker perhaps
SECONDS = 20  # to find the scheduler


def on_cluster(work: Work, tasks: Sequence[Any], address: str) -> Iterator[tuple[int, Any]]:
    """The place of each task and what `work` made of it, or Lost, as they come from the cluster at an address.

    As `in_processes`, but that tasks under way are not cut short: on Ctrl-C they are given up.
    """
    client = _client(address)
    try:
        from distributed import as_completed

        places: dict[Any, int] = {}
        waiting = iter(enumerate(tasks))
        coming = as_completed(loop=client.loop)
        n_threads = max(1, sum(client.nthreads().values()))
        while True:
            while len(places) < AHEAD * n_threads and (following := next(waiting, None)) is not None:
                index, task = following
                future = client.submit(work, task, _heedless, pure=False, retries=RETRIES)
                places[future] = index
                coming.add(future)
            if not places:
                return
            future = next(coming)
            index = places.pop(future)
            yield index, future.result() if future.status == "finished" else Lost(0.0, _reason(future))
    finally:
        client.close()  # which gives up what nobody waits for


def _client(address: str) -> Any:
    """A connection to the scheduler."""
    try:
        from distributed import Client
    except ImportError:
        raise ImportError("--dask needs Dask: pip install 'spinseg[distributed]'") from None
    try:
        return Client(address, timeout=SECONDS, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:  # nobody there; not an address
        refuse("dask", "be the address of a scheduler, as tcp://host:8786", f"{address}: {error or 'no answer'}")


def _reason(future: Any) -> str:
    """Why a task failed, in one line."""
    error = future.exception() if future.status == "error" else None
    return f"the cluster gave it up: {error or future.status}"


def _heedless(*_: Any) -> None:
    """Nothing cuts a task short there."""
