"""``enable_fp_fusion``: products and sums of a launch that asks for it are rounded once."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import tritium
import tritium.language as tl
from tritium import knobs


@tritium.jit
def axpy(a, b, c, out):
    tl.store(out, tl.load(a) * tl.load(b) + tl.load(c))


A = np.array([1 + 2.0**-12], np.float32)
ROUNDED_TWICE, ROUNDED_ONCE = np.float32(0.0), np.float32(2.0**-24)


@pytest.fixture(autouse=True)
def own_cache(tmp_path) -> Iterator[None]:
    with knobs.cache.scope():
        knobs.cache.dir = str(tmp_path)
        yield


def result(**options: object) -> np.float32:
    c = np.array([-(1 + 2.0**-11)], np.float32)
    out = np.empty(1, np.float32)
    axpy[(1,)](A, A, c, out, **options)
    return out[0]


def test_products_and_sums_are_rounded_twice_unless_fusion_is_asked_for() -> None:
    assert result() == result(enable_fp_fusion=False) == ROUNDED_TWICE
    assert result(enable_fp_fusion=True) == ROUNDED_ONCE
    assert result() == ROUNDED_TWICE


def test_the_knob_is_the_default() -> None:
    with knobs.language.scope():
        knobs.language.default_fp_fusion = True
        assert result() == ROUNDED_ONCE
        assert result(enable_fp_fusion=False) == ROUNDED_TWICE
    assert result() == ROUNDED_TWICE
