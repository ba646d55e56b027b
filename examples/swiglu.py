"""SwiGLU, ``a * sigmoid(a) * b``, and its gradients. Argument: the length (default 1000003)."""

import sys

import numpy as np

import tritium
import tritium.language as tl


@tritium.jit
def forward_kernel(out_ptr, a_ptr, b_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    a = tl.load(a_ptr + offs, mask=mask)
    b = tl.load(b_ptr + offs, mask=mask)
    tl.store(out_ptr + offs, a * tl.sigmoid(a) * b, mask=mask)


@tritium.jit
def backward_kernel(da_ptr, db_ptr, dout_ptr, a_ptr, b_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    a = tl.load(a_ptr + offs, mask=mask)
    b = tl.load(b_ptr + offs, mask=mask)
    dout = tl.load(dout_ptr + offs, mask=mask)
    gate = tl.sigmoid(a)
    silu = a * gate
    tl.store(da_ptr + offs, dout * b * (gate + silu * (1.0 - gate)), mask=mask)
    tl.store(db_ptr + offs, dout * silu, mask=mask)


def forward(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Of two float32 arrays of one shape."""
    out = np.empty_like(a)
    forward_kernel[(tritium.cdiv(a.size, 1024),)](out, a, b, a.size, BLOCK_SIZE=1024)
    return out


def backward(dout: np.ndarray, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The gradients of ``a`` and ``b``."""
    da, db = np.empty_like(a), np.empty_like(b)
    backward_kernel[(tritium.cdiv(a.size, 1024),)](da, db, dout, a, b, a.size, BLOCK_SIZE=1024)
    return da, db


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_003
    a, b, dout = np.random.default_rng(0).standard_normal((3, n), dtype=np.float32)
    got = forward(a, b), *backward(dout, a, b)
    wide = a.astype(np.float64)
    gate = 1 / (1 + np.exp(-wide))
    silu = wide * gate
    want = silu * b, dout * b * (gate + silu * (1 - gate)), dout * silu
    error = max(np.abs(g - w).max(initial=0) for g, w in zip(got, want))
    assert error < 1e-5, error
    print("ok", n, "largest error", f"{error:.1e}")


if __name__ == "__main__":
    main()
