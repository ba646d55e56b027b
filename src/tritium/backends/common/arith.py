"""Arithmetic: sums, products, quotients, remainders, signs.

Narrow floats are computed in float and rounded back once. Divisors that would trap are replaced:
every lane of a division runs, also those whose result nobody reads.
"""

from __future__ import annotations

from collections.abc import Callable

from tritium.backends.emit import (
    Builder,
    V,
    const,
    double,
    elem,
    false,
    float_,
    i32,
    i64,
    zero,
)
from tritium.ir.core import Value
from tritium.ir.dtypes import DType, bfloat16, float32, float64, get_int_dtype, int1
from tritium.ops import arith

from .cast import bitcast, computed, convert
from .remainder import fmod
from .rules import Lowering, lower
from .vector_math import fabs


def _dtype(value: Value) -> DType:
    assert isinstance(value.scalar, DType)
    return value.scalar


# ---- sums and products ---------------------------------------------------------------------------


@lower(arith.Add)
def _(lowering: Lowering, op: arith.Add, x: V, y: V) -> V:
    b, dtype = lowering.b, _dtype(op.x)
    return computed(lowering, dtype, b.fadd if dtype.is_floating() else b.add, x, y)


@lower(arith.Sub)
def _(lowering: Lowering, op: arith.Sub, x: V, y: V) -> V:
    b, dtype = lowering.b, _dtype(op.x)
    return computed(lowering, dtype, b.fsub if dtype.is_floating() else b.sub, x, y)


@lower(arith.Mul)
def _(lowering: Lowering, op: arith.Mul, x: V, y: V) -> V:
    b, dtype = lowering.b, _dtype(op.x)
    return computed(lowering, dtype, b.fmul if dtype.is_floating() else b.mul, x, y)


@lower(arith.Fma)
def _(lowering: Lowering, op: arith.Fma, x: V, y: V, z: V) -> V:
    b, dtype = lowering.b, _dtype(op.x)
    if dtype.bits >= 32:
        return b.fma(x, y, z)
    # The product of two narrow significands is exact in double. So is its sum with a third operand,
    # or one of the two is too small to matter to the final rounding; only bfloat16's exponents
    # reach so far that a product on a tie can meet a sum's lost bits.
    wide_x, wide_y, wide_z = (convert(lowering, each, dtype, float64) for each in (x, y, z))
    product = b.fmul(wide_x, wide_y)
    total = b.fadd(product, wide_z)
    if dtype is bfloat16:
        total = _to_odd(b, product, wide_z, total)
    return convert(lowering, total, float64, dtype)


def _to_odd(b: Builder, x: V, y: V, total: V) -> V:
    """x + y of doubles rounded to odd, given as rounded to nearest; as ``ops.fused`` does it."""
    part = b.fsub(total, x)
    rest = b.fadd(b.fsub(x, b.fsub(total, part)), b.fsub(y, part))
    bits = b.as_int(total)
    one = const(bits.type, 1)
    even = b.icmp("eq", b.and_(bits, one), zero(bits.type))
    # Unordered comparisons with NaN are false: what isn't finite has lost nothing.
    lost = b.and_(b.fcmp("one", rest, zero(rest.type)), even)
    away = b.icmp(
        "eq",
        b.fcmp("ogt", rest, zero(rest.type)),
        b.fcmp("ogt", total, zero(total.type)),
    )
    moved = b.add(bits, b.select(away, one, const(bits.type, -1)))
    return b.as_float(b.select(lost, moved, bits), double)


@lower(arith.Umulhi)
def _(lowering: Lowering, op: arith.Umulhi, x: V, y: V) -> V:
    b = lowering.b
    shift = const(x.type, x.type.bits // 2)
    if x.type.bits == 32:
        wide = b.mul(b.zext(x, i64), b.zext(y, i64))
        return b.trunc(b.lshr(wide, const(wide.type, 32)), i32)
    low = const(x.type, 0xFFFFFFFF)
    x_high, y_high = b.lshr(x, shift), b.lshr(y, shift)
    x_low, y_low = b.and_(x, low), b.and_(y, low)
    middle = b.add(b.mul(x_high, y_low), b.lshr(b.mul(x_low, y_low), shift))
    other = b.add(b.mul(x_low, y_high), b.and_(middle, low))
    high = b.add(b.mul(x_high, y_high), b.lshr(middle, shift))
    return b.add(high, b.lshr(other, shift))


# ---- quotients and remainders --------------------------------------------------------------------


@lower(arith.Div, arith.DivRn)
def _(lowering: Lowering, op: arith.Div | arith.DivRn, x: V, y: V) -> V:
    return computed(lowering, _dtype(op.x), lowering.b.fdiv, x, y)


@lower(arith.Idiv)
def _(lowering: Lowering, op: arith.Idiv, x: V, y: V) -> V:
    b, dtype = lowering.b, _dtype(op.x)
    quotient = _quotient(b, x, _safe_divisor(b, x, y, dtype), dtype)
    return b.select(b.icmp("eq", y, zero(y.type)), const(y.type, -1), quotient)


@lower(arith.Rem)
def _(lowering: Lowering, op: arith.Rem, x: V, y: V) -> V:
    b, dtype = lowering.b, _dtype(op.x)
    if dtype.is_floating():
        return computed(lowering, dtype, lambda x, y: fmod(b, x, y, lowering.target), x, y)
    safe = _safe_divisor(b, x, y, dtype)
    rest = b.sub(x, b.mul(_quotient(b, x, safe, dtype), safe))
    return b.select(b.icmp("eq", y, zero(y.type)), x, rest)


def _safe_divisor(b: Builder, x: V, y: V, dtype: DType) -> V:
    """``y`` with 1 where it is zero, or -1 below the smallest value: x / 1 is then x."""
    one = const(y.type, 1)
    traps = b.icmp("eq", y, zero(y.type))
    if dtype.is_int_signed():
        smallest = b.icmp("eq", x, const(x.type, dtype.get_int_min_value()))
        traps = b.or_(traps, b.and_(smallest, b.icmp("eq", y, const(y.type, -1))))
    return b.select(traps, one, y)


def _quotient(b: Builder, x: V, y: V, dtype: DType) -> V:
    """x / y truncated, of operands that don't trap.

    LLVM divides vectors lane by lane. Up to 32 bits a float division with enough bits to hold the
    operands does the same at once: a quotient that isn't whole is farther from an integer, by
    1 / y at least, than the rounding error is large.
    """
    if dtype is int1:
        return x
    signed = dtype.is_int_signed()
    if not x.type.is_vector or y.is_const or dtype.bits > 32:
        return b.sdiv(x, y) if signed else b.udiv(x, y)
    if dtype.bits < 32:
        x_wide, y_wide = (b.sitofp(b.int_cast(each, i32, signed=signed), float_) for each in (x, y))
        return b.trunc(b.fptosi(b.fdiv(x_wide, y_wide), i32), elem(x.type))
    if signed:
        return b.fptosi(b.fdiv(b.sitofp(x, double), b.sitofp(y, double)), i32)
    return b.fptoui(b.fdiv(b.uitofp(x, double), b.uitofp(y, double)), i32)


# ---- signs ---------------------------------------------------------------------------------------


@lower(arith.Neg)
def _(lowering: Lowering, op: arith.Neg, x: V) -> V:
    b, dtype = lowering.b, _dtype(op.x)
    if not dtype.is_floating():
        return b.sub(zero(x.type), x)
    if dtype.bits >= 32:
        return b.fneg(x)
    return _with_sign(lowering, x, dtype, lambda bits, sign: b.xor(bits, sign))


@lower(arith.Abs)
def _(lowering: Lowering, op: arith.Abs, x: V) -> V:
    b, dtype = lowering.b, _dtype(op.x)
    if dtype.is_int_unsigned():
        return x
    if not dtype.is_floating():
        # The flag would make the smallest value poison.
        return b.intrinsic("abs", (x, false), overloads=(x.type,), pure=True)
    if dtype.bits >= 32:
        return fabs(b, x)
    return _with_sign(lowering, x, dtype, lambda bits, sign: b.and_(bits, b.not_(sign)))


def _with_sign(lowering: Lowering, x: V, dtype: DType, change: Callable[[V, V], V]) -> V:
    """A narrow float with ``change`` of its bits and the sign bit."""
    b = lowering.b
    bits = bitcast(lowering, x, get_int_dtype(dtype.bits, False))
    sign = const(bits.type, dtype.format.sign_pattern)
    changed = change(bits, sign)
    if not dtype.format.has_negative_zero:
        # The pattern of -0 is NaN: it stays, and so does zero.
        magnitude = b.and_(bits, b.not_(sign))
        changed = b.select(b.icmp("eq", magnitude, zero(bits.type)), bits, changed)
    return bitcast(lowering, changed, dtype)


# ---- minima and maxima ---------------------------------------------------------------------------


def _extremum(
    lowering: Lowering, dtype: DType, x: V, y: V, *, larger: bool, propagate_nan: bool
) -> V:
    b = lowering.b
    if dtype is int1:
        return b.or_(x, y) if larger else b.and_(x, y)
    if dtype.is_int_signed():
        return b.smax(x, y) if larger else b.smin(x, y)
    if dtype.is_int_unsigned():
        return b.umax(x, y) if larger else b.umin(x, y)
    if dtype.bits < 32:
        return _narrow_extremum(lowering, dtype, x, y, larger=larger, propagate_nan=propagate_nan)
    if not propagate_nan and not x.type.is_vector and lowering.target.architecture == "x86_64":
        # LLVM gives NaN with AVX-512 where it sees that one of two scalars is none (LLVM 22).
        return _chosen(b, x, y, (x, y), larger=larger, propagate_nan=False)
    name = "maximum" if larger else "minimum"
    return b.intrinsic(name if propagate_nan else f"{name}num", (x, y), pure=True)


def _narrow_extremum(
    lowering: Lowering, dtype: DType, x: V, y: V, *, larger: bool, propagate_nan: bool
) -> V:
    """One of two narrow floats, as it is: rounding it back would change infinities of fp8e5."""
    wide_x, wide_y = (convert(lowering, each, dtype, float32) for each in (x, y))
    wide = (wide_x, wide_y)
    return _chosen(lowering.b, x, y, wide, larger=larger, propagate_nan=propagate_nan)


def _chosen(
    b: Builder, x: V, y: V, numbers: tuple[V, V], *, larger: bool, propagate_nan: bool
) -> V:
    """One of two values by their ``numbers``."""
    wide_x, wide_y = numbers
    takes_y = b.fcmp("olt" if larger else "ogt", wide_x, wide_y)
    zero_bits = zero(b.as_int(wide_x).type)
    # Of equal values the signs decide: they are zeros, or the same.
    sign = b.icmp("slt", b.as_int(wide_x if larger else wide_y), zero_bits)
    takes_y = b.or_(takes_y, b.and_(b.fcmp("oeq", wide_x, wide_y), sign))
    nan = wide_y if propagate_nan else wide_x
    return b.select(b.or_(takes_y, b.fcmp("uno", nan, nan)), y, x)


@lower(arith.Maximum, arith.Minimum)
def _(lowering: Lowering, op: arith.Extremum, x: V, y: V) -> V:
    propagate = op.propagate_nan
    return _extremum(lowering, _dtype(op.x), x, y, larger=op.larger, propagate_nan=propagate)


@lower(arith.Clamp)
def _(lowering: Lowering, op: arith.Clamp, x: V, lo: V, hi: V) -> V:
    dtype, propagate = _dtype(op.x), op.propagate_nan
    raised = _extremum(lowering, dtype, x, lo, larger=True, propagate_nan=propagate)
    return _extremum(lowering, dtype, raised, hi, larger=False, propagate_nan=propagate)
