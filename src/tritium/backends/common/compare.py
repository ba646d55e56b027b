"""Comparisons. Floats compare ordered, but for ``ne``, which NaN makes true."""

from __future__ import annotations

from tritium.backends.emit import V
from tritium.ir.dtypes import DType
from tritium.ops import compare

from .cast import convert
from .rules import Lowering, lower


@lower(compare.Eq, compare.Ne, compare.Lt, compare.Le, compare.Gt, compare.Ge)
def _(lowering: Lowering, op: compare.Comparison, x: V, y: V) -> V:
    dtype = op.x.scalar
    assert isinstance(dtype, DType)
    relation = op.verb
    if dtype.is_floating():
        x, y = (convert(lowering, each, dtype, dtype.compute) for each in (x, y))
        return lowering.b.fcmp("une" if relation == "ne" else f"o{relation}", x, y)
    if relation not in ("eq", "ne"):
        relation = ("s" if dtype.is_int_signed() else "u") + relation
    return lowering.b.icmp(relation, x, y)
