"""Non-temporal stores: outputs that are written once and are larger than the cache keeps.

They skip the read of each line before it is written: 1.3 to 1.4 times faster from memory, and much
slower when the lines would have stayed in cache. So an output streams only where the grid writes
more than half of the last level cache to it, and where whole aligned vectors do.
"""

from __future__ import annotations

from tritium.ir.core import Function, Value
from tritium.ops import atomic, memory
from tritium.passes.origins import root


def write_only(function: Function) -> set[Value]:
    """Parameters that the kernel stores through and never loads through.

    Empty where a load's pointer has no known parameter, and where there are atomic operations: the
    order of what bypasses the cache is not theirs.
    """
    read: set[Value | None] = set()
    written: set[Value | None] = set()
    for op in function.walk():
        if isinstance(op, atomic.Atomic):
            return set()
        if isinstance(op, memory.Load):
            read.add(root(op.pointer))
        elif isinstance(op, memory.Store):
            written.add(root(op.pointer))
    if None in read:
        return set()
    return {value for value in written - read if value is not None}
