"""Types of binary operations: Triton's table, entry by entry, and what constants become."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.ops.harness import eager

from tritium.diagnostics import TritiumError
from tritium.ir.dtypes import (
    ALL,
    FLOATS8,
    INTEGERS,
    VALUES,
    DType,
    bfloat16,
    float8e4nv,
    float8e5,
    float16,
    float32,
    float64,
    int1,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from tritium.ir.types import PointerType
from tritium.ops import arith, select
from tritium.ops.constants import constant_dtype, to_tensor
from tritium.ops.constexpr import constexpr
from tritium.ops.spec import given
from tritium.ops.tile import Tile


@pytest.fixture(autouse=True)
def tracer() -> Iterator[None]:
    with eager():
        yield


def type_of(value: Any) -> Any:
    assert isinstance(value, Tile)
    return value.dtype


def code_of(attempt: Any) -> str:
    with pytest.raises(TritiumError) as caught:
        attempt()
    return caught.value.code


TABLE: list[tuple[DType, DType, DType]] = [
    (float64, int1, float64),
    (float64, float16, float64),
    (float32, int64, float32),
    (float32, bfloat16, float32),
    (float32, float8e5, float32),
    (float16, int64, float16),
    (float16, bfloat16, float16),
    (float16, float8e4nv, float16),
    (bfloat16, bfloat16, bfloat16),
    (bfloat16, int8, float32),
    (bfloat16, int1, float32),
    (bfloat16, float8e5, float32),
    (float8e5, float8e5, float8e5),
    (float8e5, float8e4nv, float16),
    (int8, int32, int32),
    (uint8, uint64, uint64),
    (int8, uint8, uint8),
    (int32, uint32, uint32),
    (int64, uint32, int64),
    (int16, uint8, int16),
    (int8, uint16, uint16),
    (int64, uint64, uint64),
    (int1, int8, int8),
    (int1, uint8, uint8),
    (int1, int1, int1),
]


@pytest.mark.parametrize(("left", "right", "want"), TABLE, ids=str)
def test_table(left: DType, right: DType, want: DType) -> None:
    assert type_of(given(left) + given(right)) is want
    assert type_of(given(right) * given(left)) is want
    assert type_of(select.where(given(int1), given(left), given(right))) is want


def test_addition_commutes_in_type() -> None:
    for left, right in itertools.product(VALUES, VALUES):
        if left.is_fp8() != right.is_fp8() and left.is_int() | right.is_int():
            assert code_of(lambda: given(left) + given(right)) == "E0201"  # noqa: B023
        else:
            assert type_of(given(left) + given(right)) is type_of(given(right) + given(left))


@pytest.mark.parametrize("divide", [operator.truediv, operator.mod], ids=["/", "%"])
@pytest.mark.parametrize("dtype", [float16, bfloat16, float32, *FLOATS8], ids=str)
def test_division_of_floats_is_fp32(divide: Any, dtype: DType) -> None:
    assert type_of(divide(given(dtype), given(dtype))) is float32
    assert type_of(divide(given(dtype), 2)) is float32
    assert type_of(divide(2.0, given(dtype))) is float32
    assert type_of(divide(given(dtype), given(float64))) is float64


def test_integer_division() -> None:
    assert type_of(given(int64) / given(int64)) is float32
    assert type_of(given(int8) / 3) is float32
    assert type_of(given(int32) // given(int8)) is int32
    assert type_of(given(uint8) % given(uint16)) is uint16
    assert type_of(given(uint32) // 2) is uint32
    for divide in (operator.truediv, operator.floordiv, operator.mod):
        assert code_of(lambda: divide(given(int32), given(uint32))) == "E0201"  # noqa: B023
        # A constant that takes part is an int32 beside int1, an unsigned type.
        assert code_of(lambda: divide(given(int1), 2)) == "E0201"  # noqa: B023


@pytest.mark.parametrize(
    ("tile", "number", "want"),
    [
        (int8, 1, int8),
        (int8, True, int8),
        (uint64, 2**64 - 1, uint64),
        (int1, True, int1),
        (int1, 1, int32),
        (int1, 2**31, uint32),
        (int1, -(2**31) - 1, int64),
        (int1, 2**63, uint64),
        (int32, 1.5, float32),
        (int64, 0.0, float32),
        (int32, math.inf, float32),
        (int32, math.nan, float32),
        (int32, 1e-40, float64),
        (int32, 1e39, float64),
        (float16, 1.5, float16),
        (float16, 100000, float16),
        (bfloat16, 2, bfloat16),
        (float8e5, 2.0, float8e5),
        (float32, 1e300, float32),
        (float64, 1, float64),
    ],
    ids=str,
)
def test_beside_a_number(tile: DType, number: Any, want: DType) -> None:
    assert type_of(given(tile) + number) is want
    assert type_of(number - given(tile)) is want
    assert type_of(given(tile, 4) * constexpr(number)) is want
    assert type_of(select.where(given(int1, 4), number, given(tile))) is want


def test_fp64_tiny_constant() -> None:
    assert type_of(given(int32) + 1e-40) is float64
    assert type_of(given(float32) + 1e-40) is float32


@pytest.mark.parametrize(
    ("tile", "number"),
    [(int8, 128), (int8, -129), (int32, 2**31), (uint8, -1), (uint8, 256), (int64, 2**63)],
    ids=str,
)
def test_numbers_that_do_not_fit(tile: DType, number: int) -> None:
    for combine in (operator.add, operator.lt, operator.and_, operator.truediv):
        assert code_of(lambda: combine(given(tile), number)) == "E0203"  # noqa: B023
    assert type_of(given(uint8) - 1) is uint8


@pytest.mark.parametrize(
    ("value", "want"),
    [
        (True, int1),
        (0, int32),
        (-(2**31), int32),
        (2**31, uint32),
        (2**32 - 1, uint32),
        (2**32, int64),
        (-(2**31) - 1, int64),
        (2**63, uint64),
        (0.0, float32),
        (-0.0, float32),
        (1.0, float32),
        (2.0**-126, float32),
        (2.0**-127, float64),
        (3.4028234e38, float32),
        (3.5e38, float64),
        (math.inf, float32),
        (math.nan, float32),
    ],
)
def test_a_number_alone(value: Any, want: DType) -> None:
    assert constant_dtype(value) is want
    tile = to_tensor(constexpr(value))
    assert tile.dtype is want
    assert np.array_equal(tile.data, np.asarray(value, want.numpy), equal_nan=want.is_floating())


def test_a_number_that_no_type_holds() -> None:
    assert code_of(lambda: to_tensor(2**64)) == "E0203"
    assert code_of(lambda: to_tensor(-(2**63) - 1)) == "E0203"
    assert code_of(lambda: to_tensor("1")) == "E0210"


def test_numpy_scalars_are_numbers() -> None:
    assert type_of(given(int8) + np.int64(1)) is int8
    assert type_of(to_tensor(np.float32(1.5))) is float32


def test_two_constants_are_python() -> None:
    assert isinstance(arith.add(2, constexpr(3)), constexpr)
    assert arith.sub(2, 3).value == -1
    assert (constexpr(-7) // 2).value == -4


def test_extrema_take_constants_as_tiles() -> None:
    """Triton makes tensors of them first: 0.0 is fp32 there, and so is the result."""
    assert type_of(arith.maximum(given(float16), 0.0)) is float32
    assert type_of(arith.minimum(given(bfloat16), given(bfloat16))) is bfloat16
    assert type_of(arith.maximum(given(int8), 0)) is int32
    assert type_of(arith.clamp(given(float32), 0.0, 1)) is float32
    assert type_of(arith.maximum(1, 2)) is int32


def test_shapes_broadcast() -> None:
    made = given(int32, 3, 1) + given(int8, 4)
    assert made.type.shape == (3, 4)
    assert (given(int32, 3, 4) < 0).type.shape == (3, 4)
    assert (given(int32) + given(float32, 2)).type.shape == (2,)
    three = select.where(given(int1, 4, 1, 1), given(int8, 3, 1), given(int8, 2))
    assert three.type.shape == (4, 3, 2)
    with pytest.raises(TritiumError) as caught:
        given(int32, 3, 4) + given(int32, 3)
    assert caught.value.code == "E0202"
    assert caught.value.argument == "right"


def test_pointers() -> None:
    pointer = PointerType(float32)
    assert type_of(given(pointer, 4) + given(int64)) is pointer
    assert type_of(3 + given(pointer)) is pointer
    assert type_of(given(pointer) - given(uint8)) is pointer
    for attempt in (
        lambda: given(pointer) - given(pointer),
        lambda: given(int32) - given(pointer),
        lambda: given(pointer) + given(float32),
        lambda: given(pointer) == given(pointer),
        lambda: given(pointer) < 0,
        lambda: given(pointer) & 1,
        lambda: given(pointer) // 2,
        lambda: select.where(given(int1), given(pointer), given(PointerType(int8))),
    ):
        assert code_of(attempt) == "E0201"
    chosen = select.where(given(int1), given(pointer), given(pointer))
    assert type_of(chosen) is pointer


def test_every_type_is_tried() -> None:
    assert set(VALUES) == set(ALL) - {ALL[0]}
    assert {*INTEGERS} <= set(VALUES)
