"""What a caller passes as an image, in one standard form."""

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Literal, NamedTuple, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinseg._validation import check_real, invalid
from spinseg.image.intensity import FULL, ValueRange, codes_of, extremes, standard_range, value_range

ChannelAxis = int | Literal["auto"] | None

# Linear sRGB to CIE XYZ over the white point (D65, 2 degrees), as in skimage.color: its matrix and its white.
_XYZ_OF_RGB = np.array(
    [[0.412453, 0.357580, 0.180423], [0.212671, 0.715160, 0.072169], [0.019334, 0.119193, 0.950227]]
) / np.array([[0.95047], [1.0], [1.08883]])
_LAB_OF_ROOTS = np.array([[0.0, 116.0, 0.0], [500.0, -500.0, 0.0], [0.0, 200.0, -200.0]])


@dataclass(frozen=True, eq=False)
class Picture:
    """An image in standard form, so that nothing downstream depends on the dtype or the value range it came in.

    Intensities are held as 16-bit codes, 0 for none and 65535 for full: a uint8 picture, the same as uint16 and the
    same as floats have the same codes, bit by bit.

    Attributes
    ----------
    codes : (*shape, n_channels) array of uint16
        Three channels are sRGB (a grey image has three equal ones); any other number are channels as such.
    inside : (*shape) array of bool, or None where all of it is inside
        False where a pixel is masked or transparent.
    """

    codes: NDArray[np.uint16]
    inside: NDArray[np.bool_] | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns, or planes, rows and columns."""
        return self.codes.shape[:-1]

    @property
    def n_channels(self) -> int:
        """Three for grey and colour."""
        return self.codes.shape[-1]

    @cached_property
    def values(self) -> NDArray[np.float32]:
        """Intensities from 0 to 1, (*shape, n_channels)."""
        return _intensities()[self.codes]

    @cached_property
    def colours(self) -> NDArray[np.float32]:
        """What distances between pixels are measured in: CIELAB of three channels.

        Any other number of channels is scaled by 100 / sqrt(n_channels): from nothing to full in all of them is then a
        distance of 100, as it is from black to white.
        """
        if self.n_channels == 3:
            return cielab(self.codes)
        return self.values * np.float32(100 / np.sqrt(self.n_channels))

    @cached_property
    def rgb(self) -> NDArray[np.uint8]:
        """What to show, (*shape, 3): sRGB, or the first three channels as red, green and blue."""
        shown = np.zeros((*self.shape, 3), np.uint8)
        shown[..., : self.n_channels] = (self.codes[..., :3].astype(np.uint32) + 128) // 257
        return shown


def as_picture(
    image: "Picture | ArrayLike",
    *,
    channel_axis: ChannelAxis = "auto",
    mask: ArrayLike | None = None,
    ends: ValueRange | None = None,
) -> Picture:
    """The image in standard form; the array passed is never changed.

    Parameters
    ----------
    image : Picture or array
        (H, W), (H, W, C), (Z, Y, X) or (Z, Y, X, C). One channel is grey, three are sRGB. Of a NumPy masked array a
        pixel is outside if any of its channels is masked.
    channel_axis : int, None or "auto"
        Where the channels are; None for an image without. "auto" takes the last axis of a 4-D image and one of at most
        4 in a 3-D image, which else is a volume; four channels are then RGBA. Pixels of opacity 0 are outside, since
        their colour is arbitrary; others are laid over white. Four channels on an axis named by its number are just
        channels.
    mask : (*shape) array of bool, optional
        Numbers outside have no say in the range, and may be NaN or infinite. It adds to what is masked or transparent.
    ends : (float, float), optional
        The numbers of no and of full intensity, instead of those below.

    Notes
    -----
    Intensities of uint8 run from 0 to 255. Other numbers, of any type, run

    - from 0 to 1 where those used lie in 0..1,
    - from 0 to 255 where they lie in 0..255 and pass 2,
    - from 0 to 65535 where they lie in 0..65535 and span three quarters of that or more, or are all multiples of 257,
      which is 8 bits spread over 16,
    - from the smallest to the largest that is used otherwise, as with 10, 12 or 14 bits: all channels alike, so that
      they keep their proportions.

    A number is used if five pixels of some 3 x 3 in one plane and channel reach it, or lie beyond. So a few hot or dead
    pixels have no say, but small objects have. At either end that leaves out at most one number in a thousand, and
    none where only one number would be left; what is left out gets no or full intensity.

    Examples
    --------
    >>> as_picture(np.zeros((4, 6), np.uint8)).codes.shape
    (4, 6, 3)
    """
    if isinstance(image, Picture):
        return image if mask is None else replace(image, inside=_within(mask, image.inside, image.shape))
    try:
        array = np.asarray(image)
    except ValueError:  # rows of different lengths
        invalid("image", "be an array of numbers", image)
    if array.dtype.kind not in "buif":
        invalid("image", "be an array of numbers", array.dtype.name)
    array = _channels_last(array, channel_axis)
    has_opacity = array.shape[-1] == 4 and channel_axis == "auto"
    inside = _within(mask, _shown(image, array, channel_axis, has_opacity), array.shape[:-1])
    channels = array[..., :3] if has_opacity else array
    codes = codes_of(channels, _checked_ends(ends) if ends is not None else value_range(channels, inside))
    if has_opacity:
        codes = _over_white(codes, array[..., 3:], inside)
    if codes.shape[-1] == 1:
        codes = np.repeat(codes, 3, axis=-1)
    return Picture(np.ascontiguousarray(codes), inside)


def check_channel_axis(channel_axis: object) -> None:
    """Refuse what is no axis of any image, before there is one."""
    is_auto = isinstance(channel_axis, str) and channel_axis == "auto"
    if not (channel_axis is None or is_auto or _is_whole(channel_axis)):
        invalid("channel_axis", "be None, 'auto' or the number of an axis", channel_axis)


def _is_whole(value: object) -> TypeGuard[int]:
    """Whether a value is a whole number, and not True or False."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


class WorkingCopy(NamedTuple):
    """A picture as it is analysed: what is outside the mask painted over, and large ones reduced by `step`."""

    picture: Picture
    inside: NDArray[np.bool_] | None
    step: int
    original_inside: NDArray[np.bool_] | None
    shape: tuple[int, ...]

    def restored(self, values: NDArray[Any], outside: float) -> NDArray[Any]:
        """Values of the pixels of this copy for those of the original."""
        for axis, length in enumerate(self.shape):
            if self.step > 1:
                values = np.repeat(values, self.step, axis=axis).take(np.arange(length), axis=axis)
        if self.original_inside is None:
            return values
        return np.where(self.original_inside, values, np.asarray(outside, values.dtype))


def working_copy(picture: Picture, inside: NDArray[np.bool_] | None, max_pixels: int | None) -> WorkingCopy:
    """The picture to analyse, of at most `max_pixels` pixels.

    Outside the mask every pixel gets the colour of the nearest inside, so that it has no say. Each pixel of a reduced
    picture is the mean of a block of `step` pixels along each axis, and inside where any of them is.
    """
    from scipy.ndimage import distance_transform_edt

    codes, kept = picture.codes, inside
    if inside is not None:
        nearest = distance_transform_edt(~inside, return_distances=False, return_indices=True)
        codes = codes[tuple(nearest)]
    n_pixels, n_axes = int(np.prod(picture.shape)), len(picture.shape)
    step = 1 if max_pixels is None else max(1, int(np.ceil((n_pixels / max_pixels) ** (1 / n_axes))))
    if step > 1:
        means = _blocks(codes, step, n_axes, np.add) / _block_sizes(picture.shape, step)[..., None]
        codes = np.rint(means).astype(np.uint16)
        kept = None if inside is None else _blocks(inside, step, n_axes, np.logical_or)
    return WorkingCopy(Picture(codes), kept, step, inside, picture.shape)


def _blocks(values: NDArray[Any], step: int, n_axes: int, summary: np.ufunc) -> NDArray[Any]:
    """One value for each block of `step` along the first axes; the last blocks may be smaller."""
    values = values if values.dtype == np.bool_ else values.astype(np.uint64)
    for axis in range(n_axes):
        values = summary.reduceat(values, np.arange(0, values.shape[axis], step), axis=axis)
    return values


def _block_sizes(shape: tuple[int, ...], step: int) -> NDArray[np.float32]:
    """Number of pixels in each block."""
    lengths = [np.diff(np.append(np.arange(0, length, step), length)) for length in shape]
    return np.prod(np.meshgrid(*lengths, indexing="ij"), axis=0).astype(np.float32)


def checked_mask(mask: ArrayLike) -> NDArray[np.bool_]:
    """A mask as bool, refused where it is none or leaves nothing; what is masked in it is outside."""
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


def _within(
    mask: ArrayLike | None, shown: NDArray[np.bool_] | None, shape: tuple[int, ...]
) -> NDArray[np.bool_] | None:
    """What lies inside the mask and is shown; None for all pixels."""
    inside = shown
    if mask is not None:
        inside = checked_mask(mask)
        if inside.shape != shape:
            invalid("mask", f"have the image's shape {shape}", inside.shape)
        if shown is not None and not (inside & shown).any():
            invalid("mask", "leave some pixel inside that is neither masked nor transparent", "none")
        inside = inside if shown is None else inside & shown
    return None if inside is None or inside.all() else inside


def _shown(image: object, array: NDArray, channel_axis: ChannelAxis, has_opacity: bool) -> NDArray[np.bool_] | None:
    """Which pixels are neither masked in a masked array nor transparent; None for all."""
    shown = np.ones(array.shape[:-1], bool)
    if isinstance(image, np.ma.MaskedArray):
        shown &= ~_channels_last(np.ma.getmaskarray(image), channel_axis).any(axis=-1)
        if not shown.any():
            invalid("image", "have a pixel that is not masked", "all masked")
    if has_opacity:
        shown &= ~(array[..., 3] <= 0)  # NaN is told of later
        if not shown.any():
            invalid("image", "have a pixel that is not transparent", "an opacity of 0 everywhere")
    return None if shown.all() else shown


def cielab(codes: NDArray[np.uint16]) -> NDArray[np.float32]:
    """CIELAB (D65, 2 degrees) of sRGB codes, (*shape, 3): L from 0 to 100, a and b about -100 to 100.

    skimage.color.rgb2lab in single precision, with a table for the power law of sRGB.
    """
    xyz = _mixed(_linear()[codes], _XYZ_OF_RGB)
    roots = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + np.float32(16 / 116))
    lab = _mixed(roots, _LAB_OF_ROOTS)
    lab[..., 0] -= 16
    return lab


def _mixed(values: NDArray[np.float32], matrix: NDArray[np.float64]) -> NDArray[np.float32]:
    """Three channels times a matrix, element by element: a BLAS product may depend on where a pixel stands."""
    first, second, third = np.moveaxis(values, -1, 0)
    rows = matrix.astype(np.float32)
    return np.stack([row[0] * first + row[1] * second + row[2] * third for row in rows], axis=-1)


@lru_cache
def _intensities() -> NDArray[np.float32]:
    """Intensity of every code."""
    return (np.arange(FULL + 1) / FULL).astype(np.float32)


@lru_cache
def _linear() -> NDArray[np.float32]:
    """Linear intensity of every sRGB code (IEC 61966-2-1)."""
    value = np.arange(FULL + 1) / FULL
    return np.where(value > 0.04045, ((value + 0.055) / 1.055) ** 2.4, value / 12.92).astype(np.float32)


def _channels_last(array: NDArray, channel_axis: ChannelAxis) -> NDArray:
    """A view of the image as (*shape, n_channels), shape of two or three axes."""
    given = array.shape
    if channel_axis == "auto":
        channel_axis = -1 if array.ndim == 4 or (array.ndim == 3 and array.shape[-1] <= 4) else None
    if channel_axis is None:
        array = array[..., None]
    elif _is_whole(channel_axis) and -array.ndim <= channel_axis < array.ndim:
        array = np.moveaxis(array, channel_axis, -1)
    else:
        invalid("channel_axis", f"be None, 'auto' or an axis of the image of {array.ndim} axes", channel_axis)
    if array.ndim not in (3, 4):
        invalid("image", "have two or three axes, and one of channels or none", given)
    if array.size == 0:
        invalid("image", "hold at least one pixel", given)
    return array


def _checked_ends(ends: ValueRange) -> ValueRange:
    """The numbers of no and of full intensity as given."""
    if not isinstance(ends, (tuple, list)) or len(ends) != 2:
        invalid("ends", "be the numbers of no and of full intensity", ends)
    low = check_real("ends", ends[0])
    return low, check_real("ends", ends[1], above=low)


def _over_white(codes: NDArray[np.uint16], opacity: NDArray, inside: NDArray[np.bool_] | None) -> NDArray[np.uint16]:
    """Red, green and blue seen against white: alpha * colour + (1 - alpha). Opacity runs from 0, by the same rule."""
    full = (0.0, 255.0) if opacity.dtype == np.uint8 else standard_range(0.0, extremes(opacity, inside)[1])
    alpha = codes_of(opacity, full).astype(np.float64) / FULL
    return np.rint(alpha * codes + (1 - alpha) * FULL).astype(np.uint16)
