"""Dropout from a seed: the backward pass makes the mask again instead of reading it.

Arguments: the length and the probability (default 1000003 0.25).
"""

import sys

import numpy as np

import tritium
import tritium.language as tl


@tritium.jit
def dropout_kernel(out_ptr, x_ptr, n, p, seed, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    keep = tl.rand(seed, offs) > p
    tl.store(out_ptr + offs, tl.where(keep, x / (1.0 - p), 0.0), mask=mask)


def dropout(x: np.ndarray, p: float, seed: int) -> np.ndarray:
    """``x`` with about a share ``p`` of its elements 0 and the others over ``1 - p``; float32.

    Of an output's gradient it makes the input's.
    """
    out = np.empty_like(x)
    dropout_kernel[(tritium.cdiv(x.size, 1024),)](out, x, x.size, p, seed, BLOCK_SIZE=1024)
    return out


def philox(seed: int, n: int) -> np.ndarray:
    """The first word of Philox 4x32-10 for the offsets 0 to n - 1, in NumPy."""
    c0, c1, c2, c3 = np.arange(n, dtype=np.uint64), *np.zeros((3, n), np.uint64)
    k0, k1 = seed & 0xFFFFFFFF, seed >> 32
    for _ in range(10):
        a, b = c0 * np.uint64(0xD2511F53), c2 * np.uint64(0xCD9E8D57)
        low = np.uint64(0xFFFFFFFF)
        c0, c1 = (b >> np.uint64(32)) ^ c1 ^ np.uint64(k0), b & low
        c2, c3 = (a >> np.uint64(32)) ^ c3 ^ np.uint64(k1), a & low
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c0.astype(np.uint32)


def main() -> None:
    n, p = (int(sys.argv[1]), float(sys.argv[2])) if len(sys.argv) > 2 else (1_000_003, 0.25)
    x = np.random.default_rng(0).random(n, dtype=np.float32) + 1
    seed = 2**40 + 123
    out = dropout(x, p, seed)
    words = philox(seed, n).view(np.int32)
    keep = np.where(words < 0, ~words, words).astype(np.float32) * np.float32(4.6566127342e-10) > p
    assert np.array_equal(out != 0, keep)
    assert np.allclose(out, np.where(keep, x / (1 - p), 0), rtol=1e-6)
    # The gradient passes where the values did.
    assert np.array_equal(dropout(np.ones_like(x), p, seed) != 0, keep)
    print("ok", n, p, "kept", f"{keep.mean() if n else 1:.4f}")


if __name__ == "__main__":
    main()
