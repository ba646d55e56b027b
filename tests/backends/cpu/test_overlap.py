"""Overlapping arguments, repeated addresses, masks, wrapping offsets: eager mode's result natively.

Every program runs eagerly, by the IR evaluator, and natively at two vector widths, on copies of the
same memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.backends.three_way import agree, narrow_cpu, run_cpu

import tritium.language as tl
from tritium.ops.callable import DeviceFunction as jit

# ---- arguments that overlap ----------------------------------------------------------------------


@jit
def increment(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(out_ptr + at, x * 3 + 1, mask=at < n)


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.float64])
@pytest.mark.parametrize("shift", [-17, -16, -3, -1, 0, 1, 2, 8, 15, 16, 17, 40])
def test_shifted_views(shift: int, dtype: Any) -> None:
    """``out`` begins before, at, or behind ``x`` in one piece of memory; every load of a program
    comes before its store."""
    memory = np.random.default_rng(shift + 50).integers(-30, 30, 300).astype(dtype)
    x, out = memory[50:250], memory[50 + shift : 250 + shift]
    result, _ = agree(increment, x_ptr=x, out_ptr=out, n=200, BLOCK=256)
    np.testing.assert_array_equal(result["out_ptr"], x * 3 + 1)


def test_the_guides_case_and_its_disjoint_twin() -> None:
    buf = np.random.default_rng(0).standard_normal(1001).astype(np.float32)
    _, code = agree(increment, x_ptr=buf[:-1], out_ptr=buf[1:], n=1000, BLOCK=1024)
    assert "stored, a store that may overlap it stands before its use" in code.dump
    _, code = agree(increment, x_ptr=buf, out_ptr=np.zeros(1001, "f4"), n=1000, BLOCK=1024)
    assert "because" not in code.dump
    assert code.dump.count("for c<1024") == 1


@jit
def strided(x_ptr, out_ptr, sx, so, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at * sx, mask=at < n)
    tl.store(out_ptr + at * so, x * 2, mask=at < n)


def element_strides(view: np.ndarray) -> tuple[int, ...]:
    return tuple(stride // view.itemsize for stride in view.strides)


@pytest.mark.parametrize("n", [0, 1, 15, 16, 100, 128])
@pytest.mark.parametrize("dtype", [np.float32, np.uint8, np.float16])
def test_negative_strides(n: int, dtype: Any) -> None:
    """A reversed NumPy view: the kernel gets the address of its first element and stride -1."""
    x = np.arange(128).astype(dtype)
    for view, out in (
        (x[::-1], np.zeros(128, dtype)),
        (x, np.zeros(128, dtype)[::-1]),
        (x[::-1], x),
        (x[::-1], x[::-1]),
        (x[::-1][::2], np.zeros(128, dtype)[::-1][::2]),
    ):
        arguments = {"x_ptr": view, "out_ptr": out, "n": min(n, len(view)), "BLOCK": 128}
        sx, so = (*element_strides(view), *element_strides(out))
        result, _ = agree(strided, **arguments, sx=sx, so=so)
        if out.base is not x and view.base is not out.base:
            count = arguments["n"]
            np.testing.assert_array_equal(result["out_ptr"][:count], view[:count] * dtype(2))


def test_zero_strides() -> None:
    """An expanded view: every lane reads one element; and stores to it: one of the values."""
    x = np.arange(1, 5, dtype=np.float32)
    expanded = np.broadcast_to(x[2:3], (100,))
    zeros = np.zeros(100, "f4")
    result, _ = agree(strided, x_ptr=expanded, out_ptr=zeros, sx=0, so=1, n=100, BLOCK=128)
    np.testing.assert_array_equal(result["out_ptr"], np.full(100, 6, "f4"))


@jit
def copy_2d(x_ptr, out_ptr, sxm, sxn, som, son, M, N, BM: tl.constexpr, BN: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.arange(0, BN)
    mask = (m[:, None] < M) & (n[None, :] < N)
    x = tl.load(x_ptr + m[:, None] * sxm + n[None, :] * sxn, mask=mask)
    tl.store(out_ptr + m[:, None] * som + n[None, :] * son, x + 1, mask=mask)


def views(base: np.ndarray) -> dict[str, np.ndarray]:
    return {
        "plain": base,
        "transposed": base.T,
        "rows reversed": base[::-1],
        "columns reversed": base[:, ::-1],
        "both, transposed": base[::-1, ::-1].T,
        "every other": base[::2, 1::3],
        "one row": np.broadcast_to(base[3], base.shape),
        "one column": np.broadcast_to(base[:, 4:5], base.shape),
    }


@pytest.mark.parametrize("kind", views(np.zeros((5, 7))))
@pytest.mark.parametrize("shape", [(40, 50), (32, 64), (7, 130)])
def test_views_of_matrices(kind: str, shape: tuple[int, int]) -> None:
    base = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    view = views(base)[kind]
    out = np.zeros(view.shape, np.float32)
    for target in (out, np.zeros(view.shape[::-1], np.float32).T):
        strides = (*element_strides(view), *element_strides(target))
        names = dict(zip(("sxm", "sxn", "som", "son"), strides))
        sizes = {"M": view.shape[0], "N": view.shape[1], "BM": 32, "BN": 130}
        result, _ = agree(copy_2d, (5,), x_ptr=view, out_ptr=target, **names, **sizes)
        np.testing.assert_array_equal(result["out_ptr"], view + 1)


@pytest.mark.parametrize("shift", [0, 1, 40, 41, 800])
def test_transposed_view_of_overlapping_memory(shift: int) -> None:
    memory = np.random.default_rng(shift).standard_normal(3000).astype(np.float32)
    x = memory[:1600].reshape(40, 40)
    out = memory[shift : shift + 1600].reshape(40, 40).T
    strides = dict(zip(("sxm", "sxn", "som", "son"), (40, 1, 1, 40)))
    agree(copy_2d, x_ptr=x, out_ptr=out, **strides, M=40, N=40, BM=64, BN=64)


# ---- addresses that occur twice ------------------------------------------------------------------


@jit
def collide(out_ptr, modulus, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr + at % modulus, at * 0x01010101)


@pytest.mark.parametrize("modulus", [1, 2, 7, 64])
def test_duplicate_addresses_keep_one_value_whole(modulus: int) -> None:
    for cpu in {None, narrow_cpu()}:
        out = np.zeros(64, np.int32)
        got, _ = run_cpu(collide, {"out_ptr": out, "modulus": modulus, "BLOCK": 256}, (1,), cpu=cpu)
        for place, value in enumerate(got["out_ptr"][:modulus].view(np.uint32)):
            lane = int(value) & 0xFF
            assert value == lane * 0x01010101
            assert lane % modulus == place
        assert not got["out_ptr"][modulus:].any()


@jit
def all_to_one(out_ptr, x_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at)
    tl.store(out_ptr + at * 0, x, mask=x > 0)


def test_stores_to_one_address_under_a_mask() -> None:
    x = np.random.default_rng(0).standard_normal(100).astype(np.float32)
    for cpu in {None, narrow_cpu()}:
        arguments = {"out_ptr": np.zeros(1, "f4"), "x_ptr": x, "BLOCK": 100}
        got, _ = run_cpu(all_to_one, arguments, (1,), cpu=cpu)
        assert got["out_ptr"][0] in x[x > 0]


# ---- in place, and in what order -----------------------------------------------------------------


@jit
def in_place(x_ptr, n, BLOCK: tl.constexpr):
    at = x_ptr + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK) < n
    tl.store(at, tl.load(at, mask=mask) * 2, mask=mask)


def test_in_place_update_is_one_loop() -> None:
    x = np.arange(1000, dtype=np.float32)
    result, code = agree(in_place, (8,), x_ptr=x, n=999, BLOCK=128)
    np.testing.assert_array_equal(result["x_ptr"][:999], 2 * x[:999])
    assert result["x_ptr"][999] == 999
    assert code.dump.count("for c<128") == 1


@jit
def in_place_2d(x_ptr, stride, M, N, BM: tl.constexpr, BN: tl.constexpr):
    m = tl.arange(0, BM)[:, None]
    n = tl.arange(0, BN)[None, :]
    at = x_ptr + m * stride + n
    mask = (m < M) & (n < N)
    x = tl.load(at, mask=mask, other=0.0)
    tl.store(at, x - tl.max(x, axis=1)[:, None], mask=mask)


@pytest.mark.parametrize("stride", [100, 64, 0, 1, -100])
def test_in_place_update_of_rows(stride: int) -> None:
    """The row stride is known at run time only, and may let rows overlap."""
    x = np.random.default_rng(0).standard_normal(4000).astype(np.float32)
    start = x[3200:] if stride < 0 else x
    sizes = {"M": 1 if stride in (0, 1) else 30, "N": 64 if stride == 0 else 50, "BM": 32, "BN": 64}
    agree(in_place_2d, x_ptr=start, stride=stride, **sizes)


@jit
def transpose_in_place(x_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    at = x_ptr + i[:, None] * N + i[None, :]
    tl.store(at, tl.trans(tl.load(at)))


@pytest.mark.parametrize("n", [4, 5, 16, 32, 48])
def test_transposition_in_place(n: int) -> None:
    """Load and store name the same pointers, but each element comes from another one's place."""
    x = np.arange(n * n, dtype=np.float32).reshape(n, n)
    result, _ = agree(transpose_in_place, x_ptr=x, N=n)
    np.testing.assert_array_equal(result["x_ptr"], x.T)


@jit
def symmetrise(x_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    at = x_ptr + i[:, None] * N + i[None, :]
    x = tl.load(at)
    tl.store(at, x + tl.trans(x))


@jit
def subtract_sum_of_column(x_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    at = x_ptr + i[:, None] * N + i[None, :]
    x = tl.load(at)
    tl.store(at, x - tl.sum(tl.trans(x), axis=1)[:, None])


@jit
def subtract_max_of_all(x_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    at = x_ptr + i[:, None] * N + i[None, :]
    x = tl.load(at)
    tl.store(at, x - tl.max(tl.max(x, axis=0), axis=0))


@pytest.mark.parametrize("kernel", [symmetrise, subtract_sum_of_column, subtract_max_of_all])
@pytest.mark.parametrize("n", [5, 16, 40])
def test_updates_in_place_that_read_other_elements(kernel: jit, n: int) -> None:
    x = np.random.default_rng(n).standard_normal((n, n)).astype(np.float32)
    agree(kernel, x_ptr=x, N=n)


@jit
def store_and_reload(x_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    before = tl.load(x_ptr + at)
    tl.store(x_ptr + at + 1, before * 3)
    after = tl.load(x_ptr + at)
    tl.store(x_ptr + at, after + before)
    tl.store(out_ptr + at, after - tl.load(x_ptr + at + 2))


@pytest.mark.parametrize("block", [1, 5, 16, 64, 100])
def test_store_then_reload(block: int) -> None:
    agree(
        store_and_reload,
        x_ptr=np.arange(200, dtype=np.int32),
        out_ptr=np.zeros(100, "i4"),
        BLOCK=block,
    )


@jit
def running(x_ptr, steps, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    for step in range(steps):
        x = tl.load(x_ptr + at + step)
        tl.store(x_ptr + at + step + 1, x * 3 + 1)


@pytest.mark.parametrize("steps", [0, 1, 7])
@pytest.mark.parametrize("block", [3, 16, 50])
def test_loop_that_loads_what_it_stored(steps: int, block: int) -> None:
    agree(running, x_ptr=np.arange(100, dtype=np.int64), steps=steps, BLOCK=block)


@jit
def loop_then_use(x_ptr, out_ptr, steps, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at)
    for step in range(steps):
        tl.store(x_ptr + at, tl.load(x_ptr + at) + step)
    tl.store(out_ptr + at, x + tl.load(x_ptr + at))


def test_load_before_a_loop_that_stores() -> None:
    x = np.arange(40, dtype=np.float32)
    agree(loop_then_use, x_ptr=x, out_ptr=np.zeros(40, "f4"), steps=3, BLOCK=40)


@jit
def branch_then_use(x_ptr, out_ptr, flag, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at)
    if flag > 0:
        tl.store(x_ptr + at, 5.0)
    tl.store(out_ptr + at, x)


@pytest.mark.parametrize("flag", [0, 2])
def test_load_before_a_branch_that_stores(flag: int) -> None:
    x = np.arange(40, dtype=np.float32)
    agree(branch_then_use, x_ptr=x, out_ptr=np.zeros(40, "f4"), flag=flag, BLOCK=40)


@jit
def two_stores(out_ptr, shift, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr + at, at)
    tl.store(out_ptr + at + shift, -at)


@jit
def two_stores_by_rows(out_ptr, shift, BM: tl.constexpr, BN: tl.constexpr):
    at = tl.arange(0, BM)[:, None] * BN + tl.arange(0, BN)[None, :]
    tl.store(out_ptr + at, at)
    tl.store(out_ptr + at + shift, -at)


@pytest.mark.parametrize("shift", [0, 1, 8, 16, 63])
def test_two_stores_that_overlap(shift: int) -> None:
    """The second one wins, everywhere."""
    agree(two_stores, out_ptr=np.zeros(200, np.int32), shift=shift, BLOCK=100)
    agree(two_stores_by_rows, out_ptr=np.zeros(600, np.int32), shift=shift, BM=16, BN=32)


@jit
def scalar_store_between(x_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at)
    tl.store(x_ptr + 5, 100.0)
    y = tl.load(x_ptr + at)
    first = tl.load(x_ptr)
    tl.store(x_ptr, first + 50.0)
    tl.store(out_ptr + at, x * 1000.0 + y + first)


def test_scalar_stores_between_tiles() -> None:
    x = np.arange(40, dtype=np.float32)
    agree(scalar_store_between, x_ptr=x, out_ptr=np.zeros(40, "f4"), BLOCK=40)


# ---- masks ---------------------------------------------------------------------------------------


@jit
def sum_of_exp(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(out_ptr, tl.sum(tl.exp2(x), axis=0))


@pytest.mark.parametrize("n", [-5, 0, 1, 15, 16, 17, 63, 64, 99, 128, 200])
def test_masked_lanes_are_counted(n: int) -> None:
    """A masked-off lane reads 0, and exp2(0) is 1: the sum counts it."""
    x = np.full(128, 3, np.float32)
    result, _ = agree(sum_of_exp, x_ptr=x, out_ptr=np.zeros(1, "f4"), n=n, BLOCK=128)
    inside = min(max(n, 0), 128)
    assert result["out_ptr"][0] == 8 * inside + (128 - inside)


@jit
def wrapping_mask(x_ptr, out_ptr, start, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=start + at < n, other=1.0)
    tl.store(out_ptr, tl.sum(x, axis=0))
    tl.store(out_ptr + 1 + at, tl.load(x_ptr + at), mask=start + at * 3 >= n)
    tl.store(out_ptr + 1 + BLOCK + at, tl.load(x_ptr + at), mask=start - at * 5 <= n)
    tl.store(out_ptr + 1 + 2 * BLOCK + at, tl.load(x_ptr + at), mask=n > start - at)


EDGE = 2**31 - 1


@pytest.mark.parametrize("start", [0, EDGE, EDGE - 10, EDGE - 127, 10 - EDGE, -EDGE - 1, -60])
@pytest.mark.parametrize("n", [0, 64, EDGE, -EDGE - 1])
def test_masks_that_wrap(start: int, n: int) -> None:
    """Past the largest int32 stand negative numbers, and below the smallest one large ones."""
    x = np.random.default_rng(0).integers(2, 100, 128).astype(np.float32)
    arguments = {"x_ptr": x, "out_ptr": np.zeros(400, "f4"), "start": start, "n": n, "BLOCK": 128}
    result, _ = agree(wrapping_mask, **arguments)
    with np.errstate(over="ignore"):
        at = np.arange(128, dtype=np.int32)
        masks = [np.int32(start) + at * np.int32(factor) for factor in (1, 3, -5, -1)]
    inside = masks[0] < n, masks[1] >= n, masks[2] <= n, n > masks[3]
    assert result["out_ptr"][0] == np.where(inside[0], x, 1).sum()
    for number, mask in enumerate(inside[1:]):
        got = result["out_ptr"][1 + 128 * number : 129 + 128 * number]
        np.testing.assert_array_equal(got, np.where(mask, x, 0))


@jit
def all_relations(x_ptr, out_ptr, a, b, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    down = BLOCK - 1 - at
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=(at >= a) & (at < b)))
    tl.store(out_ptr + BLOCK + at, tl.load(x_ptr + at, mask=(a < at) & (b >= at)))
    tl.store(out_ptr + 2 * BLOCK + at, tl.load(x_ptr + at, mask=(down >= a) & (down <= b)))
    tl.store(out_ptr + 3 * BLOCK + at, tl.load(x_ptr + at, mask=(at * 3 > a) & (5 * at < b)))
    tl.store(out_ptr + 4 * BLOCK + at, tl.load(x_ptr + at, mask=(at == a) | (at != b)))
    tl.store(out_ptr + 5 * BLOCK + at, tl.load(x_ptr + at, mask=(a < b) & (at < b)), mask=a > 0)


@pytest.mark.parametrize("a,b", [(0, 128), (5, 100), (16, 112), (64, 64), (-3, 500), (100, 7)])
def test_intervals(a: int, b: int) -> None:
    x = np.arange(1, 129, dtype=np.float32)
    agree(all_relations, x_ptr=x, out_ptr=np.zeros(6 * 128, "f4"), a=a, b=b, BLOCK=128)


# ---- offsets that wrap ---------------------------------------------------------------------------


@jit
def offsets_32(x_ptr, out_ptr, start, factor, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + (start + at) * factor))


@jit
def offsets_64(x_ptr, out_ptr, start, factor, back, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + ((start + at).to(tl.int64) * factor - back)))


def test_int32_offsets_wrap_and_int64_offsets_do_not() -> None:
    x = np.arange(200, dtype=np.float32)
    out = np.zeros(64, "f4")
    # (2**30 + i) * 4 is 4 * i modulo 2**32.
    result, _ = agree(offsets_32, x_ptr=x, out_ptr=out[:50], start=2**30, factor=4, BLOCK=50)
    np.testing.assert_array_equal(result["out_ptr"], 4 * np.arange(50))
    # The same in int64 is far away; what is subtracted brings it back.
    arguments = {"start": 2**30, "factor": 4, "back": 2**32}
    result, _ = agree(offsets_64, x_ptr=x, out_ptr=out[:50], **arguments, BLOCK=50)
    np.testing.assert_array_equal(result["out_ptr"], 4 * np.arange(50))


@jit
def crossing(x_ptr, out_ptr, start, back, BLOCK: tl.constexpr):
    at = start + tl.arange(0, BLOCK)
    tl.store(out_ptr + tl.arange(0, BLOCK), tl.load(x_ptr + (at + back)))


@pytest.mark.parametrize("block", [16, 64, 100])
def test_offsets_that_wrap_inside_a_vector(block: int) -> None:
    """``start + i`` passes the largest int32, and ``back`` wraps it to where it began."""
    x = np.arange(200, dtype=np.float32)
    for start in (2**31 - 1, 2**31 - 8, 2**31 - 40):
        back = 2 - start
        arguments = {"x_ptr": x, "out_ptr": np.zeros(block, "f4"), "start": start, "back": back}
        result, _ = agree(crossing, **arguments, BLOCK=block)
        np.testing.assert_array_equal(result["out_ptr"], 2 + np.arange(block))


@jit
def signs(x_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + (at - BLOCK)))
    tl.store(out_ptr + BLOCK + at, tl.load(x_ptr + (at - BLOCK).to(tl.uint8)))
    tl.store(out_ptr + 2 * BLOCK + at, tl.load(x_ptr + (at + 100).to(tl.uint8)))


def test_addresses_are_extended_by_their_signedness() -> None:
    """Signed offsets reach back from a pointer; unsigned ones are extended with zeros."""
    x = np.arange(4096, dtype=np.int8)
    result, _ = agree(signs, x_ptr=x[1024:], out_ptr=np.zeros(96, np.int8), BLOCK=32)
    want = x[1024 - 32 : 1024], x[1024 + 224 : 1024 + 256], x[1024 + 100 : 1024 + 132]
    np.testing.assert_array_equal(result["out_ptr"], np.concatenate(want))


@jit
def unsigned(x_ptr, out_ptr, start, back, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK).to(tl.uint32) + start
    tl.store(out_ptr + tl.arange(0, BLOCK), tl.load(x_ptr - back + at))


def test_uint32_offsets_are_extended_with_zeros() -> None:
    """3e9 + i elements forward, the pointer having been moved back by 3e9."""
    x = np.arange(200, dtype=np.float32)
    arguments = {"x_ptr": x, "out_ptr": np.zeros(64, "f4"), "start": 3 * 10**9, "back": 3 * 10**9}
    result, _ = agree(unsigned, **arguments, BLOCK=64)
    np.testing.assert_array_equal(result["out_ptr"], np.arange(64))


@jit
def narrow_offsets(x_ptr, out_ptr, start, BLOCK: tl.constexpr):
    at = (tl.arange(0, BLOCK) + start).to(tl.int8)
    tl.store(out_ptr + tl.arange(0, BLOCK), tl.load(x_ptr + 128 + at))


@pytest.mark.parametrize("start", [0, 100, 120, 127, 128, 200, -130])
def test_int8_offsets_wrap(start: int) -> None:
    x = np.arange(256, dtype=np.float32)
    result, _ = agree(narrow_offsets, x_ptr=x, out_ptr=np.zeros(32, "f4"), start=start, BLOCK=32)
    want = 128 + (np.arange(32) + start).astype(np.int8).astype(int)
    np.testing.assert_array_equal(result["out_ptr"], want)


@jit
def rows_wrap(x_ptr, out_ptr, start, stride, BM: tl.constexpr, BN: tl.constexpr):
    row = tl.arange(0, BM)
    n = tl.arange(0, BN)
    m = (row + start).to(tl.int8).to(tl.int32)
    x = tl.load(x_ptr + 128 + m[:, None] + n[None, :] * stride)
    tl.store(out_ptr + row[:, None] * BN + n[None, :], x)


@pytest.mark.parametrize("start", [0, 100, 117, 120, 200])
def test_rows_that_wrap_inside_a_transposed_block(start: int) -> None:
    x = np.arange(20000, dtype=np.float32)
    given = {"x_ptr": x, "out_ptr": np.zeros((64, 64), "f4"), "start": start, "stride": 300}
    result, _ = agree(rows_wrap, **given, BM=64, BN=64)
    rows = 128 + (np.arange(64) + start).astype(np.int8).astype(int)
    np.testing.assert_array_equal(result["out_ptr"], rows[:, None] + 300 * np.arange(64))


@jit
def twice_in_place(x_ptr, BLOCK: tl.constexpr):
    at = x_ptr + 128 + tl.arange(0, BLOCK).to(tl.int8)
    tl.store(at, tl.load(at) * 2)


def test_addresses_that_repeat_by_wrapping() -> None:
    """Each address occurs twice: both lanes must see the value before the store."""
    x = np.arange(256, dtype=np.float32)
    result, _ = agree(twice_in_place, x_ptr=x, BLOCK=512)
    np.testing.assert_array_equal(result["x_ptr"], 2 * x)


@jit
def products(x_ptr, out_ptr, s, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M)
    j = tl.arange(0, N)
    at = (i[:, None] + s) * (j[None, :] + 1)
    x = tl.load(x_ptr + at, mask=at < 400, other=1.0)
    tl.store(out_ptr + j, tl.sum(x, 0))
    tl.store(out_ptr + N + i, tl.sum(x, 1))
    tl.store(out_ptr + N + M + i[:, None] * N + j[None, :], x, mask=at.to(tl.int64) < 500)


@pytest.mark.parametrize("m,n", [(20, 40), (40, 20), (32, 32)])
@pytest.mark.parametrize("s", [0, 1, 3])
def test_offsets_that_are_products_of_positions(m: int, n: int, s: int) -> None:
    """The stride along one axis depends on the place along the other."""
    x = np.arange(2000, dtype=np.float32)
    agree(products, x_ptr=x, out_ptr=np.zeros(3000, "f4"), s=s, M=m, N=n)


@jit
def one_lane(x_ptr, out_ptr, SHIFT: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at)
    upper = (x * x) >> SHIFT
    tl.store(out_ptr + at, upper.to(out_ptr.dtype.element_ty), mask=at * 7 % 100 >= 7 * BLOCK - 7)


@pytest.mark.parametrize("block", [2, 4, 8, 14])
@pytest.mark.parametrize("wide,narrow", [("u4", "u2"), ("u4", "u1"), ("u8", "u4"), ("u8", "u2")])
def test_a_store_of_one_known_lane(wide: str, narrow: str, block: int) -> None:
    """LLVM sees that the mask is constant; nothing behind the lane may be written."""
    x = np.arange(100, 100 + block).astype(wide) << np.array(8 * int(wide[1]) // 2 - 1, wide)
    shift = 8 * (int(wide[1]) - int(narrow[1]))
    out = np.full(block + 16, 0xA5, narrow)
    result, _ = agree(one_lane, x_ptr=x, out_ptr=out, SHIFT=shift, BLOCK=block)
    assert (result["out_ptr"][block:] == 0xA5).all()
