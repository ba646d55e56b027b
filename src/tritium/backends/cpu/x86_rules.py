"""Lowering rules that x86 has better instructions for than the common ones."""

from __future__ import annotations

from tritium.backends.common.rules import Lowering, Rule, lower, rule_of
from tritium.backends.emit import V, const, i32, int_, undef
from tritium.ir.dtypes import float32, float64
from tritium.ops import arith

X86: dict[type, Rule] = {}
"""Rules tried before the common ones."""

_MAX, _MIN = 5, 4
"""Immediates of vrange: take the larger or smaller, with the sign of what was taken."""


@lower(arith.Maximum, arith.Minimum, table=X86)
def _(lowering: Lowering, op: arith.Extremum, x: V, y: V) -> V:
    """vrange: a NaN gives way to a number, and -0 counts as below +0, in one instruction."""
    scalar = op.x.scalar
    bits = 64 if scalar is float64 else 32
    fits = lowering.lanes * bits in (128, 256, 512)
    wide = lowering.target.has("avx512f", "avx512dq", "avx512vl")
    if op.propagate_nan or scalar not in (float32, float64) or not (fits and wide):
        return rule_of(op)(lowering, op, x, y)
    b = lowering.b
    size = lowering.lanes * bits
    name = f"x86.avx512.mask.range.{'pd' if bits == 64 else 'ps'}.{size}"
    every = const(int_(max(8, lowering.lanes)), -1)
    args = [x, y, const(i32, _MAX if op.larger else _MIN), undef(x.type), every]
    if size == 512:
        args.append(const(i32, 4))  # the rounding mode of the environment
    return b.intrinsic(name, args, x.type, (), pure=True)
