"""Operations that only rearrange: those that change nothing, and chains of them."""

from __future__ import annotations

from collections.abc import Sequence

from tritium.ir import Value
from tritium.ops.create import Splat
from tritium.ops.shape import Broadcast, ExpandDims, Reshape, Trans
from tritium.passes.structure import splatted

from .base import Rewrite, rule


@rule("same-shape", Broadcast, Reshape)
def _same_shape(op: Broadcast | Reshape, new: Rewrite) -> Sequence[Value] | None:
    """A change to the shape that the value has."""
    return [op.x] if op.x.shape == op.shape else None


@rule("same-order", Trans)
def _same_order(op: Trans, new: Rewrite) -> Sequence[Value] | None:
    """Axes that stay where they are."""
    return [op.x] if op.order == tuple(range(len(op.order))) else None


@rule("rearranged-splat", Broadcast, ExpandDims, Reshape, Trans)
def _rearranged_splat(
    op: Broadcast | ExpandDims | Reshape | Trans, new: Rewrite
) -> Sequence[Value] | None:
    """A rearranged splat, or a scalar under a shape: a splat of that shape, or the scalar."""
    scalar = splatted(op.x)
    if scalar is None:
        return None
    shape = op.result.shape
    return [new.emit(Splat, x=scalar, shape=shape) if shape else scalar]


@rule("broadcast-twice", Broadcast)
def _broadcast_twice(op: Broadcast, new: Rewrite) -> Sequence[Value] | None:
    maker = op.x.defining_op
    if not isinstance(maker, Broadcast):
        return None
    return [new.emit(Broadcast, x=maker.x, shape=op.shape)]


@rule("reshape-twice", Reshape)
def _reshape_twice(op: Reshape, new: Rewrite) -> Sequence[Value] | None:
    """A reshaped reshape or expansion: a reshape of the first value."""
    maker = op.x.defining_op
    if not isinstance(maker, (Reshape, ExpandDims)):
        return None
    return [new.emit(Reshape, x=maker.x, shape=op.shape)]


@rule("transpose-twice", Trans)
def _transpose_twice(op: Trans, new: Rewrite) -> Sequence[Value] | None:
    maker = op.x.defining_op
    if not isinstance(maker, Trans):
        return None
    return [new.emit(Trans, x=maker.x, order=tuple(maker.order[axis] for axis in op.order))]
