"""How loads and stores of tiles are spread over threads, so that neighbours in memory are read by
neighbours, as many at once as is proved to be possible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tritium.ir.core import Function, Value
from tritium.ir.types import element
from tritium.ops import memory
from tritium.passes.facts import Facts

from .layouts import THREADS_PER_WARP, Blocked, Extents, LinearLayout, Vectors, global_vectors
from .layouts.vectors import MAXIMAL_VECTOR_BYTES

AccessOp: TypeAlias = "memory.Load | memory.Store"


@dataclass(frozen=True)
class Access:
    """How a load or store of a tile is carried out: in which layout, by which vectors."""

    layout: LinearLayout
    vectors: Vectors


@dataclass(frozen=True)
class _Wish:
    """What one access would like: the axes, the fastest first, and neighbours per thread."""

    order: tuple[int, ...]
    per_thread: int


def accesses(function: Function, facts: Facts, num_warps: int) -> dict[AccessOp, Access]:
    """The layout and vectors of each access to a tile of memory.

    All accesses of one shape and order share a layout, that of the widest, so that what one loads
    another can store.
    """
    ops = [
        op
        for op in function.walk()
        if isinstance(op, (memory.Load, memory.Store)) and op.pointer.shape
    ]
    wishes = {op: _wish(op.pointer, facts, num_warps) for op in ops}
    widest: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {}
    for op, wish in wishes.items():
        key = (op.pointer.shape, wish.order)
        widest[key] = max(wish.per_thread, widest.get(key, 1))
    made = {}
    for op, wish in wishes.items():
        shape = op.pointer.shape
        per_thread = widest[shape, wish.order]
        made[op] = _access(op, wish.order, per_thread, facts, num_warps)
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


def _wish(pointer: Value, facts: Facts, num_warps: int) -> _Wish:
    size = element(pointer.type).itemsize
    axes = facts.of(pointer).axes
    runs = [axis.contiguity(size) for axis in axes]
    order = tuple(sorted(range(len(axes)), key=lambda number: (-runs[number], -number)))
    fastest = order[0]
    bytes_known = axes[fastest].within(runs[fastest]).start
    width = min(runs[fastest], max(1, bytes_known // size), MAXIMAL_VECTOR_BYTES // size)
    return _Wish(order, _share(Extents(pointer.shape), width, num_warps))


def _access(
    op: AccessOp, order: tuple[int, ...], per_thread: int, facts: Facts, num_warps: int
) -> Access:
    extents = Extents(op.pointer.shape)
    layout = Blocked.covering(extents.physical, order, per_thread, num_warps).layout(
        extents.physical
    )
    pointee = element(op.pointer.type)
    fastest = order[0]
    axis = facts.of(op.pointer).axes[fastest]
    contiguity = axis.contiguity(pointee.itemsize)
    vectors = global_vectors(
        layout,
        extents,
        fastest=fastest,
        element_bits=8 * pointee.itemsize,
        contiguity=contiguity,
        alignment=axis.within(contiguity).start,
        constancy=facts.of(op.mask).axes[fastest].constancy if op.mask is not None else None,
    )
    return Access(layout, vectors)
