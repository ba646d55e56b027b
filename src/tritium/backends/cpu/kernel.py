"""Writes a whole kernel: its entry, its blocks, scratch memory and control flow.

The entry runs programs ``first`` to ``last`` of the grid in ascending order::

    void kernel(ptr arguments, i64 first, i64 last, ptr scratch)

``arguments`` points to 8-byte slots: one a parameter, in order, then the grid's three extents; for
code that reports, the number of the launch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tritium.backends import caches
from tritium.backends.common.rules import register_type
from tritium.backends.emit import Builder, Module, V, const, i32, i64, int_, lanes, ptr, void
from tritium.backends.host.layout import Waiter
from tritium.ir.core import Function, Op, Value
from tritium.ir.dtypes import Type
from tritium.ops import control, create, memory, program, report
from tritium.passes.waiting import waits

# The modules that tell ``whole`` what they write.
from . import atomics, bins, dots, maps, parts, reports, scans, sorts  # noqa: F401
from .facts import Strides
from .flow import FlowWriter
from .index import Point
from .lanes import uniform
from .loops import OpenLoop
from .memory_map import Arena, Buffer, row_major, widened
from .modes import Mode
from .nest import GroupWriter
from .plan import BlockPlan, Group, Planner
from .points import Points
from .sinks import Sink, SinkKind
from .streams import write_only
from .whole import is_whole, write_whole
from .x86_rules import X86

if TYPE_CHECKING:
    from tritium.backends.llvm import Target

SLOT = 8


class KernelWriter:
    """The state of writing one kernel. ``b`` stands where the next code goes."""

    def __init__(self, source: Function, target: Target, *, disjoint: bool, name: str) -> None:
        self.source = source
        self.target = target
        self.disjoint = disjoint
        self.module = Module(source.name)
        self.width = max(1, target.vector_bits // 32)
        self.strides = Strides()
        self.generators: dict[Value, bool] = {}
        self.arena = Arena()
        self.scalars: dict[Value, V] = {}
        self.buffers: dict[Value, Buffer] = {}
        self.placed: dict[Value, Buffer] = {}
        """Buffers chosen for values before their sinks are written: results of loops."""
        self.yield_targets: list[Buffer | None] = []
        """Where the block being written leaves the tiles it yields."""
        self.plans: list[tuple[int, BlockPlan]] = []
        self.plan: BlockPlan = Planner(
            source.body.block, disjoint=disjoint, outer=set(), width=self.width
        ).run()
        self.counts: dict[str, int] = {}
        self.rules = (X86,) if target.architecture == "x86_64" else ()
        """Tables of lowering rules tried before the common one."""
        self.streamed = False
        self.write_only = (
            write_only(source) if disjoint and target.architecture == "x86_64" else set()
        )
        self.grid: tuple[V, V, V]
        self.program: tuple[V, V, V]
        self.function = self.module.function(
            name,
            void,
            [(ptr, "arguments"), (i64, "first"), (i64, "last"), (ptr, "scratch_memory")],
            attributes=target.attributes,
        )
        self.b = Builder(self.function.entry)
        if waits(source):
            self.arena.take(Waiter.SIZE)
        self.reports = 0
        """How many prints and checks were written."""
        if waits(source) or any(isinstance(op, report.Assert) for op in source.walk()):
            self.abandoned = self.function.block("abandoned")
            """Where a program ends that waits in vain, or whose check fails."""
            Builder(self.abandoned).ret()

    # The entry.

    def write(self) -> None:
        """The whole function."""
        arguments, first, last, self.scratch_base = self.function.params
        self._read_arguments(arguments)
        body_start = self.function.block("start")
        before = self.b
        self.entry = Builder(self.function.entry)
        loop = OpenLoop(self.function, "program")
        self.b = Builder(body_start)
        loop.b.br(body_start)
        self._programs(loop.index)
        self.block(self.plan, 0)
        loop.b.goto(self.b.block)
        loop.close(before, first, last, 1)
        if self.streamed:
            # Whoever is told that the grid is done must see what bypassed the cache.
            before.intrinsic("x86.sse.sfence", (), void, ())
        before.ret()

    def _read_arguments(self, arguments: V) -> None:
        b = self.b
        for number, param in enumerate(self.source.params):
            scalar = param.type
            address = b.gep(arguments, number * SLOT)
            self.scalars[param.value] = b.load(register_type(scalar), address, align=SLOT)
        start = len(self.source.params)
        extents = [
            b.load(i64, b.gep(arguments, (start + axis) * SLOT), align=SLOT) for axis in range(3)
        ]
        self.grid = (extents[0], extents[1], extents[2])

    def launch(self, b: Builder) -> V:
        """The number of the launch, for reports."""
        place = (len(self.source.params) + 3) * SLOT
        return b.load(i64, b.gep(self.function.params[0], place), align=SLOT)

    def _programs(self, number: V) -> None:
        b = self.b
        x, y = self.grid[0], self.grid[1]
        rest = b.udiv(number, x)
        values = (b.urem(number, x), b.urem(rest, y), b.udiv(rest, y))
        self.program = (b.trunc(values[0], i32), b.trunc(values[1], i32), b.trunc(values[2], i32))

    # Scratch.

    def scratch(self, size: int, value: Value | None = None) -> V:
        """The address of fresh scratch memory, for ``value`` if that is a tile's."""
        return self.entry.gep(self.scratch_base, self.arena.take(size, value))

    def buffer(self, value: Value, scalar: Type | None = None) -> Buffer:
        """A buffer for a whole tile, kept until the enclosing block ends."""
        scalar = scalar or value.scalar
        size = scalar.itemsize
        for extent in value.shape:
            size *= extent
        return Buffer(self.scratch(size, value), scalar, row_major(value.shape))

    def allocate(self, group: Group) -> int:
        """Buffers for what a group stores. Returns the arena mark that frees its row buffers."""
        plan = self.plan
        rows: list[tuple[Sink, Value]] = []
        for sink in group.sinks:
            for value in sink.results:
                if not value.shape or value in self.buffers:
                    continue
                if value in self.placed:
                    self.buffers[value] = self.placed[value]
                elif value in plan.local:
                    rows.append((sink, value))
                else:
                    wide = widened(value.scalar) if value in plan.multiplied else value.scalar
                    self.buffers[value] = self.buffer(value, wide)
        mark = self.arena.top
        for sink, value in rows:
            if sink.kind is SinkKind.KEEP or sink.along is not None:
                self.buffers[value] = self._row_buffer(sink, value)
        return mark

    def _row_buffer(self, sink: Sink, value: Value) -> Buffer:
        """A buffer for one row: the outer axes share it."""
        axes = [a for a in range(len(sink.space)) if a != sink.along or value is sink.value]
        shape = tuple(1 if axis in sink.outer else sink.space[axis] for axis in axes)
        size = value.scalar.itemsize
        for extent in shape:
            size *= extent
        return Buffer(self.scratch(size, value), value.scalar, row_major(shape))

    def release_rows(self, group: Group, mark: int) -> None:
        """Free the row buffers of a group."""
        for sink in group.sinks:
            for value in sink.results:
                if value in self.plan.local:
                    self.buffers.pop(value, None)
        self.arena.release(mark)

    def row_result(
        self,
        points: Points,
        row_values: dict[Value, tuple[Point, V]],
        result: Value,
        outer: Point,
        v: V,
    ) -> None:
        """Record a reduction's result for this row, and store it if it is read elsewhere."""
        if not result.shape:
            self.scalars[result] = v
            return
        row_values[result] = (outer, v)
        buffer = self.buffers.get(result)
        if buffer is not None:
            level = points.row_level
            points.access.write_buffer(buffer, result.scalar, uniform(v, level), outer)

    def streams(self, written: int) -> V:
        """Whether programs that write ``written`` bytes each outgrow the cache together."""
        self.streamed = True
        b = self.entry
        programs = b.mul(b.mul(self.grid[0], self.grid[1]), self.grid[2])
        least = -(-caches.last_level_cache() // 2 // written)
        return b.icmp("sge", programs, const(i64, least))

    def count(self, what: str, mode: Mode) -> None:
        """Note a slow access form, for the dump; the version that assumes nothing has any."""
        if mode is Mode.GENERIC:
            what += " where integers may wrap"
        self.counts[what] = self.counts.get(what, 0) + 1

    def hidden(self, b: Builder, mask: V, size: int) -> V:
        """A mask of a store of elements of ``size`` bytes, LLVM not seeing that it is constant.

        Where a constant mask has one lane, LLVM 22.1 stores a truncated element for AVX-512 as wide
        as it was before: past the lane.
        """
        if size == 8 or not self.target.has("avx512f"):
            return mask
        _, _, last, _ = self.function.params
        always = self.entry.icmp("sge", last, const(i64, 0))
        return b.and_(mask, self.entry.splat(always, lanes(mask.type)))

    # Blocks.

    def block(self, plan: BlockPlan, depth: int) -> tuple[V | None, ...]:
        """Write a block's steps. Returns what it yields: scalars, None for tiles."""
        saved_buffers, saved_plan = dict(self.buffers), self.plan
        self.plans.append((depth, plan))
        self.plan = plan
        mark = self.arena.top
        yielded: tuple[V | None, ...] = ()
        flow = FlowWriter(self, depth, plan)
        for step in plan.steps:
            if step.group is not None:
                GroupWriter(self, step.group).write()
                continue
            assert step.op is not None
            if isinstance(step.op, control.Yield):
                yielded = tuple(self.scalars.get(value) for value in step.op.values)
                flow.finish_yield(step.op)
            else:
                self._op(step.op, flow)
        self.arena.release(mark)
        self.buffers, self.plan = saved_buffers, saved_plan
        return yielded

    def _op(self, op: Op, flow: FlowWriter) -> None:
        if isinstance(op, control.If):
            flow.branch(op)
        elif isinstance(op, control.For):
            flow.count_loop(op)
        elif isinstance(op, control.While):
            flow.while_loop(op)
        elif isinstance(op, control.Return):
            return
        elif is_whole(op):
            write_whole(self, op)
        else:
            self._scalar(op)

    def _scalar(self, op: Op) -> None:
        """Code that involves no tiles."""
        if isinstance(op, create.Constant):
            self.scalars[op.result] = self.constant(op)
        elif isinstance(op, program.ProgramId):
            self.scalars[op.result] = self.program[op.axis]
        elif isinstance(op, program.ProgramCount):
            self.scalars[op.result] = self.b.trunc(self.grid[op.axis], i32)
        else:
            points = Points(self, [self.b], {}, 1)
            points.mode = Mode.GENERIC
            if isinstance(op, memory.Store):
                points.access.store(op, ())
            else:
                self.scalars[op.result] = points.compute(op.result, ()).v

    def constant(self, op: create.Constant) -> V:
        """A constant in register form."""
        type_ = register_type(op.dtype)
        if type_.is_float or not op.dtype.is_floating():
            value = op.value if type_.is_float else int(op.value)
            return const(type_, value)
        bits = op.evaluate(None).view(f"u{op.dtype.itemsize}")
        return const(int_(op.dtype.bits), int(bits))
