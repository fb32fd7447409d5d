"""How functions are compiled, and where the machine code is kept."""

import hashlib
import os
import shutil
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numba
from numba import njit, types
from numba.core.caching import FunctionCache
from numba.core.options import DefaultOptions

from spinseg._bundle import QUESTIONS, BundleType
from spinseg._numba import compiler_of

# Without Numba's reference counts, which cost more than the work of many functions here; nothing needs them where
# compiled code makes no array. The option is not documented, so where it is gone we do without.
OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True} | (
    {"_nrt": False} if hasattr(DefaultOptions, "_nrt") else {}
)
PACKAGE = Path(__file__).parent
config: Any = numba.config  # whose values are set when it is loaded


def jit(function: Any) -> Any:
    """`function` compiled to run without the interpreter lock, and kept on disk where a folder can be written."""
    dispatcher = njit(**OPTIONS, pipeline_class=compiler_of(has_entry=True))(function)
    folder = cache_folder()
    if folder is not None and hasattr(dispatcher, "enable_caching"):  # with JIT off it is the plain function
        before, config.CACHE_DIR = config.CACHE_DIR, str(folder)
        with suppress(RuntimeError):  # which Numba raises of a folder that it cannot use
            dispatcher._cache = _Cache(function)
        config.CACHE_DIR = before
    return dispatcher


class _Cache(FunctionCache):
    """The machine code of a function on disk. Files that cannot be read, as after a power cut, count as missing."""

    def load_overload(self, *key: Any) -> Any:
        try:
            return super().load_overload(*key)
        except Exception:  # damaged files raise nearly anything
            with suppress(OSError):
                self.flush()  # else the damaged index would prevent saving, too
            return None

    def save_overload(self, *key_and_code: Any) -> None:
        with suppress(OSError):  # the disk is full, say
            super().save_overload(*key_and_code)


def internal(function: Any, **options: Any) -> Any:
    """As `jit`, for what only compiled code calls: an entry for the interpreter would have to be compiled, too.

    Numba would compile it for each size of a whole number, and for each literal; here all signed ones have 64 bits.
    Nor is it compiled for each answer to questions that it does not ask. `options` are more of Numba's.
    """
    options |= {"no_cpython_wrapper": True, "pipeline_class": compiler_of(has_entry=False)}
    dispatcher = njit(**OPTIONS, **options)(function)
    if hasattr(dispatcher, "get_call_template"):  # with JIT off it is the plain function
        template_for = dispatcher.get_call_template
        dispatcher.get_call_template = lambda args, kws: template_for(
            tuple(_widened(kind, asks(function)) for kind in args), kws
        )
    return dispatcher


@cache
def asks(function: Any) -> bool:
    """Whether a function, or one that it calls, asks a question that the type of a bundle answers."""
    called = [function.__globals__.get(name) for name in function.__code__.co_names]
    return function in QUESTIONS or any(asks(step.py_func) for step in called if hasattr(step, "py_func"))


def _widened(kind: types.Type, asks: bool) -> types.Type:
    """The type as which an internal function takes an argument of a type."""
    kind = types.unliteral(kind)
    if isinstance(kind, BundleType) and not asks:
        return kind.unasked
    return types.int64 if isinstance(kind, types.Integer) and kind.signed else kind


def entry(function: Any) -> Any:
    """An `internal` function with an entry for the interpreter, compiled on its first call."""
    return jit(getattr(function, "py_func", function))  # with JIT off it is the plain function


@lru_cache
def cache_folder() -> Path | None:
    """The folder for machine code of these sources, beside them or in the user's cache; None where both are read-only.

    Numba compares the time of a function's own file only. An edit of what it calls in another file would go unnoticed,
    so that a digest of all compiled sources is part of the name.
    """
    digest = hashlib.blake2b(digest_size=8)
    compiled = [*PACKAGE.rglob("*kernels.py"), *PACKAGE.rglob("kernels/*.py")]
    for path in sorted([*(PACKAGE / f"{name}.py" for name in ("_compiled", "_bundle", "_numba")), *compiled]):
        digest.update(path.read_bytes())
    name = f"compiled-{digest.hexdigest()}"
    if config.CACHE_DIR:  # from NUMBA_CACHE_DIR
        return Path(config.CACHE_DIR) / name
    users = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "spinseg")
    for place in (PACKAGE / "__pycache__", users):
        with suppress(OSError):
            folder = place / name
            if not folder.exists():
                folder.mkdir(parents=True)
                if place.parent == PACKAGE:  # what earlier versions of these sources left there
                    for other in place.glob("compiled-*"):
                        if other != folder:
                            shutil.rmtree(other, ignore_errors=True)
            if os.access(folder, os.W_OK | os.X_OK):
                return folder
    return None
