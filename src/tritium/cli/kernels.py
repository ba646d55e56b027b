"""The kernels of ``tritium demo``, as written for Triton: nothing here knows of Tritium."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """``x + y``."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


@triton.jit
def gelu_of_affine(x_ptr, scale_ptr, shift_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """``gelu(x * scale + shift)``, the approximation by tanh."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    scale = tl.load(scale_ptr + offsets, mask=mask)
    shift = tl.load(shift_ptr + offsets, mask=mask)
    y = x * scale + shift
    inner = 0.7978845608 * (y + 0.044715 * y * y * y)
    tl.store(out_ptr + offsets, y * tl.sigmoid(2 * inner), mask=mask)


@triton.jit
def softmax(out_ptr, x_ptr, row_stride, columns, BLOCK: tl.constexpr):
    """Softmax of each row; a program takes a row."""
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * row_stride + offsets, mask=mask, other=-float("inf"))
    powers = tl.exp(x - tl.max(x, axis=0))
    total = tl.sum(powers, axis=0)
    tl.store(out_ptr + row * row_stride + offsets, powers / total, mask=mask)


@triton.jit
def layer_norm(
    x_ptr, weight_ptr, bias_ptr, out_ptr, row_stride, columns, epsilon, BLOCK: tl.constexpr
):
    """Layer normalisation of each row; a program takes a row."""
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * row_stride + offsets, mask=mask, other=0.0)
    mean = tl.sum(x, axis=0) / columns
    centred = tl.where(mask, x - mean, 0.0)
    variance = tl.sum(centred * centred, axis=0) / columns
    weight = tl.load(weight_ptr + offsets, mask=mask)
    bias = tl.load(bias_ptr + offsets, mask=mask)
    y = centred * (1 / tl.sqrt(variance + epsilon)) * weight + bias
    tl.store(out_ptr + row * row_stride + offsets, y, mask=mask)


@triton.jit
def matmul(
    a_ptr, b_ptr, c_ptr, M, N, K, a_row, a_column, b_row, b_column, c_row, c_column,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """``a @ b``; a program takes a block of the result."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    steps = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + rows[:, None] * a_row + steps[None, :] * a_column
    b_ptrs = b_ptr + steps[:, None] * b_row + columns[None, :] * b_column
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        left = K - k * BLOCK_K
        a = tl.load(a_ptrs, mask=(rows[:, None] < M) & (steps[None, :] < left), other=0.0)
        b = tl.load(b_ptrs, mask=(steps[:, None] < left) & (columns[None, :] < N), other=0.0)
        total = tl.dot(a, b, total)
        a_ptrs += BLOCK_K * a_column
        b_ptrs += BLOCK_K * b_row
    c_ptrs = c_ptr + rows[:, None] * c_row + columns[None, :] * c_column
    tl.store(c_ptrs, total, mask=(rows[:, None] < M) & (columns[None, :] < N))
