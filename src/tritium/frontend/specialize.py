"""What a compilation may know of the arguments of a kernel.

Nothing here touches arrays or devices: the launcher passes an ``ArrayArgument`` for each array.
Every launch needs this file, also one whose code is in the cache; ``tracing`` compiles.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple, TypeAlias

from tritium.diagnostics import error
from tritium.ir import dtypes
from tritium.ir.dtypes import DType, Type, float32, int1, int32, int64, uint64
from tritium.ir.types import PointerType
from tritium.language.names import const
from tritium.ops.callable import ConstexprFunction, DeviceFunction
from tritium.ops.constexpr import constexpr
from tritium.ops.tuples import TileTuple

DIVISIBILITY = 16
"""What integers, and addresses in bytes, are tested to be multiples of."""


# ---- what is known of an argument ----------------------------------------------------------------


class ArrayArgument(NamedTuple):
    """An array as the compiler sees it: element type, and the address of its first element."""

    dtype: DType
    address: int


class ConstantSpec:
    """A value that is known when the kernel is compiled; equal only to one of the same type."""

    __slots__ = ("_key", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        self._key = _typed(value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ConstantSpec) and bool(self._key == other._key)

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return f"ConstantSpec(value={self.value!r})"

    @property
    def signature(self) -> str:
        return "constexpr"


class ScalarSpec(NamedTuple):
    """A number known at run time; ``divisible`` says that it is a multiple of 16."""

    dtype: DType
    divisible: bool = False

    @property
    def type(self) -> Type:
        """The type of the kernel's parameter."""
        return self.dtype

    @property
    def signature(self) -> str:
        return "u1" if self.dtype is int1 else self.dtype.mnemonic


class PointerSpec(NamedTuple):
    """An array; ``divisible`` says that its address is a multiple of 16 bytes."""

    dtype: DType | PointerType
    divisible: bool = False
    const: bool = False

    @property
    def type(self) -> Type:
        """The type of the kernel's parameter."""
        return PointerType(self.dtype, const=self.const)

    @property
    def signature(self) -> str:
        return PointerType(self.dtype, const=self.const).mnemonic


class TupleSpec(NamedTuple):
    """A tuple, element by element; ``fields`` are the names of a named tuple."""

    elements: tuple[Spec, ...]
    fields: tuple[str, ...] | None = None

    @property
    def signature(self) -> tuple[Any, ...]:
        return tuple(each.signature for each in self.elements)


Spec: TypeAlias = "ConstantSpec | ScalarSpec | PointerSpec | TupleSpec"


def _typed(value: Any) -> Any:
    """A hashable key that tells 1, True and 1.0 apart, and zeros by their sign."""
    if isinstance(value, (tuple, list)):
        return (type(value), tuple(map(_typed, value)))
    if isinstance(value, float):
        return (float, value.hex())
    return (type(value), value)


class Parameter(NamedTuple):
    """How one parameter of a kernel is specialised.

    ``fixed`` is the type that an annotation gives. ``on_value`` and ``on_alignment`` are false
    where the decorator's ``do_not_specialize`` and ``do_not_specialize_on_alignment`` name it.
    """

    name: str
    is_constexpr: bool = False
    is_const: bool = False
    fixed: DType | PointerType | None = None
    on_value: bool = True
    on_alignment: bool = True


def parameters(
    function: DeviceFunction,
    do_not_specialize: Collection[str | int] = (),
    do_not_specialize_on_alignment: Collection[str | int] = (),
) -> dict[str, Parameter]:
    """The rule of each parameter, from its annotation and the decorator's lists.

    The lists hold names or positions. Raises E0206 where one names a ``tl.constexpr`` parameter.
    """
    rules: dict[str, Parameter] = {}
    for place, (name, declared) in enumerate(function.python_signature.parameters.items()):
        is_constexpr = name in function.constexpr_names
        on_value = name not in do_not_specialize and place not in do_not_specialize
        on_alignment = (
            name not in do_not_specialize_on_alignment
            and place not in do_not_specialize_on_alignment
        )
        if is_constexpr and not (on_value and on_alignment):
            raise error(
                "E0206",
                op=function.__name__,
                text=f"the tl.constexpr parameter {name} can't be do_not_specialize",
                hint="take one of them away",
            )
        fixed, is_const = (None, False) if is_constexpr else _annotated(declared.annotation)
        rules[name] = Parameter(
            name, is_constexpr, is_const, fixed, on_value, on_alignment and on_value
        )
    return rules


def _annotated(annotation: Any) -> tuple[DType | PointerType | None, bool]:
    """The type an annotation fixes, if any, and whether it marks a pointer to const."""
    if annotation is const:
        return None, True
    if isinstance(annotation, (DType, PointerType)):
        return annotation, False
    if isinstance(annotation, type):
        return {int: int32, float: float32, bool: int1}.get(annotation), False
    if not isinstance(annotation, str):
        return None, False
    text = annotation.strip("\"' ")
    is_const = "const" in text
    if is_const:
        text = text.replace("const", "").strip()
    pointer, name = text.startswith("*"), text.lstrip("* ").rpartition(".")[2]
    if pointer and name.startswith("k") and name[1:] in _NAMES:
        is_const, name = True, name[1:]
    if name not in _NAMES:
        return None, is_const
    dtype = dtypes.from_name(name)
    return (PointerType(dtype, const=is_const) if pointer else dtype), is_const


_NAMES = frozenset(
    spelling
    for dtype in dtypes.VALUES
    for spelling in (dtype.name, dtype.mnemonic, dtype.codegen_name())
) | {"int", "float", "bool", "u1"}


def specialize_arg(value: Any, rule: Parameter, kernel: str = "kernel") -> Spec:
    """What a compilation knows of an argument, by Triton's rules.

    None, 1, ``tl.constexpr`` parameters, functions of the language and ``constexpr`` values are
    constants. Other integers are int32, int64 or uint64, the first that holds them; bools int1,
    floats fp32. Arrays come as ``ArrayArgument``. Tuples go element by element, always by the
    default rules. Raises E0501 for anything else.
    """
    if rule.is_constexpr:
        return _constant(value, rule, kernel)
    if value is None or isinstance(value, (constexpr, DeviceFunction, ConstexprFunction)):
        return _constant(value, rule, kernel)
    if isinstance(value, ArrayArgument):
        return pointer(value.dtype, value.address, rule, kernel)
    if isinstance(value, (tuple, TileTuple)):
        elements = (
            specialize_arg(each, Parameter(f"{rule.name}.{place}"), kernel)
            for place, each in enumerate(value)
        )
        fields = getattr(value, "fields", None) or getattr(type(value), "_fields", None)
        return TupleSpec(tuple(elements), fields)
    if rule.fixed is not None and isinstance(value, (bool, int, float)):
        return _fixed(value, rule, rule.fixed, kernel)
    if isinstance(value, bool):
        return _BOOL
    if isinstance(value, int):
        return _integer(value, rule, kernel)
    if isinstance(value, float):
        return _FLOAT
    raise _refused(value, rule, kernel, "pass an array, a number, a tuple or None")


def _constant(value: Any, rule: Parameter, kernel: str) -> Spec:
    value = value.value if isinstance(value, constexpr) else value
    kind = type(value)
    if kind in _PLAIN:
        known = _CONSTANTS.get((kind, value))
        if known is not None:
            return known
    made = ConstantSpec(value)
    if kind in _PLAIN and len(_CONSTANTS) < _MOST_CONSTANTS:
        _CONSTANTS[kind, value] = made
    try:
        hash(made)
    except TypeError:
        raise _refused(value, rule, kernel, "a tl.constexpr argument must be hashable") from None
    return made


_PLAIN = frozenset({bool, int, str, type(None)})
_MOST_CONSTANTS = 4096
_CONSTANTS: dict[tuple[type, Any], ConstantSpec] = {}
"""Those of plain values are made once, up to a number."""


def pointer(element: DType, address: int, rule: Parameter, kernel: str = "kernel") -> PointerSpec:
    """What a compilation knows of an array. Raises E0501 where a number is wanted."""
    pointee: Any = element
    if rule.fixed is not None:
        if isinstance(rule.fixed, DType):
            value = ArrayArgument(element, address)
            raise _refused(value, rule, kernel, f"{rule.name} is annotated as {rule.fixed}")
        pointee = rule.fixed.element_ty
    key = (pointee, rule.on_alignment and address % DIVISIBILITY == 0, rule.is_const)
    made = _POINTERS.get(key)
    if made is None:
        made = _POINTERS[key] = PointerSpec(*key)
    return made


_POINTERS: dict[tuple[Any, bool, bool], PointerSpec] = {}
"""Each is made once: a launch makes one for each array."""


def _fixed(
    value: bool | int | float, rule: Parameter, fixed: DType | PointerType, kernel: str
) -> Spec:
    """A number for a parameter whose annotation gives the type."""
    if not isinstance(fixed, DType) or (fixed.is_int() and isinstance(value, float)):
        raise _refused(value, rule, kernel, f"{rule.name} is annotated as {fixed}")
    if not fixed.is_int():
        return ScalarSpec(fixed)
    if not fixed.get_int_min_value() <= value <= fixed.get_int_max_value():
        raise _refused(value, rule, kernel, f"{value} does not fit {fixed}")
    divisible = rule.on_alignment and fixed is not int1 and value % DIVISIBILITY == 0
    return ScalarSpec(fixed, divisible)


def _integer(value: int, rule: Parameter, kernel: str) -> Spec:
    if value == 1 and rule.on_value:
        return ConstantSpec(int(value))
    divisible = rule.on_alignment and value % DIVISIBILITY == 0
    for least, most, specs in _INTEGERS:
        if least <= value <= most:
            return specs[divisible]
    raise _refused(value, rule, kernel, f"{value} does not fit 64 bits")


_BOOL, _FLOAT = ScalarSpec(int1), ScalarSpec(float32)
_INTEGERS = [
    (
        dtype.get_int_min_value(),
        dtype.get_int_max_value(),
        (ScalarSpec(dtype, False), ScalarSpec(dtype, True)),
    )
    for dtype in (int32, int64, uint64)
]


def _refused(value: Any, rule: Parameter, kernel: str, hint: str) -> Exception:
    shown = "array" if isinstance(value, ArrayArgument) else type(value).__name__
    return error("E0501", kernel=kernel, name=rule.name, type=shown, hint=hint, argument=rule.name)
