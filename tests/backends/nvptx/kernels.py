"""Kernels as users write them, and what the tests of the NVIDIA backend know of their arguments."""

from __future__ import annotations

from typing import Any

import pytest

import tritium.language as tl
from tritium import passes
from tritium.backends.nvptx import tools
from tritium.frontend import trace
from tritium.frontend.specialize import ConstantSpec, PointerSpec, ScalarSpec, Spec
from tritium.ir.core import Function
from tritium.ir.dtypes import DType, float32, int32
from tritium.ops.callable import DeviceFunction


def pointer(dtype: DType = float32, aligned: bool = True) -> PointerSpec:
    return PointerSpec(dtype, aligned)


def number(dtype: DType = int32, divisible: bool = True) -> ScalarSpec:
    return ScalarSpec(dtype, divisible)


def ptxas_or_skip() -> str:
    """The assembler; skips the test where there is none."""
    path = tools.find("ptxas")
    if path is None:
        pytest.skip("ptxas is not installed")
    return path


def traced(kernel: DeviceFunction, **given: Any) -> Function:
    """A kernel in tile IR after the default passes; plain numbers and strings are constants."""
    specs: dict[str, Spec] = {
        name: ConstantSpec(value) if isinstance(value, (int, str)) else value
        for name, value in given.items()
    }
    function = trace(kernel, specs).function
    passes.run_pipeline(function, passes.DEVICE)
    return function


@DeviceFunction
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    y = tl.load(y_ptr + offs, mask=mask)
    tl.store(out_ptr + offs, x + y, mask=mask)


@DeviceFunction
def softmax(x_ptr, out_ptr, stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    mask = offs < columns
    x = tl.load(x_ptr + row * stride + offs, mask=mask, other=-float("inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * stride + offs, e / tl.sum(e, axis=0), mask=mask)


@DeviceFunction
def column_sum(x_ptr, out_ptr, rows, columns, stride, BM: tl.constexpr, BN: tl.constexpr):
    cols = tl.program_id(0) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in tl.range(0, rows, BM):
        r = start + tl.arange(0, BM)
        mask = (r[:, None] < rows) & (cols[None, :] < columns)
        total += tl.load(x_ptr + r[:, None] * stride + cols[None, :], mask=mask, other=0.0)
    tl.store(out_ptr + cols, tl.sum(total, axis=0), mask=cols < columns)


@DeviceFunction
def transpose(x_ptr, out_ptr, rows, columns, sx, so, BM: tl.constexpr, BN: tl.constexpr):
    r = tl.program_id(0) * BM + tl.arange(0, BM)
    c = tl.program_id(1) * BN + tl.arange(0, BN)
    x = tl.load(x_ptr + r[:, None] * sx + c[None, :], (r[:, None] < rows) & (c[None, :] < columns))
    mask = (c[:, None] < columns) & (r[None, :] < rows)
    tl.store(out_ptr + c[:, None] * so + r[None, :], tl.trans(x), mask=mask)


@DeviceFunction
def in_place(x_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(x_ptr + offs, tl.load(x_ptr + offs) * 2)
    tl.store(x_ptr + offs, tl.load(x_ptr + offs) + 1)


@DeviceFunction
def folded(x_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK) & (BLOCK // 2 - 1)
    tl.store(x_ptr + offs, tl.load(x_ptr + offs) + 1)


@DeviceFunction
def through_a_table(table_ptr, x_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    p = tl.load(table_ptr).to(tl.pointer_type(tl.float32))
    tl.store(p + offs, tl.load(x_ptr + offs) + 1)
    tl.store(p + offs + BLOCK, tl.load(x_ptr + offs))


@DeviceFunction
def neighbours(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(x_ptr + offs, tl.load(x_ptr + offs) * 2)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs + 1))


@DeviceFunction
def every_iteration(x_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    for start in range(n):
        x = tl.load(x_ptr + offs + start)
        tl.store(x_ptr + offs + start, x + 1)


@DeviceFunction
def in_steps(x_ptr, n, BLOCK: tl.constexpr):
    for start in range(0, n * BLOCK, BLOCK):
        x = x_ptr + (start + tl.arange(0, BLOCK))
        tl.store(x, tl.load(x) + 1)


@DeviceFunction
def in_short_steps(x_ptr, n, BLOCK: tl.constexpr):
    for start in range(0, n * BLOCK, BLOCK - 1):
        x = x_ptr + (start + tl.arange(0, BLOCK))
        tl.store(x, tl.load(x) + 1)


@DeviceFunction
def in_steps_again(x_ptr, n, BLOCK: tl.constexpr):
    for shift in range(n):
        for start in range(0, n * BLOCK, BLOCK):
            x = x_ptr + (start + shift + tl.arange(0, BLOCK))
            tl.store(x, tl.load(x) + 1)


@DeviceFunction
def by_a_moving_start(x_ptr, n, BLOCK: tl.constexpr):
    shift = 0
    for start in range(0, n * BLOCK, BLOCK):
        x = x_ptr + (start - shift + tl.arange(0, BLOCK))
        tl.store(x, tl.load(x) + 1)
        shift += BLOCK - 1


@DeviceFunction
def until(flag_ptr, x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    count = 0
    while tl.load(flag_ptr, volatile=True) + count < n:
        tl.store(x_ptr + offs + 1, tl.load(x_ptr + offs))
        count += 1
    tl.store(out_ptr + offs, tl.load(flag_ptr + 1, volatile=True))


@DeviceFunction
def one_for_all(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    first = tl.load(x_ptr)
    tl.store(x_ptr, first + 1)
    tl.store(out_ptr + tl.arange(0, BLOCK), first + tl.load(x_ptr))


@DeviceFunction
def hinted(x_ptr, index_ptr, out_ptr, n, stride, BLOCK: tl.constexpr):
    tl.assume(n % 16 == 0)
    tl.assume((stride >= 0) & (stride % 8 == 0))
    block = tl.multiple_of(tl.load(index_ptr + tl.program_id(0)), BLOCK)
    offs = block + tl.max_contiguous(tl.multiple_of(tl.arange(0, BLOCK) % n, BLOCK), BLOCK)
    mask = tl.arange(0, BLOCK) < n
    x = tl.load(x_ptr + tl.program_id(0) * stride + offs, mask=mask)
    tl.store(tl.multiple_of(out_ptr + offs, 16), x, mask=mask)


@DeviceFunction
def unhinted(x_ptr, index_ptr, out_ptr, n, stride, BLOCK: tl.constexpr):
    block = tl.load(index_ptr + tl.program_id(0))
    offs = block + tl.arange(0, BLOCK) % n
    mask = tl.arange(0, BLOCK) < n
    x = tl.load(x_ptr + tl.program_id(0) * stride + offs, mask=mask)
    tl.store(out_ptr + offs, x, mask=mask)
