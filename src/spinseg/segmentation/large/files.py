"""Pictures on disk that are read and written part by part: Zarr, OME-Zarr and TIFF, as Dask arrays."""

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from spinseg._errors import InvalidInput, MissingExtra
from spinseg._validation import invalid
from spinseg.image.intensity import ValueRange, value_range
from spinseg.parallel.atomic import sync, sync_tree
from spinseg.parallel.shared_arrays import SharedArray

YXC = ("y", "x", "c")
PLACES, PLACE = 8, 256  # along each axis, where it is looked which numbers are used, and pixels along each side of them
MOST_CHANNELS = 4  # on an axis that may be one of channels


def open_large(source: str | os.PathLike[str] | Any) -> Any:
    """A picture as a Dask array of shape (rows, columns, channels), of which nothing is read yet.

    `source` is a Dask array, shared or not, a folder of Zarr or OME-Zarr (its finest level), or a TIFF file, tiled if
    possible. Axes are taken from its metadata; else a last, or first, axis of at most 4 holds the channels.
    """
    dask_array, zarr = _libraries()
    axes: Sequence[str] = ""
    if isinstance(source, SharedArray):
        source = source.opened()
    if isinstance(source, dask_array.Array):
        array = source
    elif not isinstance(source, (str, os.PathLike)):
        invalid("image", "be a path or a Dask array", source)
    elif Path(source).is_dir():
        array, axes = _open_zarr(zarr, dask_array, os.fspath(source))
    elif Path(source).is_file():
        array, axes = _open_tiff(dask_array, os.fspath(source))
    else:
        invalid("image", "be a file or a folder that is there", os.fspath(source))
    if array.dtype.newbyteorder("=") not in (np.uint8, np.uint16):
        invalid("image", "hold numbers of type uint8 or uint16", str(array.dtype))
    if not array.size > 0:  # nor where Dask does not know
        invalid("image", "hold at least one pixel", array.shape)
    return _rows_columns_channels(array, axes or _guessed(array.shape))


def _open_zarr(zarr: Any, dask_array: Any, path: str) -> tuple[Any, Sequence[str]]:
    """The array of a Zarr folder, and its axes where OME metadata name them."""
    try:
        found, axes = _zarr_array(zarr, path)
        return dask_array.from_array(found), axes
    except Exception as error:  # of damaged metadata it may be nearly anything
        invalid("image", "be a Zarr array, or a group with OME-Zarr multiscales", f"{path}: {error}")


def _zarr_array(zarr: Any, path: str) -> tuple[Any, list[str]]:
    """The array of a Zarr folder, of a group its finest, and its axes where OME metadata name them."""
    found = zarr.open(path, mode="r")
    if not isinstance(found, zarr.Group):
        return found, []
    about = dict(found.attrs)
    scale = about.get("ome", about)["multiscales"][0]
    axes = [axis["name"] if isinstance(axis, dict) else axis for axis in scale.get("axes", [])]
    return found[scale["datasets"][0]["path"]], axes


def _open_tiff(dask_array: Any, path: str) -> tuple[Any, Sequence[str]]:
    """The first series of a TIFF file, and its axes."""
    try:
        finest = TiffSeries(path)
    except Exception as error:  # of a damaged file it may be nearly anything
        invalid("image", "be a TIFF file, or a folder of Zarr", f"{path}: {error}")
    meta = np.empty((0,) * finest.ndim, finest.dtype)
    return dask_array.from_array(finest, meta=meta), finest.axes.lower().replace("s", "c")


class TiffSeries:
    """The first series of a TIFF file, to be sliced as an array: the file is open only while some of it is read."""

    def __init__(self, path: str) -> None:
        self.path = path
        with self._opened() as (series, found):
            self.axes, self.shape, self.dtype, self.chunks = series.axes, found.shape, found.dtype, found.chunks
        self.ndim = len(self.shape)

    def __getitem__(self, box: Any) -> Any:
        with self._opened() as (_, found):
            return found[box]

    @contextmanager
    def _opened(self) -> Iterator[tuple[Any, Any]]:
        """The series, and its finest level as a Zarr array."""
        import tifffile
        import zarr

        with tifffile.TiffFile(self.path) as file:
            series = file.series[0]
            with series.aszarr(level=0) as store:
                yield series, zarr.open(store, mode="r")


def picture_state(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What tells whether a picture is still the one that was read: sizes of files, and when they were last written.

    Of Zarr these are all files of the array that `open_large` reads, in one digest; nothing of them is opened.
    """
    if not os.path.isdir(path):
        about = os.stat(path)
        return {"bytes": about.st_size, "written": about.st_mtime_ns}
    found, axes = _zarr_array(_libraries()[1], os.fspath(path))
    root = os.path.join(path, found.path)
    files = sorted(os.path.join(place, name) for place, _, names in os.walk(root) for name in names)
    digest, n_bytes = hashlib.blake2b(repr((found.path, axes)).encode(), digest_size=16), 0
    for file in files:
        about = os.stat(file)
        told = (os.path.relpath(file, root), about.st_size, about.st_mtime_ns)
        digest.update(repr(told).encode(errors="surrogateescape"))
        n_bytes += about.st_size
    return {"files": len(files), "bytes": n_bytes, "digest": digest.hexdigest()}


def _guessed(shape: tuple[int, ...]) -> str:
    """Names of axes that have none."""
    if len(shape) == 2:
        return "yx"
    if len(shape) == 3 and shape[-1] <= MOST_CHANNELS:
        return "yxc"
    if len(shape) == 3 and shape[0] <= MOST_CHANNELS:
        return "cyx"
    invalid("image", "have two axes, and perhaps one of channels", shape)


def _rows_columns_channels(array: Any, axes: Sequence[str]) -> Any:
    """The array with its axes in that order; others must have length 1."""
    told = f"axes {', '.join(map(str, axes))} of lengths {array.shape}"
    kept = [name for name in axes if name in YXC]
    if len(axes) != array.ndim or sorted(kept) not in (["x", "y"], ["c", "x", "y"]):
        invalid("image", "have axes y and x, and perhaps c", told)
    if any(length > 1 for name, length in zip(axes, array.shape, strict=True) if name not in YXC):
        invalid("image", "be one plane", told)
    array, axes = array[tuple(slice(None) if name in YXC else 0 for name in axes)], kept
    if "c" not in axes:
        return array.transpose(axes.index("y"), axes.index("x"))[..., None]
    return array.transpose(*(axes.index(name) for name in YXC))


def read_part(array: Any, box: tuple[slice, slice], source: Any = None) -> NDArray[Any]:
    """A part of a picture that `open_large` opened; where it cannot be read, the line names its file."""
    try:
        return np.asarray(array[box].compute(scheduler="synchronous"))
    except Exception as error:  # of a damaged file a decoder may raise nearly anything
        told = " ".join(f"{type(error).__name__} {error}".split())
        named = f"{source}: " if isinstance(source, str) else ""
        raise InvalidInput(f"the picture cannot be read: {named}{told}") from error


def ends_of_large(array: Any) -> ValueRange:
    """The numbers of no and of full intensity, by the rule of `as_picture`, from some places all over a picture.

    What cannot be read is left out; where that is all of them, smaller places are tried, which may pass it by.
    """
    if array.dtype == np.uint8:
        return value_range(np.zeros((1, 1, 1), np.uint8))
    for small in (False, True):
        rows, columns = (_places(n, max(1, n // (2 * PLACES)) if small else PLACE) for n in array.shape[:2])
        found = []
        for down, across in product(rows, columns):
            with suppress(InvalidInput):
                found.append(read_part(array, (down, across)))
        if found:
            return value_range(np.stack(found))
    raise InvalidInput("the picture cannot be read at any place")


def _places(length: int, side: int) -> list[slice]:
    """Where along an axis of so many pixels it is looked: everywhere, or at PLACES of `side` pixels."""
    if length <= PLACES * side:
        return [slice(0, length)]
    return [slice(start, start + side) for start in np.linspace(0, length - side, PLACES).astype(int).tolist()]


def create_ome_zarr(
    path: str | os.PathLike[str], shape: tuple[int, int], side: int, dtype: DTypeLike, fill: int
) -> Any:
    """A new Zarr array of rows and columns in square chunks, with the metadata of OME-Zarr 0.5; what is there is kept
    where it is such an array.
    """
    _, zarr = _libraries()
    group = zarr.open_group(os.fspath(path), mode="a")
    if "0" in group and group["0"].shape == shape and group["0"].chunks == (side, side):
        return group["0"]
    axes = [{"name": name, "type": "space"} for name in "yx"]
    level = {"path": "0", "coordinateTransformations": [{"type": "scale", "scale": [1.0, 1.0]}]}
    group.attrs["ome"] = {"version": "0.5", "multiscales": [{"axes": axes, "datasets": [level]}]}
    about = {"chunks": (side, side), "dtype": dtype, "fill_value": fill, "dimension_names": ("y", "x")}
    array = group.create_array("0", shape=shape, overwrite=True, **about)
    sync_tree(path)
    return array


def write_chunk(path: str | os.PathLike[str], array: Any, box: tuple[slice, slice], values: Any) -> None:
    """Write one chunk of an array that `create_ome_zarr` made, and bring it to the disk with its folders."""
    array[box] = values
    place = tuple(span.start // side for span, side in zip(box, array.chunks, strict=True))
    chunk = Path(path, "0", array.metadata.encode_chunk_key(place))
    if chunk.exists():  # one that holds nothing but the fill value is not written
        sync(chunk)
    for folder in chunk.parents:
        if folder.exists():
            sync(folder)
        if folder == Path(path, "0"):
            break


def _libraries() -> tuple[Any, Any]:
    """dask.array and zarr."""
    try:
        import dask.array
        import zarr
    except ImportError:
        raise MissingExtra(
            "images larger than memory need Dask and Zarr: pip install 'spinseg[distributed,zarr]'"
        ) from None
    return dask.array, zarr
