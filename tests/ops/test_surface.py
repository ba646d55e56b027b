"""What surface functions and operators of arithmetic make of values, in eager mode."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.ops.harness import eager, load_operations

from tritium.diagnostics import TritiumError
from tritium.diagnostics.warning import TritiumWarning, forget_warnings
from tritium.ir.core import ConcreteValue
from tritium.ir.dtypes import (
    DType,
    bfloat16,
    float8e5,
    float16,
    float32,
    float64,
    int1,
    int8,
    int32,
    int64,
    uint8,
    uint32,
    uint64,
)
from tritium.ir.types import PointerType, shaped
from tritium.ops import arith, cast, logic, math, python, select
from tritium.ops.constexpr import constexpr
from tritium.ops.spec import given
from tritium.ops.tile import Tile


@pytest.fixture(autouse=True)
def tracer() -> Iterator[None]:
    forget_warnings()
    with eager():
        yield


def tile(values: Any, dtype: DType) -> Tile:
    data = np.asarray(values).astype(dtype.numpy)
    return Tile(ConcreteValue(shaped(dtype, data.shape), data))


def listed(made: Tile) -> Any:
    return made.data.tolist()


def test_integers_wrap_without_warnings() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert listed(tile([127, -128], int8) + 1) == [-128, -127]
        assert listed(tile(2**31 - 1, int32) * 3) == 2**31 - 3
        assert listed(0 - tile(1, uint8)) == 255
        assert listed(-tile(-128, int8)) == -128
        assert listed(tile(1.0, float32) / 0) == float("inf")


def test_division_truncates_toward_zero() -> None:
    x = tile([7, -7, 7, -7], int32)
    y = tile([2, 2, -2, -2], int32)
    assert listed(x // y) == [3, -3, -3, 3]
    assert listed(x % y) == [1, -1, 1, -1]
    assert listed(7 // tile(-2, int32)) == -3
    assert listed(x // 0) == [-1] * 4
    assert listed(x % 0) == listed(x)
    assert listed(tile(-(2**31), int32) // -1) == -(2**31)
    assert listed(tile(-(2**31), int32) % -1) == 0
    assert listed(tile(7, uint8) // 0) == 255
    assert listed(tile([5.5, -5.5], float32) % 2) == [1.5, -1.5]
    assert listed(tile(7, int64) / 2) == 3.5


def test_shifts() -> None:
    assert listed(tile([-8, 8], int32) >> 1) == [-4, 4]
    assert listed(tile(0xF0, uint8) >> 4) == 15
    assert listed(tile(1, int32) << tile(31, int32)) == -(2**31)
    assert listed(tile([1, -1], int32) << tile([32, 40], int32)) == [0, 0]
    assert listed(tile([1, -1], int32) >> tile([32, -1], int32)) == [0, -1]
    assert listed(1 << tile(3, uint8)) == 8


def test_right_shift_is_arithmetic_by_its_left_operand() -> None:
    made = tile(-8, int32) >> tile(1, uint32)
    assert made.dtype is uint32
    assert listed(made) == 2**32 - 4
    made = tile(0xFFFFFFF8, uint32) >> tile(1, int32)
    assert made.dtype is uint32
    assert listed(made) == 0x7FFFFFFC
    made = tile(-8, int8) >> tile(1, uint32)
    assert listed(made) == 2**32 - 4


@pytest.mark.parametrize("count", [32, -1])
def test_a_constant_count_out_of_range_warns(count: int) -> None:
    with pytest.warns(TritiumWarning, match="shifts every bit"):
        assert listed(tile(1, int32) << count) == 0


def test_bits() -> None:
    assert listed(tile(0b1100, uint8) & 0b1010) == 0b1000
    assert listed(0b0011 | tile(0b1000, uint8)) == 0b1011
    assert listed(tile(-1, int32) ^ 1) == -2
    assert listed(~tile(0, uint8)) == 255
    assert listed(~tile([True, False], int1)) == [False, True]
    assert (tile(1, uint8) & 0xF).dtype is uint8


def test_comparisons() -> None:
    x = tile([1.0, np.nan, -0.0], float32)
    assert listed(x == x) == [True, False, True]
    assert listed(x != x) == [False, True, False]
    assert listed(x == 0) == [False, False, True]
    assert listed(x > 0) == [True, False, False]
    # The common type decides the signedness.
    assert listed(tile(-1, int32) < tile(1, uint32)) is False
    assert (x < 1).dtype is int1


def test_extrema_of_nan_and_zeros() -> None:
    nan, zero = tile(np.nan, float32), tile(0.0, float32)
    assert listed(arith.maximum(nan, 1.0)) == 1.0
    assert np.isnan(listed(arith.minimum(nan, 1.0, propagate_nan=arith.PropagateNan.ALL)))
    assert not np.signbit(arith.maximum(-zero, zero).data)
    assert np.signbit(arith.minimum(zero, -zero).data)
    assert listed(arith.clamp(nan, 2.0, 3.0)) == 2.0
    assert listed(arith.clamp(tile([1, 5, 9], int32), 2, 6)) == [2, 5, 6]
    assert listed(arith.clamp(zero, 3.0, 2.0)) == 2.0


def test_selection_of_fp8_keeps_infinity() -> None:
    """Arithmetic saturates in this type; a choice between operands must not."""
    infinity = Tile(ConcreteValue(float8e5, np.array(0x7C, np.uint8).view(float8e5.numpy)))
    assert arith.maximum(infinity, infinity).data.view(np.uint8) == 0x7C
    assert (-infinity).data.view(np.uint8) == 0xFC
    assert arith.abs(-infinity).data.view(np.uint8) == 0x7C
    assert (infinity + infinity).data.view(np.uint8) == 0x7B


def test_half_precision_rounds_once_per_operation() -> None:
    big = tile(2048.0, float16)
    assert listed(big + 1.0) == 2048.0
    assert listed((big + 1.0) + 1.0) == 2048.0
    assert (tile(256.0, bfloat16) + tile(1.0, bfloat16)).data == 256.0
    # 2**-24 is half an ulp of the product's type: one rounding sees it, two don't.
    x = tile(1 + 2.0**-10, float16)
    once = arith.fma(x, x, tile(2.0**-24, float16))
    assert listed(once) == np.float16((1 + 2.0**-10) ** 2 + 2.0**-24)


def test_fdiv_and_friends() -> None:
    assert arith.fdiv(given(float16), 1.0).dtype is float32
    assert arith.fdiv(tile(1.0, float32), 3.0, ieee_rounding=True).data == np.float32(1) / 3
    assert arith.div_rn(tile(1.0, float32), 3.0).dtype is float32
    assert listed(arith.umulhi(tile(2**31, uint32), tile(6, uint32))) == 3
    assert listed(arith.umulhi(tile(-1, int32), tile(-1, int32))) == -2
    assert arith.add(given(int32), 1, sanitize_overflow=False).dtype is int32


def test_where() -> None:
    condition = tile([True, False], int1)
    assert listed(select.where(condition, tile([1, 2], int32), 0)) == [1, 0]
    assert select.where(condition, 1, 0).dtype is int32
    assert select.where(condition, True, False).dtype is int1
    assert select.where(condition, 1, 0.0).dtype is float32
    with pytest.warns(TritiumWarning, match="condition"):
        assert listed(select.where(tile([2, 0], int32), 1, 0)) == [1, 0]


def test_cast_between_kinds() -> None:
    x = tile([1.9, -1.9, np.nan, np.inf], float32)
    assert listed(x.to(int32)) == [1, -1, 0, 2**31 - 1]
    assert listed(cast.cast(x, int1)) == [True, True, True, True]
    assert listed(tile([300, -1], int32).to(uint8)) == [44, 255]
    assert listed(tile(True, int1).to(float32)) == 1.0
    assert cast.cast(7, int64).dtype is int64
    assert x.to(float32) is x
    assert x.to(constexpr(float64)).dtype is float64


def test_cast_rounding_and_bits() -> None:
    x = tile(1 + 2.0**-9, float32)
    assert cast.cast(x, bfloat16).data == 1.0
    almost = tile(1 + 2.0**-8 + 2.0**-9, float32)
    assert cast.cast(almost, bfloat16).data == 1 + 2.0**-7
    assert cast.cast(almost, bfloat16, fp_downcast_rounding="rtz").data == 1.0
    assert listed(cast.cast(tile(1.0, float32), int32, bitcast=True)) == 0x3F800000
    assert listed(tile(-1, int32).to(uint32, bitcast=True)) == 2**32 - 1


def test_cast_of_pointers() -> None:
    pointer = PointerType(float32)
    known = Tile(ConcreteValue(pointer, np.array(4096, np.uint64)))
    assert listed(known.to(int64)) == 4096
    assert known.to(int64).dtype is int64
    assert listed(known.to(int1)) is True
    assert listed(given(pointer).to(int1)) is False
    assert known.to(PointerType(int8)).dtype is PointerType(int8)
    assert tile(4096, uint64).to(pointer).dtype is pointer
    assert listed((known - tile(1, uint8)).to(int64)) == 4092


def test_logical_operators() -> None:
    true, false = tile(True, int1), tile(False, int1)
    assert listed(logic.logical_and(true, false)) is False
    assert listed(logic.logical_or(tile([False, True], int1), false)) == [False, True]
    assert listed(logic.logical_not(false)) is True
    assert logic.logical_and(constexpr(0), true).value == 0
    assert logic.logical_and(1, true) is true
    assert logic.logical_or(true, constexpr(True)).value is True
    assert logic.logical_or(None, true) is true
    assert logic.logical_not(constexpr(3)).value is False
    assert listed(true.logical_and(false)) is False


def test_elementary_functions_as_methods_and_of_constants() -> None:
    assert listed(tile(0.0, float32).exp()) == 1.0
    assert math.exp2(3.0).dtype is float32
    assert listed(math.sqrt(tile(2.0, float64))) == 2**0.5
    assert listed(math.rsqrt(tile([4.0, 0.0], float32))) == [0.5, np.inf]
    with pytest.raises(TritiumError) as caught:
        math.exp(given(float16, 4))
    assert caught.value.code == "E0204"
    assert "float32" in caught.value.help


def test_outside_a_kernel() -> None:
    load_operations()
    from tritium.ir.tracer import tracing

    with tracing(None), pytest.raises(TritiumError) as caught:
        math.exp(1.0)
    assert caught.value.code == "E0517"


def test_a_constant_on_the_left_of_a_comparison_is_named_there() -> None:
    with pytest.raises(TritiumError) as caught:
        python.compare("<", constexpr(-1), given(uint8))
    assert caught.value.code == "E0203"
    assert caught.value.argument == "left"
    assert listed(python.compare("<", constexpr(3), tile(4, int32))) is True
