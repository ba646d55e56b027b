"""Loads and stores of the user's memory: vectors, masks, cache modifiers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tritium.backends.common.rules import register_type
from tritium.backends.emit import (
    LType,
    V,
    const,
    false,
    i1,
    i8,
    i16,
    i32,
    i64,
    int_,
    memory_type,
    zero,
)
from tritium.ir.types import element
from tritium.ops import memory

from .access import load_words, store_words
from .coalesce import Access
from .guards import Guard
from .layouts import LANE, REGISTER, THREADS_PER_WARP, WARP, Holding, LinearLayout
from .positions import holdings
from .values import GLOBAL, Held

if TYPE_CHECKING:
    from .kernel import Writer


def load_tile(writer: Writer, op: memory.Load) -> Held:
    """A load of a tile, in its own layout."""
    access = writer.homes.accesses[op]
    layout = access.layout
    kept = holdings(op.pointer.shape, layout)
    scalar = element(op.pointer.type)
    registers: list[V | None] = [None] * layout.input_extent(REGISTER)
    first_copy = _first_copy(writer, layout) if op.is_fresh else None
    plan = []
    for group in _held(access, kept):
        address = writer.elements.address(op.pointer, layout, group[0])
        plan.append((group, address, _both(writer, first_copy, _predicate(writer, op, group))))
    for group, address, predicate in plan:
        others = [_other(writer, op, layout, register) for register in group]
        loaded = load(writer, op, register_type(scalar), address, predicate, others)
        for register, each in zip(group, loaded, strict=True):
            registers[register] = each
    if access.guard is not None:
        _load_edges(writer, op, _held(access, kept), registers)
    if first_copy is not None:
        registers = _handed_over(writer, layout, registers)
    return Held(op.result.type, layout, tuple(registers))


def store_tile(writer: Writer, op: memory.Store) -> None:
    """A store of a tile, each element by one thread."""
    access = writer.homes.accesses[op]
    layout = access.layout
    groups = _held(access, holdings(op.pointer.shape, layout))
    first_copy = _first_copy(writer, layout)
    for group in groups:
        address = writer.elements.address(op.pointer, layout, group[0])
        predicate = _both(writer, first_copy, _predicate(writer, op, group))
        values = [writer.elements.at(op.value, layout, register) for register in group]
        store(writer, op, values, address, predicate)
    if access.guard is not None:
        _store_edges(writer, op, groups, first_copy)


def _held(access: Access, kept: Sequence[Holding]) -> list[tuple[int, ...]]:
    """The vectors that hold elements, by their registers."""
    return [
        group
        for group in access.vectors.groups
        if any(kept[register] is not Holding.PADDING for register in group)
    ]


def load_scalar(writer: Writer, op: memory.Load) -> V:
    """A load of one element, by every thread; a volatile one by one thread for all."""
    scalars = writer.scalars
    address = writer.b.addrspacecast(scalars[op.pointer], GLOBAL)
    mask = scalars[op.mask] if op.mask is not None else None
    type_ = register_type(element(op.pointer.type))
    other = scalars[op.other] if op.other is not None else zero(type_)
    if op.is_fresh:
        # Threads must not see different values of what changes meanwhile.
        return _by_one_thread(writer, op, type_, address, mask, other)
    return load(writer, op, type_, address, mask, [other])[0]


def store_scalar(writer: Writer, op: memory.Store) -> None:
    """A store of one element, by one thread."""
    address = writer.b.addrspacecast(writer.scalars[op.pointer], GLOBAL)
    mask = writer.scalars[op.mask] if op.mask is not None else None
    first = writer.b.icmp("eq", writer.threads.thread, const(i32, 0))
    store(writer, op, [writer.scalars[op.value]], address, _both(writer, first, mask))


def _by_one_thread(
    writer: Writer, op: memory.Load, type_: LType, address: V, mask: V | None, other: V
) -> V:
    """A load that the block's first thread does."""
    first = writer.b.icmp("eq", writer.threads.thread, const(i32, 0))
    (loaded,) = load(writer, op, type_, address, _both(writer, first, mask), [other])
    return writer.shared.broadcast(loaded)


# ---- addresses and masks -------------------------------------------------------------------------


def _predicate(writer: Writer, op: memory.Load | memory.Store, group: Sequence[int]) -> V | None:
    """Whether a vector is moved as one; None: always."""
    access = writer.homes.accesses[op]
    layout = access.layout
    inside = writer.inside(op.pointer.type, layout, group[0])
    if op.mask is None:
        return inside
    decides = {None: group[:1], Guard.LAST: group[-1:], Guard.ENDS: (group[0], group[-1])}
    for register in decides[access.guard]:
        inside = _both(writer, inside, writer.elements.at(op.mask, layout, register))
    return inside


# ---- vectors that are moved only in part ---------------------------------------------------------


def _has_edges(
    writer: Writer, op: memory.Load | memory.Store, groups: Sequence[Sequence[int]]
) -> V:
    """Whether a vector of this thread may have some elements to move, but not all."""
    assert op.mask is not None
    access, b = writer.homes.accesses[op], writer.b
    found = false
    for group in groups:
        whole = _predicate(writer, op, group)
        assert whole is not None
        edge = b.not_(whole)
        if access.guard is Guard.LAST:
            edge = b.and_(edge, writer.elements.at(op.mask, access.layout, group[0]))
        found = b.or_(found, edge)
    return found


def _single(writer: Writer, op: memory.Load | memory.Store, register: int) -> V | None:
    """Whether one element is moved."""
    layout = writer.homes.accesses[op].layout
    inside = writer.inside(op.pointer.type, layout, register)
    assert op.mask is not None
    return _both(writer, inside, writer.elements.at(op.mask, layout, register))


def _load_edges(
    writer: Writer,
    op: memory.Load,
    groups: Sequence[Sequence[int]],
    registers: list[V | None],
) -> None:
    """Load what no whole vector has, into ``registers``."""
    b, layout = writer.b, writer.homes.accesses[op].layout
    made: dict[int, V] = {}
    with b.when(_has_edges(writer, op, groups), "edges") as before, writer.elements.apart():
        for register in (register for group in groups for register in group):
            known = registers[register]
            assert known is not None
            address = writer.elements.address(op.pointer, layout, register)
            predicate = _single(writer, op, register)
            (made[register],) = load(writer, op, known.type, address, predicate, [known])
        after = b.block
    for register, value in made.items():
        known = registers[register]
        assert known is not None
        registers[register] = b.phi(value.type, "", [(known, before), (value, after)])


def _store_edges(
    writer: Writer,
    op: memory.Store,
    groups: Sequence[Sequence[int]],
    first_copy: V | None,
) -> None:
    """Store what no whole vector has."""
    b, layout = writer.b, writer.homes.accesses[op].layout
    some = _both(writer, first_copy, _has_edges(writer, op, groups))
    assert some is not None
    with b.when(some, "edges"), writer.elements.apart():
        for register in (register for group in groups for register in group):
            address = writer.elements.address(op.pointer, layout, register)
            value = writer.elements.at(op.value, layout, register)
            store(writer, op, [value], address, _single(writer, op, register))


def _both(writer: Writer, left: V | None, right: V | None) -> V | None:
    if left is None or right is None:
        return right if left is None else left
    return writer.b.and_(left, right)


def _copies(layout: LinearLayout) -> int:
    """The bits of a thread's number that don't matter to what it holds."""
    return layout.copies(LANE) | layout.copies(WARP) << layout.input_bits(LANE)


def _handed_over(
    writer: Writer, layout: LinearLayout, registers: Sequence[V | None]
) -> list[V | None]:
    """What the first thread of those that hold the same elements has, for all of them."""
    b = writer.b
    held = [value for value in registers if value is not None]
    size = max(8, memory_type(held[0].type).bits) // 8 if not held[0].type.is_pointer else 8
    threads = writer.num_warps * THREADS_PER_WARP
    thread = writer.threads.thread
    owner = b.and_(thread, const(i32, threads - 1 - _copies(layout)))
    with writer.shared.scratch(size * threads * len(held)) as scratch:
        own, first = (b.mul(each, const(i32, size * len(held))) for each in (thread, owner))
        scratch.stores()
        for number, value in enumerate(held):
            b.store(value, b.gep(b.gep(scratch.address, own), size * number), align=size)
        scratch.loads()
        parts = iter(
            [
                b.load(value.type, b.gep(b.gep(scratch.address, first), size * number), align=size)
                for number, value in enumerate(held)
            ]
        )
    return [None if value is None else next(parts) for value in registers]


def _first_copy(writer: Writer, layout: LinearLayout) -> V | None:
    """Whether this thread is the first of those that hold the same elements; None: all are."""
    copies = _copies(layout)
    if not copies:
        return None
    b = writer.b
    return b.icmp("eq", b.and_(writer.threads.thread, const(i32, copies)), const(i32, 0))


def _other(writer: Writer, op: memory.Load, layout: LinearLayout, register: int) -> V:
    if op.other is None:
        return zero(register_type(element(op.pointer.type)))
    return writer.elements.at(op.other, layout, register)


# ---- accesses ------------------------------------------------------------------------------------


def load(
    writer: Writer,
    op: memory.Load,
    type_: LType,
    address: V,
    predicate: V | None,
    others: Sequence[V],
) -> list[V]:
    """As many neighbours as there are ``others``, which they are where the predicate fails."""
    if predicate is not None and predicate.integer is not None:
        if not predicate.integer:
            return list(others)
        predicate = None
    moved = _moved_as(type_)
    if predicate is None or not op.volatile:
        kept = others if predicate is None else [_to_memory(writer, other) for other in others]
        got = load_words(writer, op, moved, address, kept, predicate)
        return [_from_memory(writer, each, type_) for each in got]
    b = writer.b
    with b.when(predicate, "load") as before:
        got = load_words(writer, op, moved, address, others)
        made = [_from_memory(writer, each, type_) for each in got]
        after = b.block
    return [
        b.phi(type_, "", [(other, before), (new, after)])
        for other, new in zip(others, made, strict=True)
    ]


def store(
    writer: Writer, op: memory.Store, values: Sequence[V], address: V, predicate: V | None
) -> None:
    """Store neighbours where the predicate holds."""
    if predicate is not None and predicate.integer is not None:
        if not predicate.integer:
            return
        predicate = None
    parts = [_to_memory(writer, value) for value in values]
    store_words(writer, op, parts, address, predicate)


def _moved_as(type_: LType) -> LType:
    """The type of an element in memory: bytes for i1, integers for pointers."""
    if type_.is_pointer:
        return i64
    moved = memory_type(type_)
    return moved if moved.is_int or moved.bits >= 32 else int_(moved.bits)


def _from_memory(writer: Writer, moved: V, type_: LType) -> V:
    b = writer.b
    if moved.type is type_:
        return moved
    if type_ is i1:
        return b.icmp("ne", moved, zero(i8))
    return b.inttoptr(moved, type_) if type_.is_pointer else b.bitcast(moved, type_)


def _to_memory(writer: Writer, value: V) -> V:
    b = writer.b
    moved = _moved_as(value.type)
    if moved is value.type:
        return value
    if value.text == zero(value.type).text:
        return zero(moved)
    if value.type is i1:
        return b.zext(value, i8)
    return b.ptrtoint(value, moved) if value.type.is_pointer else b.bitcast(value, i16)
