"""Conversions between scalar types on SSA values: the rules of `ops.codecs`, in LLVM IR.

A value of each type is held as `storage` says: bfloat16 and float16 as i16, the 8-bit floats as i8,
as they lie in memory. Roundings to narrow formats are integer arithmetic, except where one native
instruction does the same: x86's conversion to bfloat16 flushes subnormals, and a conversion from
double through float would round twice. Nothing here depends on the CPU but the speed.
"""

from __future__ import annotations

from tritium.backends.emit import (
    Builder,
    LType,
    V,
    const,
    double,
    elem,
    float_,
    half,
    i16,
    i32,
    int_,
    like,
    zero,
)
from tritium.backends.llvm import Target
from tritium.ir.dtypes import (
    DType,
    FloatFormat,
    bfloat16,
    float8e5,
    float16,
    float32,
    float64,
    int1,
)
from tritium.ops.codecs import Rounding, is_convertible

_MANTISSA = float32.format.mantissa_bits
_INFINITY = 0x7F800000
_MAGNITUDE = 0x7FFFFFFF


def storage(dtype: DType) -> LType:
    """The LLVM type of one value: iN for integers (i1 for int1), i16 and i8 for narrow floats."""
    if dtype is float32:
        return float_
    return double if dtype is float64 else int_(dtype.bits)


def convert(b: Builder, x: V, src: DType, dst: DType, rounding: Rounding, target: Target) -> V:
    """x, a scalar or vector of `storage(src)`, as `storage(dst)`; see `ops.codecs.convert`.

    Raises ValueError for a pair without a meaning.
    """
    if not is_convertible(src, dst):
        raise ValueError(f"there is no conversion from {src} to {dst}")
    if src is dst:
        return x
    if src.is_floating():
        carrier = _widen(b, x, src, target)
        if dst.is_floating():
            return _narrow(b, carrier, dst, rounding, target)
        return _to_bool(b, carrier) if dst is int1 else _float_to_int(b, carrier, dst)
    if dst.is_floating():
        return _int_to_float(b, x, src, dst, target)
    if dst is int1:
        return b.icmp("ne", x, zero(x.type))
    return b.int_cast(x, storage(dst), signed=src.is_int_signed())


def _k(x: V, value: int) -> V:
    return const(x.type, value)


def _has_half(target: Target) -> bool:
    return target.has("f16c") or target.has("neon")


# ---- wider ---------------------------------------------------------------------------------------


def _widen(b: Builder, x: V, src: DType, target: Target) -> V:
    """A float as float, or double where it is one: exact."""
    if src is float32 or src is float64:
        return x
    if src is bfloat16:
        bits = b.zext(x, i32)
        return b.as_float(b.shl(bits, _k(bits, 16)), float_)
    if src is float8e5 and _has_half(target):
        # The upper half of a float16.
        wide = b.zext(x, i16)
        x, src = b.shl(wide, _k(wide, 8)), float16
    if src is float16 and _has_half(target):
        return b.fpext(b.as_float(x, half), float_)
    return _decode(b, b.zext(x, i32), src.format)


def _decode(b: Builder, bits: V, layout: FloatFormat) -> V:
    """Patterns of a narrow format, in i32, as float."""
    rebias = float32.format.bias - layout.bias
    magnitude = b.and_(bits, _k(bits, layout.sign_pattern - 1))
    shifted = b.shl(magnitude, _k(bits, _MANTISSA - layout.mantissa_bits))
    normal = b.add(shifted, _k(bits, rebias << _MANTISSA))
    # A subnormal's mantissa gets the leading bit it lacks, which is then subtracted again.
    led = b.as_float(b.add(shifted, _k(bits, (rebias + 1) << _MANTISSA)), float_)
    small = b.as_int(b.fsub(led, const(led.type, layout.smallest_normal)))
    is_small = b.icmp("ult", magnitude, _k(bits, 1 << layout.mantissa_bits))
    value = b.select(is_small, small, normal)
    if layout.infinity_pattern is not None:
        special = b.icmp("uge", magnitude, _k(bits, layout.infinity_pattern))
        value = b.select(special, b.or_(shifted, _k(bits, _INFINITY)), value)
    elif layout.has_nan and layout.has_negative_zero:
        special = b.icmp("eq", magnitude, _k(bits, layout.sign_pattern - 1))
        value = b.select(special, _k(bits, _QUIET), value)
    sign = b.shl(b.and_(bits, _k(bits, layout.sign_pattern)), _k(bits, 32 - layout.bits))
    value = b.or_(value, sign)
    if not layout.has_negative_zero:
        special = b.icmp("eq", bits, _k(bits, layout.sign_pattern))
        value = b.select(special, _k(bits, _QUIET), value)
    return b.as_float(value, float_)


_QUIET = 0x7FC00000


# ---- narrower ------------------------------------------------------------------------------------


def _narrow(b: Builder, x: V, dst: DType, rounding: Rounding, target: Target) -> V:
    """float or double as any float type: one rounding."""
    if dst is float64:
        return b.fpext(x, double)
    if elem(x.type) is double:
        if dst is float32:
            return b.fptrunc(x, float_) if rounding == "rtne" else _truncate(b, x)
        x = _round_to_odd(b, x)
    if dst is float32:
        return x
    if rounding == "rtne" and dst is float16 and _has_half(target):
        return b.bitcast(b.fptrunc(x, half), like(x.type, i16))
    if dst is bfloat16:
        return _to_bfloat(b, x, rounding)
    return b.trunc(_encode(b, b.as_int(x), dst.format, rounding), storage(dst))


def _toward_zero(b: Builder, x: V) -> tuple[V, V, V]:
    """double x as float: the nearest, its bits brought back toward zero where they went beyond x,
    and whether the nearest differs from x."""
    near = b.fptrunc(x, float_)
    back = b.fpext(near, double)
    beyond = b.fcmp(
        "ogt", b.intrinsic("fabs", (back,), pure=True), b.intrinsic("fabs", (x,), pure=True)
    )
    bits = b.as_int(near)
    return near, b.sub(bits, b.zext(beyond, i32)), b.fcmp("one", back, x)


def _truncate(b: Builder, x: V) -> V:
    """double as float, rounded toward zero."""
    return b.as_float(_toward_zero(b, x)[1], float_)


def _round_to_odd(b: Builder, x: V) -> V:
    """double as a float that any narrower format rounds as it would round x.

    Where x isn't a float, of the two around it the one with an odd last bit: it stands on the same
    side of every number and every tie of the narrower format.
    """
    _, bits, inexact = _toward_zero(b, x)
    return b.as_float(b.or_(bits, b.zext(inexact, i32)), float_)


def _to_bfloat(b: Builder, x: V, rounding: Rounding) -> V:
    bits = b.as_int(x)
    high = b.lshr(bits, _k(bits, 16))
    rounded = high
    if rounding == "rtne":
        rounded = b.lshr(_add_half(b, bits, bits, 16), _k(bits, 16))
    result = b.select(b.fcmp("uno", x, x), b.or_(high, _k(bits, 0x40)), rounded)
    return b.trunc(result, i16)


def _add_half(b: Builder, value: V, keep: V, count: int) -> V:
    """value plus what makes dropping its low `count` bits round to nearest even.

    `keep` has the same bit at place `count`.
    """
    odd = b.and_(b.lshr(keep, _k(keep, count)), _k(keep, 1))
    return b.add(b.add(value, _k(value, (1 << (count - 1)) - 1)), odd)


def _shift_right(b: Builder, value: V, count: int, rounding: Rounding) -> V:
    if rounding == "rtne":
        value = _add_half(b, value, value, count)
    return b.lshr(value, _k(value, count))


def _encode(b: Builder, bits: V, layout: FloatFormat, rounding: Rounding) -> V:
    """float, given by its bits, as a pattern of a narrow format of other bias, in i32."""
    magnitude = b.and_(bits, _k(bits, _MAGNITUDE))
    dropped = _MANTISSA - layout.mantissa_bits
    rebias = float32.format.bias - layout.bias
    lowered = b.sub(magnitude, _k(bits, rebias << _MANTISSA))
    result = _shift_right(b, lowered, dropped, rounding)
    small = b.icmp("ult", magnitude, _k(bits, (rebias + 1) << _MANTISSA))
    subnormal = _encode_subnormal(b, magnitude, dropped + rebias + 1, rounding)
    result = _limit(b, b.select(small, subnormal, result), magnitude, layout, rounding)
    sign = b.and_(b.lshr(bits, _k(bits, 32 - layout.bits)), _k(bits, layout.sign_pattern))
    if not layout.has_nan:
        sign = b.select(b.icmp("ugt", magnitude, _k(bits, _INFINITY)), _k(bits, 0), sign)
    if layout.has_negative_zero:
        return b.or_(result, sign)
    sign = b.select(b.icmp("eq", result, _k(bits, 0)), _k(bits, 0), sign)
    nan = b.icmp("ugt", magnitude, _k(bits, _INFINITY))
    return b.select(nan, _k(bits, layout.sign_pattern), b.or_(result, sign))


def _encode_subnormal(b: Builder, magnitude: V, dropped_at_zero: int, rounding: Rounding) -> V:
    """Rounded patterns of magnitudes under the format's smallest normal value.

    One more bit is dropped for every power of two below it; past the whole significand nothing is
    left, nor of the float's own subnormals, which lack the leading bit they get here.
    """
    leading = 1 << _MANTISSA
    significand = b.or_(b.and_(magnitude, _k(magnitude, leading - 1)), _k(magnitude, leading))
    exponent = b.lshr(magnitude, _k(magnitude, _MANTISSA))
    count = b.sub(_k(magnitude, dropped_at_zero), exponent)
    # The bound below serves the lanes that are not small, whose count is negative.
    count = b.umin(count, _k(count, _MANTISSA + 2))
    if rounding == "rtne":
        odd = b.and_(b.lshr(significand, count), _k(count, 1))
        half_unit = b.shl(_k(count, 1), b.sub(count, _k(count, 1)))
        below = b.sub(half_unit, _k(count, 1))
        significand = b.add(b.add(significand, below), odd)
    return b.lshr(significand, count)


def _limit(b: Builder, result: V, magnitude: V, layout: FloatFormat, rounding: Rounding) -> V:
    """The format's overflow, infinity and NaN applied to rounded magnitudes."""
    infinity = layout.infinity_pattern
    if infinity is not None and not layout.saturates:
        if rounding == "rtne":
            result = b.umin(result, _k(result, infinity))
        else:
            result = b.umin(result, _k(result, layout.largest_pattern))
            infinite = b.icmp("eq", magnitude, _k(result, _INFINITY))
            result = b.select(infinite, _k(result, infinity), result)
    else:
        result = b.umin(result, _k(result, layout.largest_pattern))
    if layout.nan_pattern is not None and layout.has_negative_zero:
        nan = b.icmp("ugt", magnitude, _k(result, _INFINITY))
        result = b.select(nan, _k(result, layout.nan_pattern), result)
    return result


# ---- integers ------------------------------------------------------------------------------------


def _to_bool(b: Builder, x: V) -> V:
    return b.fcmp("une", x, zero(x.type))


def _float_to_int(b: Builder, x: V, dst: DType) -> V:
    """Truncated and saturated, NaN 0; under 32 bits saturated at 16 bits, the low bits kept."""
    signed = dst.is_int_signed()
    if dst.bits < 32:
        low, high = (-32768.0, 32767.0) if signed else (0.0, 65535.0)
        x = b.select(b.fcmp("uno", x, x), zero(x.type), x)
        x = b.select(b.fcmp("ogt", x, const(x.type, high)), const(x.type, high), x)
        x = b.select(b.fcmp("olt", x, const(x.type, low)), const(x.type, low), x)
        return b.trunc(b.fptosi(x, i32), storage(dst))
    limit = const(x.type, 2.0 ** (dst.bits - 1 if signed else dst.bits))
    low_end = const(x.type, -(2.0 ** (dst.bits - 1)) if signed else 0.0)
    # Lanes that don't fit are poison to LLVM's conversions: they get a number that does.
    inside = b.select(b.fcmp("uge", x, limit), zero(x.type), x)
    inside = b.select(b.fcmp("olt", inside, low_end), low_end, inside)
    result = b.fptosi(inside, storage(dst)) if signed else b.fptoui(inside, storage(dst))
    return b.select(b.fcmp("oge", x, limit), _k(result, dst.get_int_max_value()), result)


def _int_to_float(b: Builder, x: V, src: DType, dst: DType, target: Target) -> V:
    """Rounded once to nearest."""
    signed = src.is_int_signed()
    if dst is float32 or dst is float64:
        return b.sitofp(x, storage(dst)) if signed else b.uitofp(x, storage(dst))
    if src.bits <= 16:
        carrier = b.sitofp(b.int_cast(x, i32, signed=signed), float_)
    elif src.bits == 32:
        x = _shorten_to_odd(b, x, 24, 8, signed)
        carrier = b.sitofp(x, float_) if signed else b.uitofp(x, float_)
    else:
        x = _shorten_to_odd(b, x, 53, 11, signed)
        carrier = b.sitofp(x, double) if signed else b.uitofp(x, double)
    return _narrow(b, carrier, dst, "rtne", target)


def _shorten_to_odd(b: Builder, x: V, fits: int, cut: int, signed: bool) -> V:
    """Integers of at most `fits` significant bits that narrow floats round as they would round x.

    Beyond 2**fits the low `cut` bits are cleared, and the lowest one left is set if they weren't
    zero (rounding to odd).
    """
    low = _k(x, (1 << cut) - 1)
    lost = b.icmp("ne", b.and_(x, low), _k(x, 0))
    kept = b.and_(x, b.not_(low))
    sticky = b.shl(b.zext(lost, elem(x.type)), _k(x, cut))
    bound = 1 << fits
    if signed:
        exact = b.icmp("ult", b.add(x, _k(x, bound)), _k(x, 2 * bound))
    else:
        exact = b.icmp("ult", x, _k(x, bound))
    return b.select(exact, x, b.or_(kept, sticky))
