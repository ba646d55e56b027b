"""Tiles of more elements than registers hold: right, and in code of bounded length."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.backends.nvptx import kernels
from tests.backends.nvptx.emulator import Emulator, unsupported
from tests.backends.nvptx.kernels import number, pointer, traced

import tritium.language as tl
from tritium.backends.nvptx.compile import compile_kernel, entry_name, write_module
from tritium.backends.nvptx.explain import describe
from tritium.backends.nvptx.homes import Homes, most_registers
from tritium.backends.nvptx.layouts import REGISTER, TRIP, Blocked, in_trips
from tritium.backends.nvptx.layouts.trips import split, whole
from tritium.backends.nvptx.target import gpu_target
from tritium.ir.core import Function
from tritium.ir.dtypes import DType, float16, float32, int8, int32
from tritium.ops.callable import DeviceFunction

TARGET = gpu_target("sm_90a")
LINES = 6000
"""Of LLVM IR, however large a tile is."""

emulated = pytest.mark.skipif(bool(unsupported()), reason=str(unsupported()))


@DeviceFunction
def add(x_ptr, y_ptr, out_ptr, limit, M: tl.constexpr, N: tl.constexpr):
    r, c = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    mask = r * N + c < limit
    x = tl.load(x_ptr + r * N + c, mask=mask, other=3)
    y = tl.load(y_ptr + c)
    tl.store(out_ptr + r * N + c, x + y, mask=mask)


@DeviceFunction
def sums(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr):
    r, c = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    total = tl.sum(tl.load(x_ptr + r * N + c), AXIS)
    tl.store(out_ptr + tl.arange(0, N if AXIS == 0 else M), total)


@DeviceFunction
def centred(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr):
    r, c = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + r * N + c)
    x = x - tl.expand_dims(tl.max(x, AXIS), AXIS)
    tl.store(out_ptr + r * N + c, x - tl.expand_dims(tl.min(x, AXIS), AXIS))


@DeviceFunction
def in_place(x_ptr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs)
    tl.store(x_ptr + offs, x + 1)
    tl.store(x_ptr + (BLOCK - 1 - offs), x * 2)


@DeviceFunction
def transpose(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    r, c = tl.arange(0, M), tl.arange(0, N)
    x = tl.load(x_ptr + r[:, None] * N + c[None, :])
    tl.store(out_ptr + c[:, None] * M + r[None, :], tl.trans(x))


@DeviceFunction
def row_loop(x_ptr, out_ptr, rows, columns, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    mask = offs < columns
    for row in tl.range(0, rows):
        x = tl.load(x_ptr + row * columns + offs, mask=mask, other=0.0)
        if row > 0:
            tl.store(out_ptr + row * columns + offs, x / tl.sum(x, 0), mask=mask)


def given(*names: str, dtype: DType = float32) -> dict[str, Any]:
    return {f"{name}_ptr": pointer(dtype) for name in names}


def run(function: Function, num_warps: int, *arguments: Any, seed: int = 0) -> int:
    """Run one program; the number of lines that it took."""
    text = write_module(function, TARGET, num_warps=num_warps, disjoint=True).module.text()
    gpu = Emulator(text, entry_name(function), num_warps)
    held = [x.ctypes.data if isinstance(x, np.ndarray) else x for x in arguments]
    gpu.launch(held, seed=seed)
    return text.count("\n")


def array(*shape: int, dtype: Any = np.float32, seed: int = 0) -> np.ndarray:
    """Small whole numbers at an address that is a multiple of 16."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    space = np.zeros(size + 16, np.uint8)
    start = -space.ctypes.data % 16
    made = space[start : start + size].view(dtype).reshape(shape)
    made[...] = np.random.default_rng(seed).integers(-8, 9, shape)
    return made


# ---- layouts -------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_layout_in_trips_is_the_same_map(order: tuple[int, int]) -> None:
    shape = (16, 4096)
    layout = Blocked.covering(shape, order, 4, 4).layout(shape)
    parts = split(layout, 128, 32)
    assert (parts.input_extent(REGISTER), parts.input_extent(TRIP)) == (32, 16)
    assert whole(parts) == (layout, (32, 64, 128, 256))
    for trip in range(16):
        for register in range(32):
            assert parts(trip=trip, register=register) == layout(register=register + 32 * trip)


def test_small_layouts_are_left_alone() -> None:
    layout = Blocked.covering((4096,), (0,), 4, 1).layout((4096,))
    assert split(layout, 128, 32) is layout
    assert not in_trips(layout)


@pytest.mark.parametrize("num_warps", [1, 2, 4, 8, 16, 32])
def test_what_is_held_at_once_fits_into_the_registers(num_warps: int) -> None:
    function = traced(
        kernels.softmax, **given("x", "out"), stride=number(), columns=number(), BLOCK=2**17
    )
    homes = Homes(function, num_warps)
    for layout in homes.home.values():
        assert layout.input_extent(REGISTER) <= most_registers(num_warps)


# ---- results -------------------------------------------------------------------------------------


@emulated
@pytest.mark.parametrize(
    ("m", "n", "num_warps"), [(4, 65536, 4), (2, 32768, 8), (64, 2048, 1), (5, 20000, 4)]
)
@pytest.mark.parametrize("dtype", [float32, float16, int8])
def test_elementwise(m: int, n: int, num_warps: int, dtype: DType) -> None:
    function = traced(
        add, **given("x", "y", "out", dtype=dtype), limit=number(int32, False), M=m, N=n
    )
    x, y = array(m, n, dtype=dtype.numpy), array(n, dtype=dtype.numpy, seed=1)
    out = array(m, n, dtype=dtype.numpy, seed=2)
    limit = m * n - 77
    wanted = np.where(np.arange(m * n).reshape(m, n) < limit, x + y, out)
    assert run(function, num_warps, x, y, out, limit) < LINES
    assert np.array_equal(out, wanted)


@emulated
@pytest.mark.parametrize(
    ("columns", "block"), [(65536, 65536), (50000, 65536), (50001, 65536), (3, 2**17)]
)
@pytest.mark.parametrize("num_warps", [4, 16])
def test_softmax(columns: int, block: int, num_warps: int) -> None:
    numbers = {name: number(int32, False) for name in ("stride", "columns")}
    function = traced(kernels.softmax, **given("x", "out"), **numbers, BLOCK=block)
    x, out = array(columns), array(columns, seed=1)
    assert run(function, num_warps, x, out, columns, columns) < LINES
    e = np.exp(x.astype(np.float64) - x.max())
    assert np.allclose(out, e / e.sum(), rtol=1e-5, atol=0)


SHAPES = ((4, 65536), (512, 256), (65536, 2), (3, 30000), (1000, 70))


@emulated
@pytest.mark.parametrize(("m", "n"), SHAPES)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("num_warps", [2, 8])
def test_sums(m: int, n: int, axis: int, num_warps: int) -> None:
    function = traced(sums, **given("x", "out"), M=m, N=n, AXIS=axis)
    x, out = array(m, n), np.zeros(n if axis == 0 else m, np.float32)
    run(function, num_warps, x, out, seed=m)
    assert np.array_equal(out, x.sum(axis))


@emulated
@pytest.mark.parametrize(("m", "n"), SHAPES)
@pytest.mark.parametrize("axis", [0, 1])
def test_reductions_that_come_back(m: int, n: int, axis: int) -> None:
    function = traced(centred, **given("x", "out"), M=m, N=n, AXIS=axis)
    x, out = array(m, n), array(m, n, seed=1)
    run(function, 4, x, out, seed=n)
    moved = x - x.max(axis, keepdims=True)
    assert np.array_equal(out, moved - moved.min(axis, keepdims=True))


@emulated
def test_a_store_waits_for_all_trips_of_a_load() -> None:
    block = 2**16
    x = array(block)
    wanted = (x * 2)[::-1].copy()
    run(traced(in_place, **given("x"), BLOCK=block), 4, x)
    assert np.array_equal(x, wanted)


@emulated
@pytest.mark.parametrize(("m", "n"), [(256, 256), (8, 8192), (300, 200), (512, 512), (2, 65536)])
def test_transpositions(m: int, n: int) -> None:
    x, out = array(m, n), np.zeros((n, m), np.float32)
    run(traced(transpose, **given("x", "out"), M=m, N=n), 4, x, out)
    assert np.array_equal(out, x.T)


@emulated
def test_inside_of_loops_and_branches() -> None:
    numbers = {name: number(int32, False) for name in ("rows", "columns")}
    function = traced(row_loop, **given("x", "out"), **numbers, BLOCK=2**15)
    x, out = np.abs(array(3, 20001)) + 1, np.zeros((3, 20001), np.float32)
    assert run(function, 2, x, out, 3, 20001) < LINES
    assert np.allclose(out[1:], x[1:] / x[1:].sum(1, keepdims=True), rtol=1e-6)
    assert not out[0].any()


def test_ptx_is_short() -> None:
    function = traced(add, **given("x", "y", "out"), limit=number(), M=4, N=65536)
    ptx = compile_kernel(function, TARGET, num_warps=4, disjoint=True).ptx
    assert ptx.count("\n") < LINES
    assert "v4.b32" in ptx


@DeviceFunction
def both_ways(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    r, c = tl.arange(0, M), tl.arange(0, N)
    x = tl.load(x_ptr + r[:, None] * N + c[None, :])
    tl.store(out_ptr + c[:, None] * M + r[None, :], tl.trans(x * 2))
    tl.store(x_ptr + r[:, None] * N + c[None, :], x - tl.max(x, 0)[None, :])


@emulated
@pytest.mark.parametrize("dtype", [float16, int8])
@pytest.mark.parametrize(("m", "n", "num_warps"), [(256, 256, 2), (512, 200, 4), (128, 1024, 1)])
def test_tiles_that_are_wanted_twice(dtype: DType, m: int, n: int, num_warps: int) -> None:
    x, out = array(m, n, dtype=dtype.numpy), np.zeros((n, m), dtype.numpy)
    before = x.copy()
    function = traced(both_ways, **given("x", "out", dtype=dtype), M=m, N=n)
    assert run(function, num_warps, x, out) < LINES
    assert np.array_equal(out, before.T * 2)
    assert np.array_equal(x, before - before.max(0))


@DeviceFunction
def carried(x_ptr, out_ptr, rows, turns, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    low = tl.zeros([BLOCK], dtype=tl.float32)
    high = tl.full([BLOCK], 1.0, dtype=tl.float32)
    for row in tl.range(0, rows):
        x = tl.load(x_ptr + row * BLOCK + offs)
        if row > 1:
            high = high + tl.max(x, 0)
        low, high = high, low + x
    while turns > 0:
        low += 1
        turns -= 1
    tl.store(out_ptr + offs, low)
    tl.store(out_ptr + BLOCK + offs, high)


@emulated
@pytest.mark.parametrize(("rows", "turns"), [(0, 0), (1, 2), (4, 1), (5, 0)])
@pytest.mark.parametrize("num_warps", [2, 8])
def test_what_loops_and_branches_carry(rows: int, turns: int, num_warps: int) -> None:
    block = 40000
    numbers = {name: number(int32, False) for name in ("rows", "turns")}
    function = traced(carried, **given("x", "out"), **numbers, BLOCK=block)
    x, out = array(5, block), array(2, block, seed=1)
    assert run(function, num_warps, x, out, rows, turns) < LINES
    low, high = np.zeros(block, np.float32), np.ones(block, np.float32)
    for row in range(rows):
        if row > 1:
            high = high + x[row].max()
        low, high = high, low + x[row]
    assert np.array_equal(out, [low + turns, high])


@DeviceFunction
def positions(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr):
    r, c = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    at = tl.argmax(tl.load(x_ptr + r * N + c), AXIS)
    tl.store(out_ptr + tl.arange(0, N if AXIS == 0 else M), at)


@emulated
@pytest.mark.parametrize(("m", "n"), SHAPES)
@pytest.mark.parametrize("axis", [0, 1])
def test_reductions_by_functions(m: int, n: int, axis: int) -> None:
    function = traced(positions, **given("x"), out_ptr=pointer(int32), M=m, N=n, AXIS=axis)
    x, out = array(m, n), np.zeros(n if axis == 0 else m, np.int32)
    run(function, 4, x, out, seed=m)
    assert np.array_equal(out, x.argmax(axis))


def test_conversions_are_explained() -> None:
    function = traced(transpose, **given("x", "out"), M=512, N=512)
    shown = describe(function, TARGET, 4, 0)
    assert "in 16 chunks, each: through 65536 bytes of shared memory" in shown
