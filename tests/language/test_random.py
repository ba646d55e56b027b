"""Random numbers: Random123's published vectors, and a plain Python model for everything else."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from tests.frontend.kernels import PTR, jit, refused, results

import tritium
import tritium.language as tl

WEYL = {32: (0x9E3779B9, 0xBB67AE85), 64: (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)}
MULTIPLIERS = {32: (0xD2511F53, 0xCD9E8D57), 64: (0xD2E7470EE14C6C93, 0xCA5A826395121157)}


def philox(counter: Any, key: Any, rounds: int = 10, bits: int = 32) -> tuple[int, ...]:
    """Philox 4xW of the paper, with its words in its order, on Python's integers."""
    below = (1 << bits) - 1
    (c0, c1, c2, c3), (k0, k1) = counter, key
    for _ in range(rounds):
        left, right = MULTIPLIERS[bits][0] * c0, MULTIPLIERS[bits][1] * c2
        c0, c1, c2, c3 = (right >> bits) ^ c1 ^ k0, right & below, (left >> bits) ^ c3 ^ k1, left
        c3 &= below
        k0, k1 = (k0 + WEYL[bits][0]) & below, (k1 + WEYL[bits][1]) & below
    return c0, c1, c2, c3


ONES = 0xFFFFFFFF
SCALE = np.float32(4.6566127342e-10)
PI_32 = (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0)
PI_64 = (
    (0x243F6A8885A308D3, 0x13198A2E03707344, 0xA4093822299F31D0, 0x082EFA98EC4E6C89),
    (0x452821E638D01377, 0xBE5466CF34E90C6C),
)

# Random123, tests/kat_vectors: philox4x32 and philox4x64, 10 rounds.
KNOWN = [
    (32, (0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    (32, (ONES,) * 4, (ONES,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (32, *PI_32, (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)),
    (
        64,
        (0, 0, 0, 0),
        (0, 0),
        (0x16554D9ECA36314C, 0xDB20FE9D672D0FDC, 0xD7E772CEE186176B, 0x7E68B68AEC7BA23B),
    ),
    (
        64,
        (2**64 - 1,) * 4,
        (2**64 - 1,) * 2,
        (0x87B092C3013FE90B, 0x438C3C67BE8D0224, 0x9CC7D7C69CD777B6, 0xA09CAEBF594F0BA0),
    ),
    (
        64,
        *PI_64,
        (0xA528F45403E61D95, 0x38C72DBD566E9788, 0xA5A1610E72FD18B5, 0x57BD43B5E52B7FE6),
    ),
]


@jit
def impl_kernel(out, words, rounds: tl.constexpr):
    c0, c1, c2, c3 = tl.philox_impl(
        tl.load(words),
        tl.load(words + 1),
        tl.load(words + 2),
        tl.load(words + 3),
        tl.load(words + 4),
        tl.load(words + 5),
        rounds,
    )
    tl.store(out, c0)
    tl.store(out + 1, c1)
    tl.store(out + 2, c2)
    tl.store(out + 3, c3)


@pytest.mark.parametrize(("bits", "counter", "key", "want"), KNOWN)
def test_known_answers(bits: int, counter: Any, key: Any, want: Any) -> None:
    assert philox(counter, key, 10, bits) == want
    dtype = np.dtype(f"u{bits // 8}")
    words = np.array([*counter, *key], dtype)
    assert tuple(results(impl_kernel, words, 10, size=4, dtype=dtype)) == want


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("rounds", [0, 1, 7])
def test_other_numbers_of_rounds(bits: int, rounds: int) -> None:
    words = np.random.default_rng(rounds).integers(0, 2**bits, 6, np.dtype(f"u{bits // 8}"))
    given = [int(w) for w in words]
    got = results(impl_kernel, words, rounds, size=4, dtype=words.dtype)
    assert tuple(got) == philox(given[:4], given[4:], rounds, bits)


@jit
def words_kernel(out, offsets, seed, N: tl.constexpr, rounds: tl.constexpr):
    place = tl.arange(0, N)
    offset = tl.load(offsets + place)
    i0, i1, i2, i3 = tl.randint4x(seed, offset, rounds)
    tl.static_assert(i0.dtype == tl.uint32)
    tl.store(out + place, i0)
    tl.store(out + N + place, i1)
    tl.store(out + 2 * N + place, i2)
    tl.store(out + 3 * N + place, i3)
    tl.store(out + 4 * N + place, tl.randint(seed, offset, rounds))


OFFSETS = [0, 1, 2, 127, -1, -128]


def words_of(seed: int, offset: int, wide: bool) -> tuple[int, ...]:
    high = (offset >> 32) % 2**32 if wide else 0
    return philox((offset % 2**32, high, 0, 0), (seed % 2**32, (seed >> 32) % 2**32))


@pytest.mark.parametrize("seed", [0, 1, 2**31 - 1, -1])
@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint32, np.uint64])
def test_words_of_a_seed_and_offsets(seed: int, dtype: Any) -> None:
    dtype = np.dtype(dtype)
    offsets = np.array(OFFSETS).astype(dtype)
    if dtype.itemsize == 8:
        offsets[3:] = np.array([2**32 + 7, 2**62 + 2**40 + 1, 2**33 - 1], dtype)
    want = np.array([words_of(seed, int(o), dtype.itemsize == 8) for o in offsets])
    got = results(words_kernel, offsets, seed, 6, 10, size=30, dtype=np.uint32)
    np.testing.assert_array_equal(np.reshape(got, (5, 6)), [*want.T, want[:, 0]])


@jit
def seeds_kernel(out, seeds, N: tl.constexpr):
    for i in range(N):
        tl.store(out + i, tl.randint(tl.load(seeds + i), 5))


def test_seeds_of_64_bits_and_an_offset_that_is_a_number() -> None:
    seeds = np.array([0, 2**32, 2**40 + 3, -5, 2**63 - 1], np.int64)
    want = [words_of(int(seed), 5, False)[0] for seed in seeds]
    assert results(seeds_kernel, seeds, 5, size=5, dtype=np.uint32) == want


@jit
def wide_words_kernel(out, seed, c0, N: tl.constexpr):
    place = tl.arange(0, N)
    first = tl.load(c0 + place)
    zero = first * 0
    a, b, c, d = tl.philox(seed, first, place.to(tl.int64), zero - 1, zero + 7)
    tl.static_assert(a.dtype == tl.uint64)
    tl.store(out + place, a)
    tl.store(out + N + place, b)
    tl.store(out + 2 * N + place, c)
    tl.store(out + 3 * N + place, d)


def test_counters_of_64_bits() -> None:
    first = np.array([0, 1, -1, 2**62 + 9, -(2**63)], np.int64)
    words = [
        philox((int(c) % 2**64, i, 2**64 - 1, 7), (2**64 - 3, 0), 10, 64)
        for i, c in enumerate(first)
    ]
    got = results(wide_words_kernel, -3, first, 5, size=20, dtype=np.uint64)
    np.testing.assert_array_equal(np.reshape(got, (4, 5)), np.array(words, np.uint64).T)


@jit
def uniform_kernel(out, x, N: tl.constexpr):
    place = tl.arange(0, N)
    result = tl.uint_to_uniform_float(tl.load(x + place))
    tl.static_assert(result.dtype == tl.float32)
    tl.store(out + place, result)


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int64, np.uint64])
def test_uniform_floats_bit_for_bit(dtype: Any) -> None:
    dtype = np.dtype(dtype)
    bits = dtype.itemsize * 8
    edges = [0, 1, 127, 2 ** (bits - 1) - 1, 2 ** (bits - 1), 2**bits - 1, 2 ** (bits - 1) - 65]
    drawn = np.random.default_rng(bits).integers(0, 2**bits, 193, np.dtype(f"u{bits // 8}"))
    x = np.array([*edges, *drawn], drawn.dtype).view(dtype)
    signed = x.view(f"i{bits // 8}")
    scale = np.float32(4.6566127342e-10 if bits == 32 else 1.0842020432385337e-19)
    want = np.where(signed < 0, ~signed, signed).astype(np.float32) * scale
    got = np.array(results(uniform_kernel, x, 200, size=200, dtype=np.float32), np.float32)
    np.testing.assert_array_equal(got, want)
    assert got.min() >= 0
    assert got.max() < 1


@jit
def distributions_kernel(out, seed, N: tl.constexpr):
    place = tl.arange(0, N)
    tl.store(out + place, tl.rand(seed, place))
    tl.store(out + N + place, tl.randn(seed, place))
    u0, u1, u2, u3 = tl.rand4x(seed, place)
    n0, n1, n2, n3 = tl.randn4x(seed, place)
    tl.store(out + 2 * N + place, u0)
    tl.store(out + 3 * N + place, u1)
    tl.store(out + 4 * N + place, u2)
    tl.store(out + 5 * N + place, u3)
    tl.store(out + 6 * N + place, n0)
    tl.store(out + 7 * N + place, n1)
    tl.store(out + 8 * N + place, n2)
    tl.store(out + 9 * N + place, n3)


def test_uniform_and_normal() -> None:
    count = 1000
    got = results(distributions_kernel, 42, count, size=10 * count, dtype=np.float32)
    rand, randn, *rest = np.reshape(np.array(got, np.float32), (10, count))
    words = np.array([words_of(42, o, False) for o in range(count)], np.uint32).view(np.int32)
    uniform = np.where(words < 0, ~words, words).astype(np.float32) * np.float32(4.6566127342e-10)
    np.testing.assert_array_equal(rand, uniform[:, 0])
    np.testing.assert_array_equal(np.array(rest[:4]), uniform.T)
    wide = uniform.astype(np.float64)
    for pair in range(2):
        radius = np.sqrt(-2 * np.log(np.maximum(wide[:, 2 * pair], 1e-7)))
        angle = 2 * math.pi * wide[:, 2 * pair + 1]
        # The angle's rounding to fp32, at most 2.4e-7, times the radius, at most 5.7.
        for part, function in ((0, np.cos), (1, np.sin)):
            want = radius * function(angle)
            np.testing.assert_allclose(rest[4 + 2 * pair + part], want, rtol=1e-6, atol=3e-6)
    np.testing.assert_array_equal(randn, rest[4])


@jit
def zero_kernel(out, u):
    a, b = tl.pair_uniform_to_normal(tl.load(u), tl.load(u + 1))
    tl.store(out, a)
    tl.store(out + 1, b)


def test_a_uniform_number_of_zero_gives_a_finite_normal_one() -> None:
    got = results(zero_kernel, np.zeros(2, np.float32), size=2, dtype=np.float32)
    assert got == [pytest.approx(math.sqrt(-2 * math.log(1e-7)), rel=1e-6), 0]


def test_what_is_refused() -> None:
    @jit
    def of_floats(out):
        tl.store(out, tl.rand(0, tl.zeros((4,), tl.float32)))

    @jit
    def of_bytes(out):
        zero = tl.zeros((), tl.int8)
        tl.store(out, tl.philox(0, zero, zero, zero, zero)[0])

    @jit
    def uniform(out):
        tl.store(out, tl.uint_to_uniform_float(tl.zeros((), tl.int16)))

    @jit
    def impl(out):
        zero = tl.zeros((), tl.int32)
        tl.store(out, tl.philox_impl(zero, zero, zero, zero, zero, zero)[0])

    for kernel, at, message in (
        (
            of_floats,
            "tl.rand(0, tl.zeros((4,), tl.float32))",
            "offsets of random numbers are integers",
        ),
        (
            of_bytes,
            "tl.philox(0, zero, zero, zero, zero)",
            "philox takes counters of 32 or 64 bits",
        ),
        (
            uniform,
            "tl.uint_to_uniform_float(tl.zeros((), tl.int16))",
            "uint_to_uniform_float takes integers of 32 or 64 bits",
        ),
        (
            impl,
            "tl.philox_impl(zero, zero, zero, zero, zero, zero)",
            "philox_impl takes uint32 or uint64",
        ),
    ):
        problem = refused(kernel, "E0119", PTR, at=at)
        assert problem.message == f"static assertion failed: {message}"


@tritium.jit
def compiled_kernel(out, seed, offsets, N: tl.constexpr):
    place = tl.arange(0, N)
    offset = tl.load(offsets + place)
    tl.store(out + place, tl.randint(seed, offset))
    tl.store(out + N + place, tl.rand(seed, offset).to(tl.uint32, bitcast=True))


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_the_cpu_gives_the_same_bits(dtype: Any) -> None:
    offsets = np.random.default_rng(5).integers(-(2**31), 2**31, 1003).astype(dtype)
    out = np.empty((2, 1003), np.uint32)
    compiled_kernel[(1,)](out, 2**35 + 17, offsets, N=1003)
    wide = dtype is np.int64
    words = np.array([words_of(2**35 + 17, int(o), wide)[0] for o in offsets], np.uint32)
    signed = words.view(np.int32)
    np.testing.assert_array_equal(out[0], words)
    np.testing.assert_array_equal(
        out[1].view(np.float32), np.where(signed < 0, ~signed, signed).astype(np.float32) * SCALE
    )
