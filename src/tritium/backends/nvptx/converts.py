"""Moves a tile from one layout to another, as ``layouts.plan_conversion`` says."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tritium.backends.common.rules import register_type
from tritium.backends.emit import V, const, i32, zero
from tritium.ir.dtypes import Type

from . import carriers
from .layouts import (
    LANE,
    REGISTER,
    WARP,
    Exchange,
    Holding,
    LinearLayout,
    Rename,
    Scope,
    SharedAccess,
    Shuffle,
    ThroughShared,
    plan_conversion,
    split_offsets,
)
from .layouts.banks import ROW_BYTES
from .positions import holdings
from .values import Held

if TYPE_CHECKING:
    from .kernel import Writer
    from .shared import Scratch

EVERY_LANE = -1
LAST_LANE = 31
LANE_BITS = 5
Registers = list[V | None]


def convert(writer: Writer, held: Held, target: LinearLayout) -> Held:
    """The tile in another layout of its physical shape. Where it moves, code is written here."""
    return convert_together(writer, [held], target)[0]


def convert_together(writer: Writer, tiles: Sequence[Held], target: LinearLayout) -> list[Held]:
    """Tiles of one shape and layout in another one; what goes through shared memory waits once."""
    if tiles[0].layout == target:
        return list(tiles)
    limit = writer.shared.limit
    moved: list[Held] = []
    stored: list[tuple[Held, ThroughShared]] = []
    for held in tiles:
        plan = plan_conversion(held.layout, target, 8 * held.type.scalar.itemsize, limit)
        if isinstance(plan, ThroughShared):
            stored.append((held, plan))
    through = dict(zip([id(held) for held, _ in stored], _through_shared(writer, stored, target)))
    for held in tiles:
        plan = plan_conversion(held.layout, target, 8 * held.type.scalar.itemsize, limit)
        if isinstance(plan, Rename):
            made: Registers = [held.registers[source] for source in plan.sources]
        elif isinstance(plan, Shuffle):
            made = _shuffle(writer, plan, held)
        else:
            made = through[id(held)]
        kept = holdings(held.type.shape, target)
        registers = (None if h is Holding.PADDING else v for v, h in zip(made, kept, strict=True))
        moved.append(Held(held.type, target, tuple(registers)))
    return moved


# ---- inside warps --------------------------------------------------------------------------------


def shuffle_by_index(writer: Writer, word: V, lane: V) -> V:
    """What the lane of that number gives, of an i32 or float."""
    return _shuffled(writer, "idx", word, lane)


def shuffle_by_butterfly(writer: Writer, word: V, distance: int) -> V:
    """What the lane whose number differs in those bits gives, of an i32 or float."""
    return _shuffled(writer, "bfly", word, const(i32, distance))


def _shuffled(writer: Writer, mode: str, word: V, lane: V) -> V:
    suffix = "f32" if word.type.is_float else "i32"
    operands = (const(i32, EVERY_LANE), word, lane, const(i32, LAST_LANE))
    return writer.b.intrinsic(f"nvvm.shfl.sync.{mode}.{suffix}", operands, word.type, ())


def is_set(writer: Writer, lanes: int, warps: int) -> V:
    """Whether an odd number of those bits is set in the thread's lane and warp (i1)."""
    mask = lanes | warps << LANE_BITS
    bases = tuple(mask >> bit & 1 for bit in range(mask.bit_length()))
    parity = writer.positions.part(_padded(writer, bases))
    return writer.b.icmp("ne", parity, zero(i32))


def _padded(writer: Writer, bases: tuple[int, ...]) -> tuple[int, ...]:
    """Bases for every bit of a thread's number; those that aren't given are 0."""
    return bases + (0,) * (LANE_BITS + (writer.num_warps - 1).bit_length() - len(bases))


def _shuffle(writer: Writer, plan: Shuffle, held: Held) -> Registers:
    b, type_ = writer.b, register_type(held.type.scalar)
    words = {
        number: carriers.pack(b, [held.registers[r] for r in registers], type_)
        for number, registers in enumerate(plan.sources)
    }
    words = _exchanged(writer, words, plan.before)
    received = {}
    for number, step in enumerate(plan.rounds):
        parts = words[step.published]
        if plan.moves(step):
            parts = [_move(writer, plan, part, step.lanes) for part in parts]
        received[number] = parts
    received = _exchanged(writer, received, plan.after)
    made: Registers = [None] * sum(map(len, plan.targets))
    for number, registers in enumerate(plan.targets):
        values = carriers.unpack(b, received[number], len(registers), type_)
        for register, value in zip(registers, values, strict=True):
            made[register] = value
    return made


def _move(writer: Writer, plan: Shuffle, word: V, lanes: int) -> V:
    if word.text == "poison":
        return word
    if plan.is_butterfly:
        return shuffle_by_butterfly(writer, word, lanes)
    bases = (plan.lanes + (0,) * (LANE_BITS - len(plan.lanes)))[:LANE_BITS] + plan.warps
    here = writer.positions.part(_padded(writer, bases))
    return shuffle_by_index(writer, word, writer.b.xor(here, const(i32, lanes)))


def _exchanged(
    writer: Writer, words: dict[int, list[V]], exchanges: Sequence[Exchange]
) -> dict[int, list[V]]:
    for exchange in exchanges:
        swaps = is_set(writer, exchange.lanes, exchange.warps)
        words = {
            w: [
                writer.b.select(swaps, there, here)
                for there, here in zip(words[w ^ exchange.words], words[w], strict=True)
            ]
            for w in exchange.kept
        }
    return words


# ---- through shared memory -----------------------------------------------------------------------


@dataclass(frozen=True)
class _Passage:
    """A tile on its way through shared memory: its plan, in how many passes, what it has become."""

    held: Held
    plan: ThroughShared
    passes: int
    made: Registers

    @property
    def size(self) -> int:
        """The bytes of one pass."""
        return self.plan.arrangement.bytes(self.passes)

    @property
    def own(self) -> bool:
        """Whether each warp loads what it stored itself."""
        return self.plan.scope is Scope.WARP

    def stores(self, writer: Writer, scratch: Scratch, number: int) -> None:
        """Write the stores of one pass."""
        type_ = register_type(self.held.type.scalar)
        store = self.plan.arrangement.store
        with only(writer, self.plan.idle_lanes, self.plan.idle_warps):
            for group, address in _accesses(writer, store, scratch, number, self.passes):
                values = [self.held.registers[register] for register in group]
                if any(value is not None for value in values):
                    carriers.store(writer.b, values, type_, address)

    def loads(self, writer: Writer, scratch: Scratch, number: int, target: LinearLayout) -> None:
        """Write the loads of one pass."""
        type_ = register_type(self.held.type.scalar)
        kept = holdings(self.held.type.shape, target)
        load = self.plan.arrangement.load
        for group, address in _accesses(writer, load, scratch, number, self.passes):
            if all(kept[register] is Holding.PADDING for register in group):
                continue
            values = carriers.load(writer.b, len(group), type_, address)
            for register, value in zip(group, values, strict=True):
                self.made[register] = value


def _through_shared(
    writer: Writer, tiles: Sequence[tuple[Held, ThroughShared]], target: LinearLayout
) -> list[Registers]:
    limit = writer.shared.limit
    passages = []
    for held, plan in tiles:
        arrangement = plan.arrangement
        passes = arrangement.passes_within(limit) or 1 << arrangement.repeatable
        passages.append(_Passage(held, plan, passes, [None] * target.input_extent(REGISTER)))
    groups = [[each] for each in passages]
    if sum(each.size for each in passages) <= limit and all(p.passes == 1 for p in passages):
        groups = [passages]
    for group in groups:
        _pass_through(writer, group, target)
    return [each.made for each in passages]


def _pass_through(writer: Writer, group: Sequence[_Passage], target: LinearLayout) -> None:
    """Tiles that lie in shared memory beside each other."""
    with ExitStack() as stack:
        memory = [
            stack.enter_context(writer.shared.scratch(each.size, ROW_BYTES)) for each in group
        ]
        for number in range(max((each.passes for each in group), default=0)):
            for each, scratch in zip(group, memory, strict=True):
                scratch.stores(own=each.own)
                each.stores(writer, scratch, number)
            for each, scratch in zip(group, memory, strict=True):
                scratch.loads(own=each.own)
                each.loads(writer, scratch, number, target)


@contextmanager
def only(writer: Writer, idle_lanes: int, idle_warps: int) -> Iterator[None]:
    """Code for threads that have none of those bits set in their lane and warp."""
    mask = idle_lanes | idle_warps << LANE_BITS
    if not mask:
        yield
        return
    b = writer.b
    idle = b.and_(writer.threads.thread, const(i32, mask))
    with b.when(b.icmp("eq", idle, zero(i32)), "first.copy"):
        yield


def _accesses(
    writer: Writer, side: SharedAccess, scratch: Scratch, number: int, passes: int
) -> Iterator[tuple[tuple[int, ...], V]]:
    """Registers and address of the accesses of one pass of a thread."""
    b, size = writer.b, side.element_bits // 8
    low = scratch.bytes // size
    bases = side.offsets.bases(LANE) + side.offsets.bases(WARP)
    thread = writer.positions.part(tuple(basis * size for basis in bases))
    splits = split_offsets(side.offsets, side.vectors)
    groups = side.vectors.groups
    for group, at, (flipped, added) in zip(groups, side.vectors.offsets, splits, strict=True):
        if passes == 1 or at // low == number:
            here = b.xor(thread, const(i32, flipped * size))
            address = b.gep(scratch.address, here, inbounds=True)
            yield group, b.gep(address, added % low * size, inbounds=True)


# ---- by logical index ----------------------------------------------------------------------------


Places = Callable[[int], tuple[V, V | None]]
"""For a register of the target the row-major place (i32) of its element in the source, and whether
it has one there (i1), None where every thread's has."""


def by_index(writer: Writer, held: Held, type: Type, target: LinearLayout) -> Held:
    """The elements in row-major order under another logical shape, in a layout of that."""

    def place(register: int) -> tuple[V, V | None]:
        here = row_major(writer, writer.coordinates(target, register), type.shape)
        return here, writer.inside(type, target, register)

    return by_place(writer, held, type, target, place)


def by_place(
    writer: Writer,
    held: Held,
    type: Type,
    target: LinearLayout,
    place: Places,
    old: Held | None = None,
) -> Held:
    """A tile in the target's layout whose elements are those of another one at given places.

    They go through shared memory one by one, in several passes where there isn't enough of it.
    Where there is no place an element is that of ``old``, or anything.
    """
    size = type.scalar.itemsize
    total = math.prod(held.type.shape)
    part = min(total, writer.shared.limit // size)
    kept = holdings(type.shape, target)
    made: Registers = [None] * target.input_extent(REGISTER)
    if old is not None:
        made = list(old.registers)
    with writer.shared.scratch(part * size) as scratch:
        for start in range(0, total, part):
            whole = part == total
            scratch.stores()
            _store_elements(writer, held, scratch, None if whole else start)
            scratch.loads()
            for register, holding in enumerate(kept):
                if holding is not Holding.PADDING:
                    at = place(register)
                    first = None if whole else start
                    made[register] = _load_element(writer, type, at, scratch, first, made[register])
    return Held(type, target, tuple(made))


def row_major(writer: Writer, coordinates: Sequence[V], shape: Sequence[int]) -> V:
    """The row-major index of a position in a tile of that shape."""
    b, total = writer.b, zero(i32)
    for here, extent in zip(coordinates, shape, strict=True):
        total = b.add(b.mul(total, const(i32, extent)), here)
    return total


def _store_elements(writer: Writer, held: Held, scratch: Scratch, start: int | None) -> None:
    size = held.type.scalar.itemsize
    type_ = register_type(held.type.scalar)
    with only(writer, held.layout.copies(LANE), held.layout.copies(WARP)):
        for register, value in enumerate(held.registers):
            if value is None:
                continue
            b = writer.b
            inside = writer.inside(held.type, held.layout, register)
            here = writer.coordinates(held.layout, register)
            index = row_major(writer, here, held.type.shape)
            if start is not None:
                index = b.sub(index, const(i32, start))
                within = b.icmp("ult", index, const(i32, scratch.bytes // size))
                inside = within if inside is None else b.and_(inside, within)
            address = b.gep(scratch.address, b.mul(index, const(i32, size)))
            with nullcontext() if inside is None else b.when(inside, "element"):
                carriers.store(b, [value], type_, address)


def _load_element(
    writer: Writer,
    type: Type,
    at: tuple[V, V | None],
    scratch: Scratch,
    start: int | None,
    old: V | None,
) -> V:
    b, size = writer.b, type.scalar.itemsize
    type_ = register_type(type.scalar)
    index, within = at
    if start is not None:
        index = b.sub(index, const(i32, start))
        here = b.icmp("ult", index, const(i32, scratch.bytes // size))
        within = here if within is None else b.and_(here, within)
    if within is not None:
        index = b.select(within, index, zero(i32))
    address = b.gep(scratch.address, b.mul(index, const(i32, size)))
    (loaded,) = carriers.load(b, 1, type_, address)
    return loaded if old is None or within is None else b.select(within, loaded, old)
