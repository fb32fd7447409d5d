"""What all decoders of image files share."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinseg._errors import InvalidInput, MissingExtra
from spinseg._validation import invalid
from spinseg.image.layout import count_pixels

ORIENTATION_TAG = 274  # of EXIF and TIFF
# Orientation: whether rows and columns are exchanged, then whether rows, and columns, are reversed.
_ORIENTATIONS = {2: (0, 0, 1), 3: (0, 1, 1), 4: (0, 1, 0), 5: (1, 0, 0), 6: (1, 0, 1), 7: (1, 1, 1), 8: (1, 1, 0)}


@contextmanager
def decoding(name: str, form: str) -> Iterator[None]:
    """Turn any exception of a decoder into InvalidInput: for a damaged file it may be of nearly any type."""
    try:
        yield
    except (InvalidInput, MissingExtra):
        raise
    except Exception as error:
        invalid(name, f"be a whole {form} file", str(error) or type(error).__name__)


@contextmanager
def unprinted(logger: str) -> Iterator[list[str]]:
    """Collect the warnings that a library logs in this thread, instead of printing them beside our errors."""
    log, thread, messages = logging.getLogger(logger), threading.get_ident(), []

    def is_of_another_thread(record: logging.LogRecord) -> bool:
        if record.thread == thread and record.levelno >= logging.WARNING:
            messages.append(record.getMessage())
        return record.thread != thread

    log.addFilter(is_of_another_thread)
    try:
        yield messages
    finally:
        log.removeFilter(is_of_another_thread)


def check_size(name: str, shape: tuple[int, ...], max_pixels: int, axes: str = "") -> None:
    """Raise InvalidInput for too many pixels before memory is allocated: a few bytes of a header may claim any size."""
    if any(length < 1 for length in shape):
        invalid(name, "hold at least one pixel", shape)
    if count_pixels(shape, axes) > max_pixels:
        invalid(name, f"have at most {max_pixels} pixels", shape)


def check_numbers(name: str, dtype: np.dtype[Any]) -> None:
    """Raise InvalidInput for an array of something else than numbers."""
    if dtype.kind not in "biuf":
        invalid(name, "hold numbers", dtype.name)


def upright(array: NDArray[Any], orientation: int, rows: int) -> NDArray[Any]:
    """Return the array turned as its orientation tag says; `rows` is the axis of rows, and columns follow it."""
    transposed, flip_rows, flip_columns = _ORIENTATIONS.get(orientation, (0, 0, 0))
    array = array.swapaxes(rows, rows + 1) if transposed else array
    return np.flip(array, (rows,) * flip_rows + (rows + 1,) * flip_columns)
