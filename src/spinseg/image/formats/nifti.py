"""NIfTI, decoded by nibabel: axes in the order in which nibabel has them, so that labels fit its arrays."""

import gzip
import io
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from spinseg._errors import MissingExtra
from spinseg._validation import invalid
from spinseg.image.formats.stored import StoredArray, check_numbers, check_size, decoding
from spinseg.image.layout import EMPTY

_AXES = "XYZTC"  # the fifth holds the components of a vector
_HEADER_BYTES = 540  # of NIfTI 2, the longer one
_MAX_OFFSET = 2**24  # bytes of header and extensions


def decode_nifti(name: str, form: str, file: BinaryIO, max_pixels: int) -> StoredArray:
    """Return the array in a NIfTI file, which may be compressed by gzip; `form` is "NIfTI" or "gzip"."""
    stream: Any = gzip.GzipFile(fileobj=file) if form == "gzip" else file
    with decoding(name, "NIfTI"):
        head = stream.read(_HEADER_BYTES)
        stream.seek(0)
    image_class = _image_class(name, head)
    with _decoding_quietly(name):
        header = image_class.header_class.from_fileobj(io.BytesIO(head))
        shape, dtype, offset = header.get_data_shape(), header.get_data_dtype(), header.get_data_offset()
    check_size(name, tuple(map(int, shape)), max_pixels)
    if offset > _MAX_OFFSET:  # all before it would be unpacked and read
        invalid(name, f"have its numbers in the first {_MAX_OFFSET} bytes", offset)
    if dtype.fields is None:
        check_numbers(name, dtype)
    with _decoding_quietly(name):
        array = np.asanyarray(image_class.from_stream(stream).dataobj)
    return _named(name, array)


@contextmanager
def _decoding_quietly(name: str) -> Iterator[None]:
    """Turn exceptions into InvalidInput, without what nibabel prints beside them."""
    log, thread = logging.getLogger("nibabel.global"), threading.get_ident()

    def is_of_others(record: logging.LogRecord) -> bool:
        return record.thread != thread

    log.addFilter(is_of_others)
    try:
        with decoding(name, "NIfTI"):
            yield
    finally:
        log.removeFilter(is_of_others)


def _image_class(name: str, head: bytes) -> Any:
    """Return the class of nibabel that reads files which begin with these bytes."""
    if head[344:348] == b"ni1\0" or head[4:8] == b"ni2\0":
        invalid(name, "be one NIfTI file, .nii or .nii.gz, with header and numbers", "the header alone (.hdr)")
    if head[344:348] != b"n+1\0" and head[4:8] != b"n+2\0":
        invalid(name, "be an image; of compressed files only NIfTI, .nii.gz, is read", "another compressed file")
    try:
        import nibabel
    except ImportError:
        raise MissingExtra(f"{name}: NIfTI files need nibabel: pip install 'spinseg[nifti]'") from None
    return nibabel.Nifti2Image if head[4:8] == b"n+2\0" else nibabel.Nifti1Image


def _named(name: str, array: NDArray[Any]) -> StoredArray:
    """Return the array with the names of its axes; colors become an axis of channels."""
    if array.ndim > len(_AXES):
        invalid(name, f"have at most {len(_AXES)} axes", array.shape)
    axes = "".join(EMPTY if length == 1 and axis >= 2 else _AXES[axis] for axis, length in enumerate(array.shape))
    if array.dtype.names:
        names = array.dtype.names
        array, axes = np.stack([array[color] for color in names], axis=-1), f"{axes}S"
        return StoredArray(array, "NIfTI", axes, len(names) == 4)
    return StoredArray(array, "NIfTI", axes, False)
