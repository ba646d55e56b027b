"""``enable_fp_fusion``: products and sums rounded once, against rational arithmetic."""

from __future__ import annotations

import pathlib
import warnings
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from tests.ops.oracles import rounded

import tritium
import tritium.language as tl
from tritium import knobs
from tritium.ir.dtypes import DType, from_numpy
from tritium.runtime import cache

Array = NDArray[Any]
SIZE = 512


@tritium.jit
def forms(x_ptr, y_ptr, z_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x, y, z = tl.load(x_ptr + offs), tl.load(y_ptr + offs), tl.load(z_ptr + offs)
    tl.store(out_ptr + offs, x * y + z)
    tl.store(out_ptr + N + offs, z + y * x)
    tl.store(out_ptr + 2 * N + offs, x * y - z)
    tl.store(out_ptr + 3 * N + offs, z - x * y)


def numbers(dtype: Any) -> list[Array]:
    """Factors, and addends near their negative products or of another size, all of ``dtype``."""
    random = np.random.default_rng(7)
    x, y = random.uniform(-2, 2, (2, SIZE)).astype(dtype)
    z = -(x.astype(np.float64) * y.astype(np.float64))
    z[::2] = random.uniform(-2, 2, SIZE // 2) * 10.0 ** random.integers(-4, 3, SIZE // 2)
    return [x, y, z.astype(dtype)]


def exact(x: Array, y: Array, z: Array, round_product: bool) -> Array:
    """The four forms, each rounded as the type is; the product too or not."""
    kind = from_numpy(x.dtype)
    assert isinstance(kind, DType)
    rows: list[list[float]] = [[], [], [], []]
    for a, b, c in zip(*(each.astype(np.float64).tolist() for each in (x, y, z))):
        product, addend = Fraction(a) * Fraction(b), Fraction(c)
        if round_product:
            product = Fraction(rounded(product, kind))
        forms = (product + addend, product + addend, product - addend, addend - product)
        for row, value in zip(rows, forms):
            row.append(rounded(value, kind))
    return np.array(rows).astype(x.dtype)


def launched(dtype: Any, **options: Any) -> Array:
    x, y, z = numbers(dtype)
    out = np.zeros((4, SIZE), dtype)
    forms[(1,)](x, y, z, out, N=SIZE, **options)
    return out


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
def test_one_rounding_where_it_is_asked_for(dtype: Any) -> None:
    once, twice = (exact(*numbers(dtype), round_product) for round_product in (False, True))
    assert np.mean(once != twice) > 0.1, "the numbers tell them apart"
    np.testing.assert_array_equal(launched(dtype, enable_fp_fusion=True), once)
    for options in ({}, {"enable_fp_fusion": False}, {"enable_fp_fusion": None}):
        np.testing.assert_array_equal(launched(dtype, **options), twice)


def test_the_knob_decides_where_the_launch_does_not() -> None:
    once, twice = (exact(*numbers(np.float32), each) for each in (False, True))
    with knobs.language.scope():
        knobs.language.default_fp_fusion = True
        np.testing.assert_array_equal(launched(np.float32), once)
        np.testing.assert_array_equal(launched(np.float32, enable_fp_fusion=False), twice)
    np.testing.assert_array_equal(launched(np.float32), twice)


def test_each_has_code_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    monkeypatch.setenv("TRITIUM_CACHE_DIR", str(tmp_path / "cache"))
    x = np.ones(SIZE, np.float32)

    def made(**options: Any) -> Any:
        return tritium.jit(forms.fn)[(1,)](x, x, x, np.zeros(4 * SIZE, x.dtype), N=SIZE, **options)

    fused, plain = made(enable_fp_fusion=True), made()
    assert fused.hash != plain.hash
    assert fused.asm["ttir"] == plain.asm["ttir"]
    assert "arith.fma" in fused.asm["optimised"]
    assert "arith.fma" not in plain.asm["optimised"]
    assert cache.size()[0]["kernel"] == 2
    again = made(enable_fp_fusion=True)
    assert again.code.version(True).cached
    assert again.hash == fused.hash
    assert again.asm["optimised"] == fused.asm["optimised"]


def test_step_by_step_there_is_a_warning() -> None:
    arrays = [*numbers(np.float32), np.zeros((4, SIZE), np.float32)]
    launch: Callable[..., Any] = forms.interpret[(1,)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        launch(*arrays, N=SIZE)
    twice = arrays[3].copy()
    with pytest.warns(tritium.errors.TritiumWarning, match="enable_fp_fusion"):
        launch(*arrays, N=SIZE, enable_fp_fusion=True)
    np.testing.assert_array_equal(arrays[3], twice)
