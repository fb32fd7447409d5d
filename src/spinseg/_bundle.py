"""Bundles of arrays that compiled code takes as one pointer.

Numba passes a named tuple by value: one of 23 arrays is 161 numbers in every call and in every copy, and compiling that
takes longer than all the rest. A bundle is one pointer to a table that describes its arrays; reading an attribute loads
the description of one of them. To the interpreter it is an object with arrays as attributes, so that the same functions
run uncompiled, too.
"""

from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
from llvmlite import ir
from numba import typeof, types
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    NativeValue,
    infer_getattr,
    lower_cast,
    lower_getattr_generic,
    models,
    register_model,
    unbox,
)
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
        super().__init__(name=f"{name}{fields}{answers}")

    @property
    def unasked(self) -> Self:
        """The type for a function that asks no questions, so that it is compiled once for all answers."""
        return type(self)(self.name_of_class, self.fields, {})

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


@infer_getattr
class _Attributes(AttributeTemplate):
    key = BundleType

    def generic_resolve(self, bundle: BundleType, name: str) -> types.Type | None:
        return bundle if name == "nested" else dict(bundle.fields).get(name)


@lower_getattr_generic(BundleType)
def _load(context: Any, builder: Any, bundle: BundleType, pointer: Any, name: str) -> Any:
    if name == "nested":
        return builder.inttoptr(builder.load(pointer), WORD.as_pointer())
    place = builder.gep(pointer, [WORD(bundle.place_of(name))])
    described = context.get_value_type(dict(bundle.fields)[name])
    return builder.load(builder.bitcast(place, described.as_pointer()))


@lower_cast(BundleType, BundleType)
def _same_pointer(context: Any, builder: Any, bundle: BundleType, other: BundleType, pointer: Any) -> Any:
    return pointer


@unbox(BundleType)
def _unboxed(bundle: BundleType, instance: Any, context: Any) -> NativeValue:
    address = context.pyapi.object_getattr_string(instance, "_address")
    pointer = context.builder.bitcast(context.pyapi.long_as_voidptr(address), WORD.as_pointer())
    context.pyapi.decref(address)
    return NativeValue(pointer)
