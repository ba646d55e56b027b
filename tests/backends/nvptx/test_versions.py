"""Code for rows that turn out to be aligned at run time, beside code for any."""

from __future__ import annotations

import numpy as np
import pytest
from tests.backends.nvptx.emulator import GLOBAL_SPACE, Emulator, unsupported
from tests.backends.nvptx.kernels import number, pointer, traced
from tests.backends.nvptx.test_structure import accesses

import tritium.language as tl
from tritium.backends.nvptx.compile import compile_kernel, entry_name, write_module
from tritium.backends.nvptx.target import gpu_target
from tritium.backends.nvptx.versions import Versions
from tritium.ir.core import Function
from tritium.ir.dtypes import DType, float16, float32, int8, int32
from tritium.ops.callable import DeviceFunction

TARGET = gpu_target("sm_90a")


@DeviceFunction
def rows(x_ptr, out_ptr, stride, columns, BLOCK: tl.constexpr):
    x_ptr += tl.program_id(0) * stride
    offs = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in tl.range(0, columns, BLOCK):
        mask = start + offs < columns
        total += tl.load(x_ptr + start + offs, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + tl.program_id(0), tl.sum(total, axis=0))


def function_of(dtype: DType = float16, divisible: bool = False, aligned: bool = True) -> Function:
    given = {"x_ptr": pointer(dtype, aligned), "out_ptr": pointer()}
    numbers = {name: number(int32, divisible) for name in ("stride", "columns")}
    return traced(rows, **given, **numbers, BLOCK=1024)


@pytest.mark.parametrize(("dtype", "divisor"), [(float16, 8), (float32, 4)])
def test_only_what_addresses_are_made_of_is_tested(dtype: DType, divisor: int) -> None:
    function = function_of(dtype)
    versions = Versions(function, 4)
    assert versions.divisor == divisor
    assert versions.tested == [function.params[2].value]
    assert len(versions.all) == 2


def test_one_version_is_enough() -> None:
    """Where rows are known to be aligned, where the array isn't, and where 16 is what it takes:
    multiples of that are launches of their own."""
    for function in (function_of(divisible=True), function_of(aligned=False), function_of(int8)):
        assert len(Versions(function, 4).all) == 1


def test_both_are_in_the_code() -> None:
    ptx = compile_kernel(function_of(), TARGET, num_warps=4, disjoint=True).ptx
    assert accesses(ptx, "ld").count("v4.b32") == 1
    assert accesses(ptx, "ld").count("b16") >= 8


@pytest.mark.skipif(bool(unsupported()), reason=str(unsupported()))
@pytest.mark.parametrize(("stride", "wide"), [(1000, True), (1004, False), (1001, False)])
@pytest.mark.parametrize("columns", [1000, 997, 3])
def test_rows(stride: int, wide: bool, columns: int) -> None:
    function = function_of()
    writer = write_module(function, TARGET, num_warps=2, disjoint=True)
    gpu = Emulator(writer.module.text(), entry_name(function), 2)
    space = np.zeros(3 * stride + 8, np.float16)
    start = -space.ctypes.data % 16 // 2
    x = space[start : start + 3 * stride]
    x[:] = np.arange(3 * stride) % 7
    out = np.zeros(3, np.float32)
    gpu.launch([x.ctypes.data, out.ctypes.data, stride, columns], (3,), seed=stride)
    assert np.array_equal(out, x.reshape(3, stride)[:, :columns].astype(np.float32).sum(1))
    log = gpu.accesses(GLOBAL_SPACE)
    assert (16 in set(log[:, 1] & 0xFFFF)) == (wide and columns >= 8)
