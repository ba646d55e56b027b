"""How many neighbours one access moves, and which registers they are."""

from __future__ import annotations

from dataclasses import dataclass

from . import f2
from .dims import OFFSET, REGISTER, axis
from .extents import Extents
from .linear import LinearLayout

MAXIMAL_VECTOR_BYTES = 16
"""The widest access of one thread (32 bytes come with sm_100)."""


@dataclass(frozen=True)
class Vectors:
    """The accesses of a thread, ``width`` elements each, aligned to ``width`` elements.

    ``groups[i]`` lists the registers of access i by ascending address. An access begins at the
    offset of its thread (lane, warp, block) XOR ``offsets[i]``.
    """

    width: int
    groups: tuple[tuple[int, ...], ...]
    offsets: tuple[int, ...]


def vector_width(offsets: LinearLayout, limit: int) -> int:
    """The widest access, up to ``limit`` elements, for a map from places to memory offsets.

    Registers are renamed freely, so they may count through memory in any order: a width of 2**v
    is possible if registers reach each of the v low offset bits alone and nothing else touches
    them. Raises ``ValueError`` if two registers of a thread have the same offset.
    """
    low = offsets.keep_outputs([OFFSET])
    registers = f2.Span(low.bases(REGISTER))
    if registers.rank < low.input_bits(REGISTER):
        raise ValueError("two registers of a thread are at one offset")
    touched = _touched(low)
    width = 1
    while 2 * width <= limit and width in registers and not touched & width:
        width *= 2
    return width


def _touched(offsets: LinearLayout) -> int:
    """The offset bits that depend on the thread."""
    touched = 0
    for name, bases in offsets.inputs:
        if name != REGISTER:
            for basis in bases:
                touched |= basis
    return touched


def vectorise(offsets: LinearLayout, width: int) -> Vectors:
    """The accesses of that width, of a map for which ``vector_width`` allows it."""
    groups: dict[int, list[int]] = {}
    for register, image in enumerate(offsets.keep_outputs([OFFSET]).images(REGISTER)):
        group = groups.setdefault(image & -width, [0] * width)
        group[image & (width - 1)] = register
    return Vectors(width, tuple(map(tuple, groups.values())), tuple(groups))


def split_offsets(offsets: LinearLayout, vectors: Vectors) -> tuple[tuple[int, int], ...]:
    """For each access (x, y) with ``thread ^ offset == (thread ^ x) + y`` for every thread.

    ``thread`` is the offset of its first register. Accesses with one x share an address register,
    and y is an immediate of the instruction.
    """
    touched = _touched(offsets.keep_outputs([OFFSET]))
    return tuple((offset & touched, offset & ~touched) for offset in vectors.offsets)


def global_vectors(
    layout: LinearLayout,
    extents: Extents,
    *,
    fastest: int,
    element_bits: int,
    contiguity: int,
    alignment: int,
    constancy: int | None = None,
    limit_bytes: int = MAXIMAL_VECTOR_BYTES,
) -> Vectors:
    """The accesses of a tile in the user's memory; ``offsets`` are row-major tile positions.

    ``fastest`` is the axis along which memory is contiguous: elements from a multiple of
    ``contiguity`` on are neighbours, ``contiguity`` of them, and the address of the first is a
    multiple of ``alignment`` bytes. The mask has one value over each ``constancy`` elements from a
    multiple of it (None: there is no mask). Of each number only the largest power of two in it
    counts, and of the logical extent too: no access reaches into padding.

    Raises ``ValueError`` if the layout isn't one of the physical shape.
    """
    if layout.shape != extents.physical:
        raise ValueError(f"a layout of {extents.physical} is needed, got one of {layout.shape}")
    numbers = [contiguity, extents.logical[fastest]]
    if constancy is not None:
        numbers.append(constancy)
    limits = [number & -number for number in numbers]
    size = element_bits // 8
    limits += [max(1, (alignment & -alignment) // size), max(1, limit_bytes // size)]
    names = [name for name in layout.output_names if name != axis(fastest)]
    memory = layout.order_outputs([*names, axis(fastest)])
    offsets = memory.reshape_outputs({OFFSET: 1 << memory.total_output_bits})
    return vectorise(offsets, vector_width(offsets, min(limits)))
