"""Read and write parts of images on disk, in Zarr, OME-Zarr and TIFF, as Dask arrays."""

import os
import shutil
import warnings
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from spinseg._errors import InvalidInput, needing, reason
from spinseg._run.atomic import FilePath, print_warning, printable, sync, sync_tree
from spinseg._run.executor import n_processors
from spinseg._validation import invalid
from spinseg.image.decoders import (
    check_metadata,
    check_numbers,
    has_opacity,
    open_zarr,
    orientation,
    reading_of_tiff,
    stores_intensities,
    unprinted,
    upright,
)
from spinseg.image.formats import content_hash, decode, file_format, file_state
from spinseg.image.intensity import (
    conventional_nodata,
    in_type,
    infer_intensity_range,
    leave_out_missing,
    looks_like_opacity,
)
from spinseg.image.io import MAX_PIXELS
from spinseg.image.layout import MAX_COLOR_CHANNELS, UNNAMED, ChannelAxis, ChannelKind, IntensityRange, Reading
from spinseg.image.picture import OTHERWISE_NO_OPACITY, OTHERWISE_OPACITY, Picture, as_picture
from spinseg.image.working import block_means

N_SAMPLES, SAMPLE_PIXELS = 8, 256  # squares along each axis, and pixels of their sides, that give the value range
SHOWN_PIXELS = 64  # sides of the squares, as many, that channels are stretched by, in pixels as they are analyzed
MAX_PART_NUMBERS = 2**22  # in a chunk of a TIFF file that is read part by part, unless it cannot be read whole
PART_PIXELS = 512  # at least, of the sides of the parts in which a file is read; more where its chunks are larger
THUMBNAIL_PIXELS = 1024  # of the longer side of what tells the kind of an image, at least
SHARED_IMAGE = ".image.zarr"  # in the folder of a run, while tiles are made

Box = tuple[slice, slice]
Parts = tuple[str, ChannelAxis, ChannelKind]


class _WriteError(OSError):
    """An image could not be written: one line with its name and the reason."""


@contextmanager
def _writing(path: FilePath) -> Iterator[None]:
    """Let an error of the disk name the image."""
    try:
        yield
    except OSError as error:
        raise _WriteError(f"cannot write {printable(path)}: {reason(error)}") from error


@contextmanager
def _reading(path: str | None = None) -> Iterator[None]:
    """Turn any exception into InvalidInput, which names the file: decoders raise nearly anything."""
    try:
        yield
    except _WriteError:  # of what was read
        raise
    except Exception as error:
        file = f"{path}: " if path else ""
        line = " ".join(f"{type(error).__name__} {error}".split())
        raise InvalidInput(f"the picture cannot be read: {file}{line}") from error


class OpenedPicture(NamedTuple):
    """An image on disk or in a Dask array.

    `array` is a Dask array of shape (rows, columns, channels), colors over white where the file has opacity. `reading`
    has the range of intensities and the kind of channels of the whole image once these are known. `parts` is what other
    processes need to read parts of it; None for a Dask array, and for a file that is decoded whole.
    """

    array: Any
    reading: Reading
    parts: Parts | None

    def part(self, box: Box) -> Picture:
        """A box of the image."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # nodata is reported once
            kind, ends = self.reading.channel_kind or "auto", self.reading.intensity_range
            return as_picture(self._pixels(box), channel_axis=-1, channel_kind=kind, intensity_range=ends)

    def _pixels(self, box: Box) -> NDArray[Any]:
        with _reading(self.parts and self.parts[0]):
            return np.asarray(self.array[box].compute(scheduler="synchronous"))

    def squares(self, side: int) -> list[list[Box]]:
        """Rows of squares all over the image, or all of a small one."""
        spans = []
        for length in self.array.shape[:2]:
            starts = np.linspace(0, length - side, N_SAMPLES).astype(int).tolist()
            is_short = length <= N_SAMPLES * side
            spans.append([slice(0, length)] if is_short else [slice(start, start + side) for start in starts])
        return [[(rows, columns) for columns in spans[1]] for rows in spans[0]]

    def sampled(self) -> NDArray[Any]:
        """The numbers in squares all over the image."""
        return np.stack([self._pixels(box) for row in self.squares(SAMPLE_PIXELS) for box in row])

    def inferred_range(self) -> IntensityRange:
        """The black and white levels, by the rule of `as_picture`, from squares all over the image."""
        if self.array.dtype == np.uint8:
            return infer_intensity_range(np.zeros((1, 1, 1), np.uint8))
        numbers = self.sampled()
        is_declared = self._has_declared_value(numbers)
        declared = None if is_declared.all() else self.reading.nodata  # elsewhere there may be data
        return infer_intensity_range(numbers, leave_out_missing(numbers, None, declared, None, True)[0])

    def _has_declared_value(self, numbers: NDArray[Any]) -> NDArray[np.bool_]:
        """Whether numbers are the one that the file declares to mark pixels without data."""
        declared = self.reading.nodata
        return numbers == (None if declared is None else in_type(declared, numbers.dtype))

    def nodata_note(self, used_range: IntensityRange) -> str:
        """What becomes of pixels without data, in words; empty where there are none."""
        if self.reading.nodata is None and self.array.dtype.kind not in "if":
            return ""
        numbers = self.sampled()
        is_declared = self._has_declared_value(numbers).any()
        value = self.reading.nodata if is_declared else conventional_nodata(numbers, None)
        if value is None or used_range[0] <= value <= used_range[1]:
            return ""
        return f"pixels of {value:.10g} (nodata) as {'black' if value < used_range[0] else 'white'}"

    def shown_parts(self, step: int) -> Picture:
        """Squares all over the image side by side, reduced by `step`."""
        parts = [[self.part(box) for box in row] for row in self.squares(step * SHOWN_PIXELS)]
        rows = [np.concatenate([block_means(part.codes, step) for part in row], axis=1) for row in parts]
        return Picture(np.concatenate(rows), channel_kind=parts[0][0].channel_kind)

    def thumbnail(self) -> Picture:
        """Every n-th pixel of the image, so that its longer side has about THUMBNAIL_PIXELS."""
        step = max(1, max(self.array.shape[:2]) // THUMBNAIL_PIXELS)
        return self._replace(array=self.array[::step, ::step]).part((slice(None), slice(None)))


def open_picture(
    source: FilePath | Any, channel_axis: ChannelAxis = "auto", channel_kind: ChannelKind = "auto"
) -> OpenedPicture:
    """Open an image of one plane, without reading the pixels of Zarr and TIFF.

    `source` is a Dask array, a folder of Zarr or OME-Zarr (its finest level), a TIFF file, tiled if possible, or a file
    of any other kind that `segment` takes, which is read whole. Axes are taken from its metadata; without them, by the
    rule of `as_picture`, and a first axis of at most 4 holds channels, too.
    """
    dask_array, _ = _libraries()
    parts = None
    if isinstance(source, dask_array.Array):
        array, reading = source, Reading()
    elif not isinstance(source, (str, os.PathLike)):
        invalid("image", "be a path or a Dask array", source)
    else:
        array, reading, is_whole = _open_path(dask_array, os.fspath(source))
        parts = None if is_whole else (os.path.abspath(source), channel_axis, channel_kind)
    check_numbers("image", array.dtype)
    if not array.size > 0:  # NaN where Dask does not know the shape
        invalid("image", "hold at least one pixel", array.shape)
    has_channels_first = len(array.shape) == 3 and array.shape[0] <= MAX_COLOR_CHANNELS < array.shape[-1]
    if not set(reading.axes) - set(UNNAMED) and channel_axis == "auto" and has_channels_first:
        channel_axis = 0
    stored = replace(reading, has_opacity=False) if channel_kind == "measured" else reading
    reading = stored.laid_out(array.shape, channel_axis)
    reading = replace(reading, spatial_axes=_rows_and_columns(reading), number_type=array.dtype.name, note="")
    arranged = reading.arrange(array)
    if reading.has_opacity and channel_kind == "auto":
        if not looks_like_opacity(OpenedPicture(arranged, reading, parts).sampled()[..., 3]):
            if stored.has_opacity is None:
                opened = open_picture(source, channel_axis, "measured")
                return opened._replace(reading=replace(opened.reading, otherwise=OTHERWISE_OPACITY))
            reading = replace(reading, otherwise=OTHERWISE_NO_OPACITY)
        parts = parts and (*parts[:2], "color")  # other processes need not look again
    return OpenedPicture(_over_white(arranged) if reading.has_opacity else arranged, reading, parts)


def _open_path(dask_array: Any, path: str) -> tuple[Any, Reading, bool]:
    """The array in a file or a folder, how it is stored, and whether it was read at once, not in parts."""
    if not os.path.exists(path):
        invalid("image", "exist", path)
    if os.path.isdir(path):
        return *_open_zarr(dask_array, path), False
    with open(path, "rb") as file:
        is_tiff = file_format(file.read(512)) == "TIFF"
    if is_tiff and (found := _open_tiff(dask_array, path)) is not None:
        return *found, False
    array, stored = decode(path, MAX_PIXELS)
    return dask_array.from_array(array), stored, True


def _open_zarr(dask_array: Any, path: str) -> tuple[Any, Reading]:
    """The array of a folder of Zarr, and how it is stored."""
    try:
        found, stored = open_zarr(printable(path), path)
        array, axes = dask_array.from_array(found, chunks=_chunks(found)), stored.axes
        if -1 < axes.find("X") < axes.find("Y"):
            array = array.swapaxes(axes.index("X"), axes.index("Y"))
            stored = replace(stored, axes=axes.translate({ord("X"): "Y", ord("Y"): "X"}))
        return array, stored
    except InvalidInput:
        raise
    except Exception as error:  # damaged metadata raise nearly anything
        invalid("image", "be a Zarr array, or a group with OME-Zarr multiscales", f"{path}: {error}")


def _open_tiff(dask_array: Any, path: str) -> tuple[Any, Reading] | None:
    """The first series of a TIFF file; None where it is read whole.

    That is where its numbers are codes of colors, or where a small part cannot be read without a large one.
    """
    try:
        with unprinted("tifffile") as warnings:
            finest = TiffSeries(path)
    except Exception as error:  # a damaged file raises nearly anything
        raise InvalidInput(f"cannot read {path}: the TIFF file is damaged or incomplete ({error})") from None
    check_metadata(printable(path), warnings)
    is_in_one_part = np.prod(finest.chunks) > MAX_PART_NUMBERS and np.prod(finest.shape) <= MAX_PIXELS
    if not finest.is_plain or is_in_one_part:
        return None
    meta = np.empty((0,) * finest.ndim, finest.dtype)
    array = dask_array.from_array(finest, chunks=_chunks(finest), meta=meta)
    array = upright(array, finest.orientation, rows=finest.axes.index("Y"))
    return array, finest.reading


def _chunks(stored: Any) -> tuple[int, ...]:
    """The parts in which Dask reads an array: whole chunks of the file, no larger than needed.

    Where axes are not in the order of the image, as with bands that lie one behind the other, Dask reads whole parts,
    however little of them is asked for. By itself it would take parts of 128 MB.
    """
    chunks = (
        min(chunk * -(-PART_PIXELS // chunk), length) for length, chunk in zip(stored.shape, stored.chunks, strict=True)
    )
    return tuple(chunks)


def _rows_and_columns(reading: Reading) -> tuple[int, int]:
    """The axes of rows and columns in this order; other axes must have length 1."""
    shape, axes = reading.stored_shape, reading.axes
    letters = axes or UNNAMED[0] * len(shape)
    described = f"axes {', '.join(axes.lower())} of lengths {shape}" if axes else shape
    long = [axis for axis in reading.spatial_axes if shape[axis] > 1 or letters[axis] in "YX"]
    kept = long if len(long) >= 2 else list(reading.spatial_axes[-2:])
    if len(kept) > 2:
        invalid("image", "be one plane", described)
    if not set(letters) & set(UNNAMED) and len({"X", "Y"} & {letters[axis] for axis in kept}) == 1:
        invalid("image", "have axes y and x, and perhaps c", described)
    return kept[0], kept[1]


def _over_white(array: Any) -> Any:
    """Colors over white, in the same number type, of an array whose last channel is opacity."""
    full = 1.0 if array.dtype.kind in "fb" else float(np.iinfo(array.dtype).max)
    opacity = array[..., 3:] / full
    over = opacity * array[..., :3] + (1 - opacity) * full
    return over.astype(array.dtype) if array.dtype.kind == "f" else over.round().astype(array.dtype)


class TiffSeries:
    """The first series of a TIFF file, to be sliced as an array; the file is open only while a slice is read."""

    def __init__(self, path: str) -> None:
        self.path = path
        with self._open() as (series, found):
            self.axes, self.shape, self.dtype, self.chunks = series.axes, found.shape, found.dtype, found.chunks
            self.is_plain, self.orientation = stores_intensities(series.keyframe), orientation(series.keyframe)
            self.reading = reading_of_tiff(series.keyframe, series.axes, has_opacity(series.keyframe))
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


def picture_content(path: FilePath, known: Mapping[str, Any]) -> dict[str, Any]:
    """What tells whether a picture has changed: the hash of its files. It is `known` where the content is the same.

    Files are read only if their dates, sizes or inodes have changed since `known`.
    """
    found = {"state": file_state(path)}
    if found.items() <= known.items():
        return dict(known)
    found["sha256"] = content_hash(path)
    return dict(known) if known.get("sha256") == found["sha256"] else found


@contextmanager
def shared_image(opened: OpenedPicture, folder: Path, side: int) -> Iterator[Parts]:
    """A path, an axis and a kind of channels with which other processes can read parts of an image.

    A Dask array, and an image that was decoded whole, is written to a Zarr folder meanwhile.
    """
    if opened.parts is not None:
        yield opened.parts
        return
    path = (folder / SHARED_IMAGE).absolute()
    shutil.rmtree(path, ignore_errors=True)  # of a run that was killed
    native = opened.array.astype(opened.array.dtype.newbyteorder("=")).rechunk((side, side, -1))
    dask_array, zarr = _libraries()
    try:
        with _writing(path):
            stored = zarr.create_array(str(path), shape=native.shape, chunks=native.chunksize, dtype=native.dtype)
        with _reading(), ThreadPoolExecutor(n_processors()) as pool:  # which ends once no thread writes any more
            dask_array.store(native, _Target(stored, path), lock=False, scheduler="threads", pool=pool)
        yield str(path), -1, "auto"
    finally:
        shutil.rmtree(path, ignore_errors=True)


class _Target(NamedTuple):
    """An array that Dask writes to, whose errors are told from those of what it reads."""

    array: Any
    path: Path

    def __setitem__(self, box: Box, values: Any) -> None:
        with _writing(self.path):
            self.array[box] = values


def create_ome_zarr(path: FilePath, shape: tuple[int, int], side: int, dtype: DTypeLike, fill: int) -> Any:
    """Open a Zarr array of rows and columns in square chunks, or create it with the metadata of OME-Zarr 0.5.

    One whose metadata are damaged is replaced, with a warning.
    """
    _, zarr = _libraries()
    with _writing(path):
        try:
            group = zarr.open_group(os.fspath(path), mode="a")
            if "0" in group and group["0"].shape == shape and group["0"].chunks == (side, side):
                return group["0"]
        except (ValueError, TypeError, KeyError):  # from damaged JSON; errors of the disk are OSErrors
            print_warning(f"{printable(path)} is damaged, and is made again")
            shutil.rmtree(path)
            group = zarr.open_group(os.fspath(path), mode="a")
        axes = [{"name": name, "type": "space"} for name in "yx"]
        level = {"path": "0", "coordinateTransformations": [{"type": "scale", "scale": [1.0, 1.0]}]}
        group.attrs["ome"] = {"version": "0.5", "multiscales": [{"axes": axes, "datasets": [level]}]}
        options = {"chunks": (side, side), "dtype": dtype, "fill_value": fill, "dimension_names": ("y", "x")}
        array = group.create_array("0", shape=shape, overwrite=True, **options)
        sync_tree(path)
        return array


def open_labels(path: FilePath) -> Any:
    """An array that `create_ome_zarr` made, as a Dask array."""
    return _libraries()[0].from_zarr(os.fspath(path), component="0")


def write_chunk(array: Any, box: Box, values: Any) -> None:
    """Write one chunk of an array that `create_ome_zarr` made, and flush it to the disk with its folders."""
    with _writing(array.store.root):
        array[box] = values
        index = tuple(span.start // side for span, side in zip(box, array.chunks, strict=True))
        top = Path(array.store.root, array.path)
        chunk = top / array.metadata.encode_chunk_key(index)
        while chunk != top.parent:
            if chunk.exists():  # Zarr does not write a chunk that is all fill value
                sync(chunk)
            chunk = chunk.parent


def _libraries() -> tuple[Any, Any]:
    """dask.array and zarr."""
    with needing("images larger than memory need Dask and Zarr: pip install 'spinseg[distributed,zarr]'"):
        import dask.array
        import zarr
    return dask.array, zarr
