"""The surface functions of reductions: types, axes, NaN and the documented order."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st
from tests.ops.harness import eager
from tests.ops.test_shape import same, tile
from tests.ops.tile_oracles import in_order

import tritium.language as tl
from tritium.ir.core import ConcreteValue
from tritium.ir.dtypes import VALUES, DType
from tritium.ir.types import shaped
from tritium.ops import samples
from tritium.ops.spec import given

SUMS = {
    tl.int1: tl.uint32,
    tl.int8: tl.int32,
    tl.int16: tl.int32,
    tl.uint8: tl.uint32,
    tl.uint16: tl.uint32,
}
"""Element types that a sum doesn't keep."""


def known(dtype: DType, *shape: int) -> Any:
    return tl.tensor(ConcreteValue(shaped(dtype, shape), samples.ordinary(dtype, shape).data))


@pytest.mark.parametrize("dtype", [d for d in VALUES if not d.is_fp8()], ids=str)
def test_the_type_of_a_sum(dtype: DType) -> None:
    with eager():
        assert tl.sum(known(dtype, 3, 5), 0).type is shaped(SUMS.get(dtype, dtype), (5,))
        assert tl.sum(known(dtype, 3, 5), 0, dtype=tl.float32).dtype is tl.float32


@pytest.mark.parametrize("dtype", VALUES, ids=str)
def test_the_type_of_a_maximum(dtype: DType) -> None:
    wanted = dtype
    if dtype.bits < 32:
        wanted = tl.float32 if dtype.is_floating() else tl.int32
    with eager():
        assert tl.max(known(dtype, 5), 0).type is wanted
        assert tl.min(known(dtype, 5), 0).type is wanted


@pytest.mark.parametrize("dtype", [tl.int1, tl.int8, tl.bfloat16, tl.float16, tl.uint64], ids=str)
def test_with_indices_the_type_stays(dtype: DType) -> None:
    with eager():
        value, index = tl.max(known(dtype, 5), 0, return_indices=True)
        assert (value.type, index.type) == (dtype, tl.int32)


def test_small_integers_do_not_wrap_in_a_sum() -> None:
    with eager():
        same(tl.sum(tile(np.full(5, 100, np.int8)), 0), 500)
        same(tl.sum(tile(np.full(5, 250, np.uint8)), 0), 1250)
        same(tl.sum(tile(np.full(5, True)), 0), 5)
        same(tl.sum(tile(np.full(2, 2**31 - 1, np.int32)), 0), -2)
        same(tl.sum(tile(np.full(5, 100, np.int8)), 0, dtype=tl.int16), 500)


def test_half_precision_is_summed_in_its_own_type() -> None:
    x = np.full(4096, 1, np.float16)
    with eager():
        assert tl.sum(tile(x), 0).type is tl.float16
        # 64 partials of 64 each: no addition is inexact.
        same(tl.sum(tile(x), 0), np.float16(4096))
        # 4 partials of 1024 each.
        same(tl.sum(tile(x.reshape(4096, 1)), 0), np.float16([4096]))
        # 4 partials of 4096 each stop at 2048, where adding 1 rounds to even.
        x = np.full((16384, 1), 1, np.float16)
        same(tl.sum(tile(x), 0), np.float16([4 * 2048]))
        same(tl.sum(tile(x), 0, dtype=tl.float32), np.float32([16384]))


def test_keep_dims_and_axis_none() -> None:
    x = np.arange(30, dtype=np.int32).reshape(2, 3, 5)
    for name, numpy in (("sum", np.sum), ("max", np.max), ("min", np.min)):
        with eager():
            for axis in (None, 0, 1, 2, -1, -3):
                for keep in (False, True):
                    want = numpy(x, axis=axis, keepdims=keep)
                    same(getattr(tl, name)(tile(x), axis, keep_dims=keep), want)
                    same(getattr(tile(x), name)(axis=axis, keep_dims=keep), want)


def test_reduce_of_one_tile_and_of_a_tuple() -> None:
    x = np.arange(15, dtype=np.int32).reshape(3, 5)

    def both(a: Any, b: Any, c: Any, d: Any) -> tuple[Any, Any]:
        return a + c, tl.maximum(b, d)

    with eager():
        same(tl.reduce(tile(x), 1, lambda a, b: a + b, keep_dims=True), x.sum(1, keepdims=True))
        same(tile(x).reduce(None, lambda a, b: a + b), x.sum())
        for pair in ((tile(x), tile(x)), tl.tuple((tile(x), tile(x)))):
            total, largest = tl.reduce(pair, 0, both)
            same(total, x.sum(0))
            same(largest, x.max(0))
        single = tl.reduce((tile(x),), 0, lambda a, b: a + b)
        assert isinstance(single, tl.tuple)


@pytest.mark.parametrize("extent", [1, 3, 5, 48, 64, 80])
def test_nan_is_dropped_unless_there_is_nothing_else(extent: int) -> None:
    x = np.full(extent, np.nan, np.float32)
    with eager():
        assert math.isnan(tl.max(tile(x), 0).data)
        x[extent // 2] = -7
        same(tl.max(tile(x), 0), np.float32(-7))
        same(tl.min(tile(x), 0), np.float32(-7))
        assert extent == 1 or math.isnan(tl.sum(tile(x), 0).data)


def test_signed_zeros() -> None:
    zeros = np.float32([0.0, -0.0, -0.0])
    with eager():
        assert not np.signbit(tl.max(tile(zeros), 0).data)
        assert np.signbit(tl.min(tile(zeros), 0).data)
        assert not np.signbit(tl.sum(tile(np.float32([-0.0, -0.0])), 0).data)


@for_all(st.integers(1, 300), st.booleans(), st.integers(0, 2**32))
def test_the_order_of_a_sum(extent: int, innermost: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = (rng.standard_normal(extent) * 10.0 ** rng.integers(-6, 6, extent)).astype(np.float32)
    tiled = x[None] if innermost else x[:, None]
    with eager():
        got = tl.sum(tile(tiled), int(innermost)).data.reshape(())
    want = in_order(list(x), innermost, lambda a, b: np.float32(a + b), np.float32(0))
    assert got == want
    exact = math.fsum(map(float, x))
    assert abs(float(got) - exact) <= extent * 2.0**-24 * np.abs(x.astype(np.float64)).sum()


@for_all(st.integers(1, 300), st.booleans())
def test_the_order_of_a_combine_function(extent: int, innermost: bool) -> None:
    """A function that is neither associative nor commutative shows every step."""
    x = np.arange(1, extent + 1, dtype=np.int64)
    tiled = x[None] if innermost else x[:, None]
    with eager():
        got = tl.reduce(tile(tiled), int(innermost), lambda a, b: a * 31 + b * 7 + 1)
    mask = 2**64 - 1
    want = in_order(x.tolist(), innermost, lambda a, b: (a * 31 + b * 7 + 1) & mask)
    assert int(got.data.reshape(())) & mask == want & mask


def test_pointers_are_not_summed() -> None:
    with eager(), pytest.raises(TypeError, match="needs integers or floats"):
        tl.sum(given(tl.pointer_type(tl.int8), 3), 0)
