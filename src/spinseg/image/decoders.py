"""Decoding of image files: PNG, JPEG, GIF, WebP and BMP by Pillow, TIFF by tifffile, NPY by NumPy.

Pillow and tifffile come with scikit-image; both are imported only where they are used.
"""

import lzma
import math
import os
import stat
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from spinseg._validation import invalid
from spinseg.image.picture import ChannelAxis
from spinseg.parallel.atomic import FilePath, printable

if TYPE_CHECKING:
    from PIL import Image

Decoded = tuple[NDArray[Any], ChannelAxis]  # an array, and the `channel_axis` to pass to `as_picture` with it

_FORMATS = {  # by the first bytes of the content, since the name of a file may be wrong
    b"\x89PNG\r\n\x1a\n": "PNG",
    b"\xff\xd8\xff": "JPEG",
    b"GIF8": "GIF",
    b"RIFF": "WebP",
    b"BM": "BMP",
    b"II*\0": "TIFF",
    b"MM\0*": "TIFF",
    b"II+\0": "TIFF",
    b"MM\0+": "TIFF",
    b"\x93NUMPY": "NPY",
}
_RULE = "be a PNG, JPEG, GIF, WebP, BMP, TIFF or NPY file"
_NPY_HEADERS: dict[Any, Any] = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
_ORIENTATION_TAG = 274  # of EXIF and TIFF
# Orientation: whether rows and columns are exchanged, then whether rows, and columns, are reversed.
_ORIENTATIONS = {2: (0, 0, 1), 3: (0, 1, 1), 4: (0, 1, 0), 5: (1, 0, 0), 6: (1, 0, 1), 7: (1, 1, 1), 8: (1, 1, 0)}
_PACKBITS = 32773  # TIFF compression that tifffile alone decodes byte by byte, and Pillow fast
_COLOR_CODED = (3, 5, 6, 8)  # TIFF photometric: palette, CMYK, YCbCr, CIELAB; tifffile returns their codes as stored
_DECOMPRESSORS: dict[int, Any] = {8: zlib.decompressobj, 32946: zlib.decompressobj, 34925: lzma.LZMADecompressor}


def decode(path: FilePath, max_pixels: int) -> Decoded:
    """Return the array in an image file of at most `max_pixels` pixels, upright and with channels last."""
    name = printable(path)
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # opening a pipe would block
            invalid(name, _RULE, "a folder" if os.path.isdir(path) else "a pipe or a device")
        with open(path, "rb") as file:
            head = file.read(512)
            file.seek(0)
            form = next((form for start, form in _FORMATS.items() if head.startswith(start)), "")
            is_text = min(head, default=0) >= 9  # the first bytes of every image file include lower ones
            if not form or is_text:
                invalid(name, _RULE, "text" if is_text else head[:16] or "an empty file")
            decoder = {"TIFF": _decode_tiff, "NPY": _decode_npy}.get(form, _decode_by_pillow)
            array, channel_axis = decoder(name, form, file, max_pixels)
    except OSError as error:
        raise type(error)(f"{name} must be a file that can be read; received {error.strerror or error}") from None
    if array.dtype.kind not in "biuf":
        invalid(name, "hold numbers", array.dtype.name)
    return np.ascontiguousarray(array, array.dtype.newbyteorder("=")), channel_axis


@contextmanager
def _decoding(name: str, form: str) -> Iterator[None]:
    """Turn any exception of a decoder into InvalidInput: for a damaged file it may be of nearly any type."""
    try:
        yield
    except Exception as error:
        invalid(name, f"be a whole {form} file", str(error) or type(error).__name__)


def _check_size(name: str, shape: tuple[int, ...], max_pixels: int) -> None:
    """Raise InvalidInput for too many pixels before memory is allocated: a few bytes of a header may claim any size."""
    channels = shape[-1] if len(shape) > 2 and shape[-1] <= 4 else 1
    if math.prod(shape) > max_pixels * channels:
        invalid(name, f"have at most {max_pixels} pixels", shape)
    if 0 in shape:
        invalid(name, "hold at least one pixel", shape)


def _decode_npy(name: str, form: str, file: BinaryIO, max_pixels: int) -> Decoded:
    """Return the array in an NPY file; Python objects, which could run code, are not loaded."""
    with _decoding(name, form):
        shape = _NPY_HEADERS[np.lib.format.read_magic(file)](file)[0]
        file.seek(0)
    if len(shape) not in (2, 3, 4):
        invalid(name, "hold one picture or volume, with or without channels", shape)
    _check_size(name, shape, max_pixels)
    with _decoding(name, form):
        return np.load(file, allow_pickle=False), "auto"


def _decode_by_pillow(name: str, form: str, file: BinaryIO, max_pixels: int) -> Decoded:
    """Return the first frame of an image that Pillow decodes.

    The classes of formats are called by name: Image.open does the same, but warns of sizes that are allowed here, and
    supports formats that start other programs.
    """
    from PIL import BmpImagePlugin, GifImagePlugin, Image, JpegImagePlugin, PngImagePlugin, WebPImagePlugin

    class Jpeg(JpegImagePlugin.JpegImageFile):
        def getexif(self) -> Image.Exif:  # opening looks there for a resolution, and warns if it is damaged
            return Image.Exif()

    classes: dict[str, Any] = {
        "PNG": PngImagePlugin.PngImageFile,
        "JPEG": Jpeg,
        "GIF": GifImagePlugin.GifImageFile,
        "WebP": WebPImagePlugin.WebPImageFile,
        "BMP": BmpImagePlugin.BmpImageFile,
    }
    with _decoding(name, form):
        image = classes[form](file)
    _check_size(name, image.size[::-1], max_pixels)
    with _decoding(name, form):
        array = _pillow_pixels(image)
    return _upright(array, _exif_orientation(image.info.get("exif", b"")), rows=0), "auto"


def _pillow_pixels(image: "Image.Image") -> NDArray[Any]:
    """Return the pixels of an image of Pillow as grey, RGB or RGBA."""
    if image.mode.startswith("I") and image.format == "PNG":  # 16-bit gray: "I;16", or "I" in older versions
        gray = np.array(image).astype(np.uint16)
        transparent = image.info.get("transparency")  # one gray level
        if transparent is None:
            return gray
        return np.dstack([gray, gray, gray, np.where(gray == transparent, 0, 65535)]).astype(np.uint16)
    if image.mode[0] in "IF":
        return np.array(image)
    if "transparency" in image.info or image.mode[-1] in "Aa":
        return np.array(image.convert("RGBA"))
    return np.array(image.convert("L" if image.mode in ("1", "L") else "RGB"))


def _upright(array: NDArray[Any], orientation: int, rows: int) -> NDArray[Any]:
    """Return the array turned as its orientation tag says; `rows` is the axis of rows, and columns follow it."""
    transposed, flip_rows, flip_columns = _ORIENTATIONS.get(orientation, (0, 0, 0))
    array = array.swapaxes(rows, rows + 1) if transposed else array
    return np.flip(array, (rows,) * flip_rows + (rows + 1,) * flip_columns)


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


def _decode_tiff(name: str, form: str, file: BinaryIO, max_pixels: int) -> Decoded:
    """Return the first series of a TIFF, channels last."""
    import logging

    import tifffile

    log = logging.getLogger("tifffile")
    if not log.handlers:  # else its messages on a damaged file appear on the terminal beside ours
        log.addHandler(logging.NullHandler())
    with _decoding(name, form):
        tiff = tifffile.TiffFile(file)
        series = tiff.series[0]
        file.seek(tiff.pages.next_page_offset or 0)
        if file.read(tiff.tiff.offsetsize) != bytes(tiff.tiff.offsetsize):  # tifffile would ignore missing pages
            raise ValueError(f"{len(tiff.pages)} pages and no end")
    with tiff:
        axes = "ZYXS" if series.axes == "QQYX" else series.axes  # four axes that the writer did not name
        n_channel_axes = axes.count("C") + axes.count("S")
        if n_channel_axes > 1 or len(axes) - n_channel_axes not in (2, 3):
            invalid(name, "hold one picture or volume, with or without channels", f"axes {axes} of {series.shape}")
        _check_size(name, tuple(series.shape[i] for i in _channels_last_order(axes)), max_pixels)
        with _decoding(name, form):
            array, axes, has_opacity = _tiff_pixels(file, series, axes, max_pixels)
    array = array.transpose(_channels_last_order(axes))
    n_channels = array.shape[-1] if "C" in axes or "S" in axes else 0
    if n_channels == 2 and has_opacity:
        array = array[..., [0, 0, 0, 1]]
    return array, -1 if n_channels and n_channels != 3 and not has_opacity else "auto"


def _channels_last_order(axes: str) -> list[int]:
    """Return the order of tifffile's axes in which channels (C) or samples (S) are last."""
    return sorted(range(len(axes)), key=lambda i: axes[i] in "CS")


def _tiff_pixels(file: BinaryIO, series: Any, axes: str, max_pixels: int) -> tuple[NDArray[Any], str, bool]:
    """Return the pixels of a TIFF series, upright, their axes, and whether the last channel is opacity."""
    page = series.keyframe
    if page.photometric not in _COLOR_CODED and page.compression != _PACKBITS:
        try:
            _check_decompressed_sizes(file, series)
            array = _upright(series.asarray(), page.tags.valueof(_ORIENTATION_TAG, 1), rows=axes.index("Y"))
            return array, axes, any(sample in (1, 2) for sample in page.extrasamples)
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
        pages.append(_pillow_pixels(image))  # upright
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
