"""Read and write parts of pictures on disk, in Zarr, OME-Zarr and TIFF, as Dask arrays."""

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
from spinseg.image.intensity import infer_intensity_range
from spinseg.image.layout import IntensityRange
from spinseg.parallel.atomic import sync, sync_tree
from spinseg.parallel.shared_arrays import SharedArray

YXC = ("y", "x", "c")
N_SAMPLES, SAMPLE_PIXELS = 8, 256  # squares along each axis, and pixels of their sides, that give the value range
MAX_CHANNELS = 4  # on an axis without a name that is taken for channels


def open_large(source: str | os.PathLike[str] | Any) -> Any:
    """Open a picture as a Dask array of shape (rows, columns, channels), without reading its pixels.

    `source` is a Dask array, shared or not, a folder of Zarr or OME-Zarr (its finest level), or a TIFF file, tiled if
    possible. Axes are taken from its metadata; without them, a last or first axis of at most 4 holds the channels.
    """
    dask_array, zarr = _libraries()
    axes: Sequence[str] = ""
    if isinstance(source, SharedArray):
        source = source.open()
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
    if not array.size > 0:  # NaN where Dask does not know the shape
        invalid("image", "hold at least one pixel", array.shape)
    return _rows_columns_channels(array, axes or _guess_axes(array.shape))


def _open_zarr(zarr: Any, dask_array: Any, path: str) -> tuple[Any, Sequence[str]]:
    """The array of a Zarr folder, and its axes where OME metadata name them."""
    try:
        found, axes = _zarr_array(zarr, path)
        return dask_array.from_array(found), axes
    except Exception as error:  # damaged metadata raise nearly anything
        invalid("image", "be a Zarr array, or a group with OME-Zarr multiscales", f"{path}: {error}")


def _zarr_array(zarr: Any, path: str) -> tuple[Any, list[str]]:
    """The array of a Zarr folder, that of the finest level in a group, and its axes where OME metadata name them."""
    found = zarr.open(path, mode="r")
    if not isinstance(found, zarr.Group):
        return found, []
    attributes = dict(found.attrs)
    scale = attributes.get("ome", attributes)["multiscales"][0]
    axes = [axis["name"] if isinstance(axis, dict) else axis for axis in scale.get("axes", [])]
    return found[scale["datasets"][0]["path"]], axes


def _open_tiff(dask_array: Any, path: str) -> tuple[Any, Sequence[str]]:
    """The first series of a TIFF file, and its axes."""
    try:
        finest = TiffSeries(path)
    except Exception as error:  # a damaged file raises nearly anything
        invalid("image", "be a TIFF file, or a folder of Zarr", f"{path}: {error}")
    meta = np.empty((0,) * finest.ndim, finest.dtype)
    return dask_array.from_array(finest, meta=meta), finest.axes.lower().replace("s", "c")


class TiffSeries:
    """The first series of a TIFF file, to be sliced as an array; the file is open only while a slice is read."""

    def __init__(self, path: str) -> None:
        self.path = path
        with self._open() as (series, found):
            self.axes, self.shape, self.dtype, self.chunks = series.axes, found.shape, found.dtype, found.chunks
        self.ndim = len(self.shape)

    def __getitem__(self, box: Any) -> Any:
        with self._open() as (_, found):
            return found[box]

    @contextmanager
    def _open(self) -> Iterator[tuple[Any, Any]]:
        """The series, and its finest level as a Zarr array."""
        import tifffile
        import zarr

        with tifffile.TiffFile(self.path) as file:
            series = file.series[0]
            with series.aszarr(level=0) as store:
                yield series, zarr.open(store, mode="r")


def picture_state(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Sizes and modification times of the files of a picture, which change where it is written again.

    For Zarr it is a digest over all files of the array that `open_large` reads; none of them is opened.
    """
    if not os.path.isdir(path):
        status = os.stat(path)
        return {"bytes": status.st_size, "written": status.st_mtime_ns}
    found, axes = _zarr_array(_libraries()[1], os.fspath(path))
    root = os.path.join(path, found.path)
    files = sorted(os.path.join(folder, name) for folder, _, names in os.walk(root) for name in names)
    digest, n_bytes = hashlib.blake2b(repr((found.path, axes)).encode(), digest_size=16), 0
    for file in files:
        status = os.stat(file)
        state = (os.path.relpath(file, root), status.st_size, status.st_mtime_ns)
        digest.update(repr(state).encode(errors="surrogateescape"))
        n_bytes += status.st_size
    return {"files": len(files), "bytes": n_bytes, "digest": digest.hexdigest()}


def _guess_axes(shape: tuple[int, ...]) -> str:
    """Names for the axes of an array without metadata."""
    if len(shape) == 2:
        return "yx"
    if len(shape) == 3 and shape[-1] <= MAX_CHANNELS:
        return "yxc"
    if len(shape) == 3 and shape[0] <= MAX_CHANNELS:
        return "cyx"
    invalid("image", "have two axes, and perhaps one of channels", shape)


def _rows_columns_channels(array: Any, axes: Sequence[str]) -> Any:
    """The array with its axes in this order; other axes must have length 1."""
    described = f"axes {', '.join(map(str, axes))} of lengths {array.shape}"
    kept = [name for name in axes if name in YXC]
    if len(axes) != array.ndim or sorted(kept) not in (["x", "y"], ["c", "x", "y"]):
        invalid("image", "have axes y and x, and perhaps c", described)
    if any(length > 1 for name, length in zip(axes, array.shape, strict=True) if name not in YXC):
        invalid("image", "be one plane", described)
    array, axes = array[tuple(slice(None) if name in YXC else 0 for name in axes)], kept
    if "c" not in axes:
        return array.transpose(axes.index("y"), axes.index("x"))[..., None]
    return array.transpose(*(axes.index(name) for name in YXC))


def read_region(array: Any, box: tuple[slice, slice], source: Any = None) -> NDArray[Any]:
    """The pixels of a box of a picture that `open_large` opened; an error names the file `source`."""
    try:
        return np.asarray(array[box].compute(scheduler="synchronous"))
    except Exception as error:  # decoders raise nearly anything for a damaged file
        file = f"{source}: " if isinstance(source, str) else ""
        line = " ".join(f"{type(error).__name__} {error}".split())
        raise InvalidInput(f"the picture cannot be read: {file}{line}") from error


def intensity_range_of(array: Any) -> IntensityRange:
    """The numbers of no and of full intensity, by the rule of `as_picture`, from squares all over a picture.

    Squares that cannot be read are left out. Where all of them fail, smaller ones are tried, which may miss the damage.
    """
    if array.dtype == np.uint8:
        return infer_intensity_range(np.zeros((1, 1, 1), np.uint8))
    for small in (False, True):
        sides = [max(1, n // (2 * N_SAMPLES)) if small else SAMPLE_PIXELS for n in array.shape[:2]]
        rows, columns = map(_sampled_spans, array.shape[:2], sides)
        squares = []
        for down, across in product(rows, columns):
            with suppress(InvalidInput):
                squares.append(read_region(array, (down, across)))
        if squares:
            return infer_intensity_range(np.stack(squares))
    raise InvalidInput("the picture cannot be read at any place")


def _sampled_spans(length: int, side: int) -> list[slice]:
    """N_SAMPLES evenly spaced spans of `side` pixels along an axis, or all of it where it is shorter than these."""
    if length <= N_SAMPLES * side:
        return [slice(0, length)]
    return [slice(start, start + side) for start in np.linspace(0, length - side, N_SAMPLES).astype(int).tolist()]


def create_ome_zarr(
    path: str | os.PathLike[str], shape: tuple[int, int], side: int, dtype: DTypeLike, fill: int
) -> Any:
    """Open a Zarr array of rows and columns in square chunks, or create it with the metadata of OME-Zarr 0.5."""
    _, zarr = _libraries()
    group = zarr.open_group(os.fspath(path), mode="a")
    if "0" in group and group["0"].shape == shape and group["0"].chunks == (side, side):
        return group["0"]
    axes = [{"name": name, "type": "space"} for name in "yx"]
    level = {"path": "0", "coordinateTransformations": [{"type": "scale", "scale": [1.0, 1.0]}]}
    group.attrs["ome"] = {"version": "0.5", "multiscales": [{"axes": axes, "datasets": [level]}]}
    options = {"chunks": (side, side), "dtype": dtype, "fill_value": fill, "dimension_names": ("y", "x")}
    array = group.create_array("0", shape=shape, overwrite=True, **options)
    sync_tree(path)
    return array


def write_chunk(path: str | os.PathLike[str], array: Any, box: tuple[slice, slice], values: Any) -> None:
    """Write one chunk of an array that `create_ome_zarr` made, and flush it to the disk with its folders."""
    array[box] = values
    index = tuple(span.start // side for span, side in zip(box, array.chunks, strict=True))
    chunk = Path(path, "0", array.metadata.encode_chunk_key(index))
    if chunk.exists():  # Zarr does not write a chunk that is all fill value
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
