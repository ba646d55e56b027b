"""Conversions between all scalar types on NumPy arrays: their one meaning.

Arrays go in and out in storage form (``DType.numpy``). Every conversion rounds once, from the exact
source value, to nearest with ties to even unless ``"rtz"`` asks for truncation:

- float to float: too large a value becomes infinity (under ``"rtz"`` the largest finite value), or,
  where the format saturates (the 8-bit floats), the largest finite value, which infinities become
  too. NaN stays NaN and keeps its sign where the format has room for it; its payload is
  unspecified. ``float8e4b15`` has no NaN: it becomes the largest value, whatever the NaN's sign,
  which for 0 / 0 depends on the CPU.
  -0 becomes +0 where the format has no -0. Between equal types nothing changes, not even
  infinities.
- float to integer: truncates toward zero and saturates, NaN becomes 0; integers under 32 bits
  saturate at 16 bits and keep the low bits, as NVIDIA's instructions do. To ``int1``: x != 0.
- integer to float: rounds to nearest; too large for ``float16``: infinity.
- integer to integer: wraps; from ``int1``: 0 or 1; to ``int1``: x != 0.
- integers and 8-bit floats don't convert into each other (see ``is_convertible``).

ml_dtypes' own conversions are never used: those from float64 round twice. NumPy's are, where they
are exact or known to round once.
"""

from __future__ import annotations

import functools
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from tritium.ir.dtypes import Array, DType, FloatFormat, bfloat16, float16, float32, float64, int1

Rounding: TypeAlias = Literal["rtne", "rtz"]
ROUNDINGS: tuple[Rounding, ...] = get_args(Rounding)


def is_convertible(src: DType, dst: DType) -> bool:
    """Whether ``convert`` has a meaning for the pair: not integer <-> 8-bit float, not ``void``."""
    if src.is_void() or dst.is_void():
        return False
    return not ((src.is_fp8() and dst.is_int()) or (src.is_int() and dst.is_fp8()))


@np.errstate(all="ignore")
def convert(x: Array, src: DType, dst: DType, rounding: Rounding = "rtne") -> Array:
    """The values of ``x``, of type ``src``, as type ``dst``; same shape.

    ``rounding`` applies to float narrowing only; every other conversion has one meaning. The result
    may be ``x`` itself. Raises ValueError for an unknown rounding or a pair without a meaning,
    TypeError when ``x`` is not in ``src``'s storage form.
    """
    if rounding not in ROUNDINGS:
        raise ValueError(f"unknown rounding {rounding!r}")
    if not is_convertible(src, dst):
        raise ValueError(f"there is no conversion from {src} to {dst}")
    _require_storage(x, src)
    if src is dst:
        return x
    # NumPy's arithmetic on 0-d arrays gives scalars, which can't be assigned to.
    flat = x.reshape(1) if x.ndim == 0 else x
    return _convert(flat, src, dst, rounding).reshape(x.shape)


def decode(x: Array, dtype: DType) -> NDArray[np.float64]:
    """The values of ``x``, of float type ``dtype``, as float64: exact, same shape.

    Raises ValueError for other types, TypeError when ``x`` is not in storage form.
    """
    _require_float(dtype)
    return convert(x, dtype, float64)


def encode(x: NDArray[np.float64], dtype: DType, rounding: Rounding = "rtne") -> Array:
    """Float64 values as float type ``dtype``, in storage form: one rounding, same shape.

    Raises ValueError for other types, TypeError when ``x`` is not float64.
    """
    _require_float(dtype)
    return convert(x, float64, dtype, rounding)


def bitcast(x: Array, src: DType, dst: DType) -> Array:
    """The bits of ``x``, of type ``src``, taken as type ``dst``; same shape, a view of ``x``.

    Raises ValueError when the types differ in width, TypeError when ``x`` is not in storage form.
    """
    if src.bits != dst.bits:
        raise ValueError(f"{src} and {dst} differ in width")
    _require_storage(x, src)
    return x.view(dst.numpy)


def to_compute(x: Array, dtype: DType) -> Array:
    """``x``, of type ``dtype``, in the type its arithmetic is carried out in: exact, same shape."""
    return convert(x, dtype, dtype.compute)


def from_compute(x: Array, dtype: DType) -> Array:
    """A result in ``dtype.compute`` back as ``dtype``: one rounding to nearest, same shape."""
    return convert(x, dtype.compute, dtype)


def _require_float(dtype: DType) -> None:
    if not dtype.is_floating():
        raise ValueError(f"{dtype} is not a float type")


def _require_storage(x: Array, dtype: DType) -> None:
    if x.dtype != dtype.numpy:
        raise TypeError(f"{dtype} is stored as {dtype.numpy}, got an array of {x.dtype}")


def _convert(x: Array, src: DType, dst: DType, rounding: Rounding) -> Array:
    if src.is_fp8() or (src.bits == 16 and dst.is_fp8()):
        return np.take(_table(src, dst, rounding), x.view(f"u{src.itemsize}"))
    if src.is_floating():
        carrier = _widen(x, src)
        if dst.is_floating():
            return _narrow(carrier, dst, rounding)
        return carrier != 0 if dst is int1 else _float_to_int(carrier, dst)
    if dst.is_floating():
        return _int_to_float(x, src, dst)
    return x.astype(dst.numpy)


@functools.cache
def _table(src: DType, dst: DType, rounding: Rounding) -> Array:
    """What each bit pattern of a float type of at most 16 bits becomes."""
    patterns = np.arange(1 << src.bits, dtype=f"u{src.itemsize}")
    carrier = _widen_fp8(patterns, src.format) if src.is_fp8() else _widen(patterns, src)
    table = _narrow(carrier, dst, rounding)
    table.flags.writeable = False
    return table


def _widen(x: Array, src: DType) -> Array:
    """Float storage in its carrier, float64 for ``float64`` and float32 for the rest: exact."""
    if src is bfloat16:
        return (x.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    if src.is_fp8():
        return np.take(_table(src, float32, "rtne"), x.view(np.uint8))
    if src is float16:
        return x.view(np.float16).astype(np.float32)
    return x


def _widen_fp8(patterns: Array, layout: FloatFormat) -> NDArray[np.float32]:
    """Bit patterns of an 8-bit float, or smaller, as float32, from the format's definition."""
    magnitude = patterns.astype(np.int32) & (layout.sign_pattern - 1)
    exponent = magnitude >> layout.mantissa_bits
    mantissa = magnitude & ((1 << layout.mantissa_bits) - 1)
    significand = mantissa + np.where(exponent > 0, 1 << layout.mantissa_bits, 0)
    power = np.maximum(exponent, 1) - (layout.bias + layout.mantissa_bits)
    value: NDArray[np.float32] = np.ldexp(significand.astype(np.float32), power)
    if layout.infinity_pattern is not None:
        value[magnitude == layout.infinity_pattern] = np.inf
    value[magnitude > layout.largest_pattern + layout.has_inf] = np.nan
    np.negative(value, out=value, where=patterns >= layout.sign_pattern)
    if not layout.has_negative_zero:
        value[patterns == layout.nan_pattern] = np.nan
    return value


def _narrow(carrier: Array, dst: DType, rounding: Rounding) -> Array:
    """Float32 or float64 values as any float type, in storage form: one rounding."""
    # These NumPy conversions are exact, or one correctly rounded operation.
    if carrier.dtype == dst.numpy or dst is float64:
        return carrier.astype(dst.numpy, copy=False)
    if rounding == "rtne" and (dst is float32 or (dst is float16 and carrier.itemsize == 4)):
        return carrier.astype(dst.numpy)
    return _round_bits(carrier, dst, rounding)


def _round_bits(carrier: Array, dst: DType, rounding: Rounding) -> Array:
    """``_narrow`` on the integers that hold the bits; ``dst`` is narrower than the carrier."""
    source, target = (float64 if carrier.itemsize == 8 else float32).format, dst.format
    bits = carrier.view(f"u{carrier.itemsize}")
    magnitude = bits & (source.sign_pattern - 1)
    dropped = source.mantissa_bits - target.mantissa_bits
    rebias = source.bias - target.bias

    # Normal results: a carry out of the mantissa runs into the exponent, as it must.
    result = _shift_right(magnitude - (rebias << source.mantissa_bits), dropped, rounding)
    # Subnormal results drop one more bit for every power of two below the smallest normal. Where
    # both biases are equal the subnormals of both sides line up, and the rule above holds.
    if rebias:
        small = magnitude < (rebias + 1) << source.mantissa_bits
        if small.any():
            result[small] = _round_subnormal(
                magnitude[small], source, dropped + rebias + 1, rounding
            )
    _limit(result, magnitude, source, target, rounding)

    negative = bits >= source.sign_pattern
    if not target.has_negative_zero:
        negative &= result != 0
    if not target.has_nan:
        negative &= magnitude <= _infinity(source)
    result |= negative.astype(bits.dtype) << (target.bits - 1)
    if not target.has_negative_zero:
        result[magnitude > _infinity(source)] = target.nan_pattern
    return result.astype(f"u{dst.itemsize}").view(dst.numpy)


def _shift_right(value: Array, count: int | Array, rounding: Rounding) -> Array:
    """``value >> count``, rounded; ``count`` (1 and up) is one number or one for each element."""
    if rounding == "rtz":
        return value >> count
    odd = (value >> count) & 1
    below_half = (1 << (count - 1)) - 1
    rounded: Array = (value + below_half + odd) >> count
    return rounded


def _round_subnormal(
    magnitude: Array, source: FloatFormat, dropped_at_zero: int, rounding: Rounding
) -> Array:
    """Rounded patterns of magnitudes under the target's smallest normal value.

    ``dropped_at_zero``: bits to drop from a significand whose stored exponent is 0.
    """
    leading = 1 << source.mantissa_bits
    exponent = magnitude >> source.mantissa_bits
    significand = (magnitude & (leading - 1)) | leading
    # Two bits past the significand everything rounds to zero. So do the source's zero and
    # subnormals, to which the line above gives a leading bit they don't have.
    count = np.minimum(dropped_at_zero - exponent, source.mantissa_bits + 2)
    return _shift_right(significand, count, rounding)


def _limit(
    result: Array, magnitude: Array, source: FloatFormat, target: FloatFormat, rounding: Rounding
) -> None:
    """Apply the target's overflow, infinity and NaN to rounded magnitudes, in place."""
    limit = target.infinity_pattern
    if limit is not None and not target.saturates and rounding == "rtne":
        np.minimum(result, limit, out=result)
    else:
        np.minimum(result, target.largest_pattern, out=result)
        if limit is not None and not target.saturates:
            result[magnitude == _infinity(source)] = limit
    if target.has_nan and target.has_negative_zero:
        result[magnitude > _infinity(source)] = target.nan_pattern


def _infinity(source: FloatFormat) -> int:
    """Pattern of the infinity of float32 or float64."""
    return source.largest_pattern + 1


def _float_to_int(carrier: Array, dst: DType) -> Array:
    signed = dst.is_int_signed()
    bits = max(dst.bits, 16)
    wide = np.dtype(f"{'i' if signed else 'u'}{bits // 8}")
    limit = 2.0 ** (bits - 1 if signed else bits)
    over = carrier >= limit
    under = carrier < (-limit if signed else 0.0)
    # What the type can't hold is undefined in C, so it is replaced before and after the cast.
    result = np.where(over | under | np.isnan(carrier), 0.0, carrier).astype(wide)
    result[over] = np.iinfo(wide).max
    result[under] = np.iinfo(wide).min
    return result.astype(dst.numpy, copy=False)


def _int_to_float(x: Array, src: DType, dst: DType) -> Array:
    if dst is float32 or dst is float64:
        return x.astype(dst.numpy)
    if src.bits <= 16:
        return _narrow(x.astype(np.float32), dst, "rtne")
    if src.bits == 64:
        x = _shorten_to_odd(x)
    return _narrow(x.astype(np.float64), dst, "rtne")


def _shorten_to_odd(x: Array) -> Array:
    """64-bit integers with at most 53 significant bits that round to 16-bit floats as ``x`` does.

    Where float64 can't hold x, its low 11 bits are cut off and the lowest one kept is set if they
    weren't zero (rounding to odd): at least 42 bits stay, so the final rounding sees the same
    side of every tie.
    """
    cut = (x >> 11) | ((x & 0x7FF) != 0)
    exact = (x < 1 << 53) & (x > -(1 << 53)) if x.dtype == np.int64 else x < 1 << 53
    return np.where(exact, x, cut << 11)
