"""Conversions of tiles that are in local memory: chunk by chunk, through registers.

What two layouts both count by registers needs no other thread: it is the loop. The rest of a tile,
a chunk, is converted as a small tile of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from . import layouts
from .layouts import REGISTER, LinearLayout, f2

MOST_REGISTERS = 64
"""Elements of a thread in one chunk, where there can be so few."""


@dataclass(frozen=True)
class Side:
    """A chunk in one of the layouts: ``registers`` are its places in the whole tile, ``columns``
    what the bits of the chunk's number add to them (by XOR)."""

    layout: LinearLayout
    registers: tuple[int, ...]
    columns: tuple[int, ...]


@dataclass(frozen=True)
class Chunks:
    """How a tile is converted: ``bits`` count the chunks."""

    bits: int
    source: Side
    target: Side


@lru_cache(maxsize=256)
def chunks(source: LinearLayout, target: LinearLayout) -> Chunks:
    """The chunks of a conversion between layouts of whole tiles in which each bit of a place is
    one bit of a position."""
    common = sorted(set(source.bases(REGISTER)) & set(target.bases(REGISTER)), reverse=True)
    count = max(source.input_bits(REGISTER), target.input_bits(REGISTER))
    most = MOST_REGISTERS.bit_length() - 1
    taken = common[: max(0, count - most)]
    return Chunks(len(taken), _side(source, taken), _side(target, taken))


def is_plain(layout: LinearLayout) -> bool:
    """Whether each bit of a place is one bit of a position, or none."""
    return all(basis & (basis - 1) == 0 for _, bases in layout.inputs for basis in bases)


def _side(layout: LinearLayout, taken: Sequence[int]) -> Side:
    registers = layout.bases(REGISTER)
    columns = tuple(1 << registers.index(basis) for basis in taken)
    rest = [place for place, basis in enumerate(registers) if basis not in taken]
    kept = layout.with_bases(REGISTER, [registers[place] for place in rest])
    return Side(part(kept, taken), f2.images([1 << place for place in rest]), columns)


def part(layout: LinearLayout, taken: Sequence[int]) -> LinearLayout:
    """The layout of a part of a tile, of one value of those bits of a position."""
    mask = sum(taken)
    inputs = tuple(
        (name, tuple(_squeezed(basis, mask) for basis in bases)) for name, bases in layout.inputs
    )
    shape = []
    for number, extent in enumerate(layout.shape):
        here = [basis for basis in taken if layout.unpack(basis)[number]]
        shape.append(extent >> len(here))
    return LinearLayout(inputs, layouts.axes(shape))


def _squeezed(position: int, mask: int) -> int:
    """A position without the bits of a mask."""
    made = place = at = 0
    while position >> at:
        if not mask >> at & 1:
            made |= (position >> at & 1) << place
            place += 1
        at += 1
    return made
