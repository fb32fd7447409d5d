"""Pixels without data: NaN in a file, the value that a file declares, and values that mark them by convention."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinseg._validation import invalid
from spinseg.image.layout import IntensityRange

_FLOAT32_MAX = float(np.finfo(np.float32).max)
# What GDAL, ESRI grids, SRTM, netCDF and CMIP write where nothing was measured.
CONVENTIONAL = (-999, -9999, -99999, -32767, -32768, -(2**31), -_FLOAT32_MAX, _FLOAT32_MAX, 1e20, 9.969209968386869e36)


class MissingData(NamedTuple):
    """The pixels that are left, (*shape), None for all; what was left out, in words; and how to keep a guess."""

    inside: NDArray[np.bool_] | None
    notes: list[str]
    otherwise: str | None


def leave_out_missing(
    channels: NDArray,
    inside: NDArray[np.bool_] | None,
    declared: float | None,
    intensity_range: IntensityRange | None,
    is_file: bool,
) -> MissingData:
    """Return which pixels of an image (*shape, n_channels) have data.

    Without data are those all of whose channels have the `declared` value; in a file, those with a NaN; and those with
    a value that `conventional_nodata` finds, unless the caller's intensity range includes it.
    """
    left = np.ones(channels.shape[:-1], bool) if inside is None else inside.copy()
    notes, otherwise = [], None

    def leave_out(missing: NDArray[np.bool_], value: float) -> None:
        n_missing = np.count_nonzero(left & missing)
        if n_missing:
            left[missing] = False
            notes.append(f"{n_missing:,} pixel{'s' if n_missing > 1 else ''} left out as nodata ({value:.10g})")

    if declared is not None:
        leave_out(_is_declared(channels, declared), declared)
        if not left.any():
            invalid("image", "have a pixel with data", f"nodata, {declared:g}, everywhere")
    if is_file and channels.dtype.kind == "f":
        is_nan = np.isnan(channels).any(axis=-1)
        if (left & ~is_nan).any():  # else `extremes` says which channel is to blame
            leave_out(is_nan, np.nan)
    while (value := conventional_nodata(channels, left)) is not None:
        if intensity_range is not None and intensity_range[0] <= value <= intensity_range[1]:
            break
        leave_out((channels == value).any(axis=-1), value)
        otherwise = f"if {value:.10g} is a measurement, give an intensity_range (--intensity-range) that includes it"
    return MissingData(None if left.all() else left, notes, otherwise)


def conventional_nodata(channels: NDArray, inside: NDArray[np.bool_] | None) -> float | None:
    """Return the value that marks pixels without data in an image, if there is one that stands out; else None.

    It is the smallest or the largest number of an image of floating or signed numbers, one of CONVENTIONAL, larger in
    size than all other numbers, and at least as far from them as they lie apart. Unsigned numbers are never judged: a
    pixel of 0 or of 65535 is black or white.

    Examples
    --------
    >>> conventional_nodata(np.array([[[-9999.0], [3.5], [812.0]]]), None)
    -9999.0
    >>> conventional_nodata(np.array([[[-9999.0], [-9998.0], [812.0]]]), None) is None
    True
    """
    if channels.dtype.kind not in "if":
        return None
    values = (channels if inside is None else channels[inside]).ravel()
    known = {_in_type(value, channels.dtype) for value in CONVENTIONAL}
    for extreme in (values.min(), values.max()):
        if extreme not in known:  # nor is NaN
            continue
        others = values[values != extreme]
        if not others.size:
            continue
        low, high, found = float(others.min()), float(others.max()), float(extreme)
        if abs(found) > max(abs(low), abs(high)) and min(abs(found - low), abs(found - high)) >= high - low:
            return found
    return None


def _is_declared(channels: NDArray, value: float) -> NDArray[np.bool_]:
    """Return the pixels all of whose channels have a value."""
    if np.isnan(value):
        return np.isnan(channels).all(axis=-1)
    number = _in_type(value, channels.dtype)
    return np.zeros(channels.shape[:-1], bool) if number is None else (channels == number).all(axis=-1)


def _in_type(value: float, dtype: np.dtype) -> np.generic | None:
    """Return a number in a number type; None where it does not fit."""
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            number = np.float64(value).astype(dtype)
        return number if np.isfinite(number) else None
    if dtype.kind not in "iu" or not float(value).is_integer():
        return None
    limits = np.iinfo(dtype)
    return dtype.type(int(value)) if limits.min <= value <= limits.max else None
