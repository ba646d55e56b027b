"""The running sum of an array in one pass: programs look back at what those before them have.

Decoupled look-back: D. Merrill and M. Garland, Single-pass Parallel Prefix Scan with Decoupled
Look-back, NVIDIA Technical Report NVR-2016-002. Argument: the length (default 1000003).
"""

import sys

import numpy as np

import tritium
import tritium.language as tl


@tritium.jit
def announce(word_ptr, flag, value):
    """Make ``value`` known, with what it is: 1 a block's own sum, 2 that of all up to it."""
    word = (tl.to_tensor(flag).to(tl.int64) << 32) | (value.to(tl.int64) & 0xFFFFFFFF)
    tl.atomic_xchg(word_ptr, word, sem="release")


@tritium.jit
def prefix_sum_kernel(out_ptr, x_ptr, words_ptr, n, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(0)
    offs = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offs, mask=offs < n, other=0)
    own = tl.sum(x, axis=0)
    before = own * 0
    if pid > 0:
        announce(words_ptr + pid, 1, own)
        other = pid - 1
        while other >= 0:
            word = tl.atomic_add(words_ptr + other, 0, sem="acquire")
            flag = word >> 32
            if flag != 0:  # otherwise that program isn't so far: ask again
                before += word.to(tl.int32)
                other = tl.where(flag == 2, -1, other - 1)
    announce(words_ptr + pid, 2, before + own)
    tl.store(out_ptr + offs, before + tl.cumsum(x, axis=0), mask=offs < n)


BLOCK_SIZE = 4096


def prefix_sum(x: np.ndarray) -> np.ndarray:
    """The inclusive running sum of a one-dimensional int32 array; it wraps."""
    out = np.empty_like(x)
    blocks = tritium.cdiv(x.size, BLOCK_SIZE)
    words = np.zeros(blocks, np.int64)
    prefix_sum_kernel[(blocks,)](out, x, words, x.size, BLOCK_SIZE=BLOCK_SIZE)
    return out


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_003
    x = np.random.default_rng(0).integers(-1000, 1000, n, np.int32)
    assert np.array_equal(prefix_sum(x), np.cumsum(x, dtype=np.int32))
    print("ok", n)


if __name__ == "__main__":
    main()
