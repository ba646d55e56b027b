"""Elements of tiles: read from registers, or computed where they are wanted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from tritium.backends.emit import Builder, V, const, i32
from tritium.diagnostics import InternalError
from tritium.ir.core import Block, Op, Value
from tritium.ops import create

from .layouts import REGISTER, Holding, LinearLayout, in_trips
from .positions import constants, holdings, reach, thread_bases
from .sources import MOVES, source_of
from .values import GLOBAL, Held

if TYPE_CHECKING:
    from .kernel import Writer


class Place(NamedTuple):
    """One register of a tile in a layout; of a scalar, None and 0."""

    value: Value
    layout: LinearLayout | None
    register: int


@dataclass
class Scope:
    """A block of tile IR that is being written: where its code goes, and what it holds."""

    block: Block
    builder: Builder
    known: dict[Place, V] = field(default_factory=dict)


class Elements:
    """The elements of tiles, by register.

    A tile without a home is computed element by element, in the block where it is defined, when it
    is first wanted: outside of a loop that only reads it.
    """

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self.scopes: dict[Block, Scope] = {}
        self.scope: Scope
        """The innermost one."""
        self.held: dict[tuple[Value, LinearLayout], Held] = {}
        self.in_trip: dict[Place, V] = {}
        """What is known in the trip that is being written."""
        self._equal: dict[tuple[Value, LinearLayout], tuple[int, ...]] = {}
        self._steps: dict[tuple[Value, LinearLayout], tuple[tuple[int, int], ...]] = {}
        self._sources: dict[tuple[Op, LinearLayout], tuple[LinearLayout, tuple[int, ...]]] = {}

    # Scopes.

    def open(self, block: Block, builder: Builder) -> None:
        """Start writing a block of tile IR; ``builder`` moves along with its code."""
        self.scope = self.scopes[block] = Scope(block, builder)

    def close(self, block: Block, around: Scope) -> None:
        """End a block, inside of another: what it holds is no longer available."""
        del self.scopes[block]
        self.scope = around

    @contextmanager
    def apart(self) -> Iterator[None]:
        """What is computed meanwhile is written where the writer stands, and then forgotten."""
        kept = [(scope, scope.builder, scope.known) for scope in self.scopes.values()]
        for scope in self.scopes.values():
            scope.builder, scope.known = self.writer.b, dict(scope.known)
        in_trip, self.in_trip = self.in_trip, dict(self.in_trip)
        yield
        self.in_trip = in_trip
        for scope, builder, known in kept:
            scope.builder, scope.known = builder, known

    def scope_of(self, value: Value) -> Scope:
        """The scope a value is defined in."""
        owner = value.owner
        block = owner.parent if isinstance(owner, Op) else owner
        scope = self.scopes.get(block) if isinstance(block, Block) else None
        if scope is None:
            raise InternalError(f"{value} is not available here")
        return scope

    # Elements.

    def at(self, value: Value, layout: LinearLayout | None, register: int) -> V:
        """What a register of this thread holds of a tile in a layout."""
        place = self._first(Place(value, layout, register))
        found = self._find(place)
        return found if found is not None else self._chain(place)

    def hold(self, held: Held, value: Value) -> None:
        """A tile is in registers from here on."""
        self.held[value, held.layout] = held

    def tile(self, value: Value, layout: LinearLayout) -> Held:
        """A tile in a layout: as it is held, or computed there."""
        known = self.held.get((value, layout))
        if known is not None:
            return known
        kept = holdings(value.shape, layout)
        registers = tuple(
            None if kept[register] is Holding.PADDING else self.at(value, layout, register)
            for register in range(layout.input_extent(REGISTER))
        )
        return Held(value.type, layout, registers)

    def _find(self, place: Place) -> V | None:
        """An element that is there, None where it has to be computed."""
        value, layout, register = place
        if layout is None:
            return self.writer.scalars.get(value)
        held = self.held.get((value, layout))
        if held is not None:
            element = held.registers[register]
            if element is None:
                raise InternalError(f"register {register} of {value} is padding")
            return element
        if not in_trips(layout):
            return self.scope_of(value).known.get(place)
        if place not in self.in_trip and value in self.writer.homes.home:
            self.in_trip[place] = self.writer.trips.read(value, layout, register)
        return self.in_trip.get(place)

    def _first(self, place: Place) -> Place:
        """The first register that is known to have the same element, of a tile that is computed
        where it is wanted: a mask over 8 neighbours is one comparison."""
        value, layout, register = place
        if layout is None or value in self.writer.homes.home:
            return place
        equal = self._equal.get((value, layout))
        if equal is None:
            equal = self._equal[value, layout] = self._equal_registers(value, layout)
        return Place(value, layout, equal[register])

    def _equal_registers(self, value: Value, layout: LinearLayout) -> tuple[int, ...]:
        """For each register the first one of the same element, that of the lowest position."""
        groups = [axis.constancy for axis in self.writer.homes.facts.of(value).axes]
        if max(groups) == 1:
            return tuple(range(layout.input_extent(REGISTER)))
        masks = []
        for group, bases in zip(groups, thread_bases(layout), strict=True):
            touched = reach(bases)
            # Of registers that differ in bits which depend on the thread the lower isn't known.
            low = min(group, touched & -touched) if touched else group
            masks.append(-low)
        positions = constants(layout)
        blocks = [tuple(c & m for c, m in zip(at, masks, strict=True)) for at in positions]
        first: dict[tuple[int, ...], int] = {}
        for register in sorted(range(len(positions)), key=positions.__getitem__):
            first.setdefault(blocks[register], register)
        return tuple(first[block] for block in blocks)

    def address(self, pointers: Value, layout: LinearLayout, register: int) -> V:
        """As ``at``, of a tile of pointers: a known number of bytes behind another register's."""
        steps = self._steps.get((pointers, layout))
        if steps is None:
            steps = self._steps[pointers, layout] = self._known_steps(pointers, layout)
        first, distance = steps[register]
        start = self.writer.b.addrspacecast(self.at(pointers, layout, first), GLOBAL)
        return self.writer.b.gep(start, distance) if distance else start

    def _known_steps(self, value: Value, layout: LinearLayout) -> tuple[tuple[int, int], ...]:
        """For each register the first one whose element is a known number smaller, and that
        number: in one group of the facts, their distance the same in every thread."""
        axes = self.writer.homes.facts.of(value).axes
        masks = [
            ~(axis.group - 1 & ~reach(bases))
            for axis, bases in zip(axes, thread_bases(layout), strict=True)
        ]
        positions = constants(layout)
        first: dict[tuple[int, ...], int] = {}
        for register in sorted(range(len(positions)), key=positions.__getitem__):
            block = tuple(c & m for c, m in zip(positions[register], masks, strict=True))
            first.setdefault(block, register)
        made = []
        for at in positions:
            start = first[tuple(c & m for c, m in zip(at, masks, strict=True))]
            parts = zip(axes, at, positions[start], strict=True)
            made.append((start, sum(axis.stride * (c - low) for axis, c, low in parts)))
        return tuple(made)

    def _chain(self, place: Place) -> V:
        """As ``at``: operands before what is made of them, however long that chain is."""
        pending = [place]
        while True:
            place = pending[-1]
            found = self._find(place)
            if found is None:
                operands = [self._first(each) for each in self._made_of(place)]
                missing = [each for each in operands if self._find(each) is None]
                if missing:
                    pending.extend(reversed(missing))
                    continue
                found = self._compute(place, operands)
            pending.pop()
            if not pending:
                return found

    def _made_of(self, place: Place) -> list[Place]:
        """What an element is computed from."""
        value, layout, register = place
        op = value.defining_op
        if op is None or layout is None:
            raise InternalError(f"{value} is held nowhere")
        if isinstance(op, create.Splat):
            return [Place(op.x, None, 0)]
        if isinstance(op, MOVES):
            if not op.x.shape:
                return [Place(op.x, None, 0)]
            source = self._source(op, layout)
            return [Place(op.x, source[0], source[1][register])]
        return [Place(operand, layout, register) for operand in op.operands]

    def _source(self, op: Op, layout: LinearLayout) -> tuple[LinearLayout, tuple[int, ...]]:
        known = self._sources.get((op, layout))
        if known is None:
            source = source_of(op, layout)
            known = self._sources[op, layout] = (source.layout, source.registers)
        return known

    def _compute(self, place: Place, operands: list[Place]) -> V:
        value, layout, register = place
        op = value.defining_op
        assert op is not None
        assert layout is not None
        scope = self.scope_of(value)
        b, known = scope.builder, scope.known
        if in_trips(layout):
            b, known = self.writer.b, self.in_trip
        if isinstance(op, create.Arange):
            at = self.writer.positions.coordinate(b, layout, register, 0)
            made = b.add(at, const(i32, op.start))
        elif isinstance(op, (create.Splat, *MOVES)):
            made = self._known(operands[0])
        else:
            elements = [self._known(each) for each in operands]
            made = self.writer.apply(op, elements, b)
        known[place] = made
        return made

    def _known(self, place: Place) -> V:
        found = self._find(place)
        assert found is not None
        return found

    # Held results.

    def make(self, op: Op, layout: LinearLayout) -> Held:
        """The result of a pointwise operation, or of one that moves nothing, in a layout."""
        value = op.results[0]
        kept = holdings(value.shape, layout)
        registers: list[V | None] = []
        for register in range(layout.input_extent(REGISTER)):
            if kept[register] is Holding.PADDING:
                registers.append(None)
                continue
            places = self._made_of(Place(value, layout, register))
            elements = [self.at(*each) for each in places]
            moved = isinstance(op, MOVES)
            registers.append(elements[0] if moved else self.writer.again(op, elements))
        return Held(value.type, layout, tuple(registers))
