"""Reading of images and masks from files; writing of label images and RGB images."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from spinseg._run.atomic import FilePath, atomic_write, printable
from spinseg.image.formats import decode
from spinseg.image.layout import ChannelAxis, ChannelKind, Georeference, IntensityRange, Reading
from spinseg.image.picture import Picture, mask_of, picture_of

MAX_PIXELS = 2**27  # 512 x 512 x 512: 0.8 GB in standard form (uint16, three channels), before anything is computed
TIFF_TILE = 512  # pixels of the sides of the tiles of an image that is written in parts
MAX_PNG_LABELS = 65_535  # that 16 bits hold beside one number for the outside


def read_image(path: FilePath) -> NDArray[Any]:
    """Return the image or the volume in a file, upright, as (H, W), (H, W, C), (Z, Y, X) or (Z, Y, X, C).

    Palettes and CMYK are converted to RGB, transparency to RGBA, and color profiles are ignored. Of an animation the
    first frame is read, and of a TIFF the first series of equal pages, with its numbers as stored even if 0 is white.
    Pillow reduces color to 8 bits in a 16-bit PNG and in a 16-bit TIFF compressed by LZW. Files of more than
    `MAX_PIXELS` pixels, where up to four channels count once, are rejected before they are decoded.
    """
    array, reading = _decode(path)
    arranged = reading.arrange(array)
    return np.ascontiguousarray(arranged[..., 0] if reading.channel_axis is None else arranged)


def read_picture(
    path: FilePath,
    *,
    channel_axis: ChannelAxis = "auto",
    channel_kind: ChannelKind = "auto",
    mask: ArrayLike | None = None,
    intensity_range: IntensityRange | None = None,
    max_pixels: int = MAX_PIXELS,
) -> Picture:
    """Return the image in a file in standard form; its `reading` says how the file was read.

    With "auto" the file decides which axis holds the channels, and whether one is opacity: OME-TIFF, ImageJ, OME-Zarr
    and NIfTI files name their axes. Where a file does not, the rule of `as_picture` decides. A number is that of an
    axis in the order of the file. So it is with `channel_kind`: a TIFF says whether its channels are red, green and
    blue, and those of OME-TIFF, of ImageJ and, with more than 8 bits, of OME-Zarr are measured. Files of more than
    `max_pixels` pixels are rejected before they are decoded.

    Examples
    --------
    >>> import spinseg as ss
    >>> from spinseg.pictures import PICTURES
    >>> picture = ss.read_picture(PICTURES["coffee"].path)
    >>> picture.shape, picture.n_channels
    ((400, 600), 3)
    """
    array, stored = decode(path, max_pixels)
    return picture_of(array, stored, channel_axis, mask, intensity_range, name=printable(path), kind=channel_kind)


def read_mask(path: FilePath) -> NDArray[np.bool_]:
    """Return the mask in a file: True where its image is neither black nor fully transparent, without channels.

    Any number but 0 and NaN, in any channel, is inside. JPEG turns some black into nearly black, which is inside, too.
    """
    return mask_of(*_decode(path))


def _decode(path: FilePath) -> tuple[NDArray[Any], Reading]:
    """Return the array in a file, and which of its axes are which."""
    array, stored = decode(path, MAX_PIXELS)
    return array, stored.laid_out(array.shape, name=printable(path))


def write_labels_tif(path: FilePath, labels: NDArray[np.integer], place: Georeference | None = None) -> None:
    """Write a label image or volume as TIFF, as uint16 if the numbers fit and as int32 otherwise."""
    write_tif(path, labels.astype(type_of_labels(int(labels.min()), int(labels.max()))), place)


def type_of_labels(least: int, largest: int) -> type[np.integer]:
    """Return the type of the labels in a TIFF file."""
    return np.uint16 if least >= 0 and largest < 2**16 else np.int32


def write_tif_in_parts(
    path: FilePath,
    part: Callable[[tuple[slice, slice]], NDArray[Any]],
    shape: tuple[int, int],
    dtype: DTypeLike,
    place: Georeference | None = None,
) -> None:
    """Write an image of one channel as a tiled TIFF, of which `part` returns a box; as `write_tif` otherwise."""
    import tifffile

    def tiles() -> Iterator[NDArray[Any]]:
        for top, left in product(*(range(0, length, TIFF_TILE) for length in shape)):
            found = part((slice(top, top + TIFF_TILE), slice(left, left + TIFF_TILE)))
            yield np.pad(found.astype(dtype), [(0, TIFF_TILE - length) for length in found.shape])

    options = {"shape": shape, "dtype": dtype, "tile": (TIFF_TILE, TIFF_TILE)} | _tiff_options(2, place)
    atomic_write(path, lambda file: tifffile.imwrite(file, tiles(), **options))


def _tiff_options(n_axes: int, place: Georeference | None) -> dict[str, Any]:
    # Without "photometric" planes three pixels wide would be taken for color.
    options: Any = {"photometric": "minisblack", "compression": "zlib", "metadata": {"axes": "ZYX"[-n_axes:]}}
    return options | {"extratags": () if place is None else place.tags}


def write_tif(path: FilePath, numbers: NDArray[Any], place: Georeference | None = None) -> None:
    """Write an image or volume of one channel as TIFF, with the numbers as they are; planes of a volume are pages.

    With a `place` it is a GeoTIFF.
    """
    import tifffile

    atomic_write(path, lambda file: tifffile.imwrite(file, numbers, **_tiff_options(numbers.ndim, place)))


def write_labels_png(path: FilePath, labels: NDArray[np.integer], colors: NDArray[np.uint8]) -> None:
    """Write an image of at most MAX_PNG_LABELS labels as PNG; -1, if it is there, becomes the largest number.

    Numbers that fit into 8 bits are indices into a palette of `colors`, (more than the largest number, 3), where 255 is
    white if it stands for -1. Others are 16-bit gray.
    """
    from PIL import Image

    n_numbers, has_outside = int(labels.max()) + 1, int(labels.min()) < 0
    if n_numbers + has_outside > 2**8:
        image = Image.fromarray(labels.astype(np.uint16))  # -1 becomes 65535
    else:
        image = Image.fromarray(labels.astype(np.uint8))
        entries = np.full((256, 3), 255, np.uint8)  # all of them: Pillow packs fewer colors into fewer bits
        entries[:n_numbers] = colors[:n_numbers]
        image.putpalette(entries.tobytes())
    atomic_write(path, lambda file: image.save(file, "PNG"))


def write_png(path: FilePath, pixels: NDArray[Any]) -> None:
    """Write an image as PNG: RGB, uint8 of shape (H, W, 3), or gray, uint8 or uint16 of shape (H, W)."""
    from PIL import Image

    image = Image.fromarray(pixels)
    atomic_write(path, lambda file: image.save(file, "PNG"))
