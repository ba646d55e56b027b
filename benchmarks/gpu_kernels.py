"""The kernels of the GPU's benchmark, as source text: ordinary ones, as people write them.

Each text is executed once for Triton and once for Tritium (``kernels.execute``), so that both
compile the same source.
"""

from __future__ import annotations

from typing import Any

from . import kernels

SOURCES = {
    "add": kernels.SOURCES["add"],
    "many": kernels.SOURCES["many"],
    "copy": '''
@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=mask), mask=mask)
''',
    "softmax": '''
@triton.jit
def softmax_kernel(x_ptr, out_ptr, stride, rows, columns, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    mask = offs < columns
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0)):
        x = tl.load(x_ptr + row * stride + offs, mask=mask, other=-float("inf"))
        e = tl.exp(x - tl.max(x, axis=0))
        tl.store(out_ptr + row * stride + offs, e / tl.sum(e, axis=0), mask=mask)
''',
    "layernorm": '''
@triton.jit
def layernorm_kernel(
    x_ptr, weight_ptr, bias_ptr, out_ptr, mean_ptr, rstd_ptr, stride, columns, epsilon,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0)
    x_ptr += row * stride
    out_ptr += row * stride
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in tl.range(0, columns, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + offs, mask=offs < columns, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / columns
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for start in tl.range(0, columns, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + offs, mask=offs < columns, other=0.0).to(tl.float32)
        centred = tl.where(offs < columns, x - mean, 0.0)
        squares += centred * centred
    rstd = 1.0 / tl.sqrt(tl.sum(squares, axis=0) / columns + epsilon)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)
    for start in tl.range(0, columns, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        mask = offs < columns
        weight = tl.load(weight_ptr + offs, mask=mask)
        bias = tl.load(bias_ptr + offs, mask=mask)
        x = tl.load(x_ptr + offs, mask=mask, other=0.0).to(tl.float32)
        tl.store(out_ptr + offs, (x - mean) * rstd * weight + bias, mask=mask)
''',
    "colsum": '''
@triton.jit
def colsum_kernel(
    x_ptr, out_ptr, stride, rows, columns, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros([BLOCK_M, BLOCK_N], dtype=tl.float32)
    for start in tl.range(0, rows, BLOCK_M):
        r = start + tl.arange(0, BLOCK_M)
        mask = (r[:, None] < rows) & (cols[None, :] < columns)
        total += tl.load(x_ptr + r[:, None] * stride + cols[None, :], mask=mask, other=0.0)
    tl.store(out_ptr + cols, tl.sum(total, axis=0), mask=cols < columns)
''',
    "transpose": '''
@triton.jit
def transpose_kernel(
    x_ptr, out_ptr, x_stride, out_stride, rows, columns,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):
    r = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    c = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inside = (r[:, None] < rows) & (c[None, :] < columns)
    x = tl.load(x_ptr + r[:, None] * x_stride + c[None, :], mask=inside)
    flipped = (c[:, None] < columns) & (r[None, :] < rows)
    tl.store(out_ptr + c[:, None] * out_stride + r[None, :], tl.trans(x), mask=flipped)
''',
}  # fmt: skip


def build(name: str, package: Any, language: Any) -> Any:
    """The kernel ``name`` of ``SOURCES``, made by ``package.jit`` with ``language`` as ``tl``."""
    return kernels.execute(name, SOURCES[name], package, language)
