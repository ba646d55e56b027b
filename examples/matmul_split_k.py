"""A product of matrices whose inner extent is shared by several programs, added up with atomics.

Arguments: M, N and K (default 96 80 5000).
"""

import sys

import numpy as np

import tritium
import tritium.language as tl


@tritium.jit
def split_k_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    SPLIT: tl.constexpr,
):
    rm = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(tl.program_id(2) * BLOCK_K, K, SPLIT * BLOCK_K):
        rk = start + tl.arange(0, BLOCK_K)
        a_mask = (rm[:, None] < M) & (rk[None, :] < K)
        b_mask = (rk[:, None] < K) & (rn[None, :] < N)
        a = tl.load(a_ptr + rm[:, None] * K + rk[None, :], mask=a_mask, other=0.0)
        b = tl.load(b_ptr + rk[:, None] * N + rn[None, :], mask=b_mask, other=0.0)
        acc = tl.dot(a, b, acc)
    c_ptrs = c_ptr + rm[:, None] * N + rn[None, :]
    tl.atomic_add(c_ptrs, acc, mask=(rm[:, None] < M) & (rn[None, :] < N), sem="relaxed")


def matmul(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """``a @ b`` of two contiguous float32 matrices; the order of some additions is open."""
    (M, K), N = a.shape, b.shape[1]
    c = np.zeros((M, N), np.float32)
    grid = (tritium.cdiv(M, 64), tritium.cdiv(N, 64), 8)
    split_k_kernel[grid](a, b, c, M, N, K, BLOCK_M=64, BLOCK_N=64, BLOCK_K=64, SPLIT=8)
    return c


def main() -> None:
    M, N, K = (int(v) for v in sys.argv[1:4]) if len(sys.argv) > 3 else (96, 80, 5000)
    random = np.random.default_rng(0)
    a = random.standard_normal((M, K), dtype=np.float32)
    b = random.standard_normal((K, N), dtype=np.float32)
    exact = a.astype(np.float64) @ b
    error = np.linalg.norm(matmul(a, b) - exact) / np.linalg.norm(exact)
    assert error < 2e-6, error
    print("ok", M, N, K, "relative error", f"{error:.1e}")


if __name__ == "__main__":
    main()
