"""Kernels run step by step: values, types, memory, errors."""

from __future__ import annotations

import bdb
import collections
import pathlib
import pickle
import sys
import warnings
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tests.interp.launching import Raw, jit, launch

import tritium.language as tl
from tritium import interp
from tritium.diagnostics import InterpreterError, TritiumError, TritiumWarning, error
from tritium.ir.dtypes import (
    bfloat16,
    float8e4b15,
    float8e4nv,
    float16,
    float64,
    int1,
    int8,
    int32,
    uint8,
    uint32,
)

SEEN: list[Any] = []


@pytest.fixture(autouse=True)
def forget() -> None:
    SEEN.clear()


# ---- launches ------------------------------------------------------------------------------------


@jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(0)
    offs = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    y = tl.load(y_ptr + offs, mask=mask)
    out = x + y
    tl.store(out_ptr + offs, out, mask=mask)


@pytest.mark.parametrize("n", [0, 1, 255, 256, 257, 1000])
def test_the_guides_first_kernel(n: int) -> None:
    rng = np.random.default_rng(n)
    x, y = rng.random(n, np.float32), rng.random(n, np.float32)
    padded = np.full(n + 8, -1, np.float32)
    grid = ((n + 255) // 256,)
    launch(add_kernel, grid, x_ptr=x, y_ptr=y, out_ptr=padded[:n], n=n, BLOCK_SIZE=256)
    assert np.array_equal(padded[:n], x + y)
    assert np.all(padded[n:] == -1)


@jit
def note_program(note: tl.constexpr):
    pids = (tl.program_id(0), tl.program_id(1), tl.program_id(2))
    counts = (tl.num_programs(0), tl.num_programs(1), tl.num_programs(2))
    note([int(each) for each in (*pids, *counts)])


@pytest.mark.parametrize("grid", [(4,), (2, 3), (2, 3, 2), (0,), (3, 0), (1, 1, 5)])
def test_programs_start_in_linear_order(grid: tuple[int, ...]) -> None:
    launch(note_program, grid, note=SEEN.append)
    x, y, z = (*grid, 1, 1)[:3]
    want = [[i, j, k, x, y, z] for k in range(z) for j in range(y) for i in range(x)]
    assert want == SEEN


@jit
def note_arguments(a, b, c, pair, named, F: tl.constexpr, d=4, *, e=None):
    b_ = b
    F(
        (a.dtype, int(a)),
        (b_.dtype, float(b_)),
        c,
        (int(pair[0]), pair[1]),
        (int(named.left), named.right is None),
        d,
        e,
        isinstance(named, tl.tuple),
    )


def test_arguments_of_every_kind() -> None:
    pair = collections.namedtuple("Pair", "left right")
    launch(
        note_arguments,
        (1,),
        a=interp.Scalar(uint8, -1),
        b=interp.Scalar(float64, 0.1),
        c=None,
        pair=(7, interp.Known("text")),
        named=pair(5, None),
        F=lambda *args: SEEN.extend(args),
    )
    assert [(uint8, 255), (float64, 0.1), None, (7, "text"), (5, True), 4, None, True] == SEEN


# ---- numbers -------------------------------------------------------------------------------------


@jit
def wraps(x_ptr, out_ptr, f_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    tl.store(out_ptr + tl.arange(0, N), x * x + x)
    seven = 7
    tl.store(f_ptr, seven // -2)
    tl.store(f_ptr + 1, seven % -2)
    tl.store(f_ptr + 2, -seven // 2)
    seven += 2147483647
    tl.store(f_ptr + 3, seven)


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"])
def test_integers_wrap_and_divide_as_in_c(dtype: str) -> None:
    info = np.iinfo(dtype)
    x = np.array([0, 1, info.max, info.min, info.max // 3, info.max - 1, 77, 90], dtype)
    out, facts = np.zeros_like(x), np.zeros(4, np.int32)
    launch(wraps, (1,), x_ptr=x, out_ptr=out, f_ptr=facts, N=8)
    want = [(int(v) * int(v) + int(v)) % 2**info.bits for v in x]
    assert [int(v) % 2**info.bits for v in out] == want
    assert facts.tolist() == [-3, 1, -3, -2147483642]


@jit
def multiply_add(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x, y = tl.load(x_ptr + offs), tl.load(y_ptr + offs)
    tl.store(out_ptr + offs, x * y + x)


def test_bfloat16_rounds_every_operation() -> None:
    rng = np.random.default_rng(1)
    x, y = (rng.standard_normal(512).astype(np.float32).view(np.uint32) for _ in range(2))
    x, y = ((each >> 16 << 16).view(np.float32) for each in (x, y))

    def rounded(values: np.ndarray) -> np.ndarray:
        bits = values.astype(np.float32).view(np.uint32).astype(np.uint64)
        return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16 << 16).astype(np.uint32).view(np.float32)

    out = np.zeros(512, ml_dtypes.bfloat16)
    x16, y16 = x.astype(ml_dtypes.bfloat16), y.astype(ml_dtypes.bfloat16)
    launch(multiply_add, (1,), x_ptr=x16, y_ptr=y16, out_ptr=out, N=512)
    assert np.array_equal(out.astype(np.float32), rounded(rounded(x * y) + x))


@jit
def convert(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    tl.store(out_ptr + offs, x.to(tl.float32))


@pytest.mark.parametrize(
    "dtype, largest", [(float8e4nv, 448.0), (float8e4b15, 1.875)], ids=["e4nv", "e4b15"]
)
def test_fp8_is_no_bit_pattern(dtype: Any, largest: float) -> None:
    patterns = np.arange(127, dtype=np.uint8)
    out = np.zeros(127, np.float32)
    launch(convert, (1,), x_ptr=Raw(patterns, dtype), out_ptr=out, N=127)
    mantissa, exponent = patterns & 7, (patterns >> 3).astype(np.int64)
    bias = dtype.exponent_bias
    scale = np.where(exponent == 0, 2.0 ** (1 - bias), 2.0 ** (exponent - bias))
    want = scale * ((exponent > 0) + mantissa / 8.0)
    assert np.array_equal(out, want.astype(np.float32))
    assert out[-1] == largest or dtype is float8e4b15


@jit
def narrow(x_ptr, out_ptr):
    tl.store(out_ptr, tl.load(x_ptr))


@pytest.mark.parametrize(
    "value, dtype, want",
    [
        (1.0 + 2.0**-9, bfloat16, 1.0),
        (1.0 + 3 * 2.0**-9, bfloat16, 1.0078125),
        (2049.0, float16, 2048.0),
        (1000.0, float8e4nv, 448.0),
        (3.9, int8, 3),
        (0.5, int1, True),
    ],
)
def test_stores_convert(value: float, dtype: Any, want: Any) -> None:
    x, out = np.array([value], np.float64), np.zeros(1, dtype.numpy)
    launch(narrow, (1,), x_ptr=x, out_ptr=Raw(out, dtype))
    assert out[0] == want


# ---- memory --------------------------------------------------------------------------------------


@jit
def shift(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs))


def test_a_program_reads_its_tile_before_it_writes() -> None:
    buffer = np.arange(9, dtype=np.int32)
    launch(shift, (1,), x_ptr=buffer[:-1], out_ptr=buffer[1:], N=8)
    assert buffer.tolist() == [0, 0, 1, 2, 3, 4, 5, 6, 7]


@jit
def increment_twice(a_ptr, b_ptr):
    tl.store(a_ptr, tl.load(a_ptr) + 1)
    tl.store(b_ptr, tl.load(b_ptr) + 1)


def test_the_same_array_twice_is_the_same_memory() -> None:
    buffer = np.zeros(1, np.int32)
    launch(increment_twice, (3,), a_ptr=buffer, b_ptr=buffer)
    assert buffer[0] == 6


@jit
def strided(x_ptr, out_ptr, rows, cols, row_step, col_step, B: tl.constexpr):
    r, c = tl.arange(0, B)[:, None], tl.arange(0, B)[None, :]
    inside = (r < rows) & (c < cols)
    x = tl.load(x_ptr + r * row_step + c * col_step, mask=inside)
    tl.store(out_ptr + r * cols + c, x + 1, mask=inside)


BASE = np.arange(60.0, dtype=np.float32).reshape(6, 10)


@pytest.mark.parametrize(
    "view",
    [
        BASE,
        BASE.T,
        BASE[::-1, ::-1],
        BASE[1:5:2, 3:],
        BASE.T[::-2],
        np.broadcast_to(BASE[2], (5, 10)),
        np.lib.stride_tricks.sliding_window_view(BASE[0], 4),
    ],
    ids=["plain", "transposed", "reversed", "part", "mixed", "expanded", "overlapping"],
)
def test_views_are_used_in_place(view: np.ndarray) -> None:
    out = np.zeros(view.shape, np.float32)
    steps = [stride // 4 for stride in view.strides]
    launch(
        strided,
        (1,),
        x_ptr=view,
        out_ptr=out,
        rows=view.shape[0],
        cols=view.shape[1],
        row_step=steps[0],
        col_step=steps[1],
        B=16,
    )
    assert np.array_equal(out, view + 1)


def test_an_unaligned_array() -> None:
    raw = np.zeros(33, np.uint8)
    x = raw[1:].view(np.float64)
    x[:] = [1, 2, 3, 4]
    launch(shift, (1,), x_ptr=x[:2], out_ptr=x[2:], N=2)
    assert x.tolist() == [1, 2, 1, 2]


@jit
def masked(x_ptr, out_ptr, n, B: tl.constexpr):
    offs = tl.arange(0, B)
    mask = offs < n
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=mask), mask=offs >= 0)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=mask, other=-1.5), mask=mask)


class Watch(interp.Client):
    """Notes every address that takes part."""

    def __init__(self) -> None:
        self.read: set[int] = set()
        self.written: set[int] = set()
        self.programs: list[Any] = []

    def program_begins(self, machine: interp.Machine) -> None:
        self.programs.append(("begins", machine.program))

    def program_ends(self, machine: interp.Machine) -> None:
        self.programs.append(("ends", machine.program))

    def after_load(self, machine: Any, op: Any, addresses: Any, mask: Any, values: Any) -> None:
        lanes = addresses if mask is None else addresses[mask]
        self.read.update(lanes.reshape(-1).tolist())

    def before_store(self, machine: Any, op: Any, addresses: Any, mask: Any, values: Any) -> None:
        lanes = addresses if mask is None else addresses[mask]
        self.written.update(lanes.reshape(-1).tolist())


def test_masked_lanes_touch_nothing() -> None:
    """The masked-off lanes point to where no memory is."""
    x, out = np.arange(1.0, 5.0, dtype=np.float32), np.full(8, 9, np.float32)
    watch = Watch()
    launch(masked, (1,), options={"clients": [watch]}, x_ptr=x, out_ptr=out, n=4, B=8)
    assert out.tolist() == [1, 2, 3, 4, 0, 0, 0, 0]
    assert watch.read == {x.ctypes.data + 4 * lane for lane in range(4)}
    assert watch.written == {out.ctypes.data + 4 * lane for lane in range(8)}
    assert watch.programs == [("begins", (0, 0, 0)), ("ends", (0, 0, 0))]


@jit
def far_masked(x_ptr, out_ptr, B: tl.constexpr):
    offs = tl.arange(0, B).to(tl.int64)
    mask = offs == 1
    far = tl.where(mask, offs, 1 << 58)
    tl.store(out_ptr + far, tl.load(x_ptr + far, mask), mask)


def test_masked_lanes_may_point_anywhere() -> None:
    x, out = np.arange(4, dtype=np.int32), np.zeros(4, np.int32)
    launch(far_masked, (1,), x_ptr=x, out_ptr=out, B=4)
    assert out.tolist() == [0, 1, 0, 0]


@jit
def duplicates(out_ptr, B: tl.constexpr):
    offs = tl.arange(0, B)
    tl.store(out_ptr + offs % 3, offs)


def test_of_duplicate_addresses_the_last_lane_stays() -> None:
    out = np.zeros(3, np.int32)
    launch(duplicates, (1,), out_ptr=out, B=16)
    assert out.tolist() == [15, 13, 14]


@jit
def booleans(x_ptr, out_ptr, B: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, B))
    tl.store(out_ptr + tl.arange(0, B), not x)


def test_booleans_are_bytes() -> None:
    x, out = np.array([0, 1, 2, 255], np.uint8), np.full(4, 7, np.uint8)
    launch(booleans, (1,), x_ptr=Raw(x, int1), out_ptr=Raw(out, int1), B=4)
    assert out.tolist() == [1, 0, 0, 0]


@jit
def through_table(table_ptr, out_ptr, COUNT: tl.constexpr, B: tl.constexpr):
    for group in range(COUNT):
        base = tl.load(table_ptr + group).to(tl.pointer_type(tl.float32))
        x = tl.load(base + tl.arange(0, B))
        tl.store(base + tl.arange(0, B), x * 2)
        tl.store(out_ptr + group * B + tl.arange(0, B), x)


def test_pointers_from_memory() -> None:
    hidden = [np.arange(4.0, dtype=np.float32) + 10 * group for group in range(3)]
    table = np.array([each.ctypes.data for each in hidden], np.int64)
    out = np.zeros(12, np.float32)
    launch(through_table, (1,), table_ptr=table, out_ptr=out, COUNT=3, B=4)
    assert out.tolist() == [0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23]
    assert hidden[2].tolist() == [40, 42, 44, 46]


@jit
def offsets(x_ptr, out_ptr, unsigned, signed):
    tl.store(out_ptr, tl.load(x_ptr + unsigned))
    tl.store(out_ptr + 1, tl.load(x_ptr + signed))


def test_offsets_extend_by_their_signedness() -> None:
    x, out = np.arange(300, dtype=np.int32), np.zeros(2, np.int32)
    launch(
        offsets,
        (1,),
        x_ptr=x[20:],
        out_ptr=out,
        unsigned=interp.Scalar(uint8, 250),
        signed=interp.Scalar(int8, 250),
    )
    assert out.tolist() == [270, 14]


# ---- faults --------------------------------------------------------------------------------------


@jit
def read_at(x_ptr, offset, B: tl.constexpr):
    pid = tl.program_id(1)
    lanes = tl.arange(0, B)[:, None] * 2 + tl.arange(0, 2)[None, :]
    if pid == 2:
        tl.load(x_ptr + lanes + (lanes == 5) * offset.to(tl.int64))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks Linux's /proc")
def test_an_unmapped_address_is_an_error_with_program_and_lane() -> None:
    x = np.zeros(64, np.float32)
    with pytest.raises(TritiumError) as caught:
        launch(read_at, (2, 4), x_ptr=x, offset=interp.Scalar(uint32, 2**32 - 1), B=16)
    assert caught.value.code == "E0608"
    assert "load in program (0, 2, 0)" in caught.value.message
    assert "lane (2, 1)" in caught.value.message
    assert line_of(caught.value).startswith("tl.load(")


@jit
def null(x_ptr):
    tl.store(x_ptr, 1)


def test_a_null_pointer() -> None:
    with pytest.raises(TritiumError) as caught:
        launch(null, (1,), x_ptr=interp.Pointer(int32, 0))
    assert caught.value.code == "E0608"
    assert "it has the address 0x0, which is a null pointer" in caught.value.message


def test_a_read_only_array_is_not_written() -> None:
    x, out = np.zeros(8, np.int32), np.zeros(8, np.int32)
    out.flags.writeable = False
    with pytest.raises(TritiumError) as caught:
        launch(shift, (1,), x_ptr=x + 1, out_ptr=out, N=8)
    assert caught.value.code == "E0514"
    assert caught.value.message.startswith("shift: argument out_ptr is read-only")
    assert not out.any()


@jit
def constant(x_ptr):
    tl.store(x_ptr, 1)


def test_a_pointer_to_const_is_not_written() -> None:
    x = np.zeros(1, np.int32)
    pointer = interp.Pointer(int32, x.ctypes.data, const=True)
    with pytest.raises(TritiumError) as caught:
        launch(constant, (1,), x_ptr=pointer)
    assert caught.value.code == "E0605"


# ---- functions -----------------------------------------------------------------------------------


@jit
def power(x, N: tl.constexpr):
    if N == 0:
        return 1
    else:
        return x * power(x, N - 1)


@jit
def factorial(n):
    if n <= 1:
        return n
    return n * factorial(n - 1)


@jit
def recursive(out_ptr, n):
    tl.store(out_ptr, power(n, 3))
    tl.store(out_ptr + 1, factorial(n))


def test_recursion_over_constants_and_over_values() -> None:
    """The second is legal here only: the compiler refuses it."""
    out = np.zeros(2, np.int32)
    launch(recursive, (1,), out_ptr=out, n=5)
    assert out.tolist() == [125, 120]


@jit
def welford(mean_a, m2_a, count_a, mean_b, m2_b, count_b):
    count = count_a + count_b
    delta = mean_b - mean_a
    share = count_b / count
    return mean_a + delta * share, m2_a + m2_b + delta * delta * count_a * share, count


@jit
def variance(x_ptr, out_ptr, B: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, B))
    zero = tl.zeros((B,), tl.float32)
    mean, m2, count = tl.reduce((x, zero, zero + 1), 0, welford)
    tl.store(out_ptr, mean)
    tl.store(out_ptr + 1, m2 / count)
    tl.store(out_ptr + 2, count)


def test_a_combine_function_of_the_users() -> None:
    x, out = np.random.default_rng(3).random(100, np.float32), np.zeros(3, np.float32)
    launch(variance, (1,), x_ptr=x, out_ptr=out, B=100)
    assert out[2] == 100
    np.testing.assert_allclose(out[:2], [x.mean(), x.var()], rtol=1e-5)


@jit
def composites(x_ptr, out_ptr, R: tl.constexpr, C: tl.constexpr):
    offs = tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :]
    x = tl.load(x_ptr + offs)
    p = tl.softmax(x, 1)
    tl.store(out_ptr + offs, p)
    n = tl.cdiv(x.shape[0], 4)
    tl.static_assert(tl.cdiv(7, 2) == 4)
    tl.store(out_ptr, n.to(tl.float32))


def test_composites_run_as_the_users_functions_do() -> None:
    x, out = np.random.default_rng(4).random((3, 20), np.float32), np.zeros((3, 20), np.float32)
    launch(composites, (1,), x_ptr=x, out_ptr=out, R=3, C=20)
    powers = np.exp(x - x.max(1, keepdims=True))
    want = powers / powers.sum(1, keepdims=True)
    want[0, 0] = 1
    np.testing.assert_allclose(out, want, rtol=1e-6)


@jit
def helper(x, scale: tl.constexpr = 3):
    return x * scale


@jit
def with_a_loop(out_ptr, n, FLAG: tl.constexpr):
    total = 0
    for i in range(n):
        if i % 2 == 1 and i != 5:
            total += helper(i) if FLAG else i
    k = 0
    while k * k < total:
        k += 1
    for j in tl.static_range(2):
        k += j
    for j in tl.range(0, 10, 5, num_stages=2):
        k += j
    tl.store(out_ptr, total)
    tl.store(out_ptr + 1, k)


@pytest.mark.parametrize("flag", [False, True])
def test_loops_branches_and_helpers(flag: bool) -> None:
    out = np.zeros(2, np.int32)
    launch(with_a_loop, (1,), out_ptr=out, n=10, FLAG=flag)
    total = sum(i * (3 if flag else 1) for i in range(1, 10, 2) if i != 5)
    root = next(k for k in range(100) if k * k >= total)
    assert out.tolist() == [total, root + 1 + 5]


@jit
def matmul(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    a_ptrs = a_ptr + rm[:, None] * K + rk[None, :]
    b_ptrs = b_ptr + rk[:, None] * N + rn[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        a = tl.load(a_ptrs, mask=(rm[:, None] < M) & (rk[None, :] < K - k * BK), other=0.0)
        b = tl.load(b_ptrs, mask=(rk[:, None] < K - k * BK) & (rn[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BK
        b_ptrs += BK * N
    c = acc.to(c_ptr.dtype.element_ty)
    tl.store(c_ptr + rm[:, None] * N + rn[None, :], c, mask=(rm[:, None] < M) & (rn[None, :] < N))


def test_matmul() -> None:
    rng = np.random.default_rng(5)
    a = rng.integers(-4, 5, (37, 29)).astype(ml_dtypes.bfloat16)
    b = rng.integers(-4, 5, (29, 41)).astype(ml_dtypes.bfloat16)
    c = np.zeros((37, 41), np.float32)
    launch(matmul, (3, 3), a_ptr=a, b_ptr=b, c_ptr=c, M=37, N=41, K=29, BM=16, BN=16, BK=16)
    assert np.array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


# ---- errors --------------------------------------------------------------------------------------


def line_of(problem: TritiumError) -> str:
    """The text a problem underlines (Python 3.10: the line)."""
    assert problem.loc is not None
    with open(problem.loc.file, encoding="utf-8") as file:
        line = file.readlines()[problem.loc.line - 1]
    return line[problem.loc.col : problem.loc.end_col].strip()


@jit
def inner_fault(x):
    return x + tl.arange(0, 3)


@jit
def fault_in_helper(out_ptr):
    x = tl.arange(0, 4)
    y = inner_fault(x)
    tl.store(out_ptr, y)


def test_a_coded_error_has_its_place_and_the_calls() -> None:
    with pytest.raises(TritiumError) as caught:
        launch(fault_in_helper, (1,), out_ptr=np.zeros(1, np.int32))
    problem = caught.value
    assert problem.code == "E0202"
    assert problem.loc is not None
    assert [each.function for each in problem.loc.chain()] == ["inner_fault", "fault_in_helper"]
    want = "x + tl.arange(0, 3)" if sys.version_info >= (3, 11) else "return x + tl.arange(0, 3)"
    assert line_of(problem) == want
    assert problem.loc.file == __file__
    assert "x + tl.arange(0, 3)" in str(problem)


@jit
def python_fault(x_ptr, values: tl.constexpr):
    x = tl.load(x_ptr)
    values[5].missing(x)


def test_the_users_exceptions_are_chained() -> None:
    with pytest.raises(InterpreterError) as caught:
        launch(python_fault, (1,), x_ptr=np.zeros(1, np.int32), values=[])
    problem = caught.value
    assert problem.code == "E0701"
    assert problem.message == "IndexError: list index out of range"
    assert isinstance(problem.__cause__, IndexError)
    assert line_of(problem).startswith("values[5]")
    innermost = problem.__traceback__
    while innermost.tb_next is not None:
        innermost = innermost.tb_next
    assert innermost.tb_frame.f_code.co_name == "python_fault"
    assert innermost.tb_frame.f_locals["values"] == []
    assert pickle.loads(pickle.dumps(problem)).message == problem.message


@jit
def undefined_name(x_ptr):
    tl.store(x_ptr, missing + 1)  # noqa: F821


def test_an_undefined_name() -> None:
    with pytest.raises(InterpreterError, match="NameError: name 'missing' is not defined"):
        launch(undefined_name, (1,), x_ptr=np.zeros(1, np.int32))


@jit
def raises(action: tl.constexpr):
    action()


@pytest.mark.parametrize("kind", [bdb.BdbQuit, KeyboardInterrupt, SystemExit, GeneratorExit])
def test_orders_to_stop_pass_as_they_are(kind: type[BaseException]) -> None:
    def stop() -> None:
        raise kind

    with pytest.raises(kind):
        launch(raises, (1,), action=stop)


def test_a_coded_error_of_a_plain_function() -> None:
    def fail() -> None:
        raise error("E0209", count=3)

    with pytest.raises(TritiumError) as caught:
        launch(raises, (1,), action=fail)
    assert caught.value.code == "E0209"
    assert caught.value.loc is not None
    assert caught.value.loc.function == "raises"


def test_outside_of_kernels_nothing_works() -> None:
    launch(raises, (1,), action=lambda: SEEN.append(tl.arange(0, 4)))
    for attempt in (lambda: tl.arange(0, 4), lambda: SEEN[0] + 1, lambda: helper(1)):
        with pytest.raises(TritiumError) as caught:
            attempt()
        assert caught.value.code in ("E0516", "E0517")


def test_numpy_says_nothing_of_overflow() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x = np.full(8, 2**31 - 1, np.int32)
        launch(wraps, (1,), x_ptr=x, out_ptr=x.copy(), f_ptr=np.zeros(4, np.int32), N=8)


def test_fusion_asked_for_is_refused_with_a_warning() -> None:
    x = np.zeros(1, np.float32)
    arguments = {"x_ptr": x, "out_ptr": x}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        launch(narrow, (1,), options={"enable_fp_fusion": False}, **arguments)
        launch(narrow, (1,), options={"enable_fp_fusion": None}, **arguments)
    with pytest.warns(TritiumWarning, match="W0902"):
        launch(narrow, (1,), options={"enable_fp_fusion": True}, **arguments)


# ---- plain Python --------------------------------------------------------------------------------


@jit
def python_inside(x_ptr, note: tl.constexpr):
    import math as mathematics

    x = tl.load(x_ptr + tl.arange(0, 2))
    names = {"half": 0.5, "list": [1, 2]}
    names["list"].append(3)

    def scaled(value, by=2):
        return value * by

    try:
        raise KeyError("a")
    except KeyError as problem:
        text = str(problem)
    twice = scaled(x)
    with open(note.__code__.co_filename) as file:
        first = file.readline()
    note(twice, names, text, mathematics.floor(2.5), (lambda v: v + 1)(x), first, f"{x}")
    print("x is", x)


def test_ordinary_python_is_legal(capsys: pytest.CaptureFixture[str]) -> None:
    def note(*values: Any) -> None:
        SEEN.extend(values)

    launch(python_inside, (1,), x_ptr=np.array([1.5, 2.5], np.float32), note=note)
    twice, names, text, floor, more, first, shown = SEEN
    assert twice.data.tolist() == [3.0, 5.0]
    assert names == {"half": 0.5, "list": [1, 2, 3]}
    assert (text, floor) == ("'a'", 2)
    assert more.data.tolist() == [2.5, 3.5]
    assert first.startswith('"""Kernels run')
    assert shown == "[1.5 2.5]"
    assert capsys.readouterr().out == "x is [1.5 2.5]\n"


def test_tiles_show_their_values() -> None:
    launch(raises, (1,), action=lambda: SEEN.append(tl.full((2,), 1.5, tl.bfloat16)))
    (tile,) = SEEN
    assert "1.5" in repr(tile)
    assert "bf16" in repr(tile)
    assert tile.data.dtype == np.dtype(ml_dtypes.bfloat16)


@jit
def note_element(x_ptr, note: tl.constexpr):
    x = tl.load(x_ptr)
    note(float(x), bool(x), f"{x}", str(x))


def test_numbers_of_a_type_that_numpy_lacks() -> None:
    launch(
        note_element,
        (1,),
        x_ptr=Raw(np.array([0x7F], np.uint8), float8e4b15),
        note=lambda *values: SEEN.extend(values),
    )
    assert SEEN == [1.875, True, "1.875", "1.875"]


def test_long_expressions(tmp_path: pathlib.Path) -> None:
    """Longer than Python's usual limit of recursion allows for walking the syntax tree."""
    text = f"def kernel(x):\n    tl.store(x, {' + '.join(['1'] * 900)})\n"
    path = tmp_path / "long.py"
    path.write_text(text)
    names: dict[str, Any] = {"tl": tl}
    exec(compile(text, path, "exec"), names)
    x = np.zeros(1, np.int32)
    launch(jit(names["kernel"]), (1,), x=x)
    assert x[0] == 900
