"""Products of matrices of different shapes in one launch, found through a table of pointers.

A fixed number of programs shares all tiles of all products. Arguments: how many products and the
largest extent (default 8 200).
"""

import sys

import numpy as np

import tritium
import tritium.language as tl


@tritium.jit
def grouped_kernel(
    pointers_ptr,
    shapes_ptr,
    products,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    tile = tl.program_id(0)
    before = 0
    for product in range(products):
        M = tl.load(shapes_ptr + product * 3)
        N = tl.load(shapes_ptr + product * 3 + 1)
        K = tl.load(shapes_ptr + product * 3 + 2)
        columns = tl.cdiv(N, BLOCK_N)
        tiles = tl.cdiv(M, BLOCK_M) * columns
        # The tiles of this product that are this program's.
        while tile >= before and tile < before + tiles:
            a_ptr = tl.load(pointers_ptr + product * 3).to(tl.pointer_type(tl.float32))
            b_ptr = tl.load(pointers_ptr + product * 3 + 1).to(tl.pointer_type(tl.float32))
            c_ptr = tl.load(pointers_ptr + product * 3 + 2).to(tl.pointer_type(tl.float32))
            rm = (tile - before) // columns * BLOCK_M + tl.arange(0, BLOCK_M)
            rn = (tile - before) % columns * BLOCK_N + tl.arange(0, BLOCK_N)
            rk = tl.arange(0, BLOCK_K)
            acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
            for k in range(0, K, BLOCK_K):
                a = tl.load(
                    a_ptr + rm[:, None] * K + k + rk[None, :],
                    mask=(rm[:, None] < M) & (k + rk[None, :] < K),
                    other=0.0,
                )
                b = tl.load(
                    b_ptr + (k + rk[:, None]) * N + rn[None, :],
                    mask=(k + rk[:, None] < K) & (rn[None, :] < N),
                    other=0.0,
                )
                acc = tl.dot(a, b, acc)
            c_mask = (rm[:, None] < M) & (rn[None, :] < N)
            tl.store(c_ptr + rm[:, None] * N + rn[None, :], acc, mask=c_mask)
            tile += tl.num_programs(0)
        before += tiles


def matmuls(pairs: list[tuple[np.ndarray, np.ndarray]]) -> list[np.ndarray]:
    """``a @ b`` of each pair of contiguous float32 matrices."""
    results = [np.empty((a.shape[0], b.shape[1]), np.float32) for a, b in pairs]
    arrays = [(a, b, c) for (a, b), c in zip(pairs, results)]
    pointers = np.array([[x.ctypes.data for x in each] for each in arrays], np.int64)
    shapes = np.array([[a.shape[0], b.shape[1], a.shape[1]] for a, b in pairs], np.int32)
    grouped_kernel[(8,)](pointers, shapes, len(pairs), BLOCK_M=64, BLOCK_N=64, BLOCK_K=32)
    return results


def main() -> None:
    products, largest = (int(v) for v in sys.argv[1:3]) if len(sys.argv) > 2 else (8, 200)
    random = np.random.default_rng(0)
    shapes = random.integers(1, largest + 1, (products, 3))
    pairs = [
        (random.standard_normal((m, k)).astype("f4"), random.standard_normal((k, n)).astype("f4"))
        for m, n, k in shapes
    ]
    error = 0.0
    for (a, b), c in zip(pairs, matmuls(pairs)):
        exact = a.astype(np.float64) @ b
        error = max(error, np.linalg.norm(c - exact) / np.linalg.norm(exact))
    assert error < 1e-6, error
    print("ok", products, largest, "relative error", f"{error:.1e}")


if __name__ == "__main__":
    main()
