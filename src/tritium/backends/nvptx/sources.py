"""Where an operation that only moves elements finds them: which register of which layout."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from tritium.ir.core import Op
from tritium.ops.shape import Broadcast, ExpandDims, Reshape, Trans

from .layouts import REGISTER, Extents, LinearLayout, axis, f2, reshape_keeps_index, shapes

MOVES = (Broadcast, ExpandDims, Trans, Reshape)


@dataclass(frozen=True)
class Source:
    """The operand's layout in which every thread finds what it needs of the result, and for each
    register of the result the operand's."""

    layout: LinearLayout
    registers: tuple[int, ...]


def is_free(op: Op) -> bool:
    """Whether an operation of ``MOVES`` moves nothing between threads, whatever the layout."""
    if isinstance(op, Reshape) and op.x.shape and op.result.shape:
        return reshape_keeps_index(op.x.shape, op.result.shape)
    return isinstance(op, MOVES)


def source_of(op: Op, layout: LinearLayout) -> Source:
    """Where the operand's elements are when the result is in ``layout``; ``op`` is free."""
    assert isinstance(op, MOVES)
    shape = op.x.shape
    if isinstance(op, Broadcast):
        return _broadcast(layout, shape)
    if isinstance(op, ExpandDims):
        return _same(shapes.slice_axis(layout, op.axis))
    if isinstance(op, Trans):
        inverse = sorted(range(len(op.order)), key=op.order.__getitem__)
        return _same(shapes.transpose(layout, inverse))
    return _same(shapes.reshape(layout, Extents(shape).physical))


def result_layout(op: Op, layout: LinearLayout) -> LinearLayout:
    """The result's layout when the operand of a free operation, no broadcast, is in ``layout``."""
    if isinstance(op, ExpandDims):
        return shapes.expand_dims(layout, op.axis)
    if isinstance(op, Trans):
        return shapes.transpose(layout, op.order)
    assert isinstance(op, Reshape)
    return shapes.reshape(layout, Extents(op.result.shape).physical)


def _same(layout: LinearLayout) -> Source:
    return Source(layout, tuple(range(layout.input_extent(REGISTER))))


@lru_cache(maxsize=1024)
def _broadcast(layout: LinearLayout, shape: tuple[int, ...]) -> Source:
    """The operand has extent 1 along the axes that are repeated."""
    kept = {
        axis(number): min(have, extent)
        for number, (have, extent) in enumerate(
            zip(layout.shape, Extents(shape).physical, strict=True)
        )
    }
    narrow = LinearLayout((), tuple((name, kept[name].bit_length() - 1) for name in kept))
    inputs = []
    for name, bases in layout.inputs:
        cut = tuple(
            narrow.pack([c & (n - 1) for c, n in zip(layout.unpack(basis), narrow.shape)])
            for basis in bases
        )
        inputs.append((name, cut))
    held = f2.Span()
    chosen: list[int] = []
    registers = dict(inputs)[REGISTER]
    for basis in registers:
        if held.add(basis):
            chosen.append(basis)
    columns = []
    span = f2.Span(chosen)
    for basis in registers:
        _, combination = span.reduce(basis)
        columns.append(combination)
    made = LinearLayout(tuple(inputs), narrow.outputs).with_bases(REGISTER, chosen)
    return Source(made, f2.images(columns))
