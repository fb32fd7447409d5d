"""Decoding of image files, by their content: which module of `formats` reads which kind of file.

Pillow and tifffile come with scikit-image; Zarr and NIfTI need an extra.
"""

import os
import stat
from collections.abc import Callable
from dataclasses import replace
from typing import BinaryIO

import numpy as np

from spinseg._run.atomic import FilePath, printable
from spinseg._validation import invalid
from spinseg.image.formats.stored import StoredArray, check_numbers, check_size, decoding

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
_RULE = "be a PNG, JPEG, GIF, WebP, BMP, JPEG 2000, TIFF, NPY or NIfTI file, or a folder of Zarr"


def decode(path: FilePath, max_pixels: int) -> StoredArray:
    """Return the array in an image file of at most `max_pixels` pixels."""
    name = printable(path)
    try:
        decode_path = _decode_folder if os.path.isdir(path) else _decode_file
        found = decode_path(name, path, max_pixels)
    except OSError as error:
        raise type(error)(f"{name} must be a file that can be read; received {error.strerror or error}") from None
    check_numbers(name, found.array.dtype)
    array = np.ascontiguousarray(found.array, found.array.dtype.newbyteorder("="))
    return replace(found, array=array)


def _decode_folder(name: str, path: FilePath, max_pixels: int) -> StoredArray:
    """Return the array in a folder of Zarr."""
    if not is_zarr(path):
        invalid(name, f"{_RULE} (of other folders, give the files)", "a folder")
    from spinseg.image.formats.zarr_folder import decode_zarr

    return decode_zarr(name, os.fspath(path), max_pixels)


def is_zarr(path: FilePath) -> bool:
    """Return whether a folder has the metadata of Zarr, of version 2 or 3."""
    return any(os.path.isfile(os.path.join(os.fspath(path), file)) for file in _ZARR_FILES)


def _decode_file(name: str, path: FilePath, max_pixels: int) -> StoredArray:
    """Return the array in a file."""
    if not stat.S_ISREG(os.stat(path).st_mode):  # opening a pipe would block
        invalid(name, _RULE, "a pipe or a device")
    with open(path, "rb") as file:
        head = file.read(512)
        file.seek(0)
        form = file_format(head)
        is_text = min(head, default=0) >= 9  # the first bytes of every image file include lower ones
        if form in _FOR_BIOIO:
            invalid(name, f"{_RULE}; read it with bioio, and give the array", f"a {form} file")
        if not form or is_text:
            invalid(name, _RULE, "text" if is_text else head[:16] or "an empty file")
        return _decoder(form)(name, form, file, max_pixels)


def file_format(head: bytes) -> str:
    """Return the format of a file that begins with these bytes; empty if it is unknown."""
    if head[344:348] in (b"n+1\0", b"ni1\0") or head[4:8] in (b"n+2\0", b"ni2\0"):
        return "NIfTI"
    return next((form for start, form in _FORMATS.items() if head.startswith(start)), "")


def _decoder(form: str) -> Callable[[str, str, BinaryIO, int], StoredArray]:
    """Return the function that decodes files of a format; the reader is imported only now."""
    if form == "TIFF":
        from spinseg.image.formats.tiff import decode_tiff

        return decode_tiff
    if form in ("NIfTI", "gzip"):
        from spinseg.image.formats.nifti import decode_nifti

        return decode_nifti
    if form == "NPY":
        return _decode_npy
    from spinseg.image.formats.pillow import decode_by_pillow

    return decode_by_pillow


def _decode_npy(name: str, form: str, file: BinaryIO, max_pixels: int) -> StoredArray:
    """Return the array in an NPY file; Python objects, which could run code, are not loaded."""
    headers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    with decoding(name, form):
        shape = headers[np.lib.format.read_magic(file)](file)[0]
        file.seek(0)
    if len(shape) not in (2, 3, 4):
        invalid(name, "hold one picture or volume, with or without channels", shape)
    check_size(name, shape, max_pixels)
    with decoding(name, form):
        return StoredArray(np.load(file, allow_pickle=False), form)
