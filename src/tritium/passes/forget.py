"""Hints that a code generator makes no use of: they go, so that they stand in no other pass's way.

Before::

    func @f(%p: *i32, %n: i32) ({
      %zero = create.constant {value = 0, dtype = i32} : i32
      %sure = compare.gt %n, %zero : i1
      hints.assume %sure
      %even = hints.promise %n {multiple = (2,)} : i32
      memory.store %p, %even, _
      control.return
    })

After::

    func @f(%p: *i32, %n: i32) ({
      %zero = create.constant {value = 0, dtype = i32} : i32
      %sure = compare.gt %n, %zero : i1
      memory.store %p, %n, _
      control.return
    })
"""

from __future__ import annotations

from tritium.ir import Block, Function
from tritium.ops.hints import Assume, Promise

from .pipeline import NoOptions, register_pass
from .structure import detach, set_ops


@register_pass("forget")
def forget(function: Function, options: NoOptions) -> bool:
    """Drop all hints; returns whether there were any."""
    return _block(function.body.block)


def _block(block: Block) -> bool:
    kept = []
    changed = False
    for op in block.ops:
        for region in op.regions:
            changed |= _block(region.block)
        if isinstance(op, Promise):
            op.result.replace_all_uses_with(op.x)
        if isinstance(op, (Assume, Promise)):
            detach(op)
            changed = True
        else:
            kept.append(op)
    set_ops(block, kept)
    return changed
