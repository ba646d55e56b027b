"""Tiles that one loop stores, of which one is made from the other."""

from __future__ import annotations

import numpy as np
import pytest
from tests.backends.three_way import agree
from tests.frontend.kernels import jit

import tritium.language as tl


@jit
def rows_out_of_order(x, out, trips, R: tl.constexpr, C: tl.constexpr):
    # The rows' starts and the pointers made of them are costly, and used in and after the loop.
    rows = (tl.arange(0, R) * 7 % R)[:, None]
    columns = tl.arange(0, C)[None, :]
    pointers = x + (rows * (C + 3) + columns)
    total = tl.zeros((R, C), tl.float32)
    taken = 0
    while taken < trips:
        taken += 1
        total = total / 2 + tl.load(pointers)
        pointers += 2
    tl.store(out + (rows * (C + 3) + columns), total)


@pytest.mark.parametrize("shape", [(2, 2), (5, 16), (8, 24)], ids=str)
def test_addresses_are_made_of_what_is_stored_beside_them(shape: tuple[int, int]) -> None:
    rows, columns = shape
    x = np.random.default_rng(1).integers(0, 9, rows * (columns + 3) + 6).astype(np.float32)
    out = np.zeros(rows * (columns + 3), np.float32)
    got, code = agree(rows_out_of_order, x=x, out=out, trips=2, R=rows, C=columns)
    at = np.arange(rows)[:, None] * (columns + 3) + np.arange(columns)
    assert "keep %pointers of" in code.dump
    np.testing.assert_array_equal(got["out"][at], x[at] / 2 + x[at + 2])
