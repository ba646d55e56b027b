"""How many elements fall into each bin: counted by tile, added up with atomics.

Arguments: the length and the number of bins (default 1000003 100).
"""

import sys

import numpy as np

import tritium
import tritium.language as tl


@tritium.jit
def histogram_kernel(counts_ptr, x_ptr, n, BINS: tl.constexpr, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask, other=0.0)
    # Numbers from 0 to 1, 1 excluded.
    bins = (x * BINS).to(tl.int32)
    counts = tl.histogram(bins, BINS, mask)
    tl.atomic_add(counts_ptr + tl.arange(0, BINS), counts, sem="relaxed")


def histogram(x: np.ndarray, bins: int) -> np.ndarray:
    """The counts of a float32 array's elements, from [0, 1), in bins of equal width; int32."""
    counts = np.zeros(bins, np.int32)
    grid = (tritium.cdiv(x.size, 8192),)
    histogram_kernel[grid](counts, x, x.size, BINS=bins, BLOCK_SIZE=8192)
    return counts


def main() -> None:
    n, bins = (int(v) for v in sys.argv[1:3]) if len(sys.argv) > 2 else (1_000_003, 100)
    x = np.random.default_rng(0).random(n, dtype=np.float32)
    want = np.bincount((x * np.float32(bins)).astype(np.int32), minlength=bins)
    assert np.array_equal(histogram(x, bins), want)
    print("ok", n, bins)


if __name__ == "__main__":
    main()
