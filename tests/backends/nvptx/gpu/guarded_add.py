"""Adds tensors on the GPU that begin at several addresses; nothing around the output may change.

Arguments: lengths. Prints ``ok LENGTH`` for each.
"""

from __future__ import annotations

import sys

import torch

import tritium
import tritium.language as tl

ROOM = 64
STARTS = (0, 1, 4, 7)


@tritium.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    y = tl.load(y_ptr + offs, mask=mask)
    tl.store(out_ptr + offs, x + y, mask=mask)


def check(n: int, start: int, device: str) -> None:
    x, y, held = (torch.rand(n + ROOM, device=device) for _ in range(3))
    want = held.clone()
    want[start : start + n] = x[start : start + n] + y[:n]
    out = held[start : start + n]
    add_kernel[(tritium.cdiv(n, 1024),)](x[start:], y, out, n, BLOCK_SIZE=1024)
    assert torch.equal(held, want), (n, start)


if __name__ == "__main__":
    for given in sys.argv[1:]:
        for each in STARTS:
            check(int(given), each, "cuda")
        print("ok", given)
