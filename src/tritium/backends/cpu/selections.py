"""The first few of a line's elements in order: a sorted list that most elements don't get into.

The list is kept in vectors. A vector of elements is compared with the list's last key; those that
stand before it are put into their places one after the other, so that equal ones keep theirs.
Of elements in random order few get in: k ln(n / k) of n into a list of k.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tritium.backends.common.rules import register_type
from tritium.backends.emit import Builder, V, const, const_lanes, i1, i32, i64, vec
from tritium.ir.dtypes import uint32

from .lines import Lines, read, scratch_lines
from .memory_map import Buffer
from .order_keys import OrderKeys, mask_of, number_of

if TYPE_CHECKING:
    from .kernel import KernelWriter

SELECTED = 32
"""The longest list: an element that gets in costs a few instructions for each vector of it."""
FEW = 4
"""How many times as long a line is at least."""

Line = tuple[Buffer, V, Lines]
"""What holds the elements, the position of the line's first, and how they lie."""


def is_selected(kept: int, extent: int) -> bool:
    """Whether that many elements of a line are selected, and not cut from the sorted line."""
    return kept <= SELECTED and kept * FEW <= extent


def select_first(kernel: KernelWriter, order: OrderKeys, line: Line, kept: int) -> V:
    """The address of the places in the line of its first ``kept`` elements, in order."""
    b, extent = kernel.b, line[2].extent
    # Vectors of a power of 2; nobody reads what is in them beyond ``kept``.
    width = max(2, 1 << (kept - 1).bit_length())
    selection = _Selection(b, order, line, kept, width)
    empty = const(vec(register_type(order.scalar), width), 0), const(vec(i32, width), 0)
    with b.loop(const(i64, 0), const(i64, kept), carried=empty, name="first") as loop:
        free = b.icmp("sge", selection.numbers, b.splat(b.trunc(loop.index, i32), width))
        loop.next(selection.with_one(loop.carried, loop.index, free))
    step = kernel.width
    end = kept + (extent - kept) // step * step
    state = loop.results
    with b.loop(const(i64, kept), const(i64, end), step, carried=state, name="more") as more:
        more.next(selection.with_some(more.carried, more.index, step))
    state = more.results
    if end < extent:
        state = selection.with_some(state, const(i64, end), extent - end)
    places = scratch_lines(kernel, uint32, width)
    b.store(state[1], places.base, align=places.itemsize)
    return places.base


class _Selection:
    """Elements of a line on their way into the list: two vectors, of keys and of places."""

    def __init__(self, b: Builder, order: OrderKeys, line: Line, kept: int, width: int) -> None:
        self.b = b
        self.order = order
        self.elements, self.start, self.lines = line
        self.kept = kept
        self.width = width
        self.numbers = const_lanes(i32, range(width))

    def _keys(self, at: V, count: int) -> V:
        b, stride = self.b, self.lines.inner
        position = b.add(self.start, b.mul(at, const(i64, stride)))
        return self.order.of(b, read(b, self.elements, position, count, stride))

    def with_one(self, state: Sequence[V], at: V, free: V | None = None) -> list[V]:
        """The list with one more element where it stands before some; ``free``: empty lanes."""
        b, width = self.b, self.width
        new = b.splat(self._keys(at, 1), width), b.splat(b.trunc(at, i32), width)
        behind = b.icmp("ugt", state[0], new[0])
        if free is not None:
            behind = b.or_(behind, free)
        # What is behind the new element moves up by one, and leaves it the first one's lane.
        up = [0, *range(width - 1)]
        none = const(vec(i1, width), 0)
        moves = b.shuffle(none, behind, [0, *range(width, 2 * width - 1)])
        return [
            b.select(behind, b.select(moves, b.shuffle(old, None, up), mine), old)
            for old, mine in zip(state, new, strict=True)
        ]

    def with_some(self, state: Sequence[V], at: V, count: int) -> list[V]:
        """The list with those of the next elements that stand before its last one."""
        b = self.b
        last = b.splat(b.extract(state[0], self.kept - 1), count)
        before = b.icmp("ult", self._keys(at, count), last)
        if count == 1:
            mask = number = b.zext(before, i64)
        else:
            mask, number = b.int_cast(mask_of(b, before), i64, signed=False), number_of(b, before)
        with b.loop(const(i64, 0), number, carried=[mask, *state], name="one") as loop:
            mask, *held = loop.carried
            lane = b.intrinsic("cttz", [mask, const(i1, 1)], i64)
            rest = b.and_(mask, b.sub(mask, const(i64, 1)))
            loop.next([rest, *self.with_one(held, b.add(at, lane))])
        return loop.results[1:]
