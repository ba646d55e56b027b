"""Functions of doubles, one lane at a time, where there is no C library.

They are built as those of ``common.vector_math``: a reduced argument in two words, a polynomial of
small terms around an exact leading one. Every fused step is an explicit fma. Errors and their
derivation: docs/numerics.md, "NVIDIA GPUs".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from tritium.backends.common import vector_math
from tritium.backends.emit import Builder, LType, V, const, double, i32, i64, i128

from . import double_constants as constants

# Adding 1.5 * 2**52 rounds a number below 2**51 to an integer, which then stands in the low bits.
_MAGIC = 6755399441055744.0
_SIGN_BIT = -(1 << 63)
# Up to here the rounded 2 / pi finds the quadrant, and three parts of pi / 2 reduce exactly enough.
_REDUCTION_LIMIT = float(1 << 30)


def _k(value: float) -> V:
    return const(double, value)


def _i(value: int) -> V:
    return const(i64, value)


def horner(b: Builder, x: V, coefficients: Sequence[float]) -> V:
    """The polynomial with those coefficients, lowest power first."""
    result = const(x.type, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        result = b.fma(result, x, const(x.type, coefficient))
    return result


def _clamp(b: Builder, x: V, low: float, high: float) -> V:
    """x limited to [low, high]; NaN stays NaN."""
    x = b.select(b.fcmp("ogt", x, _k(high)), _k(high), x)
    return b.select(b.fcmp("olt", x, _k(low)), _k(low), x)


def _nearest(b: Builder, x: V, factor: float) -> tuple[V, V]:
    """x * factor rounded to the nearest integer: as a double and as i64."""
    shifted = b.fma(x, _k(factor), _k(_MAGIC))
    integer = b.sub(b.as_int(shifted), b.as_int(_k(_MAGIC)))
    return b.fsub(shifted, _k(_MAGIC)), integer


# ---- exponentials --------------------------------------------------------------------------------


def _power_of_two(b: Builder, n: V) -> V:
    """2**n of an integer in the normal range."""
    return b.as_float(b.shl(b.add(n, _i(1023)), _i(52)), double)


def _scale(b: Builder, x: V, n: V) -> V:
    """x * 2**n; x in [1/2, 2], n in [-1080, 1030]."""
    half = b.ashr(n, _i(1))
    return b.fmul(b.fmul(x, _power_of_two(b, half)), _power_of_two(b, b.sub(n, half)))


def _exp_parts(b: Builder, x: V) -> tuple[V, V]:
    """exp(x) = (1 + p) * 2**n: p and n."""
    n, integer = _nearest(b, x, constants.LOG2_E)
    exact = b.fma(n, _k(-constants.LN2_HIGH), x)
    r = b.fma(n, _k(-constants.LN2_LOW), exact)
    tail = b.fmul(b.fmul(r, r), horner(b, r, constants.EXP))
    return b.fadd(exact, b.fma(n, _k(-constants.LN2_LOW), tail)), integer


def exp(b: Builder, x: V) -> V:
    """e**x."""
    p, n = _exp_parts(b, _clamp(b, x, -746.0, 710.0))
    return _scale(b, b.fadd(p, _k(1.0)), n)


def exp2(b: Builder, x: V) -> V:
    """2**x, exact at integers."""
    x = _clamp(b, x, -1076.0, 1025.0)
    n, integer = _nearest(b, x, 1.0)
    r = b.fsub(x, n)
    high = b.fmul(r, _k(constants.LN2))
    low = b.fma(r, _k(constants.LN2), b.fneg(high))
    low = b.fma(r, _k(constants.LN2_REST), low)
    tail = b.fma(b.fmul(high, high), horner(b, high, constants.EXP), low)
    return _scale(b, b.fadd(b.fadd(high, tail), _k(1.0)), integer)


def erf(b: Builder, x: V) -> V:
    """The error function."""
    a = vector_math.fabs(b, x)
    small = b.fma(horner(b, b.fmul(a, a), constants.ERF_SMALL), a, a)
    t = b.select(b.fcmp("ogt", a, _k(6.0)), _k(6.0), a)
    middle = horner(b, b.fsub(t, _k(1.5)), constants.ERF_MIDDLE)
    far = horner(b, b.fsub(t, _k(4.0)), constants.ERF_LARGE)
    p, n = _exp_parts(b, b.select(b.fcmp("olt", t, _k(2.2)), middle, far))
    power = _power_of_two(b, n)
    large = b.fma(b.fneg(power), p, b.fsub(_k(1.0), power))
    result = b.select(b.fcmp("olt", a, _k(0.92)), small, large)
    return b.intrinsic("copysign", (result, x), pure=True)


def tanh(b: Builder, x: V) -> V:
    """Hyperbolic tangent."""
    a = vector_math.fabs(b, x)
    s = b.fmul(a, a)
    small = b.fma(b.fmul(horner(b, s, constants.TANH), s), a, a)
    p, n = _exp_parts(b, _clamp(b, b.fadd(a, a), 0.0, 40.0))
    power = _power_of_two(b, n)
    # 1 + exp(2 a), its power of two taken out, so that it is rounded once.
    divisor = b.fma(p, power, b.fadd(power, _k(1.0)))
    large = b.fsub(_k(1.0), b.fdiv(_k(2.0), divisor))
    result = b.select(b.fcmp("olt", a, _k(1.0)), small, large)
    return b.intrinsic("copysign", (result, x), pure=True)


# ---- logarithms ----------------------------------------------------------------------------------


def _log_parts(b: Builder, x: V) -> tuple[V, V, V, V]:
    """For a positive finite x = 2**e * (1 + f): e as a double, f, s = f**2 and t, so that

    log(1 + f) = f - s / 2 + t; t makes up for the rounding of s. 1 + f is in [sqrt(1/2), sqrt(2)).
    """
    tiny = b.fcmp("olt", x, _k(2.0**-1022))
    bits = b.as_int(b.select(tiny, b.fmul(x, _k(2.0**52)), x))
    above = b.sub(bits, _i(0x3FE6A09E667F3BCD))
    exponent = b.ashr(above, _i(52))
    m = b.as_float(b.sub(bits, b.shl(exponent, _i(52))), double)
    exponent = b.sub(exponent, b.select(tiny, _i(52), _i(0)))
    f = b.fsub(m, _k(1.0))
    square = b.fmul(f, f)
    lost = b.fma(f, f, b.fneg(square))
    cubic = b.fmul(horner(b, f, constants.LOG), b.fmul(square, f))
    return b.sitofp(b.trunc(exponent, i32), double), f, square, b.fma(lost, _k(-0.5), cubic)


def _log_specials(b: Builder, x: V, result: V) -> V:
    """``result`` where x is positive and finite; the logarithm of the others."""
    result = b.select(b.fcmp("olt", x, _k(math.inf)), result, x)
    result = b.select(b.fcmp("olt", x, _k(0.0)), _k(math.nan), result)
    return b.select(b.fcmp("oeq", x, _k(0.0)), _k(-math.inf), result)


def log(b: Builder, x: V) -> V:
    """Natural logarithm; NaN below zero."""
    e, f, square, tail = _log_parts(b, x)
    high = b.fmul(e, _k(constants.LN2_HIGH))
    total = b.fadd(high, f)
    lost = b.fsub(f, b.fsub(total, high))
    small = b.fadd(tail, b.fma(e, _k(constants.LN2_LOW), lost))
    return _log_specials(b, x, b.fadd(total, b.fma(square, _k(-0.5), small)))


def log2(b: Builder, x: V) -> V:
    """Logarithm to base 2, exact for powers of two; NaN below zero."""
    e, f, square, tail = _log_parts(b, x)
    product = b.fmul(f, _k(constants.LOG2_E))
    error = b.fma(f, _k(constants.LOG2_E), b.fneg(product))
    total = b.fadd(e, product)
    lost = b.fsub(product, b.fsub(total, e))
    small = b.fadd(lost, b.fma(f, _k(constants.LOG2_E_REST), error))
    small = b.fma(tail, _k(constants.LOG2_E), small)
    low = b.fma(square, _k(-0.5 * constants.LOG2_E), small)
    return _log_specials(b, x, b.fadd(total, low))


# ---- sine and cosine -----------------------------------------------------------------------------


def _reduced(b: Builder, a: V) -> tuple[V, V, V]:
    """a in [0, 2**30] = quadrant * pi / 2 + r + low: r, low and the quadrant."""
    n, integer = _nearest(b, a, constants.TWO_OVER_PI)
    first, second, third = (_k(part) for part in constants.HALF_PI)
    exact = b.fma(b.fneg(n), first, a)
    product = b.fmul(n, second)
    error = b.fma(n, second, b.fneg(product))
    r = b.fsub(exact, product)
    lost = b.fsub(b.fsub(exact, r), product)
    return r, b.fma(b.fneg(n), third, b.fsub(lost, error)), integer


def _high_product(b: Builder, x: V, y: V) -> V:
    """The upper half of the product of unsigned i64."""
    wide = b.mul(b.zext(x, i128), b.zext(y, i128))
    return b.trunc(b.lshr(wide, const(i128, 64)), i64)


def _reduced_large(b: Builder, a: V) -> tuple[V, V, V]:
    """a in [2**30, 2**1024) as ``_reduced`` gives it, by integers (Payne and Hanek 1983).

    a = m * 2**e with a 53-bit integer m. Multiples of 4 in a * 2 / pi don't matter, so m is
    multiplied by the 192 bits of 2**e * 2 / pi that begin at the value 2, of whose product the low
    64 bits are too small to count.
    """
    bits = b.as_int(a)
    m = b.or_(b.and_(bits, _i((1 << 52) - 1)), _i(1 << 52))
    position = b.sub(b.lshr(bits, _i(52)), _i(1075 - 62))
    offset = b.shl(b.lshr(position, _i(6)), _i(3))
    words = [_table_word(b, b.add(offset, _i(8 * k))) for k in range(4)]
    shift = b.and_(position, _i(63))
    window = [b.intrinsic("fshl", (words[k], words[k + 1], shift), pure=True) for k in range(3)]
    middle = b.mul(m, window[1])
    low = b.add(middle, _high_product(b, m, window[2]))
    carry = b.zext(b.icmp("ult", low, middle), i64)
    high = b.add(b.mul(m, window[0]), b.add(_high_product(b, m, window[1]), carry))
    quadrant = b.lshr(b.add(high, _i(1 << 61)), _i(62))
    fraction = b.sub(high, b.shl(quadrant, _i(62)))
    # The fraction as a sum of two doubles, of a double and what it lacks.
    top = b.sitofp(fraction, double)
    rest = b.sitofp(b.sub(fraction, b.fptosi(top, i64)), double)
    below = b.fma(b.uitofp(low, double), _k(2.0**-64), rest)
    first, second, _ = constants.HALF_PI
    r = b.fmul(top, _k(first))
    error = b.fma(top, _k(first), b.fneg(r))
    lacking = b.fadd(error, b.fma(below, _k(first), b.fmul(top, _k(second))))
    total = b.fadd(r, lacking)
    remaining = b.fsub(lacking, b.fsub(total, r))
    unit = _k(2.0**-62)
    return b.fmul(total, unit), b.fmul(remaining, unit), quadrant


def _table_word(b: Builder, offset: V) -> V:
    words = [_i(word) for word in constants.TWO_OVER_PI_WORDS]
    table = b.module.constant_table("tritium.two_over_pi.double", words, align=64)
    return b.load(i64, b.gep(table, offset), align=8)


def _sine_of_reduced(b: Builder, r: V, low: V, quadrant: V) -> V:
    """sin(quadrant * pi / 2 + r + low)."""
    s = b.fmul(r, r)
    sine_part = b.fmul(horner(b, s, constants.SIN), s)
    sine = b.fadd(r, b.fma(sine_part, r, low))
    half = b.fmul(s, _k(0.5))
    near = b.fsub(_k(1.0), half)
    lost = b.fsub(b.fsub(_k(1.0), near), half)
    rest = b.fma(b.fneg(r), low, lost)
    cosine_part = b.fmul(horner(b, s, constants.COS), s)
    cosine = b.fadd(near, b.fma(cosine_part, s, rest))
    odd = b.icmp("ne", b.and_(quadrant, _i(1)), _i(0))
    flip = b.shl(b.and_(quadrant, _i(2)), _i(62))
    return b.as_float(b.xor(b.as_int(b.select(odd, cosine, sine)), flip), double)


def _sine_of_large(b: Builder, args: Sequence[V]) -> V:
    a, shift = args
    r, low, quadrant = _reduced_large(b, a)
    return _sine_of_reduced(b, r, low, b.add(quadrant, shift))


def _sine(b: Builder, x: V, shift: int) -> V:
    """sin(|x| + shift * pi / 2); adds blocks."""
    a = vector_math.fabs(b, x)
    r, low, quadrant = _reduced(b, a)
    result = _sine_of_reduced(b, r, low, b.add(quadrant, _i(shift)))
    finite = b.fcmp("olt", a, _k(math.inf))
    large = b.and_(b.fcmp("oge", a, _k(_REDUCTION_LIMIT)), finite)
    with b.when(large, weights=(1, 1000)) as before:
        other = outlined(b, "sin.large", (a, _i(shift)), double, _sine_of_large)
        after = b.block
    result = b.phi(double, "", [(result, before), (other, after)])
    return b.select(finite, result, _k(math.nan))


def sin(b: Builder, x: V) -> V:
    """Sine of radians, of any magnitude. Adds blocks: the builder stands in another one after."""
    sign = b.and_(b.as_int(x), _i(_SIGN_BIT))
    return b.as_float(b.xor(b.as_int(_sine(b, x, 0)), sign), double)


def cos(b: Builder, x: V) -> V:
    """Cosine of radians, of any magnitude. Adds blocks: the builder stands in another one after."""
    return _sine(b, x, 1)


# ---- remainders ----------------------------------------------------------------------------------


def far_remainder(b: Builder, x: V, y: V) -> V:
    """x modulo y of finite positive float or double, x / y of any size: exact, by integers.

    The remainder of the significands, shifted left in steps that fit 64 bits, is that of x. Adds
    blocks.
    """
    return outlined(b, "fmod.far", (x, y), x.type, _long_division)


def _long_division(b: Builder, args: Sequence[V]) -> V:
    x, y = args
    if x.type is not double:
        return b.fptrunc(far_remainder(b, b.fpext(x, double), b.fpext(y, double)), x.type)
    m, exponent = _significand(b, x)
    divisor, base = _significand(b, y)
    with b.loop(base, exponent, 11, carried=[b.urem(m, divisor)]) as loop:
        left = b.sub(exponent, loop.index)
        step = b.smin(left, const(i32, 11))
        shifted = b.shl(loop.carried[0], b.zext(step, i64))
        loop.next([b.urem(shifted, divisor)])
    # Twice, as one power of two may be out of range; the product is exact.
    n = b.sub(b.sext(base, i64), _i(1075))
    half = b.ashr(n, _i(1))
    value = b.fmul(b.uitofp(loop.results[0], double), _power_of_two(b, half))
    return b.fmul(value, _power_of_two(b, b.sub(n, half)))


def _significand(b: Builder, x: V) -> tuple[V, V]:
    """A positive finite x = m * 2**(e - 1075): m as i64, e as i32."""
    bits = b.as_int(x)
    field = b.lshr(bits, _i(52))
    normal = b.icmp("ne", field, _i(0))
    fraction = b.and_(bits, _i((1 << 52) - 1))
    m = b.or_(fraction, b.select(normal, _i(1 << 52), _i(0)))
    return m, b.trunc(b.select(normal, field, _i(1)), i32)


def outlined(
    b: Builder,
    name: str,
    args: Sequence[V],
    result: LType,
    body: Callable[[Builder, Sequence[V]], V],
) -> V:
    """Call a function of this module that computes ``body``; it is written at its first use."""
    full = f"tritium.{name}.{result.mangled}"
    module = b.module
    if all(function.name != full for function in module.functions):
        params = [(arg.type, f"x{i}") for i, arg in enumerate(args)]
        function = module.function(
            full, result, params, linkage="internal", attributes=("nounwind", "noinline")
        )
        c = Builder(function.entry)
        c.ret(body(c, function.params))
    return b.call(full, result, args)
