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

    As `in_processes`, but that tasks under way are not cut short: on Ctrl-C they are given up. Where the scheduler
    itself is lost, so are all tasks that have not come by then.
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
            future = next(coming)
            found = future.result() if future.status == "finished" else Lost(0.0, _reason(future))
            yield places.pop(future), found
    except OSError as error:
        for index in (*places.values(), *(index for index, _ in waiting)):
            yield index, Lost(0.0, f"the scheduler was lost: {error}")
    finally:
        client.close()  # which gives up what nobody waits for


def _client(address: str) -> Any:
    """A connection to the scheduler."""
    try:
        from distributed import Client
        from distributed.comm import get_address_host_port
    except ImportError:
        raise ImportError("--dask needs Dask: pip install 'spinseg[distributed]'") from None
    try:
        if not address.startswith("inproc:"):  # of a cluster in this process, which has no host
            get_address_host_port(address)  # a client of what is no address would hang when it goes
        return Client(address, timeout=SECONDS, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:  # nobody there; not an address
        refuse("dask", "be the address of a scheduler, as tcp://host:8786", f"{address}: {error or 'no answer'}")


def _reason(future: Any) -> str:
    """Why a task failed, in one line."""
    error = future.exception() if future.status == "error" else None
    return f"the cluster gave it up: {error or future.status}"


def _heedless(*_: Any) -> None:
    """Nothing cuts a task short there."""
