"""Which loops wait for memory to change.

A program waits in a ``while`` loop whose end depends on what it polls: reads again in each pass, of
memory that another program may change. Volatile and atomic loads poll, and so does every other
atomic operation, with one exception: a loop over pieces of work, ``piece < n`` where each pass
takes the next ``piece`` by a sum of one sign, ends by itself, whatever other programs do. In doubt
a loop waits, which is right for all of them, and takes longer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from tritium.ir.core import ORDERED, READS, WRITES, Block, Function, Op, Value
from tritium.ir.dtypes import DType
from tritium.ops import atomic, compare, control, memory
from tritium.ops.cast import Convert
from tritium.ops.create import Constant
from tritium.ops.logic import And

from .origins import made_from, may_alias

_TOWARDS: dict[type[Op], int] = {compare.Lt: 1, compare.Le: 1, compare.Gt: -1, compare.Ge: -1}
"""The sign of the steps by which the left side of a comparison comes to its end."""
_LONGEST_STEP = 1 << 16
_NARROWEST = 32
"""Bits of a counter. A step beyond the largest number wraps; so few bits may be all below n."""


def waits(function: Function) -> bool:
    """Whether a program may wait for what others write."""
    return any(isinstance(op, control.While) and waits_in(op) for op in function.walk())


def waits_in(loop: control.While) -> bool:
    """Whether a loop may wait: its end depends, by data or by branches, on what it polls.

    What was polled may go through memory: a load that decides may read what a pass has stored.
    """
    inside = {op: None for part in loop.regions for op in part.walk()}
    polls = [op for op in inside if _polls(op)]
    if not polls:
        return False
    deciding = _deciding([x for x in _conjuncts(loop) if not _runs_out(x, loop, inside)])
    if not deciding.isdisjoint(result for op in polls for result in op.results):
        return True
    written: list[Any] = [op for op in inside if op.effects & WRITES]
    read: list[Any] = [op for op in inside if op.effects & READS and op.results[0] in deciding]
    return any(may_alias(x.pointer, y.pointer) for x in read for y in written)


def _polls(op: Op) -> bool:
    return op.is_fresh if isinstance(op, memory.Load) else isinstance(op, atomic.Atomic)


# ---- loops over pieces of work -------------------------------------------------------------------


def _conjuncts(loop: control.While) -> list[Value]:
    """What must hold, all of it, for another pass."""
    found: list[Value] = []
    pending = [*_condition(loop)]
    while pending:
        value = pending.pop()
        maker = value.defining_op
        if isinstance(maker, And):
            pending += maker.operands
        else:
            found.append(value)
    return found


def _runs_out(value: Value, loop: control.While, inside: Collection[Op]) -> bool:
    """Whether a condition is an order of the next piece and a bound, and false in the end."""
    maker = value.defining_op
    towards = _TOWARDS.get(type(maker), 0) if maker is not None else 0
    if maker is None or not towards:
        return False
    left, right = maker.operands
    if _stays(right, loop, inside):
        return _is_taken(left, towards, loop, inside)
    return _stays(left, loop, inside) and _is_taken(right, -towards, loop, inside)


def _is_taken(value: Value, sign: int, loop: control.While, inside: Collection[Op]) -> bool:
    """Whether each pass makes a value anew by a step of that sign of a counter in memory."""
    block = value.owner
    if isinstance(block, Block):
        end = loop.body.block.terminator
        if block is not loop.condition.block or end is None:
            return False
        # The comparison of the next pass takes what this one hands on.
        return _is_taken(end.operands[block.args.index(value)], sign, loop, inside)
    maker = value.defining_op
    if maker not in inside:
        return False
    if isinstance(maker, control.If):
        place = maker.results.index(value)
        ends = [branch.block.terminator for branch in (maker.then, maker.otherwise)]
        return all(
            end is not None and _is_taken(end.operands[place], sign, loop, inside) for end in ends
        )
    if isinstance(maker, Convert):
        return _keeps_values(maker) and _is_taken(maker.x, sign, loop, inside)
    if not isinstance(maker, atomic.Update) or _step(maker) * sign <= 0:
        return False
    written: list[Any] = [each for each in inside if each.effects & WRITES]
    others = [each for each in written if may_alias(each.pointer, maker.pointer)]
    return _stays(maker.pointer, loop, inside) and all(_step(each) * sign > 0 for each in others)


def _step(op: Op) -> int:
    """What an operation adds to a counter in memory each time; 0 where that can't be told."""
    if not isinstance(op, atomic.Update) or op.kind != "add" or op.mask is not None:
        return 0
    maker = op.value.defining_op
    while isinstance(maker, Convert):
        maker = maker.x.defining_op
    if not isinstance(maker, Constant) or op.value.type is not op.dtype:
        return 0
    if not op.dtype.is_int() or op.dtype.bits < _NARROWEST:
        return 0
    step = int(maker.value)
    if step != maker.value or abs(step) >= _LONGEST_STEP:
        return 0
    return step if step > 0 or op.dtype.is_int_signed() else 0


def _keeps_values(op: Convert) -> bool:
    """Whether a conversion of integers changes none."""
    old, new = op.x.type, op.results[0].type
    if not (isinstance(old, DType) and isinstance(new, DType) and old.is_int() and new.is_int()):
        return False
    if old.is_int_signed() == new.is_int_signed():
        return new.bits >= old.bits
    return new.is_int_signed() and new.bits > old.bits


def _stays(value: Value, loop: control.While, inside: Collection[Op]) -> bool:
    """Whether a value is the same in every pass."""
    block = value.owner
    if isinstance(block, Block):
        parent = block.parent_op
        return parent is not loop and parent not in inside
    maker = value.defining_op
    if maker is None or maker not in inside:
        return True
    if maker.regions or maker.effects & (READS | WRITES | ORDERED):
        return False
    return all(_stays(each, loop, inside) for each in maker.operands)


# ---- what decides --------------------------------------------------------------------------------


def _deciding(pending: list[Value]) -> set[Value]:
    """Every value that others depend on, by data or by branches.

    What is read depends on where it is read, and on the mask.
    """
    found: set[Value] = set()
    while pending:
        value = pending.pop()
        if value in found:
            continue
        found.add(value)
        pending.extend(made_from(value))
        maker = value.defining_op
        if maker is not None:
            pending.extend(_chosen_by(maker))
    return found


def _chosen_by(maker: Op) -> Iterator[Value]:
    """What decides which of the values that ``made_from`` gives comes out of an operation."""
    if isinstance(maker, control.If):
        yield maker.condition
    elif isinstance(maker, control.For):
        yield from (maker.lower, maker.upper, maker.step)
    elif isinstance(maker, control.While):
        yield from _condition(maker)
    elif maker.effects & READS:
        yield from maker.operands


def _condition(loop: control.While) -> tuple[Value, ...]:
    end = loop.condition.block.terminator
    return tuple(end.operands) if end is not None else ()
