"""``tl.math``: the elementwise functions under the name they also have in Triton."""

from __future__ import annotations

from tritium.ops.arith import abs, div_rn, fdiv, fma, umulhi
from tritium.ops.math import (
    ceil,
    cos,
    erf,
    exp,
    exp2,
    floor,
    log,
    log2,
    rsqrt,
    sin,
    sqrt,
    sqrt_rn,
    tanh,
)

__all__ = [
    "abs",
    "ceil",
    "cos",
    "div_rn",
    "erf",
    "exp",
    "exp2",
    "fdiv",
    "floor",
    "fma",
    "log",
    "log2",
    "rsqrt",
    "sin",
    "sqrt",
    "sqrt_rn",
    "tanh",
    "umulhi",
]
