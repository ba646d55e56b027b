"""Reductions: partials in registers, in the order that ``docs/numerics.md`` states.

Along the innermost axis there are min(64, extent) partials, partial p taking elements p, p + 64,
...; along another axis there are 4. Then for h = 32 (or 2), ... 1 partial p takes p + h where it
exists. Partials live in stack slots that LLVM turns into registers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tritium.backends.common.rules import Lowering, register_type, rule_of
from tritium.backends.emit import (
    Builder,
    V,
    const,
    const_lanes,
    elem,
    false,
    i1,
    i64,
    lanes,
    true,
    undef,
    vec,
    zero,
)
from tritium.diagnostics import InternalError
from tritium.ir.core import Op, Region, Value
from tritium.ir.dtypes import DType, Type
from tritium.ops import arith, control, create, reduce
from tritium.ops.reduce import INNERMOST_PARTIALS, OTHER_PARTIALS

from .index import ZERO, Index, Point
from .lanes import uniform, vector
from .loops import OpenLoop
from .points import Points
from .sinks import Sink

if TYPE_CHECKING:
    from .kernel import KernelWriter
    from .nest import SubnestWriter

ALIGN = 64


class Combiner:
    """Combines two groups of values, as scalars or lanes, by a reduction's rule."""

    def __init__(self, kernel: KernelWriter, op: Op) -> None:
        self.kernel = kernel
        self.op = op
        self.inputs = op.operands
        self.types: list[Type] = [value.scalar for value in op.operands]
        self.template = self._template()

    def _template(self) -> Op | None:
        scalar = self.types[0]
        x, y = Value(scalar), Value(scalar)
        made: Op
        if isinstance(self.op, reduce.Sum):
            made = arith.Add(x=x, y=y)
        elif isinstance(self.op, reduce.Max):
            made = arith.Maximum(x=x, y=y, propagate_nan=False)
        elif isinstance(self.op, reduce.Min):
            made = arith.Minimum(x=x, y=y, propagate_nan=False)
        else:
            return None
        made.make_results()
        return made

    def start(self, count: int) -> list[V] | None:
        """What a partial starts with: +0 for sums, what every element replaces for extrema.

        None for a user's function: a partial starts with its first element.
        """
        if self.template is None:
            return None
        scalar = self.types[0]
        assert isinstance(scalar, DType)
        type_ = register_type(scalar, count)
        if isinstance(self.op, reduce.Sum):
            return [zero(type_)]
        if not scalar.is_floating():
            extreme = scalar.get_int_min_value, scalar.get_int_max_value
            return [const(type_, extreme[isinstance(self.op, reduce.Min)]())]
        # NaN is dropped for any element, and stays only where all of them are NaN.
        pattern = scalar.format.nan_pattern
        if pattern is None:
            return None
        return [const(type_, math.nan if type_.is_float else pattern)]

    def combine(self, b: Builder, left: list[V], right: list[V], count: int) -> list[V]:
        lowering = Lowering(b, self.kernel.target, count)
        if self.template is not None:
            return [
                rule_of(self.template, *self.kernel.rules)(
                    lowering, self.template, left[0], right[0]
                )
            ]
        assert isinstance(self.op, reduce.Reduce)
        return inline_region(self.kernel, lowering, self.op.combine, left + right)


def inline_region(
    kernel: KernelWriter, lowering: Lowering, body: Region, args: Sequence[V]
) -> list[V]:
    """A combine region on lanes: what it yields."""
    known: dict[Value, V] = dict(zip(body.block.args, args, strict=True))

    def read(value: Value) -> V:
        found = known.get(value)
        return found if found is not None else splat(kernel.scalars[value])

    def splat(v: V) -> V:
        return lowering.b.splat(v, lowering.lanes)

    for each in body.block.ops:
        if isinstance(each, control.Yield):
            return [read(value) for value in each.values]
        if isinstance(each, create.Constant):
            known[each.result] = splat(kernel.constant(each))
            continue
        operands = [read(value) for value in each.operands]
        known[each.result] = rule_of(each, *kernel.rules)(lowering, each, *operands)
    raise InternalError("a combine region without control.yield")


class Partials:
    """Slots of partial results; slot s holds ``counts[s]`` of them as one vector an input."""

    def __init__(self, combiner: Combiner, b: Builder, counts: list[int]) -> None:
        self.combiner = combiner
        self.counts = counts
        self.cells = [
            [b.alloca(register_type(t, n), align=ALIGN) for t in combiner.types] for n in counts
        ]
        self.fresh: list[V | None] = [None] * len(counts)
        for slot, count in enumerate(counts):
            start = combiner.start(count)
            first = start or [zero(register_type(type_, count)) for type_ in combiner.types]
            for cell, value in zip(self.cells[slot], first, strict=True):
                b.store(value, cell, align=ALIGN)
            if start is None:
                self.fresh[slot] = b.alloca(i1, align=1)
                b.store(true, self._flag(slot), align=1)

    def _flag(self, slot: int) -> V:
        flag = self.fresh[slot]
        assert flag is not None
        return flag

    def load(self, b: Builder, slot: int) -> list[V]:
        count = self.counts[slot]
        return [
            b.load(register_type(t, count), cell, align=ALIGN)
            for cell, t in zip(self.cells[slot], self.combiner.types, strict=True)
        ]

    def add(self, b: Builder, slot: int, values: list[V]) -> None:
        """Take ``values`` (as many lanes as the slot has, or fewer) into a slot."""
        count = self.counts[slot]
        old = self.load(b, slot)
        given = lanes(values[0].type)
        values = [_lanes(b, v, count) for v in values]
        new = self.combiner.combine(b, old, values, count)
        if self.fresh[slot] is not None:
            fresh = b.load(i1, self._flag(slot), align=1)
            new = [b.select(fresh, v, n) for v, n in zip(values, new, strict=True)]
            b.store(false, self._flag(slot), align=1)
        if given < count:
            taken = const_lanes(i1, [int(lane < given) for lane in range(count)])
            new = [b.select(taken, n, o) for n, o in zip(new, old, strict=True)]
        for cell, value in zip(self.cells[slot], new, strict=True):
            b.store(value, cell, align=ALIGN)

    def result(self, b: Builder) -> list[V]:
        """All partials as one scalar an input, by halving."""
        width = self.counts[0]
        slots = [self.load(b, slot) for slot in range(len(self.counts))]
        counts = list(self.counts)
        h = INNERMOST_PARTIALS // 2
        while len(slots) > 1:
            distance = h // width
            slots, counts = self._fold_slots(b, slots, counts, distance)
            h //= 2
        values, count = slots[0], counts[0]
        while count > 1:
            while h >= count:
                h //= 2
            values = self._fold_lanes(b, values, count, h)
            count = h
        return values

    def _fold_slots(
        self, b: Builder, slots: list[list[V]], counts: list[int], distance: int
    ) -> tuple[list[list[V]], list[int]]:
        kept = min(distance, len(slots))
        for low in range(kept):
            high = low + distance
            if high < len(slots):
                slots[low] = self._merge(b, slots[low], slots[high], counts[low], counts[high])
        return slots[:kept], counts[:kept]

    def _merge(
        self, b: Builder, left: list[V], right: list[V], count: int, present: int
    ) -> list[V]:
        """left combined with right, of which only the first ``present`` lanes exist."""
        right = [_lanes(b, v, count) for v in right]
        new = self.combiner.combine(b, left, right, count)
        if present < count:
            there = const_lanes(i1, [int(lane < present) for lane in range(count)])
            new = [b.select(there, n, o) for n, o in zip(new, left, strict=True)]
        return new

    def _fold_lanes(self, b: Builder, values: list[V], count: int, h: int) -> list[V]:
        low = [b.slice(v, 0, h) for v in values]
        high = [b.slice(v, h, count - h) for v in values]
        return self._merge(b, low, high, h, count - h)


def _lanes(b: Builder, v: V, count: int) -> V:
    """``v`` with lanes nobody reads appended up to ``count``."""
    have = lanes(v.type)
    if have == count:
        return v
    if have == 1:
        return b.insert(undef(register_vector(v, count)), v, 0)
    return b.shuffle(v, None, [lane if lane < have else -1 for lane in range(count)])


def register_vector(v: V, count: int) -> Any:
    """The vector type of ``count`` lanes of a scalar's type."""
    return vec(elem(v.type), count)


class Reducer:
    """One reduction sink: along the lane axis or, vector by vector, along another one."""

    def __init__(self, writer: SubnestWriter, sink: Sink) -> None:
        self.writer = writer
        self.sink = sink
        self.combiner = Combiner(writer.kernel, sink.op)
        self.partials: Partials | None = None
        if sink.along is None:
            total = min(INNERMOST_PARTIALS, writer.extent)
            width = writer.width
            counts = [min(width, total - at) for at in range(0, total, width)]
            self.partials = Partials(self.combiner, writer.row, counts)

    def add(self, points: Points, point: Point, count: int, slot: int) -> None:
        """Take one vector of elements into a slot."""
        assert self.partials is not None
        values = [points.at(value, point) for value in self.combiner.inputs]
        self.partials.add(points.builders[-1], slot, [points.math.widen(v) for v in values])

    def finish(self, points: Points) -> list[V]:
        """The results, one scalar an input, where the row stands."""
        assert self.partials is not None
        return self.partials.result(points.builders[points.row_level])

    def along_axis(self, points: Points, lane: Index, count: int) -> None:
        """Reduce along the other axis for the lanes of one vector and store the result."""
        sink = self.sink
        assert sink.along is not None
        extent = sink.space[sink.along]
        b = points.builders[-1]
        kept = min(OTHER_PARTIALS, extent)
        partials = Partials(self.combiner, b, [count] * kept)
        loop = OpenLoop(self.writer.kernel.function, f"{points.mode.value}.along")
        level = len(points.builders)
        points.builders.append(loop.b)
        for number in range(kept):
            self._take(points, partials, number, loop.b, lane, _along(level, _at(loop, number)))
        points.builders.pop()
        whole = extent // kept * kept
        loop.close(b, const(i64, 0), const(i64, whole), kept)
        for number in range(extent - whole):
            along = _along(level - 1, const(i64, whole + number))
            self._take(points, partials, number, b, lane, along)
        self._store(points, lane, self._combined(b, partials, kept, count))

    def _take(
        self,
        points: Points,
        partials: Partials,
        number: int,
        b: Builder,
        lane: Index,
        along: Index,
    ) -> None:
        extent = self.sink.space[self.sink.along or 0]
        point = self.writer.point(self.sink, lane, along if extent > 1 else ZERO)
        values = [points.at(value, point) for value in self.combiner.inputs]
        partials.add(b, number, [points.math.widen(v) for v in values])

    def _combined(self, b: Builder, partials: Partials, kept: int, count: int) -> list[V]:
        slots = [partials.load(b, slot) for slot in range(kept)]
        h = OTHER_PARTIALS // 2
        while h:
            for low in range(min(h, len(slots))):
                if low + h < len(slots):
                    slots[low] = self.combiner.combine(b, slots[low], slots[low + h], count)
            slots = slots[:h]
            h //= 2
        return slots[0]

    def _store(self, points: Points, lane: Index, results: list[V]) -> None:
        sink = self.sink
        assert sink.along is not None
        full = self.writer.point(sink, lane, ZERO)
        point = (*full[: sink.along], *full[sink.along + 1 :])
        level = len(points.builders) - 1
        for value, result in zip(sink.op.results, results, strict=True):
            made = vector(result, level) if points.n > 1 else uniform(result, level)
            if not value.shape:
                raise InternalError("a reduction along an outer axis has a tile as its result")
            buffer = points.kernel.buffers[value]
            points.access.write_buffer(buffer, value.scalar, made, point)


def _along(level: int, position: V) -> Index:
    return Index(level, position, 0, ZERO, along=True)


def _at(loop: OpenLoop, number: int) -> V:
    return loop.b.add(loop.index, const(i64, number))


def make_reducer(writer: SubnestWriter, sink: Sink) -> Reducer:
    """The reducer of a sink; its partials are set up where the row stands."""
    return Reducer(writer, sink)
