"""Common subexpressions: of equal pure operations only the first stays.

An operation is replaced by an equal one that comes before it in the same block or in a block
around it. Equal means the same class, operands and attributes. Loads are never merged: memory may
change in between. Operations with regions stay.

Before::

    func @f(%p: *i32, %c: i1) ({
      %a = program.id {axis = 0} : i32
      %b = program.id {axis = 0} : i32
      %sum = arith.add %a, %b : i32
      control.if %c ({
        %again = arith.add %b, %a : i32
        memory.store %p, %again, _
        control.yield []
      }, {
        control.yield []
      })
      memory.store %p, %sum, _
      control.return
    })

After::

    func @f(%p: *i32, %c: i1) ({
      %a = program.id {axis = 0} : i32
      %sum = arith.add %a, %a : i32
      control.if %c ({
        memory.store %p, %sum, _
        control.yield []
      }, {
        control.yield []
      })
      memory.store %p, %sum, _
      control.return
    })
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from tritium.ir import PURE, Block, Function, Op, attribute_text

from .pipeline import NoOptions, register_pass
from .structure import detach, set_ops


@register_pass("cse")
def cse(function: Function, options: NoOptions) -> bool:
    """Replace repeated operations; returns whether there were any."""
    return _merge(function.body.block, {})


def _merge(block: Block, known: dict[Hashable, Op]) -> bool:
    """``known`` holds what was computed before, in this block or those around it."""
    changed = False
    kept: list[Op] = []
    added: list[Hashable] = []
    for op in block.ops:
        for region in op.regions:
            changed |= _merge(region.block, known)
        key = _key(op)
        first = known.get(key) if key is not None else None
        if first is None:
            kept.append(op)
            if key is not None:
                known[key] = op
                added.append(key)
            continue
        changed = True
        for old, new in zip(op.results, first.results):
            new.name = new.name or old.name
            old.replace_all_uses_with(new)
        detach(op)
    for key in added:
        del known[key]
    set_ops(block, kept)
    return changed


def _key(op: Op) -> Hashable | None:
    """What equal operations have in common; None for one that can't be merged."""
    if op.effects is not PURE or op.terminator or op.regions:
        return None
    attributes = tuple(map(_attribute_key, op.attributes.values()))
    return (type(op), tuple(op.operands), op.bounds, attributes)


def _attribute_key(value: Any) -> Hashable:
    # 0.0 equals -0.0, and True equals 1: their texts differ.
    return attribute_text(value) if isinstance(value, (float, tuple)) else (type(value), value)
