"""Conversions against oracles that share nothing with them.

The value of a bit pattern is computed from the format's definition with exact fractions. Rounding
is a search between neighbouring values: in exact fractions (``nearest_of``), and on arrays by
comparing with midpoints, which float64 holds exactly (``nearest``).
"""

from __future__ import annotations

import functools
import itertools
import struct
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tritium.ir import dtypes as dt
from tritium.ops import codecs

pytestmark = pytest.mark.filterwarnings("error")

# exponent bits, mantissa bits, bias, largest pattern, NaN patterns of positive sign, saturating
SPECS = {
    dt.float8e4nv: (4, 3, 7, 0x7E, {0x7F}, True),
    dt.float8e4b8: (4, 3, 8, 0x7F, set(), True),
    dt.float8e4b15: (4, 3, 15, 0x7F, set(), True),
    dt.float8e5: (5, 2, 15, 0x7B, {0x7D, 0x7E, 0x7F}, True),
    dt.float8e5b16: (5, 2, 16, 0x7F, set(), True),
    dt.float16: (5, 10, 15, 0x7BFF, set(range(0x7C01, 0x8000)), False),
    dt.bfloat16: (8, 7, 127, 0x7F7F, set(range(0x7F81, 0x8000)), False),
    dt.float32: (8, 23, 127, 0x7F7FFFFF, None, False),
    dt.float64: (11, 52, 1023, 0x7FEFFFFFFFFFFFFF, None, False),
}
FNUZ = (dt.float8e4b8, dt.float8e5b16)
SMALL = [dtype for dtype in SPECS if dtype.bits <= 16]
NARROW = [dtype for dtype in SPECS if dtype is not dt.float64]
ROUNDINGS = ("rtne", "rtz")

small = pytest.mark.parametrize("dtype", SMALL, ids=str)
narrow = pytest.mark.parametrize("dtype", NARROW, ids=str)
fp8 = pytest.mark.parametrize("dtype", dt.FLOATS8, ids=str)
rounded = pytest.mark.parametrize("rounding", ROUNDINGS)
to_integer = pytest.mark.parametrize("dst", dt.INTEGERS, ids=str)


def rng(seed=0):
    """A generator that gives a test the same numbers in any order of tests."""
    return np.random.default_rng(seed)


# ---- oracles -----------------------------------------------------------------------------------


def stored(patterns, dtype):
    """An array of bit patterns in storage form."""
    return np.array(patterns, np.uint64).astype(f"u{dtype.itemsize}").view(dtype.numpy)


def patterns(x, dtype):
    """The bit patterns of an array in storage form, as uint64."""
    return np.asarray(x).view(f"u{dtype.itemsize}").astype(np.uint64)


def all_patterns(dtype):
    return stored(np.arange(1 << dtype.bits), dtype)


def magnitude_of(pattern, dtype):
    """Exact value of a positive finite pattern, from the definition of the format."""
    _, mantissa_bits, bias, *_ = SPECS[dtype]
    exponent, mantissa = divmod(pattern, 2**mantissa_bits)
    if exponent == 0:
        return Fraction(mantissa, 2**mantissa_bits) * Fraction(2) ** (1 - bias)
    return (1 + Fraction(mantissa, 2**mantissa_bits)) * Fraction(2) ** (exponent - bias)


@functools.cache
def grid(dtype):
    """All finite magnitudes in the order of their patterns, and one step past the largest."""
    largest = SPECS[dtype][3]
    return np.array([float(magnitude_of(p, dtype)) for p in range(largest + 2)])


def finish(magnitude, negative, is_inf, is_nan, dtype, rounding):
    """Patterns from rounded magnitudes, at most one past the largest, and the special cases."""
    exponent_bits, mantissa_bits, _, largest, nans, saturating = SPECS[dtype]
    infinity = (2**exponent_bits - 1) << mantissa_bits
    result = np.array(magnitude, np.uint64)
    over = result > largest
    if saturating:
        result[over | is_inf] = largest
    else:
        result[over] = infinity if rounding == "rtne" else largest
        result[is_inf] = infinity
    sign = 1 << (dtype.bits - 1)
    if dtype in FNUZ:
        result[negative & (result != 0)] += sign
        result[is_nan] = sign
        return result
    if dtype is dt.float8e4b15:
        result[is_nan] = 0x7F
        negative = negative & ~is_nan
    else:
        result[is_nan] = max(nans or ()) if dtype is dt.float8e4nv else infinity + 1
    result[negative] += sign
    return result


def nearest(x, dtype, rounding="rtne"):
    """Patterns of float64 values rounded to a type of at most 16 bits."""
    values = grid(dtype)
    magnitude = np.where(np.isfinite(x), np.abs(x), 0.0)
    below = np.minimum(np.searchsorted(values, magnitude, side="right") - 1, SPECS[dtype][3])
    result = below.copy()
    if rounding == "rtne":
        middle = (values[below] + values[below + 1]) / 2
        result += (magnitude > middle) | ((magnitude == middle) & (below % 2 == 1))
    else:
        result += magnitude >= values[-1]
    return finish(result, np.signbit(x), np.isinf(x), np.isnan(x), dtype, rounding)


def nearest_of(value, dtype, rounding="rtne"):
    """Pattern of an exact number (not -0) rounded to any type, by bisection."""
    low, high = 0, SPECS[dtype][3] + 1
    magnitude = abs(Fraction(value))
    if magnitude >= magnitude_of(high, dtype):
        low = high
    while high - low > 1:
        middle = (low + high) // 2
        if magnitude_of(middle, dtype) <= magnitude:
            low = middle
        else:
            high = middle
    if rounding == "rtne" and low < high:
        above = 2 * magnitude - magnitude_of(low, dtype) - magnitude_of(high, dtype)
        low += above > 0 or (above == 0 and low % 2 == 1)
    no = np.array([False])
    return int(finish([low], np.array([value < 0]), no, no, dtype, rounding)[0])


def integer_of(value, dst):
    """A float as an integer type: truncated, saturated at 16 bits or more, wrapped."""
    if dst is dt.int1:
        return int(value != 0)
    if value != value:
        return 0
    bits = max(dst.bits, 16)
    low = -(2 ** (bits - 1)) if dst.is_int_signed() else 0
    high = low + 2**bits - 1
    whole = high if value >= 2.0**70 else low if value <= -(2.0**70) else int(value)
    return wrapped(min(max(whole, low), high), dst)


def wrapped(value, dst):
    if dst is dt.int1:
        return int(value != 0)
    value %= 2**dst.bits
    return value - 2**dst.bits if dst.is_int_signed() and value >= 2 ** (dst.bits - 1) else value


def assert_patterns(actual, expected, dtype, source):
    """Equal bit patterns; of the NaNs of an IEEE format any will do if its sign is right."""
    assert actual.dtype == dtype.numpy
    got = patterns(actual, dtype)
    exponent_bits, mantissa_bits, *_ = SPECS[dtype]
    sign = 1 << (dtype.bits - 1)
    if dtype.format.has_inf:
        infinity = (2**exponent_bits - 1) << mantissa_bits
        got, expected = (
            np.where((p & (sign - 1)) > infinity, infinity + 1 | (p & sign), p)
            for p in (got, np.array(expected, np.uint64))
        )
    wrong = np.flatnonzero(got != expected)
    if wrong.size:
        i = wrong[0]
        pytest.fail(
            f"{wrong.size} wrong, first: {np.ravel(source)[i]!r} -> {np.ravel(got)[i]:#x}, "
            f"expected {np.ravel(expected)[i]:#x}"
        )


# ---- decoding ----------------------------------------------------------------------------------


@small
def test_decode_every_pattern(dtype):
    actual = codecs.decode(all_patterns(dtype), dtype)
    assert actual.dtype == np.float64
    _, _, _, largest, nans, _ = SPECS[dtype]
    sign = 1 << (dtype.bits - 1)
    for pattern, value in enumerate(actual.tolist()):
        magnitude = pattern % sign
        if magnitude in nans or (dtype in FNUZ and pattern == sign):
            assert value != value
        elif magnitude > largest:
            assert abs(value) == np.inf
        else:
            assert abs(Fraction(value)) == magnitude_of(magnitude, dtype)
        if dtype not in FNUZ or pattern != sign:
            assert np.signbit(value) == (pattern >= sign)


@pytest.mark.parametrize("dtype", [d for d in SMALL if d is not dt.float8e4b15], ids=str)
def test_decode_against_ml_dtypes_and_struct(dtype):
    x = all_patterns(dtype)
    if dtype is dt.float16:
        expected = np.array(struct.unpack(f"<{x.size}e", x.tobytes()))
    else:
        expected = x.astype(np.float32)
    np.testing.assert_array_equal(codecs.decode(x, dtype), expected)


@pytest.mark.parametrize(
    "name", ["float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "bfloat16"]
)
def test_decode_against_torch(name):
    torch = pytest.importorskip("torch")
    dtype = dt.from_name(name)
    x = all_patterns(dtype)
    bits = torch.from_numpy(x.view(f"i{dtype.itemsize}").copy())
    expected = bits.view(getattr(torch, name)).to(torch.float32).numpy()
    np.testing.assert_array_equal(codecs.convert(x, dtype, dt.float32), expected)


@small
@pytest.mark.parametrize("wide", [dt.float32, dt.float64], ids=str)
def test_widening_is_exact_and_undone_by_narrowing(dtype, wide):
    x = all_patterns(dtype)
    widened = codecs.convert(x, dtype, wide)
    assert widened.dtype == wide.numpy
    np.testing.assert_array_equal(widened, codecs.decode(x, dtype))
    finite = np.isfinite(widened)
    for rounding in ROUNDINGS:
        back = codecs.convert(widened, wide, dtype, rounding)
        np.testing.assert_array_equal(patterns(back, dtype)[finite], patterns(x, dtype)[finite])
        assert np.isnan(codecs.decode(back[np.isnan(widened)], dtype)).all()


def test_float32_to_float64():
    x = rng().integers(0, 1 << 32, 10_000, np.uint32).view(np.float32)
    x = np.concatenate([x, np.array([0.0, -0.0, 1e-45, np.inf, -np.inf, np.nan], np.float32)])
    expected = np.array(struct.unpack(f"<{x.size}f", x.tobytes()))
    actual = codecs.convert(x, dt.float32, dt.float64)
    np.testing.assert_array_equal(actual, expected)
    np.testing.assert_array_equal(np.signbit(actual), np.signbit(x))


# ---- rounding ----------------------------------------------------------------------------------


def around(low, high, carrier):
    """Neighbouring values, their midpoint, and the carrier's next numbers around each."""
    low, high = low.astype(carrier), high.astype(carrier)
    middle = low + (high - low) / 2
    points = np.concatenate([low, middle, high])
    towards = (points, np.nextafter(points, -np.inf), np.nextafter(points, carrier(np.inf)))
    return np.concatenate(towards)


@small
@rounded
@pytest.mark.parametrize("source", [dt.float32, dt.float64], ids=str)
def test_every_midpoint_and_its_neighbours(dtype, rounding, source):
    values, carrier = grid(dtype), source.numpy.type
    # The step past bfloat16's largest value is past float32's as well.
    values = values[values <= source.format.largest]
    x = around(values[:-1], values[1:], carrier)
    x = np.concatenate([x, -x])
    expected = nearest(x.astype(np.float64), dtype, rounding)
    assert_patterns(codecs.convert(x, source, dtype, rounding), expected, dtype, x)


@small
def test_midpoints_by_construction(dtype):
    values = grid(dtype)[: SPECS[dtype][3] + 1]
    middle = (values[:-1] + values[1:]) / 2
    below = np.arange(middle.size)
    even = below + below % 2
    for x, expected in [
        (middle, even),
        (np.nextafter(middle, 0), below),
        (np.nextafter(middle, np.inf), below + 1),
    ]:
        assert_patterns(codecs.encode(x, dtype), expected, dtype, x)
        assert_patterns(codecs.encode(x, dtype, "rtz"), below, dtype, x)


@rounded
def test_float32_midpoints(rounding):
    largest = SPECS[dt.float32][3]
    edges = [0, 1, 2, 3, 0x7FFFFE, 0x7FFFFF, 0x800000, 0x800001, largest - 1, largest]
    chosen = [*edges, *rng().integers(0, largest, 250).tolist()]
    low = np.array([float(magnitude_of(p, dt.float32)) for p in chosen])
    high = np.array([float(magnitude_of(p + 1, dt.float32)) for p in chosen])
    x = around(low, high, np.float64)
    x = np.concatenate([x[x > 0], -x[x > 0]])
    expected = [nearest_of(Fraction(value), dt.float32, rounding) for value in x.tolist()]
    assert_patterns(codecs.encode(x, dt.float32, rounding), expected, dt.float32, x)


def test_float32_rounding_against_struct():
    x = rng().standard_normal(20_000) * 10.0 ** rng(1).integers(-45, 38, 20_000)
    expected = np.frombuffer(struct.pack(f"<{x.size}f", *x.tolist()), np.uint32)
    assert_patterns(codecs.encode(x, dt.float32), expected.astype(np.int64), dt.float32, x)


OVERFLOWS = [
    # dtype, the least value that rounds past the largest, the largest value's pattern
    (dt.float8e4nv, 464.0, 0x7E),
    (dt.float8e4b8, 248.0, 0x7F),
    (dt.float8e4b15, 1.9375, 0x7F),
    (dt.float8e5, 61440.0, 0x7B),
    (dt.float8e5b16, 61440.0, 0x7F),
    (dt.float16, 65520.0, 0x7BFF),
    (dt.bfloat16, float.fromhex("0x1.ffp127"), 0x7F7F),
    (dt.float32, float.fromhex("0x1.ffffffp127"), 0x7F7FFFFF),
]


@pytest.mark.parametrize("dtype, threshold, largest", OVERFLOWS, ids=lambda v: str(v))
def test_overflow(dtype, threshold, largest):
    over = largest if dtype.is_fp8() else largest + 1
    huge = np.finfo(np.float64).max
    x = np.array([np.nextafter(threshold, 0), threshold, 2 * threshold, huge, np.inf])
    sign = 1 << (dtype.bits - 1)
    expected = np.array([largest, over, over, over, over])
    assert patterns(codecs.encode(x, dtype), dtype).tolist() == expected.tolist()
    assert patterns(codecs.encode(-x, dtype), dtype).tolist() == (expected + sign).tolist()
    expected = np.array([largest, largest, largest, largest, over])
    assert patterns(codecs.encode(x, dtype, "rtz"), dtype).tolist() == expected.tolist()
    assert patterns(codecs.encode(-x, dtype, "rtz"), dtype).tolist() == (expected + sign).tolist()


@narrow
@rounded
def test_tiny_values_and_zeros(dtype, rounding):
    least = 2.0 ** (2 - SPECS[dtype][2] - SPECS[dtype][1] - 1)
    positive = np.array([0.0, 5e-324, 1e-300, least / 2, np.nextafter(least / 2, 1), least])
    expected = np.array([0, 0, 0, 0, 1 if rounding == "rtne" else 0, 1])
    sign = 1 << (dtype.bits - 1)
    negative = expected + sign * ((expected > 0) | (dtype not in FNUZ))
    assert patterns(codecs.encode(positive, dtype, rounding), dtype).tolist() == expected.tolist()
    assert patterns(codecs.encode(-positive, dtype, rounding), dtype).tolist() == negative.tolist()


@narrow
@rounded
@pytest.mark.parametrize("source", [dt.float32, dt.float64], ids=str)
def test_nan_keeps_its_sign_where_it_can(dtype, rounding, source):
    if source is dtype:
        return
    infinity, sign = source.format.infinity_pattern, 1 << (source.bits - 1)
    quiet = 1 << (source.format.mantissa_bits - 1)
    payloads = [quiet, quiet | 1, 1, 2, quiet - 1]
    x = stored([infinity | p | s for s in (0, sign) for p in payloads], source)
    result = codecs.convert(x, source, dtype, rounding)
    got = patterns(result, dtype)
    if dtype in FNUZ:
        assert set(got.tolist()) == {0x80}
        return
    if dtype is dt.float8e4b15:
        assert got.tolist() == [0x7F] * 10
        return
    assert np.isnan(codecs.decode(result, dtype)).all()
    assert ((got >> (dtype.bits - 1)) == [0] * 5 + [1] * 5).all()


@pytest.mark.parametrize("source", [dt.float16, dt.bfloat16, *dt.FLOATS8], ids=str)
@small
@rounded
def test_every_small_float_into_every_other(source, dtype, rounding):
    x = all_patterns(source)
    result = codecs.convert(x, source, dtype, rounding)
    if source is dtype:
        assert patterns(result, dtype).tolist() == patterns(x, source).tolist()
        return
    value = codecs.decode(x, source)
    expected = nearest(value, dtype, rounding)
    if source in FNUZ:
        # Its one NaN has no sign to keep.
        got = codecs.decode(result[np.isnan(value)], dtype)
        assert (np.isnan(got) | (abs(got) == 1.875)).all()
        result, expected = result[~np.isnan(value)], expected[~np.isnan(value)]
    assert_patterns(result, expected, dtype, x)


@pytest.mark.parametrize("source", [dt.float16, dt.bfloat16], ids=str)
def test_16_bits_through_8_never_lose_a_carry(source):
    """The cases of Triton issue 8322: 126.24 is nearest to 128, ties go to even, NaN stays."""
    x = codecs.encode(np.array([126.24, 17.0, 19.0, 2.0**-10, 3 * 2.0**-10, np.nan]), source)
    result = codecs.decode(codecs.convert(x, source, dt.float8e4nv), dt.float8e4nv)
    np.testing.assert_array_equal(result, [128.0, 16.0, 20.0, 0.0, 2.0**-8, np.nan])


@small
@rounded
def test_random_float32(dtype, rounding):
    bits = rng().integers(0, 1 << 32, 100_000, np.uint32).view(np.float32)
    moderate = rng(1).standard_normal(100_000, np.float32) * np.float32(SPECS[dtype][1] * 4)
    x = np.concatenate([bits, moderate])
    expected = nearest(codecs.decode(x, dt.float32), dtype, rounding)
    assert_patterns(codecs.convert(x, dt.float32, dtype, rounding), expected, dtype, x)


@pytest.mark.parametrize(
    "name",
    ["float16", "bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"],
)
def test_a_million_float32_against_torch(name):
    torch = pytest.importorskip("torch")
    dtype = dt.from_name(name)
    x = rng().integers(0, 1 << 32, 1_000_000, np.uint32).view(np.float32)
    x[: x.size // 2] = rng(1).standard_normal(x.size // 2, np.float32) * np.float32(40)
    # Past the largest value torch makes 8-bit floats NaN or infinite, where Triton saturates.
    x = x[abs(x) <= dtype.format.largest]
    expected = torch.from_numpy(x).to(getattr(torch, name)).view(torch.int8).numpy()
    np.testing.assert_array_equal(
        codecs.convert(x, dt.float32, dtype).view(np.int8), expected.reshape(-1)
    )


any_float = st.floats(width=64) | st.floats(width=32) | st.floats(width=16)


def assert_single(x, dtype, rounding):
    array = np.array([x])
    if np.isfinite(x) and x != 0:
        expected = np.array([nearest_of(Fraction(x), dtype, rounding)])
    else:
        expected = finish([0], np.signbit(array), np.isinf(array), np.isnan(array), dtype, rounding)
    assert_patterns(codecs.encode(array, dtype, rounding), expected, dtype, array)


@given(any_float, st.sampled_from(NARROW), st.sampled_from(ROUNDINGS))
@settings(max_examples=600)
def test_any_float64_is_rounded_once(x, dtype, rounding):
    assert_single(x, dtype, rounding)


@given(st.data(), st.sampled_from(NARROW), st.sampled_from(ROUNDINGS))
@settings(max_examples=600)
def test_float64_near_midpoints_is_rounded_once(data, dtype, rounding):
    low = data.draw(st.integers(0, SPECS[dtype][3] - 1))
    middle = float((magnitude_of(low, dtype) + magnitude_of(low + 1, dtype)) / 2)
    ulps = data.draw(st.integers(-3, 3))
    near = np.array([middle]).view(np.int64) + ulps
    sign = data.draw(st.sampled_from([1.0, -1.0]))
    assert_single(sign * float(near.view(np.float64)[0]), dtype, rounding)


@given(any_float, any_float, st.sampled_from(NARROW), st.sampled_from(ROUNDINGS))
def test_rounding_keeps_order(x, y, dtype, rounding):
    pair = np.sort(np.array([x, y]))
    if not np.isnan(pair).any():
        low, high = codecs.decode(codecs.encode(pair, dtype, rounding), dtype)
        assert low <= high


# ---- to and from integers ----------------------------------------------------------------------


@pytest.mark.parametrize("source", [dt.float16, dt.bfloat16], ids=str)
@to_integer
def test_every_16_bit_float_to_integer(source, dst):
    x = all_patterns(source)
    expected = [integer_of(value, dst) for value in codecs.decode(x, source).tolist()]
    actual = codecs.convert(x, source, dst)
    assert actual.dtype == dst.numpy
    assert actual.tolist() == expected


def integer_edges(carrier):
    """Powers of two, halves and their neighbours, both signs, and the special values."""
    powers = np.array([2.0**k for k in range(-2, 80)], carrier)
    points = np.concatenate([powers, powers - 1, powers + 1, powers - carrier(0.5)])
    points = np.concatenate([points, np.nextafter(points, carrier(np.inf))])
    points = np.concatenate([points, np.nextafter(points, -carrier(np.inf))])
    extreme = np.finfo(carrier)
    special = np.array([0, extreme.max, extreme.tiny, extreme.smallest_subnormal, np.inf, np.nan])
    points = np.concatenate([points, special.astype(carrier)])
    return np.concatenate([points, -points])


@pytest.mark.parametrize("source", [dt.float32, dt.float64], ids=str)
@to_integer
def test_wide_float_to_integer(source, dst):
    x = integer_edges(source.numpy.type)
    noise = rng().standard_normal(2_000) * 2.0 ** rng(1).integers(0, 70, 2_000)
    x = np.concatenate([x, noise.astype(source.numpy)])
    actual = codecs.convert(x, source, dst)
    assert actual.dtype == dst.numpy
    assert actual.tolist() == [integer_of(value, dst) for value in x.tolist()]


def test_float_to_integer_saturates_as_nvidia_does():
    x = np.array([300.7, -300.7, 40000.0, 70000.0, -1.5, 3e9, -3e9, 1e20, np.inf, np.nan])
    expected = {
        dt.int8: [44, -44, -1, -1, -1, -1, 0, -1, -1, 0],
        dt.uint8: [44, 0, 64, 255, 0, 255, 0, 255, 255, 0],
        dt.int16: [300, -300, 32767, 32767, -1, 32767, -32768, 32767, 32767, 0],
        dt.uint16: [300, 0, 40000, 65535, 0, 65535, 0, 65535, 65535, 0],
        dt.int32: [300, -300, 40000, 70000, -1, 2**31 - 1, -(2**31), 2**31 - 1, 2**31 - 1, 0],
        dt.uint32: [300, 0, 40000, 70000, 0, 3 * 10**9, 0, 2**32 - 1, 2**32 - 1, 0],
        dt.int64: [300, -300, 40000, 70000, -1, 3 * 10**9, -3 * 10**9, *[2**63 - 1] * 2, 0],
        dt.uint64: [300, 0, 40000, 70000, 0, 3 * 10**9, 0, *[2**64 - 1] * 2, 0],
        dt.int1: [True] * 10,
    }
    assert set(expected) == set(dt.INTEGERS)
    for dst, values in expected.items():
        assert codecs.convert(x, dt.float64, dst).tolist() == values
        assert codecs.convert(x.astype(np.float32), dt.float32, dst)[4:].tolist() == values[4:]


def integers(dtype):
    """All values of a type of at most 16 bits; else edges and random ones of every length."""
    if dtype is dt.int1:
        return np.array([False, True])
    if dtype.bits <= 16:
        return all_patterns(dtype)
    low, high = dtype.get_int_min_value(), dtype.get_int_max_value()
    points = [sign * (2**k) + d for k in range(65) for sign in (1, -1) for d in (-2, -1, 0, 1, 2)]
    points += [
        sign * (n >> k) for k in range(64) for sign in (1, -1) for n in (0x9E3779B97F4A7C15,)
    ]
    return np.array(sorted({p for p in points if low <= p <= high}), dtype.numpy)


@pytest.mark.parametrize("src", dt.INTEGERS, ids=str)
@to_integer
def test_integer_to_integer_wraps(src, dst):
    x = integers(src)
    actual = codecs.convert(x, src, dst)
    assert actual.dtype == dst.numpy
    assert actual.tolist() == [wrapped(int(value), dst) for value in x.tolist()]


def ties(dtype, destination):
    """Integers at, and one off, the midpoints between neighbours in the destination."""
    precision = SPECS[destination][1] + 1
    points = []
    for length in range(precision + 1, dtype.bits + 1):
        unit = 1 << (length - precision)
        for lead in (1 << (precision - 1), (1 << (precision - 1)) + 1, (1 << precision) - 1):
            middle = lead * unit + unit // 2
            points += [middle - 1, middle, middle + 1, middle + unit // 4]
    low, high = dtype.get_int_min_value(), dtype.get_int_max_value()
    points = {sign * p for p in points for sign in (1, -1)}
    return np.array(sorted(p for p in points if low <= p <= high), dtype.numpy)


@pytest.mark.parametrize("src", dt.INTEGERS, ids=str)
@pytest.mark.parametrize("dst", dt.STANDARD_FLOATS, ids=str)
def test_integer_to_float_rounds_once(src, dst):
    x = integers(src)
    if src.bits > 16:
        x = np.concatenate([x, ties(src, dst)])
    if src.bits <= 16 and dst.bits == 16:
        expected = nearest(x.astype(np.float64), dst)
    else:
        x = x[::31] if src.bits == 16 else x
        expected = [nearest_of(int(value), dst) for value in x.tolist()]
    for rounding in ROUNDINGS:  # which is about narrowing floats
        assert_patterns(codecs.convert(x, src, dst, rounding), expected, dst, x)


@pytest.mark.parametrize("src", [dt.int64, dt.uint64, dt.int32, dt.uint32], ids=str)
@pytest.mark.parametrize("dst", [dt.float16, dt.bfloat16], ids=str)
def test_random_wide_integers_to_16_bit_floats(src, dst):
    x = rng().integers(0, 1 << 64, 3_000, np.uint64) >> rng(1).integers(0, 64, 3_000).astype(
        np.uint64
    )
    x = x.astype(src.numpy)
    expected = [nearest_of(int(value), dst) for value in x.tolist()]
    assert_patterns(codecs.convert(x, src, dst), expected, dst, x)


def test_int64_where_float64_would_be_a_tie():
    """Going through float64 makes these ties, which the bit below decides."""
    x = np.array([(1 << 62) + (1 << 54) + 1, (1 << 62) + 3 * (1 << 54) - 1], np.int64)
    through = codecs.decode(codecs.encode(x.astype(np.float64), dt.bfloat16), dt.bfloat16)
    direct = codecs.decode(codecs.convert(x, dt.int64, dt.bfloat16), dt.bfloat16)
    assert direct.tolist() == [2.0**62 + 2.0**55, 2.0**62 + 2.0**55]
    assert through.tolist() == [2.0**62, 2.0**62 + 2 * 2.0**55]


# ---- every pair, every shape -------------------------------------------------------------------


def sample(dtype):
    """Twelve values of a type, zero, one and its extremes among them."""
    if dtype is dt.int1:
        return np.array([False, True] * 6)
    if dtype.is_floating():
        picks = rng().integers(0, 1 << dtype.bits, 12, np.uint64)
        picks[:4] = [0, dtype.format.largest_pattern, dtype.format.sign_pattern, 1]
        return stored(picks, dtype)
    low, high = dtype.get_int_min_value(), dtype.get_int_max_value()
    return np.array([0, 1, low, high, *rng().integers(low, high, 8, dtype.numpy)], dtype.numpy)


PAIRS = list(itertools.product(dt.VALUES, dt.VALUES))
CONVERTIBLE = [pair for pair in PAIRS if codecs.is_convertible(*pair)]


def test_which_pairs_have_a_meaning():
    refused = {pair for pair in PAIRS if not codecs.is_convertible(*pair)}
    mixed = set(itertools.product(dt.INTEGERS, dt.FLOATS8))
    assert refused == mixed | {(b, a) for a, b in mixed}
    for dtype in dt.ALL:
        assert not codecs.is_convertible(dtype, dt.void)
        assert not codecs.is_convertible(dt.void, dtype)


@pytest.mark.parametrize("src", dt.VALUES, ids=str)
def test_refused_pairs(src):
    x = sample(src)
    for dst in (dt.void, *dt.VALUES):
        if not codecs.is_convertible(src, dst):
            with pytest.raises(ValueError, match=f"no conversion from {src} to {dst}"):
                codecs.convert(x, src, dst)


@pytest.mark.parametrize("src", dt.VALUES, ids=str)
def test_shapes_and_layouts(src):
    x = sample(src)
    x.flags.writeable = False
    for dst in dt.VALUES:
        if not codecs.is_convertible(src, dst):
            continue
        flat = codecs.convert(x, src, dst)
        assert (flat.shape, flat.dtype) == ((12,), dst.numpy)
        raw = flat.view(f"u{dst.itemsize}")
        for layout in (
            lambda a: a.reshape(3, 4),
            lambda a: a.reshape(3, 4).T,
            lambda a: a[::-1],
            lambda a: a.reshape(2, 3, 2)[:, 1:, ::2],
            lambda a: np.broadcast_to(a[2:3], (4, 5)),
            lambda a: a[:0],
            lambda a: a[3:4].reshape(()),
        ):
            result = codecs.convert(layout(x), src, dst)
            assert isinstance(result, np.ndarray)
            np.testing.assert_array_equal(result.view(f"u{dst.itemsize}"), layout(raw))


@pytest.mark.parametrize("dtype", dt.VALUES, ids=str)
def test_to_itself_nothing_changes(dtype):
    x = all_patterns(dtype) if 1 < dtype.bits <= 16 else sample(dtype)
    for rounding in ROUNDINGS:
        assert codecs.convert(x, dtype, dtype, rounding).tobytes() == x.tobytes()


@pytest.mark.parametrize("src", dt.VALUES, ids=str)
def test_storage_is_required(src):
    wrong = np.zeros(3, np.int16 if src.bits == 8 else np.uint8)
    for refused in (
        lambda: codecs.convert(wrong, src, src),
        lambda: codecs.bitcast(wrong, src, src),
        lambda: codecs.to_compute(wrong, src),
    ):
        with pytest.raises(TypeError, match=f"{src} is stored as"):
            refused()
    # bfloat16 is not the uint16 that holds its bits.
    with pytest.raises(TypeError, match="bf16 is stored as bfloat16, got an array of uint16"):
        codecs.decode(np.zeros(3, np.uint16), dt.bfloat16)


@pytest.mark.parametrize("rounding", ["", "rtn", "RTNE", None])
def test_unknown_rounding(rounding):
    with pytest.raises(ValueError, match="unknown rounding"):
        codecs.convert(np.zeros(1), dt.float64, dt.float16, rounding)


@pytest.mark.parametrize("dtype", (dt.void, *dt.INTEGERS), ids=str)
def test_decode_and_encode_are_for_floats(dtype):
    with pytest.raises(ValueError, match="not a float type"):
        codecs.encode(np.zeros(1), dtype)
    with pytest.raises(ValueError, match="not a float type"):
        codecs.decode(np.zeros(1, dtype.numpy), dtype)


@pytest.mark.parametrize("src", dt.VALUES, ids=str)
def test_bitcast(src):
    x = sample(src).reshape(3, 4).T
    for dst in dt.VALUES:
        if src.bits != dst.bits:
            with pytest.raises(ValueError, match="differ in width"):
                codecs.bitcast(x, src, dst)
            continue
        result = codecs.bitcast(x, src, dst)
        assert (result.dtype, result.shape) == (dst.numpy, x.shape)
        assert result.tobytes() == x.tobytes()
        assert codecs.bitcast(result, dst, src).tobytes() == x.tobytes()


@pytest.mark.parametrize("dtype", dt.VALUES, ids=str)
def test_compute_form(dtype):
    x = sample(dtype)
    wide = codecs.to_compute(x, dtype)
    assert wide.dtype == dtype.compute.numpy
    if dtype is not dtype.compute:
        np.testing.assert_array_equal(wide.astype(np.float64), codecs.decode(x, dtype))
    back = codecs.from_compute(wide, dtype)
    assert back.dtype == dtype.numpy
    if dtype.is_floating():
        finite = np.isfinite(wide)
        assert back[finite].tobytes() == x[finite].tobytes()
    else:
        assert back.tobytes() == x.tobytes()


def test_from_compute_rounds_to_nearest():
    x = np.array([2049.0, 2051.0, 2050.5], np.float32)
    assert codecs.from_compute(x, dt.float16).tolist() == [2048.0, 2052.0, 2050.0]


def test_bfloat16_arithmetic_is_on_values():
    """Triton issues 11584 and 11604: sums of the bits instead of the values."""
    x = codecs.encode(np.array([2.5, 2.0, np.nan]), dt.bfloat16)
    total = codecs.to_compute(x, dt.bfloat16)[:2].sum(dtype=np.float32)
    assert codecs.from_compute(np.array([total]), dt.bfloat16)[0] == ml_dtypes.bfloat16(4.5)
    assert np.isnan(codecs.to_compute(x, dt.bfloat16).sum())
