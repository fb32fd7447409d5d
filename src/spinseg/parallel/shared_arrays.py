"""Dask arrays for other processes: laid down in a folder once, with the numbers in them, whoever opens them."""

import io
import os
import pickle
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from spinseg._validation import invalid

PREFIX = ".array-"  # of the folder, hidden beside the results
FEW_BYTES = 1024  # an array of less stays in the pickle
ALIGNED = 64  # bytes that each array begins at a multiple of


@dataclass(frozen=True)
class SharedArray:
    """A Dask array that lies in a folder. Its large arrays are mapped from there, not read."""

    folder: Path

    def opened(self) -> Any:
        """The Dask array."""
        return pickle.loads((self.folder / "array.pickle").read_bytes())


@contextmanager
def shared(source: Any, folder: Path) -> Iterator[Any]:
    """A Dask array as a SharedArray below a folder, until the end; anything else as it is.

    NumPy arrays in its graph are written to one file, of which others map what they need. So no process gets a copy
    of them with its tasks. Functions in it may be lambdas.
    """
    if not hasattr(source, "__dask_graph__"):
        yield source
        return
    for left_behind in folder.glob(f"{PREFIX}*"):  # by a run that was killed
        shutil.rmtree(left_behind, ignore_errors=True)
    place = (folder / f"{PREFIX}{os.urandom(8).hex()}").absolute()
    place.mkdir()
    try:
        _lay_down(source, place)
        yield SharedArray(place)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _lay_down(array: Any, place: Path) -> None:
    """Write what `SharedArray` opens."""
    content = io.BytesIO()
    try:
        with open(place / "numbers.bin", "wb") as numbers:
            _pickler(content, numbers).dump(array)
    except OSError:  # the disk is full
        raise
    except Exception as error:
        rule = "be a Dask array that other processes can open: one made of files, NumPy arrays and functions"
        invalid("image", rule, f"{type(error).__name__}: {error}")
    (place / "array.pickle").write_bytes(content.getvalue())


def _pickler(content: BinaryIO, numbers: BinaryIO) -> Any:
    """A pickler that writes large NumPy arrays to the file of numbers."""
    import cloudpickle  # which Dask needs, too

    mapped = _Numbers(os.path.abspath(numbers.name))  # one object, so that the file is mapped once

    class Pickler(cloudpickle.Pickler):
        def reducer_override(self, obj: Any) -> Any:
            if type(obj) not in (np.ndarray, np.memmap) or obj.dtype.hasobject or obj.nbytes < FEW_BYTES:
                return super().reducer_override(obj)
            numbers.write(bytes(-numbers.tell() % ALIGNED))
            start = numbers.tell()
            np.ascontiguousarray(obj).tofile(numbers)
            return _part, (mapped, start, obj.nbytes, obj.dtype, obj.shape)

    return Pickler(content)


class _Numbers:
    """Stands for the file of numbers in a pickle; unpickled it is the map of that file."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return _mapped, (self.path,)


def _mapped(path: str) -> NDArray[np.uint8]:
    """The bytes of a file; what is written to them is seen by nobody else."""
    try:
        return np.memmap(path, np.uint8, "c").view(np.ndarray)
    except OSError:  # the system has not that much memory, should all of it be written to
        return np.memmap(path, np.uint8, "r").view(np.ndarray)


def _part(numbers: NDArray[np.uint8], start: int, n_bytes: int, dtype: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    """An array that begins at a byte."""
    return numbers[start : start + n_bytes].view(dtype).reshape(shape)
