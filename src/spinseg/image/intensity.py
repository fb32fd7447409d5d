"""The numbers of an image: which mean no data, which no and full intensity, and their 16-bit codes."""

from itertools import product

import numpy as np
from numpy.typing import NDArray

from spinseg._advice import Advice, Setting
from spinseg._validation import MAX_MAGNITUDE, check_real, invalid
from spinseg.image.layout import IntensityRange, Mask

MAX_CODE = 65535  # the code of full intensity; 255 * 257, so that every 8-bit value has a 16-bit code of its own

VALUES_PER_OUTLIER = 1000  # of this many values, one may be clipped at either end of the range
MIN_SUPPORT = 5  # pixels, of 3 x 3, that must reach a value for it to count
CODES_PER_8BIT_STEP = 257  # 65535 / 255
MIN_16BIT_SPAN = 0.75  # of 0..65535: values that span as much are taken for 16-bit intensities as they are

_FLOAT32_MAX = float(np.finfo(np.float32).max)
# What GDAL, ESRI grids, SRTM, netCDF and CMIP write where nothing was measured.
CONVENTIONAL = (-999, -9999, -99999, -32767, -32768, -(2**31), -_FLOAT32_MAX, _FLOAT32_MAX, 1e20, 9.969209968386869e36)


def infer_intensity_range(array: NDArray, inside: Mask | None = None) -> IntensityRange:
    """Return the black and white levels of an image (*shape, n_channels), by the rule of docs/howto/files.md."""
    if array.dtype == np.uint8:
        return 0.0, 255.0
    low, high = extremes(array, inside)
    if low >= 0 and high <= 1:  # and so are the values that are left without outliers
        return 0.0, 1.0
    low, high = _range_without_outliers(array, inside, low, high)
    if low >= 0 and 255 < high <= MAX_CODE and _is_scaled_8bit(array if inside is None else array[inside]):
        return 0.0, float(MAX_CODE)
    return standard_range(low, high)


def extremes(array: NDArray, inside: Mask | None) -> IntensityRange:
    """Return the smallest and the largest number; raise InvalidInput if one is not finite or too large."""
    values = array if inside is None else array[inside]
    low, high = float(values.min()), float(values.max())
    if not np.isfinite([low, high]).all():  # the minimum of numbers with a NaN among them is NaN
        finite = np.isfinite(values)
        rule = "hold finite numbers" + (" inside the mask" if inside is not None else "")
        *_, n_channels = values.shape
        finite = finite.reshape(-1, n_channels)
        bad = np.flatnonzero(~finite.all(axis=0)).tolist()
        if finite.all(axis=-1).any():
            rule += " (a mask leaves others out: in Python, np.ma.masked_invalid(image))"
        elif finite.any():  # the channels to blame are those that are nowhere finite
            bad = np.flatnonzero(~finite.any(axis=0)).tolist() or bad
        where = f" in channel{'s' if len(bad) > 1 else ''} {', '.join(map(str, bad))} of {n_channels}"
        invalid("image", rule, low + high if n_channels == 1 else f"{low + high}{where}")
    if max(abs(low), abs(high)) > MAX_MAGNITUDE:
        invalid("image", f"hold numbers of at most {MAX_MAGNITUDE:g} in size", max(low, high, key=abs))
    return low, high


def check_intensity_range(intensity_range: object) -> IntensityRange:
    """Return two finite numbers in increasing order, or raise InvalidInput."""
    if not isinstance(intensity_range, (tuple, list)) or len(intensity_range) != 2:
        invalid("intensity_range", "be two numbers, the black and the white level", intensity_range)
    low = check_real("intensity_range", intensity_range[0])
    return low, check_real("intensity_range", intensity_range[1], above=low)


def standard_range(low: float, high: float) -> IntensityRange:
    """Return the black and white levels, from the smallest and the largest number without outliers."""
    if low >= 0 and high <= 1:
        return 0.0, 1.0
    if low >= 0 and 2 < high <= 255:  # up to 2: an image in 0..1 that some filter made overshoot
        return 0.0, 255.0
    if low >= 0 and high <= MAX_CODE and high - low >= MIN_16BIT_SPAN * MAX_CODE:
        return 0.0, float(MAX_CODE)
    margin = max(1.0, abs(low) * 2**-40)  # 1 would be lost in the rounding of a giant
    return (low, high) if high > low else (low - margin, low + margin)


def looks_like_opacity(numbers: NDArray) -> bool:
    """Return whether a channel may be opacity: of its numbers that are not 0, most are full, 1, 255 or 65535."""
    values = numbers[np.isfinite(numbers) & (numbers != 0)]
    full = opacity_range(values[:, None])[1] if values.size else 0.0
    return full in (1.0, 255.0, MAX_CODE) and 2 * np.count_nonzero(values == full) > values.size


def opacity_range(opacity: NDArray, inside: Mask | None = None) -> IntensityRange:
    """Return the numbers of no and of full opacity, of a channel (*shape, 1)."""
    return (0.0, 255.0) if opacity.dtype == np.uint8 else standard_range(0.0, extremes(opacity, inside)[1])


def to_codes(array: NDArray, intensity_range: IntensityRange) -> NDArray[np.uint16]:
    """Map a range of numbers linearly to 16-bit codes, 0..MAX_CODE; numbers outside are clipped, and NaN becomes 0."""
    if array.dtype == np.uint8 and intensity_range == (0.0, 255.0):
        return np.multiply(array, CODES_PER_8BIT_STEP, dtype=np.uint16)
    if array.dtype.kind == "u" and array.dtype.itemsize == 2:  # in any byte order; a table is faster
        return to_codes(np.arange(MAX_CODE + 1), intensity_range)[array]
    low, high = intensity_range
    with np.errstate(over="ignore", invalid="ignore"):  # outside a mask there may be anything
        scaled = (array - np.float64(low)) * (MAX_CODE / (high - low))
    return np.rint(np.nan_to_num(scaled, copy=False).clip(0, MAX_CODE, out=scaled)).astype(np.uint16)


def _is_scaled_8bit(values: NDArray) -> bool:
    """Return whether all numbers are 8-bit values times 257, as programs write that know only 8 bits."""
    first = values.flat[:1000]  # nearly always enough to decide
    return not (first % CODES_PER_8BIT_STEP).any() and not (values % CODES_PER_8BIT_STEP).any()


def _range_without_outliers(array: NDArray, inside: Mask | None, low: float, high: float) -> IntensityRange:
    """Return the smallest and the largest supported number, of numbers from `low` to `high`."""
    values = (array if inside is None else array[inside]).ravel()
    n_outliers = values.size // VALUES_PER_OUTLIER
    if not n_outliers:
        return low, high
    first, last = n_outliers, values.size - 1 - n_outliers
    ordered = np.partition(values, (first, last))
    lowest = _supported_extreme(array, inside, ordered[first], -1)
    highest = _supported_extreme(array, inside, ordered[last], 1)
    return (lowest, highest) if lowest < highest else (low, high)


def _supported_extreme(array: NDArray, inside: Mask | None, limit: np.generic, sign: int) -> float:
    """Return the outermost number that MIN_SUPPORT pixels reach in the 3 x 3 around some pixel beyond the limit.

    Neighbors lie in the same plane and channel. If no number beyond the limit has that support, return the limit.
    """
    beyond = array > limit if sign > 0 else array < limit
    if inside is not None:
        beyond &= inside[..., None]
    *planes, rows, columns, channels = np.nonzero(beyond)
    if not len(rows):
        return float(limit)
    neighbors = np.full((9, len(rows)), -np.inf)
    for values, (down, across) in zip(neighbors, product((-1, 0, 1), repeat=2), strict=True):
        exists = (rows + down >= 0) & (rows + down < array.shape[-3])
        exists &= (columns + across >= 0) & (columns + across < array.shape[-2])
        pixels = (*(plane[exists] for plane in planes), (rows + down)[exists], (columns + across)[exists])
        found = sign * array[*pixels, channels[exists]].astype(np.float64)
        values[exists] = found if inside is None else np.where(inside[pixels], found, -np.inf)
    supported = np.partition(neighbors, 9 - MIN_SUPPORT, axis=0)[9 - MIN_SUPPORT].max()
    return float(sign * max(supported, sign * float(limit)))


def leave_out_missing(
    channels: NDArray,
    inside: Mask | None,
    declared: float | None,
    intensity_range: IntensityRange | None,
    is_file: bool,
) -> tuple[Mask | None, list[str], str | None]:
    """Return which pixels have data, (*shape), None for all; what was left out, in words; and how to keep a guess.

    Without data are those all of whose channels have the `declared` value; in a file, those with a NaN or an infinite
    number; and those with a value that `conventional_nodata` finds, unless the caller's intensity range includes it.
    """
    left = np.ones(channels.shape[:-1], bool) if inside is None else inside.copy()
    notes, otherwise = [], None

    def leave_out(missing: Mask, value: float) -> None:
        n_missing = np.count_nonzero(left & missing)
        if n_missing:
            left[missing] = False
            notes.append(f"{n_missing:,} pixel{'s' if n_missing > 1 else ''} left out as nodata ({value:.10g})")

    if declared is not None:
        number = in_type(declared, channels.dtype)  # None, which equals no number, where it does not fit
        is_declared = np.isnan(channels) if np.isnan(declared) else channels == number
        leave_out(is_declared.all(axis=-1), declared)
        if not left.any():
            invalid("image", "have a pixel with data", f"nodata, {declared:g}, everywhere")
    if is_file and channels.dtype.kind == "f":
        is_finite = np.isfinite(channels).all(axis=-1)
        if (left & is_finite).any():  # else `extremes` says which channel is to blame
            leave_out(np.isnan(channels).any(axis=-1), np.nan)
            leave_out(~is_finite, np.inf)
    while (value := conventional_nodata(channels, left)) is not None:
        if intensity_range is not None and intensity_range[0] <= value <= intensity_range[1]:
            break
        leave_out((channels == value).any(axis=-1), value)
        otherwise = Advice(f"if {value:.10g} is a measurement, widen ", Setting("intensity_range"), " to include it")
    return None if left.all() else left, notes, otherwise


def conventional_nodata(channels: NDArray, inside: Mask | None) -> float | None:
    """Return the value that marks pixels without data in an image, if there is one that stands out; else None.

    It is the smallest or the largest number, one of CONVENTIONAL, larger in size than all others, and at least as far
    from them as they lie apart. Unsigned numbers are never judged: a pixel of 0 or of 65535 is black or white.
    """
    if channels.dtype.kind not in "if":
        return None
    values = (channels if inside is None else channels[inside]).ravel()
    known = {in_type(value, channels.dtype) for value in CONVENTIONAL}
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


def in_type(value: float, dtype: np.dtype) -> np.generic | None:
    """Return a number in a number type; None where it does not fit."""
    with np.errstate(over="ignore", invalid="ignore"):
        number = np.float64(value).astype(dtype)
    fits = np.isfinite(number) if dtype.kind == "f" else dtype.kind in "iu" and float(number) == value
    return number if fits else None
