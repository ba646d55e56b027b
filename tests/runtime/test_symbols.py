"""Kernels may have any name, also that of a function which their own code calls."""

from __future__ import annotations

import numpy as np

import tritium
import tritium.language as tl


@tritium.jit
def exp(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.exp(tl.load(x_ptr + offsets)))


@tritium.jit
def memcpy(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    rows, columns = tl.arange(0, BLOCK)[:, None], tl.arange(0, BLOCK)[None, :]
    x = tl.load(x_ptr + rows * BLOCK + columns)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for _ in range(0, n):
        total = tl.dot(x, x, total)
    tl.store(out_ptr + rows * BLOCK + columns, total)


@tritium.jit
def größe(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets))


def test_the_name_of_a_library_function_that_the_kernel_calls() -> None:
    x = np.linspace(-3, 3, 64)
    out = np.zeros_like(x)
    exp[(1,)](x, out, BLOCK=64)
    np.testing.assert_allclose(out, np.exp(x), rtol=1e-15)


def test_the_name_of_a_function_that_llvm_calls_of_its_own_accord() -> None:
    x = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
    out = np.zeros_like(x)
    memcpy[(1,)](x, out, 3, BLOCK=64)
    np.testing.assert_allclose(out, 3 * (x.astype(np.float64) @ x), rtol=1e-4, atol=1e-4)


def test_letters_of_any_alphabet() -> None:
    x = np.arange(64, dtype=np.int32)
    out = np.zeros_like(x)
    größe[(1,)](x, out, BLOCK=64)
    np.testing.assert_array_equal(out, x)
