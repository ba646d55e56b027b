"""What must be known when a kernel is compiled: locals may stand for it, run-time values not."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.frontend.kernels import PTR, compile, underlined
from tests.interp.launching import launch

from tritium.diagnostics import TritiumError
from tritium.ops.callable import DeviceFunction

FLAGS = {
    "tl.sort(x, descending=FLAG)": "descending",
    "tl.argsort(x, descending=FLAG)": "descending",
    "tl.topk(x, 2, descending=FLAG)": "descending",
    "tl.topk(x, 2, return_indices=FLAG)": "return_indices",
    "tl.bitonic_merge(x, descending=FLAG)": "descending",
    "tl.cumsum(x, 0, reverse=FLAG)": "reverse",
    "tl.cumsum(x, 0, exclusive=FLAG)": "exclusive",
    "tl.cumprod(x, 0, reverse=FLAG)": "reverse",
    "tl.cumprod(x, 0, exclusive=FLAG)": "exclusive",
    "tl.associative_scan(x, 0, add, reverse=FLAG)": "reverse",
    "tl.reduce(x, 0, add, keep_dims=FLAG)": "keep_dims",
    "tl.sum(x, 0, keep_dims=FLAG)": "keep_dims",
    "tl.max(x, 0, keep_dims=FLAG)": "keep_dims",
    "tl.max(x, 0, return_indices=FLAG)": "return_indices",
    "tl.min(x, 0, True, return_indices_tie_break_left=FLAG)": "return_indices_tie_break_left",
    "tl.argmax(x, 0, tie_break_left=FLAG)": "tie_break_left",
    "tl.argmin(x, 0, keep_dims=FLAG)": "keep_dims",
    "tl.any(x, 0, keep_dims=FLAG)": "keep_dims",
    "tl.all(x, 0, keep_dims=FLAG)": "keep_dims",
    "tl.count(x, 0, keep_dims=FLAG)": "keep_dims",
    "tl.xor_sum(x, 0, keep_dims=FLAG)": "keep_dims",
    "tl.reduce_or(x, 0, keep_dims=FLAG)": "keep_dims",
    "tl.softmax(f, 0, ieee_rounding=FLAG)": "ieee_rounding",
    "tl.reshape(x, 2, 2, can_reorder=FLAG)": "can_reorder",
    "tl.ravel(x, can_reorder=FLAG)": "can_reorder",
    "tl.cat(x, x, can_reorder=FLAG)": "can_reorder",
    "tl.cast(x, tl.float32, bitcast=FLAG)": "bitcast",
    "tl.fdiv(f, f, ieee_rounding=FLAG)": "ieee_rounding",
    "tl.fdiv(f, f, approx=FLAG)": "approx",
    "tl.add(x, x, sanitize_overflow=FLAG)": "sanitize_overflow",
    "tl.sub(x, x, sanitize_overflow=FLAG)": "sanitize_overflow",
    "tl.mul(x, x, sanitize_overflow=FLAG)": "sanitize_overflow",
    "tl.dot(m, m, allow_tf32=FLAG)": "allow_tf32",
    "tl.load(p, volatile=FLAG)": "volatile",
    "tl.device_print('x', x, hex=FLAG)": "hex",
    "tl.static_print(1, flush=FLAG)": "flush",
    "tl.range(0, 4, flatten=FLAG)": "flatten",
    "tl.range(0, 4, warp_specialize=FLAG)": "warp_specialize",
    "tl.range(0, 4, disallow_acc_multi_buffer=FLAG)": "disallow_acc_multi_buffer",
    "tl.range(0, 4, disable_licm=FLAG)": "disable_licm",
}
"""Calls with a yes or no, and the parameter that takes it."""

NUMBERS = {
    "tl.program_id(FLAG)": "axis",
    "tl.sum(x, FLAG - 1)": "axis",
    "tl.topk(x, FLAG)": "k",
    "tl.sort(x, FLAG - 1)": "dim",
    "tl.flip(x, FLAG - 1)": "dim",
    "tl.histogram(x, FLAG)": "num_bins",
    "tl.map_elementwise(one, x, pack=FLAG)": "pack",
    "tl.arange(0, FLAG)": "end",
    "tl.gather(x, x, FLAG - 1)": "axis",
    "tl.expand_dims(x, FLAG)": "axis",
    "tl.zeros((FLAG,), tl.int32)": "shape",
    "tl.softmax(f, FLAG - 1)": "axis",
    "tl.full((FLAG,), 0, tl.int32)": "shape",
    "tl.dot(m, m, max_num_imprecise_acc=FLAG)": "max_num_imprecise_acc",
    "tl.range(0, 4, num_stages=FLAG)": "num_stages",
    "tl.range(0, 4, loop_unroll_factor=FLAG)": "loop_unroll_factor",
    "tl.static_range(FLAG)": "arg1",
    "tl.multiple_of(x, FLAG)": "values",
    "tl.load(block, boundary_check=(FLAG - 1,))": "boundary_check",
    "tl.make_block_ptr(p, (4,), (1,), (0,), (FLAG,), (0,))": "block_shape",
    "tl.make_block_ptr(p, (4,), (1,), (0,), (1,), (FLAG - 1,))": "order",
}

WORDS = {
    "tl.dot(m, m, input_precision=FLAG)": "input_precision",
    "tl.cast(f, tl.float16, fp_downcast_rounding=FLAG)": "fp_downcast_rounding",
    "tl.maximum(f, f, propagate_nan=FLAG)": "propagate_nan",
    "tl.minimum(f, f, propagate_nan=FLAG)": "propagate_nan",
    "tl.clamp(f, f, f, propagate_nan=FLAG)": "propagate_nan",
    "tl.load(p, cache_modifier=FLAG)": "cache_modifier",
    "tl.load(p, eviction_policy=FLAG)": "eviction_policy",
    "tl.load(block, padding_option=FLAG)": "padding_option",
    "tl.store(p, 1, cache_modifier=FLAG)": "cache_modifier",
    "tl.store(p, 1, eviction_policy=FLAG)": "eviction_policy",
    "tl.atomic_add(p, 1, sem=FLAG)": "sem",
    "tl.atomic_xchg(p, 1, scope=FLAG)": "scope",
    "tl.atomic_cas(p, 0, 1, sem=FLAG)": "sem",
    "tl.atomic_load(p, sem=FLAG)": "sem",
    "tl.atomic_store(p, 1, scope=FLAG)": "scope",
    "tl.static_print(1, sep=FLAG)": "sep",
    "tl.static_print(1, end=FLAG)": "end",
    "tl.static_assert(True, FLAG)": "msg",
    "tl.static_assert(FLAG == 0)": "cond",
    "tl.make_tensor_descriptor(p, [4], [1], [4], padding_option=FLAG)": "padding_option",
    "tl.make_tensor_descriptor(p, [4], [1], [FLAG])": "block_shape",
}

STRIDE = "tl.make_tensor_descriptor(p, [4], [FLAG], [4]).load([0])"
"""A run-time stride is refused too, but by E0206, which says which one it must be."""

TEMPLATE = """
import tritium.language as tl
from tritium.ops.callable import composite


@composite
def add(a, b):
    return a + b


@composite
def one(a):
    return a


@composite
def kernel(p):
    FLAG = {flag}
    x = tl.arange(0, 4)
    f = x.to(tl.float32)
    m = tl.full((16, 16), 0.0, tl.float32)
    block = tl.make_block_ptr(p, (4,), (1,), (0,), (4,), (0,))
    {call}
"""


def written(folder: Path, flag: str, call: str) -> DeviceFunction:
    source = folder / "written.py"
    source.write_text(TEMPLATE.format(flag=flag, call=call))
    spec = importlib.util.spec_from_file_location("written", source)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made: DeviceFunction = module.kernel
    return made


def run(kernel: DeviceFunction, executor: str) -> Any:
    if executor == "compiled":
        return compile(kernel, PTR)
    return launch(kernel, (1,), p=np.zeros(8, np.int32))


@pytest.mark.parametrize("executor", ["compiled", "eager"])
@pytest.mark.parametrize("call", [*FLAGS, *NUMBERS, *WORDS])
def test_run_time_values_are_refused(call: str, executor: str, tmp_path: Path) -> None:
    name = {**FLAGS, **NUMBERS, **WORDS}[call]
    kernel = written(tmp_path, "tl.load(p)", call)
    with pytest.raises(TritiumError) as caught:
        run(kernel, executor)
    problem = caught.value
    assert (problem.code, problem.argument) == ("E0205", name), problem
    assert name in problem.message
    assert "FLAG" in underlined(problem.loc)


@pytest.mark.parametrize("executor", ["compiled", "eager"])
@pytest.mark.parametrize("call", [*FLAGS, *NUMBERS, STRIDE])
def test_locals_may_stand_for_constants(call: str, executor: str, tmp_path: Path) -> None:
    for value in ("1", "True" if call in FLAGS else "3 // 2"):
        run(written(tmp_path, value, call), executor)


@pytest.mark.parametrize("executor", ["compiled", "eager"])
@pytest.mark.parametrize("call", FLAGS)
def test_a_flag_is_no_word(call: str, executor: str, tmp_path: Path) -> None:
    kernel = written(tmp_path, "1", call.replace("FLAG", "'FLAG'"))
    with pytest.raises(TritiumError) as caught:
        run(kernel, executor)
    assert (caught.value.code, caught.value.argument) == ("E0204", FLAGS[call])
    assert "FLAG" in underlined(caught.value.loc)
