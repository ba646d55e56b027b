"""Which loops wait for memory to change.

A program waits in a ``while`` loop whose end depends on what it polls: reads again in each pass, of
memory that nobody has to change. A volatile or atomic load polls, and so does an atomic operation
that may leave memory as it is: a comparison that fails, ``or`` of bits that are set, an exchange of
equals. A sum of an integer that is never 0 does not: each pass takes the next number, so a loop
over pieces of work ends by itself, whatever other programs do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from tritium.ir.core import READS, WRITES, Function, Op, Value
from tritium.ops import atomic, control, create, memory
from tritium.ops.cast import Convert

from .origins import made_from, may_alias


def waits(function: Function) -> bool:
    """Whether a program may wait for what others write."""
    return any(isinstance(op, control.While) and waits_in(op) for op in function.walk())


def waits_in(loop: control.While) -> bool:
    """Whether a loop may wait: its end depends, by data or by branches, on what it polls."""
    inside = [op for part in loop.regions for op in part.walk()]
    read = [result for op in inside if _polls(op, inside) for result in op.results]
    return bool(read) and not _deciding(loop).isdisjoint(read)


def _polls(op: Op, inside: Iterable[Op]) -> bool:
    if isinstance(op, memory.Load):
        return op.is_fresh
    return isinstance(op, atomic.Atomic) and not _takes_the_next(op, inside)


def _takes_the_next(op: Op, inside: Iterable[Op]) -> bool:
    """Whether each pass moves what the operation reads, and nothing in the loop moves it back."""
    step = _step(op)
    if not step:
        return False
    written: list[Any] = [each for each in inside if each.effects & WRITES]
    place: Value = op.operands[0]
    others = [each for each in written if each is not op and may_alias(each.pointer, place)]
    return all(_step(each) * step > 0 for each in others)


def _step(op: Op) -> int:
    """What an operation adds to an integer in memory each time; 0 where it may add nothing."""
    if not isinstance(op, atomic.Update) or op.kind != "add" or op.mask is not None:
        return 0
    maker = op.value.defining_op
    while isinstance(maker, (create.Splat, Convert)):
        maker = maker.x.defining_op
    if not isinstance(maker, create.Constant) or not op.dtype.is_int():
        return 0
    step = int(maker.value)
    # What a narrower type leaves of it may be nothing.
    return step if step % (1 << op.dtype.bits) else 0


def _deciding(loop: control.While) -> set[Value]:
    """Every value that the end of a loop depends on, by data or by branches.

    What is read depends on where it is read, and on the mask.
    """
    found: set[Value] = set()
    pending = [*_condition(loop)]
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
