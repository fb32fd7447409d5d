"""How functions are compiled."""

from typing import Any

from numba import njit
from numba.core.options import DefaultOptions

# Without Numba's reference counts, which cost more than the work of many functions here; nothing needs them where
# compiled code makes no array. The option is not documented, so where it is gone we do without.
OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"} | (
    {"_nrt": False} if hasattr(DefaultOptions, "_nrt") else {}
)


def jit(function: Any, **more: Any) -> Any:
    """`function` compiled to run without the interpreter lock, cached on disk where a folder can be written."""
    try:
        return njit(cache=True, **OPTIONS, **more)(function)
    except RuntimeError:  # no cache folder that can be written
        return njit(**OPTIONS, **more)(function)


def inlined(function: Any) -> Any:
    """As `jit`, and copied into its caller: passing two tuples of arrays takes time, and so does compiling layers."""
    return jit(function, inline="always")
