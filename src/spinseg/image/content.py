"""Whether an image is still the one that a result was made from: by what its files hold, not by their dates."""

import hashlib
import os
import stat
from collections.abc import Callable
from pathlib import PurePath

from spinseg._errors import InvalidInput
from spinseg._run.atomic import FilePath, printable
from spinseg.image.decoders import is_zarr
from spinseg.image.formats.stored import decoding


def content_hash(path: FilePath) -> str | None:
    """The SHA-256 of an image file, or of the files of the array that is read from a Zarr folder, with their names.

    Other files in a Zarr folder, such as coarser levels, do not count. None for what cannot be read: the decoder says
    why.
    """
    return _digest(path, _add_content)


def file_state(path: FilePath) -> str | None:
    """A digest of the sizes, dates and inodes of the same files; none of them is opened.

    While it is the same, so is the content. It may change without the content, as when files are copied.
    """
    return _digest(path, _add_state)


def _digest(path: FilePath, add: Callable[["hashlib._Hash", str], None]) -> str | None:
    """A digest of what `add` adds for each file of an image."""
    digest = hashlib.sha256()
    try:
        if not os.path.isdir(path):
            if not stat.S_ISREG(os.stat(path).st_mode):  # opening a pipe would block
                return None
            add(digest, os.fspath(path))
        elif not is_zarr(path):
            return None
        else:
            root, axes, inner = _zarr_array(path)
            digest.update(repr((inner, axes)).encode())
            for file in sorted(os.path.join(folder, name) for folder, _, names in os.walk(root) for name in names):
                name = PurePath(os.path.relpath(file, root)).as_posix()
                digest.update(repr((name, os.stat(file).st_size)).encode(errors="surrogateescape"))
                add(digest, file)
    except (OSError, InvalidInput):
        return None
    return digest.hexdigest()


def _zarr_array(path: FilePath) -> tuple[str, str, str]:
    """The folder of the array that is read from a Zarr folder, a letter for each of its axes, and its path inside."""
    from spinseg.image.formats.zarr_folder import open_zarr

    name = printable(path)
    with decoding(name, "Zarr"):
        found, axes = open_zarr(name, os.fspath(path))
    return os.path.join(path, found.path), axes, found.path


def _add_content(digest: "hashlib._Hash", file: str) -> None:
    with open(file, "rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)


def _add_state(digest: "hashlib._Hash", file: str) -> None:
    status = os.stat(file)
    state = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
    digest.update(repr(state).encode())
