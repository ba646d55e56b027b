"""The surface functions of sorting, in kernels too: order, stability, values, any extent."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.backends.three_way import agree
from tests.frontend.kernels import jit
from tests.ops.harness import eager
from tests.ops.test_shape import same, tile

import tritium.language as tl


def equal_ones(*shape: int) -> np.ndarray:
    """Numbers with many equal ones."""
    return np.random.default_rng(shape).integers(-9, 9, shape).astype(np.float32)


@pytest.mark.parametrize("extent", [1, 3, 48, 200])
def test_sorts_of_numbers(extent: int) -> None:
    x = equal_ones(3, extent)
    with eager():
        same(tl.sort(tile(x)), np.sort(x))
        same(tl.sort(tile(x), 0), np.sort(x, 0))
        same(tile(x).sort(descending=True), -np.sort(-x))
        same(tl.argsort(tile(x)), np.argsort(x, kind="stable").astype(np.int32))
        downwards = np.argsort(-x, kind="stable").astype(np.int32)
        same(tl.argsort(tile(x), descending=True), downwards)


def test_values_are_sorted_along() -> None:
    x = equal_ones(5, 48)
    number = np.arange(5 * 48, dtype=np.int32).reshape(5, 48)
    places = np.argsort(x, kind="stable")
    with eager():
        keys, moved, squares = tl.sort(tile(x), values=(tile(number), tile(x * x)))
        same(keys, np.sort(x))
        same(moved, np.take_along_axis(number, places, 1))
        same(squares, np.sort(x) ** 2)
        assert len(tl.sort(tile(x), values=tile(number))) == 2


def test_several_infinities_and_nan_among_the_largest() -> None:
    x = np.arange(128, dtype=np.float32)
    x[[5, 17, 90, 100]] = np.inf
    x[[3, 64]] = np.nan
    x[8] = -0.0
    x[7] = 0.0
    with eager():
        largest, places = tl.topk(tile(x), 8, return_indices=True)
        same(places, np.array([3, 64, 5, 17, 90, 100, 127, 126], np.int32))
        same(largest, x[[3, 64, 5, 17, 90, 100, 127, 126]])
        smallest, places = tl.topk(tile(x), 3, descending=False, return_indices=True)
        same(places, np.array([8, 0, 7], np.int32))
        same(smallest, np.array([-0.0, 0.0, 0.0], np.float32))
        same(tl.topk(tile(x), 2), np.array([np.nan, np.nan], np.float32))


def test_a_merge_of_a_bitonic_sequence() -> None:
    x = np.array([1, 4, 9, 8, 6, 3, 2, 0], np.int32)
    with eager():
        same(tl.bitonic_merge(tile(x)), np.sort(x))
        same(tl.bitonic_merge(tile(x), descending=True), np.sort(x)[::-1])


def places_in_order(x: np.ndarray, axis: int, descending: bool) -> np.ndarray:
    """Which element stands at each place: by Python's stable sort of numbers, NaN and signed zeros.

    NaN is the largest, -0.0 is less than +0.0; equal elements keep their order both ways.
    """

    def line(elements: np.ndarray) -> list[int]:
        numbers = [(math.isnan(each), each, math.copysign(1.0, each)) for each in elements.tolist()]
        keys = [(1,) if number[0] else (0, *number[1:]) for number in numbers]
        rank = {key: place for place, key in enumerate(sorted(set(keys)))}
        sign = -1 if descending else 1
        return sorted(range(len(keys)), key=lambda place: sign * rank[keys[place]])

    return np.apply_along_axis(line, axis, x)


@jit
def sorts(x_ptr, out_ptr, place_ptr, M: tl.constexpr, N: tl.constexpr, axis: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + at)
    tl.store(out_ptr + at, tl.sort(x, axis))
    largest, places = tl.sort(x, axis, True, at)
    tl.store(out_ptr + M * N + at, largest + 1)
    tl.store(place_ptr + at, places)
    for step in range(2):
        x = (tl.sort(x, axis) - step).to(x.dtype)
    tl.store(out_ptr + 2 * M * N + at, x)
    if axis == 1:
        most, where = tl.topk(x, (N + 2) // 3, return_indices=True)
        kept = tl.arange(0, M)[:, None] * N + tl.arange(0, (N + 2) // 3)[None, :]
        tl.store(out_ptr + 3 * M * N + kept, most)
        tl.store(place_ptr + M * N + kept, where)


@pytest.mark.parametrize("dtype", [np.float32, np.int16, np.float64, np.uint8], ids=str)
@pytest.mark.parametrize("shape", [(1, 1), (3, 64), (2, 65), (300, 2), (2, 1000)], ids=str)
@pytest.mark.parametrize("axis", [0, 1])
def test_every_executor_sorts_alike(dtype: type, shape: tuple[int, int], axis: int) -> None:
    x = np.random.default_rng(shape).integers(0, 99, shape).astype(dtype)
    if dtype is np.float32:
        x.reshape(-1)[::7] = np.nan
        x.reshape(-1)[1::5] *= -1.5
    out, place = np.zeros((4, *shape), dtype), np.zeros((2, *shape), np.int32)
    given = {"x_ptr": x, "out_ptr": out, "place_ptr": place, "axis": axis}
    got, _ = agree(sorts, **given, M=shape[0], N=shape[1])
    sorted_x, largest, lower, most = got["out_ptr"]
    upwards, downwards = (places_in_order(x, axis, down) for down in (False, True))
    ordered = np.take_along_axis(x, upwards, axis)
    np.testing.assert_array_equal(sorted_x, ordered)
    np.testing.assert_array_equal(sorted_x, np.sort(x, axis))
    one = np.array(1, dtype)
    np.testing.assert_array_equal(largest, np.take_along_axis(x, downwards, axis) + one)
    at = np.arange(x.size).reshape(shape)
    np.testing.assert_array_equal(got["place_ptr"][0], np.take_along_axis(at, downwards, axis))
    np.testing.assert_array_equal(lower, ordered - one)
    if axis == 1:
        kept = (shape[1] + 2) // 3
        first = places_in_order(ordered - one, axis, True)[:, :kept]
        np.testing.assert_array_equal(got["place_ptr"][1][:, :kept], first)
        wanted = np.take_along_axis(ordered - one, first, 1)
        np.testing.assert_array_equal(most[:, :kept], wanted)
