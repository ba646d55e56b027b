"""How many registers a thread may use: what the assembler is told of blocks that run together.

ptxas takes as few registers as it can, unless it knows how many blocks there are to be on a
multiprocessor: then it takes what that leaves, and has more loads in flight. Half of the threads
that fit, each with several loads on the way, hide the latency of memory.
"""

from __future__ import annotations

from itertools import accumulate

from tritium.ir.core import Block, Function, Op, Value
from tritium.ops import dot

from .homes import Homes
from .layouts import REGISTER, THREADS_PER_WARP

REGISTERS = 1 << 16
"""Of a multiprocessor (CUDA C++ Programming Guide, "Technical Specifications")."""

BUDGETS = (64, 128)
"""Registers a thread may have: 32 or 16 warps a multiprocessor."""

ADDRESSES = 24
"""Registers for addresses, masks and scalars, about."""


def least_blocks(function: Function, homes: Homes, num_warps: int) -> int | None:
    """The blocks of a multiprocessor that leave enough registers for the tiles that are held at
    once; None where that many can't be promised, as of products, whose fragments aren't tiles."""
    if any(isinstance(op, dot.Dot) for op in function.walk()):
        return None
    need = most_words(function, homes) + ADDRESSES
    for budget in BUDGETS:
        blocks = REGISTERS // (budget * num_warps * THREADS_PER_WARP)
        if need <= budget and blocks:
            return blocks
    return None


def most_words(function: Function, homes: Homes) -> int:
    """The most registers of a thread that tiles take at once, by their lives in program order."""
    ops = list(function.walk())
    place = {op: number for number, op in enumerate(ops)}
    last: dict[Op, int] = {}
    for op in reversed(ops):
        inner = [last[each] for region in op.regions for each in region.ops]
        last[op] = max([place[op], *inner])
    change = [0] * (len(ops) + 2)
    for value in homes.home:
        block, start = _start(value, place, last)
        ends = [_end(user, block, place, last) for user in value.users()]
        words = _words(value, homes)
        change[start] += words
        change[max([start, *ends])] -= words
    return max(accumulate(change))


def _start(value: Value, place: dict[Op, int], last: dict[Op, int]) -> tuple[Block, int]:
    """The block a tile belongs to, and from where on it is held."""
    owner = value.owner
    if isinstance(owner, Op):
        assert owner.parent is not None
        return owner.parent, last[owner]
    assert isinstance(owner, Block)
    assert owner.parent_op is not None
    return owner, place[owner.parent_op]


def _end(user: Op, block: Block, place: dict[Op, int], last: dict[Op, int]) -> int:
    """Until where a reader needs a tile: one in a loop, until the loop's end."""
    outer = user
    while outer.parent is not block:
        assert outer.parent is not None
        assert outer.parent.parent_op is not None
        outer = outer.parent.parent_op
    return place[user] if outer is user else last[outer]


def _words(value: Value, homes: Homes) -> int:
    """Registers of a thread for a tile, in every layout in which it is held."""
    each = 2 if value.scalar.is_ptr() else max(1, value.scalar.primitive_bitwidth // 32)
    layouts = (homes.home[value], *homes.wanted.get(value, ()))
    return sum(each * layout.input_extent(REGISTER) for layout in layouts)
