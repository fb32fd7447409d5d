"""Which errors are of the input or the machine, and get one line, and which are bugs, and are shown as such."""

import errno
import logging
from typing import Final

LOG = logging.getLogger("spinseg")  # tracebacks of bugs go here, at the level DEBUG

BUG: Final = "this is a bug in spinseg, please report it"

# What a machine may do to any program; other numbers, as that of a file used after it is closed, are bugs.
OF_MACHINE = {
    getattr(errno, name)
    for name in (
        *("ENOENT", "ENOTDIR", "EISDIR", "EEXIST", "ENOTEMPTY", "ENAMETOOLONG", "ELOOP", "ENXIO", "ENODEV"),
        *("EACCES", "EPERM", "EROFS", "EBUSY", "ETXTBSY", "ENOSPC", "EDQUOT", "EFBIG", "EIO", "ESTALE", "EREMOTEIO"),
        *("EMFILE", "ENFILE", "ENOMEM", "EAGAIN", "ETIMEDOUT", "EPIPE", "ECONNREFUSED", "ECONNRESET", "ECONNABORTED"),
        *("EHOSTUNREACH", "ENETUNREACH", "EADDRINUSE", "EADDRNOTAVAIL"),
    )
    if hasattr(errno, name)
}
NAMED = (
    FileNotFoundError,
    FileExistsError,
    NotADirectoryError,
    IsADirectoryError,
    PermissionError,
    ConnectionError,
    TimeoutError,
)


class InvalidInput(ValueError):
    """What a caller passed cannot be used: one line with the name, the rule and the value received."""


class MissingExtra(ImportError):
    """An optional dependency is not installed: one line that says what needs it and how to get it."""


class Unfinished(OSError):
    """Work that was given up for a reason of the input or the machine: one line, which says where."""


class FailedTask(RuntimeError):
    """A bug that showed in another process: its line, and as a note its traceback there."""

    def __init__(self, line: str, traceback: str) -> None:
        super().__init__(line)
        self.add_note(traceback)


def expected(error: BaseException) -> bool:
    """Whether an error is of the input or the machine, so that its own line says all; any other is a bug.

    An OSError without a number that was made of another one, to name the file, is judged by that.

    Examples
    --------
    >>> expected(InvalidInput("beta must be finite; received nan")), expected(ValueError("math domain error"))
    (True, False)
    """
    if isinstance(error, OSError):
        number, origin = error.errno, error.__context__
        while number is None and isinstance(origin, OSError):
            number, origin = origin.errno, origin.__context__
        return isinstance(error, (Unfinished, *NAMED)) or number in OF_MACHINE
    return isinstance(error, (InvalidInput, MissingExtra, MemoryError))


def line_of(error: BaseException) -> str:
    """The one line that an error gets: its own where it is expected, else one that tells of a bug."""
    own = str(error) or type(error).__name__
    if not expected(error) and not isinstance(error, FailedTask):
        own = f"{BUG}: {type(error).__name__}: {error}"
    return " ".join(own.split())
