"""The operations of a block that loads stay in front of, found by what they may write."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from heapq import merge

from tritium.ir.core import Block, Effects, Op, Value
from tritium.ops import atomic, memory
from tritium.passes.origins import root


def _is_writer(op: Op) -> bool:
    """Whether an operation, or one inside it, writes memory or orders what others write."""
    if op.effects & Effects.WRITES or isinstance(op, atomic.AtomicLoad):
        return True
    return any(_is_writer(inner) for each in op.regions for inner in each.ops)


class Writers:
    """The writers of a block, and its atomic loads: what they order may have been written.

    ``disjoint``: distinct parameters are known not to overlap.
    """

    def __init__(self, block: Block, disjoint: bool) -> None:
        self._block = block
        self._everywhere: list[int] = []
        """Positions of the writers that may write anything."""
        self._at: dict[Value, list[int]] = {}
        for position, op in enumerate(block.ops):
            if _is_writer(op):
                origin = root(op.pointer) if isinstance(op, memory.Store) and disjoint else None
                self._places(origin).append(position)

    def _places(self, origin: Value | None) -> list[int]:
        return self._everywhere if origin is None else self._at.setdefault(origin, [])

    def between(self, pointer: Value, after: int, until: int) -> Iterator[Op]:
        """Those after a position, to another one, that may write what a pointer leads to."""
        origin = root(pointer)
        several = [self._everywhere]
        several += self._at.values() if origin is None else [self._at.get(origin, [])]
        ranges = [each[bisect_right(each, after) : bisect_right(each, until)] for each in several]
        for at in merge(*ranges):
            yield self._block.ops[at]
