"""Where a thread's registers are in a tile: coordinates, and what is an element at all."""

from __future__ import annotations

from functools import lru_cache

from tritium.backends.emit import Builder, V, const, false, i32

from .layouts import (
    LANE,
    REGISTER,
    THREADS_PER_WARP,
    TRIP,
    WARP,
    Extents,
    Holding,
    LinearLayout,
    in_trips,
)
from .values import Threads


@lru_cache(maxsize=1024)
def holdings(shape: tuple[int, ...], layout: LinearLayout) -> tuple[Holding, ...]:
    """What each register of a layout holds of a tile of that logical shape."""
    return Extents(shape).holdings(layout)


@lru_cache(maxsize=1024)
def constants(layout: LinearLayout) -> tuple[tuple[int, ...], ...]:
    """For each register, what it adds (by XOR) to the coordinates of its thread."""
    return tuple(map(layout.unpack, layout.images(REGISTER)))


@lru_cache(maxsize=1024)
def thread_bases(layout: LinearLayout) -> tuple[tuple[int, ...], ...]:
    """For each axis, the bases of the bits of the thread's number in its block, then of the
    trip's."""
    packed = layout.bases(LANE) + layout.bases(WARP)
    if in_trips(layout):
        packed += layout.bases(TRIP)
    columns = [layout.unpack(basis) for basis in packed]
    return tuple(tuple(column[number] for column in columns) for number in range(len(layout.shape)))


def reach(bases: tuple[int, ...]) -> int:
    """The bits of a coordinate that depend on the thread."""
    touched = 0
    for basis in bases:
        touched |= basis
    return touched


def linear(b: Builder, number: V, bases: tuple[int, ...]) -> V:
    """The XOR of the bases at the set bits of ``number``, which has no higher ones."""
    total = const(i32, 0)
    covered = 0
    position = 0
    while position < len(bases):
        count = _run(bases, position)
        first = bases[position]
        if first:
            part = _field(b, number, position, count, len(bases))
            spread = first * ((1 << count) - 1)
            part = b.mul(part, const(i32, first)) if count == 1 else _shifted(b, part, first)
            disjoint = not covered & spread
            total = b.or_(total, part, "disjoint") if disjoint else b.xor(total, part)
            covered |= spread
        position += count
    return total


def _run(bases: tuple[int, ...], start: int) -> int:
    """How many bases from ``start`` on are one bit each, each the next of the one before."""
    first = bases[start]
    if not first or first & (first - 1):
        return 1
    count = 1
    while start + count < len(bases) and bases[start + count] == first << count:
        count += 1
    return count


def _field(b: Builder, number: V, position: int, count: int, width: int) -> V:
    """Bits of a number of ``width`` bits, moved to its low end."""
    moved = b.lshr(number, const(i32, position))
    return moved if position + count == width else b.and_(moved, const(i32, (1 << count) - 1))


def _shifted(b: Builder, part: V, first: int) -> V:
    return b.shl(part, const(i32, first.bit_length() - 1), "nuw nsw")


class Positions:
    """Coordinates of registers, the parts that depend on the thread written once."""

    def __init__(self, entry: Builder, threads: Threads, num_warps: int) -> None:
        self._entry = entry
        self._threads = threads
        self._bits = (num_warps * THREADS_PER_WARP).bit_length() - 1
        self._parts: dict[tuple[int, ...], V] = {}
        self._trip: tuple[V, Builder] | None = None
        self._in_trip: dict[tuple[int, ...], V] = {}

    def trip(self, number: V | None, builder: Builder) -> None:
        """Which trip is written from here on; None: no longer one."""
        self._trip = None if number is None else (number, builder)
        self._in_trip = {}

    def of_trip(self, columns: tuple[int, ...]) -> V:
        """The XOR of the columns at the set bits of the trip's number."""
        known = self._in_trip.get(columns)
        if known is None:
            assert self._trip is not None
            number, builder = self._trip
            known = self._in_trip[columns] = linear(builder, number, columns)
        return known

    def part(self, bases: tuple[int, ...]) -> V:
        """What a thread, and the trip, adds (by XOR) to a coordinate whose bases these are."""
        if len(bases) > self._bits:
            thread, trip = self.part(bases[: self._bits]), self.of_trip(bases[self._bits :])
            assert self._trip is not None
            return self._trip[1].xor(thread, trip)
        known = self._parts.get(bases)
        if known is None:
            known = self._parts[bases] = linear(self._entry, self._threads.thread, bases)
        return known

    def coordinate(self, b: Builder, layout: LinearLayout, register: int, axis: int) -> V:
        """One logical coordinate (i32) of what a register of this thread holds."""
        bases = thread_bases(layout)[axis]
        constant = constants(layout)[register][axis]
        thread = self.part(bases)
        if constant & reach(bases):
            return b.xor(thread, const(i32, constant))
        return b.or_(thread, const(i32, constant), "disjoint")

    def coordinates(self, b: Builder, layout: LinearLayout, register: int) -> tuple[V, ...]:
        """The logical coordinates (i32) of what a register of this thread holds."""
        axes = range(len(layout.shape))
        return tuple(self.coordinate(b, layout, register, axis) for axis in axes)

    def inside(
        self, b: Builder, shape: tuple[int, ...], layout: LinearLayout, register: int
    ) -> V | None:
        """Whether a register of this thread holds an element (i1); None where every thread's does.

        Asked for a register that is padding in every thread it is the constant false.
        """
        holding = holdings(shape, layout)[register]
        if holding is not Holding.EITHER:
            return None if holding is Holding.ELEMENTS else false
        holds: V | None = None
        for axis, (extent, physical) in enumerate(zip(shape, layout.shape, strict=True)):
            if extent != physical:
                here = self.coordinate(b, layout, register, axis)
                below = b.icmp("ult", here, const(i32, extent))
                holds = below if holds is None else b.and_(holds, below)
        return holds
