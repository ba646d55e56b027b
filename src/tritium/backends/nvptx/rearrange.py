"""Slices, joined tiles, replaced parts, gathers: elements reach their places by shared memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tritium.backends.emit import V, const, i32, i64
from tritium.ir.core import Op, Value
from tritium.ops.rearrange import Cat, Gather, Slice, Update

from .converts import by_place, row_major
from .layouts import LinearLayout
from .values import Held

if TYPE_CHECKING:
    from .kernel import Writer

REARRANGE = (Slice, Cat, Update, Gather)


def in_result_layout(op: Op) -> tuple[Value, ...]:
    """The operands that are taken in the layout of the result; the others are taken anywhere."""
    if isinstance(op, Update):
        return (op.x,)
    return (op.index,) if isinstance(op, Gather) else ()


def rearrange(writer: Writer, op: Op, layout: LinearLayout) -> Held:
    """The result of an operation, in a layout."""
    if isinstance(op, Slice):
        return _slice(writer, op, layout)
    if isinstance(op, Cat):
        return _cat(writer, op, layout)
    if isinstance(op, Update):
        return _update(writer, op, layout)
    assert isinstance(op, Gather)
    return _gather(writer, op, layout)


def _both(writer: Writer, left: V | None, right: V | None) -> V | None:
    if left is None or right is None:
        return right if left is None else left
    return writer.b.and_(left, right)


def _slice(writer: Writer, op: Slice, layout: LinearLayout) -> Held:
    def place(register: int) -> tuple[V, V | None]:
        b = writer.b
        here = writer.coordinates(layout, register)
        there = [
            b.add(b.mul(c, const(i32, step)), const(i32, start))
            for c, start, step in zip(here, op.starts, op.steps, strict=True)
        ]
        inside = writer.inside(op.result.type, layout, register)
        return row_major(writer, there, op.x.shape), inside

    return by_place(writer, writer.somewhere(op.x), op.result.type, layout, place)


def _cat(writer: Writer, op: Cat, layout: LinearLayout) -> Held:
    middle, type_ = op.left.shape[op.axis], op.result.type

    def place(register: int, right: bool) -> tuple[V, V | None]:
        b = writer.b
        there = [*writer.coordinates(layout, register)]
        left = b.icmp("slt", there[op.axis], const(i32, middle))
        wanted = b.not_(left) if right else left
        if right:
            there[op.axis] = b.sub(there[op.axis], const(i32, middle))
        inside = writer.inside(type_, layout, register)
        shape = op.right.shape if right else op.left.shape
        return row_major(writer, there, shape), _both(writer, wanted, inside)

    first = by_place(
        writer, writer.somewhere(op.left), type_, layout, lambda register: place(register, False)
    )
    second = writer.somewhere(op.right)
    return by_place(writer, second, type_, layout, lambda register: place(register, True), first)


def _update(writer: Writer, op: Update, layout: LinearLayout) -> Held:
    def place(register: int) -> tuple[V, V | None]:
        b = writer.b
        there: list[V] = []
        within = writer.inside(op.result.type, layout, register)
        axes = zip(
            writer.coordinates(layout, register),
            op.starts,
            op.steps,
            op.value.shape,
            strict=True,
        )
        for c, start, step, count in axes:
            first, size = const(i32, start), const(i32, abs(step))
            # As an unsigned number what lies before the first place is far behind the last.
            distance = b.sub(c, first) if step > 0 else b.sub(first, c)
            there.append(b.udiv(distance, size))
            hit = b.icmp("ult", distance, const(i32, abs(step) * count))
            if abs(step) != 1:
                hit = b.and_(hit, b.icmp("eq", b.mul(there[-1], size), distance))
            within = _both(writer, within, hit)
        return row_major(writer, there, op.value.shape), within

    old = writer.elements.tile(op.x, layout)
    return by_place(writer, writer.somewhere(op.value), op.result.type, layout, place, old)


def _gather(writer: Writer, op: Gather, layout: LinearLayout) -> Held:
    index = writer.elements.tile(op.index, layout)

    def place(register: int) -> tuple[V, V | None]:
        given = index.registers[register]
        assert given is not None
        there = [*writer.coordinates(layout, register)]
        there[op.axis] = _limited(writer, op, given)
        inside = writer.inside(op.result.type, layout, register)
        return row_major(writer, there, op.x.shape), inside

    return by_place(writer, writer.somewhere(op.x), op.result.type, layout, place)


def _limited(writer: Writer, op: Gather, place: V) -> V:
    """A place as i32; one outside of the axis is moved to its end."""
    b, last = writer.b, op.x.shape[op.axis] - 1
    signed = op.index.scalar.is_int_signed()
    wide = i64 if place.type.bits == 64 else i32
    limited = b.int_cast(place, wide, signed=signed)
    if signed:
        limited = b.smin(b.smax(limited, const(wide, 0)), const(wide, last))
    else:
        limited = b.umin(limited, const(wide, last))
    return b.int_cast(limited, i32, signed=False)
