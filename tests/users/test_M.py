"""Faults that users met in tile compilers, by their number in our list: none of them is here."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tests.users.launching import EXECUTORS, launch

import tritium
import tritium.language as tl

everywhere = pytest.mark.parametrize("executor", EXECUTORS)
WARPS = (1, 2, 4, 8)
RANDOM = np.random.default_rng(6)


@tritium.jit
def m1_kernel(y_ptr, a_ptr, x_ptr, scratch_ptr, flags_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    first = tl.load(flags_ptr)
    second = tl.load(flags_ptr + 1)
    if first < second:
        tl.store(scratch_ptr + offs, offs * 1.0, mask=offs < n)
    if first > second:
        tl.store(scratch_ptr + offs, 7.0)
        return
    a = tl.load(a_ptr + row * n + offs, mask=offs < n, other=0.0)
    x = tl.load(x_ptr + offs, mask=offs < n, other=0.0)
    tl.store(y_ptr + row, tl.sum(a * x, axis=0))


@everywhere
@pytest.mark.parametrize("flags", [(1, 2), (2, 2), (3, 2)])
def test_m1_opaque_branches_before_a_reduction(executor: str, flags: tuple[int, int]) -> None:
    y, scratch = np.zeros(4, np.float32), np.zeros(4, np.float32)
    a, x = np.ones((4, 4), np.float32), np.ones(4, np.float32)
    for warps in WARPS:
        y[:] = -1
        args = (y, a, x, scratch, np.array(flags, np.int32), 4)
        launch(executor, m1_kernel, (4,), *args, BLOCK=4, num_warps=warps)
        assert y.tolist() == ([-1] * 4 if flags[0] > flags[1] else [4] * 4)


@tritium.jit
def m2_kernel(y_ptr, x_ptr, flags_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + offs, mask=offs < n, other=0.0)
    if tl.load(flags_ptr + row) > 0:
        y = x * 2.0 + tl.sum(x)
    else:
        y = x + tl.max(x)
    tl.store(y_ptr + row * n + offs, y / tl.sum(tl.where(offs < n, y, 0.0)), mask=offs < n)


@everywhere
@pytest.mark.parametrize("warps", WARPS)
def test_m2_all_threads_meet_in_and_behind_both_branches(executor: str, warps: int) -> None:
    n, rows = 200, 6
    x = RANDOM.integers(1, 9, (rows, n)).astype(np.float32) + np.arange(n, dtype=np.float32)
    flags = np.array([1, 0, 0, 1, 0, 1], np.int32)
    y = np.full((rows, n), np.nan, np.float32)
    launch(executor, m2_kernel, (rows,), y, x, flags, n, BLOCK=256, num_warps=warps)
    wide = x.astype(np.float64)
    first = wide * 2 + wide.sum(1, keepdims=True)
    second = wide + wide.max(1, keepdims=True)
    wanted = np.where(flags[:, None] > 0, first, second)
    np.testing.assert_allclose(y, wanted / wanted.sum(1, keepdims=True), rtol=1e-5)


@tritium.jit
def m4_kernel(out_ptr, x_ptr):
    i = tl.arange(0, 2)[:, None, None] * 64
    j = tl.arange(0, 2)[None, :, None] * 32
    x = tl.load(x_ptr + i + j + tl.arange(0, 32)[None, None, :])
    sums = tl.sum(x, axis=2)
    tl.store(out_ptr + tl.arange(0, 2), tl.sum(sums, axis=1))
    tl.store(out_ptr + 2 + tl.arange(0, 4), tl.ravel(tl.max(x, axis=2)))
    column = tl.load(x_ptr + tl.arange(0, 16)[:, None] + tl.arange(0, 1)[None, :])
    tl.store(out_ptr + 6 + tl.arange(0, 16), tl.max(column * column, axis=1))


@everywhere
@pytest.mark.parametrize("warps", WARPS)
def test_m4_reductions_of_small_tiles(executor: str, warps: int) -> None:
    x = RANDOM.integers(-50, 50, (2, 2, 32)).astype(np.float32)
    out = np.zeros(22, np.float32)
    launch(executor, m4_kernel, (1,), out, x, num_warps=warps)
    flat = x.ravel()[:16]
    assert out.tolist() == [*x.sum((1, 2)), *x.max(2).ravel(), *(flat * flat)]


@tritium.jit
def m5_kernel(out_ptr, x_ptr, columns, BLOCK: tl.constexpr):
    row = tl.arange(0, 2)
    total = tl.zeros((2, BLOCK), tl.float32)
    for start in range(0, 3):
        column = tl.arange(0, BLOCK)
        total += tl.load(x_ptr + start * columns + column[None, :] + row[:, None] * 0)
    tl.store(out_ptr + tl.arange(0, BLOCK), tl.sum(total, axis=0) / 2)
    tl.store(out_ptr + BLOCK, tl.sum(tl.load(x_ptr + tl.arange(0, 4))))


@everywhere
@pytest.mark.parametrize("warps", WARPS)
def test_m5_tiles_smaller_than_the_threads(executor: str, warps: int) -> None:
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    out = np.zeros(3, np.float32)
    launch(executor, m5_kernel, (1,), out, x, 2, BLOCK=2, num_warps=warps)
    assert out.tolist() == [6, 9, 6]


@tritium.jit
def add_two(a, b, c, d):
    return a + c, b * d


@tritium.jit
def m7_kernel(x_ptr, y_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    y = tl.load(y_ptr + offs)
    sums, products = tl.associative_scan((x, y), 0, add_two, reverse=True)
    tl.store(x_ptr + offs, sums)
    tl.store(y_ptr + offs, products)


@pytest.mark.parametrize("executor", ["interp", "cpu"])
@pytest.mark.parametrize("N", [64, 100, 2048])
def test_m7_reverse_scans_of_pairs_in_place(executor: str, N: int) -> None:
    given = RANDOM.integers(-100, 100, (2, N)).astype(np.int32) | 1
    want = np.cumsum(given[0, ::-1])[::-1], np.cumprod(given[1, ::-1], dtype=np.int32)[::-1]
    for warps in WARPS:
        x, y = given.copy()
        launch(executor, m7_kernel, (1,), x, y, N=N, num_warps=warps)
        np.testing.assert_array_equal(x, want[0])
        np.testing.assert_array_equal(y, want[1])


@pytest.mark.parametrize("executor", ["interp", "cpu"])
def test_m7_a_reverse_scan_keeps_its_suffix(executor: str) -> None:
    x = np.repeat(np.array([1e8, 1], np.float32), 32)
    y = np.ones_like(x)
    launch(executor, m7_kernel, (1,), x, y, N=64)
    assert x[32:].tolist() == list(range(32, 0, -1))


@tritium.jit
def m8_scan_kernel(out_ptr, x_ptr):
    x = tl.load(x_ptr + tl.arange(0, 4))
    tl.store(out_ptr + tl.arange(0, 4), tl.cumsum(x >= 0, 0))


@pytest.mark.parametrize("executor", ["interp", "cpu"])
def test_m8_the_cumulative_sum_of_bools_counts(executor: str) -> None:
    out = np.zeros(4, np.int32)
    launch(executor, m8_scan_kernel, (1,), out, np.array([1, -1, 2, 3], np.float32))
    assert out.tolist() == [1, 1, 2, 3]


@tritium.jit
def m8_sum_kernel(out_ptr, count_ptr):
    ones = tl.arange(0, 256).reshape(128, 2) >= 0
    total = tl.sum(tl.sum(ones, axis=1), axis=0)
    tl.store(count_ptr, total)
    tl.store(out_ptr, total)


@everywhere
def test_m8_256_trues_are_true(executor: str) -> None:
    out, count = np.zeros(1, np.bool_), np.zeros(1, np.int32)
    launch(executor, m8_sum_kernel, (1,), out, count)
    assert (bool(out[0]), int(count[0])) == (True, 256)


@tritium.jit
def m10_kernel(values_ptr, indices_ptr, x_ptr, N: tl.constexpr, K: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    left = offs >= 0
    for k in range(K):
        candidates = tl.where(left, x, -float("inf"))
        value, index = tl.max(candidates, axis=0, return_indices=True)
        tl.store(values_ptr + k, value)
        tl.store(indices_ptr + k, index)
        left = left & (offs != index)


@everywhere
def test_m10_top_k_by_argmax_with_several_infinities(executor: str) -> None:
    x = RANDOM.permutation(128).astype(np.float32)
    x[[3, 50, 51, 127]] = np.inf
    values, indices = np.zeros(16, np.float32), np.zeros(16, np.int32)
    launch(executor, m10_kernel, (1,), values, indices, x, N=128, K=16)
    order = np.argsort(-x, kind="stable")[:16]
    assert indices.tolist() == order.tolist()
    np.testing.assert_array_equal(values, x[order])


@tritium.jit
def m11_kernel(out_ptr, pid, stride):
    tl.store(out_ptr, pid.to(tl.int64) * stride)
    tl.store(out_ptr + 1, pid * stride)


@everywhere
def test_m11_offsets_of_64_bits_where_asked_for_and_int32_that_wraps(executor: str) -> None:
    out = np.zeros(2, np.int64)
    launch(executor, m11_kernel, (1,), out, 319, 2560 * 3072)
    exact = 319 * 2560 * 3072
    assert out.tolist() == [exact, exact - 2**32]


@tritium.jit
def m13_kernel(out_ptr, index_ptr, flag, n, STAGES: tl.constexpr):
    for i in tl.range(0, n, num_stages=STAGES):
        o = tl.load(index_ptr + i)
        if flag:
            tl.store(out_ptr + o, i + 1)


@everywhere
@pytest.mark.parametrize("stages", [1, 2, 3, 4])
def test_m13_a_load_that_is_used_in_a_branch(executor: str, stages: int) -> None:
    index = np.arange(17, dtype=np.int32)
    out = np.zeros(17, np.int32)
    launch(executor, m13_kernel, (1,), out, index, 1, 17, STAGES=stages)
    assert out.tolist() == list(range(1, 18))


@tritium.jit
def m14_kernel(sum_ptr, product_ptr, a_ptr, b_ptr, n, SWAP: tl.constexpr, D: tl.constexpr):
    dims = tl.arange(0, D)
    rows = tl.arange(0, 64)
    total = tl.zeros((D,), tl.float32)
    acc = tl.zeros((D, D), tl.float32)
    for start in range(0, n, 64):
        place = (start + rows[:, None]) * D + dims[None, :]
        a = tl.load(a_ptr + place, mask=start + rows[:, None] < n, other=0.0)
        b = tl.load(b_ptr + place, mask=start + rows[:, None] < n, other=0.0)
        if SWAP:
            acc = tl.dot(a.T, b, acc)
            total += tl.sum(a.to(tl.float32), axis=0)
        else:
            total += tl.sum(a.to(tl.float32), axis=0)
            acc = tl.dot(a.T, b, acc)
    tl.store(sum_ptr + dims, total)
    tl.store(product_ptr + dims[:, None] * D + dims[None, :], acc)


@everywhere
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16], ids=["fp16", "bf16"])
def test_m14_two_uses_of_a_tile_in_either_order(executor: str, dtype: Any) -> None:
    a, b = RANDOM.standard_normal((2, 500, 32)).astype(dtype)
    if executor == "gpu" and dtype is ml_dtypes.bfloat16:
        pytest.skip("torch doesn't take bfloat16 arrays of NumPy")
    results = []
    for swap in (False, True):
        for stages in (1, 2, 3):
            out = np.zeros(32, np.float32), np.zeros((32, 32), np.float32)
            options = {"SWAP": swap, "D": 32, "num_stages": stages}
            launch(executor, m14_kernel, (1,), *out, a, b, 500, **options)
            results.append(out)
    for total, product in results:
        np.testing.assert_array_equal(total, results[0][0])
        np.testing.assert_array_equal(product, results[0][1])
    exact = a.astype(np.float64).T @ b.astype(np.float64)
    np.testing.assert_allclose(results[0][1], exact, rtol=1e-4, atol=1e-3)


@tritium.jit
def m16_kernel(out_ptr, x_ptr, n, STAGES: tl.constexpr):
    rows = tl.arange(0, 16)
    place = rows[:, None] * 16 + rows[None, :]
    acc = tl.zeros((16, 16), tl.float32)
    largest = tl.full((16,), -float("inf"), tl.float32)
    for i in tl.range(0, n, num_stages=STAGES):
        q = tl.load(x_ptr + i * 1024 + place)
        k = tl.load(x_ptr + i * 1024 + 256 + place)
        v = tl.load(x_ptr + i * 1024 + 512 + place)
        bias = tl.load(x_ptr + i * 1024 + 768 + place)
        scores = tl.dot(q, k, input_precision="ieee") + bias
        bound = tl.maximum(largest, tl.max(scores, 1))
        acc *= tl.exp(largest - bound)[:, None]
        acc = tl.dot(tl.exp(scores - bound[:, None]), v, acc, input_precision="ieee")
        largest = bound
    tl.store(out_ptr + place, acc)


@everywhere
def test_m16_four_loads_and_two_products_in_a_loop(executor: str) -> None:
    x = RANDOM.standard_normal((5, 4, 16, 16)).astype(np.float32)
    acc, largest = np.zeros((16, 16)), np.full(16, -np.inf)
    for q, k, v, bias in x.astype(np.float64):
        scores = q @ k + bias
        bound = np.maximum(largest, scores.max(1))
        acc = acc * np.exp(largest - bound)[:, None] + np.exp(scores - bound[:, None]) @ v
        largest = bound
    outs = []
    for stages in (1, 2, 4, 8):
        outs.append(np.zeros((16, 16), np.float32))
        launch(executor, m16_kernel, (1,), outs[-1], x, 5, STAGES=stages)
        np.testing.assert_array_equal(outs[-1], outs[0])
    np.testing.assert_allclose(outs[0], acc, rtol=1e-4, atol=1e-4)


@tritium.jit
def m17_kernel(out_ptr, x_ptr, n, TO: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(out_ptr + offs, x.to(TO).to(tl.uint8, bitcast=True), mask=offs < n)


@everywhere
def test_m17_fp8_is_rounded_once(executor: str) -> None:
    drawn = RANDOM.standard_normal(4000).astype(np.float32) * 100
    x = np.concatenate([np.array([400.2, 272.16, 136.002, 1.0625001], np.float32), drawn])
    out = np.zeros(x.size, np.uint8)
    launch(executor, m17_kernel, (8,), out, x, x.size, TO=tl.float8e4nv, BLOCK=512)
    inside = np.abs(x) <= 448
    want = x.astype(ml_dtypes.float8_e4m3fn).view(np.uint8)
    np.testing.assert_array_equal(out[inside], want[inside])


@everywhere
def test_m17_every_fp16_becomes_the_nearest_e5m2(executor: str) -> None:
    if executor == "interp":
        bits = np.arange(0, 2**16, 31, dtype=np.uint16)
    else:
        bits = np.arange(2**16, dtype=np.uint16)
    x = bits.view(np.float16)
    x = x[np.isfinite(x) & (np.abs(x) <= 57344)]
    out = np.zeros(x.size, np.uint8)
    grid = (tritium.cdiv(x.size, 1024),)
    launch(executor, m17_kernel, grid, out, x, x.size, TO=tl.float8e5, BLOCK=1024)
    np.testing.assert_array_equal(out, x.astype(ml_dtypes.float8_e5m2).view(np.uint8))


@tritium.jit
def m19_kernel(out_ptr, x_ptr, y_ptr, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs).to(tl.bfloat16, bitcast=True)
    y = tl.load(y_ptr + offs).to(tl.bfloat16, bitcast=True)
    tl.store(out_ptr + offs, (x * y).to(tl.uint16, bitcast=True))


@everywhere
def test_m19_bf16_products_are_rounded_to_nearest(executor: str) -> None:
    x, y = RANDOM.standard_normal((2, 2**16)).astype(ml_dtypes.bfloat16)
    out = np.zeros(2**16, np.uint16)
    given = x.view(np.uint16), y.view(np.uint16)
    launch(executor, m19_kernel, (32,), out, *given, BLOCK=2048)
    want = (x.astype(np.float32) * y.astype(np.float32)).astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(out, want.view(np.uint16))


@tritium.jit
def m20_kernel(out_ptr, sum_ptr, v_ptr):
    rows = tl.arange(0, 32)
    v = tl.load(v_ptr + rows[:, None] * 32 + rows[None, :])
    ones = tl.full((32, 32), 1.0, tl.float32)
    tl.store(out_ptr + rows[:, None] * 32 + rows[None, :], tl.dot(ones, v))
    tl.store(sum_ptr + rows, tl.sum(v, axis=0))


@everywhere
def test_m20_a_product_of_fp32_is_one_of_fp32(executor: str) -> None:
    v = RANDOM.standard_normal((32, 32)).astype(np.float32)
    out, total = np.zeros((32, 32), np.float32), np.zeros(32, np.float32)
    launch(executor, m20_kernel, (1,), out, total, v)
    exact = v.astype(np.float64).sum(0)
    bound = 32 * 2.0**-24 * np.abs(v).sum(0)
    assert np.all(np.abs(out - exact) <= bound)
    assert np.all(np.abs(total - exact) <= bound)


@tritium.jit
def m22_kernel(out_ptr, x_ptr, n):
    offs = tl.arange(0, 256)
    tl.store(out_ptr, tl.sum(tl.load(x_ptr + offs, mask=offs < n), axis=0))


@everywhere
def test_m22_a_masked_lane_without_other_is_zero(executor: str) -> None:
    out = np.zeros(1, np.float32)
    launch(executor, m22_kernel, (1,), out, np.ones(16, np.float32), 16)
    assert out[0] == 16


@tritium.jit
def m23_kernel(out_ptr, x_ptr, index_ptr, wide_ptr):
    offs = tl.arange(0, 256)
    tl.store(out_ptr + offs, tl.load(x_ptr + tl.load(index_ptr + offs)))
    wide = tl.load(wide_ptr)
    tl.store(out_ptr + 256, ((x_ptr + wide).to(tl.int64) - x_ptr.to(tl.int64)) // 4)


@everywhere
def test_m23_unsigned_offsets_are_not_negative(executor: str) -> None:
    x = RANDOM.integers(0, 1000, 256).astype(np.int32)
    index = np.arange(256)[::-1].astype(np.uint8)
    out = np.zeros(257, np.int64)
    launch(executor, m23_kernel, (1,), out, x, index, np.array([2**31 + 5], np.uint32))
    assert out.tolist() == [*x[::-1].tolist(), 2**31 + 5]


@tritium.jit
def m25_kernel(out_ptr, first, last, step):
    count = 0
    for i in range(first, last, step):
        tl.store(out_ptr + 1 + count, i)
        count += 1
    tl.store(out_ptr, count)


@everywhere
@pytest.mark.parametrize("bounds", [(88, -1, -8), (5, 10, -3), (0, 10, 3), (10, 0, 4), (3, 3, -1)])
def test_m25_steps_of_either_sign(executor: str, bounds: tuple[int, int, int]) -> None:
    out = np.zeros(20, np.int32)
    launch(executor, m25_kernel, (1,), out, *bounds)
    want = list(range(*bounds))
    assert out[: len(want) + 1].tolist() == [len(want), *want]


@tritium.jit
def m26_kernel(out_ptr, x_ptr, row, n, BLOCK: tl.constexpr):
    column = tl.arange(0, BLOCK)
    inside = column < n
    a = tl.load(x_ptr + (1185 * row + column), mask=inside)
    b = tl.load(x_ptr + 1185 * row + column, mask=inside)
    c = tl.load(x_ptr + (column + (row * 1000 + 16 * 5)), mask=inside)
    tl.store(out_ptr + column, a, mask=inside)
    tl.store(out_ptr + n + column, b, mask=inside)
    tl.store(out_ptr + 2 * n + column, c, mask=inside)


@everywhere
@pytest.mark.parametrize("row", [0, 1, 16])
def test_m26_offsets_that_are_no_multiples_of_a_vector(executor: str, row: int) -> None:
    x = np.arange(32 * 1185, dtype=np.float32)
    out = np.zeros((3, 112), np.float32)
    launch(executor, m26_kernel, (1,), out, x, row, 112, BLOCK=128, num_warps=4)
    starts = (1185 * row, 1185 * row, 1000 * row + 80)
    np.testing.assert_array_equal(out, [x[s : s + 112] for s in starts])


@tritium.jit
def m28_kernel(out_ptr, x_ptr, y_ptr):
    i = tl.arange(0, 2)[:, None, None] * 128
    j = tl.arange(0, 8)[None, :, None] * 16
    x = tl.load(x_ptr + i + j + tl.arange(0, 16)[None, None, :]).reshape(16, 16)
    rows = tl.arange(0, 16)
    place = rows[:, None] * 16 + rows[None, :]
    y = tl.load(y_ptr + place)
    tl.store(out_ptr + place, tl.dot(x, y, input_precision="ieee"))
    tl.store(out_ptr + 256 + place, tl.dot(tl.trans(x), y, input_precision="ieee"))


@everywhere
@pytest.mark.parametrize("warps", WARPS)
def test_m28_reshaped_and_transposed_operands(executor: str, warps: int) -> None:
    x, y = RANDOM.integers(-8, 8, (2, 16, 16)).astype(np.float32)
    out = np.zeros((2, 16, 16), np.float32)
    launch(executor, m28_kernel, (1,), out, x, y, num_warps=warps)
    np.testing.assert_array_equal(out, [x @ y, x.T @ y])


@tritium.jit
def m31_kernel(out_ptr, outer, inner, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    start = 0
    for _ in range(outer):
        for _ in range(inner):
            tl.store(out_ptr + start + offs, start + offs, mask=start + offs < n)
            start += BLOCK


@everywhere
def test_m31_the_mask_of_the_last_iteration(executor: str) -> None:
    out = np.full(64, -1, np.int32)
    launch(executor, m31_kernel, (1,), out, 2, 3, 43, BLOCK=8)
    assert out.tolist() == [*range(43), *[-1] * 21]


@tritium.jit
def m32_kernel(out_ptr, a_ptr, b_ptr, c_ptr, d_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    a = tl.load(a_ptr + offs)
    tl.store(out_ptr + offs, a * tl.load(b_ptr + offs) + tl.load(c_ptr + offs))
    tl.store(out_ptr + N + offs, tl.div_rn(tl.load(d_ptr + offs), 2.0 + a * 0))
    tl.store(out_ptr + 2 * N + offs, tl.sqrt_rn(tl.load(d_ptr + offs)))


@everywhere
def test_m32_sums_of_products_and_denormal_numbers(executor: str) -> None:
    a, b = (1 + RANDOM.random((2, 1024))).astype(np.float32)
    c = -(a * b)
    d = (RANDOM.random(1024) * 1e-40).astype(np.float32)
    out = np.zeros((3, 1024), np.float32)
    launch(executor, m32_kernel, (1,), out, a, b, c, d, N=1024, enable_fp_fusion=False)
    assert not out[0].any()
    np.testing.assert_array_equal(out[1], d / np.float32(2))
    np.testing.assert_array_equal(out[2], np.sqrt(d))
    if executor != "interp":
        launch(executor, m32_kernel, (1,), out, a, b, c, d, N=1024, enable_fp_fusion=True)
        fused = (a.astype(np.float64) * b + c).astype(np.float32)
        np.testing.assert_array_equal(out[0], fused)


@tritium.jit
def m34_kernel(out_ptr, x_ptr, opaque_ptr, scratch_ptr, n, MUTATED: tl.constexpr):
    offs = tl.arange(0, 128)
    if MUTATED and tl.load(opaque_ptr) < tl.load(opaque_ptr + 1):
        tl.store(scratch_ptr, 1.0)
    x = tl.load(x_ptr + offs, mask=offs < n, other=-float("inf"))
    highest = tl.max(x, axis=0)
    if MUTATED and tl.load(opaque_ptr + 1) < tl.load(opaque_ptr):
        highest = highest + 1.0
    powers = tl.exp(x - highest)
    total = tl.sum(powers, axis=0)
    if MUTATED:
        while tl.load(opaque_ptr) > 5:
            total += 1.0
    tl.store(out_ptr + offs, powers / total, mask=offs < n)


@everywhere
@pytest.mark.parametrize("opaque", [(1, 2), (2, 2)])
def test_m34_dead_branches_change_nothing(executor: str, opaque: tuple[int, int]) -> None:
    x = RANDOM.standard_normal(100).astype(np.float32)
    outs = np.zeros((2, 100), np.float32)
    for out, mutated in zip(outs, (False, True)):
        args = (out, x, np.array(opaque, np.int32), np.zeros(1, np.float32), 100)
        launch(executor, m34_kernel, (1,), *args, MUTATED=mutated)
    np.testing.assert_array_equal(outs[0], outs[1])


@tritium.jit
def m28_join_kernel(out_ptr, x_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    a = tl.load(x_ptr + offs)
    b = tl.load(x_ptr + N + offs)
    c = tl.load(x_ptr + 2 * N + offs)
    d = tl.load(x_ptr + 3 * N + offs)
    joined = tl.join(tl.join(a, b), tl.join(c, d)).reshape(4 * N)
    tl.store(out_ptr + tl.arange(0, 4 * N), joined)


@everywhere
def test_m28_joined_tiles_keep_their_order(executor: str) -> None:
    x = RANDOM.integers(0, 100, (4, 32)).astype(np.int32)
    out = np.zeros(128, np.int32)
    launch(executor, m28_join_kernel, (1,), out, x, N=32)
    a, b, c, d = x
    want = np.stack([np.stack([a, b], -1), np.stack([c, d], -1)], -1).ravel()
    np.testing.assert_array_equal(out, want)


@tritium.jit
def m29_kernel(memory_ptr, old_ptr, x_ptr, compared_ptr, N: tl.constexpr, NAME: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    places = memory_ptr + offs % 3
    mask = offs != 5
    if NAME == "add":
        old = tl.atomic_add(places, x, mask=mask)
        last = tl.atomic_add(memory_ptr + 3, tl.load(x_ptr))
    elif NAME == "max":
        old = tl.atomic_max(places, x, mask=mask)
        last = tl.atomic_max(memory_ptr + 3, tl.load(x_ptr))
    elif NAME == "min":
        old = tl.atomic_min(places, x, mask=mask)
        last = tl.atomic_min(memory_ptr + 3, tl.load(x_ptr))
    elif NAME == "xchg":
        old = tl.atomic_xchg(places, x, mask=mask)
        last = tl.atomic_xchg(memory_ptr + 3, tl.load(x_ptr))
    else:
        old = tl.atomic_cas(places, tl.load(compared_ptr + offs), x)
        last = tl.atomic_cas(memory_ptr + 3, tl.load(compared_ptr), tl.load(x_ptr))
    tl.store(old_ptr + offs, old, mask=mask | (NAME == "cas"))
    tl.store(old_ptr + N, last)


UPDATES = {"add": lambda m, x: m + x, "max": max, "min": min, "xchg": lambda m, x: x}
TYPES = [
    *(np.int32, np.int64, np.uint32),
    *(np.float16, ml_dtypes.bfloat16, np.float32, np.float64),
]


@pytest.mark.parametrize("executor", ["interp", "cpu"])
@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: np.dtype(t).name)
@pytest.mark.parametrize("name", [*UPDATES, "cas"])
def test_m29_atomics_of_every_type(executor: str, dtype: Any, name: str) -> None:
    N = 32
    x, compared = RANDOM.integers(0, 4, (2, N)).astype(dtype)
    memory = np.array([1, 2, 3, 1], dtype)
    old = np.zeros(N + 1, dtype)
    want, want_old = memory.copy(), old.copy()
    for lane in range(N + 1):
        place, source = (3, 0) if lane == N else (lane % 3, lane)
        before = want[place]
        if name == "cas":
            after = x[source] if before == compared[source] else before
        elif lane == 5:
            continue
        else:
            after = UPDATES[name](before, x[source])
        want_old[lane], want[place] = before, after
    launch(executor, m29_kernel, (1,), memory, old, x, compared, N=N, NAME=name)
    np.testing.assert_array_equal(memory, want)
    np.testing.assert_array_equal(old, want_old)


@tritium.jit
def m10_built_in_kernel(values_ptr, indices_ptr, x_ptr, N: tl.constexpr, K: tl.constexpr):
    values, indices = tl.topk(tl.load(x_ptr + tl.arange(0, N)), K, return_indices=True)
    tl.store(values_ptr + tl.arange(0, K), values)
    tl.store(indices_ptr + tl.arange(0, K), indices)


@pytest.mark.parametrize("executor", ["interp", "cpu"])
def test_m10_top_k_with_infinities_and_nan(executor: str) -> None:
    x = RANDOM.permutation(128).astype(np.float32)
    x[[3, 50, 51, 127]] = np.inf
    x[[60, 9]] = np.nan
    values, indices = np.zeros(16, np.float32), np.zeros(16, np.int32)
    launch(executor, m10_built_in_kernel, (1,), values, indices, x, N=128, K=16)
    rest = np.argsort(-np.where(np.isfinite(x), x, -1), kind="stable")[:10]
    assert indices.tolist() == [9, 60, 3, 50, 51, 127, *rest]
    np.testing.assert_array_equal(values, x[indices])
