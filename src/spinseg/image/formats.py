"""Image files: which formats there are, the array in a file of any of them, and whether its content has changed."""

import hashlib
import os
import stat
from pathlib import PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinseg._errors import InvalidInput, reason
from spinseg._run.atomic import FilePath, printable
from spinseg._validation import invalid
from spinseg.image.decoders import (
    check_numbers,
    decode_by_pillow,
    decode_nifti,
    decode_npy,
    decode_tiff,
    decode_zarr,
    decoding,
    open_zarr,
)
from spinseg.image.layout import Reading

_FORMATS = {  # by the first bytes of the content, since the name of a file may be wrong
    b"\x89PNG\r\n\x1a\n": "PNG",
    b"\xff\xd8\xff": "JPEG",
    b"GIF8": "GIF",
    b"RIFF": "WebP",
    b"BM": "BMP",
    b"\0\0\0\x0cjP  ": "JPEG 2000",
    b"II*\0": "TIFF",
    b"MM\0*": "TIFF",
    b"II+\0": "TIFF",
    b"MM\0+": "TIFF",
    b"\x93NUMPY": "NPY",
    b"\x1f\x8b": "gzip",
    b"ZISRAWFILE": "CZI",
    b"\x70\0\0\0": "LIF",
}
_FOR_BIOIO = ("CZI", "LIF")  # files of microscopes by Zeiss and Leica
_ZARR_FILES = ("zarr.json", ".zarray", ".zgroup", ".zattrs")
READABLE = "PNG, JPEG, GIF, WebP, BMP, JPEG 2000, TIFF, NPY or NIfTI file"
RULE = f"be a {READABLE}, or a folder of Zarr"


def decode(path: FilePath, max_pixels: int) -> tuple[NDArray[Any], Reading]:
    """Return the upright array in an image file or a folder of Zarr, of at most `max_pixels`, and how it is stored."""
    name = printable(path)
    try:
        if not os.path.isdir(path):
            array, stored = _decode_file(name, path, max_pixels)
        elif is_zarr(path):
            array, stored = decode_zarr(name, os.fspath(path), max_pixels)
        else:
            invalid(name, RULE, "a folder of images" if images_in(path) else "a folder without images")
    except OSError as error:
        raise type(error)(f"cannot read {name}: {reason(error)}") from None
    check_numbers(name, array.dtype)
    return np.ascontiguousarray(array, array.dtype.newbyteorder("=")), stored


def file_format(head: bytes) -> str:
    """Return the format of a file that begins with these bytes; empty if it is unknown."""
    if head[344:348] in (b"n+1\0", b"ni1\0") or head[4:8] in (b"n+2\0", b"ni2\0"):
        return "NIfTI"
    return next((form for start, form in _FORMATS.items() if head.startswith(start)), "")


def images_in(folder: FilePath) -> list[str]:
    """Return the image files and Zarr folders in a folder, by name, without hidden ones and those further down."""
    found = []
    for entry in sorted(os.scandir(folder), key=lambda entry: os.fsencode(entry.name)):
        if entry.name.startswith("."):
            continue
        if entry.is_dir():
            found += [entry.path] if is_zarr(entry.path) else []
        elif entry.is_file():
            with open(entry.path, "rb") as file:
                found += [entry.path] if file_format(file.read(512)) else []
    return found


def is_zarr(path: FilePath) -> bool:
    """Return whether a folder has the metadata of Zarr, of version 2 or 3."""
    return any(os.path.isfile(os.path.join(os.fspath(path), file)) for file in _ZARR_FILES)


def _is_regular(path: FilePath) -> bool:
    """Return whether a path is a file, and no pipe or device, which would block when opened."""
    return stat.S_ISREG(os.stat(path).st_mode)


def _decode_file(name: str, path: FilePath, max_pixels: int) -> tuple[NDArray[Any], Reading]:
    """Return the array in a file, and how it is stored."""
    if not _is_regular(path):
        invalid(name, RULE, "a pipe or a device")
    with open(path, "rb") as file:
        head = file.read(512)
        file.seek(0)
        form = file_format(head)
        is_text = min(head, default=0) >= 9  # the first bytes of every image file include lower ones
        if form in _FOR_BIOIO:
            invalid(name, f"{RULE}; read it with bioio, and give the array", f"a {form} file")
        if not form or is_text:
            invalid(name, RULE, "text" if is_text else head[:16] or "an empty file")
        decoders = {"TIFF": decode_tiff, "NIfTI": decode_nifti, "gzip": decode_nifti, "NPY": decode_npy}
        return decoders.get(form, decode_by_pillow)(name, form, file, max_pixels)


def content_hash(path: FilePath) -> str | None:
    """Return the SHA-256 of an image file, or of the files of the array that is read from a Zarr folder.

    None for what cannot be read: the decoder says why.
    """
    return _digest(path, of_content=True)


def file_state(path: FilePath) -> str | None:
    """Return a digest of the sizes, dates and inodes of the same files: while it is the same, so is the content."""
    return _digest(path, of_content=False)


def _digest(path: FilePath, of_content: bool) -> str | None:
    """Return a digest of the content, or of the state, of each file of an image."""
    digest = hashlib.sha256()

    def add(file: str) -> None:
        if of_content:
            with open(file, "rb") as stream:
                hashlib.file_digest(stream, lambda: digest)
        else:
            status = os.stat(file)
            digest.update(repr((status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)).encode())

    try:
        if is_zarr(path):
            with decoding(printable(path), "Zarr"):
                found, stored = open_zarr(printable(path), os.fspath(path))
            digest.update(repr((found.path, stored.axes)).encode())
            root = os.path.join(path, found.path)
            for file in sorted(os.path.join(folder, name) for folder, _, names in os.walk(root) for name in names):
                name = PurePath(os.path.relpath(file, root)).as_posix()
                digest.update(repr((name, os.stat(file).st_size)).encode(errors="surrogateescape"))
                add(file)
        elif _is_regular(path):
            add(os.fspath(path))
        else:
            return None
    except (OSError, InvalidInput):
        return None
    return digest.hexdigest()
