"""How functions are compiled, and where the machine code is kept."""

import hashlib
import operator
import os
import shutil
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numba
from numba import njit, types
from numba.core import ir
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.ir_utils import get_definition, guard
from numba.core.options import DefaultOptions
from numba.core.typing.arraydecl import GetItemBuffer, SetItemBuffer
from numba.core.typing.templates import infer_global
from numba.core.untyped_passes import IRProcessing

from spinseg._bundle import QUESTIONS, BundleType

# Without Numba's reference counts, which cost more than the work of many functions here; nothing needs them where
# compiled code makes no array. The option is not documented, so where it is gone we do without.
OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True} | (
    {"_nrt": False} if hasattr(DefaultOptions, "_nrt") else {}
)
PACKAGE = Path(__file__).parent
config: Any = numba.config  # whose values are set when it is loaded

# What Numba looks for in every function, and what no function here has: blocks of `with`, closures, arithmetic with
# whole arrays, exceptions, and tuples or literals to unroll loops over.
UNUSED_PASSES = {
    "WithLifting",
    "InlineClosureLikes",
    "RewriteDynamicRaises",
    "MakeFunctionToJitFunction",
    "InlineInlinables",
    "FindLiterallyCalls",
    "LiteralUnroll",
    "LiteralPropagationSubPipelinePass",
    "InlineOverloads",
    "NopythonRewrites",
}


def jit(function: Any) -> Any:
    """`function` compiled to run without the interpreter lock, and kept on disk where a folder can be written."""
    dispatcher = njit(**OPTIONS, pipeline_class=_Compiler)(function)
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


# To type an index, Numba tries strings, dictionaries, lists and others before arrays, tens of thousands of times. What
# is declared for this target alone comes first.
@infer_global(operator.getitem)
class _GetItem(GetItemBuffer):
    metadata: ClassVar = {"target": "cpu"}


@infer_global(operator.setitem)
class _SetItem(SetItemBuffer):
    metadata: ClassVar = {"target": "cpu"}


@register_pass(mutates_CFG=False, analysis_only=False)
class _Answers(FunctionPass):
    """Replace the questions to a bundle by the answers in its type; Numba then drops branches that are never taken."""

    _name = "answer questions to bundles"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, compilation: Any) -> bool:
        code = compilation.func_ir
        calls = [
            assignment
            for block in code.blocks.values()
            for assignment in block.find_insts(ir.Assign)
            if isinstance(assignment.value, ir.Expr) and assignment.value.op == "call" and assignment.value.args
        ]
        for call in calls:
            asked, function = (guard(get_definition, code, part) for part in (call.value.args[0], call.value.func))
            kind = compilation.args[asked.index] if isinstance(asked, ir.Arg) else None
            if isinstance(kind, BundleType) and isinstance(function, ir.Global) and function.name in kind.answers:
                answer = ir.Const(kind.answers[function.name], call.loc)
                code._definitions[call.target.name] = [answer]
                call.value = answer
        return bool(calls)


class _Compiler(Compiler):
    def define_pipelines(self) -> Any:
        pipelines = super().define_pipelines()
        for pipeline in pipelines:
            pipeline.passes = [step for step in pipeline.passes if step[0].__name__ not in UNUSED_PASSES]
            pipeline.add_pass_after(_Answers, IRProcessing)
            pipeline.finalize()
        return pipelines


class _PartCompiler(_Compiler):
    def compile_extra(self, function: Any) -> Any:
        self.state.library = _Part(self.state.targetctx.codegen(), function.__qualname__)
        return super().compile_extra(function)


def internal(function: Any) -> Any:
    """As `jit`, for what only compiled code calls: an entry for the interpreter would have to be compiled, too.

    Numba would compile it for each size of a whole number, and for each literal; here all signed ones have 64 bits.
    Nor is it compiled for each answer to questions that it does not ask.
    """
    dispatcher = njit(**OPTIONS, no_cpython_wrapper=True, pipeline_class=_PartCompiler)(function)
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
