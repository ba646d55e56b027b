"""Products of positions of which one runs in no order: no stride is claimed, the results agree."""

from __future__ import annotations

import numpy as np
import pytest
from tests.backends.three_way import agree
from tests.frontend.kernels import jit

import tritium.language as tl


@jit
def by_rows_and_columns(x, out, M: tl.constexpr, N: tl.constexpr, FIRST: tl.constexpr):
    rows, columns = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    shuffled = (tl.arange(0, M) * 7 % M)[:, None]
    product = shuffled * columns if FIRST else columns * shuffled
    places = rows + columns * (M + 3) + product
    tile = tl.load(x + places, volatile=True)
    tl.store(out + (rows * N + columns), tile)
    tl.store(out + M * N + (rows + columns * M), tl.load(x + product))


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("shape", [(128, 16), (16, 16), (32, 5), (3, 40)], ids=str)
def test_a_product_with_rows_out_of_order(shape: tuple[int, int], first: bool) -> None:
    M, N = shape
    rows, columns = np.arange(M)[:, None], np.arange(N)
    product = rows * 7 % M * columns
    places = rows + columns * (M + 3) + product
    x = np.random.default_rng(1).integers(0, 99, places.max() + 1).astype(np.float32)
    out = np.zeros((2, M * N), np.float32)
    got, _ = agree(by_rows_and_columns, x=x, out=out, M=M, N=N, FIRST=first)
    np.testing.assert_array_equal(got["out"][0], x[places].ravel())
    np.testing.assert_array_equal(got["out"][1], x[product].T.ravel())
