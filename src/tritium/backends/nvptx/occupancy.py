"""How many registers a thread may use: what the assembler is told of blocks that run together.

ptxas takes as few registers as it can, unless it knows how many blocks there are to be on a
multiprocessor: then it takes what that leaves, and has more loads in flight. Half of the threads
that fit, each with several loads on the way, hide the latency of memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate

from tritium.ir.core import Block, Function, Op, Value
from tritium.ops import dot, memory

from .coalesce import Access
from .homes import Homes
from .layouts import REGISTER, THREADS_PER_WARP
from .positions import constants

REGISTERS = 1 << 16
"""Of a multiprocessor (CUDA C++ Programming Guide, "Technical Specifications")."""

MOST_THREADS, FEWEST_THREADS = 1024, 256
"""Of a multiprocessor: between them the number is chosen, as large as registers allow."""

ADDRESSES = 24
"""Registers for addresses, masks and scalars, about."""


def least_blocks(function: Function, versions: Iterable[Homes], num_warps: int) -> int | None:
    """The blocks of a multiprocessor that leave enough registers for the tiles that are held at
    once, few where nothing is enough; None of products, whose fragments are no tiles."""
    if any(isinstance(op, dot.Dot) for op in function.walk()):
        return None
    need = max(most_words(function, homes) for homes in versions) + ADDRESSES
    threads = num_warps * THREADS_PER_WARP
    fewest = max(1, FEWEST_THREADS // threads)
    for blocks in range(MOST_THREADS // threads, fewest, -1):
        if need <= registers_left(blocks, threads):
            return blocks
    return fewest


def registers_left(blocks: int, threads: int) -> int:
    """Of each thread, when so many blocks of so many threads share a multiprocessor; they are
    given out by eights."""
    return REGISTERS // (blocks * threads) // 8 * 8


def most_words(function: Function, homes: Homes) -> int:
    """The most registers of a thread that tiles and their addresses take at once, by their lives
    in program order."""
    ops = list(function.walk())
    place = {op: number for number, op in enumerate(ops)}
    last: dict[Op, int] = {}
    for op in reversed(ops):
        inner = [last[each] for region in op.regions for each in region.ops]
        last[op] = max([place[op], *inner])
    change = [0] * (len(ops) + 3)
    for value in homes.home:
        block, start = _start(value, place, last)
        ends = [_end(user, block, place, last) for user in value.users()]
        words = _words(value, homes)
        change[start] += words
        change[max([start, *ends])] -= words
    for op, access in homes.accesses.items():
        count = _addresses(access)
        change[place[op]] += count
        change[place[op] + 1] -= count
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
    if outer is not user:
        return last[outer]
    return place[user] + isinstance(user, memory.Store)


def _addresses(access: Access) -> int:
    """Addresses at once: vectors that are apart along the contiguous axis alone share one."""
    axis = access.fastest
    firsts = [constants(access.layout)[group[0]] for group in access.vectors.groups]
    return len({(*at[:axis], *at[axis + 1 :]) for at in firsts})


def _words(value: Value, homes: Homes) -> int:
    """Registers of a thread for a tile, in every layout in which it is held."""
    bits = 64 if value.scalar.is_ptr() else max(8, value.scalar.primitive_bitwidth)
    layouts = (homes.home[value], *homes.wanted.get(value, ()))
    words = [-(-bits * layout.input_extent(REGISTER) // 32) for layout in layouts]
    # What nobody else reads is gone when it is somewhere else.
    return max(words) if len(value.uses) == 1 else sum(words)
