"""Parts of tiles, single elements, updates, joined and moved tiles: on each executor, as NumPy."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.backends.three_way import agree
from tests.frontend.kernels import jit
from tests.ops.harness import eager
from tests.ops.test_shape import numbered, same, tile

import tritium.language as tl
from tritium.diagnostics import TritiumError
from tritium.ops.spec import given

Index = Any

SLICES: list[tuple[tuple[int, ...], Index]] = [
    ((8,), slice(2, 5)),
    ((8,), slice(None, None, -1)),
    ((80,), slice(-70, None, 3)),
    ((5, 48), (slice(None), slice(None, 24))),
    ((5, 48), (slice(None), slice(24, None))),
    ((5, 48), (slice(None, None, -2), 3)),
    ((5, 48), -1),
    ((5, 48), (2, 5)),
    ((3, 4, 5), (1, None, slice(1, 3), None, 0)),
    ((3, 4, 5), (slice(None), -2)),
    ((3, 1), (slice(100), 0)),
    ((7,), 3),
    ((7,), (3, None, None)),
]


@pytest.mark.parametrize(("shape", "index"), SLICES, ids=str)
def test_known_indices_are_numpy_s(shape: tuple[int, ...], index: Index) -> None:
    x = numbered(*shape)
    with eager():
        same(tile(x)[index], x[index])
        same(tl.tensor.__getitem__(tile(x), index), x[index])


@pytest.mark.parametrize(
    ("shape", "index"), [each for each in SLICES if None not in np.atleast_1d(each[1])], ids=str
)
def test_set_replaces_what_the_index_takes(shape: tuple[int, ...], index: Index) -> None:
    x = numbered(*shape)
    for value in (np.array(-7, np.int32), -numbered(*x[index].shape)):
        if None in (index if isinstance(index, tuple) else ()):
            continue
        want = x.copy()
        want[index] = value
        with eager():
            same(tl.set(tile(x), index, tile(value)), want)
            same(tile(x).set(index, tile(value)), want)


def test_run_time_places() -> None:
    x = numbered(5, 7)
    with eager():
        for i, j in itertools.product(range(-2, 8), range(-2, 9)):
            row, column = min(max(i, 0), 4), min(max(j, 0), 6)
            at, across = tile(np.array(i, np.int32)), tile(np.array(j, np.int64))
            same(tile(x)[at], x[row])
            same(tile(x)[at, across], x[row, column])
            same(tile(x)[1:4, across], x[1:4, column])
            same(tile(x)[at, None, ::-2], x[row, None, ::-2])
            want = x.copy()
            if 0 <= i < 5 and 0 <= j < 7:
                want[i, j] = 99
            same(tl.set(tile(x), (at, across), 99), want)
            want = x.copy()
            if 0 <= i < 5:
                want[i, 2:6:2] = [50, 60]
            new = tile(np.array([50, 60], np.int32))
            same(tl.set(tile(x), (at, tl.slice(2, 6, 2)), new), want)


def test_values_of_set_are_cast_and_broadcast() -> None:
    x = np.zeros((3, 4), np.float32)
    with eager():
        got = tl.set(tile(x), (tl.slice(1, 3), tl.slice(2)), tile(numbered(2)))
        same(got, [[0, 0, 0, 0], [0, 1, 0, 0], [0, 1, 0, 0]])


@pytest.mark.parametrize("shape", [(1,), (5,), (3, 5), (2, 3, 4)])
def test_moved_along_an_axis(shape: tuple[int, ...]) -> None:
    x = numbered(*shape) + 1
    with eager():
        same(tl.flip(tile(x)), np.flip(x, -1))
        for dim in range(-len(shape), len(shape)):
            same(tile(x).flip(dim), np.flip(x, dim))
            for by in (*range(-7, 8), 1000, -1000):
                run_time = tile(np.array(by, np.int32))
                want = np.roll(x, by, dim)
                same(tl.roll(tile(x), by, dim), want)
                same(tl.roll(tile(x), run_time, dim), want)
                want = shifted(x, by, dim)
                same(tl.shift(tile(x), by, -3, dim), want)
                same(tl.shift(tile(x), run_time, -3, dim), want)


def shifted(x: NDArray[Any], by: int, dim: int) -> NDArray[Any]:
    made = np.full_like(x, -3)
    n = x.shape[dim]
    for place in range(n):
        if 0 <= place - by < n:
            np.moveaxis(made, dim, 0)[place] = np.moveaxis(x, dim, 0)[place - by]
    return made


@pytest.mark.parametrize("by", [2**40, -(2**40), 2**63 - 1, -(2**63)])
def test_far_shifts(by: int) -> None:
    x = numbered(6) + 1
    far = tile(np.array(by, np.int64))
    with eager(), np.errstate(over="ignore"):
        same(tl.shift(tile(x), far), np.zeros(6))
        same(tl.roll(tile(x), far), np.roll(x, by % 6))


@pytest.mark.parametrize("by", [5, 2**31, 2**63, 2**63 + 1, 2**64 - 7, 2**64 - 1])
@pytest.mark.parametrize("n", [5, 6, 8])
def test_far_shifts_without_a_sign(by: int, n: int) -> None:
    x = numbered(n) + 1
    far = np.array([by], np.uint64)
    with eager():
        same(tl.shift(tile(x), tile(far[0]), -3), shifted(x, by, 0))
        same(tl.roll(tile(x), tile(far[0])), np.roll(x, by % n))
    agree(moved, out=np.zeros((2, n), np.int32), x=x.astype(np.int32), by=far, N=n)


@jit
def moved(out, x, by, N: tl.constexpr):
    line = tl.arange(0, N)
    tile = tl.load(x + line)
    tl.store(out + line, tl.roll(tile, tl.load(by)))
    tl.store(out + N + line, tl.shift(tile, tl.load(by), -3))


def test_joined() -> None:
    a, b = numbered(3, 5), -numbered(3, 5)
    with eager():
        same(tl.join(tile(a), tile(b)), np.stack([a, b], -1))
        same(tl.join(tile(a), tile(b[0])), np.stack([a, np.broadcast_to(b[0], (3, 5))], -1))
        same(tl.join(tile(a[0, 0]), tile(b[0, 1])), np.array([0, -1]))
        same(tl.interleave(tile(a), tile(b)), np.stack([a, b], -1).reshape(3, 10))
        same(tl.interleave(tile(a[0, 0]), tile(b[0, 1])), np.array([0, -1]))
        left, right = tl.split(tl.join(tile(a), tile(b)))
        same(left, a)
        same(right, b)
        left, right = tile(np.array([7, 8])).split()
        same(left, 7)
        same(right, 8)
        same(tl.cat(tile(a), tile(b)), np.concatenate([a, b]))
        same(tl.cat(tile(a), tile(b), can_reorder=True), np.concatenate([a, b]))
        same(tl.cat(tile(a), tile(b[:, :2]), dim=-1), np.concatenate([a, b[:, :2]], 1))


def test_gather() -> None:
    x = numbered(4, 6) * 3
    for axis in (0, 1, -1):
        index = np.random.default_rng(1).integers(0, 4, (4, 6))
        with eager():
            want = np.take_along_axis(x, index, axis)
            same(tl.gather(tile(x), tile(index), axis), want)
            same(tile(x).gather(tile(index.astype(np.uint8)), axis), want)


def test_expect_zero() -> None:
    x = numbered(4)
    with eager():
        same(tl.expect_zero(tile(x), tile(x > 1)), x)
        with pytest.raises(TritiumError, match="the mask must be int1"):
            tl.expect_zero(tile(x), tile(x))
        with pytest.raises(TritiumError, match="broadcast"):
            tl.expect_zero(tile(x), given(tl.int1, 3))


# ---- in kernels, compiled ------------------------------------------------------------------------


@jit
def swiglu(out, x, M: tl.constexpr, N: tl.constexpr):
    rows, columns = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    acc = tl.load(x + rows * N + columns)
    half = acc[:, : N // 2] * acc[:, N // 2 :]
    tl.store(out + rows * (N // 2) + tl.arange(0, N // 2)[None, :], half)


@pytest.mark.parametrize(("m", "n"), [(5, 6), (16, 64), (3, 160)])
def test_halves_of_a_tile(m: int, n: int) -> None:
    x = np.random.default_rng(0).standard_normal((m, n)).astype(np.float32)
    out = np.zeros((m, n // 2), np.float32)
    got, code = agree(swiglu, out=out, x=x, M=m, N=n)
    np.testing.assert_array_equal(got["out"], x[:, : n // 2] * x[:, n // 2 :])
    assert not code.slow


@jit
def rows_in_turn(out, x, M: tl.constexpr, N: tl.constexpr):
    place = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    acc = tl.load(x + place)
    for i in range(M):
        row = acc[i]
        acc = tl.set(acc, (M - 1 - i, tl.slice(1, N)), row[1:] + acc[i, 0])
        acc = tl.set(acc, (tl.slice(0, M, 2), 0), acc[i, N - 1])
    tl.store(out + place, acc)


@pytest.mark.parametrize(("m", "n"), [(1, 2), (5, 7), (4, 48)])
def test_rows_of_a_carried_tile(m: int, n: int) -> None:
    x = np.random.default_rng(0).integers(-9, 9, (m, n)).astype(np.int32)
    got, _ = agree(rows_in_turn, out=np.zeros((m, n), np.int32), x=x, M=m, N=n)
    want = x.copy()
    for i in range(m):
        want[m - 1 - i, 1:] = want[i, 1:] + want[i, 0]
        want[::2, 0] = want[i, n - 1]
    np.testing.assert_array_equal(got["out"], want)


@jit
def everything(out, x, index, by, N: tl.constexpr, DTYPE: tl.constexpr):
    line = tl.arange(0, N)
    a = tl.load(x + line)
    b = a[::-1] + tl.gather(a, tl.load(index + line), 0)
    pairs = tl.interleave(a, b)
    left, right = tl.split(tl.reshape(pairs, N, 2))
    c = tl.cat(left, right) + tl.cat(tl.roll(a, 1), tl.roll(b, by))
    d = tl.sum(tl.reshape(c, 2, N)[:, 1::2] + 0, axis=0)
    e = tl.shift(c, by, 1) + tl.shift(c, -2) - tl.max(c[1:])
    tl.store(out + tl.arange(0, 2 * N), e.to(DTYPE))
    tl.store(out + 2 * N + tl.arange(0, N // 2), d.to(DTYPE))


@pytest.mark.parametrize("n", [2, 5, 16, 48, 160])
@pytest.mark.parametrize("dtype", [np.int32, np.float32, np.int8])
def test_together(n: int, dtype: type[np.generic]) -> None:
    rng = np.random.default_rng(n)
    x, index = rng.integers(-9, 9, n).astype(dtype), rng.integers(-3, n + 3, n).astype(np.int32)
    out = np.zeros(2 * n + n // 2, dtype)
    got, _ = agree(everything, out=out, x=x, index=index, by=3, N=n, DTYPE=tl.dtype(tl_name(dtype)))
    b = x[::-1] + x[np.clip(index, 0, n - 1)]
    c = np.concatenate([x, b]) + np.concatenate([np.roll(x, 1), np.roll(b, 3)])
    d = c.reshape(2, n)[:, 1::2].sum(0)
    up, down = np.full_like(c, 1), np.zeros_like(c)
    up[3:], down[:-2] = c[:-3], c[2:]
    np.testing.assert_array_equal(got["out"], np.concatenate([up + down - c[1:].max(), d]))


def tl_name(dtype: type[np.generic]) -> str:
    return {"int32": "int32", "float32": "fp32", "int8": "int8"}[np.dtype(dtype).name]


@jit
def masked_part(out, x, n, N: tl.constexpr):
    line = tl.arange(0, 2 * N)
    a = tl.load(x + line, mask=line < n)
    tl.store((out + line)[N:], a[::-1][N:], mask=(line < n)[N:])
    total = tl.sum(tl.load(x + line[:, None] + tl.arange(0, 3)[None, :])[::-2], axis=0)
    tl.store(out + tl.arange(0, 3), total)


@pytest.mark.parametrize("n", [0, 37, 96])
def test_parts_of_pointers_and_masks(n: int) -> None:
    x = np.arange(1, 100, dtype=np.int32)
    got, _ = agree(masked_part, out=np.zeros(96, np.int32), x=x, n=n, N=48)
    a = np.where(np.arange(96) < n, x[:96], 0)
    want = np.where((np.arange(96) >= 48) & (np.arange(96) < n), a[::-1], 0)
    want[:3] = [sum(x[i + k] for i in range(1, 96, 2)) for k in range(3)]
    np.testing.assert_array_equal(got["out"], want)
