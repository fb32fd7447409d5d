"""Which of an image's numbers is no intensity, and which is full: one rule for every type of numbers but uint8."""

from itertools import product

import numpy as np
from numpy.typing import NDArray

from spinseg._validation import MAX_MAGNITUDE, invalid

FULL = 65535  # the code of full intensity; 255 * 257, so that every 8-bit value has a 16-bit code of its own

STRAY = 1000  # of so many numbers one may be left out at either end of the range
MOST_OF_NINE = 5
SPREAD = 257  # 65535 / 255
FILLED = 0.75  # of 16 bits, from where on they are taken as they are

ValueRange = tuple[float, float]


def value_range(array: NDArray, inside: NDArray[np.bool_] | None = None) -> ValueRange:
    """The numbers of no and of full intensity of an image (*shape, n_channels), one pair for all channels.

    uint8 runs from 0 to 255. Of other numbers it depends on which ones are used, whatever their type: those in 0..1 run
    from 0 to 1; in 0..255, and passing 2, from 0 to 255; in 0..65535, and over three quarters of that or all of them
    multiples of 257 (8 bits spread over 16), from 0 to 65535; others from the smallest that is used to the largest. A
    number is used if five pixels of some 3 x 3 in one plane and channel reach it. So hot and dead pixels have no say,
    and small objects have. At either end that leaves out at most one number in a thousand, and none where no more than
    one number would be left. What is left out gets no or full intensity.
    """
    if array.dtype == np.uint8:
        return 0.0, 255.0
    low, high = extremes(array, inside)
    if low >= 0 and high <= 1:  # and so is what is used of them
        return 0.0, 1.0
    low, high = _used(array, inside, low, high)
    if low >= 0 and 255 < high <= FULL and _spread(array if inside is None else array[inside]):
        return 0.0, float(FULL)
    return standard_range(low, high)


def extremes(array: NDArray, inside: NDArray[np.bool_] | None) -> ValueRange:
    """The smallest and the largest number, refused where one is not finite or enormous."""
    seen = array if inside is None else array[inside]
    low, high = float(seen.min()), float(seen.max())
    if not np.isfinite([low, high]).all():  # the least of numbers with a NaN among them is NaN
        invalid("image", "hold finite numbers" + (" inside the mask" if inside is not None else ""), low + high)
    if max(abs(low), abs(high)) > MAX_MAGNITUDE:
        invalid("image", f"hold numbers of at most {MAX_MAGNITUDE:g} in size", max(low, high, key=abs))
    return low, high


def standard_range(low: float, high: float) -> ValueRange:
    """The numbers of no and of full intensity, from the smallest and the largest that are used."""
    if low >= 0 and high <= 1:
        return 0.0, 1.0
    if low >= 0 and 2 < high <= 255:  # up to 2: a picture in 0..1 that some filter made overshoot
        return 0.0, 255.0
    if low >= 0 and high <= FULL and high - low >= FILLED * FULL:
        return 0.0, float(FULL)
    return (low, high) if high > low else (low - 1, low + 1)


def codes_of(array: NDArray, ends: ValueRange) -> NDArray[np.uint16]:
    """16-bit codes of numbers, 0 for no intensity and FULL for full; numbers beyond get the nearer of these."""
    if array.dtype == np.uint8 and ends == (0.0, 255.0):
        return np.multiply(array, 257, dtype=np.uint16)
    if array.dtype.kind == "u" and array.dtype.itemsize == 2:  # in any byte order: there are only so many
        return _codes(np.arange(FULL + 1), ends)[array]
    return _codes(array, ends)


def _codes(array: NDArray, ends: ValueRange) -> NDArray[np.uint16]:
    """The same, number by number; NaN is none."""
    low, high = ends
    with np.errstate(over="ignore", invalid="ignore"):  # outside a mask there may be anything
        scaled = (array - np.float64(low)) * (FULL / (high - low))
    return np.rint(np.nan_to_num(scaled, copy=False).clip(0, FULL, out=scaled)).astype(np.uint16)


def _spread(seen: NDArray) -> bool:
    """Whether numbers are 8 bits spread over 16, as programs do that know only these."""
    some = seen.flat[:1000]  # nearly always enough to tell
    return not (some % SPREAD).any() and not (seen % SPREAD).any()


def _used(array: NDArray, inside: NDArray[np.bool_] | None, low: float, high: float) -> ValueRange:
    """The smallest and the largest number used, of numbers from `low` to `high`."""
    seen = (array if inside is None else array[inside]).ravel()
    n_stray = seen.size // STRAY
    if not n_stray:
        return low, high
    first, last = n_stray, seen.size - 1 - n_stray
    ordered = np.partition(seen, (first, last))
    used = _reached(array, inside, ordered[first], -1), _reached(array, inside, ordered[last], 1)
    return used if used[0] < used[1] else (low, high)


def _reached(array: NDArray, inside: NDArray[np.bool_] | None, limit: np.generic, sign: int) -> float:
    """The outermost number that most pixels of some 3 x 3 around one beyond the limit reach; at least the limit."""
    beyond = array > limit if sign > 0 else array < limit
    if inside is not None:
        beyond &= inside[..., None]
    *planes, rows, columns, channels = np.nonzero(beyond)
    if not len(rows):
        return float(limit)
    around = np.full((9, len(rows)), -np.inf)
    for values, (down, across) in zip(around, product((-1, 0, 1), repeat=2), strict=True):
        there = (rows + down >= 0) & (rows + down < array.shape[-3])
        there &= (columns + across >= 0) & (columns + across < array.shape[-2])
        places = (*(plane[there] for plane in planes), (rows + down)[there], (columns + across)[there])
        found = sign * array[*places, channels[there]].astype(np.float64)
        values[there] = found if inside is None else np.where(inside[places], found, -np.inf)
    reached = np.partition(around, 9 - MOST_OF_NINE, axis=0)[9 - MOST_OF_NINE].max()
    return float(sign * max(reached, sign * float(limit)))
