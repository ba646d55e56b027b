"""Matrix products of any element type, whose programs walk the result in groups of rows.

Programs that run at about the same time so share operands in the L2 cache. Arguments: M, N and K
(default 512 384 320). float32, float16 and int8 need NumPy only; bfloat16 and both kinds of float8
are computed too where ml_dtypes is installed.
"""

import importlib
import importlib.util
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
    ACC: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr,
):
    pid = tl.program_id(0)
    rows = tl.cdiv(M, BLOCK_M)
    columns = tl.cdiv(N, BLOCK_N)
    # GROUP rows of blocks, column by column, then the next ones.
    first = pid // (GROUP * columns) * GROUP
    size = min(rows - first, GROUP)
    row = first + pid % (GROUP * columns) % size
    column = pid % (GROUP * columns) // size
    rm = row * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = column * BLOCK_N + tl.arange(0, BLOCK_N)
    rk = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + rm[:, None] * stride_am + rk[None, :] * stride_ak
    b_ptrs = b_ptr + rk[:, None] * stride_bk + rn[None, :] * stride_bn
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=ACC)
    for k in range(0, K, BLOCK_K):
        a = tl.load(a_ptrs, mask=(rm[:, None] < M) & (k + rk[None, :] < K), other=0)
        b = tl.load(b_ptrs, mask=(k + rk[:, None] < K) & (rn[None, :] < N), other=0)
        acc = tl.dot(a, b, acc, out_dtype=ACC)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    c_ptrs = c_ptr + rm[:, None] * stride_cm + rn[None, :] * stride_cn
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=(rm[:, None] < M) & (rn[None, :] < N))


def matmul(a: np.ndarray, b: np.ndarray, result: type) -> np.ndarray:
    """``a @ b`` of two matrices of one dtype, the sums in float32 or int32."""
    (M, K), N = a.shape, b.shape[1]
    c = np.empty((M, N), result)
    strides = [step // x.itemsize for x in (a, b, c) for step in x.strides]
    acc = tl.int32 if a.dtype == np.int8 else tl.float32

    def grid(meta):
        return (tritium.cdiv(M, meta["BLOCK_M"]) * tritium.cdiv(N, meta["BLOCK_N"]),)

    blocks = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 64, "GROUP": 4}
    matmul_kernel[grid](a, b, c, M, N, K, *strides, ACC=acc, **blocks)
    return c


def types() -> dict[str, tuple[type, type]]:
    """The types of the operands and of the result, by name."""
    known = {
        "float32": (np.float32, np.float32),
        "float16": (np.float16, np.float16),
        "int8": (np.int8, np.int32),
    }
    if importlib.util.find_spec("ml_dtypes") is not None:
        small = importlib.import_module("ml_dtypes")
        known["bfloat16"] = (small.bfloat16, small.bfloat16)
        known["float8_e4m3fn"] = (small.float8_e4m3fn, np.float32)
        known["float8_e5m2"] = (small.float8_e5m2, np.float32)
    return known


ROUNDING = {"float32": 1e-6, "float16": 1e-3, "bfloat16": 1e-2, "int8": 0}


def main() -> None:
    M, N, K = (int(v) for v in sys.argv[1:4]) if len(sys.argv) > 3 else (512, 384, 320)
    random = np.random.default_rng(0)
    for name, (operand, result) in types().items():
        if name == "int8":
            a = random.integers(-128, 128, (M, K), np.int8)
            b = random.integers(-128, 128, (K, N), np.int8)
        else:
            a = random.standard_normal((M, K)).astype(operand)
            b = random.standard_normal((K, N)).astype(operand)
        exact = a.astype(np.float64) @ b.astype(np.float64)
        error = np.linalg.norm(matmul(a, b, result).astype(np.float64) - exact)
        error /= np.linalg.norm(exact)
        assert error <= ROUNDING.get(name, 1e-6), (name, error)
    print("ok", M, N, K, *types())


if __name__ == "__main__":
    main()
