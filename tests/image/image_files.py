"""Image arrays, and image files made by hand, for tests of reading and writing."""

import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image
from skimage import data

RGB = np.ascontiguousarray(data.astronaut()[100:130, 60:100])
GRAY = RGB[..., 0].copy()
DEEP = GRAY.astype(np.uint16) * 250 + 3  # nothing that 8 bits could hold
ALPHA = np.where(np.arange(40) < 10, 0, np.where(np.arange(40) < 20, 128, 255)).astype(np.uint8) * np.ones(
    (30, 1), "u1"
)
RGBA = np.dstack([RGB, ALPHA])


def saved(path, image, form, **options):
    (image if isinstance(image, Image.Image) else Image.fromarray(image)).save(path, form, **options)
    return path


def png(width, height, depth, color_type, rows=b"", extra=b""):
    """A PNG file by hand: what Pillow will not write, or what lies about its size."""

    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, color_type, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + extra + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def tiff(width, height):
    """A TIFF file of 120 bytes that claims a size."""
    tags = ((256, 4, width), (257, 4, height), (258, 3, 8), (259, 3, 1), (262, 3, 1), (273, 4, 8), (277, 3, 1))
    tags += ((278, 4, height), (279, 4, 100))
    entries = b"".join(struct.pack("<HHII", tag, kind, 1, value) for tag, kind, value in tags)
    return b"II*\0" + struct.pack("<IH", 8, len(tags)) + entries + bytes(4)


def jpeg(width, height):
    """A JPEG file that claims a size."""
    content = io.BytesIO()
    Image.fromarray(RGB).save(content, "JPEG")
    return content.getvalue().replace(struct.pack(">BHH", 8, 30, 40), struct.pack(">BHH", 8, height, width))


def webp(width, height):
    canvas = bytes(4) + struct.pack("<I", width - 1)[:3] + struct.pack("<I", height - 1)[:3]
    return b"RIFF" + struct.pack("<I", 22 + 90) + b"WEBPVP8X" + struct.pack("<I", 10) + canvas + bytes(90)


def npy(shape, dtype="|u1"):
    header = repr({"descr": dtype, "fortran_order": False, "shape": shape}).encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header


def refusal(call, *args, kind=ValueError):
    """The one line of an error."""
    with pytest.raises(kind) as caught:
        call(*args)
    text = str(caught.value)
    assert "\n" not in text and (text.startswith("cannot ") or (" must " in text and ": got " in text))
    return text
