"""From a kernel and what is known of its arguments to tile IR.

``specialize_arg`` says what a compilation may know of one argument; ``trace`` compiles for a set of
such descriptions. Nothing here touches arrays or devices: the launcher passes an ``ArrayArgument``
for each array.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tritium.diagnostics import error
from tritium.ir import dtypes
from tritium.ir.core import Function
from tritium.ir.dtypes import DType, Type, float32, int1, int32, int64, uint64
from tritium.ir.tracer import tracing
from tritium.ir.types import PointerType
from tritium.language.names import const
from tritium.ops.callable import ConstexprFunction, DeviceFunction
from tritium.ops.constexpr import constexpr
from tritium.ops.control import Return
from tritium.ops.python import wrap
from tritium.ops.source import capture
from tritium.ops.tile import Tile
from tritium.ops.tuples import TileTuple

from .dependencies import Dependencies
from .tracer import CompileTracer, TraceOptions

DIVISIBILITY = 16
"""What integers, and addresses in bytes, are tested to be multiples of."""

RECURSION_LIMIT = 10_000
"""Python frames while a kernel is visited: kernel functions may call one another deeply."""


# ---- what is known of an argument ----------------------------------------------------------------


@dataclass(frozen=True)
class ArrayArgument:
    """An array as the compiler sees it: element type, and the address of its first element."""

    dtype: DType
    address: int


@dataclass(frozen=True)
class ConstantSpec:
    """A value that is known when the kernel is compiled; equal only to one of the same type."""

    value: Any = field(compare=False)
    _key: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_key", _typed(self.value))

    @property
    def signature(self) -> str:
        return "constexpr"


@dataclass(frozen=True)
class ScalarSpec:
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


@dataclass(frozen=True)
class PointerSpec:
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


@dataclass(frozen=True)
class TupleSpec:
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


@dataclass(frozen=True)
class Parameter:
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
        return _pointer(value, rule, kernel)
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
        return ScalarSpec(int1)
    if isinstance(value, int):
        return _integer(value, rule, kernel)
    if isinstance(value, float):
        return ScalarSpec(float32)
    raise _refused(value, rule, kernel, "pass an array, a number, a tuple or None")


def _constant(value: Any, rule: Parameter, kernel: str) -> Spec:
    value = value.value if isinstance(value, constexpr) else value
    made = ConstantSpec(value)
    try:
        hash(made)
    except TypeError:
        raise _refused(value, rule, kernel, "a tl.constexpr argument must be hashable") from None
    return made


def _pointer(value: ArrayArgument, rule: Parameter, kernel: str) -> Spec:
    if isinstance(rule.fixed, DType):
        raise _refused(value, rule, kernel, f"{rule.name} is annotated as {rule.fixed}")
    pointee = value.dtype if rule.fixed is None else rule.fixed.element_ty
    assert isinstance(pointee, (DType, PointerType))
    divisible = rule.on_alignment and value.address % DIVISIBILITY == 0
    return PointerSpec(pointee, divisible, rule.is_const)


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
    for dtype in (int32, int64, uint64):
        if dtype.get_int_min_value() <= value <= dtype.get_int_max_value():
            return ScalarSpec(dtype, divisible)
    raise _refused(value, rule, kernel, f"{value} does not fit 64 bits")


def _refused(value: Any, rule: Parameter, kernel: str, hint: str) -> Exception:
    shown = "array" if isinstance(value, ArrayArgument) else type(value).__name__
    return error("E0501", kernel=kernel, name=rule.name, type=shown, hint=hint, argument=rule.name)


# ---- compiling for a set of descriptions ---------------------------------------------------------


@dataclass(frozen=True)
class TraceResult:
    """A kernel in tile IR: its run-time parameters only, what it read, and its constants.

    The elements of a tuple ``t`` are the parameters ``t.0``, ``t.1``, ...; ``constants`` holds the
    parameters that are known, by their names.
    """

    function: Function
    dependencies: Dependencies
    constants: dict[str, Any]


def trace(
    function: DeviceFunction,
    specs: Mapping[str, Spec],
    options: TraceOptions | None = None,
) -> TraceResult:
    """Compile ``function`` to tile IR for arguments that ``specs`` describes, by parameter name.

    A parameter that ``specs`` leaves out has its default, by the rules of ``specialize_arg``.
    Raises E0502 where there is none, and the coded error of whatever the kernel does wrong.
    """
    given = _complete(function, specs)
    flat: list[tuple[str, Type, int]] = []
    constants: dict[str, Any] = {}
    for name, spec in given.items():
        _flatten(name, spec, flat, constants)
    source = capture(function.fn)
    made = Function(function.__name__, flat, source.header_loc())
    arguments = iter(param.value for param in made.params)
    values = {name: _value(spec, arguments) for name, spec in given.items()}
    tracer = CompileTracer(made.body.block, options)
    tracer.dependencies.enter(function, None)
    tracer.dependencies.arguments(constants)
    with tracing(tracer), _deep_recursion:
        ended = tracer.run(function, values, None)
        end = Return()
        end.loc = ended.loc or made.loc
        tracer.emit(end)
    return TraceResult(made, tracer.dependencies, constants)


def _complete(function: DeviceFunction, specs: Mapping[str, Spec]) -> dict[str, Spec]:
    """The specs in the order of the parameters, defaults filled in."""
    complete: dict[str, Spec] = {}
    rules: dict[str, Parameter] | None = None
    for name, declared in function.python_signature.parameters.items():
        if name in specs:
            complete[name] = specs[name]
        elif declared.kind is declared.VAR_POSITIONAL:
            complete[name] = TupleSpec(())
        elif declared.default is declared.empty:
            hint = "every parameter without a default needs an argument"
            raise error("E0502", kernel=function.__name__, name=name, hint=hint)
        else:
            rules = rules or parameters(function)
            complete[name] = specialize_arg(declared.default, rules[name], function.__name__)
    return complete


def _flatten(
    name: str, spec: Spec, flat: list[tuple[str, Type, int]], constants: dict[str, Any]
) -> None:
    if isinstance(spec, ConstantSpec):
        constants[name] = spec.value
    elif isinstance(spec, TupleSpec):
        for place, each in enumerate(spec.elements):
            _flatten(f"{name}.{place}", each, flat, constants)
    else:
        flat.append((name, spec.type, DIVISIBILITY if spec.divisible else 1))


def _value(spec: Spec, arguments: Iterator[Any]) -> Any:
    """The kernel value of a parameter; run-time ones take the next of ``arguments``."""
    if isinstance(spec, ConstantSpec):
        return wrap(spec.value)
    if isinstance(spec, TupleSpec):
        return TileTuple((_value(each, arguments) for each in spec.elements), spec.fields)
    return Tile(next(arguments))


class _DeepRecursion:
    """Raises Python's recursion limit while at least one thread compiles."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._before = 0

    def __enter__(self) -> None:
        with self._lock:
            if not self._users:
                self._before = sys.getrecursionlimit()
                sys.setrecursionlimit(max(self._before, RECURSION_LIMIT))
            self._users += 1

    def __exit__(self, *raised: object) -> None:
        with self._lock:
            self._users -= 1
            if not self._users:
                sys.setrecursionlimit(self._before)


_deep_recursion = _DeepRecursion()
