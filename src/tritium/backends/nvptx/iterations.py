"""Accesses of a loop that never lead to what another iteration of it leads to."""

from __future__ import annotations

from tritium.ir.core import Block, Op, Value
from tritium.ir.types import element
from tritium.ops import arith
from tritium.ops.control import For
from tritium.ops.create import Splat
from tritium.ops.hints import Promise
from tritium.ops.memory import Offset
from tritium.ops.shape import Broadcast, ExpandDims
from tritium.passes.facts import Facts

_SAME = (Splat, Broadcast, ExpandDims, Promise)
"""Operations whose elements are those of their operand ``x``."""

_MOST_BITS = 32
"""Offsets of as many bits are multiplied by the size of an element without wrapping."""


def is_apart(pointer: Value, loop: Op | None, facts: Facts) -> bool:
    """Whether a tile of pointers (or one) leads elsewhere in each iteration of a loop around it.

    It does where the loop's counter is added once to what doesn't change in the loop, and a step
    is at least as long as all that the tile spans. Modulo the offset's width two counters are as
    far apart the other way round, too.
    """
    offset = _moving(pointer, loop) if isinstance(loop, For) else None
    if offset is None:
        return False
    assert isinstance(loop, For)
    counter = facts.of(loop.body.args[0]).range
    step = facts.of(loop.step).number
    bits = offset.offset.scalar.primitive_bitwidth
    span = facts.of(pointer).span(pointer.shape, element(pointer.type).itemsize)
    if counter is None or not step or span is None or bits > _MOST_BITS:
        return False
    nearest = min(abs(step), (1 << bits) - (counter[1] - counter[0]))
    return nearest * element(offset.pointer.type).itemsize >= span


def _moving(pointer: Value, loop: For) -> Offset | None:
    """The one offset by which a pointer moves with a loop's counter; None where it isn't so."""
    while True:
        op = pointer.defining_op
        if isinstance(op, _SAME):
            pointer = op.x
        elif not isinstance(op, Offset):
            return None
        elif _is_fixed(op.offset, loop):
            pointer = op.pointer
        else:
            return op if _is_fixed(op.pointer, loop) and _counts(op.offset, loop) else None


def _counts(value: Value, loop: For) -> bool:
    """Whether an integer is the loop's counter plus what doesn't change in the loop."""
    if value is loop.body.args[0]:
        return True
    op = value.defining_op
    if isinstance(op, _SAME):
        return _counts(op.x, loop)
    if isinstance(op, arith.Add):
        x, y = (op.y, op.x) if _is_fixed(op.x, loop) else (op.x, op.y)
        return _is_fixed(y, loop) and _counts(x, loop)
    return False


def _is_fixed(value: Value, loop: For) -> bool:
    """Whether a value is the same in all iterations of a loop."""
    op = value.defining_op
    block = value.owner if op is None else op.parent
    if not _is_inside(block, loop):
        return True
    if op is None or op.effects or op.regions:
        return False
    return all(_is_fixed(operand, loop) for operand in op.operands)


def _is_inside(block: object, loop: For) -> bool:
    while isinstance(block, Block) and block.parent_op is not None:
        if block.parent_op is loop:
            return True
        block = block.parent_op.parent
    return False
