"""Attention and its gradients without the matrix of scores in memory, causal or not.

Arguments: heads, tokens, dimensions of a head, and 1 for causal (default 4 300 64 1).
"""

import sys

import numpy as np

import tritium
import tritium.language as tl

LOG2_E = tl.constexpr(1.4426950408889634)


@tritium.jit
def forward_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    lse_ptr,
    tokens,
    scale,
    CAUSAL: tl.constexpr,
    D: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """``BLOCK_M`` queries of a head; ``scale`` holds a factor log2(e), so powers are of 2."""
    first = tl.program_id(0) * BLOCK_M
    head = tl.program_id(1).to(tl.int64) * tokens
    rows = first + tl.arange(0, BLOCK_M)
    dims = tl.arange(0, D)
    row_place = (head + rows[:, None]) * D + dims[None, :]
    row_mask = rows[:, None] < tokens
    q = tl.load(q_ptr + row_place, mask=row_mask, other=0.0)
    largest = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    end = min(tokens, first + BLOCK_M) if CAUSAL else tokens
    for start in range(0, end, BLOCK_N):
        keys = start + tl.arange(0, BLOCK_N)
        key_place = (head + keys[:, None]) * D + dims[None, :]
        key_mask = keys[:, None] < tokens
        k = tl.load(k_ptr + key_place, mask=key_mask, other=0.0)
        keep = keys[None, :] < tokens
        if CAUSAL:
            keep = keep & (rows[:, None] >= keys[None, :])
        scores = tl.where(keep, tl.dot(q, tl.trans(k)) * scale, -float("inf"))
        bound = tl.maximum(largest, tl.max(scores, axis=1))
        powers = tl.exp2(scores - bound[:, None])
        shrink = tl.exp2(largest - bound)
        total = total * shrink + tl.sum(powers, axis=1)
        v = tl.load(v_ptr + key_place, mask=key_mask, other=0.0)
        acc = tl.dot(powers.to(v.dtype), v, acc * shrink[:, None])
        largest = bound
    out = acc / total[:, None]
    tl.store(out_ptr + row_place, out.to(out_ptr.dtype.element_ty), mask=row_mask)
    tl.store(lse_ptr + head + rows, largest + tl.log2(total), mask=rows < tokens)


@tritium.jit
def backward_q_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    dout_ptr,
    lse_ptr,
    delta_ptr,
    dq_ptr,
    tokens,
    scale,
    CAUSAL: tl.constexpr,
    D: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """The gradient of ``BLOCK_M`` queries, and the sums ``delta`` that the other kernel needs."""
    first = tl.program_id(0) * BLOCK_M
    head = tl.program_id(1).to(tl.int64) * tokens
    rows = first + tl.arange(0, BLOCK_M)
    dims = tl.arange(0, D)
    row_place = (head + rows[:, None]) * D + dims[None, :]
    row_mask = rows[:, None] < tokens
    q = tl.load(q_ptr + row_place, mask=row_mask, other=0.0)
    out = tl.load(out_ptr + row_place, mask=row_mask, other=0.0)
    dout = tl.load(dout_ptr + row_place, mask=row_mask, other=0.0)
    lse = tl.load(lse_ptr + head + rows, mask=rows < tokens, other=0.0)
    delta = tl.sum(out.to(tl.float32) * dout.to(tl.float32), axis=1)
    tl.store(delta_ptr + head + rows, delta, mask=rows < tokens)
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    end = min(tokens, first + BLOCK_M) if CAUSAL else tokens
    for start in range(0, end, BLOCK_N):
        keys = start + tl.arange(0, BLOCK_N)
        key_place = (head + keys[:, None]) * D + dims[None, :]
        key_mask = keys[:, None] < tokens
        k = tl.load(k_ptr + key_place, mask=key_mask, other=0.0)
        v = tl.load(v_ptr + key_place, mask=key_mask, other=0.0)
        keep = keys[None, :] < tokens
        if CAUSAL:
            keep = keep & (rows[:, None] >= keys[None, :])
        scores = tl.dot(q, tl.trans(k)) * scale
        powers = tl.where(keep, tl.exp2(scores - lse[:, None]), 0.0)
        dscores = powers * (tl.dot(dout, tl.trans(v)) - delta[:, None])
        acc = tl.dot(dscores.to(k.dtype), k, acc)
    dq = acc * (scale / LOG2_E)
    tl.store(dq_ptr + row_place, dq.to(dq_ptr.dtype.element_ty), mask=row_mask)


@tritium.jit
def backward_kv_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    dout_ptr,
    lse_ptr,
    delta_ptr,
    dk_ptr,
    dv_ptr,
    tokens,
    scale,
    CAUSAL: tl.constexpr,
    D: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """The gradients of ``BLOCK_N`` keys and values."""
    first = tl.program_id(0) * BLOCK_N
    head = tl.program_id(1).to(tl.int64) * tokens
    keys = first + tl.arange(0, BLOCK_N)
    dims = tl.arange(0, D)
    key_place = (head + keys[:, None]) * D + dims[None, :]
    key_mask = keys[:, None] < tokens
    k = tl.load(k_ptr + key_place, mask=key_mask, other=0.0)
    v = tl.load(v_ptr + key_place, mask=key_mask, other=0.0)
    dk = tl.zeros((BLOCK_N, D), tl.float32)
    dv = tl.zeros((BLOCK_N, D), tl.float32)
    begin = first // BLOCK_M * BLOCK_M if CAUSAL else 0
    for start in range(begin, tokens, BLOCK_M):
        rows = start + tl.arange(0, BLOCK_M)
        row_place = (head + rows[:, None]) * D + dims[None, :]
        row_mask = rows[:, None] < tokens
        q = tl.load(q_ptr + row_place, mask=row_mask, other=0.0)
        dout = tl.load(dout_ptr + row_place, mask=row_mask, other=0.0)
        lse = tl.load(lse_ptr + head + rows, mask=rows < tokens, other=0.0)
        delta = tl.load(delta_ptr + head + rows, mask=rows < tokens, other=0.0)
        keep = row_mask & (keys[None, :] < tokens)
        if CAUSAL:
            keep = keep & (rows[:, None] >= keys[None, :])
        scores = tl.dot(q, tl.trans(k)) * scale
        powers = tl.where(keep, tl.exp2(scores - lse[:, None]), 0.0)
        dv = tl.dot(tl.trans(powers.to(dout.dtype)), dout, dv)
        dscores = powers * (tl.dot(dout, tl.trans(v)) - delta[:, None])
        dk = tl.dot(tl.trans(dscores.to(q.dtype)), q, dk)
    dk *= scale / LOG2_E
    tl.store(dk_ptr + key_place, dk.to(dk_ptr.dtype.element_ty), mask=key_mask)
    tl.store(dv_ptr + key_place, dv.to(dv_ptr.dtype.element_ty), mask=key_mask)


BLOCKS = {"BLOCK_M": 64, "BLOCK_N": 64}


def forward(q, k, v, causal):
    """The result for arrays [heads, tokens, dimensions], and log2 of the sums of exponentials."""
    heads, tokens, D = q.shape
    out, lse = np.empty_like(q), np.empty((heads, tokens), np.float32)
    grid = (tritium.cdiv(tokens, BLOCKS["BLOCK_M"]), heads)
    rest = (tokens, D**-0.5 * LOG2_E.value)
    forward_kernel[grid](q, k, v, out, lse, *rest, CAUSAL=causal, D=D, **BLOCKS)
    return out, lse


def backward(q, k, v, out, dout, lse, causal):
    """The gradients of q, k and v."""
    heads, tokens, D = q.shape
    dq, dk, dv = np.empty_like(q), np.empty_like(k), np.empty_like(v)
    delta = np.empty_like(lse)
    rest = (tokens, D**-0.5 * LOG2_E.value)
    options = {"CAUSAL": causal, "D": D, **BLOCKS}
    queries = (tritium.cdiv(tokens, BLOCKS["BLOCK_M"]), heads)
    backward_q_kernel[queries](q, k, v, out, dout, lse, delta, dq, *rest, **options)
    keys = (tritium.cdiv(tokens, BLOCKS["BLOCK_N"]), heads)
    backward_kv_kernel[keys](q, k, v, dout, lse, delta, dk, dv, *rest, **options)
    return dq, dk, dv


def exact(q, k, v, dout, causal):
    """The result and the gradients in float64, from the whole matrix of weights."""
    q, k, v, dout = (x.astype(np.float64) for x in (q, k, v, dout))
    scale = q.shape[-1] ** -0.5
    scores = q @ k.swapaxes(1, 2) * scale
    if causal:
        scores = np.where(np.tri(q.shape[1], dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    out = weights @ v
    dweights = dout @ v.swapaxes(1, 2)
    dscores = weights * (dweights - (out * dout).sum(axis=-1, keepdims=True)) * scale
    return out, dscores @ k, dscores.swapaxes(1, 2) @ q, weights.swapaxes(1, 2) @ dout


def main() -> None:
    given = [int(v) for v in sys.argv[1:5]] if len(sys.argv) > 4 else [4, 300, 64, 1]
    *shape, causal = given
    random = np.random.default_rng(0)
    errors = []
    for dtype, limit in ((np.float32, 2e-6), (np.float16, 3e-3)):
        q, k, v, dout = random.standard_normal((4, *shape)).astype(dtype)
        out, lse = forward(q, k, v, bool(causal))
        got = out, *backward(q, k, v, out, dout, lse, bool(causal))
        want = exact(q, k, v, dout, bool(causal))
        error = max(np.abs(g - w).max() / max(1, np.abs(w).max()) for g, w in zip(got, want))
        assert error < limit, (dtype, error)
        errors.append(f"{error:.1e}")
    print("ok", *given, "largest errors in float32 and float16", *errors)


if __name__ == "__main__":
    main()
