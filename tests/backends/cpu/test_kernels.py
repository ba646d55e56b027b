"""Whole kernels: matrix products, narrow element types, pointers in memory, reductions.

Unless a test says otherwise every executor must give the same bits.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tests.backends.cpu import kernels
from tests.backends.three_way import agree, narrow_cpu, run_cpu, run_eager, run_ir, same

import tritium.language as tl
from tritium.ops.callable import DeviceFunction as jit

CPUS = ("host", "narrow")


def cpu_of(name: str) -> str | None:
    return narrow_cpu() if name == "narrow" else None


def ordinary(shape: tuple[int, ...], dtype: Any = np.float32, seed: int = 0) -> np.ndarray:
    data = np.random.default_rng([seed, *shape])
    if np.dtype(dtype).kind in "iu":
        low = -50 if np.dtype(dtype).kind == "i" else 0
        return data.integers(low, 51, shape).astype(dtype)
    return data.standard_normal(shape).astype(np.float32).astype(dtype)


# ---- the guide's matrix product ------------------------------------------------------------------


def laid_out(matrix: np.ndarray, kind: str) -> np.ndarray:
    """The same numbers, stored in another way."""
    rows, columns = matrix.shape
    if kind == "plain":
        return matrix.copy()
    if kind == "transposed":
        return np.ascontiguousarray(matrix.T).T
    if kind == "reversed":
        return np.ascontiguousarray(matrix[::-1, ::-1])[::-1, ::-1]
    wide = np.zeros((rows * 2, columns * 3 + 1), matrix.dtype)
    wide[::2, 1::3] = matrix
    return wide[::2, 1::3]


LAYOUTS = ("plain", "transposed", "reversed", "strided")


def product_arguments(seed: int, dtype: Any, blocks: tuple[int, int, int]) -> dict[str, Any]:
    """A product of a random shape, K no multiple of its block, with random layouts."""
    data = np.random.default_rng(seed)
    m, n, k = (int(x) for x in data.integers(1, 150, 3))
    k += k % blocks[2] == 0
    made = {}
    for name, shape in (("a", (m, k)), ("b", (k, n)), ("c", (m, n))):
        values = data.standard_normal(shape) if name != "c" else np.zeros(shape)
        array = laid_out(values.astype(np.float32).astype(dtype), str(data.choice(LAYOUTS)))
        made[f"{name}_ptr"] = array
    made.update(M=m, N=n, K=k)
    for name, (left, right) in (("a", "mk"), ("b", "kn"), ("c", "mn")):
        steps = [stride // made[f"{name}_ptr"].itemsize for stride in made[f"{name}_ptr"].strides]
        made[f"s{name}{left}"], made[f"s{name}{right}"] = steps
    made.update(dict(zip(("BLOCK_M", "BLOCK_N", "BLOCK_K"), blocks)))
    return made


@pytest.mark.parametrize("seed", range(20))
def test_the_guides_matmul(seed: int) -> None:
    """Against float64, on every executor: an error of K + 1 roundings, and that of the result."""
    dtype = (np.float32, np.float16, ml_dtypes.bfloat16)[seed % 3]
    blocks = ((64, 64, 32), (32, 32, 32), (128, 64, 64), (16, 48, 24), (33, 17, 5))[seed % 5]
    given = product_arguments(seed, dtype, blocks)
    grid = (-(-given["M"] // blocks[0]), -(-given["N"] // blocks[1]))
    a, b = (given[name].astype(np.float64) for name in ("a_ptr", "b_ptr"))
    bound = (given["K"] + 1) * (np.abs(a) @ np.abs(b)) * 2.0**-23
    half_unit = {np.float32: 2.0**-24, np.float16: 2.0**-11}.get(dtype, 2.0**-8)
    bound += np.abs(a @ b) * half_unit + 1e-7
    results = {"eager": run_eager(kernels.matmul, given, grid)}
    results["ir"] = run_ir(kernels.matmul, given, grid)
    for cpu in CPUS:
        how = {"cpu": cpu_of(cpu), "parts": 3, "stream": cpu == "narrow"}
        results[cpu], _ = run_cpu(kernels.matmul, given, grid, **how)
    for executor, result in results.items():
        error = np.abs(result["c_ptr"].astype(np.float64) - a @ b)
        assert (error <= bound).all(), executor
    # What lies between the elements of a strided result is left alone.
    assert same(results["host"]["c_ptr"], results["narrow"]["c_ptr"])


@jit
def product(
    a_ptr, b_ptr, c_ptr, B: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
    out: tl.constexpr,
):  # fmt: skip
    i = tl.arange(0, B)[:, None, None]
    m = tl.arange(0, M)
    n = tl.arange(0, N)
    k = tl.arange(0, K)
    a = tl.load(a_ptr + (i * M + m[None, :, None]) * K + k[None, None, :])
    b = tl.load(b_ptr + (i * K + k[None, :, None]) * N + n[None, None, :])
    c = tl.dot(a, b, out_dtype=out)
    c = tl.dot(a, b, c)
    tl.store(c_ptr + (i * M + m[None, :, None]) * N + n[None, None, :], c)


PRODUCTS = [
    (1, 1, 1, 1),
    (1, 7, 5, 3),
    (1, 17, 33, 65),
    (3, 5, 16, 8),
    (2, 8, 48, 1),
    (5, 13, 19, 31),
]
PRODUCT_TYPES = {
    "fp32": (np.float32, tl.float32),
    "fp64": (np.float64, tl.float64),
    "int8": (np.int8, tl.int32),
    "fp16": (np.float16, tl.float32),
    "fp16 to fp16": (np.float16, tl.float16),
    "bf16": (ml_dtypes.bfloat16, tl.float32),
    "fp8": (ml_dtypes.float8_e5m2, tl.float16),
}


@pytest.mark.parametrize("kind", PRODUCT_TYPES)
@pytest.mark.parametrize("shape", PRODUCTS, ids=str)
def test_products(shape: tuple[int, ...], kind: str) -> None:
    """Batches and odd extents of every type; the operands are such that every sum is exact."""
    dtype, out = PRODUCT_TYPES[kind]
    batch, m, n, k = shape
    data = np.random.default_rng(shape)
    a = data.integers(-3, 4, (batch, m, k)).astype(np.float32).astype(dtype)
    b = data.integers(-3, 4, (batch, k, n)).astype(np.float32).astype(dtype)
    c = np.zeros((batch, m, n), out.numpy)
    sizes = {"B": batch, "M": m, "N": n, "K": k, "out": out}
    result, _ = agree(product, a_ptr=a, b_ptr=b, c_ptr=c, **sizes)
    want = 2 * (a.astype(np.float64) @ b.astype(np.float64))
    np.testing.assert_array_equal(result["c_ptr"].astype(np.float64), want)


# ---- element types -------------------------------------------------------------------------------


@jit
def arithmetic(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=1)
    y = tl.load(y_ptr + at)
    total = x
    for _ in range(2):
        total = (tl.where(total < y, total + y, total - x) * y).to(x.dtype)
    tl.store(out_ptr + at, total, mask=at != 3)


@jit
def casts(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n).to(tl.float32)
    y = tl.load(y_ptr + BLOCK - 1 - at).to(tl.float32)
    tl.store(out_ptr + at, (x * 0.5 + y).to(out_ptr.dtype.element_ty))


STORED = {
    "int8": np.int8,
    "uint8": np.uint8,
    "int16": np.int16,
    "uint16": np.uint16,
    "uint32": np.uint32,
    "int64": np.int64,
    "uint64": np.uint64,
    "fp16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "fp64": np.float64,
}
FP8 = {
    "e4nv": ml_dtypes.float8_e4m3fn,
    "e5": ml_dtypes.float8_e5m2,
    "e4b8": ml_dtypes.float8_e4m3fnuz,
    "e5b16": ml_dtypes.float8_e5m2fnuz,
}


@pytest.mark.parametrize("name", STORED)
@pytest.mark.parametrize("block", [5, 64, 100])
def test_arithmetic_of_stored_types(name: str, block: int) -> None:
    x, y = (ordinary((block,), STORED[name], seed) for seed in (1, 2))
    agree(arithmetic, x_ptr=x, y_ptr=y, out_ptr=np.zeros_like(x), n=block - 2, BLOCK=block)


@pytest.mark.parametrize("name", [*FP8, "fp16", "bf16", "fp64"])
@pytest.mark.parametrize("block", [5, 64, 100])
def test_casts_of_stored_types(name: str, block: int) -> None:
    dtype = {**STORED, **FP8}[name]
    patterns = np.random.default_rng(0).integers(0, 256, block * np.dtype(dtype).itemsize)
    x = patterns.astype(np.uint8).view(dtype)
    y = ordinary((block,), dtype, 2)
    agree(casts, x_ptr=x, y_ptr=y, out_ptr=np.zeros_like(x), n=block - 2, BLOCK=block)


@jit
def masks(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    y = tl.load(y_ptr + at)
    z = (x & ~y) | (x ^ y)
    for _ in range(3):
        z = z != x
    tl.store(out_ptr + at, z, mask=y | (at > 2))


@pytest.mark.parametrize("block", [5, 64, 100])
def test_booleans(block: int) -> None:
    """In memory any byte but 0 is true."""
    x, y = (np.random.default_rng(seed).integers(0, 3, block).astype(np.uint8) for seed in (1, 2))
    x, y = x.view(np.bool_), y.view(np.bool_)
    agree(masks, x_ptr=x, y_ptr=y, out_ptr=np.zeros(block, np.bool_), n=block - 2, BLOCK=block)


@jit
def tables(table_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    start = tl.load(table_ptr + row * 2).to(tl.pointer_type(tl.float32))
    length = tl.load(table_ptr + row * 2 + 1)
    at = tl.arange(0, BLOCK)
    x = tl.load(start + at, mask=at < length)
    tl.store(out_ptr + row * BLOCK + at, x)


def test_pointers_loaded_from_memory() -> None:
    """Their origin is not known: they are used as addresses."""
    data = [ordinary((n,)) for n in (3, 20, 11)]
    rows = [(part.__array_interface__["data"][0], len(part)) for part in data]
    table = np.array(rows, np.int64)
    out = np.zeros((3, 20), np.float32)
    for cpu in CPUS:
        given = {"table_ptr": table, "out_ptr": out, "n": 3, "BLOCK": 20}
        got, _ = run_cpu(tables, given, (3,), cpu=cpu_of(cpu))
        for row, part in zip(got["out_ptr"], data):
            np.testing.assert_array_equal(row, np.pad(part, (0, 20 - len(part))))


# ---- reductions ----------------------------------------------------------------------------------


@jit
def argmin_of(value1, index1, value2, index2):
    first = (value1 < value2) | ((value1 == value2) & (index1 < index2))
    return tl.where(first, value1, value2), tl.where(first, index1, index2)


@jit
def welford(mean1, m1, w1, mean2, m2, w2):
    delta = mean2 - mean1
    weight = w1 + w2
    share = tl.where(weight == 0.0, 0.0, w2 / weight)
    return mean1 + delta * share, m1 + m2 + delta * delta * w1 * share, weight


@jit
def reductions(
    x_ptr, out_ptr, place_ptr, n, B: tl.constexpr, M: tl.constexpr, N: tl.constexpr,
    axis: tl.constexpr,
):  # fmt: skip
    """Six results of each reduction, one after the other."""
    b = tl.arange(0, B)[:, None, None]
    m = tl.arange(0, M)[None, :, None]
    c = tl.arange(0, N)[None, None, :]
    at = (b * M + m) * N + c
    x = tl.load(x_ptr + at, mask=at < n, other=2.0)
    size: tl.constexpr = B * M * N // (B if axis == 0 else M if axis == 1 else N)
    if axis == 0:
        steps = (tl.arange(0, M)[:, None] * N) + tl.arange(0, N)[None, :]
        index = tl.broadcast_to(b, (B, M, N))
    elif axis == 1:
        steps = (tl.arange(0, B)[:, None] * N) + tl.arange(0, N)[None, :]
        index = tl.broadcast_to(m, (B, M, N))
    else:
        steps = (tl.arange(0, B)[:, None] * M) + tl.arange(0, M)[None, :]
        index = tl.broadcast_to(c, (B, M, N))
    tl.store(out_ptr + steps, tl.sum(x, axis))
    tl.store(out_ptr + size + steps, tl.max(x, axis))
    tl.store(out_ptr + 2 * size + steps, tl.min(x, axis))
    least, place = tl.reduce((x, index), axis, argmin_of)
    tl.store(out_ptr + 3 * size + steps, least)
    tl.store(place_ptr + steps, place)
    ones = tl.full((B, M, N), 1.0, tl.float32)
    mean, m2, weight = tl.reduce((x, x * 0.0, ones), axis, welford)
    tl.store(out_ptr + 4 * size + steps, mean)
    tl.store(out_ptr + 5 * size + steps, m2 / weight)


EXTENTS = (1, 2, 3, 5, 48, 63, 64, 65, 100, 128, 1000)


@pytest.mark.parametrize("extent", EXTENTS)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_reductions(extent: int, axis: int) -> None:
    """Along every axis, the others short and odd, with a NaN and many equal elements."""
    shape = [2, 3, 5]
    shape[axis] = extent
    x = ordinary(tuple(shape), np.float32, extent)
    x = np.round(x * 4) / 4 + np.float32(0.1) * (np.random.default_rng(1).random(shape) < 0.5)
    x = x.astype(np.float32)
    x.reshape(-1)[extent // 2] = np.nan
    size = x.size // extent
    sizes = dict(zip(("B", "M", "N"), shape))
    out, place = np.zeros(6 * size, np.float32), np.zeros(size, np.int32)
    given = {"x_ptr": x, "out_ptr": out, "place_ptr": place, "n": x.size - 1, "axis": axis}
    agree(reductions, **given, **sizes)


@jit
def sums(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    m = tl.arange(0, M)
    n = tl.arange(0, N)
    x = tl.load(x_ptr + m[:, None] * N + n[None, :])
    tl.store(out_ptr + m, tl.sum(x, 1))
    tl.store(out_ptr + M + n, tl.sum(x, 0))
    tl.store(out_ptr + M + N, tl.sum(x))
    tl.store(out_ptr + M + N + 1, tl.max(x))


@pytest.mark.parametrize("name", STORED)
@pytest.mark.parametrize("shape", [(7, 100), (64, 16), (1, 65), (130, 3)], ids=str)
def test_sums_of_stored_types(name: str, shape: tuple[int, int]) -> None:
    x = ordinary(shape, STORED[name])
    out = np.zeros(sum(shape) + 2, {"bf16": np.float32}.get(name, STORED[name]))
    agree(sums, x_ptr=x, out_ptr=out, M=shape[0], N=shape[1])


def test_a_sum_in_the_documented_order() -> None:
    """64 partials, partial p taking p, p + 64, ...; then halves: written out in NumPy."""
    x = ordinary((1, 200), np.float32, 3)
    result, _ = agree(sums, x_ptr=x, out_ptr=np.zeros(203, np.float32), M=1, N=200)
    partials = np.zeros(64, np.float32)
    for start in range(0, 200, 64):
        part = x[0, start : start + 64]
        partials[: len(part)] += part
    for half in (32, 16, 8, 4, 2, 1):
        partials = partials[:half] + partials[half : 2 * half]
    assert result["out_ptr"][0] == partials[0]
    assert result["out_ptr"][0] != np.sum(x, dtype=np.float64)


# ---- minima and maxima ---------------------------------------------------------------------------


@jit
def number_of_two(x_ptr, y_ptr, out_ptr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs)
    y = tl.load(y_ptr + offs).to(x.dtype)
    tl.store(out_ptr + offs, tl.maximum(x, y))
    tl.store(out_ptr + BLOCK + offs, tl.minimum(y, x))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("block", [1, 17])
def test_the_larger_of_nan_and_an_integer_is_the_integer(block: int, dtype: type) -> None:
    """LLVM sees that one of the operands is no NaN."""
    x = np.array([np.nan, -0.0, 2, np.inf, 5] * 4, dtype)
    given = {"x_ptr": x, "y_ptr": np.full(20, 3, np.int32), "out_ptr": np.zeros(2 * block, dtype)}
    given["BLOCK"] = block
    want = run_eager(number_of_two, given, (1,))["out_ptr"]
    assert not np.isnan(want).any()
    for cpu in map(cpu_of, CPUS):
        assert same(run_cpu(number_of_two, given, (1,), cpu=cpu)[0]["out_ptr"], want)
