"""Tiles of more elements a thread than registers can hold: worked on in trips.

Consecutive operations whose tiles take as many trips share a loop; each does one trip's elements.
What was made in another loop is in the thread's local memory, and tiles of indices are computed
anew. Reductions fold one trip after the other: the trips along their axis are an inner loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tritium.backends.common.rules import register_type
from tritium.backends.emit import Builder, Loop, LType, V, array, const, i32, i64, memory_type, zero
from tritium.diagnostics import InternalError
from tritium.ir.core import Op, Value
from tritium.ir.types import shaped
from tritium.ops import create, memory

from .chunks import chunks, part
from .converts import convert
from .homes import Reduction
from .layouts import REGISTER, TRIP, Holding, LinearLayout, in_trips, shapes
from .layouts.trips import whole
from .positions import holdings
from .reductions import Fold, Part
from .sources import MOVES, source_of
from .values import Held

if TYPE_CHECKING:
    from .kernel import Writer


@dataclass(frozen=True)
class _Slot:
    """A tile in a thread's local memory, register by register."""

    address: V
    type: LType


class Trips:
    """The operations of one block that wait to be written in one loop, and what is in memory."""

    def __init__(self, writer: Writer, around: Trips | None = None) -> None:
        self.writer = writer
        self._slots: dict[tuple[Value, LinearLayout], _Slot] = around._slots if around else {}
        self._waiting: list[Op] = []

    def inside(self) -> Trips:
        """The same of a block inside of this one."""
        return Trips(self.writer, self)

    # Which operations share a loop.

    def takes(self, op: Op) -> bool:
        """Whether an operation is written in trips, which happens later; ends the loop before one
        that doesn't fit into it."""
        layout = self._layout(op)
        if not in_trips(layout):
            if not self._writes_nothing(op):
                self.close()
            return False
        if self._waiting and not self._fits(op, layout):
            self.close()
        self._waiting.append(op)
        return True

    def _layout(self, op: Op) -> LinearLayout | None:
        """The layout in which an operation works on its tiles."""
        homes = self.writer.homes
        if isinstance(op, (memory.Load, memory.Store)):
            return homes.accesses[op].layout if op.pointer.shape else None
        if isinstance(op, Reduction):
            return homes.operands[op]
        return homes.home.get(op.results[0]) if len(op.results) == 1 and not op.regions else None

    def _writes_nothing(self, op: Op) -> bool:
        if isinstance(op, create.Constant):
            return True
        return (
            len(op.results) == 1
            and bool(op.results[0].shape)
            and not op.regions
            and op.results[0] not in self.writer.homes.home
        )

    def _fits(self, op: Op, layout: LinearLayout | None) -> bool:
        """Whether an operation may be done in the trips of those that are waiting."""
        first = self._layout(self._waiting[0])
        assert layout is not None
        assert first is not None
        if len(layout.bases(TRIP)) != len(first.bases(TRIP)):
            return False
        known = {self._along(each) for each in self._waiting if isinstance(each, Reduction)}
        if isinstance(op, Reduction) and known - {self._along(op)}:
            return False
        if isinstance(op, (memory.Load, memory.Store)):
            others = [x for x in self._waiting if isinstance(x, (memory.Load, memory.Store))]
            if any(self.writer.order.may_meet(each, op) for each in others):
                return False
        wanted = layout
        if isinstance(op, MOVES):
            wanted = source_of(op, layout).layout
        made = {result: each for each in self._waiting for result in each.results}
        return all(self._is_there(x, wanted, made) for x in op.operands)

    def _is_there(self, value: Value, layout: LinearLayout, made: dict[Value, Op]) -> bool:
        """Whether a trip finds what it wants of a tile."""
        pending = [(value, layout)]
        seen = set()
        while pending:
            value, layout = pending.pop()
            if (value, layout) in seen:
                continue
            seen.add((value, layout))
            if value in made:
                if isinstance(made[value], Reduction) or layout != self.writer.homes.home[value]:
                    return False
                continue
            op = value.defining_op
            if not value.shape or op is None or value in self.writer.homes.home:
                continue
            if isinstance(op, MOVES) and op.x.shape:
                pending.append((op.x, source_of(op, layout).layout))
            else:
                pending += [(operand, layout) for operand in op.operands]
        return True

    def _along(self, op: Op) -> tuple[int, ...]:
        """The bits of the trip that count along a reduction's axis."""
        layout, axis = self.writer.homes.operands[op], op.attributes["axis"]
        bases = enumerate(layout.bases(TRIP))
        return tuple(bit for bit, basis in bases if layout.unpack(basis)[axis])

    # Local memory.

    def keep(self, value: Value, held: Held) -> None:
        """Store what a trip, or all of them, has of a tile, for later loops."""
        if in_trips(held.layout):
            self.writer.elements.hold(held, value)
        layout, columns = whole(held.layout)
        slot = self._slot(value, layout)
        for register, element in enumerate(held.registers):
            stored = zero(slot.type) if element is None else element
            self._store(slot, register, columns, stored)

    def read(self, value: Value, layout: LinearLayout, register: int) -> V:
        """What a register has of a tile in the trip that is being written."""
        elements = self.writer.elements
        full, columns = whole(layout)
        held = elements.held.get((value, full))
        if held is not None and len(held.registers) == 1 and held.registers[0] is not None:
            return held.registers[0]
        return self._load(self._slot(value, full), register, columns)

    def all_of(self, value: Value, layout: LinearLayout) -> list[V]:
        """Every register of a tile in memory."""
        slot = self._slot(value, layout)
        return [self._load(slot, each, ()) for each in range(layout.input_extent(REGISTER))]

    def _load(self, slot: _Slot, register: int, columns: Sequence[int]) -> V:
        place = self._place(slot, register, columns)
        return self.writer.b.load(slot.type, place, align=_size(slot.type))

    def _store(self, slot: _Slot, register: int, columns: Sequence[int], value: V) -> None:
        place = self._place(slot, register, columns)
        self.writer.b.store(value, place, align=_size(slot.type))

    def _slot(self, value: Value, layout: LinearLayout) -> _Slot:
        slot = self._slots.get((value, layout))
        if slot is None:
            type_ = register_type(value.scalar)
            held = array(memory_type(type_), layout.input_extent(REGISTER))
            address = self.writer.b.alloca(held, align=max(4, _size(type_)))
            slot = self._slots[value, layout] = _Slot(address, type_)
        return slot

    def _place(self, slot: _Slot, register: int, columns: Sequence[int]) -> V:
        b, size = self.writer.b, _size(slot.type)
        address = slot.address
        if any(columns):
            index = self.writer.positions.of_trip(tuple(columns))
            index = b.xor(index, const(i32, register))
            return b.gep(address, b.zext(b.mul(index, const(i32, size)), i64))
        return b.gep(address, register * size)

    # What control flow carries.

    def copy(self, sources: Sequence[Value], targets: Sequence[Value]) -> None:
        """Give tiles that are in memory new contents, all at once."""
        homes = self.writer.homes.home
        pairs: dict[int, list[tuple[Value, Value]]] = {}
        for source, target in zip(sources, targets, strict=True):
            if in_trips(homes.get(target)):
                pairs.setdefault(len(homes[target].bases(TRIP)), []).append((source, target))
        for bits, found in pairs.items():
            with self._each(bits):
                tiles = [self.writer.elements.tile(x, homes[target]) for x, target in found]
                for tile, (_, target) in zip(tiles, found, strict=True):
                    self.keep(target, tile)

    def same(self, new: Value, old: Value) -> None:
        """A tile in memory has a further name from here on."""
        layout = whole(self.writer.homes.home[old])[0]
        self._slots[new, layout] = self._slot(old, layout)
        self.converted(new)

    @contextmanager
    def _each(self, bits: int) -> Iterator[V]:
        """A loop over trips, or chunks; yields their number."""
        writer, elements = self.writer, self.writer.elements
        scope, held, b = elements.scope, dict(elements.held), writer.b
        entered = b.block
        loop = b.loop_open(const(i32, 0), const(i32, 1 << bits))
        scope.builder = Builder(entered)
        writer.shared.loop_begins()
        writer.positions.trip(loop.index, Builder(b.block))
        elements.in_trip = {}
        yield loop.index
        writer.shared.loop_ends()
        loop.next([])
        loop.close(b)
        writer.positions.trip(None, b)
        elements.in_trip, elements.held = {}, held
        scope.builder = b

    # Loops.

    def close(self) -> None:
        """Write the loop of the operations that are waiting."""
        ops, self._waiting = self._waiting, []
        if ops:
            _Loop(self.writer, ops, self).write()
            for result in (result for op in ops for result in op.results):
                self.converted(result)

    def converted(self, value: Value) -> None:
        """A tile is converted in memory to where else it is wanted."""
        homes = self.writer.homes
        home = homes.home.get(value)
        if home is None or not in_trips(home):
            return
        for layout in homes.wanted.get(value, ()):
            self._move(value, whole(home)[0], layout)
            if layout not in homes.indexed.get(value, ()):
                held = Held(value.type, layout, tuple(self.all_of(value, layout)))
                self.writer.elements.hold(held, value)

    def _move(self, value: Value, source: LinearLayout, target: LinearLayout) -> None:
        plan = chunks(source, target)
        old, new = self._slot(value, source), self._slot(value, target)
        with self._each(plan.bits):
            type_ = shaped(value.scalar, plan.source.layout.shape)
            found = [self._load(old, each, plan.source.columns) for each in plan.source.registers]
            held = Held(type_, plan.source.layout, tuple(found))
            moved = convert(self.writer, held, plan.target.layout)
            for register, element in zip(plan.target.registers, moved.registers, strict=True):
                assert element is not None
                self._store(new, register, plan.target.columns, element)


def _size(type_: LType) -> int:
    return 8 if type_.is_pointer else memory_type(type_).bits // 8


class _Loop:
    """The loop, or the two, in which some operations are done trip after trip."""

    def __init__(self, writer: Writer, ops: Sequence[Op], trips: Trips) -> None:
        self.writer = writer
        self.ops = ops
        self.trips = trips
        self.reductions: list[Op] = [op for op in ops if isinstance(op, Reduction)]
        layout = trips._layout(ops[0])
        assert layout is not None
        every = range(len(layout.bases(TRIP)))
        along = trips._along(self.reductions[0]) if self.reductions else ()
        self.inner = along
        self.outer = tuple(bit for bit in every if bit not in along)
        self.index: V | None = None
        """Of the loop along the axis of reductions."""
        self.folds: dict[Op, Fold] = {
            op: self._fold(op, writer.homes.operands[op]) for op in self.reductions
        }

    def _fold(self, op: Op, layout: LinearLayout) -> Fold:
        return Fold(self.writer, op, [x.type for x in op.operands], layout)

    def write(self) -> None:
        """Write everything: the loops, and what is left of reductions after them."""
        writer, elements = self.writer, self.writer.elements
        scope, held = elements.scope, dict(elements.held)
        entered = writer.b.block
        loops: list[Loop] = []
        starts = [value for op in self.reductions for value in self._start(op)]
        if self.outer:
            loops.append(writer.b.loop_open(const(i32, 0), const(i32, 1 << len(self.outer))))
        scope.builder = Builder(entered)
        writer.shared.loop_begins()
        number = self._number(loops, self.outer)
        if self.inner:
            count = const(i32, 1 << len(self.inner))
            inner = writer.b.loop_open(const(i32, 0), count, carried=starts)
            self.index = inner.index
            here = writer.b.or_(number, self._number([inner], self.inner))
            inner.next(self._body(here, inner.carried))
            inner.close(writer.b)
            ends = inner.results
        else:
            ends = self._body(number, starts)
        if self.outer:
            writer.positions.trip(number, writer.b)
            for op in self.reductions:
                self._keep_part(op, self._own(op, ends))
        writer.shared.loop_ends()
        for loop in loops:
            loop.next([])
            loop.close(writer.b)
        writer.positions.trip(None, writer.b)
        elements.in_trip = {}
        elements.held = held
        scope.builder = writer.b
        for op in self.reductions:
            self._finish(op, self._own(op, ends))

    def _number(self, loops: Sequence[Loop], bits: Sequence[int]) -> V:
        """The bits of the trip that a loop counts, at their places."""
        total = const(i32, 0)
        b = self.writer.b
        for loop in loops:
            for position, bit in enumerate(bits):
                part = b.and_(b.lshr(loop.index, const(i32, position)), const(i32, 1))
                total = b.or_(total, b.shl(part, const(i32, bit)))
        return total

    def _body(self, number: V, carried: Sequence[V]) -> list[V]:
        """One trip of all operations. Returns the partial results that are carried on."""
        writer = self.writer
        writer.positions.trip(number, Builder(writer.b.block))
        writer.elements.in_trip = {}
        writer.shared.loop_begins()
        made: list[V] = []
        for op in self.ops:
            if isinstance(op, Reduction):
                made += self._step(op, self._own(op, carried))
            else:
                writer.op(op)
        writer.shared.loop_ends()
        return made

    # Reductions.

    def _start(self, op: Op) -> list[V]:
        fold = self.folds[op]
        # Of a user's function the first trip's results are taken as they are.
        nothing = [zero(register_type(x.scalar)) for x in op.operands]
        return (fold.combine.neutral() or nothing) * len(fold.groups)

    def _own(self, op: Op, values: Sequence[V]) -> list[V]:
        """What is an operation's of the partial results of all: for each register of its results
        a value of each."""
        at = 0
        for each in self.reductions:
            count = len(self.folds[each].groups) * len(each.operands)
            if each is op:
                return list(values[at : at + count])
            at += count
        raise InternalError("a reduction that isn't in the loop")

    def _step(self, op: Op, before: Sequence[V]) -> list[V]:
        fold, b = self.folds[op], self.writer.b
        tiles = [self.writer.elements.tile(x, fold.layout) for x in op.operands]
        parts = _parts(fold, before)
        if fold.combine.neutral() is not None:
            return _values(fold.step(parts, tiles), before)
        found = fold.step(None, tiles)
        alone = _values(found, before)
        if self.index is None:
            return alone
        first = b.icmp("eq", self.index, const(i32, 0))
        merged = _values([fold._merged(*pair) for pair in zip(parts, found, strict=True)], before)
        return [b.select(first, one, more) for one, more in zip(alone, merged, strict=True)]

    def _part(self, op: Op, values: Sequence[V]) -> list[Held | V]:
        """The results of the trips of one turn of the outer loop, or of all where there is none."""
        layout, axis = self.folds[op].layout, op.attributes["axis"]
        trips = layout.bases(TRIP)
        short = layout.keep_inputs(layout.input_names[:-1])
        small = part(short, [trips[bit] for bit in self.outer])
        shape = small.shape
        shape = (*shape[:axis], op.operands[0].shape[axis], *shape[axis + 1 :])
        types = [shaped(x.scalar, shape) for x in op.operands]
        fold = Fold(self.writer, op, types, small)
        pairs = zip(_parts(fold, values), _present(fold), strict=True)
        return fold.finish([each if here else None for each, here in pairs])

    def _keep_part(self, op: Op, values: Sequence[V]) -> None:
        """What the trips along the axis gave of one part of the results goes to memory."""
        layout = shapes.slice_axis(self.folds[op].layout, op.attributes["axis"])
        for result, made in zip(op.results, self._part(op, values), strict=True):
            registers = made.registers if isinstance(made, Held) else (made,)
            self.trips.keep(result, Held(result.type, layout, registers))

    def _finish(self, op: Op, values: Sequence[V]) -> None:
        """The results, from what is in registers or, of several parts, in memory."""
        writer = self.writer
        if not self.outer:
            for result, made in zip(op.results, self._part(op, values), strict=True):
                writer.result(result, made)
        elif not in_trips(writer.homes.home[op.results[0]]):
            layout = whole(shapes.slice_axis(self.folds[op].layout, op.attributes["axis"]))[0]
            for result in op.results:
                registers = tuple(self.trips.all_of(result, layout))
                writer.result(result, Held(result.type, layout, registers))


def _parts(fold: Fold, values: Sequence[V]) -> list[Part | None]:
    """Partial results from the values of all inputs, register by register."""
    width = len(fold.types)
    starts = range(0, width * len(fold.groups), width)
    return [Part(list(values[at : at + width])) for at in starts]


def _values(parts: Sequence[Part | None], before: Sequence[V]) -> list[V]:
    """The values of partial results; as before where there is none."""
    width = len(before) // len(parts)
    made: list[V] = []
    for number, each in enumerate(parts):
        made += before[number * width : (number + 1) * width] if each is None else each.values
    return made


def _present(fold: Fold) -> list[bool]:
    """Whether any thread has an element for each register of the results."""
    kept = holdings(fold.types[0].shape, fold.layout)
    return [any(kept[each] is not Holding.PADDING for each in group) for group in fold.groups]
