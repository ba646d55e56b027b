"""Kernels as people write them: the IR computes what NumPy computes, bit for bit as eager mode."""

from __future__ import annotations

import numpy as np
import pytest
from tests.frontend.kernels import F32, I32, ConstantSpec, PointerSpec, ir, jit, launch, ops

import tritium.language as tl
from tritium.ops.control import For, If


@jit
def leaky_relu(x, slope: tl.constexpr = 0.5):
    return tl.where(x >= 0, x, slope * x)


@jit
def matmul(
    c_ptr, a_ptr, b_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
    ACTIVATION: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(axis=0)
    num_pid_m = tl.cdiv(M, BLOCK_M)
    num_pid_n = tl.cdiv(N, BLOCK_N)
    num_pid_in_group = GROUP * num_pid_n
    group_id = pid // num_pid_in_group
    first_pid_m = group_id * GROUP
    group_size_m = min(num_pid_m - first_pid_m, GROUP)
    pid_m = first_pid_m + ((pid % num_pid_in_group) % group_size_m)
    pid_n = (pid % num_pid_in_group) // group_size_m
    offs_am = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M)) % M
    offs_bn = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N)) % N
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + (offs_am[:, None] * stride_am + offs_k[None, :] * stride_ak)
    b_ptrs = b_ptr + (offs_k[:, None] * stride_bk + offs_bn[None, :] * stride_bn)
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        a = tl.load(a_ptrs, mask=offs_k[None, :] < K - k * BLOCK_K, other=0.0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < K - k * BLOCK_K, other=0.0)
        accumulator = tl.dot(a, b, accumulator)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    if ACTIVATION == "leaky_relu":
        accumulator = leaky_relu(accumulator)
    c = accumulator.to(tl.float32)
    offs_cm = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_cn = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    c_ptrs = c_ptr + stride_cm * offs_cm[:, None] + stride_cn * offs_cn[None, :]
    c_mask = (offs_cm[:, None] < M) & (offs_cn[None, :] < N)
    tl.store(c_ptrs, c, mask=c_mask)


@pytest.mark.parametrize("activation", ["", "leaky_relu"])
def test_matmul(activation: str) -> None:
    rng = np.random.default_rng(0)
    m, n, k = 19, 10, 13
    a, b = (rng.standard_normal(shape, np.float32) for shape in ((m, k), (k, n)))
    c = np.zeros((m, n), np.float32)
    function = launch(matmul, (6,), c, a, b, m, n, k, k, 1, n, 1, n, 1, 8, 8, 4, 2, activation)
    expected = a @ b
    if activation:
        expected = np.where(expected >= 0, expected, 0.5 * expected)
    np.testing.assert_allclose(c, expected, rtol=1e-5, atol=1e-6)
    (loop,) = ops(function, For)
    assert len(loop.init) == 3


@jit
def softmax(out, x, stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n_cols
    values = tl.load(x + row * stride + offsets, mask=mask, other=-float("inf"))
    shifted = values - tl.max(values, axis=0)
    numerator = tl.exp(shifted)
    denominator = tl.sum(numerator, axis=0)
    tl.store(out + row * stride + offsets, numerator / denominator, mask=mask)


def test_softmax() -> None:
    x = np.random.default_rng(1).standard_normal((5, 37), np.float32)
    out = np.zeros_like(x)
    launch(softmax, (5,), out, x, 37, 37, 64)
    exact = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    np.testing.assert_allclose(out, exact / exact.sum(1, keepdims=True), rtol=1e-6)


@jit
def layer_norm(y, mean_out, x, weight, bias, N, eps, BLOCK: tl.constexpr, HAS_BIAS: tl.constexpr):
    row = tl.program_id(0)
    x += row * N
    y += row * N
    _mean = tl.zeros([BLOCK], dtype=tl.float32)
    for off in range(0, N, BLOCK):
        cols = off + tl.arange(0, BLOCK)
        a = tl.load(x + cols, mask=cols < N, other=0.0).to(tl.float32)
        _mean += a
    mean = tl.sum(_mean, axis=0) / N
    _var = tl.zeros([BLOCK], dtype=tl.float32)
    for off in range(0, N, BLOCK):
        cols = off + tl.arange(0, BLOCK)
        a = tl.load(x + cols, mask=cols < N, other=0.0).to(tl.float32)
        a = tl.where(cols < N, a - mean, 0.0)
        _var += a * a
    rstd = 1 / tl.sqrt(tl.sum(_var, axis=0) / N + eps)
    tl.store(mean_out + row, mean)
    for off in range(0, N, BLOCK):
        cols = off + tl.arange(0, BLOCK)
        mask = cols < N
        w = tl.load(weight + cols, mask=mask)
        result = (tl.load(x + cols, mask=mask, other=0.0) - mean) * rstd * w
        if HAS_BIAS:
            result += tl.load(bias + cols, mask=mask)
        tl.store(y + cols, result, mask=mask)


@pytest.mark.parametrize("with_bias", [True, False])
def test_layer_norm(with_bias: bool) -> None:
    rng = np.random.default_rng(2)
    x = rng.standard_normal((3, 41), np.float32)
    w, b = (rng.standard_normal(41, np.float32) for _ in range(2))
    y, mean = np.zeros_like(x), np.zeros(3, np.float32)
    bias = b if with_bias else None
    launch(layer_norm, (3,), y, mean, x, w, bias, 41, 1e-5, 16, with_bias)
    wide = x.astype(np.float64)
    normal = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(y, normal * w + (b if with_bias else 0), rtol=1e-4, atol=1e-5)


@jit
def attention_inner(
    acc, l_i, m_i, q, K_block, V_block, start_m, scale,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, D: tl.constexpr, STAGE: tl.constexpr,
    offs_m: tl.constexpr, offs_n: tl.constexpr, N_CTX,
):  # fmt: skip
    if STAGE == 1:
        lo, hi = 0, start_m * BLOCK_M
    elif STAGE == 2:
        lo, hi = start_m * BLOCK_M, (start_m + 1) * BLOCK_M
        lo = tl.multiple_of(lo, BLOCK_M)
    else:
        lo, hi = 0, N_CTX
    K_block += lo * D
    V_block += lo * D
    for start_n in tl.range(lo, hi, BLOCK_N, num_stages=2):
        start_n = tl.multiple_of(start_n, BLOCK_N)
        k = tl.load(K_block).T
        qk = tl.dot(q, k)
        if STAGE == 2:
            mask = offs_m[:, None] >= (start_n + offs_n[None, :])
            qk = qk * scale + tl.where(mask, 0, -1.0e6)
            m_ij = tl.maximum(m_i, tl.max(qk, 1))
            qk -= m_ij[:, None]
        else:
            m_ij = tl.maximum(m_i, tl.max(qk, 1) * scale)
            qk = qk * scale - m_ij[:, None]
        p = tl.exp(qk)
        alpha = tl.exp(m_i - m_ij)
        l_ij = tl.sum(p, 1)
        acc = acc * alpha[:, None]
        v = tl.load(V_block)
        acc = tl.dot(p, v, acc)
        l_i = l_i * alpha + l_ij
        m_i = m_ij
        K_block += BLOCK_N * D
        V_block += BLOCK_N * D
    return acc, l_i, m_i


@jit
def attention(
    Out, Q, K, V, scale, N_CTX,
    D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, STAGE: tl.constexpr,
):  # fmt: skip
    tl.static_assert(BLOCK_N <= BLOCK_M, f"{BLOCK_N} is over {BLOCK_M}")
    start_m = tl.program_id(0)
    offs_m = start_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, D)
    m_i = tl.zeros([BLOCK_M], dtype=tl.float32) - float("inf")
    l_i = tl.zeros([BLOCK_M], dtype=tl.float32) + 1.0
    acc = tl.zeros([BLOCK_M, D], dtype=tl.float32)
    q = tl.load(Q + offs_m[:, None] * D + offs_d[None, :])
    K_block = K + offs_n[:, None] * D + offs_d[None, :]
    V_block = V + offs_n[:, None] * D + offs_d[None, :]
    if STAGE & 1:
        acc, l_i, m_i = attention_inner(
            acc, l_i, m_i, q, K_block, V_block, start_m, scale,
            BLOCK_M, BLOCK_N, D, 4 - STAGE, offs_m, offs_n, N_CTX,
        )  # fmt: skip
    if STAGE & 2:
        acc, l_i, m_i = attention_inner(
            acc, l_i, m_i, q, K_block, V_block, start_m, scale,
            BLOCK_M, BLOCK_N, D, 2, offs_m, offs_n, N_CTX,
        )  # fmt: skip
    acc = acc / l_i[:, None]
    tl.store(Out + offs_m[:, None] * D + offs_d[None, :], acc.to(Out.type.element_ty))


@pytest.mark.parametrize("causal", [False, True])
def test_attention(causal: bool) -> None:
    rng = np.random.default_rng(3)
    n, d = 16, 4
    q, k, v = (rng.standard_normal((n, d), np.float32) for _ in range(3))
    out = np.zeros((n, d), np.float32)
    function = launch(attention, (2,), out, q, k, v, 0.5, n, d, 8, 4, 3 if causal else 1)
    scores = q.astype(np.float64) @ k.T * 0.5
    if causal:
        scores = np.where(np.tril(np.ones((n, n), bool)), scores, -np.inf)
    p = np.exp(scores - scores.max(1, keepdims=True))
    # The running maximum starts at -inf with a sum of 1, which the first block drops.
    np.testing.assert_allclose(out, p @ v / p.sum(1, keepdims=True), rtol=1e-4, atol=1e-5)
    loops = ops(function, For)
    assert len(loops) == (2 if causal else 1)
    carried = [result.name for result in loops[0].results]
    assert carried == ["acc", "l_i", "m_i", "K_block", "V_block"]


@jit
def variable_length(out, x, offsets, T, HAS_OFFSETS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0)
    if HAS_OFFSETS:
        begin, end = tl.load(offsets + i).to(tl.int32), tl.load(offsets + i + 1).to(tl.int32)
        if end - begin <= 0:
            return
        T = end - begin
    else:
        begin = i * T
    total = 0.0
    for start in range(0, T, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.sum(tl.load(x + begin + at, mask=at < T, other=0.0), 0)
    if total > 1e30:
        return
    tl.store(out + i, total)


def test_variable_length() -> None:
    x = np.arange(20, dtype=np.float32)
    offsets = np.array([0, 3, 3, 20], np.int64)
    out = np.full(3, -1, np.float32)
    function = launch(variable_length, (3,), out, x, offsets, 7, True, 4)
    assert out.tolist() == [3.0, -1.0, x[3:].sum()]
    assert len(ops(function, If)) == 2
    out = np.full(2, -1, np.float32)
    launch(variable_length, (2,), out, x, None, 7, False, 4)
    assert out.tolist() == [x[:7].sum(), x[7:14].sum()]


def test_an_argument_of_one_changes_nothing() -> None:
    """Strides of 1 become constants: same kernel, same result."""
    x = np.random.default_rng(4).standard_normal((4, 8), np.float32)
    for stride in (8, ConstantSpec(1)):
        out = np.zeros((4, 8), np.float32)
        launch(softmax, (4,), out, x, stride, 8, 8)
    pointer = PointerSpec(tl.float32)
    assert len(ir(softmax, pointer, pointer, ConstantSpec(1), I32, 8).params) == 3
    assert len(ir(layer_norm, *[pointer] * 4, None, I32, F32, 8, False).params) == 6
