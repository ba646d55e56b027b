"""How loads and stores of tiles are spread over threads, so that neighbours in memory are read by
neighbours, as many at once as is proved to be possible."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tritium.ir.core import Function, Value
from tritium.ir.types import element
from tritium.ops import memory
from tritium.passes.facts import Facts

from .guards import Guard, guard_of
from .layouts import THREADS_PER_WARP, Blocked, Extents, LinearLayout, Vectors, global_vectors
from .layouts.vectors import MAXIMAL_VECTOR_BYTES

AccessOp: TypeAlias = "memory.Load | memory.Store"


@dataclass(frozen=True)
class Access:
    """How a load or store of a tile is carried out: in which layout, by which vectors.

    With a guard a vector is moved only where its mask is seen to be true for all of it, at run
    time; without one the mask's first element is that of all.
    """

    layout: LinearLayout
    vectors: Vectors
    fastest: int
    """The axis along which neighbours in the tile are neighbours in memory."""
    guard: Guard | None = None


@dataclass(frozen=True)
class _Wish:
    """What one access would like: the axes, the fastest first, and neighbours per thread."""

    order: tuple[int, ...]
    per_thread: int


Shaping: TypeAlias = "Callable[[LinearLayout], LinearLayout]"
"""What is done to layouts of tiles that are worked on in trips."""


def accesses(
    function: Function, facts: Facts, num_warps: int, shaping: Shaping
) -> dict[AccessOp, Access]:
    """The layout and vectors of each access to a tile of memory.

    All accesses of one shape and order share a layout, that of the widest, so that what one loads
    another can store.
    """
    ops = [
        op
        for op in function.walk()
        if isinstance(op, (memory.Load, memory.Store)) and op.pointer.shape
    ]
    wishes = {op: _wish(op, facts, num_warps) for op in ops}
    widest: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {}
    for op, wish in wishes.items():
        key = (op.pointer.shape, wish.order)
        widest[key] = max(wish.per_thread, widest.get(key, 1))
    made = {}
    for op, wish in wishes.items():
        shape = op.pointer.shape
        per_thread = widest[shape, wish.order]
        extents = Extents(shape).physical
        layout = Blocked.covering(extents, wish.order, per_thread, num_warps).layout(extents)
        made[op] = _access(op, wish.order[0], shaping(layout), facts)
    return made


def default_layout(shape: Sequence[int], num_warps: int) -> LinearLayout:
    """The layout of a tile that nothing else speaks for: as a load by 16 bytes of fp32 has it."""
    extents = Extents(tuple(shape))
    order = tuple(reversed(range(len(extents.physical))))
    per_thread = _share(extents, 4, num_warps)
    return Blocked.covering(extents.physical, order, per_thread, num_warps).layout(extents.physical)


def _share(extents: Extents, wanted: int, num_warps: int) -> int:
    """As many neighbours per thread as are wanted, fewer if threads would hold copies then."""
    count = 1
    for extent in extents.physical:
        count *= extent
    return min(wanted, max(1, count // (num_warps * THREADS_PER_WARP)))


def _wish(op: AccessOp, facts: Facts, num_warps: int) -> _Wish:
    pointer, mask = op.pointer, op.mask
    size = element(pointer.type).itemsize
    axes = facts.of(pointer).axes
    runs = [axis.contiguity(size) for axis in axes]
    order = tuple(sorted(range(len(axes)), key=lambda number: (-runs[number], -number)))
    fastest = order[0]
    known = max(1, axes[fastest].within(runs[fastest]).start // size)
    extent = pointer.shape[fastest]
    width = min(runs[fastest], known, extent & -extent, MAXIMAL_VECTOR_BYTES // size)
    width = _share(Extents(pointer.shape), width, num_warps)
    while width > 1 and mask is not None and not _decided(op, mask, facts, fastest, width):
        width //= 2
    return _Wish(order, width)


def _decided(op: AccessOp, mask: Value, facts: Facts, axis: int, width: int) -> bool:
    """Whether a mask has one value over such groups, or tells at run time whether it is true."""
    if facts.of(mask).axes[axis].constancy >= width:
        return True
    return not _is_fresh(op) and guard_of(mask, facts, axis, width) is not None


def _is_fresh(op: AccessOp) -> bool:
    return isinstance(op, memory.Load) and op.is_fresh


def _access(op: AccessOp, fastest: int, layout: LinearLayout, facts: Facts) -> Access:
    extents = Extents(op.pointer.shape)
    size = element(op.pointer.type).itemsize
    axis = facts.of(op.pointer).axes[fastest]
    contiguity = axis.contiguity(size)

    def vectors(constancy: int | None) -> Vectors:
        return global_vectors(
            layout,
            extents,
            fastest=fastest,
            element_bits=8 * size,
            contiguity=contiguity,
            alignment=axis.within(contiguity).start,
            constancy=constancy,
        )

    wide = vectors(None)
    if op.mask is None:
        return Access(layout, wide, fastest)
    certain = vectors(facts.of(op.mask).axes[fastest].constancy)
    if certain.width == wide.width or _is_fresh(op):
        return Access(layout, certain, fastest)
    guard = guard_of(op.mask, facts, fastest, wide.width)
    return Access(layout, certain if guard is None else wide, fastest, guard)
