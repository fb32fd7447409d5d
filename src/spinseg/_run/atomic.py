"""Write files that survive a kill or a power cut: completely or not at all."""

import errno
import os
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from spinseg._errors import reason
from spinseg._validation import invalid

FilePath = str | os.PathLike[str]

# From file systems that cannot flush a folder, or have no permissions. They are ignored.
_UNSUPPORTED = (errno.EINVAL, errno.ENOTSUP, errno.EBADF, errno.EPERM, errno.EACCES, errno.EISDIR)


def atomic_write(path: FilePath, write: Callable[[BinaryIO], object]) -> None:
    """Write a file through `write(file)`, so that its name refers to the old file or to the complete new one.

    The content goes to a hidden `.partial` file, which is flushed to the disk and renamed, and then the folder is
    flushed. Only a process that is killed leaves the hidden file behind. A file that is replaced keeps its permissions.
    """
    name, target = printable(path), Path(os.path.realpath(path))  # a link stays a link
    if target.exists() and not target.is_file():  # renaming over /dev/null would replace it
        invalid(name, "be a file", "a folder" if target.is_dir() else "a pipe or a device")
    # A random name, since other threads and processes may write the same file; `tempfile` would make it private.
    partial = target.with_name(f".spinseg-{os.urandom(8).hex()}.partial")
    try:
        with partial.open("xb") as file:
            write(file)
            file.flush()
            _keep_permissions(file, target)
            os.fsync(file.fileno())
        os.replace(partial, target)
        sync(target.parent)
    except OSError as error:  # its message would name the hidden file
        raise type(error)(f"cannot write {name}: {reason(error)}") from error
    finally:
        partial.unlink(missing_ok=True)


def sync_tree(folder: FilePath) -> None:
    """Flush a folder and everything in it to the disk, after another library has written it."""
    for path, _, names in os.walk(folder, topdown=False):
        for name in names:
            sync(os.path.join(path, name))
        sync(path)


def sync(path: FilePath) -> None:
    """Flush one file, or the names in one folder, to the disk, if the system can."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError as error:
        if error.errno in _UNSUPPORTED:  # Windows opens no folders, and one may be writable but not readable
            return
        raise
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
    finally:
        os.close(descriptor)


def _keep_permissions(file: BinaryIO, target: Path) -> None:
    """Give a new file the permissions of the one that it replaces."""
    with suppress(FileNotFoundError):
        mode = stat.S_IMODE(target.stat().st_mode) & 0o777
        try:
            os.chmod(file.fileno() if os.chmod in os.supports_fd else file.name, mode)
        except OSError as error:
            if error.errno not in _UNSUPPORTED:
                raise


def printable(path: FilePath) -> str:
    """A path as it can stand in a line of a message."""
    return "".join(c if c.isprintable() else "?" for c in os.fsdecode(path))


def print_line(line: str) -> None:
    """Print a line on standard error, if the process has one: `print` would take standard output instead of None."""
    if sys.stderr is not None:
        print(line, file=sys.stderr, flush=True)


def print_warning(line: str) -> None:
    """Print a line on standard error that names the program."""
    print_line(f"spinseg: {line}")
