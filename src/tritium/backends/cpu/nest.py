"""Writes the loops of a group of sinks: outer loops, then one inner loop a subnest in versions.

A subnest's inner loop exists in up to three versions (see ``points.Mode``)::

    if nothing linear wraps:
        interior loop over the whole vectors where every interval mask holds, unrolled
        boundary loop over the rest, masks by lane
    else:
        generic loop over everything

Each version walks the lane axis upwards in the same chunks, so reductions see their elements in
the documented order whichever way is taken.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from tritium.backends.emit import Block, Builder, V, const, i1, i64
from tritium.ir.core import Op, Value
from tritium.ops import memory
from tritium.ops.reduce import INNERMOST_PARTIALS
from tritium.passes.origins import root

from .facts import weight
from .index import ZERO, Index, Point
from .lanes import Lanes, uniform
from .loops import OpenLoop
from .modes import Mode
from .plan import Group
from .points import Points
from .reductions import Reducer, make_reducer
from .sinks import Sink, SinkKind

if TYPE_CHECKING:
    from .kernel import KernelWriter

LINE = 64
"""Bytes of a cache line."""
HEAVY = 24
"""Weight of a body above which unrolling more than twice only adds code."""


class GroupWriter:
    """Writes one group into the kernel's current block."""

    def __init__(self, kernel: KernelWriter, group: Group) -> None:
        self.kernel = kernel
        self.group = group
        self.row_values: dict[Value, tuple[Point, V]] = {}

    def write(self) -> None:
        mark = self.kernel.allocate(self.group)
        self._loops(0, [self.kernel.b], [[]])
        self.kernel.release_rows(self.group, mark)

    def _loops(self, number: int, builders: list[Builder], rows: list[list[Index]]) -> None:
        """Outer loop ``number`` and what is inside; ``rows`` are the outer positions so far, one
        list for each row of a block."""
        group = self.group
        if number == len(group.outer):
            for subnest in group.subnests:
                SubnestWriter(self, subnest, builders, rows).write()
            return
        extent = group.outer[number]
        if extent == 1:
            self._loops(number + 1, builders, [[*row, ZERO] for row in rows])
        elif number == group.block:
            size = self.kernel.width
            whole = extent // size * size
            self._loop(number, builders, rows, (0, whole), size)
            if whole < extent:
                self._loop(number, builders, rows, (whole, extent), 1)
        else:
            self._loop(number, builders, rows, (0, extent), 1)

    def _loop(
        self,
        number: int,
        builders: list[Builder],
        rows: list[list[Index]],
        bounds: tuple[int, int],
        size: int,
    ) -> None:
        """A loop over [low, high) in steps of ``size`` rows, which its body treats together."""
        loop = OpenLoop(self.kernel.function, f"r{number}")
        level = len(builders)
        positions = [Index(level, loop.b.add(loop.index, const(i64, row))) for row in range(size)]
        inner = [[*row, position] for position in positions for row in rows]
        self._loops(number + 1, [*builders, loop.b], inner)
        loop.close(builders[-1], const(i64, bounds[0]), const(i64, bounds[1]), size)


class SubnestWriter:
    """Writes one inner loop. ``builders[-1]`` stands where it is to go."""

    def __init__(
        self,
        parent: GroupWriter,
        sinks: list[Sink],
        builders: list[Builder],
        rows: list[list[Index]],
    ) -> None:
        self.kernel = parent.kernel
        self.parent = parent
        self.sinks = sinks
        self.row = builders[-1]
        self.rows = rows
        self.outer = rows[0]
        first = sinks[0]
        self.extent = first.space[first.lane]
        number = parent.group.block
        block = [row[number] for row in rows] if number is not None and len(rows) > 1 else None
        kept = {sink.value for sink in sinks if sink.value is not None}
        self.points = Points(self.kernel, builders, parent.row_values, self.extent, block, kept)
        self.width = min(self.kernel.width, self.extent)
        self.reducers: dict[Sink, Reducer] = {}

    # The point of a lane index.

    def point(self, sink: Sink, lane: Index, along: Index | None = None) -> Point:
        """The index tuple of a sink for a lane index."""
        point: list[Index] = [ZERO] * len(sink.space)
        for number, axis in enumerate(sink.outer):
            point[axis] = self.outer[number]
        point[sink.lane] = lane if sink.space[sink.lane] > 1 else ZERO
        if sink.along is not None and along is not None:
            point[sink.along] = along
        return tuple(point)

    # Versions.

    def write(self) -> None:
        for sink in self.sinks:
            if sink.kind is SinkKind.REDUCE:
                self.reducers[sink] = make_reducer(self, sink)
        self.unroll = self._unroll()
        self.chunk = self.width * self.unroll
        function = self.kernel.function
        fast, generic, join = (function.block(n) for n in ("fast", "generic", "join"))
        self._fast(fast, join)
        linear = self.points.assumed.linear
        guarded = [condition for condition in linear if condition.v.integer != 1]
        if guarded:
            self._generic(generic, join)
            holds = self._fold(guarded, lambda b, x, y: b.and_(x, y))
            self.row.cbr(holds.v, fast, generic, weights=(1000, 1))
        else:
            function.blocks.remove(generic)
            self.row.br(fast)
        self.row.goto(join)
        self._finish()

    def _unroll(self) -> int:
        """Vectors a trip: reductions need whole rounds of partials, light bodies 4, heavy 2."""
        if any(sink.along is None for sink in self.reducers):
            return INNERMOST_PARTIALS // self.width
        whole = self.extent // self.width
        total = sum(
            weight(value.defining_op)
            for sink in self.sinks
            for value in sink.inlined
            if value.defining_op is not None
        )
        most = 1 if len(self.rows) > 1 else 4 if total <= HEAVY else 2
        while most > 1 and whole % most and whole < 4 * most:
            most //= 2
        return max(1, min(most, whole))

    def _fast(self, start: Block, join: Block) -> None:
        """Interior and boundary loops under the assumption that nothing linear wraps."""
        total = self.extent // self.chunk * self.chunk
        if total == 0:
            b = Builder(start)
            self._rest(b, Mode.BOUNDARY, const(i64, 0), const(i64, self.extent))
            b.br(join)
            return
        interior = self._interior(Mode.INTERIOR.value)
        streams = self._streams()
        assumed = self.points.assumed
        masked = bool(assumed.rows or assumed.lower or assumed.upper)
        b = Builder(start)
        if not masked:
            self._run_interior(b, interior, streams, const(i64, 0), const(i64, total))
            self._rest(b, Mode.INTERIOR, const(i64, total), const(i64, self.extent))
            b.br(join)
            return
        low, high = self._interior_range(total)
        end = self._end_of_stores()
        if assumed.lower:
            self._rest(b, Mode.BOUNDARY, const(i64, 0), low, whole=True)
        self._run_interior(b, interior, streams, low, high)
        self._rest(b, Mode.BOUNDARY, high, end)
        b.br(join)

    def _interior(self, name: str) -> OpenLoop:
        """The loop over whole chunks, its bounds still open."""
        loop = OpenLoop(self.kernel.function, name)
        self._chunk(loop.b, Mode.INTERIOR, loop.index, self.unroll)
        return loop

    def _streams(self) -> list[memory.Store]:
        """Stores of whole vectors to outputs that nothing reads: candidates for streaming."""
        points = self.points
        if len(self.rows) > 1 or self.width < self.kernel.width:
            return []
        return [
            sink.store
            for sink in self.sinks
            if sink.store is not None
            and sink.store in points.contiguous
            and root(sink.store.pointer) in self.kernel.write_only
        ]

    def _run_interior(
        self, b: Builder, loop: OpenLoop, streams: list[memory.Store], low: V, high: V
    ) -> None:
        """The interior loop, in a streaming version too where its stores qualify."""
        if not streams:
            loop.close(b, low, high, self.chunk)
            return
        self.points.streaming = set(streams)
        streamed = self._interior("streaming")
        self.points.streaming = set()
        function = self.kernel.function
        quick, plain, after = (function.block(n) for n in ("stream", "plain", "after"))
        b.cbr(self._may_stream(streams), quick, plain)
        for block, version in ((quick, streamed), (plain, loop)):
            inner = Builder(block)
            version.close(inner, low, high, self.chunk)
            inner.br(after)
        b.goto(after)

    def _may_stream(self, streams: list[memory.Store]) -> V:
        """Whether the grid writes enough, and this row's first element begins a line."""
        written = sum(
            math.prod(store.pointer.shape) * store.value.scalar.itemsize for store in streams
        )
        holds = self.kernel.streams(written)
        row = self.row
        for sink in self.sinks:
            if sink.store in streams and sink.store is not None:
                start = self.points.at(sink.store.pointer, self.points.row(self.point(sink, ZERO)))
                low_bits = row.and_(row.ptrtoint(start.v, i64), const(i64, LINE - 1))
                holds = row.and_(holds, row.icmp("eq", low_bits, const(i64, 0)))
        return holds

    def _fold(self, parts: list[Lanes], combine: Callable[[Builder, V, V], V]) -> Lanes:
        """Uniform values combined, each step at the outermost level that knows its operands."""
        whole, *others = sorted(parts, key=lambda part: part.level)
        for part in others:
            b = self.points.builders[part.level]
            whole = uniform(combine(b, whole.v, part.v), part.level)
        return whole

    def _interior_range(self, total: int) -> tuple[V, V]:
        """Where the interior loop runs, in whole chunks; empty where a row mask is false."""
        assumed = self.points.assumed
        size, end = const(i64, self.chunk), uniform(const(i64, total), 0)
        high = self._fold([end, *assumed.upper], lambda b, x, y: b.smin(x, y))
        b = self.points.builders[high.level]
        last = b.mul(b.udiv(high.v, size), size)
        first = const(i64, 0)
        if assumed.lower:
            low = self._fold(assumed.lower, lambda b, x, y: b.smax(x, y))
            b = self.points.builders[low.level]
            first = b.mul(b.udiv(b.add(low.v, const(i64, self.chunk - 1)), size), size)
            first = b.smin(first, const(i64, total))
        if assumed.rows:
            rows = self._fold(assumed.rows, lambda b, x, y: b.and_(x, y))
            last = self.row.select(rows.v, last, const(i64, 0))
        return first, last if first.integer == 0 else self.row.smax(first, last)

    def _end_of_stores(self) -> V:
        """Positions from here on are masked off in every sink, so nothing is left to do there."""
        whole = const(i64, self.extent)
        if len(self.rows) > 1 or any(sink.kind is not SinkKind.STORE for sink in self.sinks):
            return whole
        ends = [self._end_of_store(sink.op) for sink in self.sinks]
        return self._fold(ends, lambda b, x, y: b.smax(x, y)).v

    def _end_of_store(self, op: Op) -> Lanes:
        noted = self.points.store_bounds.get(op, ())
        bounds = [bound for bound in noted if bound.v.type is i64]
        rows = [row for row in noted if row.v.type is i1]
        end = uniform(const(i64, self.extent), 0)
        end = self._fold([end, *bounds], lambda b, x, y: b.smin(x, y))
        if rows:
            holds = self._fold(rows, lambda b, x, y: b.and_(x, y))
            level = max(end.level, holds.level)
            b = self.points.builders[level]
            end = uniform(b.select(holds.v, end.v, const(i64, 0)), level)
        return end

    def _generic(self, start: Block, join: Block) -> None:
        """One loop over everything that assumes nothing."""
        b = Builder(start)
        self._rest(b, Mode.GENERIC, const(i64, 0), const(i64, self.extent))
        b.br(join)

    def _rest(self, b: Builder, mode: Mode, low: V, high: V, *, whole: bool = False) -> None:
        """A loop over [low, high) a vector at a time (a round of partials for reductions), then
        the odd lanes at the end of the axis. ``whole``: high is a multiple of the chunk."""
        if low.integer is not None and low.integer == high.integer:
            return
        step = self.chunk if self._inner_reduction() else self.width
        vectors = self.unroll if self._inner_reduction() else 1
        last = self.extent // step * step
        empty = low.integer is not None and low.integer >= last
        if last and not empty:
            loop = OpenLoop(self.kernel.function, mode.value)
            self._chunk(loop.b, mode, loop.index, vectors)
            limit = b.smin(high, const(i64, last)) if high.integer is None else const(i64, last)
            loop.close(b, low, limit, step)
        if whole or last == self.extent:
            return
        if high.integer is None:
            with b.when(b.icmp("sgt", high, const(i64, last)), "odd"):
                self._odd(b, mode, last)
        else:
            self._odd(b, mode, last)

    def _odd(self, b: Builder, mode: Mode, start: int) -> None:
        """The positions from ``start`` to the end of the axis, fewer than a step."""
        at = start
        slot = 0
        while at < self.extent:
            lanes = min(self.width, self.extent - at)
            self._vector(b, mode, const(i64, at), lanes, slot)
            at += lanes
            slot += 1

    def _inner_reduction(self) -> bool:
        return any(sink.along is None for sink in self.reducers)

    def _chunk(self, b: Builder, mode: Mode, index: V, vectors: int) -> None:
        """The body of one trip: ``vectors`` vectors from ``index`` on."""
        for number in range(vectors):
            start = b.add(index, const(i64, number * self.width))
            self._vector(b, mode, start, self.width, number)

    def _vector(self, b: Builder, mode: Mode, start: V, lanes: int, slot: int) -> None:
        """Every sink on one vector; ``slot`` is its number within a round of partials."""
        points = self.points
        points.body(b, mode, lanes)
        level = len(points.builders) - 1
        lane = Index(level, start, 1 if lanes > 1 else 0, ZERO)
        for row in self.rows:
            self.outer = row
            self._sinks(lane, lanes, slot)

    def _sinks(self, lane: Index, lanes: int, slot: int) -> None:
        points = self.points
        kept: list[tuple[Value, Lanes, Point]] = []
        for sink in self.sinks:
            if sink.along is not None:
                self.reducers[sink].along_axis(points, lane, lanes)
            elif sink.kind is SinkKind.REDUCE:
                self.reducers[sink].add(points, self.point(sink, lane), lanes, slot)
            elif sink.value is not None:
                point = self.point(sink, lane)
                kept.append((sink.value, points.compute(sink.value, point), point))
            else:
                assert sink.store is not None
                points.access.store(sink.store, self.point(sink, lane))
        # Last, since a value may be kept where another sink of this vector reads its old one.
        for value, elements, point in kept:
            points.access.write_buffer(self.kernel.buffers[value], value.scalar, elements, point)

    def _finish(self) -> None:
        """After the loop: reductions combine their partials into the row's result."""
        points = self.points
        points.builders = points.builders[: points.row_level + 1]
        for sink, reducer in self.reducers.items():
            if sink.along is None:
                self._row_results(sink, reducer.finish(points))

    def _row_results(self, sink: Sink, results: list[V]) -> None:
        outer = tuple(
            self.outer[n] if sink.space[a] > 1 else ZERO for n, a in enumerate(sink.outer)
        )
        for result, value in zip(sink.op.results, results, strict=True):
            self.parent.kernel.row_result(self.points, self.parent.row_values, result, outer, value)
