"""What hints do for accesses to memory, and that they change nothing else."""

from __future__ import annotations

import re

import numpy as np
import pytest
import tests.backends.nvptx.emulator as emu
from tests.backends.nvptx import kernels
from tests.backends.nvptx.kernels import number, pointer, traced

import tritium.language as tl
from tritium import passes
from tritium.backends.nvptx.compile import compile_kernel, write_module
from tritium.backends.nvptx.target import gpu_target
from tritium.ir import Function, function_text, parse_function
from tritium.ir.dtypes import int32
from tritium.ops.callable import DeviceFunction
from tritium.ops.hints import Assume, Promise

TARGET = gpu_target("sm_90a")


def given(kernel: DeviceFunction) -> Function:
    specs = {"x_ptr": pointer(), "index_ptr": pointer(int32), "out_ptr": pointer()}
    sizes = {"n": number(divisible=False), "stride": number(divisible=False)}
    return traced(kernel, **specs, **sizes, BLOCK=512)


def widths(function: Function) -> set[str]:
    ptx = compile_kernel(function, TARGET, num_warps=4, disjoint=True).ptx
    return set(re.findall(r"(?:ld|st)\.global(?:\.nc)?\.(v\d\.b\d+|b\d+)", ptx))


def test_hints_make_accesses_of_16_bytes() -> None:
    # The index of the block is one word for all threads.
    assert widths(given(kernels.hinted)) == {"v4.b32", "b32"}
    ptx = compile_kernel(given(kernels.hinted), TARGET, num_warps=4, disjoint=True).ptx
    assert len(re.findall(r"ld\.global(?:\.nc)?\.b32", ptx)) == 1
    assert widths(given(kernels.unhinted)) == {"b32"}


def test_hints_stand_in_the_text_of_the_ir_and_the_cpu_forgets_them() -> None:
    function = given(kernels.hinted)
    assert function_text(parse_function(function_text(function))) == function_text(function)
    assert {type(op) for op in function.walk()} >= {Promise, Assume}
    passes.run_pipeline(function)
    assert not {type(op) for op in function.walk()} & {Promise, Assume}


@DeviceFunction
def told_twice(x_ptr, n):
    offs = tl.max_contiguous(tl.multiple_of(tl.arange(0, 64) % n, 16), 32)
    tl.store(x_ptr + tl.multiple_of(tl.max_constancy(offs, 1), 8), 1.0)


def test_promises_of_one_value_are_one() -> None:
    ops = traced(told_twice, x_ptr=pointer(), n=number()).walk()
    (promise,) = [op for op in ops if isinstance(op, Promise)]
    assert (promise.multiple, promise.contiguous, promise.constant) == ((16,), (32,), (1,))


@DeviceFunction
def a_hint_of_a_float(x_ptr, out_ptr):
    offs = tl.arange(0, 64)
    x = tl.max_constancy(tl.load(x_ptr + offs), 4)
    tl.store(out_ptr + offs, tl.max_contiguous(x > 0, 64).to(tl.float32))


def test_hints_of_what_is_no_integer_say_nothing() -> None:
    function = traced(a_hint_of_a_float, x_ptr=pointer(), out_ptr=pointer())
    assert not any(isinstance(op, Promise) for op in function.walk())


@pytest.mark.skipif(emu.unsupported() is not None, reason=str(emu.unsupported()))
def test_a_hinted_kernel_does_what_it_says() -> None:
    rng = np.random.default_rng(3)
    stride, n = 2048, 496
    x = rng.standard_normal(3 * stride).astype(np.float32)
    index = np.array([512, 0, 1024], np.int32)
    out = {}
    for kernel in (kernels.hinted, kernels.unhinted):
        writer = write_module(given(kernel), TARGET, num_warps=4, disjoint=True)
        out[kernel] = np.zeros(stride, np.float32)
        memory = [array.ctypes.data for array in (x, index, out[kernel])]
        gpu = emu.Emulator(writer.module.text(), kernel.__name__, 4)
        gpu.launch([*memory, n, stride], grid=(3, 1, 1))
    assert np.array_equal(out[kernels.hinted], out[kernels.unhinted])
    assert out[kernels.hinted].any()
