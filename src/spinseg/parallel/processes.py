"""Tasks in processes of their own: one that is killed takes a single task along, and Ctrl-C loses nothing finished."""

import multiprocessing
import os
import pickle
import signal
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import connection, resource_tracker
from multiprocessing.reduction import ForkingPickler
from typing import Any, NamedTuple

from spinseg._errors import FailedTask, Unfinished, expected, line_of

# Variables that the numerical libraries read when they are loaded.
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

STOP = b"stop"  # no pickle begins so

Heed = Callable[..., None]
Work = Callable[[Any, Heed], Any]


class Lost(NamedTuple):
    """What is left of a task that raised an exception, or whose process ended over it.

    Attributes
    ----------
    seconds : float
    why : str
        One line.
    traceback : str
        Of a bug; empty where the input or the machine is to blame.
    """

    seconds: float
    why: str
    traceback: str = ""

    @classmethod
    def to(cls, error: BaseException, seconds: float) -> "Lost":
        """A task that raised this exception."""
        told = "" if expected(error) else "".join(traceback.format_exception(error))
        return cls(seconds, line_of(error), told)

    def error(self, where: str, kept: str = "") -> Exception:
        """An exception to raise for it, whose line says where it happened and what is kept."""
        line = f"{where}: {self.why}{kept}"
        return FailedTask(line, self.traceback) if self.traceback else Unfinished(line)


def in_processes(work: Work, tasks: Sequence[Any], jobs: int) -> Iterator[tuple[int, Any]]:
    """The place of each task and what `work` made of it, or Lost, as they come; `jobs` processes of one thread each.

    An exception of a task is that task's: the others go on. `work` is called in another process with a task and a
    function to call now and then, which raises KeyboardInterrupt where the task should be cut short. On Ctrl-C no
    further task begins; what those under way return comes, too, and then KeyboardInterrupt is raised. No task waits in
    a process.
    """
    waiting, ctrl_c = deque(enumerate(tasks)), list[int]()
    packed_work = packed(work)
    idle: list[_Worker] = []
    busy: dict[Any, _Worker] = {}  # by their pipes
    with noting(ctrl_c):
        try:
            while busy or (waiting and not ctrl_c):
                while waiting and len(busy) < jobs and not ctrl_c:
                    idle = [worker for worker in idle if worker.process.is_alive()]
                    worker = idle.pop() if idle else _Worker(packed_work)
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

    def __init__(self, work: bytes) -> None:
        context = multiprocessing.get_context("spawn")  # threads do not survive a fork
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, work))
        with _ctrl_c_held(), _one_thread():
            self.process.start()
        theirs.close()  # so that the pipe ends with the process

    def begin(self, index: int, task: Any) -> None:
        """Hand over a task, to be asked for by `result`."""
        self.index, self.began, self.stopped = index, time.perf_counter(), False
        content = packed(task)
        with suppress(OSError):  # it was killed: `result` finds out
            self.pipe.send_bytes(content)

    def stop(self) -> None:
        """Cut the task short, and the process after it."""
        if not self.stopped:
            self.stopped = True
            with suppress(OSError):
                self.pipe.send_bytes(STOP)

    def result(self) -> Any:
        """What became of the task."""
        try:
            content = self.pipe.recv_bytes()
        except (EOFError, OSError):
            self.process.join()
            why = f"its process ended with exit code {self.process.exitcode}; perhaps the memory was not enough"
            return Lost(time.perf_counter() - self.began, why)
        try:
            return pickle.loads(content)
        except Exception as error:  # of what the task returned, on its way
            return Lost.to(error, time.perf_counter() - self.began)


def packed(value: Any) -> bytes:
    """A value as bytes that another process can unpickle."""
    try:
        return bytes(ForkingPickler.dumps(value))
    except Exception as error:  # a lambda, say: functions go by their names
        try:
            from cloudpickle import dumps
        except ImportError:
            raise error from None
        return dumps(value)


def _serve(pipe: Any, packed_work: bytes) -> None:
    """Do tasks that come through a pipe, until it ends or STOP comes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal sends Ctrl-C to all; what it means comes by the pipe
    work: Work | None = None

    def heed(*_: Any) -> None:
        if pipe.poll():
            raise KeyboardInterrupt

    with suppress(EOFError, OSError):  # the other end is gone; what the task raises comes from within
        for content in iter(pipe.recv_bytes, STOP):
            began = time.perf_counter()
            try:
                work = work or pickle.loads(packed_work)
                answer = packed(work(pickle.loads(content), heed))
            except KeyboardInterrupt:
                answer = packed(Lost(time.perf_counter() - began, "it was interrupted before there was a result"))
            except Exception as error:
                answer = packed(Lost.to(error, time.perf_counter() - began))
            pipe.send_bytes(answer)


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
