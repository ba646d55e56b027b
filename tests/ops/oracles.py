"""Results of operations by other means than NumPy's arithmetic or the project's codecs.

Integers are Python's, floats exact rationals rounded here, elementary functions mpmath's. An oracle
takes a case and the operands as lists of Python numbers and gives a list of results: numbers of the
result's type, or for elementary functions in fp32 the float64 nearest to the exact value.
"""

from __future__ import annotations

import bisect
import functools
import math
import operator
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np

from tritium.ir.dtypes import DType, Type, float64, int1
from tritium.ops.spec import Array, Case

Number = Any
Oracle = Callable[..., Sequence[Number]]

# ---- values of a type, from the definition of its format ----------------------------------------


def value_of(pattern: int, dtype: DType) -> float:
    """What a bit pattern of a float type stands for."""
    if dtype is float64:
        return float(np.array(pattern, np.uint64).view(np.float64))
    layout = dtype.format
    sign = -1.0 if pattern & layout.sign_pattern else 1.0
    magnitude = pattern & (layout.sign_pattern - 1)
    if layout.nan_pattern is not None:
        whole = pattern if not layout.has_negative_zero else magnitude
        special = magnitude > layout.infinity_pattern if layout.has_inf else False
        if special or whole == layout.nan_pattern:
            return math.nan
    if magnitude == layout.infinity_pattern:
        return sign * math.inf
    exponent, mantissa = divmod(magnitude, 1 << layout.mantissa_bits)
    significand = mantissa + (1 << layout.mantissa_bits if exponent else 0)
    return sign * math.ldexp(significand, max(exponent, 1) - layout.bias - layout.mantissa_bits)


def values(array: Array, dtype: Type) -> list[Number]:
    """The elements of an array in storage form as Python numbers; addresses are integers."""
    flat = np.ascontiguousarray(array).reshape(-1)
    if not (isinstance(dtype, DType) and dtype.is_floating()):
        return flat.tolist()
    return [value_of(pattern, dtype) for pattern in flat.view(f"u{dtype.itemsize}").tolist()]


@functools.cache
def finite_table(dtype: DType) -> tuple[list[Fraction], list[float]]:
    """Finite values from 0 up of a type of at most 16 bits, in order; the index is the pattern."""
    floats = [value_of(pattern, dtype) for pattern in range(dtype.format.largest_pattern + 1)]
    return [Fraction(value) for value in floats], floats


def rounded(exact: Fraction, dtype: DType, toward_zero: bool = False) -> float:
    """The value of a float type nearest to a rational, ties to even; too large: as the type says.

    Signs of zero results are the caller's business.
    """
    sign, magnitude = (-1.0 if exact < 0 else 1.0), abs(exact)
    if dtype.bits <= 16:
        return sign * _rounded_by_table(magnitude, dtype, toward_zero)
    digits = dtype.format.mantissa_bits + 1
    lowest = 1 - dtype.format.bias - dtype.format.mantissa_bits
    if magnitude == 0:
        return 0.0
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length() - digits - 1
    while magnitude / Fraction(2) ** exponent >= 2**digits:
        exponent += 1
    exponent = max(exponent, lowest)
    scaled = magnitude / Fraction(2) ** exponent
    whole = math.floor(scaled) if toward_zero else round(scaled)
    if whole * Fraction(2) ** exponent > Fraction(dtype.format.largest):
        return sign * (dtype.format.largest if toward_zero else math.inf)
    return sign * math.ldexp(whole, exponent)


def _rounded_by_table(magnitude: Fraction, dtype: DType, toward_zero: bool) -> float:
    fractions, floats = finite_table(dtype)
    above = bisect.bisect_left(fractions, magnitude)
    if above < len(fractions) and fractions[above] == magnitude:
        return floats[above]
    if above == len(fractions):
        step = fractions[-1] - fractions[-2]
        if toward_zero or dtype.format.saturates or magnitude < fractions[-1] + step / 2:
            return floats[-1]
        return math.inf
    low, high = magnitude - fractions[above - 1], fractions[above] - magnitude
    up = not toward_zero and (high < low or (high == low and above % 2 == 0))
    return floats[above if up else above - 1]


def stored(value: float, dtype: DType) -> float:
    """A special value (infinity, NaN, zero) as the type has it."""
    layout = dtype.format
    if math.isnan(value):
        return value if layout.has_nan else layout.largest
    if math.isinf(value) and layout.saturates:
        return math.copysign(layout.largest, value)
    return value if layout.has_negative_zero or value != 0 else 0.0


# ---- arithmetic ---------------------------------------------------------------------------------


def wrapped(value: int, dtype: DType) -> int:
    """An integer modulo 2**bits, in the type's range."""
    value &= (1 << dtype.bits) - 1
    if dtype.is_int_signed() and value >> (dtype.bits - 1):
        value -= 1 << dtype.bits
    return value


def elementwise(integer: Callable[..., int], real: Callable[..., float]) -> Oracle:
    """An oracle from a rule on Python integers and one on floats that also takes the type."""

    def oracle(case: Case, *operands: Sequence[Number]) -> Sequence[Number]:
        dtype = case.dtype
        assert isinstance(dtype, DType)
        if not dtype.is_floating():
            return [wrapped(int(integer(*map(int, each), dtype)), dtype) for each in zip(*operands)]
        return [real(*each, dtype) for each in zip(*operands)]

    return oracle


def exactly(
    rational: Callable[..., Fraction], special: Callable[..., float]
) -> Callable[..., float]:
    """A float rule: exact rationals rounded once; ``special`` where that has no meaning.

    ``special`` is IEEE's rule on Python floats, used for what isn't finite and for zero results.
    """

    def rule(*operands: Any) -> float:
        *numbers, dtype = operands
        if all(map(math.isfinite, numbers)):
            try:
                exact = rational(*map(Fraction, numbers))
            except ZeroDivisionError:
                return stored(special(*numbers), dtype)
            if exact != 0:
                result = rounded(exact, dtype)
                return stored(result, dtype)
        return stored(special(*numbers), dtype)

    return rule


def quotient(x: float, y: float) -> float:
    if y != 0:
        return x / y
    return math.nan if x == 0 or math.isnan(x) else math.copysign(math.inf, x) * math.copysign(1, y)


def truncated_quotient(x: int, y: int, dtype: DType) -> int:
    if y == 0:
        return -1
    magnitude = abs(x) // abs(y)
    return magnitude if (x < 0) == (y < 0) else -magnitude


def remainder(x: int, y: int, dtype: DType) -> int:
    return x if y == 0 else x - y * truncated_quotient(x, y, dtype)


def float_remainder(x: float, y: float, dtype: DType) -> float:
    if math.isnan(x) or math.isnan(y) or math.isinf(x) or y == 0:
        return stored(math.nan, dtype)
    if math.isinf(y):
        return x
    a, b = Fraction(x), Fraction(y)
    rest = a - b * math.trunc(a / b)
    return stored(math.copysign(float(rest), x), dtype)


def sum_of_products(x: float, y: float, z: float) -> float:
    """IEEE's x * y + z where something isn't finite, or the result is zero."""
    product = x * y if math.isfinite(x) and math.isfinite(y) else _infinite_product(x, y)
    if math.isfinite(x) and math.isfinite(y) and not math.isfinite(z):
        return z
    if x and y and math.isfinite(x) and math.isfinite(y):
        return 0.0
    return product + z


def _infinite_product(x: float, y: float) -> float:
    return math.nan if 0 in (x, y) else x * y


def extremum(larger: bool, propagate_nan: bool, x: Number, y: Number) -> Number:
    if x != x or y != y:
        if propagate_nan:
            return math.nan
        return y if x != x else x
    # Python's order, and -0 below +0.
    key = lambda value: (value, math.copysign(1, value))  # noqa: E731
    return max(x, y, key=key) if larger else min(x, y, key=key)


def propagates(case: Case) -> bool:
    return bool(case.attributes["propagate_nan"])


def clamped(case: Case, x: Number, low: Number, high: Number) -> Number:
    raised = extremum(True, propagates(case), x, low)
    return extremum(False, propagates(case), raised, high)


def pairwise(rule: Callable[..., Number]) -> Oracle:
    return lambda case, *operands: [rule(case, *each) for each in zip(*operands)]


def unsigned(value: int, dtype: DType) -> int:
    return value & ((1 << dtype.bits) - 1)


def shifted(x: int, count: int, dtype: DType, left: bool) -> int:
    count = min(unsigned(count, dtype), dtype.bits)
    return x << count if left else x >> count


def no_floats(*operands: Any) -> float:
    raise AssertionError("not an operation on floats")


def no_integers(*operands: Any) -> int:
    raise AssertionError("not an operation on integers")


# ---- casts --------------------------------------------------------------------------------------


def converted(case: Case, x: Sequence[Number]) -> Sequence[Number]:
    source, target = case.dtype, case.attributes["dtype"]
    assert isinstance(source, DType)
    rule = _from_float if source.is_floating() else _from_integer
    toward_zero = case.attributes.get("rounding") == "rtz"
    return [rule(value, source, target, toward_zero) for value in x]


def _from_integer(value: int, source: DType, target: DType, toward_zero: bool) -> Number:
    if target is int1:
        return value != 0
    if not target.is_floating():
        return wrapped(int(value), target)
    return rounded(Fraction(int(value)), target) if value else 0.0


def _from_float(value: float, source: DType, target: DType, toward_zero: bool) -> Number:
    if target is source:
        return value
    if target is int1:
        return value != 0
    if target.is_floating():
        if not math.isfinite(value) or value == 0:
            return stored(value, target)
        result = rounded(Fraction(value), target, toward_zero)
        return stored(math.copysign(result, value), target)
    # NVIDIA's conversions saturate at 16 bits or more; narrower integers keep the low bits.
    if math.isnan(value):
        return 0
    bits = max(target.bits, 16)
    low, high = (
        (-(1 << bits - 1), (1 << bits - 1) - 1) if target.is_int_signed() else (0, 2**bits - 1)
    )
    whole = math.trunc(value) if math.isfinite(value) else (high if value > 0 else low)
    return wrapped(min(max(whole, low), high), target)


# ---- elementary functions -----------------------------------------------------------------------

PRECISION = 140
"""Bits mpmath works with."""


def elementary(function: Callable[[Any], Any], *special: tuple[float, float]) -> Oracle:
    """mpmath's function, with the results at the points where it has none or another.

    ``special`` holds arguments and results; at NaN the result is NaN.
    """

    def at(value: float) -> float:
        if math.isnan(value):
            return math.nan
        for point, result in special:
            if point == value and math.copysign(1, point) == math.copysign(1, value):
                return result
        with mpmath.workprec(PRECISION):
            result = function(mpmath.mpf(value))
        return math.nan if isinstance(result, mpmath.mpc) else float(result)

    return lambda case, x: [at(value) for value in x]


def clipped_power(power: Callable[[Any], Any], limit: float) -> Callable[[Any], Any]:
    """mpmath's power, its argument held where the result is a number that float64 has."""
    return lambda x: power(mpmath.mpf(max(-limit, min(limit, x))))


def whole(rule: Callable[[float], int]) -> Oracle:
    def at(value: float) -> float:
        return math.copysign(float(rule(value)), value) if math.isfinite(value) else value

    return lambda case, x: [at(value) for value in x]


def root(case: Case, x: Sequence[float]) -> Sequence[float]:
    """Square roots, rounded from an integer root with far more digits than the type has."""
    dtype = case.dtype
    assert isinstance(dtype, DType)

    def at(value: float) -> float:
        if value < 0 or math.isnan(value):
            return math.nan
        if value == 0 or math.isinf(value):
            return value
        scaled = Fraction(value) * Fraction(2) ** 2400
        digits = math.isqrt(int(scaled))
        # An inexact root is moved off the midpoints that it can't be on.
        exact = digits * digits == scaled
        return rounded((Fraction(digits) + (0 if exact else Fraction(1, 2))) / 2**1200, dtype)

    return [at(value) for value in x]


INFINITY = math.inf
LOGARITHM = ((0.0, -INFINITY), (-0.0, -INFINITY), (INFINITY, INFINITY))
ORACLES: dict[str, Oracle] = {
    "arith.add": elementwise(lambda x, y, _: x + y, exactly(operator.add, operator.add)),
    "arith.sub": elementwise(lambda x, y, _: x - y, exactly(operator.sub, operator.sub)),
    "arith.mul": elementwise(lambda x, y, _: x * y, exactly(operator.mul, operator.mul)),
    "arith.div": elementwise(no_integers, exactly(operator.truediv, quotient)),
    "arith.div_rn": elementwise(no_integers, exactly(operator.truediv, quotient)),
    "arith.idiv": elementwise(truncated_quotient, no_floats),
    "arith.rem": elementwise(remainder, float_remainder),
    "arith.neg": elementwise(lambda x, _: -x, lambda x, dtype: -x if x else stored(-x, dtype)),
    "arith.abs": elementwise(lambda x, _: abs(x), lambda x, _: abs(x)),
    "arith.fma": elementwise(no_integers, exactly(lambda x, y, z: x * y + z, sum_of_products)),
    "arith.maximum": pairwise(lambda case, x, y: extremum(True, propagates(case), x, y)),
    "arith.minimum": pairwise(lambda case, x, y: extremum(False, propagates(case), x, y)),
    "arith.clamp": pairwise(clamped),
    "arith.umulhi": elementwise(
        lambda x, y, dtype: unsigned(x, dtype) * unsigned(y, dtype) >> dtype.bits, no_floats
    ),
    "logic.and": elementwise(lambda x, y, _: x & y, no_floats),
    "logic.or": elementwise(lambda x, y, _: x | y, no_floats),
    "logic.xor": elementwise(lambda x, y, _: x ^ y, no_floats),
    "logic.not": elementwise(lambda x, _: ~x, no_floats),
    "logic.shl": elementwise(lambda x, y, dtype: shifted(x, y, dtype, True), no_floats),
    "logic.shr": elementwise(lambda x, y, dtype: shifted(x, y, dtype, False), no_floats),
    "compare.eq": pairwise(lambda _, x, y: x == y),
    "compare.ne": pairwise(lambda _, x, y: x != y),
    "compare.lt": pairwise(lambda _, x, y: x < y),
    "compare.le": pairwise(lambda _, x, y: x <= y),
    "compare.gt": pairwise(lambda _, x, y: x > y),
    "compare.ge": pairwise(lambda _, x, y: x >= y),
    "select.where": pairwise(lambda _, condition, x, y: x if condition else y),
    "cast.convert": converted,
    "math.exp": elementary(clipped_power(mpmath.exp, 1e4), (INFINITY, INFINITY), (-INFINITY, 0.0)),
    "math.exp2": elementary(
        clipped_power(lambda x: mpmath.power(2, x), 1e4), (INFINITY, INFINITY), (-INFINITY, 0.0)
    ),
    "math.log": elementary(mpmath.log, *LOGARITHM),
    "math.log2": elementary(lambda x: mpmath.log(x, 2), *LOGARITHM),
    "math.sin": elementary(mpmath.sin, (-0.0, -0.0), (INFINITY, math.nan), (-INFINITY, math.nan)),
    "math.cos": elementary(mpmath.cos, (INFINITY, math.nan), (-INFINITY, math.nan)),
    "math.erf": elementary(mpmath.erf, (-0.0, -0.0), (INFINITY, 1.0), (-INFINITY, -1.0)),
    "math.tanh": elementary(mpmath.tanh, (-0.0, -0.0), (INFINITY, 1.0), (-INFINITY, -1.0)),
    "math.rsqrt": elementary(
        lambda x: 1 / mpmath.sqrt(x),
        (0.0, INFINITY),
        (-0.0, -INFINITY),
        (INFINITY, 0.0),
        (-INFINITY, math.nan),
    ),
    "math.sqrt": root,
    "math.sqrt_rn": root,
    "math.floor": whole(math.floor),
    "math.ceil": whole(math.ceil),
}
