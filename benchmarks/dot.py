"""The matrix product, a kernel with tiles of 64x64x32, beside torch's and NumPy's BLAS."""

from __future__ import annotations

import numpy as np

from .case import Case, Output, Setup, launcher, make_arrays
from .specs import Spec

TILE, TILE_K = 64, 32


def dot(spec: Spec, setup: Setup) -> Case:
    arrays = make_arrays(setup)
    n = spec.shape[0]
    a, b = arrays.normal((n, n), spec.dtype), arrays.normal((n, n), spec.dtype)
    c = arrays.empty((n, n), spec.dtype)
    exact, scale = a.exact @ b.exact, np.abs(a.exact) @ np.abs(b.exact)
    side = launcher(
        "dot", (-(-n // TILE), -(-n // TILE)), a, b, c, n, n, n, n, 1, n, 1, n, 1,
        BLOCK_M=TILE, BLOCK_N=TILE, BLOCK_K=TILE_K,
    )  # fmt: skip
    # Higham, Accuracy and Stability of Numerical Algorithms (2002), (3.5): n u |a| |b|.
    case = Case(spec, side, [Output(c, exact, n * 2.0**-24, scale)], 2.0 * n**3, "FLOP")
    if setup.torch is not None:
        torch = setup.torch
        case.add("torch", lambda: torch.mm(a.torch, b.torch, out=c.torch))
    if setup.numpy(spec):
        case.add("NumPy", lambda: np.matmul(a.numpy, b.numpy, out=c.numpy))
    return case


BUILDERS = {"dot": dot}
