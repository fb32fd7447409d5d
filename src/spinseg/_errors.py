"""The exceptions of the package, and which errors are bugs: those get a traceback, all others one line."""

import errno
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from traceback import format_exception
from typing import Any, Final, NamedTuple

LOG = logging.getLogger("spinseg")  # tracebacks of bugs go here, at the level DEBUG

BUG: Final = "this is a bug in spinseg; please report it"

# What the system answers to a mistake in a program, such as the use of a closed file. All other numbers are of errors
# that the machine may raise in any program.
BUG_ERRNOS = {errno.EBADF, errno.EINVAL, errno.EFAULT, errno.ESPIPE, errno.ENOTTY, errno.ENOTSOCK, errno.ECHILD}
MACHINE_ERRORS = (
    FileNotFoundError,
    FileExistsError,
    NotADirectoryError,
    IsADirectoryError,
    PermissionError,
    ConnectionError,
    TimeoutError,
)


class InvalidInput(ValueError):
    """The caller passed something that cannot be used: one line with the name, the rule and the value given.

    Attributes
    ----------
    name, rule : str
        The argument that it is about, with which the line begins, and the rule that it breaks; else empty. A rule may
        have fields, such as "{count}".
    about : dict
        The values of these fields, and what else a reader may want to know, by name.

    Examples
    --------
    >>> import spinseg as ss
    >>> try:
    ...     ss.DirichletProcess(-1)
    ... except ss.InvalidInput as error:
    ...     print(error)
    concentration must be a finite number above 0: got -1
    """

    def __init__(self, line: str, name: str = "", rule: str = "", **about: Any) -> None:
        super().__init__(line)
        self.name, self.rule, self.about = name, rule, about


class MissingExtra(ImportError):
    """An optional dependency is not installed: one line that says what needs it and how to install it.

    Examples
    --------
    >>> import spinseg as ss
    >>> try:
    ...     raise ss.MissingExtra("pip install 'spinseg[plot]'")
    ... except ImportError as error:
    ...     print(error)
    pip install 'spinseg[plot]'
    """


@contextmanager
def needing(line: str) -> Iterator[None]:
    """Raise MissingExtra with this line where an import fails."""
    try:
        yield
    except ImportError:
        raise MissingExtra(line) from None


class TaskError(OSError):
    """A task failed because of its input or the machine: one line, which names the task."""


class TaskBug(RuntimeError):
    """A task failed because of a bug: one line, and as a note the traceback from the process that ran the task."""

    def __init__(self, line: str, traceback: str = "") -> None:
        super().__init__(line)
        if traceback:
            self.add_note(traceback)


class TaskFailure(NamedTuple):
    """The record of a task that raised an exception, or whose process ended before it had a result."""

    seconds: float
    why: str  # one line
    traceback: str = ""  # that of a bug; empty where the input or the machine is to blame
    name: str = ""  # the argument that an InvalidInput is about

    @classmethod
    def from_exception(cls, error: BaseException, seconds: float = 0.0) -> "TaskFailure":
        """The record of a task that raised this exception."""
        traceback = "" if is_expected(error) else "".join(format_exception(error))
        return cls(seconds, error_line(error), traceback, error.name if isinstance(error, InvalidInput) else "")

    def to_exception(self, task: str, suffix: str = "") -> Exception:
        """An exception to raise for it, whose line begins with the name of the task."""
        line = f"{task}: {self.why}{suffix}"
        return TaskBug(line, self.traceback) if self.traceback else TaskError(line)


def reason(error: OSError) -> str:
    """Why the machine refused, for the end of a line: "no such file or directory"."""
    return error.strerror.lower() if error.strerror else str(error)


def is_expected(error: BaseException) -> bool:
    """Whether an error comes from the input or the machine, so that its line is enough; any other is a bug.

    An OSError without a number that was raised from another OSError, to name the file, is judged by the other one.
    """
    if isinstance(error, OSError):
        number, origin = error.errno, error.__context__
        while number is None and isinstance(origin, OSError):
            number, origin = origin.errno, origin.__context__
        return isinstance(error, (TaskError, *MACHINE_ERRORS)) or number not in {None, *BUG_ERRNOS}
    return isinstance(error, (InvalidInput, MissingExtra, MemoryError))


def error_line(error: BaseException) -> str:
    """The message of an error in one line; that of a bug begins with BUG and the type of the error."""
    text = re.sub(r"^\[Errno \d+\] ", "", str(error)) or type(error).__name__
    if not is_expected(error) and not isinstance(error, TaskBug):
        text = f"{BUG}: {type(error).__name__}: {error}"
    return " ".join(text.split())
