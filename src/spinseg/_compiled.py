"""How functions are compiled."""

from typing import Any

from numba import njit


def jit(function: Any, **more: Any) -> Any:
    """`function` compiled to run without the interpreter lock, cached on disk where a folder can be written.

    `_nrt=False` leaves out Numba's reference counts, which cost more than the work of many functions here; nothing
    needs them where compiled code makes no array. The option is not documented, so where it is gone we do without.
    """
    more |= {"nogil": True, "error_model": "numpy"}
    for options in ({"_nrt": False, "cache": True}, {"_nrt": False}, {"cache": True}, {}):
        try:
            return njit(**(more | options))(function)
        except (KeyError, RuntimeError, TypeError):  # an unknown option, or no cache folder that can be written
            if not options:
                raise


def inlined(function: Any) -> Any:
    """As `jit`, and copied into its caller: passing two tuples of arrays takes time, and so does compiling layers."""
    return jit(function, inline="always")
