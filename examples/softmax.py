"""Softmax of each row. Arguments: rows and columns (default 1823 781)."""

import sys

import numpy as np

import tritium
import tritium.language as tl


@tritium.jit
def softmax_kernel(out_ptr, x_ptr, out_stride, x_stride, columns, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK_SIZE)
    mask = offs < columns
    # Beyond the row: -inf, whose exponential adds nothing.
    x = tl.load(x_ptr + row * x_stride + offs, mask=mask, other=-float("inf"))
    powers = tl.exp(x - tl.max(x, axis=0))
    result = powers / tl.sum(powers, axis=0)
    tl.store(out_ptr + row * out_stride + offs, result, mask=mask)


def softmax(x: np.ndarray) -> np.ndarray:
    """Softmax along the last axis of a two-dimensional float32 array whose rows are contiguous."""
    rows, columns = x.shape
    out = np.empty(x.shape, np.float32)
    strides = (out.strides[0] // 4, x.strides[0] // 4)
    block = tritium.next_power_of_2(columns)
    softmax_kernel[(rows,)](out, x, *strides, columns, BLOCK_SIZE=block)
    return out


def main() -> None:
    rows, columns = (int(v) for v in sys.argv[1:3]) if len(sys.argv) > 2 else (1823, 781)
    x = np.random.default_rng(0).standard_normal((rows, columns), dtype=np.float32)
    exact = np.exp(x - x.max(axis=1, keepdims=True), dtype=np.float64)
    exact /= exact.sum(axis=1, keepdims=True)
    error = np.abs(softmax(x) - exact).max()
    assert error < 1e-6, error
    print("ok", rows, columns, "largest error", f"{error:.1e}")


if __name__ == "__main__":
    main()
