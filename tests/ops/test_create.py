"""Tiles from constants: what ``full`` and ``arange`` accept."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from tests.ops.harness import eager
from tests.ops.test_shape import same, tile

import tritium.language as tl
from tritium.diagnostics import TritiumError
from tritium.ir.dtypes import VALUES, DType
from tritium.ops.codecs import decode


@pytest.mark.parametrize("dtype", VALUES, ids=str)
def test_full_of_every_type(dtype: DType) -> None:
    with eager():
        made = tl.full((3, 5), 1, dtype)
        assert made.type is tl.block_type(dtype, (3, 5))
        numbers = decode(made.data, dtype) if dtype.is_floating() else made.data
        assert (numbers == 1).all()


@pytest.mark.parametrize(
    ("value", "dtype", "want"),
    [
        (300, tl.int8, 44),
        (-1, tl.int64, -1),
        (0.0, tl.int32, 0),
        (2.0, tl.uint8, 2),
        (True, tl.float32, 1.0),
        (7, tl.float16, 7.0),
        (0.1, tl.float64, 0.1),
        (math.inf, tl.float32, math.inf),
        (tl.constexpr(3), tl.int32, 3),
        (2**64 - 1, tl.uint64, 2**64 - 1),
        (np.float32(2.5), tl.float32, 2.5),
        (np.int64(-3), tl.int32, -3),
    ],
    ids=str,
)
def test_numbers(value: Any, dtype: DType, want: Any) -> None:
    with eager():
        same(tl.full((2,), value, dtype), np.full(2, want, dtype.numpy))
        same(tl.full((), value, dtype), np.asarray(want, dtype.numpy))


def test_a_tile_of_one_element_is_cast() -> None:
    with eager():
        same(tl.full([2, 3], tile(np.float32([2.7])), tl.int32), np.full((2, 3), 2))
        same(tl.full((2,), tile(np.asarray(-1, np.int32)), tl.uint8), np.uint8([255, 255]))


def test_shapes_may_hold_constants() -> None:
    with eager():
        for shape in ((2, 3), [2, 3], (tl.constexpr(2), 3), tl.tuple((2, tl.constexpr(3)))):
            assert tl.full(shape, 0, tl.int8).type.shape == (2, 3)
        assert [n.value for n in tl.full((2, 3), 0, tl.int8).shape] == [2, 3]


@pytest.mark.parametrize(("start", "end"), [(0, 1), (3, 51), (-80, 0), (-3, 2)])
def test_arange_of_any_length(start: int, end: int) -> None:
    with eager():
        same(tl.arange(start, end), np.arange(start, end, dtype=np.int32))
        same(tl.arange(tl.constexpr(start), tl.constexpr(end)), np.arange(start, end))


def test_bounds_of_numpy_are_to_be_converted() -> None:
    with eager(), pytest.raises(TritiumError) as caught:
        tl.arange(0, np.int64(4))
    assert (caught.value.code, caught.value.help) == ("E0204", "convert it with int(...)")


def test_the_largest_tile() -> None:
    with eager():
        assert tl.arange(0, 1 << 20).type.shape == (1 << 20,)
        assert tl.full((1024, 1024), 0, tl.int8).numel.value == 1 << 20
