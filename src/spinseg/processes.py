"""Tasks in processes of their own: one that is killed takes a single task along, and Ctrl-C loses nothing finished."""

import multiprocessing
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import connection, resource_tracker
from typing import Any, NamedTuple

# Variables that the numerical libraries read when they are loaded.
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

Heed = Callable[..., None]
Work = Callable[[Any, Heed], Any]


class Lost(NamedTuple):
    """What is left of a task whose process ended over it."""

    seconds: float
    why: str


def in_processes(work: Work, tasks: Sequence[Any], jobs: int) -> Iterator[tuple[int, Any]]:
    """The place of each task and what `work` made of it, or Lost, as they come; `jobs` processes of one thread each.

    `work` is called in another process with a task and a function to call now and then, which raises KeyboardInterrupt
    where the task should be cut short. On Ctrl-C no further task begins; what those under way return comes, too, and
    then KeyboardInterrupt is raised. No task waits in a process.
    """
    waiting, ctrl_c = deque(enumerate(tasks)), list[int]()
    idle: list[_Worker] = []
    busy: dict[Any, _Worker] = {}  # by their pipes
    with noting(ctrl_c):
        try:
            while busy or (waiting and not ctrl_c):
                while waiting and len(busy) < jobs and not ctrl_c:
                    idle = [worker for worker in idle if worker.process.is_alive()]
                    worker = idle.pop() if idle else _Worker(work)
                    busy[worker.pipe] = worker
                    worker.begin(*waiting.popleft())
                for pipe in connection.wait(list(busy), timeout=0.1):  # seconds, to look whether Ctrl-C came
                    worker = busy.pop(pipe)
                    idle.append(worker)
                    yield worker.index, worker.result()
                for worker in busy.values() if ctrl_c else ():
                    worker.stop()
            if ctrl_c:
                raise KeyboardInterrupt
        finally:
            for worker in (*idle, *busy.values()):
                worker.pipe.close()
            for worker in (*idle, *busy.values()):
                worker.process.join()


class _Worker:
    """A process that does one task at a time, and the pipe to it: a message while it is at work means stop."""

    def __init__(self, work: Work) -> None:
        context = multiprocessing.get_context("spawn")  # threads do not survive a fork
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, work))
        with _ctrl_c_held(), _one_thread():
            self.process.start()
        theirs.close()  # so that the pipe ends with the process

    def begin(self, index: int, task: Any) -> None:
        """Hand over a task, to be asked for by `result`."""
        self.index, self.began, self.stopped = index, time.perf_counter(), False
        with suppress(OSError):  # it was killed: `result` finds out
            self.pipe.send(task)

    def stop(self) -> None:
        """Cut the task short, and the process after it."""
        if not self.stopped:
            self.stopped = True
            with suppress(OSError):
                self.pipe.send(None)

    def result(self) -> Any:
        """What became of the task."""
        try:
            return self.pipe.recv()
        except (EOFError, OSError):
            self.process.join()
            why = f"its process ended with exit code {self.process.exitcode}; perhaps the memory was not enough"
            return Lost(time.perf_counter() - self.began, why)


def _serve(pipe: Any, work: Work) -> None:
    """Do tasks that come through a pipe, until it ends or None comes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal sends Ctrl-C to all; what it means comes by the pipe

    def heed(*_: Any) -> None:
        if pipe.poll():
            raise KeyboardInterrupt

    with suppress(EOFError, OSError):  # the other end is gone
        for task in iter(pipe.recv, None):
            pipe.send(work(task, heed))


@contextmanager
def noting(ctrl_c: list[int]) -> Iterator[None]:
    """Add to the list where Ctrl-C comes, which then breaks nothing off; only Python's own handler is replaced."""
    own = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not own or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, lambda number, frame: ctrl_c.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def _ctrl_c_held() -> Iterator[None]:
    """Hold Ctrl-C back to the end, and for ever in processes that start meanwhile, before they can ignore it."""
    if not hasattr(signal, "pthread_sigmask"):  # on Windows
        yield
        return
    resource_tracker.ensure_running()  # which starts with the first process, and lets Ctrl-C through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Let processes that start meanwhile compute with one thread each."""
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.__setitem__(name, value)
