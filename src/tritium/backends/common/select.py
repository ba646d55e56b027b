"""Choice between two values."""

from __future__ import annotations

from tritium.backends.emit import V
from tritium.ops import select

from .rules import Lowering, lower


@lower(select.Where)
def _(lowering: Lowering, op: select.Where, condition: V, x: V, y: V) -> V:
    return lowering.b.select(condition, x, y)
