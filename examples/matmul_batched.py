"""Products of a batch of matrices: a program makes a tile of one of them, in blocks of any extent.

Arguments: the batch, M, N and K (default 12 160 144 80).
"""

import sys

import numpy as np

import tritium
import tritium.language as tl


@tritium.jit
def batched_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    item = tl.program_id(2).to(tl.int64)
    rm = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    rk = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + item * M * K + rm[:, None] * K + rk[None, :]
    b_ptrs = b_ptr + item * K * N + rk[:, None] * N + rn[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        a = tl.load(a_ptrs, mask=(rm[:, None] < M) & (k + rk[None, :] < K), other=0.0)
        b = tl.load(b_ptrs, mask=(k + rk[:, None] < K) & (rn[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * N
    c_ptrs = c_ptr + item * M * N + rm[:, None] * N + rn[None, :]
    tl.store(c_ptrs, acc, mask=(rm[:, None] < M) & (rn[None, :] < N))


def matmul(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """``a @ b`` of contiguous float32 arrays [batch, M, K] and [batch, K, N]."""
    (batch, M, K), N = a.shape, b.shape[2]
    c = np.empty((batch, M, N), np.float32)
    grid = (tritium.cdiv(M, 80), tritium.cdiv(N, 48), batch)
    batched_kernel[grid](a, b, c, M, N, K, BLOCK_M=80, BLOCK_N=48, BLOCK_K=40)
    return c


def main() -> None:
    given = [int(v) for v in sys.argv[1:5]] if len(sys.argv) > 4 else [12, 160, 144, 80]
    batch, M, N, K = given
    random = np.random.default_rng(0)
    a = random.standard_normal((batch, M, K), dtype=np.float32)
    b = random.standard_normal((batch, K, N), dtype=np.float32)
    exact = a.astype(np.float64) @ b
    error = np.linalg.norm(matmul(a, b) - exact) / np.linalg.norm(exact)
    assert error < 1e-6, error
    print("ok", *given, "relative error", f"{error:.1e}")


if __name__ == "__main__":
    main()
