"""Random numbers that depend on a seed and an offset only: the generator Philox 4x32-10.

The generator is a function: of a key (the seed) and a counter (the offset) it makes four words. So
an element's number is known wherever it is computed, in whatever order, and again in a backward
pass. Source: J. K. Salmon, M. A. Moraes, R. O. Dror and D. E. Shaw, Parallel Random Numbers: As
Easy as 1, 2, 3, SC '11, https://doi.org/10.1145/2063384.2063405; constants as in Random123.
"""

from __future__ import annotations

from tritium.ir.dtypes import int32, int64, uint32, uint64
from tritium.ops.arith import maximum, umulhi
from tritium.ops.constants import to_tensor
from tritium.ops.constexpr import constexpr
from tritium.ops.hints import StaticRange, static_assert
from tritium.ops.math import cos, log, sin, sqrt
from tritium.ops.select import where

from .standard import publish

N_ROUNDS_DEFAULT = 10
"""Rounds of the generator; 7 are the fewest that pass its authors' tests of randomness."""

MULTIPLIER_A_32 = constexpr(0xD2511F53)
MULTIPLIER_B_32 = constexpr(0xCD9E8D57)
KEY_STEP_A_32 = constexpr(0x9E3779B9)
KEY_STEP_B_32 = constexpr(0xBB67AE85)
MULTIPLIER_A_64 = constexpr(0xD2E7470EE14C6C93)
MULTIPLIER_B_64 = constexpr(0xCA5A826395121157)
KEY_STEP_A_64 = constexpr(0x9E3779B97F4A7C15)
KEY_STEP_B_64 = constexpr(0xBB67AE8584CAA73B)

UNIFORM_SCALE_32 = constexpr(4.6566127342e-10)
UNIFORM_SCALE_64 = constexpr(1.0842020432385337e-19)
"""Just below 2^-31 and 2^-63 in fp32, so that the largest integer stays below 1."""

SMALLEST_UNIFORM = constexpr(1.0e-7)
TWO_PI = constexpr(6.283185307179586)
"""Of the Box-Muller transform."""


@publish()
def philox_impl(c0, c1, c2, c3, k0, k1, n_rounds: constexpr | int = N_ROUNDS_DEFAULT):
    """The four words of the counter ``c0`` to ``c3`` under the key ``k0``, ``k1``.

    All are uint32, or all uint64: the generator of that width.
    """
    static_assert(c0.dtype == uint32 or c0.dtype == uint64, "philox_impl takes uint32 or uint64")
    if c0.dtype == uint32:
        a = MULTIPLIER_A_32
        b = MULTIPLIER_B_32
        step_a = KEY_STEP_A_32
        step_b = KEY_STEP_B_32
    else:
        a = MULTIPLIER_A_64
        b = MULTIPLIER_B_64
        step_a = KEY_STEP_A_64
        step_b = KEY_STEP_B_64
    for _ in StaticRange(n_rounds):
        high_a = umulhi(c0, a)
        high_b = umulhi(c2, b)
        low_a = c0 * a
        low_b = c2 * b
        c0 = high_b ^ c1 ^ k0
        c1 = low_b
        c2 = high_a ^ c3 ^ k1
        c3 = low_a
        k0 = k0 + step_a
        k1 = k1 + step_b
    return c0, c1, c2, c3


@publish()
def philox(seed, c0, c1, c2, c3, n_rounds: constexpr | int = N_ROUNDS_DEFAULT):
    """The four words of the counter ``c0`` to ``c3`` under an integer ``seed``.

    Counters are 32 or 64 bits wide, read as unsigned, and so is the result. With 32 bits the two
    words of the key are the low and the high half of the seed as uint64; with 64 bits they are the
    seed and 0.
    """
    seed = to_tensor(seed).to(uint64)
    c0 = to_tensor(c0)
    c1 = to_tensor(c1)
    c2 = to_tensor(c2)
    c3 = to_tensor(c3)
    static_assert(
        c0.dtype.is_int() and c0.dtype.primitive_bitwidth >= 32,
        "philox takes counters of 32 or 64 bits",
    )
    if c0.dtype.primitive_bitwidth == 32:
        return philox_impl(
            c0.to(uint32, bitcast=True),
            c1.to(uint32, bitcast=True),
            c2.to(uint32, bitcast=True),
            c3.to(uint32, bitcast=True),
            (seed & 0xFFFFFFFF).to(uint32),
            (seed >> 32).to(uint32),
            n_rounds,
        )
    else:
        return philox_impl(
            c0.to(uint64, bitcast=True),
            c1.to(uint64, bitcast=True),
            c2.to(uint64, bitcast=True),
            c3.to(uint64, bitcast=True),
            seed,
            seed * 0,
            n_rounds,
        )


@publish()
def randint4x(seed, offset, n_rounds: constexpr | int = N_ROUNDS_DEFAULT):
    """Four uint32 for each integer of ``offset``: the generator's four words.

    An offset of 64 bits is the first two words of the counter, a narrower one the first.
    """
    offset = to_tensor(offset)
    static_assert(offset.dtype.is_int(), "offsets of random numbers are integers")
    low = offset.to(uint32)
    zero = low * 0
    if offset.dtype.primitive_bitwidth > 32:
        high = (offset >> 32).to(uint32)
    else:
        high = zero
    return philox(seed, low, high, zero, zero, n_rounds)


@publish()
def randint(seed, offset, n_rounds: constexpr | int = N_ROUNDS_DEFAULT):
    """A uint32 for each integer of ``offset``, evenly from 0 to 2^32 - 1."""
    first, _, _, _ = randint4x(seed, offset, n_rounds)
    return first


@publish()
def uint_to_uniform_float(x):
    """fp32 from 0 to 1, 1 excluded, of evenly distributed integers of 32 or 64 bits.

    The bits are read as signed; ``~x`` stands for a negative ``x``. The result is that times a
    constant just below 2^-31 or 2^-63, rounded twice: to fp32, and after the product.
    """
    static_assert(
        x.dtype.is_int() and x.dtype.primitive_bitwidth >= 32,
        "uint_to_uniform_float takes integers of 32 or 64 bits",
    )
    if x.dtype.primitive_bitwidth == 32:
        x = x.to(int32, bitcast=True)
        scale = UNIFORM_SCALE_32
    else:
        x = x.to(int64, bitcast=True)
        scale = UNIFORM_SCALE_64
    return where(x < 0, ~x, x) * scale


@publish()
def rand(seed, offset, n_rounds: constexpr | int = N_ROUNDS_DEFAULT):
    """A number from [0, 1) for each integer of ``offset``, evenly distributed; fp32."""
    return uint_to_uniform_float(randint(seed, offset, n_rounds))


@publish()
def rand4x(seed, offsets, n_rounds: constexpr | int = N_ROUNDS_DEFAULT):
    """Four numbers from [0, 1) for each integer of ``offsets``; fp32.

    They cost what one of ``rand`` does.
    """
    i0, i1, i2, i3 = randint4x(seed, offsets, n_rounds)
    return (
        uint_to_uniform_float(i0),
        uint_to_uniform_float(i1),
        uint_to_uniform_float(i2),
        uint_to_uniform_float(i3),
    )


@publish()
def pair_uniform_to_normal(u1, u2):
    """Two independent numbers, normally distributed, of two evenly from [0, 1).

    Box-Muller: ``sqrt(-2 ln u1)`` times the cosine and the sine of ``2 pi u2``. ``u1`` is raised to
    1e-7, so no result is beyond 5.68.
    """
    radius = sqrt(-2.0 * log(maximum(u1, SMALLEST_UNIFORM)))
    angle = TWO_PI * u2
    return radius * cos(angle), radius * sin(angle)


@publish()
def randn(seed, offset, n_rounds: constexpr | int = N_ROUNDS_DEFAULT):
    """A number for each integer of ``offset``, normal with mean 0 and variance 1; fp32."""
    i0, i1, _, _ = randint4x(seed, offset, n_rounds)
    first, _ = pair_uniform_to_normal(uint_to_uniform_float(i0), uint_to_uniform_float(i1))
    return first


@publish()
def randn4x(seed, offset, n_rounds: constexpr | int = N_ROUNDS_DEFAULT):
    """Four numbers for each integer of ``offset``, normal with mean 0 and variance 1; fp32."""
    u0, u1, u2, u3 = rand4x(seed, offset, n_rounds)
    n0, n1 = pair_uniform_to_normal(u0, u1)
    n2, n3 = pair_uniform_to_normal(u2, u3)
    return n0, n1, n2, n3
