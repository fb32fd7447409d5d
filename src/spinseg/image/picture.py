"""Images in standard form: 16-bit codes with channels last, and which pixels are inside."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinseg._advice import Advice, Setting
from spinseg._validation import check_array, check_choice, invalid
from spinseg.image.decoders import pillow_array
from spinseg.image.intensity import (
    MAX_CODE,
    check_intensity_range,
    extremes,
    infer_intensity_range,
    leave_out_missing,
    looks_like_opacity,
    opacity_range,
    to_codes,
)
from spinseg.image.layout import ChannelAxis, ChannelKind, IntensityRange, Mask, Reading, may_hold_channels

# Linear sRGB to CIE XYZ relative to the white point (D65, 2 degrees), with the numbers of skimage.color.
_XYZ_OF_RGB = np.array(
    [[0.412453, 0.357580, 0.180423], [0.212671, 0.715160, 0.072169], [0.019334, 0.119193, 0.950227]]
) / np.array([[0.95047], [1.0], [1.08883]])
_LAB_OF_ROOTS = np.array([[0.0, 116.0, 0.0], [500.0, -500.0, 0.0], [0.0, 200.0, -200.0]])

COLOR_RANGES = ((0.0, 1.0), (0.0, 255.0), (0.0, float(MAX_CODE)))  # of numbers that programs write for color
OTHERWISE_COLOR = Advice("if its channels are colors, use ", Setting("channel_kind", "color"))
OTHERWISE_OPACITY = Advice("if the last of its four channels is opacity, use ", Setting("channel_kind", "color"))
OTHERWISE_NO_OPACITY = Advice("if the last channel is not opacity, use ", Setting("channel_kind", "measured"))
OTHERWISE_MEASURED = Advice("if its channels are not colors, use ", Setting("channel_kind", "measured"))


@dataclass(frozen=True, eq=False)
class Picture:
    """An image in standard form: nothing downstream depends on the dtype and the value range of the input.

    Intensities are stored as 16-bit codes, from 0 (none) to 65535 (full). The same image as uint8, uint16 or float has
    the same codes, bit by bit.

    Attributes
    ----------
    codes : (*shape, n_channels) array of uint16
        Three channels of color are sRGB, and a gray image has three equal ones.
    inside : (*shape) array of bool, or None if all pixels are inside
        False where a pixel is masked or transparent.
    reading : Reading or None
        How the image was read, where it came from an array or a file.
    channel_kind : {"color", "measured"}
        "color" for sRGB and gray; "measured" for channels without such a meaning, as of a microscope or a satellite.
        Any number of channels but three is measured.

    Examples
    --------
    >>> import numpy as np, spinseg as ss
    >>> picture = ss.as_picture(np.zeros((4, 5, 3), np.uint8))
    >>> picture.shape, picture.n_channels
    ((4, 5), 3)
    """

    codes: NDArray[np.uint16]
    inside: Mask | None = None
    reading: Reading | None = None
    channel_kind: Literal["color", "measured"] = "color"

    def __post_init__(self) -> None:
        if self.n_channels != 3:
            object.__setattr__(self, "channel_kind", "measured")

    @property
    def is_color(self) -> bool:
        """Whether the channels are red, green and blue, which are equal in a gray image."""
        return self.channel_kind == "color"

    @property
    def shape(self) -> tuple[int, ...]:
        """(rows, columns) or (planes, rows, columns)."""
        return self.codes.shape[:-1]

    @property
    def n_channels(self) -> int:
        """Number of channels; three for gray and color."""
        return self.codes.shape[-1]

    @cached_property
    def values(self) -> NDArray[np.float32]:
        """Intensities from 0 to 1, (*shape, n_channels)."""
        return (np.arange(MAX_CODE + 1) / MAX_CODE).astype(np.float32)[self.codes]

    @cached_property
    def colors(self) -> NDArray[np.float32]:
        """Coordinates in which color distances are measured, (*shape, n_channels): CIELAB for color.

        Measured channels are `values` times 100 / sqrt(n_channels), so that the distance from no to full intensity in
        all channels is 100, as it is from black to white in CIELAB.
        """
        if self.is_color:
            return cielab(self.codes)
        return self.values * np.float32(100 / np.sqrt(self.n_channels))

    @cached_property
    def rgb(self) -> NDArray[np.uint8]:
        """8-bit RGB for display, (*shape, 3): sRGB, or the first three channels as red, green and blue."""
        rgb = np.zeros((*self.shape, 3), np.uint8)
        rgb[..., : self.n_channels] = (self.codes[..., :3].astype(np.uint32) + 128) // 257
        return rgb


def as_picture(
    image: Picture | ArrayLike,
    *,
    channel_axis: ChannelAxis = "auto",
    channel_kind: ChannelKind = "auto",
    mask: ArrayLike | None = None,
    intensity_range: IntensityRange | None = None,
) -> Picture:
    """Return the image in standard form; the array passed is never changed.

    Parameters
    ----------
    image : Picture or array
        (H, W), (H, W, C), (Z, Y, X) or (Z, Y, X, C). One channel is gray. In a NumPy masked array a pixel is outside
        if any of its channels is masked. So is, with a warning, a pixel of a value such as -9999 far outside the other
        numbers, which marks missing data (docs/howto/files.md has the rule). An image of Pillow is converted to gray,
        RGB or RGBA, as a file is, but not turned by its EXIF orientation.
    channel_axis : int, None or "auto"
        The axis of the channels; None for an image without. "auto" takes the last axis of a 4-D image. It takes the
        last axis of a 3-D image if its length is at most 4, or if it is at most 16 and the others are at least eight
        times as long. Any other 3-D image is a volume; if its first axis is as short, and may hold channels, a warning
        names `channel_axis`. With "auto" four channels of color are RGBA if the fourth looks like opacity: most of its
        numbers that are not 0 are 1, 255 or 65535. Pixels of opacity 0 are then outside, since their color is
        arbitrary, and others are composited over white. Four channels are measured otherwise.
    channel_kind : {"auto", "color", "measured"}
        Whether three channels are sRGB, or measured on their own, as by a microscope or a satellite. "auto" takes
        numbers that run from 0 to 1, 255 or 65535, by the rule for the intensity range, for color, and others for
        measured.
    mask : (*shape) array of bool, optional
        False outside, in addition to masked and transparent pixels. Numbers outside do not influence the intensity
        range, and may be NaN or infinite.
    intensity_range : (float, float), optional
        The black and white levels; numbers beyond are clipped. By default one rule, which docs/howto/files.md has,
        infers them for all channels: uint8 from 0 to 255, numbers in 0 to 1 as they are, 10 to 14 bits from the
        smallest to the largest number that is no outlier.

    Returns
    -------
    Picture
        The image with its codes, colors, mask and `reading`.

    Examples
    --------
    >>> import numpy as np
    >>> import spinseg as ss
    >>> ss.as_picture(np.zeros((4, 6), np.uint8)).codes.shape
    (4, 6, 3)
    >>> print(ss.as_picture(np.zeros((4, 6), np.uint8)).reading)
    an image of 6 x 4 pixels, gray, 8 bits, intensities from 0 to 255
    """
    if isinstance(image, Picture):
        if intensity_range is not None:
            invalid("intensity_range", "be None for a Picture, which has one", intensity_range)
        if channel_kind != "auto":
            invalid("channel_kind", "be 'auto' for a Picture, which has one", channel_kind)
        return image if mask is None else replace(image, inside=_combine_masks(mask, image.inside, image.shape))
    masked = np.ma.getmaskarray(image) if isinstance(image, np.ma.MaskedArray) else None
    array, stored = pillow_array(image) or (check_array("image", image), Reading())
    return picture_of(array, stored, channel_axis, mask, intensity_range, masked, kind=channel_kind)


def picture_of(
    stored: NDArray,
    reading: Reading,
    channel_axis: ChannelAxis,
    mask: ArrayLike | None,
    intensity_range: IntensityRange | None,
    masked: Mask | None = None,
    name: str = "image",
    kind: ChannelKind = "auto",
) -> Picture:
    """Return the image in an array as stored; `masked` is its mask, and `name` that of the file, for errors."""
    file = replace(reading, has_opacity=False) if kind == "measured" else reading
    reading, is_file = file.laid_out(stored.shape, channel_axis, name), file.form != "array"

    def measured() -> Picture:
        """The image with four measured channels, where nothing but their number speaks for opacity."""
        picture = picture_of(stored, file, channel_axis, mask, intensity_range, masked, name, "measured")
        assert picture.reading is not None
        otherwise = Advice.joined("; ", filter(None, [OTHERWISE_OPACITY, picture.reading.otherwise]))
        return replace(picture, reading=replace(picture.reading, otherwise=otherwise))

    array = reading.arrange(stored)
    hidden = None if masked is None else np.any(reading.arrange(masked), axis=-1)
    if kind == "auto" and reading.has_opacity:
        shown = _combine_masks(mask, _visible(array, hidden, False), reading.shape)
        if not looks_like_opacity(array[..., 3] if shown is None else array[shown, 3]):
            if file.has_opacity is None:
                return measured()
            reading = replace(reading, otherwise=OTHERWISE_NO_OPACITY)  # programs declare it for any fourth channel
    inside = _combine_masks(mask, _visible(array, hidden, bool(reading.has_opacity)), reading.shape)
    channels = array[..., :3] if reading.has_opacity else array
    found_range = None if intensity_range is None else check_intensity_range(intensity_range)
    inside, left_out, keep = leave_out_missing(channels, inside, reading.nodata, found_range, is_file)
    # A channel that is full, or empty, everywhere says nothing of the others.
    varied = [c for c in range(channels.shape[-1]) if channels[..., c].min() != channels[..., c].max()]
    by_numbers = partial(infer_intensity_range, channels[..., varied or [0]], inside)
    found_kind, doubt = kind_of_channels(kind, file, channels.shape[-1], array.dtype, by_numbers)
    if found_kind == "measured" and reading.has_opacity:
        return measured()
    if found_range is None:
        found_range = infer_intensity_range(channels, inside)
    elif array.dtype.kind == "f":
        extremes(channels, inside)  # which refuses numbers that are not finite
    codes = to_codes(channels, found_range)
    if reading.has_opacity:
        codes = _composite_over_white(codes, array[..., 3:], inside)
    if codes.shape[-1] == 1:
        codes = np.repeat(codes, 3, axis=-1)
    of_planes = reading.otherwise if len(reading.shape) == 3 and reading.channel_axis is None else None
    reading = replace(
        reading,
        number_type=array.dtype.name,
        intensity_range=found_range,
        note=", ".join(filter(None, [reading.note, *left_out])),
        otherwise=Advice.joined("; ", filter(None, [reading.otherwise, doubt, keep])) or None,
        channel_kind=found_kind,
    )
    if keep and not is_file:
        warnings.warn(f"{left_out[-1]}; {keep}", stacklevel=3)
    if of_planes and not is_file and may_hold_channels(reading.shape[0], reading.shape[1:]):
        planes = Setting("channel_axis", None)
        warnings.warn(f"image was read as {reading}; {of_planes}, and if it holds planes, {planes}", stacklevel=3)
    return Picture(np.ascontiguousarray(codes), inside, reading, found_kind or "color")


def kind_of_channels(
    kind: ChannelKind, file: Reading, n_channels: int, number_type: np.dtype, infer_range: Callable[[], IntensityRange]
) -> tuple[Literal["color", "measured"] | None, str | None]:
    """Return what channels mean, None for gray; and in doubt, what to give if they mean something else."""
    check_choice("channel_kind", kind, get_args(ChannelKind))
    if n_channels == 1:
        return None, None
    if n_channels != 3:
        if kind == "color":
            invalid("channel_kind", f"be 'auto' or 'measured' for an image of {n_channels} channels", kind)
        return "measured", None
    if kind != "auto":
        return kind, None
    if file.channel_kind is not None:
        return file.channel_kind, None
    is_named = "C" in file.axes
    if number_type == np.uint8:
        return "color", OTHERWISE_MEASURED if is_named else None
    if not is_named and infer_range() in COLOR_RANGES:
        return "color", None
    return "measured", OTHERWISE_COLOR


def mask_of(array: NDArray, reading: Reading) -> Mask:
    """Return where an image as stored is neither black nor fully transparent, (*shape)."""
    nonzero = reading.arrange(np.nan_to_num(array) != 0)
    visible: Mask = np.any(nonzero[..., :-1] if reading.has_opacity else nonzero, axis=-1)
    return visible & nonzero[..., -1] if reading.has_opacity else visible


def checked_mask(mask: ArrayLike) -> Mask:
    """Return a mask as bool, False where it is itself masked; raise InvalidInput if it is no mask or empty."""
    if (stored := pillow_array(mask)) is not None:
        array, reading = stored
        mask = mask_of(array, reading.laid_out(array.shape, name="mask"))
    try:
        array = np.ma.filled(mask, False) if isinstance(mask, np.ma.MaskedArray) else np.asarray(mask)
    except ValueError:  # rows of different lengths
        invalid("mask", "be True inside and False outside", mask)
    if array.dtype.kind not in "biu":
        invalid("mask", "be True inside and False outside", array.dtype.name)
    inside = array != 0
    if inside.size and not inside.any():
        invalid("mask", "leave some pixel inside", "all False")
    return inside


def _combine_masks(mask: ArrayLike | None, visible: Mask | None, shape: tuple[int, ...]) -> Mask | None:
    """Return which pixels are inside the mask and visible; None for all."""
    inside = visible
    if mask is not None:
        inside = checked_mask(mask)
        if inside.shape != shape:
            invalid("mask", f"have the image's shape {shape}", inside.shape)
        if visible is not None and not (inside & visible).any():
            invalid("mask", "leave some pixel inside that is neither masked nor transparent", "none")
        inside = inside if visible is None else inside & visible
    return None if inside is None or inside.all() else inside


def _visible(array: NDArray, hidden: Mask | None, has_opacity: bool) -> Mask | None:
    """Return which pixels are neither hidden by a masked array nor transparent; None for all."""
    visible = np.ones(array.shape[:-1], bool)
    if hidden is not None:
        visible &= ~hidden
        if not visible.any():
            invalid("image", "have a pixel that is not masked", "all masked")
    if has_opacity:
        visible &= ~(array[..., -1] <= 0)  # NaN is reported later
        if not visible.any():
            invalid("image", "have a pixel that is not transparent", "an opacity of 0 everywhere")
    return None if visible.all() else visible


def cielab(codes: NDArray[np.uint16]) -> NDArray[np.float32]:
    """Return CIELAB (D65, 2 degrees) of sRGB codes, (*shape, 3): L in 0..100, a and b about -100 to 100.

    This is skimage.color.rgb2lab in single precision, with a table for the transfer function of sRGB.
    """
    xyz = _matrix_product(_linear_intensities()[codes], _XYZ_OF_RGB)
    roots = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + np.float32(16 / 116))
    lab = _matrix_product(roots, _LAB_OF_ROOTS)
    lab[..., 0] -= 16
    return lab


def _matrix_product(values: NDArray[np.float32], matrix: NDArray[np.float64]) -> NDArray[np.float32]:
    """Multiply each pixel by a 3 x 3 matrix, without BLAS, whose rounding may depend on the position of a pixel."""
    first, second, third = np.moveaxis(values, -1, 0)
    rows = matrix.astype(np.float32)
    return np.stack([row[0] * first + row[1] * second + row[2] * third for row in rows], axis=-1)


@lru_cache
def _linear_intensities() -> NDArray[np.float32]:
    """Return the linear intensity of every sRGB code (IEC 61966-2-1)."""
    value = np.arange(MAX_CODE + 1) / MAX_CODE
    return np.where(value > 0.04045, ((value + 0.055) / 1.055) ** 2.4, value / 12.92).astype(np.float32)


def _composite_over_white(codes: NDArray[np.uint16], opacity: NDArray, inside: Mask | None) -> NDArray[np.uint16]:
    """Return alpha * color + (1 - alpha) * white; alpha is the opacity in its own value range, which starts at 0."""
    alpha = to_codes(opacity, opacity_range(opacity, inside)).astype(np.float64) / MAX_CODE
    return np.rint(alpha * codes + (1 - alpha) * MAX_CODE).astype(np.uint16)
