"""Sorts: each line's elements become unsigned keys, whose order gives places to move from.

Where few elements are kept they are selected (``selections.py``). Other short lines are ranked: a
key's place is the number of keys that stand before it, counted a vector at a time, without a
branch. Longer ones are sorted by radix, a byte a pass from the lowest; a pass in which all keys
agree is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tritium.backends.common.rules import register_type
from tritium.backends.emit import Builder, V, const, const_lanes, i8, i32, i64
from tritium.ir.dtypes import uint32
from tritium.ops.sort import Sort

from .lines import Lines, address, counted, operand_buffer, read, scratch_lines, write
from .memory_map import Buffer
from .order_keys import OrderKeys, number_of
from .selections import is_selected, select_first
from .whole import writes_tiles

if TYPE_CHECKING:
    from .kernel import KernelWriter

RANKED = 64
"""The longest line that is ranked."""
DIGIT = 8
VALUES_OF_DIGIT = 1 << DIGIT


class SortWriter:
    """Writes one sort where the kernel stands."""

    def __init__(self, kernel: KernelWriter, op: Sort, results: Sequence[Buffer]) -> None:
        self.kernel = kernel
        self.op = op
        self.results = results
        self.inputs = [operand_buffer(kernel, value) for value in op.inputs]
        self.lines = Lines(op.inputs[0].shape, op.axis)
        self.made = Lines(op.results[0].shape, op.axis)
        self.order = OrderKeys(kernel, op)

    def write(self) -> None:
        kept, extent = self.made.extent, self.lines.extent
        selected = is_selected(kept, extent)
        if not selected:
            self.keys = scratch_lines(self.kernel, self.order.scalar, extent)
            self.places = scratch_lines(self.kernel, uint32, extent)
        b = self.kernel.b
        with counted(b, self.lines.outer) as outer, counted(b, self.lines.inner) as inner:
            start = self.lines.start(b, outer, inner)
            if selected:
                line = self.inputs[0], start, self.lines
                places = select_first(self.kernel, self.order, line, kept)
            else:
                self._make_keys(b, start)
                places = self._rank(b) if extent <= RANKED else self._radix(b)
            self._move(b, start, self.made.start(b, outer, inner), places)

    # Keys.

    def _make_keys(self, b: Builder, start: V) -> None:
        """The line's keys, in its order."""
        extent, stride = self.lines.extent, self.lines.inner
        width = min(self.kernel.width, extent)
        whole = extent // width * width
        with counted(b, whole, width) as at:
            self._some_keys(b, start, at, width, stride)
        if whole < extent:
            self._some_keys(b, start, const(i64, whole), extent - whole, stride)

    def _some_keys(self, b: Builder, start: V, at: V, count: int, stride: int) -> None:
        position = b.add(start, b.mul(at, const(i64, stride)))
        x = read(b, self.inputs[0], position, count, stride)
        write(b, self.keys, self.order.of(b, x), at, count)

    # Short lines.

    def _rank(self, b: Builder) -> V:
        """places[number of keys before key i] = i; returns where the places are."""
        extent = self.lines.extent
        width = min(self.kernel.width, extent)
        with counted(b, extent) as i:
            key = read(b, self.keys, i)
            here = b.trunc(i, i32)
            rank = const(i64, 0)
            for first in range(0, extent, width):
                count = min(width, extent - first)
                others = read(b, self.keys, const(i64, first), count)
                mine, place = b.splat(key, count), b.splat(here, count)
                numbers = const_lanes(i32, range(first, first + count)) if count > 1 else None
                number = numbers if numbers is not None else const(i32, first)
                earlier = b.and_(b.icmp("eq", others, mine), b.icmp("slt", number, place))
                before = b.or_(b.icmp("ult", others, mine), earlier)
                holding = b.zext(before, i64) if count == 1 else number_of(b, before)
                rank = b.add(rank, holding)
            write(b, self.places, here, rank)
        return self.places.base

    # Longer lines.

    def _radix(self, b: Builder) -> V:
        """Sort keys and places; returns where the places are at the end."""
        kernel, extent = self.kernel, self.lines.extent
        key_scalar = self.order.scalar
        passes = self.order.bits // DIGIT
        other_keys = scratch_lines(kernel, key_scalar, extent)
        other_places = scratch_lines(kernel, uint32, extent)
        counts = scratch_lines(kernel, uint32, passes * VALUES_OF_DIGIT)
        self._count_digits(b, counts, passes)
        start = [self.keys.base, other_keys.base, self.places.base, other_places.base]
        with b.loop(const(i64, 0), const(i64, passes), 1, carried=start, name="pass") as loop:
            keys, new_keys, places, new_places = loop.carried
            mine = Buffer(
                address(b, counts, b.mul(loop.index, const(i64, VALUES_OF_DIGIT))), uint32, (1,)
            )
            source = Buffer(keys, key_scalar, (1,)), Buffer(places, uint32, (1,))
            target = Buffer(new_keys, key_scalar, (1,)), Buffer(new_places, uint32, (1,))
            shift = b.mul(loop.index, const(i64, DIGIT))
            first = self._digit(b, read(b, source[0], const(i64, 0)), shift)
            differ = b.icmp("ne", read(b, mine, first), const(i32, extent))
            with b.when(differ, "scatter") as before:
                self._starts(b, mine)
                self._scatter(b, source, target, mine, shift)
                after = b.block
            swapped = [new_keys, keys, new_places, places]
            loop.next(
                [
                    b.phi(new.type, "", [(old, before), (new, after)])
                    for old, new in zip(loop.carried, swapped, strict=True)
                ]
            )
        return loop.results[2]

    def _count_digits(self, b: Builder, counts: Buffer, passes: int) -> None:
        """How often each digit occurs, for all passes; the places begin as 0, 1, 2, ..."""
        size = passes * VALUES_OF_DIGIT * counts.itemsize
        b.memset(counts.base, const(i8, 0), const(i64, size), align=counts.itemsize)
        with counted(b, self.lines.extent) as at:
            key = read(b, self.keys, at)
            write(b, self.places, b.trunc(at, i32), at)
            for number in range(passes):
                digit = self._digit(b, key, const(i64, number * DIGIT))
                slot = b.add(digit, const(i64, number * VALUES_OF_DIGIT))
                write(b, counts, b.add(read(b, counts, slot), const(i32, 1)), slot)

    @staticmethod
    def _digit(b: Builder, key: V, shift: V) -> V:
        """The byte of a key at a shift, as i64."""
        wide = b.int_cast(key, i64, signed=False)
        return b.and_(b.lshr(wide, shift), const(i64, VALUES_OF_DIGIT - 1))

    @staticmethod
    def _starts(b: Builder, counts: Buffer) -> None:
        """Counts of digits become the place that the first key with that digit moves to."""
        start, end = const(i64, 0), const(i64, VALUES_OF_DIGIT)
        with b.loop(start, end, 1, carried=[const(i32, 0)], name="digit") as loop:
            (total,) = loop.carried
            count = read(b, counts, loop.index)
            write(b, counts, total, loop.index)
            loop.next([b.add(total, count)])

    def _scatter(
        self,
        b: Builder,
        source: tuple[Buffer, Buffer],
        target: tuple[Buffer, Buffer],
        starts: Buffer,
        shift: V,
    ) -> None:
        with counted(b, self.lines.extent) as at:
            key = read(b, source[0], at)
            digit = self._digit(b, key, shift)
            place = read(b, starts, digit)
            write(b, starts, b.add(place, const(i32, 1)), digit)
            to = b.zext(place, i64)
            write(b, target[0], key, to)
            write(b, target[1], read(b, source[1], at), to)

    # Results.

    def _move(self, b: Builder, start: V, to: V, places: V) -> None:
        """Every input's elements from where they stand to where they belong."""
        stride = const(i64, self.lines.inner)
        with counted(b, self.made.extent) as at:
            place = b.load(register_type(uint32), address(b, self._at(places), at), align=4)
            source = b.add(start, b.mul(b.zext(place, i64), stride))
            position = b.add(to, b.mul(at, stride))
            for given, result in zip(self.inputs, self.results, strict=True):
                write(b, result, read(b, given, source), position)

    @staticmethod
    def _at(places: V) -> Buffer:
        return Buffer(places, uint32, (1,))


@writes_tiles(Sort)
def write_sort(kernel: KernelWriter, op: Sort, results: Sequence[Buffer]) -> None:
    """Write one sort where the kernel stands."""
    SortWriter(kernel, op, results).write()
