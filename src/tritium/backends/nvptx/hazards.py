"""Where the threads of a block wait so that the user's memory changes in program order.

Tiles are loaded and stored by all threads together, so an access may meet what another thread has
not done yet. Waiting for the block orders global memory within it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tritium.ir.core import Block, Op
from tritium.ir.types import element
from tritium.ops import memory
from tritium.passes.origins import root

from .coalesce import AccessOp
from .iterations import is_apart
from .layouts import LANE, WARP

if TYPE_CHECKING:
    from .kernel import Writer


@dataclass(frozen=True)
class _Touch:
    """An access that other threads may not have carried out yet, maybe of an earlier iteration of
    the loop ``earlier``."""

    op: AccessOp
    earlier: Op | None = None

    @property
    def stores(self) -> bool:
        return isinstance(self.op, memory.Store)


class Sides:
    """The sides of a branch, of which one runs."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._start = dict(order.pending)
        self._ends: dict[_Touch, None] = {}
        order.writer.shared.branch_begins()

    def begin(self) -> None:
        """Start the next side, with what was pending before the branch."""
        self._keep()
        self._order.pending = dict(self._start)
        self._order.writer.shared.side_begins()

    def end(self) -> None:
        """After the branch everything may be pending that is at the end of a side."""
        self._keep()
        self._order.pending = self._ends
        self._order.writer.shared.branch_ends()

    def _keep(self) -> None:
        self._ends.update(self._order.pending)


class Order:
    """The accesses to the user's memory since the block last waited."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self.pending: dict[_Touch, None] = {}

    def access(self, op: AccessOp) -> None:
        """An access is going to be written: wait first where it may meet a pending one."""
        touch = _Touch(op)
        if any(self._meet(each, touch) for each in self.pending):
            self.writer.shared.barrier()
        self.pending[touch] = None

    def waited(self) -> None:
        """The block waited: nothing is pending."""
        self.pending = {}

    @contextmanager
    def loop(self, blocks: Sequence[Block]) -> Iterator[None]:
        """A loop's body: what any iteration leaves may be pending at the start of the next."""
        inside = [
            op
            for block in blocks
            if block.region is not None
            for op in block.region.walk()
            if isinstance(op, (memory.Load, memory.Store))
        ]
        before = dict(self.pending)
        of_any = {_Touch(op, earlier=blocks[0].parent_op): None for op in inside}
        self.pending.update(of_any)
        self.writer.shared.loop_begins()
        yield
        self.writer.shared.loop_ends()
        # Also after no iteration at all.
        self.pending.update(before)
        self.pending.update(of_any)

    @contextmanager
    def branch(self) -> Iterator[Sides]:
        """A branch; each side is begun by ``Sides.begin``."""
        sides = Sides(self)
        yield sides
        sides.end()

    # Which accesses may meet.

    def may_meet(self, earlier: AccessOp, later: AccessOp) -> bool:
        """Whether threads have to wait between two accesses of one iteration."""
        return self._meet(_Touch(earlier), _Touch(later))

    def _meet(self, earlier: _Touch, later: _Touch) -> bool:
        if not (earlier.stores or later.stores):
            return False
        left, right = earlier.op.pointer, later.op.pointer
        if left is right and self._are_apart(earlier, later.op):
            return False
        a, b = root(left), root(right)
        if not self.writer.disjoint or a is None or b is None:
            return True
        return a is b

    def _are_apart(self, earlier: _Touch, later: AccessOp) -> bool:
        """Whether a thread meets only its own accesses, both being of one tile of pointers."""
        if earlier.earlier is None:
            return self._own(earlier.op, later)
        return is_apart(later.pointer, earlier.earlier, self.writer.homes.facts)

    def _own(self, left: AccessOp, right: AccessOp) -> bool:
        """Whether each thread meets only its own accesses, both being of one tile of pointers."""
        homes, pointer = self.writer.homes, left.pointer
        if not pointer.shape or homes.accesses[left].layout != homes.accesses[right].layout:
            return False
        layout = homes.accesses[left].layout
        if layout.copies(LANE) or layout.copies(WARP):
            return False
        size = element(pointer.type).itemsize
        return homes.facts.of(pointer).is_apart(pointer.shape, size)
