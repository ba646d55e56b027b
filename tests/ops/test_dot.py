"""The surface function of matrix products: types, accumulators, options, batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.ops.harness import eager
from tests.ops.test_shape import tile

import tritium.language as tl
from tritium.diagnostics import TritiumError
from tritium.ir.core import ConcreteValue
from tritium.ir.dtypes import FLOATS8, DType
from tritium.ir.types import shaped
from tritium.ops import samples
from tritium.ops.codecs import decode


def known(dtype: DType, *shape: int, seed: int = 0) -> Any:
    sample = samples.ordinary(dtype, shape, seed)
    return tl.tensor(ConcreteValue(shaped(dtype, shape), sample.data))


def exact(x: Any) -> Any:
    return decode(x.data, x.dtype) if x.dtype.is_floating() else x.data.astype(np.float64)


RESULTS = [
    (tl.int8, tl.int8, tl.int32),
    (tl.float16, tl.float16, tl.float32),
    (tl.bfloat16, tl.bfloat16, tl.float32),
    (tl.float32, tl.float32, tl.float32),
    (tl.float64, tl.float64, tl.float64),
    *((left, right, tl.float32) for left in FLOATS8 for right in FLOATS8),
]


@pytest.mark.parametrize(("left", "right", "result"), RESULTS, ids=str)
def test_types(left: DType, right: DType, result: DType) -> None:
    a, b = known(left, 5, 48, seed=1), known(right, 48, 3, seed=2)
    with eager():
        got = tl.dot(a, b)
        assert got.type is shaped(result, (5, 3))
        np.testing.assert_allclose(exact(got), exact(a) @ exact(b), rtol=1e-5, atol=1e-4)
        acc = known(result, 5, 3, seed=3)
        added = tl.dot(a, b, acc)
        np.testing.assert_allclose(exact(added), exact(a) @ exact(b) + exact(acc), atol=1e-4)


@pytest.mark.parametrize("dtype", [tl.float16, tl.float8e4nv], ids=str)
def test_fp16_results(dtype: DType) -> None:
    a, b = known(dtype, 3, 5), known(dtype, 5, 7)
    with eager():
        assert tl.dot(a, b, out_dtype=tl.float16).dtype is tl.float16
        assert tl.dot(a, b, out_dtype=tl.constexpr(tl.float16)).dtype is tl.float16
        # Without out_dtype it is the accumulator's.
        assert tl.dot(a, b, known(tl.float16, 3, 7)).dtype is tl.float16
        assert tl.dot(a, b, acc=known(tl.float32, 3, 7)).dtype is tl.float32


def test_out_dtype_is_left_aside_where_there_is_no_choice() -> None:
    """Older versions gave fp32 by default, whatever the operands."""
    with eager():
        for dtype, result in ((tl.int8, tl.int32), (tl.float64, tl.float64)):
            x = known(dtype, 3, 3)
            assert tl.dot(x, x, out_dtype=tl.float32).dtype is result


def test_one_rounding() -> None:
    a = np.float16([[2048, 1, 1, -2048]])
    b = np.ones((4, 1), np.float16)
    with eager():
        assert tl.dot(tile(a), tile(b), out_dtype=tl.float16).data.item() == 2.0


def test_int8_is_exact_and_wraps() -> None:
    a = np.full((2, 80), -128, np.int8)
    with eager():
        got = tl.dot(tile(a), tile(a.T), tile(np.full((2, 2), 2**31 - 1, np.int32)))
    assert got.data.tolist() == [[80 * 2**14 - 2**31 - 1] * 2] * 2


@pytest.mark.parametrize("batch", [(2,), (2, 3), (1, 1, 2)])
def test_batches(batch: tuple[int, ...]) -> None:
    a, b = known(tl.float32, *batch, 3, 5), known(tl.float32, *batch, 5, 7, seed=1)
    acc = known(tl.float32, *batch, 3, 7, seed=2)
    with eager():
        got = tl.dot(a, b, acc)
    assert got.type.shape == (*batch, 3, 7)
    np.testing.assert_allclose(exact(got), np.matmul(exact(a), exact(b)) + exact(acc), atol=1e-5)


@pytest.mark.parametrize(
    ("options", "stored"),
    [
        ({}, "tf32"),
        ({"input_precision": "IEEE"}, "ieee"),
        ({"input_precision": "tf32x3"}, "tf32x3"),
        ({"input_precision": "bf16x6"}, "bf16x6"),
        ({"allow_tf32": True}, "tf32"),
        ({"allow_tf32": False}, "ieee"),
    ],
    ids=str,
)
def test_precisions_change_nothing_here(options: dict[str, Any], stored: str) -> None:
    x = known(tl.float32, 5, 5)
    with eager() as tracer:
        seen = []
        emit = tracer.emit
        tracer.emit = lambda op: seen.append(op) or emit(op)  # type: ignore[method-assign]
        got = tl.dot(x, x, max_num_imprecise_acc=8, **options)
    assert (seen[-1].input_precision, seen[-1].max_num_imprecise_acc) == (stored, 8)
    np.testing.assert_allclose(exact(got), exact(x) @ exact(x), rtol=1e-6, atol=1e-6)


def test_the_default_precision_is_an_option(monkeypatch: pytest.MonkeyPatch) -> None:
    x = known(tl.float32, 5, 5)
    monkeypatch.setenv("TRITON_F32_DEFAULT", "ieee")
    with eager() as tracer:
        seen = []
        emit = tracer.emit
        tracer.emit = lambda op: seen.append(op) or emit(op)  # type: ignore[method-assign]
        tl.dot(x, x)
        tl.dot(x, x, input_precision="tf32x3")
    assert [op.input_precision for op in seen] == ["ieee", "tf32x3"]


def test_an_accumulator_of_another_type_is_named() -> None:
    x = known(tl.bfloat16, 3, 3)
    with eager(), pytest.raises(TritiumError) as caught:
        tl.dot(x, x, known(tl.float16, 3, 3))
    assert caught.value.code == "E0204"
    assert "acc of tile<3x3xfp32>" in caught.value.message
