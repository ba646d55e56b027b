"""Vector addition. Argument: the length (default 98432)."""

import sys

import numpy as np

import tritium
import tritium.language as tl


@tritium.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(0)  # which program am I
    offs = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)  # the indices of my tile
    mask = offs < n  # the tail of the last tile
    x = tl.load(x_ptr + offs, mask=mask)
    y = tl.load(y_ptr + offs, mask=mask)
    tl.store(out_ptr + offs, x + y, mask=mask)


def add(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """``x + y``, one-dimensional arrays of one dtype."""
    out = np.empty_like(x)
    n = x.size
    add_kernel[(tritium.cdiv(n, 1024),)](x, y, out, n, BLOCK_SIZE=1024)
    return out


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 98_432
    random = np.random.default_rng(0)
    x = random.random(n, dtype=np.float32)
    y = random.random(n, dtype=np.float32)
    assert np.array_equal(add(x, y), x + y)
    print("ok", n)


if __name__ == "__main__":
    main()
