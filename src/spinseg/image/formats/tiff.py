"""TIFF, decoded by tifffile, and by Pillow where tifffile would need the package imagecodecs."""

import logging
import lzma
import math
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from spinseg._validation import invalid
from spinseg.image.formats.pillow import pillow_pixels
from spinseg.image.formats.stored import ORIENTATION_TAG, StoredArray, check_size, decoding, upright

_PACKBITS = 32773  # TIFF compression that tifffile alone decodes byte by byte, and Pillow fast
_COLOR_CODED = (3, 5, 6, 8)  # TIFF photometric: palette, CMYK, YCbCr, CIELAB; tifffile returns their codes as stored
_YCBCR, _JPEG = 6, 7  # photometric and compression; tifffile converts them to RGB together
_OPACITY = (1, 2)  # TIFF extra samples: associated and unassociated opacity
_GDAL_NODATA = 42113  # the tag, text
_DECOMPRESSORS: dict[int, Any] = {8: zlib.decompressobj, 32946: zlib.decompressobj, 34925: lzma.LZMADecompressor}


def decode_tiff(name: str, form: str, file: BinaryIO, max_pixels: int) -> StoredArray:
    """Return the first series of a TIFF: OME and ImageJ files, and others that tifffile wrote, name their axes."""
    import tifffile

    with decoding(name, form):
        with series_warnings() as warnings:
            tiff = tifffile.TiffFile(file)
            series = tiff.series[0]
        file.seek(tiff.pages.next_page_offset or 0)
        if file.read(tiff.tiff.offsetsize) != bytes(tiff.tiff.offsetsize):  # tifffile would ignore missing pages
            raise ValueError(f"{len(tiff.pages)} pages and no end")
    if warnings:
        invalid(name, "have metadata that fit its pages", warnings[0])
    with tiff:
        check_size(name, series.shape, max_pixels, series.axes)
        with decoding(name, form):
            array, axes, has_opacity = _tiff_pixels(file, series, series.axes, max_pixels)
    note = f"the first of {len(tiff.series)} series" if len(tiff.series) > 1 else ""
    return StoredArray(array, form, axes, has_opacity, note, _nodata(series.keyframe))


@contextmanager
def series_warnings() -> Iterator[list[str]]:
    """Collect what tifffile has to say on metadata of OME, of ImageJ or of its own that do not fit the pages."""
    messages: list[str] = []
    thread = threading.get_ident()

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            message = record.getMessage()
            if record.thread == thread and record.levelno >= logging.WARNING and " series " in message:
                messages.append(message.split("> ")[-1])

    log, handler = logging.getLogger("tifffile"), Collector()
    if not log.handlers:  # else its messages on a damaged file appear on the terminal beside ours
        log.addHandler(logging.NullHandler())
    log.addHandler(handler)
    try:
        yield messages
    finally:
        log.removeHandler(handler)


def has_opacity(page: Any) -> bool:
    """Return whether the last sample of a page is opacity."""
    return any(sample in _OPACITY for sample in page.extrasamples)


def orientation(page: Any) -> int:
    """Return the orientation of a page, 1 if it is upright."""
    return int(page.tags.valueof(ORIENTATION_TAG, 1))


def _nodata(page: Any) -> float | None:
    """Return the value that GDAL declares for pixels without data; None where there is none, or it is no number."""
    try:
        return float(page.tags.valueof(_GDAL_NODATA))
    except (TypeError, ValueError):
        return None


def stores_intensities(page: Any) -> bool:
    """Return whether tifffile returns intensities for a page, and not codes of colors or an error.

    It leaves palettes and other codes of colors as they are, but for JPEG, and needs imagecodecs for many compressions.
    """
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
