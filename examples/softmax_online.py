"""Softmax of rows of any length, in one pass for the maximum and the sum and one for the result.

Arguments: rows and columns (default 64 20011).
"""

import sys

import numpy as np

import tritium
import tritium.language as tl


@tritium.jit
def online_softmax_kernel(out_ptr, x_ptr, columns, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offs = tl.arange(0, BLOCK_SIZE)
    # Each lane keeps the largest element so far, and the sum of exponentials relative to that.
    largest = tl.full((BLOCK_SIZE,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_SIZE,), tl.float32)
    for start in range(0, columns, BLOCK_SIZE):
        mask = start + offs < columns
        x = tl.load(x_ptr + row * columns + start + offs, mask=mask, other=-float("inf"))
        bound = tl.maximum(largest, x)
        # Lanes that have seen no element yet are at -inf, of which the difference is NaN.
        shift = tl.where(bound == -float("inf"), 0.0, bound)
        total = total * tl.exp(largest - shift) + tl.exp(x - shift)
        largest = bound
    highest = tl.max(largest, axis=0)
    scale = 1.0 / tl.sum(total * tl.exp(largest - highest), axis=0)
    for start in range(0, columns, BLOCK_SIZE):
        mask = start + offs < columns
        x = tl.load(x_ptr + row * columns + start + offs, mask=mask)
        result = tl.exp(x - highest) * scale
        tl.store(out_ptr + row * columns + start + offs, result, mask=mask)


def softmax(x: np.ndarray) -> np.ndarray:
    """Softmax along the last axis of a contiguous two-dimensional float32 array."""
    rows, columns = x.shape
    out = np.empty_like(x)
    online_softmax_kernel[(rows,)](out, x, columns, BLOCK_SIZE=1024)
    return out


def main() -> None:
    rows, columns = (int(v) for v in sys.argv[1:3]) if len(sys.argv) > 2 else (64, 20011)
    x = np.random.default_rng(0).standard_normal((rows, columns), dtype=np.float32) * 10
    wide = x.astype(np.float64)
    exact = np.exp(wide - wide.max(axis=1, keepdims=True))
    exact /= exact.sum(axis=1, keepdims=True)
    error = np.abs(softmax(x) - exact).max()
    assert error < 1e-5, error
    print("ok", rows, columns, "largest error", f"{error:.1e}")


if __name__ == "__main__":
    main()
