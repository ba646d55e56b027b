"""Mathematical functions on SSA values, scalar or vector, of float and double.

Every function takes a builder, the value and the target, and returns a value of the same type.
float has polynomials of its own, double calls the C library lane by lane. What a lane gets depends
on the lane's value alone, bit for bit: not on the number of lanes, the other lanes or the CPU.
Fused steps are written as `llvm.fma`, so a CPU without FMA computes the same, slowly, through the C
library.

Errors and their derivation: docs/numerics.md, "CPU transcendental functions".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from tritium.backends.emit import (
    Builder,
    EmitError,
    LType,
    V,
    const,
    double,
    elem,
    float_,
    i1,
    i16,
    i32,
    i64,
    lanes,
    like,
    vec,
)
from tritium.backends.llvm import Target

from . import polynomials

# Adding 1.5 * 2**23 rounds a number below 2**22 to an integer, which then stands in the low bits.
_MAGIC = 12582912.0
_MAGIC_BITS = 0x4B400000
_SIGN_BIT = -(1 << 31)

_LOG2_E = 1.4426950216293335
# log2(e) - _LOG2_E
_LOG2_E_REST = 1.925963033500011e-08
# ln 2 as a float, and what it lacks.
_LN2 = 0.6931471824645996
_LN2_REST = -1.9046542121259336e-09
# ln 2 in two parts of which the first has 10 bits: a multiple of it by an exponent is exact.
_LN2_HIGH = 0.693359375
_LN2_LOW = -0.00021219444170128554

_TWO_OVER_PI = 0.6366197466850281
# pi / 2 in three parts of 24 bits.
_HALF_PI = (1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15)
# 32 zero bits, then the first 224 of the fraction 2 / pi.
_TWO_OVER_PI_WORDS = (
    *(0x00000000, 0xA2F9836E, 0x4E441529, 0xFC2757D1, 0xF534DDC0, 0xDB629599, 0x3C439041),
    0xFE5163AB,
)
# Up to here the rounded 2 / pi finds the nearest quadrant to within 0.0034 of one, and the
# reduction by three parts of pi / 2 has its stated error.
_REDUCTION_LIMIT = float(1 << 17)


def _is_double(x: V) -> bool:
    if elem(x.type) not in (float_, double):
        raise EmitError(f"no function of {x.type.text}: widen it to float")
    return elem(x.type) is double


def _k(x: V, value: float) -> V:
    return const(x.type, value)


def _i(x: V, value: int) -> V:
    return const(like(x.type, i32), value)


def _horner(b: Builder, x: V, coefficients: Sequence[float]) -> V:
    result = _k(x, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        result = b.fma(result, x, _k(x, coefficient))
    return result


def _clamp(b: Builder, x: V, low: float | None, high: float) -> V:
    """x limited to [low, high]; NaN stays NaN."""
    x = b.select(b.fcmp("ogt", x, _k(x, high)), _k(x, high), x)
    return x if low is None else b.select(b.fcmp("olt", x, _k(x, low)), _k(x, low), x)


def _with_sign_of(b: Builder, magnitude: V, x: V) -> V:
    return b.intrinsic("copysign", (magnitude, x), pure=True)


def _power_of_two(b: Builder, n: V) -> V:
    """2**n of an integer in the normal range."""
    biased = b.add(n, const(n.type, 127))
    return b.as_float(b.shl(biased, const(n.type, 23)), float_)


def _chunked(b: Builder, x: V, width: int, apply: Callable[..., V], *others: V) -> V:
    """`apply` on pieces of `width` lanes, put together again."""
    parts = [
        apply(*(b.slice(value, start, width) for value in (x, *others)))
        for start in range(0, lanes(x.type), width)
    ]
    return b.concat(parts)


# ---- exponentials --------------------------------------------------------------------------------


def _nearest(b: Builder, x: V, factor: float) -> tuple[V, V]:
    """x * factor rounded to the nearest integer: as a float, and as bits with the integer below."""
    shifted = b.fma(x, _k(x, factor), _k(x, _MAGIC))
    return b.fsub(shifted, _k(x, _MAGIC)), b.as_int(shifted)


def _integer(b: Builder, bits: V) -> V:
    return b.sub(bits, const(bits.type, _MAGIC_BITS))


def _scale(b: Builder, x: V, n: V, bits: V, target: Target) -> V:
    """x * 2**n rounded once; x in [1/2, 2], n in [-151, 129] as `_nearest` gives it."""
    if lanes(x.type) % 16 == 0 and target.has("avx512f", "avx512bw", "avx512dq", "avx512vl"):

        def scalef(part: V, exponent: V) -> V:
            name = "llvm.x86.avx512.mask.scalef.ps.512"
            every, nearest = const(vec(i1, 16), 1), const(i32, 4)
            mask = b.bitcast(every, i16)
            return b.call(name, part.type, (part, exponent, part, mask, nearest), pure=True)

        return _chunked(b, x, 16, scalef, n)
    integer = _integer(b, bits)
    half = b.ashr(integer, const(integer.type, 1))
    rest = b.sub(integer, half)
    return b.fmul(b.fmul(x, _power_of_two(b, half)), _power_of_two(b, rest))


def _exp_parts(b: Builder, x: V) -> tuple[V, V, V]:
    """exp(x) = (1 + p) * 2**n: p, n as a float, n as bits."""
    n, bits = _nearest(b, x, _LOG2_E)
    exact = b.fma(n, _k(x, -_LN2), x)
    r = b.fma(n, _k(x, -_LN2_REST), exact)
    tail = b.fmul(b.fmul(r, r), _horner(b, r, polynomials.EXP))
    # The rounding of r would count in full here, so its small part joins the tail instead.
    p = b.fadd(exact, b.fma(n, _k(x, -_LN2_REST), tail))
    return p, n, bits


def exp(b: Builder, x: V, target: Target) -> V:
    """e**x."""
    if _is_double(x):
        return library_call(b, "exp", (x,), target)
    p, n, bits = _exp_parts(b, _clamp(b, x, -104.0, 89.0))
    return _scale(b, b.fadd(p, _k(x, 1.0)), n, bits, target)


def exp2(b: Builder, x: V, target: Target) -> V:
    """2**x."""
    if _is_double(x):
        return library_call(b, "exp2", (x,), target)
    x = _clamp(b, x, -151.0, 129.0)
    n, bits = _nearest(b, x, 1.0)
    r = b.fsub(x, n)
    p = b.fma(_horner(b, r, polynomials.EXP2), r, _k(x, 1.0))
    return _scale(b, p, n, bits, target)


def tanh(b: Builder, x: V, target: Target) -> V:
    """Hyperbolic tangent."""
    if _is_double(x):
        return library_call(b, "tanh", (x,), target)
    a = fabs(b, x)
    s = b.fmul(a, a)
    small = b.fma(b.fmul(_horner(b, s, polynomials.TANH), s), a, a)
    p, _, bits = _exp_parts(b, _clamp(b, b.fadd(a, a), None, 20.0))
    power = _power_of_two(b, _integer(b, bits))
    # 1 + exp(2 a), its power of two taken out, so that it is rounded once.
    divisor = b.fma(p, power, b.fadd(power, _k(x, 1.0)))
    large = b.fsub(_k(x, 1.0), b.fdiv(_k(x, 2.0), divisor))
    return _with_sign_of(b, b.select(b.fcmp("olt", a, _k(x, 1.0)), small, large), x)


def erf(b: Builder, x: V, target: Target) -> V:
    """The error function."""
    if _is_double(x):
        return library_call(b, "erf", (x,), target)
    a = fabs(b, x)
    small = b.fma(_horner(b, b.fmul(a, a), polynomials.ERF_SMALL), a, a)
    t = _clamp(b, a, None, 4.0)
    p, _, bits = _exp_parts(b, b.fma(_horner(b, t, polynomials.ERF_LARGE), t, b.fneg(t)))
    power = _power_of_two(b, _integer(b, bits))
    large = b.fma(b.fneg(power), p, b.fsub(_k(x, 1.0), power))
    return _with_sign_of(b, b.select(b.fcmp("olt", a, _k(x, 0.92)), small, large), x)


# ---- logarithms ----------------------------------------------------------------------------------


def _log_parts(b: Builder, x: V) -> tuple[V, V, V, V]:
    """For a positive finite x = 2**e * (1 + f): e as a float, f, s = f**2 and t, so that

    log(1 + f) = f - s / 2 + t; t makes up for the rounding of s. 1 + f is in [sqrt(1/2), sqrt(2)).
    """
    tiny = b.fcmp("olt", x, _k(x, 2.0**-126))
    bits = b.as_int(b.select(tiny, b.fmul(x, _k(x, 2.0**23)), x))
    above = b.sub(bits, _i(x, 0x3F3504F3))
    exponent = b.ashr(above, _i(x, 23))
    m = b.as_float(b.sub(bits, b.shl(exponent, _i(x, 23))), float_)
    exponent = b.sub(exponent, b.select(tiny, _i(x, 23), _i(x, 0)))
    f = b.fsub(m, _k(x, 1.0))
    square = b.fmul(f, f)
    lost = b.fma(f, f, b.fneg(square))
    cubic = b.fmul(_horner(b, f, polynomials.LOG), b.fmul(square, f))
    return b.sitofp(exponent, float_), f, square, b.fma(lost, _k(x, -0.5), cubic)


def _log_specials(b: Builder, x: V, result: V) -> V:
    """`result` where x is positive and finite; the logarithm of the others."""
    result = b.select(b.fcmp("olt", x, _k(x, math.inf)), result, x)
    result = b.select(b.fcmp("olt", x, _k(x, 0.0)), _k(x, math.nan), result)
    return b.select(b.fcmp("oeq", x, _k(x, 0.0)), _k(x, -math.inf), result)


def log(b: Builder, x: V, target: Target) -> V:
    """Natural logarithm; NaN below zero."""
    if _is_double(x):
        return library_call(b, "log", (x,), target)
    e, f, square, tail = _log_parts(b, x)
    high = b.fmul(e, _k(x, _LN2_HIGH))
    total = b.fadd(high, f)
    lost = b.fsub(f, b.fsub(total, high))
    # The small parts are summed first, so that the large one, s / 2, is rounded once.
    small = b.fadd(tail, b.fma(e, _k(x, _LN2_LOW), lost))
    low = b.fma(square, _k(x, -0.5), small)
    return _log_specials(b, x, b.fadd(total, low))


def log2(b: Builder, x: V, target: Target) -> V:
    """Logarithm to base 2, exact for powers of two; NaN below zero."""
    if _is_double(x):
        return library_call(b, "log2", (x,), target)
    e, f, square, tail = _log_parts(b, x)
    product = b.fmul(f, _k(x, _LOG2_E))
    error = b.fma(f, _k(x, _LOG2_E), b.fneg(product))
    total = b.fadd(e, product)
    lost = b.fsub(product, b.fsub(total, e))
    small = b.fadd(lost, b.fma(f, _k(x, _LOG2_E_REST), error))
    small = b.fma(tail, _k(x, _LOG2_E), small)
    low = b.fma(square, _k(x, -0.5 * _LOG2_E), small)
    return _log_specials(b, x, b.fadd(total, low))


# ---- sine and cosine -----------------------------------------------------------------------------


def _reduced(b: Builder, a: V) -> tuple[V, V, V]:
    """a in [0, 2**17] = quadrant * pi / 2 + r + low: r, low, bits with the quadrant below."""
    n, bits = _nearest(b, a, _TWO_OVER_PI)
    first, second, third = (_k(a, part) for part in _HALF_PI)
    exact = b.fma(b.fneg(n), first, a)
    product = b.fmul(n, second)
    error = b.fma(n, second, b.fneg(product))
    r = b.fsub(exact, product)
    lost = b.fsub(b.fsub(exact, r), product)
    return r, b.fma(b.fneg(n), third, b.fsub(lost, error)), bits


def _reduced_large(b: Builder, a: V) -> tuple[V, V, V]:
    """a in [2**17, 2**128) as `_reduced` gives it, by integers (Payne and Hanek 1983).

    a = m * 2**e with a 24-bit integer m. Multiples of 4 in a * 2 / pi don't matter, so m is
    multiplied by the 96 bits of 2**e * 2 / pi that begin at the value 2. The top two bits of the
    product are the quadrant, the others its fraction.
    """
    bits = b.as_int(a)
    wide = like(a.type, i64)
    mantissa = b.or_(b.and_(bits, _i(a, 0x7FFFFF)), _i(a, 0x800000))
    position = b.sub(b.lshr(bits, _i(a, 23)), _i(a, 150 - 30))
    offset = b.shl(b.lshr(position, _i(a, 5)), _i(a, 2))
    words = [_table_word(b, b.add(offset, _i(a, 4 * k))) for k in range(4)]
    shift = b.and_(position, _i(a, 31))
    window = [b.intrinsic("fshl", (words[k], words[k + 1], shift), pure=True) for k in range(3)]
    m = b.zext(mantissa, i64)
    high, middle, low = (b.mul(m, b.zext(word, i64)) for word in window)
    product = b.add(b.shl(high, const(wide, 32)), middle)
    product = b.add(product, b.lshr(low, const(wide, 32)))
    quadrant = b.lshr(b.add(product, const(wide, 1 << 61)), const(wide, 62))
    fraction = b.sub(product, b.shl(quadrant, const(wide, 62)))
    radians = b.fmul(
        b.sitofp(fraction, double), const(like(a.type, double), math.pi / 2 * 2.0**-62)
    )
    r = b.fptrunc(radians, float_)
    rest = b.fptrunc(b.fsub(radians, b.fpext(r, double)), float_)
    return r, rest, b.trunc(quadrant, i32)


def _table_word(b: Builder, offset: V) -> V:
    words = [const(i32, word) for word in _TWO_OVER_PI_WORDS]
    table = b.module.constant_table("tritium.two_over_pi", words, align=32)
    address = b.gep(table, b.zext(offset, i64))
    if not offset.type.is_vector:
        return b.load(i32, address, align=4)
    return b.gather(offset.type, address, const(like(offset.type, i1), 1), align=4)


def _sine_of_reduced(b: Builder, r: V, low: V, quadrant: V) -> V:
    """sin(quadrant * pi / 2 + r + low)."""
    s = b.fmul(r, r)
    sine_poly = b.fmul(_horner(b, s, polynomials.SIN), s)
    sine = b.fadd(r, b.fma(sine_poly, r, low))
    half = b.fmul(s, _k(s, 0.5))
    near = b.fsub(_k(s, 1.0), half)
    lost = b.fsub(b.fsub(_k(s, 1.0), near), half)
    rest = b.fma(b.fneg(r), low, lost)
    cosine_poly = b.fmul(_horner(b, s, polynomials.COS), s)
    cosine = b.fadd(near, b.fma(cosine_poly, s, rest))
    odd = b.icmp("ne", b.and_(quadrant, _i(r, 1)), _i(r, 0))
    flip = b.shl(b.and_(quadrant, _i(r, 2)), _i(r, 30))
    return b.as_float(b.xor(b.as_int(b.select(odd, cosine, sine)), flip), float_)


def _sine_of_large(b: Builder, a: V, shift: int) -> V:
    """sin(a + shift * pi / 2) for lanes in [2**17, 2**128); anything for the others."""
    # Lanes that don't come here must not index outside the table.
    large = b.fcmp("oge", a, _k(a, _REDUCTION_LIMIT))
    safe = b.select(large, a, _k(a, _REDUCTION_LIMIT))
    r, low, quadrant = _reduced_large(b, safe)
    return _sine_of_reduced(b, r, low, b.add(quadrant, _i(a, shift)))


def _sine(b: Builder, x: V, shift: int, target: Target) -> V:
    a = fabs(b, x)
    r, low, bits = _reduced(b, a)
    result = _sine_of_reduced(b, r, low, b.add(bits, _i(a, shift)))
    large = b.fcmp("oge", a, _k(a, _REDUCTION_LIMIT))
    anywhere = b.intrinsic("vector.reduce.or", (large,), i1) if large.type.is_vector else large
    with b.when(anywhere, weights=(1, 1000)) as before:

        def body(c: Builder, args: Sequence[V]) -> V:
            return _sine_of_large(c, args[0], shift)

        name = ("sin.large", "cos.large")[shift]
        other = _outlined(b, name, (a,), a.type, target, body)
        chosen = b.select(large, other, result)
        after = b.block
    result = b.phi(x.type, "", [(result, before), (chosen, after)])
    return b.select(b.fcmp("olt", a, _k(a, math.inf)), result, _k(a, math.nan))


def sin(b: Builder, x: V, target: Target) -> V:
    """Sine of radians, of any magnitude. Adds blocks: the builder stands in another one after
    it."""
    if _is_double(x):
        return library_call(b, "sin", (x,), target)
    # sin(-a) = -sin(a), also of the zero.
    sine = _sine(b, x, 0, target)
    sign = b.and_(b.as_int(x), _i(x, _SIGN_BIT))
    return b.as_float(b.xor(b.as_int(sine), sign), float_)


def cos(b: Builder, x: V, target: Target) -> V:
    """Cosine of radians, of any magnitude. Adds blocks: the builder stands in another one after
    it."""
    if _is_double(x):
        return library_call(b, "cos", (x,), target)
    return _sine(b, x, 1, target)


# ---- roots, rounding, and what is one instruction ------------------------------------------------


def sqrt(b: Builder, x: V, target: Target) -> V:
    """Square root, correctly rounded; NaN below zero."""
    return b.intrinsic("sqrt", (x,), pure=True)


def rsqrt(b: Builder, x: V, target: Target) -> V:
    """1 / sqrt(x): infinity with the zero's sign at zero, NaN below."""
    y = b.fdiv(_k(x, 1.0), sqrt(b, x, target))
    # One Newton step on 1 - x y**2, in which x y keeps its rounding error.
    product = b.fmul(x, y)
    error = b.fma(x, y, b.fneg(product))
    residual = b.fma(b.fneg(product), y, _k(x, 1.0))
    residual = b.fma(b.fneg(error), y, residual)
    better = b.fma(b.fmul(residual, _k(x, 0.5)), y, y)
    return b.select(b.fcmp("ord", better, better), better, y)


def fabs(b: Builder, x: V) -> V:
    """|x|: the sign bit cleared."""
    return b.intrinsic("fabs", (x,), pure=True)


def floor(b: Builder, x: V) -> V:
    """The largest integer not above x."""
    return b.intrinsic("floor", (x,), pure=True)


def ceil(b: Builder, x: V) -> V:
    """The smallest integer not below x."""
    return b.intrinsic("ceil", (x,), pure=True)


def trunc(b: Builder, x: V) -> V:
    """x without its fraction."""
    return b.intrinsic("trunc", (x,), pure=True)


# ---- the C library -------------------------------------------------------------------------------


def library_call(b: Builder, name: str, args: Sequence[V], target: Target) -> V:
    """A function of the C library on doubles, lane by lane, out of line.

    float arguments are widened and the result is rounded to float. `name` is one of
    `llvm.LIBRARY_FUNCTIONS`.
    """
    result = args[0].type

    def body(c: Builder, values: Sequence[V]) -> V:
        wide = [c.fpext(value, double) for value in values]
        count = lanes(result)
        scalars = [
            c.call(
                name,
                double,
                [c.extract(value, lane) if count > 1 else value for value in wide],
                attributes="nobuiltin",
            )
            for lane in range(count)
        ]
        joined = c.concat(scalars) if count > 1 else scalars[0]
        return c.fptrunc(joined, float_) if elem(result) is float_ else joined

    return _outlined(b, name, args, result, target, body)


def _outlined(
    b: Builder,
    name: str,
    args: Sequence[V],
    result: LType,
    target: Target,
    body: Callable[[Builder, Sequence[V]], V],
) -> V:
    """Call a function of this module that computes `body`; it is written at its first use."""
    full = f"tritium.{name}.{result.mangled}"
    module = b.module
    if all(function.name != full for function in module.functions):
        params = [(arg.type, f"x{i}") for i, arg in enumerate(args)]
        attributes = (*target.attributes, "noinline")
        function = module.function(full, result, params, linkage="internal", attributes=attributes)
        c = Builder(function.entry)
        c.ret(body(c, function.params))
    return b.call(full, result, args)
