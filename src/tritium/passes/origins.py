"""Which parameters of a kernel the memory behind a pointer may belong to."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

from tritium.ir import READS, WRITES, Block, Function, Op, Value
from tritium.ops.cast import Bitcast
from tritium.ops.control import For, If, While
from tritium.ops.create import Splat
from tritium.ops.hints import Promise
from tritium.ops.memory import Load, Offset
from tritium.ops.rearrange import Gather, Slice
from tritium.ops.shape import Broadcast, ExpandDims, Reshape, Trans

_PARTS = (Slice, Gather)


def root(pointer: Value) -> Value | None:
    """The kernel parameter a pointer was made from; None when it came from memory or integers."""
    seen = pointer
    while True:
        op = seen.defining_op
        if op is None:
            block = seen.owner
            owner = block.parent_op if isinstance(block, Block) else None
            return seen if owner is None else None
        if isinstance(op, Offset):
            seen = op.pointer
        elif isinstance(op, (Splat, Broadcast, ExpandDims, Reshape, Trans, Promise, *_PARTS)) or (
            isinstance(op, Bitcast) and op.x.scalar.is_ptr()
        ):
            seen = op.x
        else:
            return None


def may_alias(left: Value, right: Value) -> bool:
    """Whether two pointers may lead to one place when distinct parameters are disjoint."""
    a, b = root(left), root(right)
    return a is None or b is None or a is b


def alias_pairs(function: Function) -> list[tuple[int, int]]:
    """Pairs of parameters, one of them written, that code for disjoint arrays takes to be so."""
    params = {param.value: number for number, param in enumerate(function.params)}
    read: set[int] = set()
    written: set[int] = set()
    for op in function.walk():
        if op.effects & (READS | WRITES):
            access: Any = op
            origin = root(access.pointer)
            if origin in params:
                (written if op.effects & WRITES else read).add(params[origin])
    touched = sorted(read | written)
    return [(a, b) for a, b in itertools.combinations(touched, 2) if a in written or b in written]


def written_parameters(function: Function) -> frozenset[int]:
    """The pointer parameters, by position, that a store may write through.

    A pointer that was chosen at run time, carried by a loop or made of an integer counts for all
    parameters that take part in its address. One that was loaded from memory counts for none.
    """
    places = {param.value: place for place, param in enumerate(function.params)}
    stores: list[Any] = [op for op in function.walk() if op.effects & WRITES]
    pointers = [op.pointer for op in stores]
    reached = _sources(pointers)
    return frozenset(
        place for value, place in places.items() if value in reached and value.scalar.is_ptr()
    )


def stores_by_address(function: Function) -> bool:
    """Whether a store may go through a pointer that was loaded, or made of an integer.

    Such a pointer may lead into the memory of any parameter.
    """
    stores: list[Any] = [op for op in function.walk() if op.effects & WRITES]
    return any(map(_is_address, _sources(op.pointer for op in stores)))


def _is_address(value: Value) -> bool:
    op = value.defining_op
    if not value.scalar.is_ptr():
        return False
    return isinstance(op, Load) or (isinstance(op, Bitcast) and not op.x.scalar.is_ptr())


def _sources(values: Iterable[Value]) -> set[Value]:
    """Everything that ``values`` are computed from, not looking through memory."""
    found: set[Value] = set()
    pending = list(values)
    while pending:
        value = pending.pop()
        if value not in found:
            found.add(value)
            pending.extend(made_from(value))
    return found


def made_from(value: Value) -> Iterator[Value]:
    """The values that one value may be made from directly: none where it comes from memory."""
    owner = value.owner
    if isinstance(owner, Block):
        parent = owner.parent_op
        if parent is not None:
            yield from _carried(parent, owner.args.index(value))
    elif isinstance(owner, Op):
        if isinstance(owner, (For, While)):
            yield from _carried(owner, owner.results.index(value) + isinstance(owner, For))
        elif isinstance(owner, If):
            place = owner.results.index(value)
            for region in (owner.then, owner.otherwise):
                yield from _yielded(region.block, place)
        elif not owner.effects & READS:
            yield from owner.operands


def _carried(loop: Op, argument: int) -> Iterator[Value]:
    """What an argument of a loop's region stands for: its start, and what the body hands on."""
    if isinstance(loop, For):
        if argument:
            yield loop.init[argument - 1]
            yield from _yielded(loop.body.block, argument - 1)
        else:
            yield from (loop.lower, loop.step)
    elif isinstance(loop, While):
        yield loop.init[argument]
        yield from _yielded(loop.body.block, argument)
    else:
        yield from loop.operands


def _yielded(block: Block, place: int) -> Iterator[Value]:
    end = block.terminator
    if end is not None:
        yield end.operands[place]
