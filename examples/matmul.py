"""Matrix multiplication. Arguments: M, N and K (default 512 384 300)."""

import sys

import numpy as np

import tritium
import tritium.language as tl


@tritium.jit
def matmul_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    stride_am,
    stride_ak,
    stride_bk,
    stride_bn,
    stride_cm,
    stride_cn,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    rm = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    rk = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + rm[:, None] * stride_am + rk[None, :] * stride_ak
    b_ptrs = b_ptr + rk[:, None] * stride_bk + rn[None, :] * stride_bn
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        left = K - k * BLOCK_K
        a = tl.load(a_ptrs, mask=(rm[:, None] < M) & (rk[None, :] < left), other=0.0)
        b = tl.load(b_ptrs, mask=(rk[:, None] < left) & (rn[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    c_ptrs = c_ptr + rm[:, None] * stride_cm + rn[None, :] * stride_cn
    tl.store(c_ptrs, acc, mask=(rm[:, None] < M) & (rn[None, :] < N))


def matmul(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """``a @ b`` of two float32 matrices, transposed or strided as they come."""
    (M, K), N = a.shape, b.shape[1]
    c = np.empty((M, N), np.float32)
    strides = [step // 4 for array in (a, b, c) for step in array.strides]

    def grid(meta):
        return tritium.cdiv(M, meta["BLOCK_M"]), tritium.cdiv(N, meta["BLOCK_N"])

    matmul_kernel[grid](a, b, c, M, N, K, *strides, BLOCK_M=64, BLOCK_N=64, BLOCK_K=32)
    return c


def main() -> None:
    M, N, K = (int(v) for v in sys.argv[1:4]) if len(sys.argv) > 3 else (512, 384, 300)
    random = np.random.default_rng(0)
    a = random.standard_normal((M, K), dtype=np.float32)
    b = random.standard_normal((N, K), dtype=np.float32).T
    exact = a.astype(np.float64) @ b
    error = np.linalg.norm(matmul(a, b) - exact) / np.linalg.norm(exact)
    assert error < 1e-6, error
    print("ok", M, N, K, "relative error", f"{error:.1e}")


if __name__ == "__main__":
    main()
