"""Lowering rules that NVIDIA GPUs have better instructions for than the common ones.

Approximate instructions stand where an operation's class of agreement for "nvptx" allows them
(``ops.math``, ``ops.arith``; docs/numerics.md, "NVIDIA GPUs"). Functions of fp64 are those of
``double_math``. Nothing flushes subnormals but steps whose argument never is one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tritium.backends.common import remainder
from tritium.backends.common.cast import computed, convert
from tritium.backends.common.rules import Lowering, Rule, lower, rule_of
from tritium.backends.emit import (
    Builder,
    V,
    bfloat,
    const,
    double,
    float_,
    half,
    i8,
    i16,
    i32,
    i64,
    vec,
    zero,
)
from tritium.ir.core import Op, Value
from tritium.ir.dtypes import (
    DType,
    bfloat16,
    float8e4nv,
    float8e5,
    float16,
    float32,
    float64,
    int1,
)
from tritium.ops import arith, compare, create, logic, math, select, shape
from tritium.ops.codecs import Rounding

from . import double_math
from .target import GpuTarget

NVPTX: dict[type[Op], Rule] = {}
"""Rules tried before the common ones."""

_LOG2_E = 1.4426950216293335
# log2(e) - _LOG2_E
_LOG2_E_REST = 1.925963033500011e-08


def lowering_at(b: Builder, target: GpuTarget) -> Lowering:
    """The context of rules that write one lane where ``b`` stands."""
    return Lowering(b, target, 1, native_conversion)


def apply(b: Builder, target: GpuTarget, op: Op, operands: Sequence[V]) -> V:
    """One lane of an elementwise operation."""
    return rule_of(op, NVPTX)(lowering_at(b, target), op, *operands)


def _dtype(value: Value) -> DType:
    assert isinstance(value.scalar, DType)
    return value.scalar


def _instruction(b: Builder, name: str, *operands: V) -> V:
    """An instruction of NVIDIA's on operands of the type of its result."""
    return b.intrinsic(f"nvvm.{name}", operands, overloads=(), pure=True)


# ---- quotients, roots, products ------------------------------------------------------------------


@lower(arith.Div, table=NVPTX)
def _(lowering: Lowering, op: arith.Div, x: V, y: V) -> V:
    if _dtype(op.x) is not float32:
        return rule_of(op)(lowering, op, x, y)
    if isinstance(op.y.defining_op, (create.Splat, shape.Broadcast)):
        return _quotient_of_many(lowering.b, x, y)
    return _instruction(lowering.b, "div.full", x, y)


def _quotient_of_many(b: Builder, x: V, y: V) -> V:
    """What ``div.full`` computes, where its divisor has been seen before: two products.

    The instruction scales both by a power of two where the divisor's reciprocal would leave the
    normal numbers, and then takes that (PTX ISA, "div"). All that depends on the divisor alone is
    written once.
    """
    size = b.intrinsic("fabs", (y,), pure=True)
    scale = b.select(
        b.fcmp("ogt", size, const(float_, 2.0**126)),
        const(float_, 0.25),
        b.select(
            b.fcmp("olt", size, const(float_, 2.0**-126)),
            const(float_, 2.0**24),
            const(float_, 1.0),
        ),
    )
    reciprocal = _instruction(b, "rcp.approx.ftz.f", b.fmul(y, scale))
    return b.fmul(b.fmul(x, scale), reciprocal)


@lower(math.Sqrt, table=NVPTX)
def _(lowering: Lowering, op: math.Sqrt, x: V) -> V:
    if _dtype(op.x) is float32:
        return _instruction(lowering.b, "sqrt.approx.f", x)
    return rule_of(op)(lowering, op, x)


@lower(math.Rsqrt, table=NVPTX)
def _(lowering: Lowering, op: math.Rsqrt, x: V) -> V:
    if _dtype(op.x) is float32:
        return _instruction(lowering.b, "rsqrt.approx.f", x)
    return rule_of(op)(lowering, op, x)


@lower(logic.Shl, logic.Shr, table=NVPTX)
def _(lowering: Lowering, op: logic.Shl | logic.Shr, x: V, y: V) -> V:
    """As everywhere, but that a 64-bit count is reduced before it is compared.

    LLVM 22.1 drops a comparison with the count of a shift, as PTX limits counts itself; but PTX
    counts have 32 bits, so that of 2**32 would be none.
    """
    if y.type.bits == 64:
        y = lowering.b.umin(y, const(i64, 64))
    return rule_of(op)(lowering, op, x, y)


@lower(arith.Rem, table=NVPTX)
def _(lowering: Lowering, op: arith.Rem, x: V, y: V) -> V:
    dtype = _dtype(op.x)
    if not dtype.is_floating():
        return rule_of(op)(lowering, op, x, y)

    def fmod(x: V, y: V) -> V:
        return remainder.fmod(lowering.b, x, y, lowering.target, double_math.far_remainder)

    return computed(lowering, dtype, fmod, x, y)


@lower(arith.Umulhi, table=NVPTX)
def _(lowering: Lowering, op: arith.Umulhi, x: V, y: V) -> V:
    name = "mulhi.ui" if x.type is i32 else "mulhi.ull"
    return _instruction(lowering.b, name, x, y)


def _as_native(b: Builder, dtype: DType, x: V) -> V:
    """A 16-bit float in the type that LLVM computes it in; bf16 is held as its bits."""
    return b.bitcast(x, bfloat) if dtype is bfloat16 else x


def _from_native(b: Builder, dtype: DType, x: V) -> V:
    return b.bitcast(x, i16) if dtype is bfloat16 else x


def _has_16_bit(lowering: Lowering, dtype: DType) -> bool:
    """Whether there are instructions for a 16-bit float type."""
    return dtype in (float16, bfloat16) and bool(lowering.target.at_least(8))


@lower(arith.Fma, table=NVPTX)
def _(lowering: Lowering, op: arith.Fma, x: V, y: V, z: V) -> V:
    dtype, b = _dtype(op.x), lowering.b
    if not _has_16_bit(lowering, dtype):
        return rule_of(op)(lowering, op, x, y, z)
    x, y, z = (_as_native(b, dtype, each) for each in (x, y, z))
    return _from_native(b, dtype, b.fma(x, y, z))


@lower(select.Where, table=NVPTX)
def _(lowering: Lowering, op: select.Where, condition: V, x: V, y: V) -> V:
    """As everywhere, but that LLVM doesn't see a zero that it would take for a minimum's.

    LLVM 22.1 makes ``x if x < 0.0 else 0.0`` a ``min``, whose result for -0.0 is -0.0 in PTX.
    """
    made = op.condition.defining_op
    if isinstance(made, compare.Comparison) and not made.x.scalar.is_floating():
        return lowering.b.select(condition, x, y)
    x, y = (_unseen(lowering.b, each) if each.type.is_float else each for each in (x, y))
    return lowering.b.select(condition, x, y)


def _unseen(b: Builder, x: V) -> V:
    return b.intrinsic("arithmetic.fence", (x,), pure=True) if x.number == 0 else x


def _extremum(
    lowering: Lowering, dtype: DType, x: V, y: V, *, larger: bool, propagate_nan: bool
) -> V:
    b = lowering.b
    name = "maximum" if larger else "minimum"
    native = [_as_native(b, dtype, each) for each in (x, y)]
    made = b.intrinsic(name if propagate_nan else f"{name}num", native, pure=True)
    return _from_native(b, dtype, made)


@lower(arith.Maximum, arith.Minimum, table=NVPTX)
def _(lowering: Lowering, op: arith.Extremum, x: V, y: V) -> V:
    dtype = _dtype(op.x)
    if not _has_16_bit(lowering, dtype):
        return rule_of(op)(lowering, op, x, y)
    return _extremum(lowering, dtype, x, y, larger=op.larger, propagate_nan=op.propagate_nan)


@lower(arith.Clamp, table=NVPTX)
def _(lowering: Lowering, op: arith.Clamp, x: V, lo: V, hi: V) -> V:
    dtype, propagate = _dtype(op.x), op.propagate_nan
    if not _has_16_bit(lowering, dtype):
        return rule_of(op)(lowering, op, x, lo, hi)
    raised = _extremum(lowering, dtype, x, lo, larger=True, propagate_nan=propagate)
    return _extremum(lowering, dtype, raised, hi, larger=False, propagate_nan=propagate)


# ---- elementary functions ------------------------------------------------------------------------

Function = Callable[[Builder, V], V]


def exp(b: Builder, x: V) -> V:
    """e**x of fp32 by the instruction for 2**f, f the small rest of x * log2(e).

    The nearest integer n of x * log2(e), from -126 to 127, is a factor; f takes all that exceeds
    it, so overflow, underflow and subnormal results come out of one product.
    """
    scaled = const(float_, _LOG2_E / 253), const(float_, 126 / 253)
    limited = _instruction(b, "fma.rn.sat.f", x, *scaled)
    # 1.5 * 2**23 + 127, whose sum with n has n + 127 in its low bits.
    magic = 12582912.0 + 127
    shifted = b.fma(limited, const(float_, 253.0), const(float_, magic - 126))
    minus_n = b.fsub(const(float_, magic), shifted)
    f = b.fma(x, const(float_, _LOG2_E), minus_n)
    f = b.fma(x, const(float_, _LOG2_E_REST), f)
    factor = b.as_float(b.shl(b.as_int(shifted), const(i32, 23)), float_)
    return b.fmul(_instruction(b, "ex2.approx.ftz.f", f), factor)


def exp2(b: Builder, x: V) -> V:
    """2**x of fp32; exact at integers. What would be subnormal is computed 2**24 times as large."""
    small = b.fcmp("olt", x, const(float_, -126.0))
    raised = b.fadd(x, b.select(small, const(float_, 24.0), zero(float_)))
    power = _instruction(b, "ex2.approx.ftz.f", raised)
    return b.fmul(power, b.select(small, const(float_, 2.0**-24), const(float_, 1.0)))


_FLOAT: dict[type[math.Elementary], Function] = {math.Exp: exp, math.Exp2: exp2}

_DOUBLE: dict[type[math.Elementary], Function] = {
    math.Exp: double_math.exp,
    math.Exp2: double_math.exp2,
    math.Log: double_math.log,
    math.Log2: double_math.log2,
    math.Sin: double_math.sin,
    math.Cos: double_math.cos,
    math.Erf: double_math.erf,
    math.Tanh: double_math.tanh,
}


@lower(*_DOUBLE, table=NVPTX)
def _(lowering: Lowering, op: math.Elementary, x: V) -> V:
    functions = _FLOAT if _dtype(op.x) is float32 else _DOUBLE
    function = functions.get(type(op))
    return function(lowering.b, x) if function else rule_of(op)(lowering, op, x)


# ---- conversions ---------------------------------------------------------------------------------

_FP8_NAMES = {float8e4nv: "e4m3x2", float8e5: "e5m2x2"}


def native_conversion(
    lowering: Lowering, x: V, source: DType, target: DType, rounding: Rounding
) -> V | None:
    """A value of one type as another where instructions do what ``ops.codecs`` says, else None."""
    if source.is_floating() and target.is_int() and target is not int1:
        return _to_integer(lowering, x, source, target)
    if source in _FP8_NAMES or source is float16:
        return _widened(lowering, x, source, target, rounding)
    if source is float32:
        return _narrowed(lowering, x, target, rounding)
    if source.is_int() and source.bits <= 16 and target in (float16, bfloat16):
        exact = convert(lowering, x, source, float32)
        return convert(lowering, exact, float32, target)
    return None


def _widened(
    lowering: Lowering, x: V, source: DType, target: DType, rounding: Rounding
) -> V | None:
    """From a narrow float by way of a wider one, which holds every value of it."""
    b = lowering.b
    if source is float16:
        if target in (float32, float64):
            return b.fpext(x, float_ if target is float32 else double)
        return convert(lowering, b.fpext(x, float_), float32, target, rounding)
    if lowering.target.at_least(8, 9):
        pair = b.zext(x, i16)
        name = f"nvvm.{_FP8_NAMES[source]}.to.f16x2.rn"
        wide = b.extract(b.intrinsic(name, (pair,), vec(half, 2), (), pure=True), 0)
    elif source is float8e5:
        # The upper half of a float16.
        wide = b.bitcast(b.shl(b.zext(x, i16), const(i16, 8)), half)
    else:
        return None
    return wide if target is float16 else convert(lowering, wide, float16, target, rounding)


def _narrowed(lowering: Lowering, x: V, target: DType, rounding: Rounding) -> V | None:
    """From fp32, rounded once."""
    b, gpu = lowering.b, lowering.target
    nearest = rounding == "rtne"
    if target is float16 and nearest:
        return b.fptrunc(x, half)
    if target is float16 and gpu.at_least(8):
        pair = b.intrinsic("nvvm.ff2f16x2.rz", (zero(float_), x), vec(half, 2), (), pure=True)
        return b.extract(pair, 0)
    if target is bfloat16 and gpu.at_least(8):
        name = "nvvm.f2bf16.rn" if nearest else "nvvm.f2bf16.rz"
        return b.bitcast(b.intrinsic(name, (x,), bfloat, (), pure=True), i16)
    if target in _FP8_NAMES and nearest and gpu.at_least(8, 9):
        name = f"nvvm.ff.to.{_FP8_NAMES[target]}.rn"
        return b.trunc(b.intrinsic(name, (zero(float_), x), i16, (), pure=True), i8)
    return None


def _to_integer(lowering: Lowering, x: V, source: DType, target: DType) -> V:
    """Truncated and saturated, NaN 0; under 32 bits saturated at 16 bits, the low bits kept."""
    b, signed = lowering.b, target.is_int_signed()
    if source is not float64:
        x = convert(lowering, x, source, float32)
    wide = i64 if target.bits == 64 else i32
    # The instructions make NaN 0 only from fp32 to 32 bits.
    if x.type is double or wide is i64:
        x = b.select(b.fcmp("uno", x, x), zero(x.type), x)
    name = f"nvvm.{'d' if x.type is double else 'f'}2{'' if signed else 'u'}"
    name += "ll.rz" if wide is i64 else "i.rz"
    made = b.intrinsic(name, (x,), wide, (), pure=True)
    if target.bits >= 32:
        return made
    if signed:
        made = b.smax(b.smin(made, const(i32, 0x7FFF)), const(i32, -0x8000))
    else:
        made = b.umin(made, const(i32, 0xFFFF))
    return b.trunc(made, i8 if target.bits == 8 else i16)
