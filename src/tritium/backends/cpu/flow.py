"""Control flow of a kernel: loops and branches, and the tiles they carry.

Scalars are carried in phis. A carried tile has one buffer; its next value is computed straight into
it where nothing reads the old value afterwards, otherwise beside it and copied at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tritium.backends import emit
from tritium.backends.common.rules import register_type
from tritium.backends.emit import Builder, Phi, V, const, i1, i32, i64, ptr
from tritium.backends.host.layout import Waiter
from tritium.ir.core import Block, Op, Value
from tritium.ir.dtypes import DType
from tritium.ops import control, dot
from tritium.passes.waiting import waits_in

from .dots import copy_tile
from .memory_map import Buffer
from .plan import BlockPlan, Group, Planner, Step

if TYPE_CHECKING:
    from .kernel import KernelWriter


def yields_of(block: Block) -> tuple[Value, ...]:
    """What a region's block yields."""
    end = block.terminator
    return end.values if isinstance(end, control.Yield) else ()


class FlowWriter:
    """Writes the control flow operations of one block."""

    def __init__(self, kernel: KernelWriter, depth: int, plan: BlockPlan) -> None:
        self.kernel = kernel
        self.depth = depth
        self.plan = plan

    # Branches.

    def branch(self, op: control.If) -> None:
        kernel = self.kernel
        b = kernel.b
        results = {r: kernel.buffer(r) for r in op.results if r.shape}
        kernel.buffers.update(results)
        then, otherwise, join = (kernel.function.block(n) for n in ("then", "else", "endif"))
        b.cbr(kernel.scalars[op.condition], then, otherwise)
        ends: list[tuple[tuple[V | None, ...], emit.Block]] = []
        for start, inner in ((then, op.then), (otherwise, op.otherwise)):
            kernel.b = Builder(start)
            targets = [results.get(r) for r in op.results]
            yielded = self._body(inner.block, targets, carried=())
            ends.append((yielded, kernel.b.block))
            kernel.b.br(join)
        kernel.b = Builder(join)
        for number, result in enumerate(op.results):
            if not result.shape:
                phi = kernel.b.phi(register_type(result.scalar))
                for yielded, block in ends:
                    value = yielded[number]
                    assert value is not None
                    phi.add(value, block)
                kernel.scalars[result] = phi

    # Loops.

    def count_loop(self, op: control.For) -> None:
        kernel = self.kernel
        scalars = kernel.scalars
        lower, upper, step = scalars[op.lower], scalars[op.upper], scalars[op.step]
        dtype = op.lower.scalar
        assert isinstance(dtype, DType)
        trips = self._trips(lower, upper, step, signed=dtype.is_int_signed())
        buffers = self._start(op.init, op.body.args[1:])
        head, body, done = (kernel.function.block(n) for n in ("for", "for.body", "for.done"))
        before = kernel.b
        entered = before.block
        before.br(head)
        kernel.b = Builder(head)
        count = kernel.b.phi(i64, "trip", [(const(i64, 0), entered)])
        iv = kernel.b.phi(lower.type, "iv", [(lower, entered)])
        scalars[op.body.args[0]] = iv
        phis = self._phis(op.init, op.body.args[1:], entered)
        kernel.b.cbr(kernel.b.icmp("ult", count, trips), body, done)
        kernel.b = Builder(body)
        yielded = self._body(op.body.block, buffers, carried=op.body.args[1:])
        latch = kernel.b
        count.add(latch.add(count, const(i64, 1), "nuw"), latch.block)
        iv.add(latch.add(iv, step), latch.block)
        self._close_phis(phis, yielded, latch)
        latch.br(head)
        kernel.b = Builder(done)
        self._results(op.results, op.body.args[1:])

    def _trips(self, lower: V, upper: V, step: V, *, signed: bool) -> V:
        """How often the loop runs, unsigned: the difference of its bounds is exact in 64 bits."""
        b = self.kernel.b
        low, high, by = (b.int_cast(v, i64, signed=signed) for v in (lower, upper, step))
        zero, one = const(i64, 0), const(i64, 1)
        below = "slt" if signed else "ult"
        runs, distance = b.icmp(below, low, high), b.sub(high, low)
        if by.integer is None or (signed and by.integer <= 0):
            down = b.icmp("slt", by, zero) if signed else const(i1, 0)
            moves = b.icmp("ne", by, zero)
            runs = b.and_(moves, b.select(down, b.icmp(below, high, low), runs))
            distance = b.select(down, b.sub(low, high), distance)
            by = b.umax(b.select(down, b.sub(zero, by), by), one)
        return b.select(runs, b.add(b.udiv(b.sub(distance, one), by), one), zero)

    def while_loop(self, op: control.While) -> None:
        kernel = self.kernel
        args, test_args = op.body.args, op.condition.args
        buffers = self._start(op.init, args)
        for argument, buffer in zip(test_args, buffers, strict=True):
            if buffer is not None:
                kernel.buffers[argument] = buffer
        head, body, done = (kernel.function.block(n) for n in ("while", "while.body", "while.done"))
        before = kernel.b
        entered = before.block
        before.br(head)
        kernel.b = Builder(head)
        phis = self._phis(op.init, args, entered)
        for argument, inner in zip(args, test_args, strict=True):
            if not argument.shape:
                kernel.scalars[inner] = kernel.scalars[argument]
        (condition,) = self._body(op.condition.block, [None], carried=())
        assert condition is not None
        kernel.b.cbr(condition, body, done)
        kernel.b = Builder(body)
        yielded = self._body(op.body.block, buffers, carried=args)
        latch = kernel.b
        if waits_in(op):
            latch = kernel.b = self._waiting(again=True)
        self._close_phis(phis, yielded, latch)
        latch.br(head)
        kernel.b = Builder(done)
        if waits_in(op):
            kernel.b = self._waiting(again=False)
        self._results(op.results, args)

    def _waiting(self, *, again: bool) -> Builder:
        """Tell whoever runs the program that it waits, or has; it may be made to end.

        See ``host.blocking``. There is nobody to tell where the hook is null.
        """
        kernel = self.kernel
        b, waiter = kernel.b, kernel.scratch_base
        tell, on = kernel.function.block("tell"), kernel.function.block("on")
        hook = b.load(ptr, b.gep(waiter, Waiter.HOOK), align=8)
        b.cbr(b.icmp("eq", hook, const(ptr, 0)), on, tell)
        b = Builder(tell)
        ends = b.call(hook, i32, (waiter, const(i32, int(again))))
        b.cbr(b.icmp("ne", ends, const(i32, 0)), kernel.abandoned, on, weights=(1, 2000))
        return Builder(on)

    # What loops carry.

    def _start(self, init: Sequence[Value], args: Sequence[Value]) -> list[Buffer | None]:
        """Buffers of the carried tiles, holding their first values."""
        kernel = self.kernel
        made: list[Buffer | None] = []
        for value, argument in zip(init, args, strict=True):
            if not value.shape:
                made.append(None)
                continue
            source = kernel.buffers[value]
            target = source
            if (
                len(value.uses) > 1
                or value not in self.plan.kept
                or source.scalar is not value.scalar
            ):
                target = kernel.buffer(argument)
                copy_tile(kernel, source, value.scalar, target, value.shape)
            kernel.buffers[argument] = target
            made.append(target)
        return made

    def _phis(
        self, init: Sequence[Value], args: Sequence[Value], entered: emit.Block
    ) -> list[Phi | None]:
        kernel = self.kernel
        made: list[Phi | None] = []
        for value, argument in zip(init, args, strict=True):
            if argument.shape:
                made.append(None)
                continue
            start = kernel.scalars[value]
            phi = kernel.b.phi(start.type, argument.name, [(start, entered)])
            kernel.scalars[argument] = phi
            made.append(phi)
        return made

    @staticmethod
    def _close_phis(
        phis: Sequence[Phi | None], yielded: Sequence[V | None], latch: Builder
    ) -> None:
        for phi, value in zip(phis, yielded, strict=True):
            if phi is not None:
                assert value is not None
                phi.add(value, latch.block)

    def _results(self, results: Sequence[Value], args: Sequence[Value]) -> None:
        """After a loop its results are what the carried values hold."""
        kernel = self.kernel
        for result, argument in zip(results, args, strict=True):
            if result.shape:
                kernel.buffers[result] = kernel.buffers[argument]
            else:
                kernel.scalars[result] = kernel.scalars[argument]

    # Bodies.

    def _body(
        self, block: Block, targets: Sequence[Buffer | None], carried: Sequence[Value]
    ) -> tuple[V | None, ...]:
        """A region's block; the tiles it yields end up in ``targets``."""
        kernel = self.kernel
        values = yields_of(block)
        saved = dict(kernel.placed), kernel.yield_targets
        plan = Planner(
            block, disjoint=kernel.disjoint, outer=self.plan.stored, width=kernel.width
        ).run()
        old = dict(zip(carried, targets, strict=True)) if carried else {}
        for value, target in zip(values, targets, strict=True):
            if target is not None and _can_place(plan, value, target, old, values):
                kernel.placed[value] = target
        kernel.yield_targets = list(targets)
        yielded = kernel.block(plan, self.depth + 1)
        kernel.placed, kernel.yield_targets = saved
        return yielded

    def finish_yield(self, op: control.Yield) -> None:
        """Copy the yielded tiles that were not computed in place."""
        kernel = self.kernel
        targets = kernel.yield_targets
        moves: list[tuple[Value, Buffer, Buffer]] = []
        for value, target in zip(op.values, targets, strict=False):
            if target is None or not value.shape:
                continue
            source = kernel.buffers[value]
            if source is not target:
                moves.append((value, source, target))
        overwritten = {id(target) for _, _, target in moves}
        staged: list[tuple[Value, Buffer, Buffer]] = []
        for value, source, target in moves:
            if id(source) in overwritten:
                beside = kernel.buffer(value, source.scalar)
                copy_tile(kernel, source, value.scalar, beside, value.shape)
                source = beside
            staged.append((value, source, target))
        for value, source, target in staged:
            copy_tile(kernel, source, value.scalar, target, value.shape)


def _can_place(
    plan: BlockPlan,
    value: Value,
    target: Buffer,
    old: dict[Value, Buffer | None],
    yielded: Sequence[Value],
) -> bool:
    """Whether a yielded tile may be computed straight into the buffer that will hold it.

    Nothing may read the carried tile that lives there once its next value is being written,
    other than the same element on the way.
    """
    if list(yielded).count(value) > 1 or value.defining_op not in plan.block.ops:
        return False
    place = plan.maker(value)
    if place is None:
        return False
    argument = next((a for a, buffer in old.items() if buffer is target), None)
    if argument is None:
        return True
    if argument in yielded:
        return False
    step, _ = place
    here = plan.steps[step]
    if here.group is not None:
        if not _updates_in_place(here.group, value, argument):
            return False
    elif not _accumulates(here.op, argument):
        return False
    return not any(_step_reads(plan, later, argument) for later in plan.steps[step + 1 :])


def _updates_in_place(group: Group, value: Value, argument: Value) -> bool:
    """Whether a group reads ``argument`` only at the elements of ``value`` that are made in the
    same row, and none after they are made."""
    made = group.producer(value)
    assert made is not None
    last, maker = made
    for number, subnest in enumerate(group.subnests):
        for sink in subnest:
            for used, point in sink.uses:
                if used is argument and (
                    number > last or sink.along is not None or point != maker.result_tokens()
                ):
                    return False
    return True


def _step_reads(plan: BlockPlan, step: Step, argument: Value) -> bool:
    if step.op is not None:
        return argument in plan.reads(step.op)
    assert step.group is not None
    return any(used is argument for sink in step.group.sinks for used, _ in sink.uses)


def _accumulates(op: Op | None, argument: Value) -> bool:
    """Whether a dot reads ``argument`` as nothing but its accumulator."""
    return isinstance(op, dot.Dot) and op.a is not argument and op.b is not argument
