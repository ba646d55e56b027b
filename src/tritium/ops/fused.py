"""x * y + z with one rounding, on NumPy arrays.

The sum is first rounded to odd (truncated, its last bit set if anything was lost) in a format with
at least two bits more than the result; rounding that to nearest gives what one rounding of the
exact value gives (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
"""

from __future__ import annotations

from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tritium.ir.dtypes import Array, DType, float64

from .codecs import decode, encode

Doubles: TypeAlias = NDArray[np.float64]


def fma(x: Array, y: Array, z: Array, dtype: DType) -> Array:
    """x * y + z of arrays of one float type in storage form, rounded once to that type."""
    a, b, c = (decode(each, dtype) for each in (x, y, z))
    if dtype is float64:
        return _fma_double(a.ravel(), b.ravel(), c.ravel()).reshape(a.shape)
    # Narrower significands have at most 24 bits, so their products are exact in float64.
    return encode(_sum_to_odd(a * b, c), dtype)


def _two_sum(a: Doubles, b: Doubles) -> tuple[Doubles, Doubles]:
    """The rounded sum and what it lacks; exact barring overflow (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _two_product(a: Doubles, b: Doubles) -> tuple[Doubles, Doubles]:
    """The rounded product and what it lacks; exact away from overflow and underflow (Dekker)."""
    product = a * b
    a_high, a_low = _halves(a)
    b_high, b_low = _halves(b)
    rest = a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low)
    return product, rest


def _halves(a: Doubles) -> tuple[Doubles, Doubles]:
    """High and low halves of significands (Veltkamp)."""
    scaled = a * 134217729.0  # 2**27 + 1
    high = scaled - (scaled - a)
    return high, a - high


def _sum_to_odd(a: Doubles, b: Doubles) -> Doubles:
    """a + b rounded to odd; not finite as IEEE has it."""
    total, rest = _two_sum(a, b)
    bits = np.asarray(total).view(np.int64)
    lost = np.isfinite(total) & (rest != 0) & ((bits & 1) == 0)
    step = np.where((rest > 0) == (total > 0), 1, -1)
    return np.where(lost, bits + step, bits).view(np.float64)


def _fma_double(x: Doubles, y: Doubles, z: Doubles) -> Doubles:
    product = x * y
    # A zero factor makes the product exact; what isn't finite follows IEEE's rules, by which an
    # infinite addend stands beside any product of finite factors, also one that overflows here.
    direct = np.where(np.isfinite(x) & np.isfinite(y) & np.isinf(z), z, product + z)
    exact = np.isfinite(x) & np.isfinite(y) & np.isfinite(z) & (x != 0) & (y != 0)
    usual = exact & _moderate(x) & _moderate(y) & _moderate(product) & (_moderate(z) | (z == 0))
    high, low = _two_product(np.where(usual, x, 1.0), np.where(usual, y, 1.0))
    addend = np.where(usual, z, 0.0)
    inner, inner_rest = _two_sum(addend, low)
    outer, outer_rest = _two_sum(high, inner)
    result = np.where(usual, outer + _sum_to_odd(inner_rest, outer_rest), direct)
    for index in np.flatnonzero(exact & ~usual):
        result[index] = _fma_rational(x[index], y[index], z[index])
    return result


def _moderate(a: Doubles) -> NDArray[np.bool_]:
    """Whether magnitudes are far from overflow, and their error terms from underflow."""
    magnitude = np.abs(a)
    return (magnitude > 2.0**-400) & (magnitude < 2.0**900)


def _fma_rational(x: float, y: float, z: float) -> float:
    """Finite x * y + z through rational numbers: Python rounds their quotient correctly."""
    exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
    if exact == 0:
        return 0.0
    try:
        return exact.numerator / exact.denominator
    except OverflowError:
        return float("inf") if exact > 0 else float("-inf")
