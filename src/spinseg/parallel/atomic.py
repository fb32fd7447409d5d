"""Files that outlast a kill and a power cut: written whole or not at all, and read with what was torn left out."""

import errno
import os
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from spinseg._validation import invalid

FilePath = str | os.PathLike[str]

# What file systems answer that cannot bring a folder to the disk, or know no permissions; there is nothing to do then.
_UNABLE = (errno.EINVAL, errno.ENOTSUP, errno.EBADF, errno.EPERM, errno.EACCES, errno.EISDIR)


def atomic_write(path: FilePath, write: Callable[[BinaryIO], object]) -> None:
    """Write a file through `write(file)`; under its name there is the old file or the whole of the new one.

    The content goes to a hidden `.partial` file beside it, which is brought to the disk before it takes the name, and
    the name after it: that holds after a power cut, too. Where `write` fails or is interrupted, the hidden file goes;
    only a process killed outright leaves it behind. A file that is replaced keeps its permissions.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     atomic_write(Path(folder, "note.txt"), lambda file: file.write(b"whole"))
    ...     Path(folder, "note.txt").read_text()
    'whole'
    """
    name, target = printable(path), Path(os.path.realpath(path))  # a link stays a link
    if target.exists() and not target.is_file():  # renaming over /dev/null would replace it
        invalid(name, "be a file", "a folder" if target.is_dir() else "a pipe or a device")
    # At random: no other thread or process has it. Not `tempfile`, whose files nobody else may read.
    partial = target.with_name(f".spinseg-{os.urandom(8).hex()}.partial")
    try:
        with partial.open("xb") as file:
            write(file)
            file.flush()
            _keep_permissions(file, target)
            os.fsync(file.fileno())
        os.replace(partial, target)
        sync(target.parent)
    except OSError as error:  # would name the hidden file
        raise type(error)(f"{name} must be a file that can be written; received {error.strerror or error}") from error
    finally:
        partial.unlink(missing_ok=True)


def append(path: FilePath, data: bytes) -> None:
    """Add to the end of a file, and bring it to the disk: a power cut tears what was added last, and nothing else."""
    with open(path, "ab") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def whole_lines(data: bytes) -> bytes:
    """What `append` wrote line by line, without a last line that was torn.

    A kill leaves a line without its end, and a power cut perhaps bytes of zero in its place.

    Examples
    --------
    >>> whole_lines(b"one, 1\\ntwo, 2\\nthr")
    b'one, 1\\ntwo, 2\\n'
    """
    kept = data[: data.rfind(b"\n") + 1]
    last = kept.rfind(b"\n", 0, -1) + 1
    return kept[:last] if b"\0" in kept[last:] else kept


def sync_tree(folder: FilePath) -> None:
    """Bring a folder to the disk with all that is in it: files that another library wrote."""
    for place, _, names in os.walk(folder, topdown=False):
        for name in names:
            sync(os.path.join(place, name))
        sync(place)


def sync(path: FilePath) -> None:
    """Bring one file, or the names in one folder, to the disk, where the system can."""
    try:
        place = os.open(path, os.O_RDONLY)
    except OSError as error:
        if error.errno in _UNABLE:  # Windows opens no folders, and a folder may be written without being read
            return
        raise
    try:
        os.fsync(place)
    except OSError as error:
        if error.errno not in _UNABLE:
            raise
    finally:
        os.close(place)


def _keep_permissions(file: BinaryIO, target: Path) -> None:
    """Give a new file the permissions of the one that it replaces."""
    with suppress(FileNotFoundError):
        mode = stat.S_IMODE(target.stat().st_mode) & 0o777
        try:
            os.chmod(file.fileno() if os.chmod in os.supports_fd else file.name, mode)
        except OSError as error:
            if error.errno not in _UNABLE:
                raise


def printable(path: FilePath) -> str:
    """A path fit for one line of a message."""
    return "".join(c if c.isprintable() else "?" for c in os.fsdecode(path))


def say(line: str) -> None:
    """A line on standard error about something that is no mistake of the caller's."""
    print(f"spinseg: {line}", file=sys.stderr, flush=True)
