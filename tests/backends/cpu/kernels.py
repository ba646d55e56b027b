"""Kernels that the CPU back end's tests share, written as users write them."""

from __future__ import annotations

import ast
import linecache
from pathlib import Path
from typing import Any

import numpy as np

import tritium.language as tl
from tritium.ops.callable import DeviceFunction

GUIDE = Path(__file__).parents[2] / "guide"


def from_guide(file: str, name: str) -> DeviceFunction:
    """A kernel of the guide's programs, word for word, its decorators left out."""
    text = (GUIDE / file).read_text("utf-8")
    found = next(
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef) and node.name == name
    )
    lines = text.splitlines(keepends=True)[found.lineno - 1 : found.end_lineno]
    filename = f"<{name} of {file}>"
    linecache.cache[filename] = (len(text), None, lines, filename)
    namespace: dict[str, Any] = {"tl": tl}
    exec(compile("".join(lines), filename, "exec"), namespace)
    return DeviceFunction(namespace[name])


matmul = from_guide("matmul_autotuned.py", "matmul_kernel")
add = from_guide("vector_add.py", "add_kernel")


@DeviceFunction
def softmax_row(out_ptr, in_ptr, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < n
    x = tl.load(in_ptr + row * stride + at, mask=mask, other=-float("inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * stride + at, e / tl.sum(e, axis=0), mask=mask)


@DeviceFunction
def softmax_tile(out_ptr, in_ptr, stride, M, N, BM: tl.constexpr, BN: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)[:, None]
    columns = tl.arange(0, BN)[None, :]
    mask = (rows < M) & (columns < N)
    x = tl.load(in_ptr + rows * stride + columns, mask=mask, other=-float("inf"))
    e = tl.exp(x - tl.max(x, axis=1)[:, None])
    tl.store(out_ptr + rows * stride + columns, e / tl.sum(e, axis=1)[:, None], mask=mask)


@DeviceFunction
def layernorm(x_ptr, y_ptr, w_ptr, b_ptr, stride, N, eps, BLOCK: tl.constexpr):
    x_ptr += tl.program_id(0) * stride
    y_ptr += tl.program_id(0) * stride
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, N, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + at, mask=at < N, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / N
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, N, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + at, mask=at < N, other=0.0).to(tl.float32)
        x = tl.where(at < N, x - mean, 0.0)
        total += x * x
    scale = 1 / tl.sqrt(tl.sum(total, axis=0) / N + eps)
    for start in range(0, N, BLOCK):
        at = start + tl.arange(0, BLOCK)
        mask = at < N
        w = tl.load(w_ptr + at, mask=mask)
        b = tl.load(b_ptr + at, mask=mask)
        x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
        tl.store(y_ptr + at, (x - mean) * scale * w + b, mask=mask)


@DeviceFunction
def transpose(in_ptr, out_ptr, in_stride, out_stride, BM: tl.constexpr, BN: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    x = tl.load(in_ptr + rows[:, None] * in_stride + columns[None, :])
    tl.store(out_ptr + columns[None, :] * out_stride + rows[:, None], x)


@DeviceFunction
def transpose_masked(in_ptr, out_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    mask = (rows[:, None] < M) & (columns[None, :] < N)
    x = tl.load(in_ptr + rows[:, None] * N + columns[None, :], mask=mask)
    tl.store(out_ptr + columns[None, :] * M + rows[:, None], x, mask=mask)


@DeviceFunction
def attention(
    q_ptr, k_ptr, v_ptr, o_ptr, N, scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    q = tl.load(q_ptr + rows[:, None] * D + d[None, :], mask=rows[:, None] < N, other=0.0)
    m = tl.full((BM,), -float("inf"), tl.float32)
    l = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for start in range(0, N, BN):
        columns = start + tl.arange(0, BN)
        inside = columns[None, :] < N
        k = tl.load(k_ptr + columns[:, None] * D + d[None, :], mask=columns[:, None] < N, other=0.0)
        s = tl.where(inside, tl.dot(q, tl.trans(k)) * scale, -float("inf"))
        m_new = tl.maximum(m, tl.max(s, 1))
        p = tl.exp2(s - m_new[:, None])
        alpha = tl.exp2(m - m_new)
        l = l * alpha + tl.sum(p, 1)
        v = tl.load(v_ptr + columns[:, None] * D + d[None, :], mask=columns[:, None] < N, other=0.0)
        acc = acc * alpha[:, None] + tl.dot(p.to(v.dtype), v)
        m = m_new
    tl.store(o_ptr + rows[:, None] * D + d[None, :], acc / l[:, None], mask=rows[:, None] < N)


@DeviceFunction
def any_above(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    above = tl.exp(x) > 2.0
    found = tl.max(above.to(tl.int32), axis=0)
    tl.store(y_ptr + at, above & (found == 1), mask=at < n)
    tl.store(out_ptr, found)


@DeviceFunction
def shift(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(out_ptr + at, x, mask=at < n)
    tl.store(out_ptr + at + BLOCK, x * 2.0, mask=at < n)


def floats(*shape: int) -> np.ndarray:
    """Ordinary fp32 numbers."""
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


EXAMPLES: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {
    "add": (
        (5,),
        {
            "x_ptr": floats(5000),
            "y_ptr": floats(5000),
            "out_ptr": np.zeros(5000, "f4"),
            "n": 4999,
            "BLOCK_SIZE": 1024,
        },
    ),
    "softmax_row": (
        (4,),
        {
            "out_ptr": np.zeros((4, 1000), "f4"),
            "in_ptr": floats(4, 1000),
            "stride": 1000,
            "n": 999,
            "BLOCK": 1024,
        },
    ),
    "softmax_tile": (
        (2,),
        {
            "out_ptr": np.zeros((45, 100), "f4"),
            "in_ptr": floats(45, 100),
            "stride": 100,
            "M": 45,
            "N": 99,
            "BM": 32,
            "BN": 128,
        },
    ),
    "layernorm": (
        (3,),
        {
            "x_ptr": floats(3, 1000),
            "y_ptr": np.zeros((3, 1000), "f4"),
            "w_ptr": floats(1000),
            "b_ptr": floats(1000),
            "stride": 1000,
            "N": 999,
            "eps": 1e-5,
            "BLOCK": 256,
        },
    ),
    "matmul": (
        (2, 2),
        {
            "a_ptr": floats(100, 70),
            "b_ptr": floats(70, 90),
            "c_ptr": np.zeros((100, 90), "f4"),
            "M": 100,
            "N": 90,
            "K": 70,
            "sam": 70,
            "sak": 1,
            "sbk": 90,
            "sbn": 1,
            "scm": 90,
            "scn": 1,
            "BLOCK_M": 64,
            "BLOCK_N": 64,
            "BLOCK_K": 32,
        },
    ),
    "transpose": (
        (2, 1),
        {
            "in_ptr": floats(128, 64),
            "out_ptr": np.zeros((64, 128), "f4"),
            "in_stride": 64,
            "out_stride": 128,
            "BM": 64,
            "BN": 64,
        },
    ),
    "transpose_masked": (
        (2, 1),
        {
            "in_ptr": floats(100, 60),
            "out_ptr": np.zeros((60, 100), "f4"),
            "M": 100,
            "N": 60,
            "BM": 64,
            "BN": 64,
        },
    ),
    "attention": (
        (2,),
        {
            **{name: floats(100, 32) for name in ("q_ptr", "k_ptr", "v_ptr")},
            "o_ptr": np.zeros((100, 32), "f4"),
            "N": 100,
            "scale": 0.2,
            "BM": 64,
            "BN": 32,
            "D": 32,
        },
    ),
    "any_above": (
        (1,),
        {
            "x_ptr": floats(1000),
            "y_ptr": np.zeros(1000, "?"),
            "out_ptr": np.zeros(1, "i4"),
            "n": 999,
            "BLOCK": 1024,
        },
    ),
    "shift": (
        (1,),
        {"x_ptr": floats(1024), "out_ptr": np.zeros(2048, "f4"), "n": 1000, "BLOCK": 1024},
    ),
}
"""A grid and arguments that meet every edge, for each kernel of this file."""


def example(name: str, **changed: Any) -> tuple[DeviceFunction, dict[str, Any], tuple[int, ...]]:
    """A kernel of this file with arrays of its own, and a grid."""
    grid, arguments = EXAMPLES[name]
    fresh = {
        key: value.copy() if isinstance(value, np.ndarray) else value
        for key, value in arguments.items()
    }
    return globals()[name], {**fresh, **changed}, grid
