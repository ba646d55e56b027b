"""Control flow: loops and branches, and the tiles they carry in registers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tritium.backends import emit
from tritium.backends.common.rules import register_type
from tritium.backends.emit import Builder, Phi, V, const, i1, i32, i64
from tritium.ir.core import Block, Value
from tritium.ir.dtypes import DType
from tritium.ops import control

from .layouts import REGISTER, Holding, LinearLayout, in_trips
from .positions import holdings
from .values import Held

if TYPE_CHECKING:
    from .kernel import Writer

Carried = list[V | None]
"""The registers of a carried value; one of a scalar."""


class Flow:
    """Writes the control flow operations of a kernel."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer

    # Branches.

    def branch(self, op: control.If) -> None:
        writer = self.writer
        then, otherwise, join = (writer.function.block(n) for n in ("then", "else", "endif"))
        writer.b.cbr(writer.scalars[op.condition], then, otherwise)
        homes = [self._home(result) for result in op.results]
        before = Builder(writer.b.block)
        ends: list[tuple[list[Carried], emit.Block]] = []
        with writer.order.branch() as sides:
            for start, inner in ((then, op.then), (otherwise, op.otherwise)):
                sides.begin()
                writer.b.goto(start)
                yielded = self._body(inner.block, homes, before, op.results)
                ends.append((yielded, writer.b.block))
                writer.b.br(join)
        writer.b.goto(join)
        for number, result in enumerate(op.results):
            phis = self._phis(result, homes[number])
            for yielded, block in ends:
                _feed(phis, yielded[number], block)
            self._set(result, homes[number], phis, result)

    # Loops.

    def count_loop(self, op: control.For) -> None:
        writer = self.writer
        b, scalars = writer.b, writer.scalars
        lower, upper, step = scalars[op.lower], scalars[op.upper], scalars[op.step]
        dtype = op.lower.scalar
        assert isinstance(dtype, DType)
        runs, distance, by = self._span(lower, upper, step, signed=dtype.is_int_signed())
        args = op.body.args[1:]
        homes = [self._home(argument) for argument in args]
        start = [self._values(*each) for each in zip(op.init, homes, strict=True)]
        writer.trips.copy(op.init, args)
        body, done = (writer.function.block(n) for n in ("for", "for.done"))
        entered = b.block
        # A test before the loop, and one at its end: one jump an iteration.
        b.cbr(runs, body, done)
        before = Builder(entered)
        b.goto(body)
        left = b.phi(distance.type, "left", [(distance, entered)])
        iv = b.phi(lower.type, "iv", [(lower, entered)])
        scalars[op.body.args[0]] = iv
        with writer.order.loop([op.body.block]):
            phis = self._start(args, homes, start, entered)
            yielded = self._body(op.body.block, homes, before, args)
        again = b.icmp("ugt", left, by)
        left.add(b.sub(left, by), b.block)
        iv.add(b.add(iv, step), b.block)
        for phi, value in zip(phis, yielded, strict=True):
            _feed(phi, value, b.block)
        b.cbr(again, body, done)
        ended = b.block
        b.goto(done)
        for number, result in enumerate(op.results):
            made = self._phis(result, homes[number])
            _feed(made, start[number], entered)
            _feed(made, yielded[number], ended)
            self._set(result, homes[number], made, args[number])

    def _span(self, lower: V, upper: V, step: V, *, signed: bool) -> tuple[V, V, V]:
        """Whether a loop runs at all, how far it goes, and by how much each time, both unsigned:
        the difference of its bounds is exact modulo the width of the counter.

        That an iteration follows where more than a step is left takes no division and wraps
        nowhere. A known step is counted down to 0, for the assembler to unroll.
        """
        b = self.writer.b
        wide = i32 if lower.type.bits <= 32 else i64
        low, high, by = (b.int_cast(v, wide, signed=signed) for v in (lower, upper, step))
        zero, one = const(wide, 0), const(wide, 1)
        below = "slt" if signed else "ult"
        runs, distance = b.icmp(below, low, high), b.sub(high, low)
        if by.integer is None or (signed and by.integer <= 0):
            down = b.icmp("slt", by, zero) if signed else const(i1, 0)
            moves = b.icmp("ne", by, zero)
            runs = b.and_(moves, b.select(down, b.icmp(below, high, low), runs))
            distance = b.select(down, b.sub(low, high), distance)
            by = b.select(down, b.sub(zero, by), by)
        if by.integer is None:
            return runs, distance, by
        trips = b.add(b.udiv(b.sub(distance, one), b.umax(by, one)), one)
        return runs, trips, one

    def while_loop(self, op: control.While) -> None:
        writer = self.writer
        args, test_args = op.body.args, op.condition.args
        homes = [self._home(argument) for argument in args]
        start = [self._values(*each) for each in zip(op.init, homes, strict=True)]
        writer.trips.copy(op.init, args)
        head, body, done = (writer.function.block(n) for n in ("while", "while.body", "while.done"))
        entered = writer.b.block
        before = Builder(entered)
        writer.b.br(head)
        writer.b.goto(head)
        with writer.order.loop([op.condition.block, op.body.block]):
            phis = self._start(args, homes, start, entered)
            for number, inner in enumerate(test_args):
                self._set(inner, homes[number], phis[number], args[number])
            ((condition,),) = self._body(op.condition.block, [None], before)
            assert condition is not None
            writer.shared.loop_leaves()
            writer.b.cbr(condition, body, done)
            writer.b.goto(body)
            yielded = self._body(op.body.block, homes, before, args)
        for phi, value in zip(phis, yielded, strict=True):
            _feed(phi, value, writer.b.block)
        writer.b.br(head)
        writer.b.goto(done)
        for number, result in enumerate(op.results):
            self._set(result, homes[number], phis[number], args[number])

    # Bodies and what they carry.

    def _body(
        self,
        block: Block,
        homes: Sequence[LinearLayout | None],
        outer: Builder,
        targets: Sequence[Value] = (),
    ) -> list[Carried]:
        """A region's block, written where the writer stands. Returns what it yields; large tiles
        of that go where ``targets`` are in memory.

        What it wants of enclosing blocks and isn't written yet goes where ``outer`` stands, before
        the loop or branch.
        """
        elements = self.writer.elements
        around = elements.scope
        around.builder = outer
        elements.open(block, self.writer.b)
        values = self.writer.block(block)
        carried = [self._values(*each) for each in zip(values, homes, strict=True)]
        if targets:
            self.writer.trips.copy(values, targets)
        elements.close(block, around)
        around.builder = self.writer.b
        return carried

    def _home(self, value: Value) -> LinearLayout | None:
        return self.writer.homes.home[value] if value.shape else None

    def _values(self, value: Value, home: LinearLayout | None) -> Carried:
        if home is None:
            return [self.writer.scalars[value]]
        if in_trips(home):
            return []
        return list(self.writer.elements.tile(value, home).registers)

    def _phis(self, value: Value, home: LinearLayout | None) -> list[Phi | None]:
        """Empty phis for a carried value, where the writer stands."""
        type_ = register_type(value.scalar)
        b = self.writer.b
        if home is None:
            return [b.phi(type_, value.name)]
        if in_trips(home):
            return []
        kept = holdings(value.shape, home)
        return [
            None if kept[register] is Holding.PADDING else b.phi(type_)
            for register in range(home.input_extent(REGISTER))
        ]

    def _start(
        self,
        args: Sequence[Value],
        homes: Sequence[LinearLayout | None],
        start: Sequence[Carried],
        entered: emit.Block,
    ) -> list[list[Phi | None]]:
        """The carried values at the head of a loop."""
        made = []
        for argument, home, values in zip(args, homes, start, strict=True):
            phis = self._phis(argument, home)
            _feed(phis, values, entered)
            self._set(argument, home, phis, argument)
            made.append(phis)
        return made

    def _set(
        self,
        value: Value,
        home: LinearLayout | None,
        registers: Sequence[V | None],
        place: Value,
    ) -> None:
        """A carried value is there: in registers, or a large tile where ``place`` is in memory."""
        writer = self.writer
        if in_trips(home):
            writer.trips.same(value, place)
            return
        if home is None:
            (only,) = registers
            assert only is not None
            writer.scalars[value] = only
        else:
            writer.made(value, Held(value.type, home, tuple(registers)))


def _feed(phis: Sequence[Phi | None], values: Carried, block: emit.Block) -> None:
    for phi, value in zip(phis, values, strict=True):
        if phi is not None:
            assert value is not None
            phi.add(value, block)
