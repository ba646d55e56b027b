"""The library functions, compiled and in eager mode, against NumPy and Python."""

from __future__ import annotations

import numpy as np
import pytest
from tests.frontend.kernels import PTR, jit, refused, results

import tritium.language as tl

SHAPES = [(1,), (3,), (5,), (48,), (80,), (200,)]
"""Extents of one axis."""


@jit
def cdiv_kernel(out, x, y):
    tl.store(out, tl.cdiv(x, y))
    tl.store(out + 1, x.cdiv(y))
    # Constants are divided by Python's rules, and may be a shape.
    tl.store(out + 2 + tl.arange(0, tl.cdiv(7, 2)), 1)


@pytest.mark.parametrize(("x", "y"), [(0, 4), (1, 4), (4, 4), (5, 4), (1023, 128), (1025, 128)])
def test_cdiv(x: int, y: int) -> None:
    assert results(cdiv_kernel, x, y, size=6) == [-(-x // y), -(-x // y), 1, 1, 1, 1]


@jit
def zeros_kernel(out, dtype: tl.constexpr):
    x = tl.zeros((3, 5), dtype)
    like = tl.zeros_like(x + 1)
    place = tl.arange(0, 3)[:, None] * 5 + tl.arange(0, 5)[None, :]
    tl.store(out + place, x)
    tl.store(out + 15 + place, like)
    tl.store(out + 30, tl.zeros((), dtype))
    tl.static_assert(like.dtype == x.dtype)


@pytest.mark.parametrize("dtype", [tl.int8, tl.float16, tl.float64], ids=str)
def test_zeros(dtype: tl.dtype) -> None:
    @jit
    def kernel(out, dtype: tl.constexpr):
        tl.store(out + tl.arange(0, 31), 7)
        zeros_kernel(out, dtype)

    assert results(kernel, dtype, size=31, dtype=dtype.numpy) == [0] * 31


@jit
def votes_kernel(out, x, M: tl.constexpr, N: tl.constexpr):
    a = tl.load(x + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    columns = tl.arange(0, N)
    tl.store(out + columns, tl.any(a, 0))
    tl.store(out + N + columns, a.all(0))
    tl.store(out + 2 * N + columns, tl.count(a, axis=0))
    tl.store(out + 3 * N, tl.any(a) + 2 * tl.all(a, None).to(tl.int32) + 4 * tl.count(a == 0))
    tl.static_assert(tl.any(a, 0).dtype == tl.int1)
    tl.static_assert(tl.count(a, 0, keep_dims=True).dtype == tl.int32)


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.bool_], ids=str)
@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (80, 3)], ids=str)
def test_votes(shape: tuple[int, int], dtype: type) -> None:
    x = (np.random.default_rng(shape).random(shape) < 0.8).astype(dtype)
    wanted = [*(x != 0).any(0), *(x != 0).all(0), *np.count_nonzero(x, 0)]
    wanted.append(x.any() + 2 * int(x.all()) + 4 * np.count_nonzero(x == 0))
    size = 3 * shape[1] + 1
    assert results(votes_kernel, x, *shape, size=size) == [int(each) for each in wanted]


@jit
def softmax_kernel(out, x, M: tl.constexpr, N: tl.constexpr, dim: tl.constexpr):
    place = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out + place, tl.softmax(tl.load(x + place), dim))


@pytest.mark.parametrize("dim", [None, 0, 1, -1])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_softmax(dim: int | None, dtype: type[np.floating]) -> None:
    x = (np.random.default_rng(1).standard_normal((5, 48)) * 20).astype(dtype)
    axis = 0 if dim is None else dim
    kind = np.float64 if dtype is np.float64 else np.float32
    # exp magnifies the rounding of the difference, which is the function's own.
    powers = np.exp((x.astype(kind) - x.max(axis, keepdims=True).astype(kind)).astype(np.float64))
    want = powers / powers.sum(axis, keepdims=True)
    got = results(softmax_kernel, x, 5, 48, dim, size=240, dtype=kind)
    np.testing.assert_allclose(np.reshape(got, (5, 48)), want, rtol=1e-6, atol=1e-44)


@jit
def sigmoid_kernel(out, x, N: tl.constexpr):
    place = tl.arange(0, N)
    tl.store(out + place, tl.load(x + place).sigmoid())


def test_sigmoid() -> None:
    x = np.array([-200, -30, -1, -0.0, 0, 0.5, 1, 30, 200], np.float32)
    got = results(sigmoid_kernel, x, 9, size=9, dtype=np.float32)
    with np.errstate(over="ignore"):
        want = 1 / (1 + np.exp(-x.astype(np.float64)))
    np.testing.assert_allclose(got, want, rtol=3e-7, atol=1e-44)


@jit
def bitwise_kernel(out, x, M: tl.constexpr, N: tl.constexpr, axis: tl.constexpr):
    place = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tile = tl.load(x + place)
    kept = tl.xor_sum(tile, axis, keep_dims=True)
    tl.static_assert(kept.shape[axis] == 1)
    rest: tl.constexpr = N if axis == 0 else M
    tl.store(out + tl.arange(0, rest), tl.xor_sum(tile, axis))
    tl.store(out + rest + tl.arange(0, rest), tile.reduce_or(axis))
    tl.store(out + 2 * rest, tl.xor_sum(tile))


@pytest.mark.parametrize("axis", [0, 1])
def test_xor_sum_and_reduce_or(axis: int) -> None:
    x = np.random.default_rng(2).integers(-(2**31), 2**31, (3, 80), dtype=np.int32)
    got = results(bitwise_kernel, x, 3, 80, axis, size=2 * x.shape[1 - axis] + 1)
    xor = np.bitwise_xor.reduce
    assert got == [*xor(x, axis), *np.bitwise_or.reduce(x, axis), xor(x, None)]


def test_bitwise_sums_take_integers() -> None:
    @jit
    def kernel(out):
        tl.store(out, tl.xor_sum(tl.zeros((4,), tl.float32), 0))

    # The library's own lines are hidden: the place is the call.
    problem = refused(kernel, "E0119", PTR, at="tl.xor_sum(tl.zeros((4,), tl.float32), 0)")
    assert problem.message == "static assertion failed: xor_sum takes integers"


@jit
def swizzle_kernel(out, i, j, size_i, size_j, size_g):
    row, column = tl.swizzle2d(i, j, size_i, size_j, size_g)
    tl.store(out, row)
    tl.store(out + 1, column)


@pytest.mark.parametrize(("size_i", "size_j", "size_g"), [(4, 4, 2), (5, 3, 2), (3, 2, 4)])
def test_swizzle2d(size_i: int, size_j: int, size_g: int) -> None:
    walked = [
        (first + row, column)
        for first in range(0, size_i, size_g)
        for column in range(size_j)
        for row in range(min(size_g, size_i - first))
    ]
    got = [
        tuple(results(swizzle_kernel, i, j, size_i, size_j, size_g, size=2))
        for i in range(size_i)
        for j in range(size_j)
    ]
    assert got == walked


# ---- reductions as users write them --------------------------------------------------------------


@jit
def extremes_kernel(
    out, x, M: tl.constexpr, N: tl.constexpr, axis: tl.constexpr, left: tl.constexpr
):
    place = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tile = tl.load(x + place)
    rest: tl.constexpr = N if axis == 0 else M
    line = tl.arange(0, rest)
    largest, at = tl.max(tile, axis, return_indices=True, return_indices_tie_break_left=left)
    tl.store(out + line, largest)
    tl.store(out + rest + line, at)
    smallest, at = tile.min(axis, return_indices=True, return_indices_tie_break_left=left)
    tl.store(out + 2 * rest + line, smallest)
    tl.store(out + 3 * rest + line, at)
    tl.store(out + 4 * rest + line, tl.argmax(tile, axis, tie_break_left=left))
    tl.store(out + 5 * rest + line, tile.argmin(axis, tie_break_left=left))
    tl.store(out + 6 * rest + line, tl.max(tile, axis))
    tl.store(out + 7 * rest + line, tl.min(tile, axis))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(("M", "N"), [(3, 80), (80, 3), (1, 5), (7, 1)])
def test_extremes_with_many_ties(axis: int, M: int, N: int) -> None:
    x = np.random.default_rng(3).integers(-4, 4, (M, N), dtype=np.int32)
    rest = x.shape[1 - axis]
    got = np.reshape(results(extremes_kernel, x, M, N, axis, True, size=8 * rest), (8, rest))
    want = [x.max(axis), x.argmax(axis), x.min(axis), x.argmin(axis), x.argmax(axis)]
    want += [x.argmin(axis), x.max(axis), x.min(axis)]
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("axis", [0, 1])
def test_extremes_without_a_side_for_ties_point_at_one_of_them(axis: int) -> None:
    x = np.random.default_rng(4).integers(-4, 4, (5, 80), dtype=np.int32)
    rest = x.shape[1 - axis]
    got = np.reshape(results(extremes_kernel, x, 5, 80, axis, False, size=8 * rest), (8, rest))
    for value, index in (got[0], got[1]), (got[2], got[3]), (got[0], got[4]), (got[2], got[5]):
        found = np.take_along_axis(x, np.expand_dims(index, axis), axis)
        np.testing.assert_array_equal(found.reshape(-1), value)


@jit
def welford(mean1, m1, w1, mean2, m2, w2):
    w = w1 + w2
    share = tl.where(w == 0, 0.0, w2 / w)
    delta = mean2 - mean1
    return mean1 + delta * share, m1 + m2 + delta * delta * w1 * share, w


@jit
def variance_kernel(out, x, N: tl.constexpr):
    place = tl.arange(0, N)
    tile = tl.load(x + place)
    zeros = tl.zeros_like(tile)
    mean, m2, weight = tl.reduce((tile, zeros, zeros + 1.0), 0, welford)
    tl.store(out, mean)
    tl.store(out + 1, m2 / weight)


@pytest.mark.parametrize("shape", SHAPES)
def test_welford(shape: tuple[int]) -> None:
    x = np.random.default_rng(5).standard_normal(shape).astype(np.float32) + 100
    mean, variance = results(variance_kernel, x, shape[0], size=2, dtype=np.float32)
    assert mean == pytest.approx(x.astype(np.float64).mean(), rel=1e-6)
    assert variance == pytest.approx(x.astype(np.float64).var(), rel=1e-4, abs=1e-9)


def test_a_combine_function_that_changes_a_type_is_refused() -> None:
    @jit
    def combine(a, b):
        return a > b

    @jit
    def kernel(out):
        tl.store(out, tl.reduce(tl.arange(0, 8), 0, combine))

    problem = refused(kernel, "E0206", PTR, at="combine")
    assert "returns int1, its inputs are int32" in problem.message


def test_a_combine_function_that_branches_is_refused() -> None:
    @jit
    def combine(a, b):
        if a > b:
            b = a
        return b

    @jit
    def kernel(out):
        tl.store(out, tl.reduce(tl.arange(0, 8), 0, combine))

    problem = refused(kernel, "E0206", PTR, at="combine")
    assert problem.help == "use tl.where"
