"""Numba's compiler without what no function here needs, which halves the time that a first segmentation waits for it.

The functions make no arrays, raise and catch nothing, and have no closures. `docs/evidence/speed.md` has what each part
saves. All of it rests on parts of Numba that are not documented, so that other versions than those that were tried
compile with Numba's own compiler: the machine code does the same.
"""

import gc
import operator
from collections import Counter
from types import SimpleNamespace
from typing import Any, ClassVar

import numba
from llvmlite.ir import Constant, IntType, Undefined
from numba.core import ir, types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.compiler_machinery import FunctionPass, PassManager, register_pass
from numba.core.interpreter import Interpreter
from numba.core.ir_utils import get_definition, guard
from numba.core.lowering import Lower
from numba.core.typed_passes import NativeLowering, NopythonTypeInference
from numba.core.types.iterators import RangeIteratorType, RangeType
from numba.core.types.misc import unliteral
from numba.core.typing import signature as signature_of
from numba.core.untyped_passes import FixupArgs, TranslateByteCode

from spinseg._bundle import BundleType

TRIED = (0, 62), (0, 68)  # the first and the last version
# What Numba looks for in every function, and what no function here has: blocks of `with`, closures, arithmetic with
# whole arrays, exceptions, tuples or literals to unroll loops over, and names for values without a common type; and
# where a variable is used last.
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
    "IRLegalization",
    "IRProcessing",
    "ReconstructSSA",
    "PreLowerStripPhis",
}
WORD = IntType(64)


def compiler_of(has_entry: bool) -> type[Compiler]:
    """The compiler of functions that have an entry for the interpreter, or of others."""
    version = tuple(map(int, numba.__version__.split(".")[:2]))
    config: Any = numba.config
    if not TRIED[0] <= version <= TRIED[1] or config.DEBUGINFO_DEFAULT:  # a debugger wants variables in memory
        return Compiler
    return _EntryCompiler if has_entry else _PartCompiler


class _Code(JITCodeLibrary):
    """The code of a function with all that it calls, which LLVM optimizes once, as a whole.

    Numba has each function optimized by itself, and again in each of its callers. `opt=2` is a little less than what
    Numba asks for; the sampler is as fast.
    """

    def _optimize_functions(self, module: Any) -> None:
        module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        passes, builder = self._codegen._module_pass_manager(opt=2)
        passes.run(self._final_module, builder)

    def finalize(self) -> None:
        """Link the parts that the function calls, and the parts that these call."""
        numbas: Any = self  # whose attributes have no types
        called = numbas._linking_libraries = [*numbas._linking_libraries]
        for library in called:
            if isinstance(library, _Part):
                called += [other for other in library._linking_libraries if other not in called]
        super().finalize()


class _Part(_Code):
    """The code of a function that only compiled code calls: it becomes machine code as part of its callers."""

    def finalize(self) -> None:
        """Leave everything to the callers."""
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """None, as of any function without an entry for the interpreter."""
        self._ensure_finalized()
        return 0

    @property
    def codegen(self) -> Any:
        """Where Numba sets the function's globals, of which there are none without machine code."""
        return SimpleNamespace(set_env=lambda name, environment: None)


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


class _Typing:
    """Numba's typing, with a memory: it tries dozens of signatures for every addition."""

    found: ClassVar[dict[Any, Any]] = {}

    def __init__(self, context: Any) -> None:
        self.context = context

    def __getattr__(self, name: str) -> Any:
        return getattr(self.context, name)

    def resolve_function_type(self, function: Any, args: Any, kws: Any) -> Any:
        if kws or isinstance(function, types.Dispatcher):  # which is compiled for these types, too
            return self.context.resolve_function_type(function, args, kws)
        question = self.context, function, tuple(args)
        if question not in self.found:
            found = _of_numbers(self.context, function, args)
            self.found[question] = found or self.context.resolve_function_type(function, args, kws)
        return self.found[question]

    def resolve_getattr(self, kind: Any, name: str) -> Any:
        question = self.context, kind, name
        if question not in self.found:
            self.found[question] = self.context.resolve_getattr(kind, name)
        return self.found[question]


def _of_numbers(context: Any, function: Any, args: Any) -> Any:
    """The signature of `max` and `min` of two numbers and of `int` of one: `_Lower` has them in a line or two."""
    kinds, key = [unliteral(kind) for kind in args], getattr(function, "typing_key", None)
    if key in (max, min) and len(kinds) == 2 and all(isinstance(kind, types.Integer | types.Float) for kind in kinds):
        kind = context.unify_types(*kinds)
        return signature_of(kind, kind, kind)
    if key is int and len(kinds) == 1 and isinstance(kinds[0], types.Float):
        return signature_of(types.int64, *kinds)
    return None


@register_pass(mutates_CFG=False, analysis_only=False)
class _Inference(NopythonTypeInference):
    _name = "type inference with a memory"

    def run_pass(self, compilation: Any) -> bool:
        context = compilation.typingctx
        compilation.typingctx = _Typing(context)
        try:
            return super().run_pass(compilation)
        finally:
            compilation.typingctx = context


class _Lower(Lower):
    """To LLVM's code, as short as it goes.

    What is assigned once is a value, where Numba has a place in memory, and nothing is cleared when it is used no more.
    A loop over a range is a comparison and an addition. LLVM would remove most of what Numba writes, after reading it.
    """

    def _find_singly_assigned_variable(self) -> None:
        assigned: Counter[str] = Counter()
        early = set()  # what is used before it is assigned, in the order in which blocks are lowered
        for _, block in sorted(self.blocks.items()):
            for step in block.body:
                if isinstance(step, ir.Del):
                    continue
                target = step.target.name if isinstance(step, ir.Assign) else None
                early |= {used.name for used in step.list_vars()} - assigned.keys() - {target}
                if target is not None:
                    assigned[target] += 1
        self._singly_assigned_vars = {name for name, times in assigned.items() if times == 1 and name not in early}
        self._blk_local_varmap: dict[str, Any] = {}

    def pre_block(self, block: Any) -> None:
        self._cur_ir_block = block

    def storevar(self, value: Any, name: str, argidx: int | None = None) -> None:
        if name in self._singly_assigned_vars:
            self._blk_local_varmap[name] = value
        else:
            self.builder.store(value, self.getvar(name))

    def delvar(self, name: str) -> None:
        """Nothing."""

    def lower_expr(self, kind: Any, expr: Any) -> Any:
        if expr.op == "call" and not (expr.kws or expr.vararg):
            short = self._short_call(kind, getattr(self.typeof(expr.func.name), "typing_key", None), expr)
        elif expr.op in ("getiter", "iternext", "pair_first", "pair_second"):
            short = self._step_of_loop(kind, expr.op, self.typeof(expr.value.name), self.loadvar(expr.value.name))
        else:
            short = None
        return super().lower_expr(kind, expr) if short is None else short

    def lower_binop(self, kind: Any, expr: Any, operation: Any) -> Any:
        signature = self.fndesc.calltypes[expr]
        if operation is operator.pow or not all(isinstance(of, types.Number) for of in signature.args):
            return super().lower_binop(kind, expr, operation)
        return self._called(operation, kind, signature, expr.lhs, expr.rhs)

    def lower_getitem(self, kind: Any, expr: Any, value: Any, index: Any, signature: Any) -> Any:
        return self._called(operator.getitem, kind, signature, value, index)

    def _called(self, function: Any, kind: Any, signature: Any, *args: Any) -> Any:
        """What a function gives that Numba has a builtin implementation of."""
        value = self.context.get_function(function, signature)(self.builder, self._cast(args, signature.args))
        return self.context.cast(self.builder, value, signature.return_type, kind)

    def _cast(self, args: Any, kinds: Any) -> list[Any]:
        """The values of variables, as values of other types."""
        return [
            self.context.cast(self.builder, self.loadvar(arg.name), self.typeof(arg.name), kind)
            for arg, kind in zip(args, kinds, strict=True)
        ]

    def _short_call(self, kind: Any, function: Any, expr: Any) -> Any:
        """The call of `range`, or of `max`, `min` or `int` with numbers; None of anything else."""
        builder, found = self.builder, self.fndesc.calltypes[expr]
        if function is range:
            given = self._cast(expr.args, [kind.dtype] * len(expr.args))
            zero, one = (self.context.get_constant(kind.dtype, value) for value in (0, 1))
            return self._struct(kind, *[zero, *given, one][len(given) > 1 :][:3])
        if _of_numbers(self.context.typing_context, self.typeof(expr.func.name), found.args) is None:
            return None
        values = self._cast(expr.args, found.args)
        if function is int:
            value = builder.fptosi(*values, WORD)
        else:
            is_better = self._compare("<" if function is min else ">", found.return_type, *values[::-1])
            value = builder.select(is_better, *values[::-1])
        return self.context.cast(builder, value, found.return_type, kind)

    def _compare(self, sign: str, kind: Any, first: Any, second: Any) -> Any:
        if isinstance(kind, types.Float):
            return self.builder.fcmp_ordered(sign, first, second)
        return (self.builder.icmp_signed if kind.signed else self.builder.icmp_unsigned)(sign, first, second)

    def _step_of_loop(self, kind: Any, step: str, of: Any, value: Any) -> Any:
        """One of the four steps of a loop over a range; None of a loop over anything else."""
        builder = self.builder
        if step in ("pair_first", "pair_second"):
            return builder.extract_value(value, int(step == "pair_second"))
        if step == "getiter" and isinstance(of, RangeType):
            start, stop, by = (builder.extract_value(value, part) for part in range(3))
            with builder.goto_entry_block():
                place = builder.alloca(start.type)
            builder.store(start, place)
            return self._struct(kind, place, stop, by)
        if step == "iternext" and isinstance(of, RangeIteratorType):
            place, stop, by = (builder.extract_value(value, part) for part in range(3))
            at = builder.load(place)
            builder.store(builder.add(at, by), place)
            below, above = (self._compare(sign, of.yield_type, at, stop) for sign in "<>")
            return self._struct(kind, at, builder.select(builder.icmp_signed(">", by, by.type(0)), below, above))
        return None

    def _struct(self, kind: types.Type, *parts: Any) -> Any:
        value = Constant(self.context.get_value_type(kind), Undefined)
        for place, part in enumerate(parts):
            value = self.builder.insert_value(value, part, place)
        return value


@register_pass(mutates_CFG=False, analysis_only=False)
class _Lowering(NativeLowering):
    _name = "short lowering"

    @property
    def lowering_class(self) -> type[Lower]:
        return _Lower


class _Interpreter(Interpreter):
    """Of the bytecode, without looking for blocks of `with`, unpacked arguments and joined dictionaries in the end."""

    def post_process(self, peepholes: Any, code: Any) -> Any:
        return code


@register_pass(mutates_CFG=True, analysis_only=False)
class _Translation(TranslateByteCode):
    _name = "short translation"

    def run_pass(self, compilation: Any) -> bool:
        compilation.func_ir = _Interpreter(compilation.func_id).interpret(compilation.bc)
        return True


REPLACED = {TranslateByteCode: _Translation, NopythonTypeInference: _Inference, NativeLowering: _Lowering}


class _Passes(PassManager):
    """Passes one after the other, without an analysis of the whole function after each."""

    def _runPass(self, index: int, step: Any, compilation: Any) -> None:
        step.analysis = self._analysis
        step.run_initialization(compilation)
        step.run_pass(compilation)
        step.run_finalizer(compilation)


class _EntryCompiler(Compiler):
    code: type[_Code] = _Code

    def define_pipelines(self) -> list[PassManager]:
        [whole] = super().define_pipelines()
        passes = _Passes(whole.pipeline_name)
        passes.passes = [
            (REPLACED.get(step, step), why) for step, why in whole.passes if step.__name__ not in UNUSED_PASSES
        ]
        passes.add_pass_after(_Answers, FixupArgs)
        passes.finalize()
        return [passes]

    def compile_extra(self, function: Any) -> Any:
        self.state.library = self.code(self.state.targetctx.codegen(), function.__qualname__)
        self.state.library.enable_object_caching()
        collects = gc.isenabled()
        gc.disable()  # it looked through half a million objects again and again, and none was garbage
        try:
            return super().compile_extra(function)
        finally:
            if collects:
                gc.enable()


class _PartCompiler(_EntryCompiler):
    code = _Part
