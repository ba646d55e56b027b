"""What native code compares the arguments of a launch with, and where their values go."""

from __future__ import annotations

import enum
import struct
import types
from collections.abc import Mapping
from typing import Any, NamedTuple

from tritium.backends.host import layout
from tritium.backends.host.layout import Argument, Fact
from tritium.frontend.specialize import ConstantSpec, Parameter, PointerSpec, ScalarSpec
from tritium.ir.dtypes import Type, float32, float64, int1
from tritium.ops.callable import ConstexprFunction, DeviceFunction
from tritium.ops.constexpr import constexpr
from tritium.runtime import objects
from tritium.runtime.arrays import ArrayArgument
from tritium.runtime.binder import Bound
from tritium.runtime.options import DEFAULTS

_MASK = (1 << 64) - 1
_LARGEST = (1 << 63) - 1
# Nothing about them changes: the same object means the same value.
_LASTING = (
    *(bool, int, float, complex, str, bytes, type(None), type, enum.Enum, Type),
    *(DeviceFunction, ConstexprFunction, types.FunctionType, types.BuiltinFunctionType),
)


class Unusual(Exception):
    """Why a launch isn't written down: Python will do the like of it again."""


class Described(NamedTuple):
    """An ``Argument``, without its slot; ``kept`` is the object that it points to."""

    mode: int
    tag: int = 0
    low: int = 0
    high: int = 0
    rules: int = 0
    kept: Any = None


def kind_of(value: int) -> int:
    """The kind that native code finds for an int. Raises ``Unusual`` for too large a one."""
    if -(1 << 31) <= value < 1 << 31:
        return Fact.INT32
    if -(1 << 63) <= value <= _LARGEST:
        return Fact.INT64
    if 0 <= value <= _MASK:
        return Fact.UINT64
    raise Unusual("an integer of more than 64 bits")


# ---- constants -----------------------------------------------------------------------------------


def constant(value: Any) -> Described:
    """What must be given again. Raises ``Unusual`` for what may change and stay the same object."""
    kind = type(value)
    if kind is int and -(1 << 63) <= value <= _MASK:
        return Described(Argument.INTEGER, value & _MASK, kind_of(value))
    if kind is float:
        return Described(Argument.NUMBER, struct.unpack("<Q", struct.pack("<d", value))[0])
    if kind is str:
        return Described(Argument.TEXT, id(value), kept=value)
    if not _lasts(value):
        raise Unusual(f"a constant of type {kind.__name__}")
    return Described(Argument.SAME, id(value), kept=value)


def _lasts(value: Any) -> bool:
    if isinstance(value, constexpr):
        return _lasts(value.value)
    if type(value) is tuple:
        return all(map(_lasts, value))
    return isinstance(value, _LASTING)


# ---- numbers -------------------------------------------------------------------------------------


def number(value: Any, spec: ScalarSpec, rule: Parameter) -> Described:
    """A number that the code is given. Raises ``Unusual`` for types derived from Python's."""
    kind = type(value)
    if kind not in (bool, int, float):
        raise Unusual(f"a number of type {kind.__name__}")
    if rule.fixed is not None:
        return _fixed(spec, rule)
    if kind is float:
        return Described(Argument.REAL)
    if kind is bool:
        return Described(Argument.TRUTH)
    rules = _divisibility(spec.divisible, rule.on_alignment)
    if rule.on_value:
        rules |= Argument.NOT_ONE
    return Described(Argument.NATURAL, 0, kind_of(value), rules=rules)


def _fixed(spec: ScalarSpec, rule: Parameter) -> Described:
    """A number whose type an annotation gives."""
    dtype = spec.dtype
    if dtype is float32 or dtype is float64:
        return Described(Argument.SINGLE if dtype is float32 else Argument.DOUBLE)
    if not dtype.is_int():
        raise Unusual(f"a number of type {dtype}")
    high = dtype.get_int_max_value()
    rules = _divisibility(spec.divisible, rule.on_alignment and dtype is not int1)
    if high > _LARGEST:
        high, rules = _LARGEST, rules | Argument.UNSIGNED
    return Described(Argument.FIXED, 0, dtype.get_int_min_value(), high, rules)


def _divisibility(divisible: bool, matters: bool) -> int:
    if not matters:
        return 0
    return Argument.BY_16 | (Argument.MULTIPLE if divisible else 0)


# ---- arrays --------------------------------------------------------------------------------------


def array(
    value: Any, described: ArrayArgument, spec: PointerSpec, matters: bool, written: bool
) -> Described:
    """An array. ``matters``: whether its being a multiple of 16 does; ``written``: by the kernel.

    Raises ``Unusual`` for arrays that native code doesn't read.
    """
    rules = _divisibility(spec.divisible, matters)
    loose = described.element.itemsize - 1
    fields = objects.numpy_fields()
    if fields is not None and id(type(value)) == fields.type:
        dtype = value.dtype
        if objects.word(id(value) + layout.Array.DTYPE) != id(dtype):
            raise Unusual("a dtype that is made when it is asked for")
        flags = layout.Array.WRITEABLE if written else 0
        return Described(Argument.ARRAY, id(dtype), flags, loose, rules, dtype)
    tensors = objects.torch_fields()
    if tensors is None or id(type(value)) not in (tensors.tensor, tensors.parameter):
        raise Unusual(f"an array of type {type(value).__name__}")
    address, code = objects.describe(tensors.exchange, value)
    if address != described.address:
        raise Unusual("a tensor whose address is told in two ways")
    dtype = value.dtype if objects.is_ambiguous(code) else None
    low = 0 if dtype is None else id(dtype)
    return Described(Argument.TENSOR, code, low, loose, rules, dtype)


# ---- all of them ---------------------------------------------------------------------------------


def describe(
    bound: Bound, rules: Mapping[str, Parameter], written: frozenset[str], name: str, value: Any
) -> Described:
    """The argument of a parameter, or of a launch option, by its name.

    ``written`` are the arrays that the kernel writes. Raises ``Unusual``.
    """
    spec = bound.specs.get(name)
    if spec is None or isinstance(spec, ConstantSpec):
        return constant(value)
    if name in DEFAULTS:
        raise Unusual("an option of the launch that is a run-time parameter too")
    if isinstance(spec, ScalarSpec):
        return number(value, spec, rules[name])
    if isinstance(spec, PointerSpec):
        found = bound.described[name]
        return array(value, found, spec, rules[name].on_alignment, name in written)
    raise Unusual("a tuple")
