"""Arithmetic: sums, products, quotients, remainders, signs."""

from __future__ import annotations

import enum
import functools
import operator
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np

from tritium.diagnostics import TritiumError, error
from tritium.ir.core import Value, attribute, op, operand
from tritium.ir.dtypes import (
    FLOATS,
    INTEGERS,
    Array,
    DType,
    Type,
    float8e5,
    float16,
    float32,
    int8,
    int32,
    int64,
    uint8,
    uint32,
    uint64,
)
from tritium.ir.types import PointerType

from .cast import convert_tile
from .codecs import to_compute
from .constants import describe, number, to_tile
from .constexpr import constexpr, unwrap
from .create import static_flag, static_value
from .elementwise import Binary, Elementwise, Ternary, Unary, compute_storage
from .emit import emit_tile, surface
from .fused import fma as fused_multiply_add
from .memory import offset_pointer
from .promotion import OPERATOR, Names, promote, promote_all
from .spec import AgreementTable, Reject, Ulp, given
from .tile import Tile

XY: Names = ("x", "y")


def operator_rejects(
    spelled: Callable[[Any, Any], Any], *, pointer_at: str = "right", float_at: str = "right"
) -> Iterator[Reject]:
    """What every binary operator on numbers refuses; which of two wrong operands it names."""
    pointer = PointerType(float32)

    def attempt(left: Any, right: Any) -> Callable[[], object]:
        def run() -> object:
            sides = (given(each, 4) if isinstance(each, Type) else each for each in (left, right))
            return spelled(*sides)

        return run

    yield Reject("two pointers", "E0201", attempt(pointer, pointer), pointer_at)
    yield Reject("fp8 with int32", "E0201", attempt(float8e5, int32), float_at)
    yield Reject("a string", "E0201", attempt(int32, "1"), "right")
    yield Reject("None", "E0201", attempt(int32, None), "right")
    yield Reject("a constant above int8", "E0203", attempt(int8, 128), "right")
    yield Reject("a constant above int32", "E0203", attempt(int32, 2**31), "right")
    yield Reject("a negative constant with uint8", "E0203", attempt(uint8, -1), "right")

    def unequal() -> object:
        return spelled(given(int32, 4), given(int32, 8))

    yield Reject("shapes that don't broadcast", "E0202", unequal, "right")


@op("arith.add")
class Add(Binary):
    """The sum. Integers wrap."""

    def compute(self, *arrays: Array) -> Any:
        x, y = arrays
        return x + y

    @classmethod
    def rejects(cls) -> Iterator[Reject]:
        """What ``+`` refuses."""
        yield from operator_rejects(operator.add)
        yield Reject(
            "a constant on the left", "E0203", lambda: operator.add(-1, given(uint8)), "left"
        )
        pointer = PointerType(float32)
        yield Reject("a float offset", "E0201", lambda: given(pointer) + 1.0, "right")
        yield Reject("unary plus", "E0210", lambda: +given(int32), "x")


@op("arith.sub")
class Sub(Binary):
    """The difference x - y. Integers wrap."""

    def compute(self, *arrays: Array) -> Any:
        x, y = arrays
        return x - y

    @classmethod
    def rejects(cls) -> Iterator[Reject]:
        """What ``-`` refuses."""
        yield from operator_rejects(operator.sub)
        pointer = PointerType(float32)
        yield Reject("int32 - pointer", "E0201", lambda: given(int32) - given(pointer), "right")


@op("arith.mul")
class Mul(Binary):
    """The product. Integers wrap."""

    def compute(self, *arrays: Array) -> Any:
        x, y = arrays
        return x * y

    @classmethod
    def rejects(cls) -> Iterator[Reject]:
        """What ``*`` refuses, and operators that tiles don't have."""
        yield from operator_rejects(operator.mul)
        pointer = PointerType(float32)
        yield Reject("pointer * int", "E0201", lambda: given(pointer) * 2, "right")
        yield Reject("a power", "E0201", lambda: given(float32) ** 2, "right")
        yield Reject("a matrix product", "E0201", lambda: given(int8) @ given(int8), "right")


@op("arith.div")
class Div(Binary):
    """The quotient x / y of floats."""

    accepts = FLOATS
    expected = "floats"
    agreement: ClassVar[AgreementTable] = {"nvptx": {float32: Ulp(2.5)}}

    def compute(self, *arrays: Array) -> Any:
        x, y = arrays
        return x / y

    @classmethod
    def rejects(cls) -> Iterator[Reject]:
        """What ``/`` refuses."""
        yield from operator_rejects(operator.truediv)
        yield Reject("mixed signedness", "E0201", lambda: given(int32) / given(uint32), "right")
        yield Reject("fdiv of integers", "E0204", lambda: fdiv(given(int32), given(int32)), "x")


@op("arith.div_rn")
class DivRn(Binary):
    """The quotient x / y of fp32, correctly rounded on every target."""

    accepts = (float32,)
    expected = "fp32"
    hint = "cast it to float32"

    def compute(self, *arrays: Array) -> Any:
        x, y = arrays
        return x / y

    @classmethod
    def rejects(cls) -> Iterator[Reject]:
        """Other types than fp32."""
        yield Reject("fp16", "E0204", lambda: div_rn(given(float16), given(float16)), "x")
        for name in ("ieee_rounding", "approx"):
            option = {name: given(int32)}
            runtime = functools.partial(fdiv, given(float32), 1.0, **option)
            yield Reject(f"a run-time {name}", "E0205", runtime, name)


def _safe_divisor(y: Array) -> Array:
    """``y`` with ones for its zeros."""
    return np.where(y == 0, y.dtype.type(1), y)


@op("arith.idiv")
class Idiv(Binary):
    """The quotient of integers, truncated toward zero as in C.

    x / 0 has all bits set (-1 where signed); the smallest value divided by -1 is itself.
    """

    accepts = INTEGERS
    expected = "integers"

    def compute(self, *arrays: Array) -> Any:
        x, y = arrays
        safe = _safe_divisor(y)
        quotient = (x - np.fmod(x, safe)) // safe
        return np.where(y == 0, ~np.zeros_like(x), quotient)

    @classmethod
    def rejects(cls) -> Iterator[Reject]:
        """What ``//`` refuses."""
        yield from operator_rejects(operator.floordiv, float_at="left")
        yield Reject("a float", "E0201", lambda: given(float32) // 2, "left")
        yield Reject("a float divisor", "E0201", lambda: given(int32) // 2.0, "right")
        yield Reject("mixed signedness", "E0201", lambda: given(int32) // given(uint32), "right")


@op("arith.rem")
class Rem(Binary):
    """The remainder x - y * (x / y truncated): exact, with the sign of x, as C's % and fmod.

    Integers: x % 0 is x. Floats: NaN for x infinite or y zero; x for y infinite.
    """

    def compute(self, *arrays: Array) -> Any:
        x, y = arrays
        if x.dtype.kind == "f":
            return np.fmod(x, y)
        return np.where(y == 0, x, np.fmod(x, _safe_divisor(y)))

    @classmethod
    def rejects(cls) -> Iterator[Reject]:
        """What ``%`` refuses."""
        yield from operator_rejects(operator.mod)
        yield Reject("mixed signedness", "E0201", lambda: given(int32) % given(uint32), "right")


def _with_sign(op: Unary, x: Any, change: Callable[[Array, Any], Array]) -> Array:
    """``op`` on storage: for floats ``change`` of the bits and the sign bit, else ``compute``."""
    dtype, x = op.x.scalar, np.asarray(x)
    assert isinstance(dtype, DType)
    if not dtype.is_floating():
        return compute_storage(op.compute, dtype, [x])
    bits = x.view(f"u{dtype.itemsize}")
    changed = np.asarray(change(bits, bits.dtype.type(dtype.format.sign_pattern)))
    if not dtype.format.has_negative_zero:
        # The pattern of -0 is NaN: it stays, and so does zero.
        changed = np.where(bits & bits.dtype.type(dtype.format.sign_pattern - 1), changed, bits)
    result: Array = changed.view(dtype.numpy)
    return result


@op("arith.neg")
class Neg(Unary):
    """The negative: floats change their sign bit, integers wrap."""

    def compute(self, *arrays: Array) -> Any:
        (x,) = arrays
        return -x

    def evaluate(self, machine: Any, *arrays: Any) -> Any:
        return _with_sign(self, arrays[0], lambda bits, sign: bits ^ sign)

    @classmethod
    def rejects(cls) -> Iterator[Reject]:
        """Pointers have no sign."""
        yield Reject("a pointer", "E0204", lambda: -given(PointerType(int8)), "x")


@op("arith.abs")
class Abs(Unary):
    """The absolute value: floats lose their sign bit; the smallest signed integer stays itself."""

    def compute(self, *arrays: Array) -> Any:
        (x,) = arrays
        return np.abs(x)

    def evaluate(self, machine: Any, *arrays: Any) -> Any:
        return _with_sign(self, arrays[0], lambda bits, sign: bits & ~sign)

    @classmethod
    def rejects(cls) -> Iterator[Reject]:
        """Pointers have no sign."""
        yield Reject("a pointer", "E0204", lambda: abs(given(PointerType(int8))), "x")
        yield Reject("a string", "E0210", lambda: abs("x"), "x")


@op("arith.fma")
class Fma(Ternary):
    """x * y + z of floats, rounded once."""

    accepts = FLOATS
    expected = "floats"

    def evaluate(self, machine: Any, *arrays: Any) -> Any:
        dtype = self.x.scalar
        assert isinstance(dtype, DType)
        x, y, z = (np.asarray(array) for array in arrays)
        with np.errstate(all="ignore"):
            return fused_multiply_add(x, y, z, dtype)

    @classmethod
    def rejects(cls) -> Iterator[Reject]:
        """Integers."""
        yield Reject(
            "integers", "E0204", lambda: fma(given(int32), given(int32), given(int32)), "x"
        )


@op("arith.umulhi")
class Umulhi(Binary):
    """The upper half of the product of the bits of two integers taken as unsigned."""

    accepts = (int32, uint32, int64, uint64)
    expected = "32- or 64-bit integers"

    def compute(self, *arrays: Array) -> Any:
        unsigned = np.dtype(f"u{arrays[0].dtype.itemsize}")
        x, y = (np.asarray(array).view(unsigned).astype(np.uint64) for array in arrays)
        if unsigned.itemsize == 4:
            return ((x * y) >> np.uint64(32)).astype(unsigned).view(arrays[0].dtype)
        low, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
        x_high, x_low, y_high, y_low = x >> shift, x & low, y >> shift, y & low
        middle = x_high * y_low + ((x_low * y_low) >> shift)
        carry = (x_low * y_high + (middle & low)) >> shift
        return (x_high * y_high + (middle >> shift) + carry).view(arrays[0].dtype)

    @classmethod
    def rejects(cls) -> Iterator[Reject]:
        """Other types than 32- and 64-bit integers."""
        yield Reject("int8", "E0204", lambda: umulhi(given(int8), given(int8)), "x")
        yield Reject("fp32", "E0204", lambda: umulhi(given(float32), 1.0), "x")


def _dtype(op: Elementwise) -> DType:
    dtype = op.operands[0].scalar
    assert isinstance(dtype, DType)
    return dtype


class Extremum(Binary):
    """Base of maximum and minimum.

    One NaN is dropped; with ``propagate_nan`` it is the result. -0 counts as less than +0.
    """

    propagate_nan: bool = attribute(False)
    larger: ClassVar[bool]

    def evaluate(self, machine: Any, *arrays: Any) -> Any:
        x, y = arrays
        propagate = self.propagate_nan
        return extremum(x, y, _dtype(self), larger=self.larger, propagate_nan=propagate)

    @classmethod
    def variants(cls) -> tuple[dict[str, Any], ...]:
        return ({"propagate_nan": False}, {"propagate_nan": True})

    @classmethod
    def rejects(cls) -> Iterator[Reject]:
        """Pointers, fp8 with integers, an unknown ``propagate_nan``."""
        call: Any = maximum if cls.larger else minimum
        pointer = PointerType(float32)
        yield Reject("pointers", "E0201", lambda: call(given(pointer), given(pointer)), "x")
        runtime = lambda: call(given(float32), 1.0, propagate_nan=given(int32))  # noqa: E731
        yield Reject("a run-time choice", "E0205", runtime, "propagate_nan")
        yield Reject("fp8 with int32", "E0201", lambda: call(given(float8e5), given(int32)), "y")
        yield Reject("a string", "E0210", lambda: call(given(int32), "1"), "y")
        yield Reject("shapes", "E0202", lambda: call(given(int32, 4), given(int32, 3)), "y")
        yield Reject(
            "propagate_nan",
            "E0204",
            lambda: call(given(float32), 1.0, propagate_nan=True),
            "propagate_nan",
        )


@op("arith.maximum")
class Maximum(Extremum):
    """The larger of two elements; of -0 and +0, +0.

    One NaN is dropped, two give NaN; with ``propagate_nan`` one is enough.
    """

    larger = True


@op("arith.minimum")
class Minimum(Extremum):
    """The smaller of two elements; of -0 and +0, -0.

    One NaN is dropped, two give NaN; with ``propagate_nan`` one is enough.
    """

    larger = False


@op("arith.clamp")
class Clamp(Elementwise):
    """``x`` held between ``lo`` and ``hi``: minimum(maximum(x, lo), hi), so that ``hi`` wins where
    lo > hi, and a NaN in ``x`` becomes ``lo`` unless ``propagate_nan``.
    """

    x: Value = operand()
    lo: Value = operand()
    hi: Value = operand()
    propagate_nan: bool = attribute(False)

    def evaluate(self, machine: Any, *arrays: Any) -> Any:
        x, lo, hi = arrays
        dtype, propagate = _dtype(self), self.propagate_nan
        raised = extremum(x, lo, dtype, larger=True, propagate_nan=propagate)
        return extremum(raised, hi, dtype, larger=False, propagate_nan=propagate)

    @classmethod
    def variants(cls) -> tuple[dict[str, Any], ...]:
        return ({"propagate_nan": False}, {"propagate_nan": True})

    @classmethod
    def rejects(cls) -> Iterator[Reject]:
        """Pointers, a bound that is no number."""
        yield Reject("a pointer", "E0201", lambda: clamp(given(PointerType(int8)), 0, 1), "x")
        yield Reject("no bound", "E0210", lambda: clamp(given(float32), 0.0, None), "max")


def extremum(x: Any, y: Any, dtype: DType, *, larger: bool, propagate_nan: bool) -> Array:
    """The larger or smaller of two arrays in storage form, as ``Maximum`` and ``Minimum`` say.

    The result is one of the operands, bit for bit.
    """
    x, y = np.asarray(x), np.asarray(y)
    if not dtype.is_floating():
        return np.asarray(np.maximum(x, y) if larger else np.minimum(x, y))
    a, b = to_compute(x, dtype), to_compute(y, dtype)
    takes_y = (a < b) if larger else (a > b)
    takes_y |= (a == b) & (np.signbit(a) if larger else np.signbit(b))
    takes_y = np.where(np.isnan(a), not propagate_nan, takes_y)
    takes_y = np.where(np.isnan(b), propagate_nan & ~np.isnan(a), takes_y)
    chosen: Array = np.where(takes_y, y, x)
    return chosen


def _emit_binary(cls: type[Binary], left: Tile, right: Tile) -> Tile:
    return emit_tile(cls, x=left, y=right)


def _is_pointer(value: Any) -> bool:
    return isinstance(value, Tile) and value.dtype.is_ptr()


def _no_operation(symbol: str, x: Any, y: Any, hint: str, argument: str) -> TritiumError:
    return error(
        "E0201", op=symbol, left=describe(x), right=describe(y), hint=hint, argument=argument
    )


def _move(symbol: str, x: Any, y: Any, names: Names) -> Tile:
    """Pointer arithmetic: one operand of ``+``, or the left one of ``-``, is a pointer."""
    swapped = not _is_pointer(x)
    pointer, offset = (y, x) if swapped else (x, y)
    at_fault = names[1] if symbol == "-" or not swapped else names[0]
    plain = number(offset)
    integral = isinstance(plain, int) or (isinstance(offset, Tile) and offset.dtype.is_int())
    if not integral or (swapped and symbol == "-"):
        hint = "an offset is an integer, on either side of + or to the right of -"
        raise _no_operation(symbol, x, y, hint, at_fault)
    try:
        tile = to_tile(offset, symbol, at_fault)
        return offset_pointer(pointer, tile, negate=symbol == "-")
    except TritiumError as problem:
        problem.argument = problem.argument or at_fault
        raise


def _fold(function: Callable[[Any, Any], Any], x: Any, y: Any) -> constexpr | None:
    """Two constants are combined as Python does."""
    left, right = number(x), number(y)
    if left is None or right is None:
        return None
    return constexpr(function(left, right))


def _sum(symbol: str, x: Any, y: Any, names: Names) -> Any:
    cls, function = {"+": (Add, operator.add), "-": (Sub, operator.sub)}[symbol]
    folded = _fold(function, x, y)
    if folded is not None:
        return folded
    x, y = unwrap(x), unwrap(y)
    if _is_pointer(x) or _is_pointer(y):
        return _move(symbol, x, y, names)
    return _emit_binary(cls, *promote(symbol, x, y, names=names))


def _product(x: Any, y: Any, names: Names) -> Any:
    folded = _fold(operator.mul, x, y)
    return folded if folded is not None else _emit_binary(Mul, *promote("*", x, y, names=names))


def _quotient(x: Any, y: Any) -> Tile:
    left, right = promote("/", x, y, divides=True)
    if left.dtype.is_int():
        left, right = convert_tile(left, float32), convert_tile(right, float32)
    return _emit_binary(Div, left, right)


def _is_float(value: Any) -> bool:
    known = unwrap(value)
    return (
        known.dtype.is_floating() if isinstance(known, Tile) else isinstance(number(known), float)
    )


def _integer_quotient(x: Any, y: Any) -> Tile:
    for name, value in zip(OPERATOR, (x, y)):
        if _is_float(value):
            hint = "// takes integers; for floats use tl.floor(x / y)"
            raise _no_operation("//", x, y, hint, name)
    return _emit_binary(Idiv, *promote("//", x, y, divides=True))


def _remainder(x: Any, y: Any) -> Tile:
    return _emit_binary(Rem, *promote("%", x, y, divides=True))


def _power(x: Any, y: Any) -> Tile:
    hint = "tiles have no power: write x * x, or tl.exp2(y * tl.log2(x)) where x > 0"
    raise _no_operation("**", x, y, hint, "right")


def _matrix_product(x: Any, y: Any) -> Tile:
    raise _no_operation("@", x, y, "use tl.dot", "right")


def operator_methods(
    name: str, function: Callable[[Any, Any], Any], *, reflected: bool = True
) -> None:
    """Make ``function(left, right)`` the operator ``__name__`` of tiles, and ``__rname__``."""

    def forward(self: Any, other: Any) -> Any:
        return function(self, other)

    def backward(self: Any, other: Any) -> Any:
        return function(other, self)

    surface(name="", method=f"__{name}__")(forward)
    if reflected:
        surface(name="", method=f"__r{name}__")(backward)


operator_methods("add", lambda x, y: _sum("+", x, y, OPERATOR))
operator_methods("sub", lambda x, y: _sum("-", x, y, OPERATOR))
operator_methods("mul", lambda x, y: _product(x, y, OPERATOR))
operator_methods("truediv", _quotient)
operator_methods("floordiv", _integer_quotient)
operator_methods("mod", _remainder)
operator_methods("pow", _power)
operator_methods("matmul", _matrix_product)


@surface
def add(x: Any, y: Any, sanitize_overflow: Any = True) -> Any:
    """``x + y``. ``sanitize_overflow`` says whether checked builds report integer overflow here."""
    static_flag("add", sanitize_overflow, "sanitize_overflow")
    return _sum("+", x, y, XY)


@surface
def sub(x: Any, y: Any, sanitize_overflow: Any = True) -> Any:
    """``x - y``. ``sanitize_overflow`` says whether checked builds report integer overflow here."""
    static_flag("sub", sanitize_overflow, "sanitize_overflow")
    return _sum("-", x, y, XY)


@surface
def mul(x: Any, y: Any, sanitize_overflow: Any = True) -> Any:
    """``x * y``. ``sanitize_overflow`` says whether checked builds report integer overflow here."""
    static_flag("mul", sanitize_overflow, "sanitize_overflow")
    return _product(x, y, XY)


@surface(name="", method="__neg__")
def negative(x: Tile) -> Tile:
    """``-x``: floats change their sign bit, integers wrap. Raises E0204 for a pointer."""
    return emit_tile(Neg, x=x)


@surface(name="", method="__pos__")
def positive(x: Tile) -> Tile:
    """Unary plus is not part of the language. Raises E0210."""
    raise error("E0210", op="unary +", got=x.type, hint="leave the + out", argument="x")


@surface(method=True)
def abs(x: Any) -> Tile:
    """The absolute value of each element; unsigned integers stay as they are.

    Raises E0204 for a pointer.
    """
    return emit_tile(Abs, x=to_tile(x, "abs", "x"))


@surface
def fdiv(x: Any, y: Any, ieee_rounding: Any = False, approx: Any = False) -> Tile:
    """``x / y`` of floats, promoted as ``/`` does.

    ``ieee_rounding`` asks for the correctly rounded fp32 quotient on every target; ``approx``
    permits a faster one, which no target of Tritium uses. Raises E0204 for two integers.
    """
    left, right = (to_tile(each, "fdiv", name) for each, name in zip((x, y), XY))
    left, right = promote("fdiv", left, right, names=XY, divides=True)
    rounded = static_flag("fdiv", ieee_rounding, "ieee_rounding") and left.dtype is float32
    static_flag("fdiv", approx, "approx")
    return _emit_binary(DivRn if rounded else Div, left, right)


@surface
def div_rn(x: Any, y: Any) -> Tile:
    """``x / y`` of fp32, correctly rounded. Raises E0204 for other types."""
    left, right = (to_tile(each, "div_rn", name) for each, name in zip((x, y), XY))
    return _emit_binary(DivRn, *promote("div_rn", left, right, names=XY))


@surface
def fma(x: Any, y: Any, z: Any) -> Tile:
    """``x * y + z`` of floats, rounded once. Raises E0204 for integers."""
    names = ("x", "y", "z")
    x, y, z = promote_all("fma", x, y, z, names=names)
    return emit_tile(Fma, x=x, y=y, z=z)


@surface
def umulhi(x: Any, y: Any) -> Tile:
    """The upper 32 (or 64) bits of the product of two 32- (or 64-) bit integers as unsigned.

    Raises E0204 for other types.
    """
    left, right = (to_tile(each, "umulhi", name) for each, name in zip((x, y), XY))
    return _emit_binary(Umulhi, *promote("umulhi", left, right, names=XY))


class PropagateNan(enum.Enum):
    """What ``maximum``, ``minimum`` and ``clamp`` make of one NaN."""

    NONE = 0
    """Drop it."""
    ALL = 0xFFFF
    """Give it."""


def _propagates(op_name: str, propagate_nan: Any) -> bool:
    known = static_value(op_name, propagate_nan, "propagate_nan")
    if not isinstance(known, PropagateNan):
        raise error(
            "E0204",
            op=op_name,
            expected="tl.PropagateNan.NONE or ALL",
            got=repr(known),
            hint="",
            argument="propagate_nan",
        )
    return known is PropagateNan.ALL


def _extremum(cls: type[Extremum], name: str, x: Any, y: Any, propagate_nan: Any) -> Tile:
    propagates = _propagates(name, propagate_nan)
    left, right = promote_all(name, x, y, names=XY)
    return emit_tile(cls, x=left, y=right, propagate_nan=propagates)


@surface
def maximum(x: Any, y: Any, propagate_nan: Any = PropagateNan.NONE) -> Tile:
    """The larger of each pair of elements; of -0 and +0, +0.

    A constant counts as a tile of its own type. One NaN is dropped; ``tl.PropagateNan.ALL`` makes
    it the result.
    """
    return _extremum(Maximum, "maximum", x, y, propagate_nan)


@surface
def minimum(x: Any, y: Any, propagate_nan: Any = PropagateNan.NONE) -> Tile:
    """The smaller of each pair of elements; of -0 and +0, -0.

    A constant counts as a tile of its own type. One NaN is dropped; ``tl.PropagateNan.ALL`` makes
    it the result.
    """
    return _extremum(Minimum, "minimum", x, y, propagate_nan)


@surface
def clamp(x: Any, min: Any, max: Any, propagate_nan: Any = PropagateNan.NONE) -> Tile:
    """``x`` held between ``min`` and ``max``; where min > max, ``max``.

    A NaN in ``x`` becomes ``min``, or stays with ``tl.PropagateNan.ALL``.
    """
    propagates = _propagates("clamp", propagate_nan)
    x, lo, hi = promote_all("clamp", x, min, max, names=("x", "min", "max"))
    return emit_tile(Clamp, x=x, lo=lo, hi=hi, propagate_nan=propagates)
