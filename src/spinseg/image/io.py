"""Reading of images and masks from files; writing of label images and RGB images."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinseg._run.atomic import FilePath, atomic_write, printable
from spinseg._validation import integer_array, invalid
from spinseg.image.formats import decode
from spinseg.image.layout import ChannelAxis, IntensityRange
from spinseg.image.picture import Picture, picture_of

MAX_PIXELS = 2**27  # 512 x 512 x 512: 0.8 GB in standard form (uint16, three channels), before anything is computed
MAX_PNG_LABELS = 65_535  # that 16 bits hold beside one number for the outside


def read_image(path: FilePath) -> NDArray[Any]:
    """Return the image or the volume in a file, upright, as an array that `as_picture` accepts.

    Shapes are (H, W), (H, W, C), (Z, Y, X) and (Z, Y, X, C), with the number type of the file. Palettes and CMYK are
    converted to RGB, transparency to RGBA. Only the first frame of an animation is read, and the first series of equal
    pages of a TIFF, with its numbers as stored even if 0 is white. Color profiles are ignored. Pillow reduces color
    to 8 bits in a 16-bit PNG and in a 16-bit TIFF compressed by LZW. Files of more than `MAX_PIXELS` pixels, where up
    to four channels count once, are rejected before they are decoded. An array of five channels may look like a volume;
    `read_picture` distinguishes them.

    Raises
    ------
    ValueError, OSError
        One line with the file, the rule, and what was found.
    """
    stored = decode(path, MAX_PIXELS)
    layout = stored.layout("auto", printable(path))
    array = layout.arrange(stored.array)
    return np.ascontiguousarray(array[..., 0] if layout.channel_axis is None else array)


def read_picture(
    path: FilePath,
    *,
    channel_axis: ChannelAxis = "auto",
    mask: ArrayLike | None = None,
    intensity_range: IntensityRange | None = None,
    max_pixels: int = MAX_PIXELS,
) -> Picture:
    """Return the image in a file in standard form; its `reading` says how the file was read.

    With "auto" the file decides which axis holds the channels, and whether one is opacity: OME-TIFF, ImageJ, OME-Zarr
    and NIfTI files name their axes. Where a file does not, the rule of `as_picture` decides. A number is that of an
    axis in the order of the file. Files of more than `max_pixels` pixels are rejected before they are decoded.

    Examples
    --------
    >>> import spinseg as ss
    >>> from spinseg.pictures import PICTURES
    >>> picture = ss.read_picture(PICTURES["coffee"].path)
    >>> picture.shape, picture.n_channels
    ((400, 600), 3)
    """
    return picture_of(decode(path, max_pixels), channel_axis, mask, intensity_range, name=printable(path))


def read_mask(path: FilePath) -> NDArray[np.bool_]:
    """Return the mask in a file: True where its image is neither black nor fully transparent, without channels.

    Any number but 0 and NaN, in any channel, is inside. JPEG turns some black into nearly black, which is inside, too.
    """
    stored = decode(path, MAX_PIXELS)
    layout = stored.layout("auto", printable(path))
    inside = layout.arrange(np.nan_to_num(stored.array) != 0)
    visible: NDArray[np.bool_] = np.any(inside[..., :-1] if layout.has_opacity else inside, axis=-1)
    return visible & inside[..., -1] if layout.has_opacity else visible


def write_labels_tif(path: FilePath, labels: ArrayLike) -> None:
    """Write a label image or volume as TIFF, with the numbers as they are; each plane of a volume is a page.

    The type is uint16 if the numbers fit, and otherwise int32.
    """
    array = _check_label_image(labels)
    fits_uint16 = int(array.min()) >= 0 and int(array.max()) < 2**16
    write_tif(path, array.astype(np.uint16 if fits_uint16 else np.int32))


def write_tif(path: FilePath, numbers: NDArray[Any]) -> None:
    """Write an image or volume of one channel as TIFF, with the numbers and their type as they are."""
    import tifffile

    # Without "photometric" planes three pixels wide would be taken for color.
    options: Any = {"photometric": "minisblack", "compression": "zlib", "metadata": {"axes": "ZYX"[-numbers.ndim :]}}
    atomic_write(path, lambda file: tifffile.imwrite(file, numbers, **options))


def write_labels_png(path: FilePath, labels: ArrayLike, colors: ArrayLike) -> None:
    """Write a label image as PNG, with the numbers as they are; -1, if it is there, becomes the largest number.

    Numbers that fit into 8 bits are indices into a palette of `colors`, uint8 of shape (more than the largest number,
    3), where 255 is white if it stands for -1. Others are 16-bit gray.
    """
    from PIL import Image

    array = _check_label_image(labels)
    n_numbers, has_outside = int(array.max()) + 1, int(array.min()) < 0
    if array.ndim != 2 or n_numbers + has_outside > 2**16:
        rule = f"be one picture of at most {MAX_PNG_LABELS} labels for PNG"
        invalid("labels", rule, f"{n_numbers} of shape {array.shape}")
    palette = np.asarray(colors)
    if palette.dtype != np.uint8 or palette.shape[1:] != (3,) or len(palette) < n_numbers:
        invalid("colors", f"be uint8 of shape ({n_numbers}, 3)", f"{palette.dtype} of shape {palette.shape}")
    if n_numbers + has_outside > 2**8:
        image = Image.fromarray(array.astype(np.uint16))  # -1 becomes 65535
    else:
        image = Image.fromarray(array.astype(np.uint8))
        entries = np.full((256, 3), 255, np.uint8)  # all of them: Pillow packs fewer colors into fewer bits
        entries[:n_numbers] = palette[:n_numbers]
        image.putpalette(entries.tobytes())
    atomic_write(path, lambda file: image.save(file, "PNG"))


def write_png(path: FilePath, pixels: ArrayLike) -> None:
    """Write an image as PNG: RGB, uint8 of shape (H, W, 3), or gray, uint8 or uint16 of shape (H, W)."""
    from PIL import Image

    array = np.asarray(pixels)
    kind = (array.dtype.name, *array.shape[2:])
    if array.ndim < 2 or not array.size or kind not in (("uint8", 3), ("uint8",), ("uint16",)):
        rule = "be uint8 of shape (H, W, 3) or (H, W), or uint16 of shape (H, W)"
        invalid("pixels", rule, f"{array.dtype} of {array.shape}")
    image = Image.fromarray(array)
    atomic_write(path, lambda file: image.save(file, "PNG"))


def _check_label_image(labels: ArrayLike) -> NDArray[Any]:
    """Return the labels of an image or a volume as an array, or raise InvalidInput."""
    array = integer_array("labels", labels)
    if array.ndim not in (2, 3) or not array.size:
        invalid("labels", "have two or three axes and at least one pixel", array.shape)
    low, high = int(array.min()), int(array.max())
    if low < -1 or high >= 2**31:
        invalid("labels", "be -1 outside and below 2147483648", low if low < -1 else high)
    return array
