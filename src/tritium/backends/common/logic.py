"""Bits and shifts. Counts of the width and more are poison to LLVM: no lane reads such a result."""

from __future__ import annotations

from tritium.backends.emit import V, const, zero
from tritium.ops import logic

from .rules import Lowering, lower


@lower(logic.And)
def _(lowering: Lowering, op: logic.And, x: V, y: V) -> V:
    return lowering.b.and_(x, y)


@lower(logic.Or)
def _(lowering: Lowering, op: logic.Or, x: V, y: V) -> V:
    return lowering.b.or_(x, y)


@lower(logic.Xor)
def _(lowering: Lowering, op: logic.Xor, x: V, y: V) -> V:
    return lowering.b.xor(x, y)


@lower(logic.Not)
def _(lowering: Lowering, op: logic.Not, x: V) -> V:
    return lowering.b.not_(x)


def _fits(lowering: Lowering, count: V) -> V:
    """Whether a count, read as unsigned, is less than the width."""
    return lowering.b.icmp("ult", count, const(count.type, count.type.bits))


@lower(logic.Shl)
def _(lowering: Lowering, op: logic.Shl, x: V, y: V) -> V:
    b = lowering.b
    return b.select(_fits(lowering, y), b.shl(x, y), zero(x.type))


@lower(logic.Shr)
def _(lowering: Lowering, op: logic.Shr, x: V, y: V) -> V:
    b = lowering.b
    if op.x.scalar.is_int_signed():
        last = const(y.type, y.type.bits - 1)
        return b.ashr(x, b.select(_fits(lowering, y), y, last))
    return b.select(_fits(lowering, y), b.lshr(x, y), zero(x.type))
