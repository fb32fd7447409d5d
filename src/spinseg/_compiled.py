"""How functions are compiled, and where the machine code is kept."""

import hashlib
import os
import shutil
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numba
from numba import njit, types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.options import DefaultOptions

# Without Numba's reference counts, which cost more than the work of many functions here; nothing needs them where
# compiled code makes no array. The option is not documented, so where it is gone we do without.
OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True} | (
    {"_nrt": False} if hasattr(DefaultOptions, "_nrt") else {}
)
PACKAGE = Path(__file__).parent
config: Any = numba.config  # whose values are set when it is loaded


def jit(function: Any) -> Any:
    """`function` compiled to run without the interpreter lock, and kept on disk where a folder can be written."""
    dispatcher = njit(**OPTIONS)(function)
    folder = cache_folder()
    if folder is not None and hasattr(dispatcher, "enable_caching"):  # with JIT off it is the plain function
        before, config.CACHE_DIR = config.CACHE_DIR, str(folder)
        with suppress(RuntimeError):  # which Numba raises of a folder that it cannot use
            dispatcher.enable_caching()
        config.CACHE_DIR = before
    return dispatcher


class _Part(JITCodeLibrary):
    """The code of a function that only compiled code calls: it becomes machine code as part of its callers.

    Numba would optimize and translate each such function by itself, too, which takes as long as all the rest.
    """

    def _optimize_final_module(self) -> None:
        """Leave it to the callers."""

    def _finalize_final_module(self) -> None:
        """Make no machine code."""
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """None, as of any function without an entry for the interpreter."""
        self._ensure_finalized()
        return 0

    @property
    def codegen(self) -> Any:
        """Where Numba sets the function's globals, of which there are none without machine code."""
        return SimpleNamespace(set_env=lambda name, environment: None)


class _PartCompiler(Compiler):
    def compile_extra(self, function: Any) -> Any:
        self.state.library = _Part(self.state.targetctx.codegen(), function.__qualname__)
        return super().compile_extra(function)


def internal(function: Any) -> Any:
    """As `jit`, for what only compiled code calls: an entry for the interpreter would have to be compiled, too.

    Numba would compile it for each size of a whole number, and for each literal; here all signed ones have 64 bits.
    """
    dispatcher = njit(**OPTIONS, no_cpython_wrapper=True, pipeline_class=_PartCompiler)(function)
    if hasattr(dispatcher, "get_call_template"):  # with JIT off it is the plain function
        template_for = dispatcher.get_call_template
        dispatcher.get_call_template = lambda args, kws: template_for(tuple(map(_widened, args)), kws)
    return dispatcher


def _widened(kind: types.Type) -> types.Type:
    """The type as which an internal function takes an argument of a type."""
    kind = types.unliteral(kind)
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
    for path in sorted([PACKAGE / "_compiled.py", PACKAGE / "_bundle.py", *compiled]):
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
