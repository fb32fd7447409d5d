"""Decoders of image files, by libraries that are imported when the first such file is read.

Pillow decodes PNG, JPEG, GIF, WebP, BMP and JPEG 2000, and tifffile TIFF. NumPy reads NPY. NIfTI, by nibabel, and
folders of Zarr, with or without the metadata of OME-NGFF, need an extra.
"""

import gzip
import io
import logging
import lzma
import math
import struct
import sys
import threading
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

import numpy as np
from numpy.typing import NDArray

from spinseg._errors import InvalidInput, MissingExtra, needing
from spinseg._validation import invalid
from spinseg.image.layout import CHANNEL_NAMES, EMPTY, Georeference, Reading, count_pixels

if TYPE_CHECKING:
    from PIL import Image

_PLUGINS = {"PNG": "Png", "JPEG": "Jpeg", "GIF": "Gif", "WebP": "WebP", "BMP": "Bmp", "JPEG 2000": "Jpeg2K"}
_PACKBITS = 32773  # TIFF compression that tifffile alone decodes byte by byte, and Pillow fast
_COLOR_CODED = (3, 5, 6, 8)  # TIFF photometric: palette, CMYK, YCbCr, CIELAB; tifffile returns their codes as stored
_RGB, _YCBCR, _JPEG = 2, 6, 7  # photometric, twice, and compression; tifffile converts the latter two to RGB together
_OPACITY = (1, 2)  # TIFF extra samples: associated and unassociated opacity
_GDAL_NODATA = 42113  # the tag, text
# Of a GeoTIFF: tags, keys and their values.
_SCALE, _TIEPOINTS, _TRANSFORMATION, _DIRECTORY, _DOUBLES, _TEXTS = 33550, 33922, 34264, 34735, 34736, 34737
_MODEL, _RASTER, _GEOGRAPHIC, _PROJECTED = 1024, 1025, 2048, 3072
_IS_PROJECTED, _IS_POINT, _USER_DEFINED = 1, 2, 32767
_DECOMPRESSORS: dict[int, Any] = {8: zlib.decompressobj, 32946: zlib.decompressobj, 34925: lzma.LZMADecompressor}
_ORIENTATION_TAG = 274  # of EXIF and TIFF
# Orientation: whether rows and columns are exchanged, then whether rows, and columns, are reversed.
_ORIENTATIONS = {2: (0, 0, 1), 3: (0, 1, 1), 4: (0, 1, 0), 5: (1, 0, 0), 6: (1, 0, 1), 7: (1, 1, 1), 8: (1, 1, 0)}
# Of NIfTI; labels fit the arrays of nibabel, which have their axes in this order.
_AXES = "XYZTC"  # the fifth holds the components of a vector
_HEADER_BYTES = 540  # of NIfTI 2, the longer one
_MAX_OFFSET = 2**24  # bytes of header and extensions

_LETTERS = dict.fromkeys(("c", "ch", "channel", "channels", "band", "bands"), "C")  # by the name of an axis
_LETTERS |= {"t": "T", "time": "T", "z": "Z", "y": "Y", "x": "X"}


@contextmanager
def decoding(name: str, form: str) -> Iterator[None]:
    """Turn any exception of a decoder into InvalidInput: for a damaged file it may be of nearly any type."""
    try:
        yield
    except (InvalidInput, MissingExtra):
        raise
    except Exception as error:
        why, rule = " ".join(str(error).split())[:200] or type(error).__name__, f"be a whole {form} file"
        raise InvalidInput(
            f"cannot read {name}: the {form} file is damaged or incomplete ({why})", name, rule
        ) from None


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


def decode_by_pillow(name: str, form: str, file: BinaryIO, max_pixels: int) -> tuple[NDArray[Any], Reading]:
    """Return the first frame of an image that Pillow decodes, and how it is stored.

    Image.open would warn of sizes that are allowed here, and supports formats that start other programs.
    """
    from PIL import Image

    image_class: Any = getattr(import_module(f"PIL.{_PLUGINS[form]}ImagePlugin"), f"{_PLUGINS[form]}ImageFile")
    if form == "JPEG":  # opening looks into EXIF for a resolution, and warns if it is damaged
        image_class = type("Jpeg", (image_class,), {"getexif": lambda self: Image.Exif()})
    with decoding(name, form):
        image = image_class(file)
    check_size(name, image.size[::-1], max_pixels)
    notes, n_frames = [], getattr(image, "n_frames", 1)
    if n_frames > 1:
        notes.append(f"the first of {n_frames} frames")
    if image.tile and "16" in str(image.tile[0][3]) and len(image.getbands()) > 1:
        notes.append("the upper 8 of 16 bits")
    array, stored = _from_pillow(name, form, image)
    array = upright(array, _exif_orientation(image.info.get("exif", b"")), rows=0)
    return array, replace(stored, note=", ".join(notes))


def pillow_array(image: object) -> tuple[NDArray[Any], Reading] | None:
    """Return the pixels of an image of Pillow in memory, as it is turned there; None for any other object."""
    pillow = sys.modules.get("PIL.Image")  # there is no such image before it is imported
    if pillow is None or not isinstance(image, pillow.Image):
        return None
    array, stored = _from_pillow("image", image.format or image.mode, image)
    return array, replace(stored, form="array")


def _from_pillow(name: str, form: str, image: "Image.Image") -> tuple[NDArray[Any], Reading]:
    """Return the pixels of an image of Pillow, and how they are stored."""
    with decoding(name, form):
        array = pillow_pixels(image)
    has_opacity = array.ndim == 3 and array.shape[-1] == 4
    return array, Reading(form, "YXS"[: array.ndim], has_opacity, channel_kind="color")


def pillow_pixels(image: "Image.Image") -> NDArray[Any]:
    """Return the pixels of an image of Pillow as gray, RGB or RGBA."""
    if image.mode.startswith("I") and image.format == "PNG":  # 16-bit gray: "I;16", or "I" in older versions
        gray = np.array(image).astype(np.uint16)
        transparent = image.info.get("transparency")  # one gray level
        if transparent is None:
            return gray
        return np.dstack([gray, gray, gray, np.where(gray == transparent, 0, 65535)]).astype(np.uint16)
    if image.mode[0] in "IF":
        return np.array(image)
    if "transparency" in image.info or image.mode[-1] in "Aa":
        return np.array((image.convert("LA") if image.mode == "La" else image).convert("RGBA"))
    return np.array(image.convert("L" if image.mode in ("1", "L") else "RGB"))


def _exif_orientation(exif: bytes) -> int:
    """Return the orientation in EXIF data, or 1 (upright); Pillow's own parser warns if other entries are damaged."""
    data = exif.removeprefix(b"Exif\0\0")
    order = ">" if data.startswith(b"MM") else "<"
    try:
        (start,) = struct.unpack_from(order + "I", data, 4)
        (n_entries,) = struct.unpack_from(order + "H", data, start)
        for entry in range(start + 2, start + 2 + 12 * n_entries, 12):
            tag, value = struct.unpack_from(order + "H6xH", data, entry)
            if tag == _ORIENTATION_TAG:
                return value
    except struct.error:  # truncated
        pass
    return 1


def decode_tiff(name: str, form: str, file: BinaryIO, max_pixels: int) -> tuple[NDArray[Any], Reading]:
    """Return the first series of a TIFF: OME and ImageJ files, and others that tifffile wrote, name their axes."""
    import tifffile

    with unprinted("tifffile") as warnings:
        with decoding(name, form):
            tiff = tifffile.TiffFile(file)
            series = tiff.series[0]
            file.seek(tiff.pages.next_page_offset or 0)
            if file.read(tiff.tiff.offsetsize) != bytes(tiff.tiff.offsetsize):  # tifffile would ignore missing pages
                raise ValueError(f"{len(tiff.pages)} pages and no end")
        check_metadata(name, warnings)
        with tiff:
            check_size(name, series.shape, max_pixels, series.axes)
            with decoding(name, form):
                array, axes, has_opacity = _tiff_pixels(file, series, series.axes, max_pixels)
    note = f"the first of {len(tiff.series)} series" if len(tiff.series) > 1 else ""
    return array, replace(reading_of_tiff(series.keyframe, axes, has_opacity), form=form, note=note)


def reading_of_tiff(page: Any, axes: str, has_opacity: bool | None) -> Reading:
    """Return how a series of a TIFF is stored whose first page this is, with what its tags say of its numbers."""
    try:
        nodata = float(page.tags.valueof(_GDAL_NODATA))
    except (TypeError, ValueError):  # none, or no number
        nodata = None
    about: Any = {"channel_kind": kind_of_samples(page, axes)}
    if orientation(page) == 1:  # else the tags are those of the image before it was turned
        about["georeference"] = _georeference_of(page)
    return Reading("TIFF", axes, has_opacity, nodata=nodata, **about)


def _georeference_of(page: Any) -> Georeference | None:
    """Return where a page of a TIFF lies; None without tags, or with such as give no affine transform."""
    values = {tag: page.tags.valueof(tag) for tag in (_SCALE, _TIEPOINTS, _TRANSFORMATION, _DIRECTORY)}
    matrix, scale, tiepoint = values[_TRANSFORMATION], values[_SCALE], values[_TIEPOINTS]
    try:
        if matrix is not None:
            a, b, c, d, e, f = (float(matrix[i]) for i in (0, 1, 3, 4, 5, 7))
        elif scale is not None and tiepoint is not None:
            a, b, d, e = float(scale[0]), 0.0, 0.0, -float(scale[1])
            c, f = float(tiepoint[3] - a * tiepoint[0]), float(tiepoint[4] - e * tiepoint[1])
        else:
            return None
        entries = zip(*((values[_DIRECTORY] or ())[first::4] for first in range(4, 8)), strict=True)
        keys = {int(key): int(value) for key, location, _, value in entries if location == 0}  # of whole numbers
    except (TypeError, ValueError, IndexError):  # damaged
        return None
    if keys.get(_RASTER) == _IS_POINT:  # the corner of a pixel is then half a pixel before its place
        c, f = c - (a + b) / 2, f - (d + e) / 2
    system = keys.get(_PROJECTED) if keys.get(_MODEL) == _IS_PROJECTED else keys.get(_GEOGRAPHIC)
    tags = [page.tags[tag] for tag in (*values, _DOUBLES, _TEXTS) if tag in page.tags]
    stored = tuple((int(tag.code), int(tag.dtype), int(tag.count), tag.value, True) for tag in tags)
    return Georeference((a, b, c, d, e, f), system if system and system < _USER_DEFINED else None, stored)


def check_metadata(name: str, warnings: list[str]) -> None:
    """Raise InvalidInput if tifffile warns that metadata of OME, of ImageJ or of its own do not fit the pages."""
    for warning in warnings:
        if " series " in warning:
            invalid(name, "have metadata that fit its pages", warning.split("> ")[-1])


def has_opacity(page: Any) -> bool:
    """Return whether the last sample of a page is opacity."""
    return any(sample in _OPACITY for sample in page.extrasamples)


def kind_of_samples(page: Any, axes: str) -> Literal["color", "measured"] | None:
    """Return what the channels of a TIFF mean; None where it has no axis of channels by name."""
    if page.photometric in (_RGB, *_COLOR_CODED) or has_opacity(page):
        return "color"
    return "measured" if set(axes) & set(CHANNEL_NAMES) else None


def orientation(page: Any) -> int:
    """Return the orientation of a page, 1 if it is upright."""
    return int(page.tags.valueof(_ORIENTATION_TAG, 1))


def stores_intensities(page: Any) -> bool:
    """Return whether tifffile returns intensities for a page, and not codes of colors, or an error."""
    import tifffile

    try:
        tifffile.TIFF.DECOMPRESSORS[page.compression]
    except KeyError:
        return False
    return page.photometric not in _COLOR_CODED or (page.photometric == _YCBCR and page.compression == _JPEG)


def _tiff_pixels(file: BinaryIO, series: Any, axes: str, max_pixels: int) -> tuple[NDArray[Any], str, bool]:
    """Return the pixels of a TIFF series, upright, their axes, and whether the last channel is opacity."""
    page = series.keyframe
    if page.photometric not in _COLOR_CODED and page.compression != _PACKBITS:
        try:
            _check_decompressed_sizes(file, series)
            array = upright(series.asarray(), orientation(page), rows=axes.index("Y"))
            return array, axes, has_opacity(page)
        except (KeyError, ValueError) as error:  # for example LZW without the package imagecodecs
            if "imagecodecs" not in str(error):
                raise
    from PIL import Image, TiffImagePlugin

    stacked = "".join(axis for axis in axes if axis not in "YXS")
    if stacked not in ("", *"IQTZ") or page.imagewidth * page.imagelength > (Image.MAX_IMAGE_PIXELS or max_pixels):
        raise ValueError(f"{page.compression.name} pages of this size or order, which need the package imagecodecs")
    file.seek(0)
    image, pages = TiffImagePlugin.TiffImageFile(file), []
    for part in series.pages:
        image.seek(part.index)
        pages.append(pillow_pixels(image))  # upright
    array = np.stack(pages) if stacked else pages[0]
    return array, stacked + "YXS"[: pages[0].ndim], True


def _check_decompressed_sizes(file: BinaryIO, series: Any) -> None:
    """Raise ValueError for strips or tiles that decompress to more than their pixels: tifffile has no such limit."""
    for page in series.pages:
        key = page.keyframe
        if key.compression not in _DECOMPRESSORS:
            continue
        max_bytes = math.prod(key.chunks) * key.bitspersample // 8 + 1
        for offset, count in zip(page.dataoffsets, page.databytecounts, strict=True):
            file.seek(offset)
            content = _DECOMPRESSORS[key.compression]().decompress(file.read(count), max_bytes + 1)
            if len(content) > max_bytes:
                raise ValueError("strips that unpack to more than their pixels")


def decode_npy(name: str, form: str, file: BinaryIO, max_pixels: int) -> tuple[NDArray[Any], Reading]:
    """Return the array in an NPY file; Python objects, which could run code, are not loaded."""
    headers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    with decoding(name, form):
        shape = headers[np.lib.format.read_magic(file)](file)[0]
        file.seek(0)
    if len(shape) not in (2, 3, 4):
        invalid(name, "hold one image or volume, with or without channels", shape)
    check_size(name, shape, max_pixels)
    with decoding(name, form):
        return np.load(file, allow_pickle=False), Reading(form)


def decode_nifti(name: str, form: str, file: BinaryIO, max_pixels: int) -> tuple[NDArray[Any], Reading]:
    """Return the array in a NIfTI file, which may be compressed by gzip; `form` is "NIfTI" or "gzip"."""
    stream: Any = gzip.GzipFile(fileobj=file) if form == "gzip" else file
    with decoding(name, "NIfTI"):
        head = stream.read(_HEADER_BYTES)
        stream.seek(0)
    image_class = _image_class(name, head)
    with unprinted("nibabel.global"), decoding(name, "NIfTI"):
        header = image_class.header_class.from_fileobj(io.BytesIO(head))
        shape, dtype, offset = header.get_data_shape(), header.get_data_dtype(), header.get_data_offset()
    check_size(name, tuple(map(int, shape)), max_pixels)
    if offset > _MAX_OFFSET:  # all before it would be unpacked and read
        invalid(name, f"have its numbers in the first {_MAX_OFFSET} bytes", offset)
    if len(shape) > len(_AXES):
        invalid(name, f"have at most {len(_AXES)} axes", shape)
    colors = dtype.names or ()
    if not colors:
        check_numbers(name, dtype)
    with unprinted("nibabel.global"), decoding(name, "NIfTI"):
        array = np.asanyarray(image_class.from_stream(stream).dataobj)
    axes = "".join(EMPTY if length == 1 and axis >= 2 else _AXES[axis] for axis, length in enumerate(array.shape))
    if colors:
        array, axes = np.stack([array[color] for color in colors], axis=-1), f"{axes}S"
    return array, Reading("NIfTI", axes, len(colors) == 4, channel_kind="color" if colors else "measured")


def _image_class(name: str, head: bytes) -> Any:
    """Return the class of nibabel that reads files which begin with these bytes."""
    if head[344:348] == b"ni1\0" or head[4:8] == b"ni2\0":
        invalid(name, "be one NIfTI file, .nii or .nii.gz, with header and numbers", "the header alone (.hdr)")
    if head[344:348] != b"n+1\0" and head[4:8] != b"n+2\0":
        invalid(name, "be an image; of compressed files only NIfTI, .nii.gz, is read", "another compressed file")
    with needing(f"{name}: NIfTI files need nibabel: pip install 'spinseg[nifti]'"):
        import nibabel
    return nibabel.Nifti2Image if head[4:8] == b"n+2\0" else nibabel.Nifti1Image


def decode_zarr(name: str, path: str, max_pixels: int) -> tuple[NDArray[Any], Reading]:
    """Return the array in a folder of Zarr, of the finest level where there are several."""
    with decoding(name, "Zarr"):
        array, stored = open_zarr(name, path)
    check_numbers(name, np.dtype(array.dtype))
    check_size(name, array.shape, max_pixels, stored.axes)
    with decoding(name, "Zarr"):
        return np.asarray(array[...]), stored


def open_zarr(name: str, path: str) -> tuple[Any, Reading]:
    """Return the array of a folder of Zarr without reading its numbers, and how it is stored.

    In a group it is the finest level of the first image that OME-NGFF describes.
    """
    with needing("folders of Zarr need zarr: pip install 'spinseg[zarr]'"):
        import zarr
    found = zarr.open(path, mode="r")
    names: Sequence[Any] = ()
    if isinstance(found, zarr.Group):
        scale, found = _multiscale(zarr, found)
        names = [axis["name"] if isinstance(axis, dict) else axis for axis in scale.get("axes", [])]
        found = found[scale["datasets"][0]["path"]]
    elif found.metadata.zarr_format == 3:
        names = found.metadata.dimension_names or ()
    if not names or any(not each for each in names):
        return found, Reading("Zarr")
    if len(names) != len(found.shape):
        rule = f"have the {len(names)} axes that its metadata name, {', '.join(map(str, names))}"
        invalid(name, rule, tuple(found.shape))
    letters = [_LETTERS.get(str(each).lower(), "A") for each in names]
    axes = [EMPTY if n == 1 and each not in "YXC" else each for each, n in zip(letters, found.shape, strict=True)]
    return found, Reading("OME-Zarr", "".join(axes), has_opacity=False)


def _multiscale(zarr: Any, group: Any) -> tuple[dict[str, Any], Any]:
    """Return the first multiscale image of a group, and the group that holds it: itself, or its first series."""
    attributes = dict(group.attrs)
    attributes = attributes.get("ome", attributes)
    if "multiscales" in attributes:
        return attributes["multiscales"][0], group
    series = group.get("0")
    if isinstance(series, zarr.Group):
        return _multiscale(zarr, series)
    raise ValueError("no array, and no multiscales of OME-NGFF")
