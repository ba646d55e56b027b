"""The first few elements of a line, selected instead of sorted: against Python's stable sort."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tests.backends.three_way import agree, narrow_cpu, run_cpu
from tests.frontend.kernels import jit

import tritium.language as tl
from tritium.backends.cpu.selections import FEW, SELECTED, is_selected

DTYPES = (
    *(np.bool_, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64),
    *(np.float16, ml_dtypes.bfloat16, np.float32, np.float64, ml_dtypes.float8_e4m3fn),
)


@jit
def first(
    x_ptr, out_ptr, place_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
    axis: tl.constexpr, down: tl.constexpr,
):  # fmt: skip
    x = tl.load(x_ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    most, where = tl.topk(x, K, axis, down, True)
    if axis == 1:
        at = tl.arange(0, M)[:, None] * K + tl.arange(0, K)[None, :]
    else:
        at = tl.arange(0, K)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out_ptr + at, most)
    tl.store(place_ptr + at, where)


def before(value: float) -> tuple[bool, float, bool]:
    """Where a number stands: NaN last, -0.0 before +0.0."""
    if math.isnan(value):
        return True, 0.0, True
    return False, value, math.copysign(1.0, value) > 0


def expected(x: np.ndarray, k: int, axis: int, down: bool) -> np.ndarray:
    """The places of the first ``k`` by Python's sort, which is stable in both directions."""
    lines = np.moveaxis(x, axis, -1)
    found = np.empty((*lines.shape[:-1], k), np.int32)
    integers = x.dtype.kind in "biu"
    for row, line in enumerate(lines):
        values = [int(v) if integers else before(float(v)) for v in line]
        found[row] = sorted(range(len(values)), key=values.__getitem__, reverse=down)[:k]
    return np.moveaxis(found, -1, axis)


def arguments(x: np.ndarray, k: int, axis: int, down: bool) -> dict[str, Any]:
    shape = (x.shape[0], k) if axis else (k, x.shape[1])
    out, place = np.zeros(shape, x.dtype), np.zeros(shape, np.int32)
    sizes = {"M": x.shape[0], "N": x.shape[1], "K": k, "axis": axis, "down": down}
    return {"x_ptr": x, "out_ptr": out, "place_ptr": place, **sizes}


def check(x: np.ndarray, got: dict[str, np.ndarray], k: int, axis: int, down: bool) -> None:
    places = expected(x, k, axis, down)
    np.testing.assert_array_equal(got["place_ptr"], places)
    kept = np.take_along_axis(x, places, axis)
    unsigned = f"u{x.itemsize}"
    np.testing.assert_array_equal(got["out_ptr"].view(unsigned), kept.view(unsigned))


def lines_of(dtype: Any, shape: tuple[int, int]) -> np.ndarray:
    """Few different numbers, the least and the greatest among them; NaN, infinities and zeros."""
    data = np.random.default_rng(shape)
    if dtype is np.bool_:
        return data.integers(0, 2, shape).astype(bool)
    if np.dtype(dtype).kind in "iu":
        limits = np.iinfo(dtype)
        some = [limits.min, limits.max, *range(0, 99, 7)]
    else:
        some = [0.0, -0.0, math.nan, -math.nan, *np.arange(-9, 9, 1.5)]
        some += [] if dtype is ml_dtypes.float8_e4m3fn else [math.inf, -math.inf]
    return np.array(some, dtype)[data.integers(0, len(some), shape)]


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
@pytest.mark.parametrize("down", [False, True], ids=["least", "greatest"])
def test_every_type(dtype: Any, down: bool) -> None:
    x = lines_of(dtype, (3, 150))
    assert is_selected(9, 150)
    got, _ = agree(first, **arguments(x, 9, 1, down))
    check(x, got, 9, 1, down)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(
    ("extent", "k"),
    [(4, 1), (8, 2), (16, 4), (17, 4), (33, 1), (64, 16), (100, 25), (128, 32), (1000, 31)],
)
def test_every_extent(extent: int, k: int, axis: int) -> None:
    assert is_selected(k, extent)
    x = lines_of(np.float32, (2, extent) if axis else (extent, 2))
    for cpu in (None, narrow_cpu()):
        given = arguments(x, k, axis, True)
        got, _ = run_cpu(first, given, (1,), cpu=cpu)
        check(x, got, k, axis, True)


@pytest.mark.parametrize("order", ["rising", "falling", "equal", "one at the end"])
def test_lines_in_an_order(order: str) -> None:
    """Every element gets into the list, none, and only the last."""
    x = np.sort(np.random.default_rng(0).standard_normal((1, 500), np.float32), 1)
    if order == "falling":
        x = np.ascontiguousarray(x[:, ::-1])
    elif order != "rising":
        x[:] = 1
        x[0, -1] += order != "equal"
    got, _ = run_cpu(first, arguments(x, 32, 1, True), (1,))
    check(x, got, 32, 1, True)


def test_longer_lists_are_cut_from_the_sorted_line() -> None:
    assert not is_selected(SELECTED + 1, 1 << 20)
    assert not is_selected(8, 8 * FEW - 1)
    x = lines_of(np.int16, (2, 300))
    for k in (SELECTED + 1, 300):
        got, _ = run_cpu(first, arguments(x, k, 1, False), (1,))
        check(x, got, k, 1, False)
