"""Kernels with long chains of operations: compiling needs no deep recursion."""

from __future__ import annotations

import numpy as np
import pytest
from tests.backends.three_way import run_cpu, run_ir

import tritium.language as tl
from tritium.ops.callable import DeviceFunction as jit

LONG = 400


@jit
def sums(x_ptr, out_ptr, COUNT: tl.constexpr):
    at = tl.arange(0, 16)
    x = tl.load(x_ptr + at)
    for i in tl.static_range(COUNT):
        x += x * i + tl.load(x_ptr + at + i % 4)
    tl.store(out_ptr + at, x)


@jit
def gathers(x_ptr, out_ptr, COUNT: tl.constexpr):
    at = tl.arange(0, 16)
    for _ in tl.static_range(COUNT):
        at = tl.load(x_ptr + at % 16)
    tl.store(out_ptr + tl.arange(0, 16), at)


@jit
def transpositions(x_ptr, out_ptr, COUNT: tl.constexpr):
    at = tl.arange(0, 4)[:, None] * 4 + tl.arange(0, 4)[None, :]
    x = tl.load(x_ptr + at)
    for i in tl.static_range(COUNT):
        x = tl.trans(x) + i
    tl.store(out_ptr + at, x)


@jit
def masks(x_ptr, out_ptr, COUNT: tl.constexpr):
    at = tl.arange(0, 16)
    x = tl.load(x_ptr + at)
    mask = x < 1000
    for i in tl.static_range(COUNT):
        mask = mask & (x * i < 5000)
    tl.store(out_ptr + at, x, mask=mask)


@pytest.mark.parametrize("kernel", [sums, gathers, transpositions, masks], ids=lambda k: k.__name__)
def test_long_chains(kernel: jit) -> None:
    rng = np.random.default_rng(0)
    arguments = {
        "x_ptr": rng.permutation(20).astype(np.int32),
        "out_ptr": np.zeros(16, np.int32),
        "COUNT": LONG,
    }
    got, _ = run_cpu(kernel, arguments, (1,))
    want = run_ir(kernel, arguments, (1,))
    np.testing.assert_array_equal(got["out_ptr"], want["out_ptr"])
