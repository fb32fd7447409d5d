"""How an image is stored and read: which axes are planes, rows, columns and channels, and all of it in words."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeGuard, get_args

import numpy as np
from numpy.typing import NDArray

from spinseg._advice import Advice, Setting
from spinseg._validation import check_choice, counted, invalid

ChannelAxis = int | Literal["auto"] | None
ChannelKind = Literal["auto", "color", "measured"]
IntensityRange = tuple[float, float]
Mask = NDArray[np.bool_]  # True inside
Ints = NDArray[np.int32]
Floats = NDArray[np.float64]

MAX_COLOR_CHANNELS = 4  # a last axis without a name holds channels if it is at most this long
MAX_CHANNELS = 16  # so does a longer one, up to this length, where the other axes are much longer
CHANNEL_ASPECT = 8  # times as long, at least
CHANNEL_NAMES = "CS"  # channels, and samples of a TIFF
UNNAMED = "QI"  # axes of a TIFF that its writer did not name
EMPTY = "_"  # stands for an axis of length 1 that holds nothing, such as that of time where there is one time
_IN_JSON = ["form", "stored_shape", "axes", "shape", "n_channels", "channel_axis", "channel_kind", "has_opacity"]
_IN_JSON += ["number_type", "intensity_range", "otherwise"]


@dataclass(frozen=True)
class Georeference:
    """A place on a map for every pixel: x = a column + b row + c and y = d column + e row + f.

    (0, 0) is the outer corner of the first pixel.
    """

    transform: tuple[float, float, float, float, float, float]  # a to f
    epsg: int | None = None  # the number of the coordinate reference system, where the file names one
    tags: tuple[Any, ...] = ()  # those of the file, as `tifffile.imwrite` takes them

    def place(self, column: float, row: float) -> tuple[float, float]:
        """Return the coordinates x and y on the map."""
        a, b, c, d, e, f = self.transform
        return a * column + b * row + c, d * column + e * row + f

    @property
    def turns_over(self) -> bool:
        """Whether counterclockwise becomes clockwise, as where y counts upward on the map."""
        a, b, _, d, e, _ = self.transform
        return a * e - b * d < 0

    @property
    def name(self) -> str:
        """The coordinate reference system in brackets; empty where it is unknown."""
        return "" if self.epsg is None else f" (EPSG:{self.epsg})"

    @property
    def urn(self) -> str | None:
        """The name of the coordinate reference system in GeoJSON; of EPSG:4326 the one with longitude first."""
        if self.epsg is None:
            return None
        return "urn:ogc:def:crs:OGC:1.3:CRS84" if self.epsg == 4326 else f"urn:ogc:def:crs:EPSG::{self.epsg}"

    def to_json(self) -> dict[str, Any]:
        """Return the transform and the number of the system by name."""
        return {"transform": list(self.transform), "epsg": self.epsg}


@dataclass(frozen=True)
class Reading:
    """How an image is stored, and how it was read.

    Attributes
    ----------
    form : str
        The format of the file, or "array".
    axes : str
        A letter for each axis of the stored array where the file names them, as in "CYX"; else empty. C and S are
        channels, Q and I have no name, "_" holds nothing, and any other letter is that of planes, rows or columns.
    has_opacity : bool or None
        Whether the last channel is opacity; None where the file does not say, before the image is read.
    channel_kind : "color", "measured" or None
        Whether channels are red, green and blue; None for gray, and where the file does not say, before the image is
        read.
    note : str
        What was left out: other series of the file, or pixels without data.
    nodata : float or None
        The value that the file declares for pixels without data.
    georeference : Georeference or None
        Where the pixels of a GeoTIFF lie on a map.
    stored_shape : tuple of int
        The shape of the array in the file.
    spatial_axes : tuple of int
        Its axes of planes, rows and columns, in this order.
    channel_axis : int or None
        Its axis of channels.
    number_type : str
        Such as "uint16".
    intensity_range : (float, float)
        The black and white levels.
    otherwise : str or None
        How to read the image in another way, where nothing but its shape or its numbers speaks for this one.

    Examples
    --------
    >>> import numpy as np, spinseg as ss
    >>> print(ss.as_picture(np.zeros((30, 40, 3), np.uint8)).reading.shape)
    (30, 40)
    """

    form: str = "array"
    axes: str = ""
    has_opacity: bool | None = None
    note: str = ""
    nodata: float | None = None
    stored_shape: tuple[int, ...] = ()
    spatial_axes: tuple[int, ...] = ()
    channel_axis: int | None = None
    number_type: str = ""
    intensity_range: IntensityRange = (0.0, 1.0)
    otherwise: str | None = None
    channel_kind: Literal["color", "measured"] | None = None
    georeference: Georeference | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """(rows, columns) or (planes, rows, columns)."""
        return tuple(self.stored_shape[axis] for axis in self.spatial_axes)

    @property
    def n_channels(self) -> int:
        """How many channels were read; opacity is one of them, and gray with opacity is color with opacity."""
        count = 1 if self.channel_axis is None else self.stored_shape[self.channel_axis]
        return 4 if self.has_opacity and count == 2 else count

    def laid_out(self, shape: tuple[int, ...], channel_axis: ChannelAxis = "auto", name: str = "image") -> "Reading":
        """Return which axes of an array of this shape are which; `as_picture` documents the rule without names."""
        n_axes = len(shape)
        letters = self.axes or UNNAMED[0] * n_axes
        if isinstance(channel_axis, str) and channel_axis == "auto":
            found = _judge_axes(shape, letters, self.has_opacity, name)
        else:
            if channel_axis is not None and not (_is_int(channel_axis) and -n_axes <= channel_axis < n_axes):
                invalid("channel_axis", f"be None, 'auto' or an axis of the image of {n_axes} axes", channel_axis)
            chosen = None if channel_axis is None else channel_axis % n_axes
            empty = [
                each == EMPTY or (each in CHANNEL_NAMES and n == 1) for each, n in zip(letters, shape, strict=True)
            ]
            found = tuple(axis for axis in range(n_axes) if axis != chosen and not empty[axis]), chosen, False, None
        spatial, channels, has_opacity, otherwise = found
        if len(spatial) not in (2, 3):
            _refuse_axes(shape, letters, name)
        if 0 in shape:
            invalid(name, "hold at least one pixel", shape)
        axes: dict[str, Any] = {"stored_shape": shape, "spatial_axes": spatial, "channel_axis": channels}
        return replace(self, **axes, has_opacity=has_opacity, otherwise=otherwise)

    def arrange(self, array: NDArray[Any]) -> NDArray[Any]:
        """Return the stored array as (*shape, n_channels)."""
        kept = [*self.spatial_axes, *([] if self.channel_axis is None else [self.channel_axis])]
        dropped = [axis for axis in range(array.ndim) if axis not in kept]
        array = array.transpose(*kept, *dropped)
        array = array.reshape(array.shape[: len(kept)]) if dropped else array  # those have length 1
        if self.channel_axis is None:
            return array[..., None]
        return array if array.shape[-1] == self.n_channels else array[..., [0, 0, 0, 1]]

    def __str__(self) -> str:
        """Return the reading as a phrase, such as "an image of 40 x 30 pixels, gray, 8 bits, intensities ..."."""
        n_colors = self.n_channels - bool(self.has_opacity)
        pixels, of_volume = in_pixels(self.shape), "a volume of " if len(self.shape) == 3 else ""
        if n_colors == 1 or (n_colors == 3 and self.channel_kind != "measured"):
            kind = ("color" if n_colors == 3 else "gray") + (" with opacity" if self.has_opacity else "")
            contents = f"{of_volume or 'an image of '}{pixels}, {kind}"
        else:
            measured = "measured " if n_colors == 3 else ""  # which might be taken for color
            contents = f"{n_colors} {measured}channels of {of_volume}{pixels}"
        number = np.dtype(self.number_type)
        bits = 8 * number.itemsize
        words = {"b": "1 bit", "u": f"{bits} bits", "i": f"{bits} bits with sign", "f": f"{bits}-bit floating point"}
        low, high = self.intensity_range
        place = "" if self.georeference is None else f"map coordinates{self.georeference.name}"
        parts = [contents, words[number.kind], f"intensities from {low:.6g} to {high:.6g}", place, self.note]
        return ", ".join(filter(None, parts))

    @property
    def with_doubt(self) -> str:
        """The reading as a phrase, with what to set to read the image in another way, in Python."""
        return "; ".join(filter(None, [str(self), self.otherwise]))

    def to_json(self) -> dict[str, Any]:
        """Return the reading by name, in types that JSON knows, with the phrase as "read_as"."""
        found = {name: getattr(self, name) for name in _IN_JSON}
        lists = {name: list(value) for name, value in found.items() if isinstance(value, tuple)}
        place = None if self.georeference is None else self.georeference.to_json()
        return {"read_as": str(self)} | found | lists | {"georeference": place}


def in_pixels(shape: Sequence[int]) -> str:
    """The size of an image or a volume in words, the width first."""
    *planes, height, width = shape
    pixels = f"{width} x {height} pixels"
    return f"{counted(planes[0], 'plane')} of {pixels}" if planes else pixels


def check_channels(channel_axis: object, channel_kind: object) -> None:
    """Raise InvalidInput if the axis or the kind of channels is wrong for every image."""
    check_choice("channel_kind", channel_kind, get_args(ChannelKind))
    is_auto = isinstance(channel_axis, str) and channel_axis == "auto"
    if not (channel_axis is None or is_auto or _is_int(channel_axis)):
        invalid("channel_axis", "be None, 'auto' or the number of an axis", channel_axis)


def _is_int(value: object) -> TypeGuard[int]:
    """Return whether a value is an integer, and not a bool."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _judge_axes(
    shape: tuple[int, ...], axes: str, has_opacity: bool | None, name: str
) -> tuple[tuple[int, ...], int | None, bool, str | None]:
    """Return the spatial axes, that of channels, whether there is opacity, and the doubt, by names or by lengths."""
    named = [axis for axis, letter in enumerate(axes) if letter in CHANNEL_NAMES]
    if len(named) > 1:
        named = [axis for axis in named if shape[axis] > 1]
    if len(named) > 1:
        _refuse_axes(shape, axes, name)
    others = tuple(i for i, letter in enumerate(axes) if letter not in (*CHANNEL_NAMES, EMPTY))
    if named:
        return others, named[0], bool(has_opacity) and shape[named[0]] in (2, 4), None
    if len(others) < 3 or not any(letter in UNNAMED for letter in axes):
        return others, None, False, None
    *first, last = others
    is_color = shape[last] <= MAX_COLOR_CHANNELS and set(axes) <= set(UNNAMED)
    is_short = _is_short(shape[last], [shape[axis] for axis in first])
    if len(others) == 4 or is_color or is_short:
        opaque = has_opacity is False or shape[last] != 4
        sure = shape[last] == 3 or (is_color and len(others) == 3 and opaque)
        doubt = None if sure else _otherwise(f"axis {last} does not hold channels", None)
        if not opaque and has_opacity is None:
            doubt = _otherwise("the last of its four channels is not opacity", last)
        return tuple(first), last, not opaque, doubt
    planes = first[0]
    short = shape[planes] <= MAX_CHANNELS
    doubt = _otherwise(f"axis {planes} holds {counted(shape[planes], 'channel')}", planes) if short else None
    return others, None, False, doubt


def may_hold_channels(length: int, others: Sequence[int]) -> bool:
    """Return whether an axis without a name would be that of channels if it were the last of three."""
    return length <= MAX_COLOR_CHANNELS or _is_short(length, others)


def _is_short(length: int, others: Sequence[int]) -> bool:
    """Return whether an axis is so much shorter than the others that it may hold many channels."""
    return length <= MAX_CHANNELS and length * CHANNEL_ASPECT <= min(others)


def _otherwise(condition: str, axis: int | None) -> Advice:
    """Return what to set if the axes were taken for others than they are."""
    return Advice(f"if {condition}, use ", Setting("channel_axis", axis))


def _refuse_axes(shape: tuple[int, ...], axes: str, name: str) -> None:
    """Raise InvalidInput for an array that is neither an image nor a volume."""
    if set(axes) <= set(UNNAMED):
        invalid(name, "have two or three axes, and one of channels or none", shape)
    rule = "hold one image or volume, with or without channels; channel_axis names their axis"
    invalid(name, rule, f"axes {axes} of {shape}")


def count_pixels(shape: tuple[int, ...], axes: str = "") -> int:
    """Return how many pixels an array has, where up to four channels count once."""
    named = [length for length, letter in zip(shape, axes, strict=True) if letter in CHANNEL_NAMES] if axes else []
    last = shape[-1] if len(shape) > 2 and not named else 1
    n_channels = math.prod(named) if named else last
    return math.prod(shape) // n_channels if 1 <= n_channels <= MAX_COLOR_CHANNELS else math.prod(shape)
