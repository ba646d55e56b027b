"""Operations element by element on tiles that are one scalar throughout: done once, on scalars."""

from __future__ import annotations

from collections.abc import Sequence

from tritium.ir import Op, Value
from tritium.ops.cast import Bitcast, Convert
from tritium.ops.create import Splat
from tritium.ops.elementwise import Elementwise
from tritium.ops.memory import Offset
from tritium.ops.select import Where
from tritium.passes.structure import splatted

from .base import Rewrite, rule


def _moves(op: Op) -> bool:
    """Integers, pointers and conversions: what addresses, masks and constants are made of.

    Other floats stay: they are work that a scalar unit doesn't do faster.
    """
    if isinstance(op, Convert):
        return True
    return not any(value.scalar.is_floating() for value in (*op.operands, *op.results))


@rule("splat-operands", Elementwise, Where, Convert, Bitcast, Offset)
def _splat_operands(op: Op, new: Rewrite) -> Sequence[Value] | None:
    """f(splat(a), splat(b)): splat(f(a, b))."""
    shape = op.result.shape
    if not shape or not _moves(op):
        return None
    scalars = [splatted(value) for value in op.operands]
    mapping = {tile: scalar for tile, scalar in zip(op.operands, scalars) if scalar is not None}
    if any(scalar is None for scalar in scalars):
        return None
    made = op.clone(mapping)
    made.make_results()
    new.made.append(made)
    return [new.emit(Splat, x=made.result, shape=shape)]
