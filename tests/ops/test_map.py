"""``tl.map_elementwise`` and ``tl.histogram`` from kernels, on every executor."""

from __future__ import annotations

import numpy as np
import pytest
from tests.backends.three_way import agree
from tests.frontend.kernels import PTR, jit, refused
from tests.ops.harness import eager
from tests.ops.test_shape import same, tile

import tritium.language as tl


@jit
def collatz(x):
    """The number of steps down to 1; -1 for what isn't positive."""
    steps = 0
    if x <= 0:
        return -1
    while x != 1:
        if x % 2 == 0:
            x = x // 2
        else:
            x = 3 * x + 1
        steps += 1
    return steps


@jit
def quotient_and_rest(a0, a1, b0, b1):
    return a0 // b0, a1 // b1, a0 % b0, a1 % b1


@jit
def maps(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + at)
    steps = tl.map_elementwise(collatz, x)
    tl.store(out_ptr + at, steps)
    if M * N % 2 == 0:
        most = tl.max(x, 1)[:, None] + 1
        whole, rest = tl.map_elementwise(quotient_and_rest, x, most, pack=2)
        tl.store(out_ptr + M * N + at, whole + rest)


def steps_of(x: int) -> int:
    steps = 0
    while x > 1:
        x, steps = (x // 2 if x % 2 == 0 else 3 * x + 1), steps + 1
    return steps if x == 1 else -1


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (4, 16), (2, 48)], ids=str)
def test_functions_that_branch_and_loop(shape: tuple[int, int]) -> None:
    x = np.random.default_rng(shape).integers(-2, 40, shape).astype(np.int32)
    x[:, 0] = 27
    got, _ = agree(maps, x_ptr=x, out_ptr=np.zeros((2, *shape), np.int32), M=shape[0], N=shape[1])
    wanted = [steps_of(each) for each in x.ravel().tolist()]
    np.testing.assert_array_equal(got["out_ptr"][0].ravel(), wanted)


def test_a_map_in_eager_mode() -> None:
    x = np.array([3, -1, 4, 0], np.int32)
    with eager():
        same(tl.map_elementwise(lambda a: a * 2, tile(x)), x * 2)
        first, second = tl.map_elementwise(lambda a, b: (a + b, a > b), tile(x), 1)
        same(first, x + 1)
        same(second, x > 1)


@jit
def first_of(address):
    return tl.load(address.to(tl.pointer_type(tl.int32)))


def test_a_function_that_reads_memory_is_refused() -> None:
    @jit
    def kernel(out):
        addresses = tl.arange(0, 4).to(tl.int64)
        tl.store(out + tl.arange(0, 4), tl.map_elementwise(first_of, addresses))

    refused(kernel, "E0206", PTR, at="first_of")


@jit
def histograms(x_ptr, out_ptr, N: tl.constexpr, BINS: tl.constexpr):
    at = tl.arange(0, N)
    bins = tl.arange(0, BINS)
    x = tl.load(x_ptr + at)
    total = tl.histogram(x, BINS)
    for trip in range(3):
        total += tl.histogram(x + trip, BINS, mask=at % 2 == 0)
    tl.store(out_ptr + bins, total)


@pytest.mark.parametrize("bins", [1, 5, 64, 300])
@pytest.mark.parametrize("extent", [1, 7, 200])
def test_every_executor_counts_alike(extent: int, bins: int) -> None:
    x = np.random.default_rng(bins).integers(-3, bins + 3, extent).astype(np.int32)
    out = np.zeros(bins, np.int32)
    got, _ = agree(histograms, x_ptr=x, out_ptr=out, N=extent, BINS=bins)
    wanted = np.bincount(x[(x >= 0) & (x < bins)], minlength=bins)
    for trip in range(3):
        moved = x[::2] + trip
        wanted = wanted + np.bincount(moved[(moved >= 0) & (moved < bins)], minlength=bins)
    np.testing.assert_array_equal(got["out_ptr"], wanted)
