"""Which of a kernel's stored tiles takes the most memory, and where it was made."""

from __future__ import annotations

from tritium.backends.compiled import Stored
from tritium.diagnostics import Loc
from tritium.ir.core import Block, Value
from tritium.ops import control

from .memory_map import Arena


def largest(arena: Arena) -> Stored | None:
    """The largest of the tiles that are stored when the most memory is in use; None without any."""
    if not arena.at_peak:
        return None
    value, size = max(arena.at_peak, key=lambda each: each[1])
    return Stored(str(value.type), size, _maker_loc(value))


def _maker_loc(value: Value) -> Loc | None:
    """Of the operation that made a tile; of what loops carry, the one that made their first."""
    owner = value.owner
    while isinstance(owner, (Block, control.For, control.While)):
        if isinstance(owner, Block):
            loop, place = owner.parent_op, owner.args.index(value)
            place -= isinstance(loop, control.For)
        else:
            loop, place = owner, owner.results.index(value)
        if not isinstance(loop, (control.For, control.While)) or place < 0:
            return None if loop is None else loop.loc
        value = loop.init[place]
        owner = value.owner
    return None if owner is None else owner.loc
