"""Checks of what a caller passes: each failure is one line with the name, the rule and the value received."""

import math
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray


def refuse(name: str, rule: str, value: object) -> NoReturn:
    """Raise the one kind of error that wrong input gets."""
    text = np.array2string(value, threshold=6, edgeitems=2) if isinstance(value, np.ndarray) else repr(value)
    raise ValueError(f"{name} must {rule}; received {' '.join(text.split())[:200]}")


def number(name: str, value: Any, *, above: float = -math.inf, at_least: float = -math.inf) -> float:
    """`value` as a finite float, strictly above or at least a bound."""
    bound = f" above {above:g}" if above > -math.inf else f" of at least {at_least:g}" if at_least > -math.inf else ""
    rule = f"be a finite number{bound}"
    if isinstance(value, (str, bytes, bool)) or np.ndim(value) != 0:
        refuse(name, rule, value)
    try:
        result = float(value)
    except (TypeError, ValueError):
        refuse(name, rule, value)
    if not math.isfinite(result) or result <= above or result < at_least:
        refuse(name, rule, value)
    return result


def whole(name: str, value: Any, *, at_least: int) -> int:
    """`value` as an int, at least a bound."""
    rule = f"be a whole number of at least {at_least}"
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        refuse(name, rule, value)
    if value != value or math.isinf(value) or int(value) != value or value < at_least:
        refuse(name, rule, value)
    return int(value)


def one_of(name: str, value: object, choices: Sequence[str]) -> None:
    """Refuse a value that is not among `choices`."""
    if not isinstance(value, str) or value not in choices:
        refuse(name, "be one of " + ", ".join(map(repr, choices)), value)


def finite_array(name: str, value: ArrayLike, shape: tuple[int | None, ...]) -> NDArray[np.float64]:
    """`value` as float64 of the given shape (None: any length), without NaN or infinity."""
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        refuse(name, "be an array of numbers", value)
    if array.ndim != len(shape) or any(want not in (None, have) for want, have in zip(shape, array.shape, strict=True)):
        wanted = "(" + ", ".join("any" if want is None else str(want) for want in shape) + ")"
        refuse(name, f"have shape {wanted}", array.shape)
    if not np.isfinite(array).all():
        refuse(name, "be finite", array[~np.isfinite(array)][0])
    return array


def labels(name: str, value: ArrayLike, n_sites: int) -> NDArray[np.int32]:
    """`value` as a partition of the sites: int32 labels numbered 0..k-1 by first appearance."""
    array = np.asarray(value)
    if array.shape != (n_sites,):
        refuse(name, f"have one entry per site, shape ({n_sites},)", array.shape)
    if array.dtype.kind not in "iu":
        refuse(name, "be whole numbers", array.dtype.name)
    _, first, inverse = np.unique(array, return_index=True, return_inverse=True)
    rank = np.empty(first.size, np.int32)
    rank[np.argsort(first)] = np.arange(first.size, dtype=np.int32)
    return rank[inverse]
