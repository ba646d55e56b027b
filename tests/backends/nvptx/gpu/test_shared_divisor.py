"""Quotients of a tile by one number, whose reciprocal is taken once, on a device."""

from __future__ import annotations

import numpy as np
import pytest

import tritium
import tritium.language as tl
from tritium.ir.dtypes import float32
from tritium.ops.arith import Div
from tritium.ops.spec import Ulp, agreement_of

DIVISORS = (3.0, -7.0, 1e-3, 1.1754944e-38, 1e-40, 1.5e38, -3.4e38, 1.0000001, 0.99999994, 6e-39)
COUNT = 1 << 20


@tritium.jit
def divide(x_ptr, y_ptr, out_ptr, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs) / tl.load(y_ptr))


@pytest.mark.gpu
@pytest.mark.parametrize("divisor", DIVISORS)
def test_the_ceiling_holds(divisor: float) -> None:
    torch = pytest.importorskip("torch")
    promised = agreement_of(Div, "nvptx", float32)
    assert isinstance(promised, Ulp)
    bits = np.random.default_rng(0).integers(0, 1 << 32, COUNT, np.uint32)
    x = bits.view(np.float32)
    y = np.float32(divisor)
    given = torch.from_numpy(x.copy()).cuda()
    out = torch.empty_like(given)
    divide[(COUNT // 1024,)](given, torch.full((1,), float(y), device="cuda"), out, BLOCK=1024)
    got = out.cpu().numpy()
    with np.errstate(all="ignore"):
        exact = x.astype(np.float64) / np.float64(y)
        rounded = exact.astype(np.float32)
    finite = np.isfinite(x) & np.isfinite(rounded) & np.isfinite(got)
    error = np.abs(got[finite].astype(np.float64) - exact[finite])
    unit = np.spacing(np.abs(rounded[finite])).astype(np.float64)
    assert (error / unit).max() <= promised.count
    odd = ~finite
    same = (got[odd] == rounded[odd]) | (np.isnan(got[odd]) & np.isnan(rounded[odd]))
    near = np.abs(exact[odd]) >= np.float64(np.finfo(np.float32).max) * (1 - 3e-7)
    assert (same | near).all()
