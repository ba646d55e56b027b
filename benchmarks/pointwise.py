"""The pointwise cases: a sum of two arrays, and the chain (exp(x) + y) * z."""

from __future__ import annotations

import numpy as np

from .case import Case, Output, Setup, add_compiled, launcher, make_arrays
from .specs import Spec

BLOCK = 1024


def add(spec: Spec, setup: Setup) -> Case:
    arrays = make_arrays(setup)
    (n,) = spec.shape
    x, y = arrays.normal((n,), spec.dtype), arrays.normal((n,), spec.dtype)
    out = arrays.empty((n,), spec.dtype)
    exact = x.exact + y.exact
    case = Case(
        spec,
        launcher("add", (-(-n // BLOCK),), x, y, out, n, BLOCK=BLOCK),
        [Output(out, exact, 2.0**-24 * 1.01, exact)],
        3.0 * out.numpy.nbytes,
        "B",
    )
    if setup.torch is not None:
        torch = setup.torch
        case.add("torch", lambda: torch.add(x.torch, y.torch, out=out.torch))
    if setup.numpy(spec):
        case.add("NumPy", lambda: np.add(x.numpy, y.numpy, out=out.numpy))
    if setup.numba(spec):
        from . import numba_peers

        loop = numba_peers.build("add", setup.threads)
        case.add("numba", lambda: loop(x.numpy, y.numpy, out.numpy))
    add_compiled(case, setup, lambda x, y, out: out.copy_(x + y), x, y, out)
    return case


def chain(spec: Spec, setup: Setup) -> Case:
    arrays = make_arrays(setup)
    (n,) = spec.shape
    x, y, z = (arrays.normal((n,), spec.dtype) for _ in range(3))
    out = arrays.empty((n,), spec.dtype)
    grown = np.exp(x.exact)
    exact, scale = (grown + y.exact) * z.exact, (grown + np.abs(y.exact)) * np.abs(z.exact)
    case = Case(
        spec,
        launcher("chain", (-(-n // BLOCK),), x, y, z, out, n, BLOCK=BLOCK),
        [Output(out, exact, 2.0**-22, scale)],
        4.0 * out.numpy.nbytes,
        "B",
    )
    if setup.torch is not None:
        torch = setup.torch

        def eager() -> None:
            torch.exp(x.torch, out=out.torch)
            torch.add(out.torch, y.torch, out=out.torch)
            torch.mul(out.torch, z.torch, out=out.torch)

        case.add("torch", eager)
    if setup.numpy(spec):

        def calls() -> None:
            np.exp(x.numpy, out=out.numpy)
            np.add(out.numpy, y.numpy, out=out.numpy)
            np.multiply(out.numpy, z.numpy, out=out.numpy)

        case.add("NumPy", calls)
    if setup.numba(spec):
        from . import numba_peers

        loop = numba_peers.build("chain", setup.threads)
        case.add("numba", lambda: loop(x.numpy, y.numpy, z.numpy, out.numpy))
    add_compiled(case, setup, lambda x, y, z, out: out.copy_((x.exp() + y) * z), x, y, z, out)
    return case


BUILDERS = {"add": add, "chain": chain}
