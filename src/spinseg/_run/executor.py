"""The one way to run tasks: in this process, in processes of one thread each, or on a Dask cluster.

Processes are run by hand because `concurrent.futures` and `loky` give up all tasks where one process is killed, queue
tasks ahead of the processes, and cannot ask a running task to stop and return what it has.
"""

import logging
import multiprocessing
import os
import pickle
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import connection, resource_tracker
from multiprocessing.reduction import ForkingPickler
from typing import Any

from spinseg._errors import InvalidInput, TaskFailure, needing
from spinseg._run import THREAD_VARIABLES
from spinseg._run.atomic import print_line, print_warning
from spinseg._validation import check_int, invalid

STARTING = "spinseg worker that starts"  # name of a process that still imports the script that started it
UNGUARDED = (
    "no process could start: each one imports the script that was run. Put the calls of the script under "
    "`if __name__ == '__main__':`, or use jobs=1, which needs no processes."
)
STOP = b"stop"  # no pickle begins with these bytes
STARTED = b"started"  # the first message of a process
POLL_SECONDS = 0.1  # between two checks for Ctrl-C
TASKS_PER_THREAD = 3  # submitted to a cluster at a time, so that none of its threads waits
RETRIES = 2  # of a task that raised an exception, perhaps on another worker
CONNECT_SECONDS = 20  # to find the scheduler
DASK_POLL_SECONDS = 0.02  # between two checks for results
WORKER_CHECK_SECONDS = 2.0  # between two checks for workers, while no result comes
MAX_SECONDS_WITHOUT_WORKERS = 300.0  # after which all tasks fail

CheckInterrupt = Callable[..., None]
Work = Callable[[Any, CheckInterrupt], Any]


def never_interrupted(*_: Any) -> None:
    """A `check_interrupt` for tasks that are never interrupted."""


def n_processors() -> int:
    """The number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def check_jobs(jobs: int | None, dask: str | None) -> int:
    """The number of processes, by default one for each processor; `jobs` and the address `dask` exclude each other.

    In a process that still imports the script that started it, this ends the process: see UNGUARDED.
    """
    _end_if_starting()
    if jobs is not None and dask is not None:
        invalid("jobs", "not be combined with dask", jobs)
    return check_int("jobs", n_processors() if jobs is None else jobs, at_least=1)


def run_tasks(
    work: Work,
    tasks: Sequence[Any],
    *,
    jobs: int,
    dask: str | None = None,
    in_process: bool = False,
    started: Callable[[int], object] = lambda index: None,
) -> Iterator[tuple[int, Any]]:
    """Yield the index of each task and what `work` returned for it, or a TaskFailure, as tasks finish.

    It is called as work(task, check_interrupt). A long task calls `check_interrupt` now and then, with any arguments:
    it raises KeyboardInterrupt where the task should return what it has. `dask` is the address of a scheduler to use
    instead of processes. Tasks `in_process` run one after the other, and Ctrl-C raises KeyboardInterrupt in the task
    itself. `started` is called with the index of each task that starts, unless a scheduler does it.
    """
    if in_process:
        return _run_here(work, tasks, started)
    if dask is not None and tasks:
        return run_on_dask(work, tasks, dask)
    return run_in_processes(work, tasks, jobs, started)


def _run_here(work: Work, tasks: Sequence[Any], started: Callable[[int], object]) -> Iterator[tuple[int, Any]]:
    for index, task in enumerate(tasks):
        started(index)
        start = time.perf_counter()
        try:
            result = work(task, never_interrupted)
        except Exception as error:
            result = TaskFailure.from_exception(error, time.perf_counter() - start)
        yield index, result


def run_in_processes(
    work: Work, tasks: Sequence[Any], jobs: int, started: Callable[[int], object] = lambda index: None
) -> Iterator[tuple[int, Any]]:
    """Yield the index of each task and its result or TaskFailure, as `run_tasks` does, from `jobs` processes.

    A process that is killed costs the one task that it was running. If processes cannot start, because the script that
    was run has no main guard, InvalidInput is raised. After Ctrl-C no further task starts, the running
    ones are asked to stop, their results are still yielded, and then KeyboardInterrupt is raised.
    """
    _end_if_starting()
    waiting, interrupts = deque(enumerate(tasks)), list[int]()
    have_started, is_stopping = False, False
    pickled_work = _pickled(work)
    idle: list[_Worker] = []
    busy: dict[Any, _Worker] = {}  # by their pipes
    with deferred_sigint(interrupts):
        try:
            while busy or (waiting and not interrupts):
                while waiting and len(busy) < jobs and not interrupts:
                    idle = [worker for worker in idle if worker.process.is_alive()]
                    worker = idle.pop() if idle else _Worker(pickled_work)
                    busy[worker.pipe] = worker
                    started(waiting[0][0])
                    worker.start(*waiting.popleft())
                for pipe in connection.wait(list(busy), timeout=POLL_SECONDS):
                    if busy[pipe].has_just_started():
                        have_started = True
                        continue
                    worker = busy.pop(pipe)
                    idle.append(worker)
                    yield worker.index, worker.result(have_started)
                for worker in busy.values() if interrupts else ():
                    worker.stop()
                if interrupts and busy and not is_stopping:
                    is_stopping = True
                    print_line("Stopping as soon as what has begun is saved.")
            if interrupts:
                raise KeyboardInterrupt
        finally:
            for worker in (*idle, *busy.values()):
                worker.pipe.close()
            for worker in (*idle, *busy.values()):
                worker.process.join()


class _Worker:
    """A process that runs one task at a time, and the pipe to it. A message during a task means stop."""

    def __init__(self, work: bytes) -> None:
        context = multiprocessing.get_context("spawn")  # threads do not survive a fork
        self.pipe, child_end = context.Pipe()
        self.started = False
        self.process = context.Process(target=_serve, args=(child_end,), name=STARTING)
        with _sigint_blocked(), _single_threaded():
            self.process.start()
        child_end.close()  # so that the pipe ends with the process
        with suppress(OSError):  # the process ended: `result` finds out
            self.pipe.send_bytes(work)  # as an argument of a process that ends, it would block the start forever

    def start(self, index: int, task: Any) -> None:
        """Send a task to the process."""
        self.index, self.start_time, self.stopped = index, time.perf_counter(), False
        content = _pickled(task)
        with suppress(OSError):  # the process was killed: `result` finds out
            self.pipe.send_bytes(content)

    def stop(self) -> None:
        """Ask the task, and then the process, to end."""
        if not self.stopped:
            self.stopped = True
            with suppress(OSError):
                self.pipe.send_bytes(STOP)

    def has_just_started(self) -> bool:
        """Whether the process sent its first message, rather than a result, and has not ended."""
        if self.started:
            return False
        with suppress(EOFError, OSError):
            self.started = self.pipe.recv_bytes() == STARTED
        return self.started

    def result(self, have_started: bool) -> Any:
        """The result of the task, or a TaskFailure. InvalidInput is raised where no process has started so far."""
        try:
            content = self.pipe.recv_bytes()
        except (EOFError, OSError):
            self.process.join()
            code = self.process.exitcode or 0
            if code == 1 and not have_started:  # that of Python where a script fails
                raise InvalidInput(UNGUARDED) from None
            failure = f"its process ended with exit code {code}; perhaps the memory was not enough"
            return TaskFailure(time.perf_counter() - self.start_time, failure)
        try:
            return pickle.loads(content)
        except Exception as error:  # what the task returned cannot be unpickled here
            return TaskFailure.from_exception(error, time.perf_counter() - self.start_time)


def _pickled(value: Any) -> bytes:
    """A value as bytes that another process can unpickle."""
    try:
        return bytes(ForkingPickler.dumps(value))
    except Exception as error:  # such as that of a lambda: pickle stores functions by their names
        try:
            from cloudpickle import dumps
        except ImportError:
            raise error from None
        return dumps(value)


def _end_if_starting() -> None:
    """End a process that would start others, or do the work of the one that started it, instead of its own."""
    if multiprocessing.current_process().name == STARTING:
        os._exit(1)  # not by an exception: its traceback would be one more for each process


def _serve(pipe: Any) -> None:
    """Run the tasks that come through a pipe, after the work to do with each, until it is closed or STOP comes."""
    multiprocessing.current_process().name = "spinseg worker"
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends Ctrl-C to all processes; STOP comes by the pipe
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)  # it tells of reads that zarr leaves after a damaged chunk
    work: Work | None = None

    def check_interrupt(*_: Any) -> None:
        if pipe.poll():
            raise KeyboardInterrupt

    with suppress(EOFError, OSError):  # the other end is gone; exceptions of the task are caught within
        pipe.send_bytes(STARTED)
        pickled_work = pipe.recv_bytes()
        for content in iter(pipe.recv_bytes, STOP):
            start = time.perf_counter()
            try:
                work = work or pickle.loads(pickled_work)
                answer = _pickled(work(pickle.loads(content), check_interrupt))
            except KeyboardInterrupt:
                why = "it was interrupted before there was a result"
                answer = _pickled(TaskFailure(time.perf_counter() - start, why))
            except (Exception, SystemExit) as error:
                answer = _pickled(TaskFailure.from_exception(error, time.perf_counter() - start))
            pipe.send_bytes(answer)


@contextmanager
def deferred_sigint(interrupts: list[int]) -> Iterator[None]:
    """Let Ctrl-C append to a list instead of raising KeyboardInterrupt.

    Nothing changes outside the main thread, or where somebody else's handler is installed.
    """
    own = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not own or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, lambda number, frame: interrupts.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def _sigint_blocked() -> Iterator[None]:
    """Block SIGINT until the end. Processes that start meanwhile inherit the block, which protects them for good."""
    if not hasattr(signal, "pthread_sigmask"):  # on Windows
        yield
        return
    resource_tracker.ensure_running()  # it would start with the first process, and unblock SIGINT
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _single_threaded() -> Iterator[None]:
    """Let the numerical libraries use one thread in processes that start meanwhile."""
    before = {name: os.environ.get(name) for name in THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.__setitem__(name, value)


def run_on_dask(work: Work, tasks: Sequence[Any], address: str) -> Iterator[tuple[int, Any]]:
    """Yield the index of each task and its result or TaskFailure, as `run_tasks` does, from a scheduler's workers.

    On Ctrl-C running tasks are abandoned. Where the scheduler is lost, or has no workers for too long, the rest fail.
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
    with needing("--dask needs Dask: pip install 'spinseg[distributed]'"):
        from distributed import Client
        from distributed.comm import get_address_host_port
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
        time.sleep(DASK_POLL_SECONDS)
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
