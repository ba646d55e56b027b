"""The surface functions of scans: types, axes, direction, exclusive ones, in kernels too."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from tests.backends.three_way import agree
from tests.frontend.kernels import jit
from tests.ops.harness import eager
from tests.ops.test_reduce import SUMS, known
from tests.ops.test_shape import same, tile

import tritium.language as tl
from tritium.ir.dtypes import VALUES, DType
from tritium.ir.types import shaped


@pytest.mark.parametrize("dtype", VALUES, ids=str)
def test_types_of_running_sums_and_products(dtype: DType) -> None:
    wanted = shaped(SUMS.get(dtype, dtype), (3, 5))
    with eager():
        assert tl.cumsum(known(dtype, 3, 5), 1).type is wanted
        assert tl.cumprod(known(dtype, 3, 5)).type is wanted
        assert known(dtype, 3, 5).cumsum(0, dtype=tl.float64).dtype is tl.float64


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_running_sums_and_products_of_integers(axis: int) -> None:
    x = np.random.default_rng(3).integers(-9, 9, (7, 5)).astype(np.int8)
    wide = x.astype(np.int32)
    with eager():
        same(tl.cumsum(tile(x), axis), np.cumsum(wide, axis, np.int32))
        same(tile(x).cumprod(axis), np.cumprod(wide, axis, np.int32))
        backwards = np.flip(np.cumsum(np.flip(wide, axis), axis, np.int32), axis)
        same(tl.cumsum(tile(x), axis, reverse=True), backwards)
        before = np.cumsum(wide, axis, np.int32) - wide
        same(tl.cumsum(tile(x), axis, exclusive=True), before)


def test_exclusive_scans_start_with_what_is_given() -> None:
    x = np.array([3, 1, 4, 1, 5], np.int32)
    with eager():
        found = tl.associative_scan(tile(x), 0, lambda a, b: tl.maximum(a, b), exclusive=-7)
        same(found, np.array([-7, 3, 3, 4, 4], np.int32))
        found = tl.cumprod(tile(x), 0, reverse=True, exclusive=True)
        same(found, np.array([20, 20, 5, 5, 1], np.int32))


def test_a_float_scan_is_a_left_fold() -> None:
    x = np.random.default_rng(5).standard_normal(200).astype(np.float32)
    total, wanted = np.float32(0), []
    for position, each in enumerate(x):
        total = each if position == 0 else np.float32(total + each)
        wanted.append(total)
    with eager():
        same(tl.cumsum(tile(x), 0), np.array(wanted, np.float32))


@jit
def segments(left, left_start, right, right_start):
    """Sums that begin anew where a segment starts."""
    return tl.where(right_start != 0, right, left + right), left_start | right_start


@jit
def product(a, b):
    return a * b


def by_lines(x: np.ndarray, starts: np.ndarray, axis: int) -> np.ndarray:
    """Sums along an axis that begin anew at each start, in fp32; -x before the first start."""
    made = np.empty_like(x)
    lines, marks, outs = (np.moveaxis(each, axis, -1) for each in (x, starts, made))
    for line in np.ndindex(*lines.shape[:-1]):
        total, started = np.float32(0), False
        for place, (each, start) in enumerate(zip(lines[line], marks[line])):
            total = each if start or place == 0 else np.float32(total + each)
            started = started or bool(start)
            outs[line][place] = total if started else -each
    return made


@jit
def scans(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, axis: tl.constexpr, back: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + at)
    tl.store(out_ptr + at, tl.cumsum(x, axis, reverse=back))
    starts = (at % 3 == 0).to(tl.int32)
    total, started = tl.associative_scan((x, starts), axis, segments, back)
    tl.store(out_ptr + M * N + at, tl.where(started != 0, total, -x))
    last = x.associative_scan(axis, product, reverse=back, exclusive=x.sum())
    for _trip in range(2):
        last = tl.cumsum(last * 0.5, axis, exclusive=True)
    tl.store(out_ptr + 2 * M * N + at, last)


@pytest.mark.parametrize("shape", [(1, 1), (3, 48), (17, 5), (80, 3), (1, 200), (9, 1)], ids=str)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("back", [False, True])
def test_every_executor_scans_alike(shape: tuple[int, int], axis: int, back: bool) -> None:
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    out = np.zeros((3, *shape), np.float32)
    given = {"x_ptr": x, "out_ptr": out, "axis": axis, "back": back}
    got, _ = agree(scans, **given, M=shape[0], N=shape[1])
    sums, segment_sums, products = got["out_ptr"]
    exact = x.astype(np.float64)
    along = functools.partial(np.flip, axis=axis) if back else np.asarray
    np.testing.assert_allclose(sums, along(along(exact).cumsum(axis)), rtol=1e-4, atol=1e-4)
    starts = np.arange(x.size).reshape(shape) % 3 == 0
    wanted = along(by_lines(along(x), along(starts), axis))
    np.testing.assert_array_equal(segment_sums, wanted)
    # Exclusive: what stands before an element, and the given value where nothing does.
    factors = np.moveaxis(along(exact), axis, 0)
    first = np.full((1, *factors.shape[1:]), exact.sum())
    before = np.concatenate([first, np.cumprod(factors, 0)[:-1]])
    last = along(np.moveaxis(before, 0, axis))
    for _ in range(2):
        last = (last / 2).cumsum(axis) - last / 2
    scale = np.abs(last).max() + np.abs(before).max()
    np.testing.assert_allclose(products, last, rtol=1e-4, atol=2e-5 * scale)


@jit
def element_of_the_sum(a, b):
    tl.static_assert(len(a.shape) == 0 and b.numel == 1)
    return (a + b)[0]


@jit
def scalars(x_ptr, out_ptr):
    at = tl.arange(0, 3)[:, None] * 4 + tl.arange(0, 4)[None, :]
    x = tl.load(x_ptr + at)
    tl.store(out_ptr + at, tl.associative_scan(x, 1, element_of_the_sum))
    tl.store(out_ptr + 12 + tl.arange(0, 4), tl.reduce(x, 0, element_of_the_sum))


def test_functions_of_scalars_see_scalars_on_every_executor() -> None:
    x = np.arange(12, dtype=np.int32).reshape(3, 4)
    got, _ = agree(scalars, x_ptr=x, out_ptr=np.zeros(16, np.int32))
    wanted = [*x.cumsum(1).ravel(), *x.sum(0)]
    np.testing.assert_array_equal(got["out_ptr"], wanted)
