"""Bundles of arrays that compiled code takes as one pointer.

Numba passes a named tuple by value: one of 23 arrays is 161 numbers in every call and in every copy, and compiling that
takes longer than all the rest. A bundle is one pointer to a table that describes its arrays; reading an attribute loads
the description of one of them. To the interpreter it is an object with arrays as attributes, so that the same functions
run uncompiled, too.
"""

import hashlib
import operator
from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
from llvmlite import ir
from numba import typeof, types
from numba.core import cgutils
from numba.core.typeconv import Conversion
from numba.core.typing.arraydecl import GetItemBuffer, SetItemBuffer
from numba.core.typing.templates import AttributeTemplate, infer_global
from numba.extending import (
    NativeValue,
    infer_getattr,
    lower_builtin,
    lower_cast,
    lower_getattr_generic,
    models,
    register_model,
    unbox,
)
from numba.np.arrayobj import load_item, store_item
from numpy.typing import NDArray

WORD = ir.IntType(64)
QUESTIONS: set[Callable[[Any], bool]] = set()  # those of all bundles


class Bundle:
    """Arrays under the names that a subclass annotates. Their elements may be written; the arrays stay.

    `nested` is another bundle of the same kind, which compiled code may read only where there is one. `questions` are
    functions of a bundle that return a bool. The answers are part of its type, so that the compiler leaves out branches
    that it would never take.
    """

    _fields: ClassVar[tuple[str, ...]]
    _questions: ClassVar[dict[str, Callable[[Any], bool]]]
    _address: int  # of the table

    def __init_subclass__(cls, questions: tuple[Any, ...] = ()) -> None:
        cls._fields = tuple(cls.__annotations__)
        # With JIT off a question is the plain function.
        cls._questions = {question.__name__: getattr(question, "py_func", question) for question in questions}
        QUESTIONS.update(cls._questions.values())

    def __init__(self, nested: Self | None = None, /, **arrays: NDArray[Any]) -> None:
        assert arrays.keys() == set(self._fields), arrays.keys() ^ set(self._fields)
        self.nested = nested
        words: list[int] = [0 if nested is None else nested._address]
        for name in self._fields:
            array = arrays[name]
            setattr(self, name, array)
            # As Numba lays an array out: two owners, of which compiled code needs none, and what there is to know.
            words += [0, 0, array.size, array.itemsize, _address_of(array), *array.shape, *array.strides]
        self._table = np.array(words, np.int64)
        self._address = _address_of(self._table)
        self._numba_type_ = _type_of(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return _of_arrays, (type(self), self._asdict(), self.nested)  # a copy describes its own arrays

    def _asdict(self) -> dict[str, NDArray[Any]]:
        """The arrays by name."""
        return {name: getattr(self, name) for name in self._fields}

    def _replace(self, **changed: Any) -> Self:
        """The same bundle but for some arrays, or for the one nested in it."""
        return type(self)(changed.pop("nested", self.nested), **(self._asdict() | changed))


def _address_of(array: NDArray[Any]) -> int:
    return array.__array_interface__["data"][0]


def _of_arrays(kind: type[Bundle], arrays: dict[str, NDArray[Any]], nested: Bundle | None) -> Bundle:
    """A bundle of copied arrays."""
    return kind(nested, **arrays)


class BundleType(types.Type):
    """A bundle, as Numba sees it: the names and types of its arrays, and the answers to its questions by name."""

    def __init__(self, name: str, fields: tuple[tuple[str, types.Array], ...], answers: dict[str, bool]) -> None:
        self.name_of_class, self.fields, self.answers = name, fields, answers
        digest = hashlib.blake2b(f"{fields}{answers}".encode(), digest_size=8).hexdigest()
        super().__init__(name=f"{name}_{digest}")  # short, as it is part of the name of each function that takes one

    @property
    def unasked(self) -> Self:
        """The type for a function that asks no questions, so that it is compiled once for all answers."""
        return type(self)(self.name_of_class, self.fields, {})

    def field(self, name: str) -> "FieldType | None":
        """The type of an array."""
        return next((FieldType(array) for other, array in self.fields if other == name), None)

    def place_of(self, name: str) -> int:
        """Where the description of an array begins in the table, behind the address of the nested bundle."""
        before = [name for name, _ in self.fields].index(name)
        return 1 + sum(5 + 2 * array.ndim for _, array in self.fields[:before])


KNOWN_TYPES: dict[Any, BundleType] = {}


def _type_of(bundle: Bundle) -> BundleType:
    """The type of a bundle, for which Numba looks at the first of its kind only: it takes its time."""
    arrays = bundle._asdict()
    answers = {name: ask(bundle) for name, ask in bundle._questions.items()}
    layout = tuple((array.dtype, array.ndim, array.flags.num) for array in arrays.values())
    kind = type(bundle), layout, tuple(answers.values())
    if kind not in KNOWN_TYPES:
        fields = tuple((name, typeof(array)) for name, array in arrays.items())
        KNOWN_TYPES[kind] = BundleType(type(bundle).__name__, fields, answers)
    return KNOWN_TYPES[kind]


@register_model(BundleType)
class _Pointer(models.PrimitiveModel):
    def __init__(self, manager: Any, bundle: BundleType) -> None:
        super().__init__(manager, bundle, WORD.as_pointer())


class FieldType(types.Type):
    """An array of a bundle: the address of its first element, and of its description.

    Numba has seven numbers for an array, and asks of each index whether it counts from the end. An index into an array
    of a bundle is never negative.
    """

    def __init__(self, array: types.Array) -> None:
        self.array = array
        super().__init__(name=f"field({array.dtype},{array.ndim},{array.layout},{array.mutable},{array.aligned})")

    def can_convert_to(self, context: Any, other: types.Type) -> Any:
        return Conversion.safe if other == self.array else None

    def unify(self, context: Any, other: types.Type) -> Any:
        return other if other == self.array else None


@register_model(FieldType)
class _Reference(models.StructModel):
    def __init__(self, manager: Any, field: FieldType) -> None:
        element = types.CPointer(field.array.dtype)
        super().__init__(manager, field, [("first", element), ("description", types.CPointer(types.int64))])


@infer_getattr
class _Attributes(AttributeTemplate):
    key = BundleType

    def generic_resolve(self, bundle: BundleType, name: str) -> types.Type | None:
        return bundle if name == "nested" else bundle.field(name)


@infer_getattr
class _FieldAttributes(AttributeTemplate):
    key = FieldType

    def generic_resolve(self, field: FieldType, name: str) -> types.Type | None:
        return self.context.resolve_getattr(field.array, name)


@lower_getattr_generic(BundleType)
def _load(context: Any, builder: Any, bundle: BundleType, pointer: Any, name: str) -> Any:
    if name == "nested":
        return builder.inttoptr(builder.load(pointer), WORD.as_pointer())
    field = bundle.field(name)
    description = builder.gep(pointer, [WORD(bundle.place_of(name))])
    of_both = context.get_value_type(field)
    first = _word(builder, description, 4, of_both.elements[0])
    return builder.insert_value(builder.insert_value(of_both(ir.Undefined), first, 0), description, 1)


def _word(builder: Any, description: Any, place: int, kind: Any = WORD) -> Any:
    """What a description holds at a place; it never changes."""
    word = builder.load(builder.bitcast(builder.gep(description, [WORD(place)]), kind.as_pointer()))
    word.set_metadata("invariant.load", builder.module.add_metadata([]))
    return word


@lower_getattr_generic(FieldType)
def _attribute(context: Any, builder: Any, field: FieldType, value: Any, name: str) -> Any:
    if name == "size":
        return _word(builder, builder.extract_value(value, 1), 2)
    array = _array(context, builder, field, field.array, value)
    return context.get_getattr(field.array, name)(context, builder, field.array, array, name)


@lower_cast(FieldType, types.Array)
def _array(context: Any, builder: Any, field: FieldType, array: types.Array, value: Any) -> Any:
    described = context.get_value_type(array)
    return builder.load(builder.bitcast(builder.extract_value(value, 1), described.as_pointer()))


# What is declared for this target alone comes first. To type an index, Numba tries strings, dictionaries, lists and
# others before arrays, tens of thousands of times.
@infer_global(operator.getitem)
class _GetItem(GetItemBuffer):
    metadata: ClassVar = {"target": "cpu"}

    def generic(self, args: Any, kws: Any) -> Any:
        return _typed(super().generic, args, kws)


@infer_global(operator.setitem)
class _SetItem(SetItemBuffer):
    metadata: ClassVar = {"target": "cpu"}

    def generic(self, args: Any, kws: Any) -> Any:
        return _typed(super().generic, args, kws)


def _typed(generic: Any, args: Any, kws: Any) -> Any:
    """The signature of an index, of the field itself if it is of one element or writes, else of the array."""
    container, *others = args
    if not isinstance(container, FieldType):
        return generic(args, kws)
    found = generic((container.array, *others), kws)
    if found is None or not (others[1:] or _is_of_element(container.array, found.args[1])):
        return found
    return found.replace(args=(container, *found.args[1:]))


def _is_of_element(array: types.Array, index: types.Type) -> bool:
    """Whether an index is of one element, and the elements follow each other."""
    kinds = list(index) if isinstance(index, types.BaseTuple) else [index]
    return array.layout in "CF" and len(kinds) == array.ndim and all(isinstance(kind, types.Integer) for kind in kinds)


def _place(context: Any, builder: Any, field: FieldType, value: Any, kind: types.Type, index: Any) -> Any:
    """The address of the element at an index."""
    first, description = (builder.extract_value(value, place) for place in range(2))
    is_tuple, ndim = isinstance(kind, types.BaseTuple), field.array.ndim
    indices = list(enumerate(cgutils.unpack_tuple(builder, index, ndim) if is_tuple else [index]))
    if field.array.layout == "F":
        indices.reverse()
    (_, offset), *others = indices
    for axis, index in others:
        offset = builder.add(builder.mul(offset, _word(builder, description, 5 + axis)), index)
    return builder.gep(first, [offset])


@lower_builtin(operator.getitem, FieldType, types.Integer)
@lower_builtin(operator.getitem, FieldType, types.BaseTuple)
def _get(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    field, kind = signature.args
    value, index = args
    return load_item(context, builder, field.array, _place(context, builder, field, value, kind, index))


@lower_builtin(operator.setitem, FieldType, types.Any, types.Any)
def _set(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    field, kind, put = signature.args
    value, index, element = args
    if _is_of_element(field.array, kind):
        element = context.cast(builder, element, put, field.array.dtype)
        store_item(context, builder, field.array, element, _place(context, builder, field, value, kind, index))
        return context.get_dummy_value()
    of_array = signature.replace(args=(field.array, kind, put))
    array = _array(context, builder, field, field.array, value)
    return context.get_function(operator.setitem, of_array)(builder, (array, index, element))


@lower_cast(BundleType, BundleType)
def _same_pointer(context: Any, builder: Any, bundle: BundleType, other: BundleType, pointer: Any) -> Any:
    return pointer


@unbox(BundleType)
def _unboxed(bundle: BundleType, instance: Any, context: Any) -> NativeValue:
    address = context.pyapi.object_getattr_string(instance, "_address")
    pointer = context.builder.bitcast(context.pyapi.long_as_voidptr(address), WORD.as_pointer())
    context.pyapi.decref(address)
    return NativeValue(pointer)
