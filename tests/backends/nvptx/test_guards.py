"""Vectors under masks of which only the run time knows where they end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.backends.nvptx.emulator import GLOBAL_SPACE, Emulator, unsupported
from tests.backends.nvptx.kernels import number, pointer, traced
from tests.backends.nvptx.test_structure import accesses

import tritium.language as tl
from tritium.backends.nvptx.compile import compile_kernel, entry_name, write_module
from tritium.backends.nvptx.guards import Guard
from tritium.backends.nvptx.homes import Homes
from tritium.backends.nvptx.target import gpu_target
from tritium.ir.core import Function
from tritium.ir.dtypes import DType, float16, float32, int8, int32
from tritium.ops import memory
from tritium.ops.callable import DeviceFunction

emulated = pytest.mark.skipif(bool(unsupported()), reason=str(unsupported()))
TARGET = gpu_target("sm_90a")
BLOCK = 1024


@DeviceFunction
def below(x_ptr, out_ptr, low, high, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < high, other=low)
    tl.store(out_ptr + offs, x + 1, mask=high > offs)


@DeviceFunction
def between(x_ptr, out_ptr, low, high, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = (offs >= low) & (offs <= high - 1)
    x = tl.load(x_ptr + offs, mask=mask, other=low)
    tl.store(out_ptr + offs, x + 1, mask=mask)


@DeviceFunction
def of_data(x_ptr, out_ptr, low, high, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < high, other=low)
    tl.store(out_ptr + offs, x + 1, mask=(offs < high) & (x > 0))


@DeviceFunction
def rows(x_ptr, out_ptr, low, high, BLOCK: tl.constexpr):
    r = tl.arange(0, 8)[:, None]
    c = tl.arange(0, BLOCK // 8)[None, :]
    mask = (r <= low) & (c < high)
    x = tl.load(x_ptr + r * (BLOCK // 8) + c, mask=mask, other=low)
    tl.store(out_ptr + r * (BLOCK // 8) + c, x + 1, mask=mask)


@DeviceFunction
def wrapping(x_ptr, out_ptr, low, high, BLOCK: tl.constexpr):
    offs = low + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.arange(0, BLOCK), mask=offs < high, other=0)
    tl.store(out_ptr + tl.arange(0, BLOCK), x + 1)


def function_of(kernel: DeviceFunction, dtype: DType = float32) -> Function:
    given: dict[str, Any] = {"x_ptr": pointer(dtype), "out_ptr": pointer(dtype)}
    bounds = {"low": number(int32, False), "high": number(int32, False)}
    return traced(kernel, **given, **bounds, BLOCK=BLOCK)


def guards(function: Function, num_warps: int = 4) -> set[Guard | None]:
    homes = Homes(function, num_warps)
    return {homes.accesses[op].guard for op in function.walk() if isinstance(op, memory.Store)}


def test_what_decides() -> None:
    assert guards(function_of(below)) == {Guard.LAST}
    assert guards(function_of(rows)) == {Guard.LAST}
    assert guards(function_of(between)) == {Guard.ENDS}
    assert guards(function_of(of_data)) == {None}


def test_of_positions_that_may_wrap_no_element_speaks_for_others() -> None:
    function = function_of(wrapping)
    homes = Homes(function, 4)
    loads = [op for op in function.walk() if isinstance(op, memory.Load)]
    assert [homes.accesses[op].guard for op in loads] == [None]
    assert homes.accesses[loads[0]].vectors.width == 1


@pytest.mark.parametrize("kernel", [below, between, rows])
@pytest.mark.parametrize("dtype", [float32, float16, int8])
def test_whole_vectors_are_moved_at_once(kernel: DeviceFunction, dtype: DType) -> None:
    made = compile_kernel(function_of(kernel, dtype), TARGET, num_warps=1, disjoint=True)
    assert accesses(made.ptx, "ld").count("v4.b32") == 1024 * dtype.itemsize // 16 // 32
    assert accesses(made.ptx, "st").count("v4.b32") == 1024 * dtype.itemsize // 16 // 32


def run(kernel: DeviceFunction, dtype: DType, low: int, high: int, num_warps: int) -> np.ndarray:
    """Two programs' output, -1 where nothing was written. No byte beyond ``high`` is touched."""
    function = function_of(kernel, dtype)
    writer = write_module(function, TARGET, num_warps=num_warps, disjoint=True)
    gpu = Emulator(writer.module.text(), entry_name(function), num_warps)
    x = (np.arange(2 * BLOCK) % 100).astype(dtype.numpy)
    out = np.full(2 * BLOCK, -1, dtype.numpy)
    both = [x, out]
    held = []
    for array in both:
        space = np.zeros(array.nbytes + 32, np.uint8)
        start = -space.ctypes.data % 16
        held.append(space[start : start + array.nbytes].view(array.dtype))
        held[-1][:] = array
    addresses = [array.ctypes.data for array in held]
    gpu.launch([*addresses, low, high], (2,), seed=low)
    if kernel is not rows:
        log = gpu.accesses(GLOBAL_SPACE)
        ends = log[:, 0] + (log[:, 1] & 0xFFFF)
        limit = max(high, 0) * dtype.itemsize
        assert all(
            any(at <= a and end <= at + limit for at in addresses)
            for a, end in zip(log[:, 0], ends)
        )
    return held[1]


HIGHS = (0, 1, 3, 4, 5, 17, 1021, 1024, 1030, 2045, 2048)


@emulated
@pytest.mark.parametrize("dtype", [float32, float16, int8])
@pytest.mark.parametrize("high", HIGHS)
def test_below_a_bound(dtype: DType, high: int) -> None:
    got = run(below, dtype, 0, high, 4)
    where = np.arange(2 * BLOCK)
    assert np.array_equal(got, np.where(where < high, where % 100 + 1, -1))


@emulated
@pytest.mark.parametrize(("low", "high"), [(0, 2), (1, 3), (3, 1029), (7, 7), (1022, 1026), (5, 9)])
@pytest.mark.parametrize("num_warps", [1, 8])
def test_between_bounds(low: int, high: int, num_warps: int) -> None:
    got = run(between, float16, low, high, num_warps)
    where = np.arange(2 * BLOCK)
    assert np.array_equal(got, np.where((where >= low) & (where < high), where % 100 + 1, -1))


@emulated
@pytest.mark.parametrize("high", [0, 1, 31, 128])
def test_rows_that_end_early(high: int) -> None:
    got = run(rows, float32, 6, high, 2)[:BLOCK].reshape(8, -1)
    x = (np.arange(BLOCK) % 100 + 1).reshape(8, -1)
    inside = (np.arange(8) < 7)[:, None] & (np.arange(BLOCK // 8) < high)[None, :]
    assert np.array_equal(got, np.where(inside, x, -1))


@emulated
@pytest.mark.parametrize("high", [0, 5, 1030])
def test_masks_of_data(high: int) -> None:
    got = run(of_data, int8, 0, high, 4)
    x = np.arange(2 * BLOCK) % 100
    inside = (np.arange(2 * BLOCK) < high) & (x > 0)
    assert np.array_equal(got, np.where(inside, x + 1, -1))
