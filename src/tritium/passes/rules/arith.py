"""Identities of integers; floats keep every operation, since -0 and NaN break most identities."""

from __future__ import annotations

from collections.abc import Sequence

from tritium.ir import DType, Op, Value
from tritium.ops.arith import Add, Idiv, Mul, Neg, Rem, Sub
from tritium.ops.cast import Bitcast, Convert
from tritium.ops.codecs import is_convertible
from tritium.ops.compare import Comparison, Eq, Ge, Le
from tritium.ops.elementwise import Binary, Unary
from tritium.ops.logic import And, Not, Or, Shl, Shr, Xor
from tritium.ops.memory import Offset
from tritium.ops.select import Where
from tritium.passes.structure import constant_int

from .base import Rewrite, rule


def _integers(op: Op) -> bool:
    return op.operands[0].scalar.is_int()


def _all_ones(value: Value) -> bool:
    """Whether a value has every bit set."""
    scalar = value.scalar
    assert isinstance(scalar, DType)
    return constant_int(value) == (-1 if scalar.is_int_signed() else (1 << scalar.bits) - 1)


@rule("zero-right", Add, Sub, Or, Xor, Shl, Shr)
def _zero_right(op: Binary, new: Rewrite) -> Sequence[Value] | None:
    """x + 0, x - 0, x | 0, x ^ 0, x << 0, x >> 0: x."""
    return [op.x] if _integers(op) and constant_int(op.y) == 0 else None


@rule("zero-left", Add, Or, Xor)
def _zero_left(op: Binary, new: Rewrite) -> Sequence[Value] | None:
    """0 + x, 0 | x, 0 ^ x: x."""
    return [op.y] if _integers(op) and constant_int(op.x) == 0 else None


@rule("one-right", Mul, Idiv)
def _one_right(op: Binary, new: Rewrite) -> Sequence[Value] | None:
    """x * 1, x / 1: x."""
    return [op.x] if _integers(op) and constant_int(op.y) == 1 else None


@rule("one-left", Mul)
def _one_left(op: Mul, new: Rewrite) -> Sequence[Value] | None:
    """1 * x: x."""
    return [op.y] if _integers(op) and constant_int(op.x) == 1 else None


@rule("absorb-zero", Mul, And)
def _absorb_zero(op: Binary, new: Rewrite) -> Sequence[Value] | None:
    """x * 0, x & 0: 0."""
    if not _integers(op):
        return None
    return next(([each] for each in (op.x, op.y) if constant_int(each) == 0), None)


@rule("remainder-of-one", Rem)
def _remainder_of_one(op: Rem, new: Rewrite) -> Sequence[Value] | None:
    """x % 1: 0."""
    if not _integers(op) or constant_int(op.y) != 1:
        return None
    return [new.integer(0, op.result.type)]


@rule("all-ones", And, Or)
def _with_all_ones(op: Binary, new: Rewrite) -> Sequence[Value] | None:
    """x & -1: x. x | -1: -1. Either way around."""
    for ones, other in ((op.x, op.y), (op.y, op.x)):
        if _all_ones(ones):
            return [other if isinstance(op, And) else ones]
    return None


@rule("same-operands", Sub, Xor, And, Or)
def _same_operands(op: Binary, new: Rewrite) -> Sequence[Value] | None:
    """x - x, x ^ x: 0. x & x, x | x: x."""
    if op.x is not op.y or not _integers(op):
        return None
    return [op.x] if isinstance(op, (And, Or)) else [new.integer(0, op.result.type)]


@rule("compare-same", Comparison)
def _compare_same(op: Comparison, new: Rewrite) -> Sequence[Value] | None:
    """x == x, x <= x, x >= x: true. The others: false. NaN makes floats differ from themselves."""
    if op.x is not op.y or not _integers(op):
        return None
    return [new.integer(isinstance(op, (Eq, Le, Ge)), op.result.type)]


@rule("twice", Neg, Not)
def _twice(op: Unary, new: Rewrite) -> Sequence[Value] | None:
    """-(-x), ~(~x): x."""
    maker = op.x.defining_op
    return [maker.x] if isinstance(maker, type(op)) and _integers(op) else None


@rule("where", Where)
def _where(op: Where, new: Rewrite) -> Sequence[Value] | None:
    """Where the condition is known, or both sides are the same value."""
    if op.x is op.y:
        return [op.x]
    known = constant_int(op.condition)
    return None if known is None else [op.x if known else op.y]


@rule("offset-zero", Offset)
def _offset_zero(op: Offset, new: Rewrite) -> Sequence[Value] | None:
    """p + 0: p."""
    return [op.pointer] if constant_int(op.offset) == 0 else None


@rule("same-type", Convert, Bitcast)
def _same_type(op: Convert | Bitcast, new: Rewrite) -> Sequence[Value] | None:
    """A conversion to the type that the value has."""
    return [op.x] if op.x.scalar is op.dtype else None


@rule("bits-twice", Bitcast)
def _bits_twice(op: Bitcast, new: Rewrite) -> Sequence[Value] | None:
    """The bits of bits: those of the first value."""
    maker = op.x.defining_op
    if not isinstance(maker, Bitcast):
        return None
    return [new.emit(Bitcast, x=maker.x, dtype=op.dtype)]


@rule("convert-widened", Convert)
def _convert_widened(op: Convert, new: Rewrite) -> Sequence[Value] | None:
    """A conversion of a widened integer: one of the integer itself, whose value it has."""
    maker = op.x.defining_op
    if not isinstance(maker, Convert):
        return None
    source, middle = maker.x.scalar, maker.dtype
    assert isinstance(source, DType)
    if not (_holds(middle, source) and is_convertible(source, op.dtype)):
        return None
    return [new.emit(Convert, x=maker.x, dtype=op.dtype, rounding=op.rounding)]


def _holds(wide: DType, narrow: DType) -> bool:
    """Whether an integer type has every value of another."""
    return (
        wide.is_int()
        and narrow.is_int()
        and wide.get_int_min_value() <= narrow.get_int_min_value()
        and narrow.get_int_max_value() <= wide.get_int_max_value()
    )
