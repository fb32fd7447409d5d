"""Pictures and masks from files, and label images and pictures to files.

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
from numpy.typing import ArrayLike, NDArray

from spinseg._validation import integer_array, invalid
from spinseg.image.picture import ChannelAxis, Picture, as_picture
from spinseg.parallel.atomic import FilePath, atomic_write, printable

if TYPE_CHECKING:
    from PIL import Image

MAX_PIXELS = 2**27  # 512 x 512 x 512: 0.8 GB in standard form (uint16, three channels), before anything is computed

MOST_LABELS_PNG = 65_535  # in 16 bits, with one number for the outside

_KINDS = {  # by how the content begins, for names lie
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
_PACKBITS = 32773  # a compression of TIFF that tifffile alone unpacks byte by byte, and Pillow fast
_NPY_HEADERS: dict[Any, Any] = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
_COLOUR_CODED = (3, 5, 6, 8)  # TIFF photometric: palette, CMYK, YCbCr, CIELAB; tifffile hands out their bare codes

# EXIF and TIFF orientation: whether rows and columns change places, then whether rows, and columns, run backwards.
_ORIENTATIONS = {2: (0, 0, 1), 3: (0, 1, 1), 4: (0, 1, 0), 5: (1, 0, 0), 6: (1, 0, 1), 7: (1, 1, 1), 8: (1, 1, 0)}


def read_image(path: FilePath) -> NDArray[Any]:
    """The picture or the volume in a file, upright, as an array that `as_picture` accepts.

    Shapes are (H, W), (H, W, C), (Z, Y, X) and (Z, Y, X, C), of the number type stored. Palettes and CMYK come as RGB,
    transparency as RGBA; of an animation comes the first frame, of a TIFF the first series of equal pages, its numbers
    as stored even where 0 is white. Files of more than `MAX_PIXELS` pixels are refused before they are decoded; up to
    four channels count once. Colour profiles are ignored. Pillow reduces colour to 8 bits in a 16-bit PNG and in a
    16-bit TIFF packed by LZW. In this array five channels look like a volume: `read_picture` knows better.

    Raises
    ------
    ValueError, OSError
        One line with the file, the rule, and what was found.
    """
    return _read(path)[0]


def read_picture(
    path: FilePath,
    *,
    channel_axis: ChannelAxis = "auto",
    mask: ArrayLike | None = None,
    most_pixels: int = MAX_PIXELS,
) -> Picture:
    """The picture in a file in standard form, as `as_picture` of `read_image`; `channel_axis` and `mask` as there.

    A TIFF says which of its axes are channels, and whether one is opacity: here five channels are not taken for a
    volume, nor red, green, blue and infrared for RGBA. What is transparent is outside. Files of more than `most_pixels`
    are refused undecoded.
    """
    array, own_axis = _read(path, most_pixels)
    return as_picture(array, channel_axis=own_axis if channel_axis == "auto" else channel_axis, mask=mask)


def read_mask(path: FilePath) -> NDArray[np.bool_]:
    """Where a picture is neither black nor fully transparent, its shape without channels: the inside of a mask.

    Any number but 0 and NaN, in any channel, is inside. JPEG blurs black into nearly black, which is inside, too.
    """
    array, channel_axis = _read(path)
    inside = np.nan_to_num(array) != 0
    if array.ndim == 4 or (array.ndim == 3 and (channel_axis == -1 or array.shape[-1] <= 4)):
        rgba = array.shape[-1] == 4 and channel_axis == "auto"
        inside = inside[..., :3].any(axis=-1) & inside[..., 3] if rgba else inside.any(axis=-1)
    return inside


def write_labels_tif(path: FilePath, labels: ArrayLike) -> None:
    """Write a label image or volume as TIFF, number for number; a volume has a page a plane.

    16 bits unsigned where the numbers fit; else, as with -1 outside a mask, 32 bits signed.
    """
    import tifffile

    array = _label_image(labels)
    fits = int(array.min()) >= 0 and int(array.max()) < 2**16
    # Colour would be guessed of planes three pixels wide.
    options: Any = {"photometric": "minisblack", "compression": "zlib", "metadata": {"axes": "ZYX"[-array.ndim :]}}
    numbers = array.astype(np.uint16 if fits else np.int32)
    atomic_write(path, lambda file: tifffile.imwrite(file, numbers, **options))


def write_labels_png(path: FilePath, labels: ArrayLike, colours: ArrayLike) -> None:
    """Write a label image as PNG, number for number; what is outside, -1, gets the largest number there is.

    Up to 255 labels are indices into a palette of `colours`, uint8 of shape (at least the number of labels, 3), and the
    outside is 255, white. More labels, up to 65,535, are 16-bit grey, and the outside is 65535.
    """
    from PIL import Image

    array = _label_image(labels)
    n_labels = int(array.max()) + 1
    if array.ndim != 2 or n_labels > MOST_LABELS_PNG:
        invalid(
            "labels",
            f"be one picture of at most {MOST_LABELS_PNG} labels for PNG",
            f"{n_labels} of shape {array.shape}",
        )
    palette = np.asarray(colours)
    if palette.dtype != np.uint8 or palette.shape[1:] != (3,) or len(palette) < n_labels:
        invalid("colours", f"be uint8 of shape ({n_labels}, 3)", f"{palette.dtype} of shape {palette.shape}")
    if n_labels > 255:
        image = Image.fromarray(array.astype(np.uint16))  # -1 becomes 65535
    else:
        image = Image.fromarray(array.astype(np.uint8))
        filled = np.zeros((256, 3), np.uint8)  # all of it: Pillow packs few colours into fewer bits
        filled[:n_labels], filled[255] = palette[:n_labels], 255
        image.putpalette(filled.tobytes())
    atomic_write(path, lambda file: image.save(file, "PNG"))


def write_png(path: FilePath, pixels: ArrayLike) -> None:
    """Write a picture as PNG: colours, uint8 of shape (H, W, 3), or grey, uint8 or uint16 of shape (H, W)."""
    from PIL import Image

    array = np.asarray(pixels)
    kind = (array.dtype.name, *array.shape[2:])
    if array.ndim < 2 or not array.size or kind not in (("uint8", 3), ("uint8",), ("uint16",)):
        invalid(
            "pixels",
            "be uint8 of shape (H, W, 3) or (H, W), or uint16 of shape (H, W)",
            f"{array.dtype} of {array.shape}",
        )
    image = Image.fromarray(array)
    atomic_write(path, lambda file: image.save(file, "PNG"))


def _read(path: FilePath, most_pixels: int = MAX_PIXELS) -> tuple[NDArray[Any], ChannelAxis]:
    """The array in a file, and where `as_picture` finds its channels."""
    name = printable(path)
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # a pipe would be waited for
            invalid(name, _RULE, "a folder" if os.path.isdir(path) else "a pipe or a device")
        with open(path, "rb") as file:
            head = file.read(512)
            file.seek(0)
            kind = next((kind for start, kind in _KINDS.items() if head.startswith(start)), "")
            text = min(head, default=0) >= 9  # every picture begins with lower bytes, too; text has none of them
            if not kind or text:
                invalid(name, _RULE, "text" if text else head[:16] or "an empty file")
            reader = {"TIFF": _read_tiff, "NPY": _read_npy}.get(kind, _read_pillow)
            array, channel_axis = reader(name, kind, file, most_pixels)
    except OSError as error:
        raise type(error)(f"{name} must be a file that can be read; received {error.strerror or error}") from None
    if array.dtype.kind not in "biuf":
        invalid(name, "hold numbers", array.dtype.name)
    return np.ascontiguousarray(array, array.dtype.newbyteorder("=")), channel_axis


def _read_pillow(name: str, kind: str, file: BinaryIO, most_pixels: int) -> tuple[NDArray[Any], ChannelAxis]:
    """The first frame of a picture that Pillow reads.

    Its file classes are called by name: Image.open does the same, but warns of sizes that are allowed here, and knows
    formats that start other programs.
    """
    from PIL import BmpImagePlugin, GifImagePlugin, Image, JpegImagePlugin, PngImagePlugin, WebPImagePlugin

    class Jpeg(JpegImagePlugin.JpegImageFile):
        def getexif(self) -> Image.Exif:  # opening looks there for a resolution, and warns where it is damaged
            return Image.Exif()

    classes: dict[str, Any] = {
        "PNG": PngImagePlugin.PngImageFile,
        "JPEG": Jpeg,
        "GIF": GifImagePlugin.GifImageFile,
        "WebP": WebPImagePlugin.WebPImageFile,
        "BMP": BmpImagePlugin.BmpImageFile,
    }
    with _decoding(name, kind):
        image = classes[kind](file)
    _affordable(name, image.size[::-1], most_pixels)
    with _decoding(name, kind):
        array = _pixels(image)
    return _upright(array, _orientation(image.info.get("exif", b"")), rows=0), "auto"


def _read_tiff(name: str, kind: str, file: BinaryIO, most_pixels: int) -> tuple[NDArray[Any], ChannelAxis]:
    """The first series of a TIFF, channels last."""
    import logging

    import tifffile

    log = logging.getLogger("tifffile")
    if not log.handlers:  # else what it logs of a damaged file appears on the terminal beside our line
        log.addHandler(logging.NullHandler())
    with _decoding(name, kind):
        tiff = tifffile.TiffFile(file)
        series = tiff.series[0]
        file.seek(tiff.pages.next_page_offset or 0)
        if file.read(tiff.tiff.offsetsize) != bytes(tiff.tiff.offsetsize):  # tifffile would go on with fewer pages
            raise ValueError(f"{len(tiff.pages)} pages and no end")
    with tiff:
        axes = "ZYXS" if series.axes == "QQYX" else series.axes  # four axes that the writer did not name
        n_channel_axes = axes.count("C") + axes.count("S")
        if n_channel_axes > 1 or len(axes) - n_channel_axes not in (2, 3):
            invalid(name, "hold one picture or volume, with or without channels", f"axes {axes} of {series.shape}")
        _affordable(name, tuple(series.shape[i] for i in _channels_last(axes)), most_pixels)
        with _decoding(name, kind):
            array, axes, opacity = _unpacked(file, series, axes)
    array = array.transpose(_channels_last(axes))
    n_channels = array.shape[-1] if "C" in axes or "S" in axes else 0
    if n_channels == 2 and opacity:
        array = array[..., [0, 0, 0, 1]]
    return array, -1 if n_channels and n_channels != 3 and not opacity else "auto"


def _channels_last(axes: str) -> list[int]:
    """The order of tifffile's axes that puts channels (C) or samples (S) behind the others."""
    return sorted(range(len(axes)), key=lambda i: axes[i] in "CS")


def _unpacked(file: BinaryIO, series: Any, axes: str) -> tuple[NDArray[Any], str, bool]:
    """The numbers of a TIFF series, upright, their axes, and whether the last channel is opacity."""
    page = series.keyframe
    if page.photometric not in _COLOUR_CODED and page.compression != _PACKBITS:
        try:
            _check_unpacked_sizes(file, series)
            array = _upright(series.asarray(), page.tags.valueof(274, 1), rows=axes.index("Y"))
            return array, axes, any(sample in (1, 2) for sample in page.extrasamples)
        except (KeyError, ValueError) as error:  # LZW, for one, where the package imagecodecs is missing
            if "imagecodecs" not in str(error):
                raise
    from PIL import Image, TiffImagePlugin

    stacked = "".join(axis for axis in axes if axis not in "YXS")
    if stacked not in ("", *"IQTZ") or page.imagewidth * page.imagelength > (Image.MAX_IMAGE_PIXELS or MAX_PIXELS):
        raise ValueError(f"{page.compression.name} pages of this size or order, which need the package imagecodecs")
    file.seek(0)
    image, pages = TiffImagePlugin.TiffImageFile(file), []
    for part in series.pages:
        image.seek(part.index)
        pages.append(_pixels(image))  # upright
    array = np.stack(pages) if stacked else pages[0]
    return array, stacked + "YXS"[: pages[0].ndim], True


def _check_unpacked_sizes(file: BinaryIO, series: Any) -> None:
    """Refuse strips or tiles that unpack to more than their pixels: tifffile would unpack all that is there."""
    unpackers: dict[int, Any] = {8: zlib.decompressobj, 32946: zlib.decompressobj, 34925: lzma.LZMADecompressor}
    for page in series.pages:
        key = page.keyframe
        if key.compression not in unpackers:
            continue
        most = math.prod(key.chunks) * key.bitspersample // 8 + 1
        for offset, count in zip(page.dataoffsets, page.databytecounts, strict=True):
            file.seek(offset)
            if len(unpackers[key.compression]().decompress(file.read(count), most + 1)) > most:
                raise ValueError("strips that unpack to more than their pixels")


def _read_npy(name: str, kind: str, file: BinaryIO, most_pixels: int) -> tuple[NDArray[Any], ChannelAxis]:
    """The array in an .npy file; one of Python objects, which would run code, is refused."""
    with _decoding(name, kind):
        shape = _NPY_HEADERS[np.lib.format.read_magic(file)](file)[0]
        file.seek(0)
    if len(shape) not in (2, 3, 4):
        invalid(name, "hold one picture or volume, with or without channels", shape)
    _affordable(name, shape, most_pixels)
    with _decoding(name, kind):
        return np.load(file, allow_pickle=False), "auto"


@contextmanager
def _decoding(name: str, kind: str) -> Iterator[None]:
    """Whatever a decoder raises, as one line: of damaged files it may be nearly anything."""
    try:
        yield
    except Exception as error:
        invalid(name, f"be a whole {kind} file", str(error) or type(error).__name__)


def _affordable(name: str, shape: tuple[int, ...], most_pixels: int) -> None:
    """Refuse too many pixels, claimed perhaps by a header of a few bytes, before there is memory for them."""
    channels = shape[-1] if len(shape) > 2 and shape[-1] <= 4 else 1
    if math.prod(shape) > most_pixels * channels:
        invalid(name, f"have at most {most_pixels} pixels", shape)
    if 0 in shape:
        invalid(name, "hold at least one pixel", shape)


def _pixels(image: "Image.Image") -> NDArray[Any]:
    """What Pillow decodes, as grey, RGB or RGBA numbers."""
    if image.mode.startswith("I") and image.format == "PNG":  # 16-bit grey: "I;16", or "I" in older versions
        grey = np.array(image).astype(np.uint16)
        clear = image.info.get("transparency")  # the one number that is transparent
        return (
            grey
            if clear is None
            else np.dstack([grey, grey, grey, np.where(grey == clear, 0, 65535)]).astype(np.uint16)
        )
    if image.mode[0] in "IF":
        return np.array(image)
    if "transparency" in image.info or image.mode[-1] in "Aa":
        return np.array(image.convert("RGBA"))
    return np.array(image.convert("L" if image.mode in ("1", "L") else "RGB"))


def _upright(array: NDArray[Any], orientation: int, rows: int) -> NDArray[Any]:
    """The array turned as its orientation asks; its columns follow the axis `rows`."""
    turned, backwards, mirrored = _ORIENTATIONS.get(orientation, (0, 0, 0))
    array = array.swapaxes(rows, rows + 1) if turned else array
    return np.flip(array, (rows,) * backwards + (rows + 1,) * mirrored)


def _orientation(exif: bytes) -> int:
    """The orientation in EXIF data, 1 (upright) where there is none: Pillow warns where other entries are damaged."""
    data = exif.removeprefix(b"Exif\0\0")
    order = ">" if data.startswith(b"MM") else "<"
    try:
        (start,) = struct.unpack_from(order + "I", data, 4)
        (n_entries,) = struct.unpack_from(order + "H", data, start)
        for entry in range(start + 2, start + 2 + 12 * n_entries, 12):
            tag, value = struct.unpack_from(order + "H6xH", data, entry)
            if tag == 274:
                return value
    except struct.error:  # cut short
        pass
    return 1


def _label_image(labels: ArrayLike) -> NDArray[Any]:
    """Labels of a picture or a volume, checked."""
    array = integer_array("labels", labels)
    if array.ndim not in (2, 3) or not array.size:
        invalid("labels", "have two or three axes and at least one pixel", array.shape)
    low, high = int(array.min()), int(array.max())
    if low < -1 or high >= 2**31:
        invalid("labels", "be -1 outside and below 2147483648", low if low < -1 else high)
    return array
