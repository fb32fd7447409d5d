"""Share Dask arrays with other processes through files, so that tasks do not carry copies of their data."""

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
MIN_BYTES = 1024  # smaller NumPy arrays stay in the pickle
ALIGNMENT_BYTES = 64  # of the start of each array in the file


@dataclass(frozen=True)
class SharedArray:
    """A Dask array in a folder, whose large NumPy arrays are memory-mapped."""

    folder: Path

    def open(self) -> Any:
        """The Dask array."""
        return pickle.loads((self.folder / "array.pickle").read_bytes())


@contextmanager
def shared(source: Any, folder: Path) -> Iterator[Any]:
    """A context with a Dask array as a SharedArray in a subfolder of `folder`; anything else is passed through.

    NumPy arrays in its graph are written to one file, which other processes map. Functions in it may be lambdas.
    """
    if not hasattr(source, "__dask_graph__"):
        yield source
        return
    for leftover in folder.glob(f"{PREFIX}*"):  # of a run that was killed
        shutil.rmtree(leftover, ignore_errors=True)
    path = (folder / f"{PREFIX}{os.urandom(8).hex()}").absolute()
    path.mkdir()
    try:
        _write(source, path)
        yield SharedArray(path)
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _write(array: Any, folder: Path) -> None:
    """Write the files that `SharedArray` opens."""
    content = io.BytesIO()
    try:
        with open(folder / "numbers.bin", "wb") as data:
            _pickler(content, data).dump(array)
    except OSError:  # the disk is full
        raise
    except Exception as error:
        rule = "be a Dask array that other processes can open: one made of files, NumPy arrays and functions"
        invalid("image", rule, f"{type(error).__name__}: {error}")
    (folder / "array.pickle").write_bytes(content.getvalue())


def _pickler(content: BinaryIO, data: BinaryIO) -> Any:
    """A pickler that writes large NumPy arrays to the file `data`."""
    import cloudpickle  # which Dask needs, too

    mapped = _DataFile(os.path.abspath(data.name))  # one object, so that the file is mapped once

    class Pickler(cloudpickle.Pickler):
        def reducer_override(self, obj: Any) -> Any:
            if type(obj) not in (np.ndarray, np.memmap) or obj.dtype.hasobject or obj.nbytes < MIN_BYTES:
                return super().reducer_override(obj)
            data.write(bytes(-data.tell() % ALIGNMENT_BYTES))
            start = data.tell()
            np.ascontiguousarray(obj).tofile(data)
            return _array_at, (mapped, start, obj.nbytes, obj.dtype, obj.shape)

    return Pickler(content)


class _DataFile:
    """The data file as it stands in a pickle; unpickled it is the memory map of that file."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return _mapped, (self.path,)


def _mapped(path: str) -> NDArray[np.uint8]:
    """The bytes of a file, memory-mapped; writing to them does not change the file."""
    try:
        return np.memmap(path, np.uint8, "c").view(np.ndarray)
    except OSError:  # there is not enough memory for a private copy of all of it
        return np.memmap(path, np.uint8, "r").view(np.ndarray)


def _array_at(data: NDArray[np.uint8], start: int, n_bytes: int, dtype: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    """The array that begins at a byte of the data file."""
    return data[start : start + n_bytes].view(dtype).reshape(shape)
