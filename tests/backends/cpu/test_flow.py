"""Loops and branches natively: what they carry, in which buffers, and how often they run."""

from __future__ import annotations

import linecache
from typing import Any

import numpy as np
import pytest
from tests.backends.three_way import agree

import tritium.language as tl
from tritium.ops.callable import DeviceFunction as jit


def numbers(shape: tuple[int, ...], seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-50, 50, shape).astype(np.int32)


@jit
def swap(x_ptr, y_ptr, trips, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    a = tl.load(x_ptr + at)
    b = tl.load(y_ptr + at)
    for _ in range(trips):
        a, b = b, a
    tl.store(x_ptr + at, a)
    tl.store(y_ptr + at, b)


@jit
def rotate(x_ptr, y_ptr, trips, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    a = tl.load(x_ptr + at)
    b = tl.load(y_ptr + at)
    c = a + b
    for i in range(trips):
        a, b, c = b + i, c, a * 2
    tl.store(x_ptr + at, a - c)
    tl.store(y_ptr + at, b)


@jit
def fibonacci(x_ptr, y_ptr, trips, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    a = tl.load(x_ptr + at)
    b = tl.load(y_ptr + at)
    i = 0
    while i < trips:
        a, b = b, a + b
        i += 1
    tl.store(x_ptr + at, a)
    tl.store(y_ptr + at, b)


@jit
def nested(x_ptr, y_ptr, trips, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.int32)
    other = tl.load(x_ptr + at)
    for i in range(trips):
        inner = total
        for j in range(i):
            inner += other * j
            k = 0
            while k < 2:
                other = other ^ inner
                k += 1
        total, other = inner, total
    tl.store(x_ptr + at, total)
    tl.store(y_ptr + at, other)


@jit
def branches(x_ptr, y_ptr, trips, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    a = tl.load(x_ptr + at)
    b = tl.load(y_ptr + at)
    s = 0
    for i in range(trips):
        if i % 2 == 0:
            a, b = b, a
            s += 1
        else:
            a = a + b
            if s > 2:
                b = b - i
    if s > 1:
        t = a * 2
    else:
        t = b
    tl.store(x_ptr + at, a + t)
    tl.store(y_ptr + at, b + s)


@jit
def reversed_carried(x_ptr, y_ptr, trips, BLOCK: tl.constexpr):
    """The next value of a carried tile reads other elements of the old one."""
    m = tl.arange(0, 4)
    n = tl.arange(0, 4)
    at = m[:, None] * 4 + n[None, :]
    a = tl.load(x_ptr + at)
    b = tl.load(y_ptr + at)
    for _ in range(trips):
        a = tl.trans(a) + b
        b = tl.reshape(tl.trans(tl.reshape(b, (2, 8))), (4, 4))
    tl.store(x_ptr + at, a)
    tl.store(y_ptr + at, b)


@jit
def reduce_carried(x_ptr, y_ptr, trips, BLOCK: tl.constexpr):
    m = tl.arange(0, 4)
    n = tl.arange(0, 4)
    at = m[:, None] * 4 + n[None, :]
    a = tl.load(x_ptr + at)
    rows = tl.sum(a, 1)
    for _ in range(trips):
        a = a - rows[:, None] + tl.max(a, 0)[None, :]
        rows = tl.sum(a, 1) + tl.min(a, 1)
    tl.store(x_ptr + at, a)
    tl.store(y_ptr + m, rows)


@jit
def store_across(x_ptr, y_ptr, trips, BLOCK: tl.constexpr):
    """A store walks the columns of a square tile whose next value is made row by row."""
    m = tl.arange(0, BLOCK)[:, None]
    n = tl.arange(0, BLOCK)[None, :]
    a = tl.load(x_ptr + m * BLOCK + n)
    b = a * 3
    rows = tl.sum(a, 1)
    for i in range(trips):
        tl.store(y_ptr + m + n * BLOCK, a + b)
        b = a + tl.trans(b) + rows[None, :]
        a = a * 2 + i
        rows = rows + tl.sum(a, 0) + tl.max(a + rows[:, None], 1)
    tl.store(x_ptr + m * BLOCK + n, a + b)


@pytest.mark.parametrize("block", [5, 8, 16, 32])
def test_square_tiles_stored_across(block: int) -> None:
    x = numbers((block, block), 1)
    agree(store_across, x_ptr=x, y_ptr=np.zeros_like(x), trips=3, BLOCK=block)


@jit
def backwards(x_ptr, y_ptr, trips, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    a = tl.load(x_ptr + at)
    for i in range(trips, -3, -2):
        a = a * 3 + i
    for i in range(10, 0, -3):
        a = a * 5 - i
    for i in tl.static_range(3):
        a += i
    tl.store(y_ptr + at, a)


@jit
def early(x_ptr, y_ptr, trips, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    a = tl.load(x_ptr + at)
    if trips == 3:
        tl.store(y_ptr + at, a)
        return
    if trips > 3:
        a += 1
        if trips == 7:
            return
    tl.store(y_ptr + at, a * 2)


@jit
def select_pointers(x_ptr, y_ptr, trips, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    p = tl.where(at % 3 == 0, x_ptr + at, y_ptr + at)
    v = tl.load(p)
    tl.store(p, v * 3 + trips)
    w = tl.load(x_ptr + at)
    tl.store(y_ptr + at, w + v)


@jit
def pingpong(x_ptr, y_ptr, trips, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    a = x_ptr
    b = y_ptr
    for _ in range(trips):
        v = tl.load(a + at)
        tl.store(b + at, v * 3 + tl.load(b + at))
        a, b = b, a


@jit
def scalar_pointer(x_ptr, y_ptr, trips, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    p = x_ptr
    s = tl.zeros((BLOCK,), tl.int32)
    i = 0
    while i < trips:
        s += tl.load(p + at)
        p += i
        i += 1
    tl.store(y_ptr + at, s)


@jit
def moving_pointers(x_ptr, y_ptr, trips, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    p = x_ptr + at
    q = y_ptr + at
    for i in range(trips):
        v = tl.load(p)
        p = tl.where(v > 0, p + 1, x_ptr + at)
        tl.store(q, v + i)
    tl.store(q, tl.load(p))


@jit
def tile_condition(x_ptr, y_ptr, trips, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at)
    n = 0
    while tl.max(x, 0) > 3:
        x = x // 2
        n += 1
    while (tl.sum(x, 0) < 40 * BLOCK) & (n < 20):
        x = x + n
        n += 1
    tl.store(y_ptr + at, x + n)


@jit
def same_values(x_ptr, y_ptr, trips, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    a = tl.load(x_ptr + at)
    b = tl.load(y_ptr + at)
    z = a * 2
    for _ in range(trips):
        c = a + b
        a = c
        b = c
    if trips > 1:
        a, b = z, z
    else:
        a, b = b, z
    for _ in range(trips):
        a, b = z, a
        z = z + 1
    tl.store(x_ptr + at, a)
    tl.store(y_ptr + at, b + z)


@jit
def inner_swaps(x_ptr, y_ptr, trips, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    a = tl.load(x_ptr + at)
    b = tl.load(y_ptr + at)
    for i in range(trips):
        old = a
        if i % 2 == 0:
            for j in range(2):
                a, b = b + j, a
        else:
            b = old * 2
            a = a + tl.sum(b, 0)
        b = b - old
    tl.store(x_ptr + at, a)
    tl.store(y_ptr + at, b)


@jit
def powers(x_ptr, y_ptr, trips, BLOCK: tl.constexpr):
    m = tl.arange(0, 8)
    at = m[:, None] * 8 + m[None, :]
    a = (tl.load(x_ptr + at) % 3).to(tl.int8)
    b = a
    acc = tl.load(y_ptr + at)
    for _ in range(trips):
        d = tl.dot(a, b)
        acc2 = tl.dot(a, tl.trans(b), acc)
        acc = tl.dot((acc2 % 5).to(tl.int8), a, acc) + acc2
        b = (d % 3).to(tl.int8)
        a, b = b, a
    tl.store(y_ptr + at, acc)
    tl.store(x_ptr + at, a + b)


@jit
def accumulator_read_later(x_ptr, y_ptr, trips, BLOCK: tl.constexpr):
    m = tl.arange(0, 8)
    at = m[:, None] * 8 + m[None, :]
    a = (tl.load(x_ptr + at) % 3).to(tl.int8)
    acc = tl.load(y_ptr + at)
    other = acc
    for _ in range(trips):
        new = tl.dot(a, a, acc)
        other = other + acc
        acc = new
    tl.store(y_ptr + at, acc)
    tl.store(x_ptr + at, other)


FLOW = (
    swap,
    rotate,
    fibonacci,
    nested,
    branches,
    reversed_carried,
    reduce_carried,
    backwards,
    early,
    select_pointers,
    pingpong,
    scalar_pointer,
    moving_pointers,
    tile_condition,
    same_values,
    inner_swaps,
    powers,
    accumulator_read_later,
)


@pytest.mark.parametrize("kernel", FLOW, ids=lambda kernel: kernel.__name__)
@pytest.mark.parametrize("trips", [0, 1, 2, 3, 7])
def test_control_flow(kernel: jit, trips: int) -> None:
    x, y = numbers((100,), 1), numbers((100,), 2)
    for block in (16, 50):
        agree(kernel, x_ptr=x, y_ptr=y, trips=trips, BLOCK=block)


@pytest.mark.parametrize("kernel", [select_pointers, pingpong, moving_pointers])
def test_pointers_into_overlapping_memory(kernel: jit) -> None:
    memory = numbers((200,), 1)
    agree(kernel, x_ptr=memory[:100], y_ptr=memory[7:107], trips=3, BLOCK=50)


@jit
def bounds(out_ptr, low, high, step, BLOCK: tl.constexpr):
    count = 0
    total = tl.zeros((BLOCK,), tl.int64)
    for i in range(low, high, step):
        count += 1
        total += i
    tl.store(out_ptr + tl.arange(0, BLOCK), total)
    tl.store(out_ptr + BLOCK, count)


@pytest.mark.parametrize(
    "low,high,step",
    [
        (0, 10, 3),
        (5, 5, 2),
        (9, 4, 2),
        (2**31 - 10, 2**31 - 1, 4),
        (-(2**31), -(2**31) + 9, 2),
        (-(2**31), 2**31 - 1, 2**30),
        (2**40, 2**40 + 10, 3),
        (2**63 - 20, 2**63 - 1, 7),
        (-(2**63), 2**63 - 1, 2**61),
    ],
)
def test_loop_bounds(low: int, high: int, step: int) -> None:
    result, _ = agree(bounds, out_ptr=np.zeros(9, np.int64), low=low, high=high, step=step, BLOCK=8)
    assert result["out_ptr"][8] == len(range(low, high, step))


def named(names: list[str]) -> jit:
    """A kernel whose variables have these names."""
    lines = ["def kernel(x_ptr, trips, BLOCK: tl.constexpr):", "    at = tl.arange(0, BLOCK)"]
    lines += [f"    {name} = {number}" for number, name in enumerate(names)]
    lines += ["    for i in range(trips):"]
    lines += [f"        {name} = {name} * 3 + i" for name in names]
    lines += [f"    tl.store(x_ptr + at, {' + '.join(names)} + tl.load(x_ptr + at))", ""]
    source = "\n".join(lines)
    linecache.cache["<named>"] = (len(source), None, source.splitlines(keepends=True), "<named>")
    namespace: dict[str, Any] = {"tl": tl}
    exec(compile(source, "<named>", "exec"), namespace)
    return jit(namespace["kernel"])


def test_variables_named_as_labels() -> None:
    """LLVM has one table for values and labels: a variable may have any name."""
    labels = ["entry", "start", "fast", "generic", "join", "body", "then", "odd", "masked", "trip"]
    labels += ["arguments", "first", "last", "scratch_memory", "iv", "done", "program", "kernel"]
    agree(named(labels), x_ptr=np.zeros(20, np.int32), trips=4, BLOCK=20)


@jit
def int8_product(x_ptr, y_ptr, out_ptr, start, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    row = tl.arange(0, M)[:, None]
    column = tl.arange(0, N)[None, :]
    a = tl.load(x_ptr + row * K + tl.arange(0, K)[None, :])
    b = tl.load(y_ptr + tl.arange(0, K)[:, None] * N + column)
    acc = tl.full((M, N), 0, tl.int32) + start
    tl.store(out_ptr + row * N + column, tl.dot(a, b, acc))
    # The operand as int8 again: sums that wrap.
    tl.store(out_ptr + M * N + row * K + tl.arange(0, K)[None, :], a + a)
    tl.store(out_ptr + M * N + M * K + row * N + column, tl.dot(a, b))


@pytest.mark.parametrize("K", [1, 17, 1023, 1024, 1025, 2100])
@pytest.mark.parametrize("extreme", [False, True])
def test_products_of_int8_are_exact_at_any_depth(K: int, extreme: bool) -> None:
    M, N = 9, 37
    random = np.random.default_rng(K)
    x, y = (random.integers(-128, 128, shape).astype(np.int8) for shape in ((M, K), (K, N)))
    if extreme:
        x[:], y[:] = -128, -128
        x[-1], y[:, -1] = 127, 127
    out = np.zeros(2 * M * N + M * K, np.int32)
    exact = x.astype(np.int64) @ y.astype(np.int64)
    kernel = {"x_ptr": x, "y_ptr": y, "out_ptr": out, "start": 2**31 - 5, "M": M, "N": N, "K": K}
    result, _ = agree(int8_product, **kernel)
    got = result["out_ptr"]
    np.testing.assert_array_equal(got[: M * N], (exact + 2**31 - 5).astype(np.int32).ravel())
    np.testing.assert_array_equal(got[M * N : -M * N], (x + x).ravel())
    np.testing.assert_array_equal(got[-M * N :], exact.astype(np.int32).ravel())
