"""PNG, JPEG, GIF, WebP, BMP and JPEG 2000, decoded by Pillow."""

import struct
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from spinseg.image.formats.stored import ORIENTATION_TAG, StoredArray, check_size, decoding, upright

if TYPE_CHECKING:
    from PIL import Image


def decode_by_pillow(name: str, form: str, file: BinaryIO, max_pixels: int) -> StoredArray:
    """Return the first frame of an image that Pillow decodes.

    The classes of formats are called by name: Image.open does the same, but warns of sizes that are allowed here, and
    supports formats that start other programs.
    """
    image: Any
    with decoding(name, form):
        image = _image_class(form)(file)
    check_size(name, image.size[::-1], max_pixels)
    note = _note(image)
    with decoding(name, form):
        array = pillow_pixels(image)
    array = upright(array, _exif_orientation(image.info.get("exif", b"")), rows=0)
    return StoredArray(array, form, "YXS"[: array.ndim], array.ndim == 3 and array.shape[-1] == 4, note)


def _image_class(form: str) -> Any:
    """Return the class of Pillow that reads a format."""
    from PIL import (
        BmpImagePlugin,
        GifImagePlugin,
        Image,
        Jpeg2KImagePlugin,
        JpegImagePlugin,
        PngImagePlugin,
        WebPImagePlugin,
    )

    class Jpeg(JpegImagePlugin.JpegImageFile):
        def getexif(self) -> Image.Exif:  # opening looks there for a resolution, and warns if it is damaged
            return Image.Exif()

    return {
        "PNG": PngImagePlugin.PngImageFile,
        "JPEG": Jpeg,
        "GIF": GifImagePlugin.GifImageFile,
        "WebP": WebPImagePlugin.WebPImageFile,
        "BMP": BmpImagePlugin.BmpImageFile,
        "JPEG 2000": Jpeg2KImagePlugin.Jpeg2KImageFile,
    }[form]


def _note(image: Any) -> str:
    """Return what is left out of an image: frames after the first, and the lower bits of 16-bit color."""
    notes = []
    n_frames = getattr(image, "n_frames", 1)
    if n_frames > 1:
        notes.append(f"the first of {n_frames} frames")
    if image.tile and "16" in str(image.tile[0][3]) and len(image.getbands()) > 1:
        notes.append("the upper 8 of 16 bits")
    return ", ".join(notes)


def pillow_pixels(image: "Image.Image") -> NDArray[Any]:
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


def _exif_orientation(exif: bytes) -> int:
    """Return the orientation in EXIF data, or 1 (upright); Pillow's own parser warns if other entries are damaged."""
    data = exif.removeprefix(b"Exif\0\0")
    order = ">" if data.startswith(b"MM") else "<"
    try:
        (start,) = struct.unpack_from(order + "I", data, 4)
        (n_entries,) = struct.unpack_from(order + "H", data, start)
        for entry in range(start + 2, start + 2 + 12 * n_entries, 12):
            tag, value = struct.unpack_from(order + "H6xH", data, entry)
            if tag == ORIENTATION_TAG:
                return value
    except struct.error:  # truncated
        pass
    return 1
