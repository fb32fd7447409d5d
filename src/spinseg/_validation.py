"""Checks of what a caller passes: each failure is one line with the name, the rule and the value given."""

import math
import os
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinseg._errors import InvalidInput as InvalidInput

MAX_MAGNITUDE = 1e100  # numbers beyond it overflow in sums of squares


def invalid(name: str, rule: str, value: object, **about: Any) -> NoReturn:
    """Raise the one kind of error that wrong input gets; `about` has the values of fields of the rule, if there are."""
    if isinstance(value, np.generic):
        value = value.item()
    text = np.array2string(value, threshold=6, edgeitems=2) if isinstance(value, np.ndarray) else repr(value)
    broken = rule.format(**about) if about else rule
    raise InvalidInput(f"{name} must {broken}: got {' '.join(text.split())[:200]}", name, rule, **about)


def _plain_number(name: str, rule: str, value: Any) -> Any:
    """`value` as a finite number of Python, and no bool."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        invalid(name, rule, value)
    value = value.item() if isinstance(value, np.generic) else value  # MAX_MAGNITUDE overflows single precision
    if not -MAX_MAGNITUDE <= value <= MAX_MAGNITUDE:
        invalid(name, rule, value)
    return value


def check_real(
    name: str, value: Any, *, above: float = -math.inf, at_least: float = -math.inf, at_most: float = math.inf
) -> float:
    """`value` as a finite float within bounds."""
    rule = "be a finite number"
    rule += f" above {above + 0.0:g}" if above > -math.inf else ""
    rule += f" of at least {at_least:g}" if at_least > -math.inf else ""
    rule += f" and at most {at_most:g}" if at_most < math.inf else ""
    value = _plain_number(name, rule, value)
    if value <= above or not at_least <= value <= at_most:
        invalid(name, rule, value)
    return float(value)


def check_int(name: str, value: Any, *, at_least: int, below: int = 2**63) -> int:
    """`value` as an int, at least a bound."""
    rule = f"be a whole number of at least {at_least}"
    value = _plain_number(name, rule, value)
    if int(value) != value or value < at_least:
        invalid(name, rule, value)
    if value >= below:
        invalid(name, f"be below {below}", value)
    return int(value)


def check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """Refuse a value that is not among `choices`."""
    if not isinstance(value, str) or value not in choices:
        invalid(name, "be one of " + ", ".join(map(repr, choices)), value)


def check_array(name: str, value: ArrayLike) -> NDArray[Any]:
    """`value` as an array of booleans, whole or floating numbers."""
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):  # rows of different lengths
        invalid(name, "be an array of numbers", value)
    if array.dtype.kind not in "biuf":
        invalid(name, "be an array of numbers", value if array.ndim == 0 else array.dtype.name)
    return array


def integer_array(name: str, value: ArrayLike) -> NDArray[Any]:
    """`value` as an array of an integer type."""
    array = check_array(name, value)
    if array.dtype.kind not in "iu":
        invalid(name, "be whole numbers", array.dtype.name)
    return array


def finite_array(name: str, value: ArrayLike, shape: tuple[int | None, ...]) -> NDArray[np.float64]:
    """A float64 copy of `value`, of the given shape (None: any length), without NaN, infinity or giants."""
    array = check_array(name, value).astype(np.float64)
    if array.ndim != len(shape) or any(want not in (None, have) for want, have in zip(shape, array.shape, strict=True)):
        wanted = "(" + ", ".join("any" if want is None else str(want) for want in shape) + ")"
        invalid(name, f"have shape {wanted}", array.shape)
    bad = ~(np.abs(array) <= MAX_MAGNITUDE)
    if bad.any():
        value = array[bad][0]
        invalid(name, f"be at most {MAX_MAGNITUDE:g} in size" if np.isfinite(value) else "be finite", value)
    return array


def per_item(name: str, value: ArrayLike, n_items: int, *, positive: bool = False) -> NDArray[np.float64]:
    """One number for all items or one for each, as a vector."""
    array = check_array(name, value)
    vector = finite_array(name, np.full(n_items, array) if array.ndim == 0 else array, (n_items,))
    if positive and (vector <= 0).any():
        invalid(name, "be positive", vector[vector <= 0][0])
    return vector


def generator(rng: int | np.random.Generator | None) -> np.random.Generator:
    """`rng` as a Generator."""
    rule = "be a whole number of at least 0, a Generator or None"
    if isinstance(rng, bool):
        invalid("rng", rule, rng)
    try:
        generator = np.random.default_rng(rng)
        generator.bit_generator.seed_seq.spawn(0)  # type: ignore[attr-defined]
        return generator
    except (AttributeError, TypeError, ValueError):
        invalid("rng", rule, rng)


def seed_of(rng: int | np.random.Generator | None) -> int:
    """The seed itself, one drawn from a Generator, or a fresh one for None."""
    if isinstance(rng, np.random.Generator):
        return int(rng.integers(2**63))
    if rng is None:
        return secrets.randbits(63)
    generator(rng)
    if not isinstance(rng, (int, np.integer)):
        invalid("rng", "be a whole number of at least 0, a Generator or None", rng)
    return int(rng)


def site_set(name: str, value: ArrayLike, n_sites: int) -> NDArray[np.int64]:
    """A set of sites, given as different indices or as a mask, as indices."""
    array = check_array(name, value)
    if array.dtype.kind == "b" and array.shape == (n_sites,):
        return np.flatnonzero(array)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        invalid(name, f"be a list of sites or a mask of length {n_sites}", value)
    if array.size and (array.min() < 0 or array.max() >= n_sites):
        invalid(name, f"be sites 0..{n_sites - 1}", value)
    return array.astype(np.int64)


def checked_edges(edges: ArrayLike, n_sites: int) -> NDArray[np.int32]:
    """`edges` as (E, 2) int32, refused where they are not pairs of sites."""
    array = check_array("edges", edges)
    if array.size == 0:
        array = np.empty((0, 2), np.int32)
    if array.ndim != 2 or array.shape[1] != 2:
        invalid("edges", "have shape (n_edges, 2)", array.shape)
    array = integer_array("edges", array)
    outside = ((array < 0) | (array >= n_sites)).any(axis=1)
    if outside.any():
        invalid("edges", f"join sites 0..{n_sites - 1}", array[outside][0])
    return array.astype(np.int32)


def check_writable(folder: str | os.PathLike[str]) -> None:
    """Refuse a folder that cannot be written or made, without making it: there may be nothing to write."""
    path = Path(folder).absolute()
    there = next((place for place in (path, *path.parents) if os.path.lexists(place)), path)
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        raise InvalidInput(f"cannot write to the folder {os.fspath(folder)}")


def counted(number: int, noun: str) -> str:
    """A number with its noun."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
