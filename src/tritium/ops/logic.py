"""Bits: and, or, xor, not, shifts; and the logical operators of Python on int1."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np

from tritium.diagnostics import error
from tritium.ir.core import op
from tritium.ir.dtypes import INTEGERS, Array, DType, float16, float32, get_int_dtype, int1, int32
from tritium.ir.types import PointerType

from .arith import operator_methods, operator_rejects
from .cast import bitcast_tile
from .constants import describe, number, to_tile
from .constexpr import constexpr, unwrap
from .elementwise import Binary, Unary
from .emit import emit_tile, surface, warn_here
from .promotion import OPERATOR, broadcast_named, promote
from .spec import Reject, given
from .tile import Tile


class Bitwise(Binary):
    """Base of operations on the bits of two integers."""

    accepts = INTEGERS
    expected = "integers"
    hint = "bitcast floats to integers of the same width first"
    spelled: ClassVar[Callable[[Any, Any], Any]]
    """The operator of Python's ``operator`` module."""

    def compute(self, *arrays: Array) -> Any:
        return type(self).spelled(*arrays)

    @classmethod
    def rejects(cls) -> Iterator[Reject]:
        """What every bitwise operator refuses."""
        yield from operator_rejects(cls.spelled, pointer_at="left", float_at="left")
        pointer = PointerType(int32)
        yield Reject("floats", "E0201", lambda: cls.spelled(given(float32), 1), "left")
        yield Reject("an int with fp16", "E0201", lambda: cls.spelled(1, given(float16)), "right")
        yield Reject("a float constant", "E0201", lambda: cls.spelled(given(int32), 1.5), "right")
        yield Reject("a pointer", "E0201", lambda: cls.spelled(given(pointer), 1), "left")


@op("logic.and")
class And(Bitwise):
    """The bits set in both."""

    spelled = operator.and_


@op("logic.or")
class Or(Bitwise):
    """The bits set in either."""

    spelled = operator.or_


@op("logic.xor")
class Xor(Bitwise):
    """The bits set in exactly one."""

    spelled = operator.xor


@op("logic.not")
class Not(Unary):
    """Every bit inverted; of int1, the logical not."""

    accepts = INTEGERS
    expected = "integers"
    hint = "bitcast floats to integers of the same width first"

    def compute(self, *arrays: Array) -> Any:
        (x,) = arrays
        return ~x

    @classmethod
    def rejects(cls) -> Iterator[Reject]:
        """Floats and pointers; ``not`` of other integers than int1."""
        yield Reject("a float", "E0204", lambda: ~given(float32), "x")
        yield Reject("a pointer", "E0204", lambda: ~given(PointerType(int32)), "x")
        yield Reject("not of int32", "E0204", lambda: logical_not(given(int32)), "x")
        yield Reject("and of int32", "E0204", lambda: logical_and(given(int32), given(int1)), "x")
        yield Reject("or of fp32", "E0204", lambda: logical_or(given(int1), given(float32)), "y")


class Shift(Bitwise):
    """Base of shifts: the count is read as unsigned, and may be the width or more."""

    def compute(self, *arrays: Array) -> Any:
        x, count = arrays
        dtype = self.x.scalar
        assert isinstance(dtype, DType)
        over = count.view(f"u{count.dtype.itemsize}") >= dtype.bits
        shifted = type(self).spelled(x, np.where(over, count.dtype.type(0), count))
        return np.where(over, self.emptied(x), shifted)

    def emptied(self, x: Array) -> Array:
        """What is left after every bit has been shifted out."""
        return np.zeros_like(x)


@op("logic.shl")
class Shl(Shift):
    """x shifted left by y bits; 0 where the count, read as unsigned, is the width or more."""

    spelled = operator.lshift


@op("logic.shr")
class Shr(Shift):
    """x shifted right by y bits, copying the sign of a signed x.

    Where the count, read as unsigned, is the width or more: 0, or -1 for a negative x.
    """

    spelled = operator.rshift

    def emptied(self, x: Array) -> Array:
        return np.where(x < 0, ~np.zeros_like(x), np.zeros_like(x))


def _promote_bits(symbol: str, x: Any, y: Any) -> tuple[Tile, Tile]:
    """Integer operands of one type. Raises E0201 for floats and pointers."""
    for name, value in zip(OPERATOR, (x, y)):
        known = unwrap(value)
        is_tile = isinstance(known, Tile)
        if (is_tile and not known.dtype.is_int()) or isinstance(number(known), float):
            raise error(
                "E0201",
                op=symbol,
                left=describe(x),
                right=describe(y),
                hint=Bitwise.hint,
                argument=name,
            )
    return promote(symbol, x, y)


def _bitwise(cls: type[Bitwise], symbol: str) -> Callable[[Any, Any], Tile]:
    def combine(x: Any, y: Any) -> Tile:
        left, right = _promote_bits(symbol, x, y)
        return emit_tile(cls, x=left, y=right)

    return combine


def _warn_of_count(symbol: str, left: Tile, count: Any) -> None:
    known = number(count)
    dtype = left.dtype
    assert isinstance(dtype, DType)
    if known is not None and not 0 <= known < dtype.bits:
        text = f"{symbol} {known} shifts every bit out of {dtype}"
        warn_here(text, f"shift by 0 to {dtype.bits - 1}", "right")


def _shift_left(x: Any, y: Any) -> Tile:
    left, right = _promote_bits("<<", x, y)
    _warn_of_count("<<", left, y)
    return emit_tile(Shl, x=left, y=right)


def _shift_right(x: Any, y: Any) -> Tile:
    """Arithmetic where the left operand is signed, also where the common type is unsigned."""
    left, right = _promote_bits(">>", x, y)
    _warn_of_count(">>", left, y)
    common, given_left = left.dtype, unwrap(x)
    assert isinstance(common, DType)
    if isinstance(given_left, Tile) and given_left.dtype.is_int_signed():
        signed = get_int_dtype(common.bits, True)
        left, right = bitcast_tile(left, signed), bitcast_tile(right, signed)
    return bitcast_tile(emit_tile(Shr, x=left, y=right), common)


operator_methods("and", _bitwise(And, "&"))
operator_methods("or", _bitwise(Or, "|"))
operator_methods("xor", _bitwise(Xor, "^"))
operator_methods("lshift", _shift_left)
operator_methods("rshift", _shift_right)


@surface(name="", method="__invert__")
def invert(x: Tile) -> Tile:
    """``~x``: every bit inverted. Raises E0204 for floats and pointers."""
    return emit_tile(Not, x=x)


def _truth(word: str, value: Any, argument: str) -> Tile:
    """An operand of ``and``, ``or``, ``not``. Raises E0204 unless it is int1."""
    tile = to_tile(value, word, argument)
    if tile.dtype is not int1:
        raise error(
            "E0204",
            op=f"'{word}'",
            expected="int1",
            got=tile.type,
            hint="compare it: x != 0",
            argument=argument,
        )
    return tile


def _logical(word: str, cls: type[Bitwise], decides: bool, x: Any, y: Any) -> Any:
    """``and`` and ``or``; a constant equal to ``decides`` is the result, others drop out."""
    for known, other in ((x, y), (y, x)):
        if not isinstance(unwrap(known), Tile):
            return constexpr(known) if bool(unwrap(known)) is decides else other
    left, right = broadcast_named(word, ("x", "y"), _truth(word, x, "x"), _truth(word, y, "y"))
    return emit_tile(cls, x=left, y=right)


@surface(name="", method="logical_and")
def logical_and(x: Any, y: Any) -> Any:
    """``x and y`` of int1 tiles: both are computed. Raises E0204 for other types.

    A constant that is false is the result, one that is true gives the other operand.
    """
    return _logical("and", And, False, x, y)


@surface(name="", method="logical_or")
def logical_or(x: Any, y: Any) -> Any:
    """``x or y`` of int1 tiles: both are computed. Raises E0204 for other types.

    A constant that is true is the result, one that is false gives the other operand.
    """
    return _logical("or", Or, True, x, y)


@surface(name="", method="logical_not")
def logical_not(x: Any) -> Any:
    """``not x``: of a constant Python's, of an int1 tile each element's. Raises E0204 otherwise."""
    if not isinstance(unwrap(x), Tile):
        return constexpr(not unwrap(x))
    return emit_tile(Not, x=_truth("not", x, "x"))
