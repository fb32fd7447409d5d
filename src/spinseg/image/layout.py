"""Which axes of an array are planes, rows, columns and channels, and how an image was read, in words."""

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple, TypeGuard

import numpy as np
from numpy.typing import NDArray

from spinseg._validation import invalid

ChannelAxis = int | Literal["auto"] | None
IntensityRange = tuple[float, float]

MAX_COLOR_CHANNELS = 4  # a last axis without a name that is at most so long holds channels
MAX_CHANNELS = 16  # so does a longer one, up to this length, where the other axes are much longer
CHANNEL_ASPECT = 8  # times as long, at least
CHANNEL_NAMES = "CS"  # channels, and samples of a TIFF
UNNAMED = "QI"  # axes of a TIFF that its writer did not name
EMPTY = "_"  # stands for an axis of length 1 that holds nothing, such as that of time where there is one time


class Layout(NamedTuple):
    """The axes of an array that hold planes, rows and columns, in this order, and that of channels if there is one.

    `has_opacity` says that the last channel is opacity. `otherwise` says how to read the array in another way, where
    nothing but its shape speaks for this one.
    """

    axes: tuple[int, ...]
    channel_axis: int | None
    has_opacity: bool = False
    otherwise: str | None = None

    def arrange(self, array: NDArray[Any]) -> NDArray[Any]:
        """Return the array as (*shape, n_channels); gray with opacity becomes color with opacity."""
        kept = [*self.axes, *([] if self.channel_axis is None else [self.channel_axis])]
        dropped = [axis for axis in range(array.ndim) if axis not in kept]
        array = array.transpose(*kept, *dropped)
        array = array.reshape(array.shape[: len(kept)]) if dropped else array  # those have length 1
        if self.channel_axis is None:
            return array[..., None]
        return array[..., [0, 0, 0, 1]] if self.has_opacity and array.shape[-1] == 2 else array


def find_layout(
    shape: tuple[int, ...],
    channel_axis: ChannelAxis = "auto",
    axes: str = "",
    has_opacity: bool | None = None,
    name: str = "image",
) -> Layout:
    """Return the layout of an array of this shape; `as_picture` documents the rule for axes without names.

    `axes` has a letter for each axis, or none for all: C or S for channels, Q or I for an axis without a name, "_" for
    one that holds nothing, and any other letter for planes, rows and columns. `has_opacity` is None if unknown.
    """
    n_axes = len(shape)
    axes = axes or UNNAMED[0] * n_axes
    if isinstance(channel_axis, str) and channel_axis == "auto":
        layout = _automatic_layout(shape, axes, has_opacity, name)
    else:
        if channel_axis is not None and not (_is_int(channel_axis) and -n_axes <= channel_axis < n_axes):
            invalid("channel_axis", f"be None, 'auto' or an axis of the image of {n_axes} axes", channel_axis)
        chosen = None if channel_axis is None else channel_axis % n_axes
        empty = [letter == EMPTY or (letter in CHANNEL_NAMES and n == 1) for letter, n in zip(axes, shape, strict=True)]
        layout = Layout(tuple(axis for axis in range(n_axes) if axis != chosen and not empty[axis]), chosen)
    if len(layout.axes) not in (2, 3):
        _refuse_axes(shape, axes, name)
    if 0 in shape:
        invalid(name, "hold at least one pixel", shape)
    return layout


def check_channel_axis(channel_axis: object) -> None:
    """Raise InvalidInput if `channel_axis` is wrong for every image."""
    is_auto = isinstance(channel_axis, str) and channel_axis == "auto"
    if not (channel_axis is None or is_auto or _is_int(channel_axis)):
        invalid("channel_axis", "be None, 'auto' or the number of an axis", channel_axis)


def _is_int(value: object) -> TypeGuard[int]:
    """Return whether a value is an integer, and not a bool."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _automatic_layout(shape: tuple[int, ...], axes: str, has_opacity: bool | None, name: str) -> Layout:
    """Return the layout that the names of the axes tell, or their lengths where they have none."""
    named = [axis for axis, letter in enumerate(axes) if letter in CHANNEL_NAMES]
    if len(named) > 1:
        named = [axis for axis in named if shape[axis] > 1]
    if len(named) > 1:
        _refuse_axes(shape, axes, name)
    others = tuple(i for i, letter in enumerate(axes) if letter not in (*CHANNEL_NAMES, EMPTY))
    if named:
        return Layout(others, named[0], bool(has_opacity) and shape[named[0]] in (2, 4))
    if len(others) < 3 or not any(letter in UNNAMED for letter in axes):
        return Layout(others, None)
    *first, last = others
    is_color = shape[last] <= MAX_COLOR_CHANNELS and set(axes) <= set(UNNAMED)
    is_short = shape[last] <= MAX_CHANNELS and CHANNEL_ASPECT * shape[last] <= min(shape[axis] for axis in first)
    if len(others) == 4 or is_color or is_short:
        opaque = has_opacity is False or shape[last] != 4
        sure = shape[last] == 3 or (is_color and len(others) == 3 and opaque)
        doubt = None if sure else _otherwise(f"axis {last} does not hold channels", None)
        if not opaque and has_opacity is None:
            doubt = _otherwise("the last of its four channels is not opacity", last)
        return Layout(tuple(first), last, not opaque, doubt)
    planes = first[0]
    short = shape[planes] <= MAX_CHANNELS
    doubt = _otherwise(f"axis {planes} holds {shape[planes]} channels", planes) if short else None
    return Layout(others, None, otherwise=doubt)


def _otherwise(condition: str, axis: int | None) -> str:
    """Return what to give, in Python and to the command, if the layout was taken for another one than it is."""
    return f"if {condition}, give channel_axis={axis} (--channel-axis {'none' if axis is None else axis})"


def _refuse_axes(shape: tuple[int, ...], axes: str, name: str) -> None:
    """Raise InvalidInput for an array that is neither a picture nor a volume."""
    if set(axes) <= set(UNNAMED):
        invalid(name, "have two or three axes, and one of channels or none", shape)
    rule = "hold one picture or volume, with or without channels; channel_axis names their axis"
    invalid(name, rule, f"axes {axes} of {shape}")


@dataclass(frozen=True)
class Reading:
    """How an image was read.

    Attributes
    ----------
    form : str
        The format of the file, or "array".
    stored_shape : tuple of int
        The shape of the array in the file.
    axes : str
        A letter for each of its axes where the file names them, as in "CYX"; else empty.
    shape : tuple of int
        (rows, columns) or (planes, rows, columns).
    n_channels : int
        How many channels were read; opacity is one of them.
    channel_axis : int or None
        The axis of the stored array that holds them.
    has_opacity : bool
    number_type : str
        Such as "uint16".
    intensity_range : (float, float)
        The numbers of no and of full intensity.
    note : str
        What was left out: other series of the file, or pixels without data.
    otherwise : str or None
        How to read the image in another way, where nothing but its shape or its numbers speaks for this one.

    Examples
    --------
    >>> import numpy as np, spinseg as ss
    >>> print(ss.as_picture(np.zeros((30, 40, 3), np.uint8)).reading.shape)
    (30, 40)
    """

    form: str
    stored_shape: tuple[int, ...]
    axes: str
    shape: tuple[int, ...]
    n_channels: int
    channel_axis: int | None
    has_opacity: bool
    number_type: str
    intensity_range: IntensityRange
    note: str = ""
    otherwise: str | None = None

    def __str__(self) -> str:
        """Return the reading as a phrase, such as "a gray picture of 30 x 40 pixels, 8 bits, intensities ..."."""
        low, high = self.intensity_range
        parts = [self._contents(), _number_words(self.number_type), f"intensities from {low:.6g} to {high:.6g}"]
        return ", ".join([*parts, *([self.note] if self.note else [])])

    def _contents(self) -> str:
        """Return how many channels of how many pixels there are."""
        n_colors = self.n_channels - self.has_opacity
        pixels = f"{' x '.join(map(str, self.shape[-2:]))} pixels"
        if len(self.shape) == 3:
            pixels = f"{self.shape[0]} plane{'' if self.shape[0] == 1 else 's'} of {pixels}"
        if n_colors not in (1, 3):
            return f"{n_colors} channels of {'a volume of ' * (len(self.shape) == 3)}{pixels}"
        kind = ("color" if n_colors == 3 else "gray") + (" with opacity" if self.has_opacity else "")
        return f"a volume of {pixels}, {kind}" if len(self.shape) == 3 else f"a picture of {pixels}, {kind}"

    def to_json(self) -> dict[str, Any]:
        """Return the reading by name, in types that JSON knows, with the phrase as "read_as"."""
        found = {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}
        del found["note"]  # a part of the phrase
        return {"read_as": str(self)} | found


def _number_words(number_type: str) -> str:
    """Return a number type in words, such as "16 bits"."""
    kind = np.dtype(number_type)
    if kind.kind == "b":
        return "1 bit"
    bits = 8 * kind.itemsize
    return {"u": f"{bits} bits", "i": f"{bits} bits with sign", "f": f"{bits}-bit floating point"}[kind.kind]


def count_pixels(shape: tuple[int, ...], axes: str = "") -> int:
    """Return how many pixels an array has, where up to four channels count once."""
    named = [length for length, letter in zip(shape, axes, strict=True) if letter in CHANNEL_NAMES] if axes else []
    last = shape[-1] if len(shape) > 2 and not named else 1
    n_channels = math.prod(named) if named else last
    return math.prod(shape) // n_channels if 1 <= n_channels <= MAX_COLOR_CHANNELS else math.prod(shape)
