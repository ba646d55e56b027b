"""The kernels that are timed, as source text: each is executed for one package at a time.

The text says ``triton`` and ``tl``; ``build`` binds these names to Tritium or to Triton. Nothing
is imported here, so that Triton's own environment can use this file.
"""

from __future__ import annotations

import linecache
from typing import Any

SOURCES = {
    "add": '''
@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    y = tl.load(y_ptr + offs, mask=mask)
    tl.store(out_ptr + offs, x + y, mask=mask)
''',
    "chain": '''
@triton.jit
def chain_kernel(x_ptr, y_ptr, z_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + offs, mask=mask).to(tl.float32)
    z = tl.load(z_ptr + offs, mask=mask).to(tl.float32)
    tl.store(out_ptr + offs, (tl.exp(x) + y) * z, mask=mask)
''',
    "softmax": '''
@triton.jit
def softmax_kernel(x_ptr, out_ptr, stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    mask = offs < columns
    x = tl.load(x_ptr + row * stride + offs, mask=mask, other=float("-inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * stride + offs, e / tl.sum(e, axis=0), mask=mask)
''',
    "layernorm": '''
@triton.jit
def layernorm_kernel(
    x_ptr, weight_ptr, bias_ptr, out_ptr, mean_ptr, rstd_ptr, stride, columns, epsilon,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    mask = offs < columns
    x = tl.load(x_ptr + row * stride + offs, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / columns
    centred = tl.where(mask, x - mean, 0.0)
    rstd = 1.0 / tl.sqrt(tl.sum(centred * centred, axis=0) / columns + epsilon)
    weight = tl.load(weight_ptr + offs, mask=mask).to(tl.float32)
    bias = tl.load(bias_ptr + offs, mask=mask).to(tl.float32)
    tl.store(out_ptr + row * stride + offs, centred * rstd * weight + bias, mask=mask)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)
''',
    "rmsnorm": '''
@triton.jit
def rmsnorm_kernel(x_ptr, weight_ptr, out_ptr, stride, columns, epsilon, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    mask = offs < columns
    x = tl.load(x_ptr + row * stride + offs, mask=mask, other=0.0).to(tl.float32)
    rstd = 1.0 / tl.sqrt(tl.sum(x * x, axis=0) / columns + epsilon)
    weight = tl.load(weight_ptr + offs, mask=mask).to(tl.float32)
    tl.store(out_ptr + row * stride + offs, x * rstd * weight, mask=mask)
''',
    "cross_entropy": '''
@triton.jit
def cross_entropy_kernel(x_ptr, target_ptr, loss_ptr, stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    mask = offs < columns
    x = tl.load(x_ptr + row * stride + offs, mask=mask, other=float("-inf")).to(tl.float32)
    largest = tl.max(x, axis=0)
    total = tl.sum(tl.exp(x - largest), axis=0)
    chosen = tl.load(x_ptr + row * stride + tl.load(target_ptr + row)).to(tl.float32)
    tl.store(loss_ptr + row, tl.log(total) + largest - chosen)
''',
    "dot": '''
@triton.jit
def dot_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, sam, sak, sbk, sbn, scm, scn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    rm = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    rk = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + rm[:, None] * sam + rk[None, :] * sak
    b_ptrs = b_ptr + rk[:, None] * sbk + rn[None, :] * sbn
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        left = K - k * BLOCK_K
        a = tl.load(a_ptrs, mask=(rm[:, None] < M) & (rk[None, :] < left), other=0.0)
        b = tl.load(b_ptrs, mask=(rk[:, None] < left) & (rn[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BLOCK_K * sak
        b_ptrs += BLOCK_K * sbk
    inside = (rm[:, None] < M) & (rn[None, :] < N)
    tl.store(c_ptr + rm[:, None] * scm + rn[None, :] * scn, acc, mask=inside)
''',
    "many": '''
@triton.jit
def many_kernel(
    x_ptr, y_ptr, a_ptr, b_ptr, c_ptr, out_ptr, n, i2, i3, i4, i5, i6, i7, i8, i9, f0, f1, flag,
    BLOCK: tl.constexpr,
):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    y = tl.load(y_ptr + offs, mask=mask)
    tl.store(out_ptr + offs, x + y, mask=mask)
''',
}  # fmt: skip


def build(name: str, package: Any, language: Any) -> Any:
    """The kernel ``name`` of ``SOURCES``, made by ``package.jit`` with ``language`` as ``tl``."""
    return execute(name, SOURCES[name], package, language)


def execute(name: str, text: str, package: Any, language: Any) -> Any:
    """The kernel that ``text`` defines as ``NAME_kernel``.

    The text is entered into ``linecache``, where both packages look a function's source up.
    """
    filename = f"<benchmark {name}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    namespace = {"triton": package, "tl": language, "__name__": f"benchmarks.kernels.{name}"}
    exec(compile(text, filename, "exec"), namespace)
    return namespace[f"{name}_kernel"]


def next_power_of_2(n: int) -> int:
    """The smallest power of two that is at least ``n``; ``n`` is positive."""
    return 1 << (n - 1).bit_length()
