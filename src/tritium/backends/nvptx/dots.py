"""Matrix products by fused multiply-adds, the operands read from shared memory.

Both operands are stored with the free axis (M or N) the fastest, in the type that is computed in.
The inner loop takes ``UNROLLED`` indices of K at a time: for each a thread loads what its rows and
columns need, neighbours in one access, and adds their products to its elements of the result, which
stay in registers.

Rows of one K are swizzled: groups of 16 bytes change places by k // ``UNROLLED``, so that lanes
which hold neighbours along K don't meet in a bank when they store. The arrangement stays linear,
and within an iteration all rows are swizzled alike.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from tritium.backends.common.cast import convert as cast
from tritium.backends.common.rules import register_type
from tritium.backends.emit import V, const, i32, zero
from tritium.ir.dtypes import DType, int32
from tritium.ops import dot as dots

from . import carriers
from .converts import only
from .layouts import (
    LANE,
    OFFSET,
    REGISTER,
    THREADS_PER_WARP,
    WARP,
    Blocked,
    Extents,
    Holding,
    LinearLayout,
    SharedAccess,
    shapes,
)
from .layouts.dims import axes, log2
from .positions import holdings, reach
from .values import Held

if TYPE_CHECKING:
    from .kernel import Writer
    from .shared import Scratch

UNROLLED = 4
VECTOR_BYTES = 16
SWIZZLED = 8
"""The groups of 16 bytes that change places: together a row of banks."""

ROW_AND_COLUMN = (-2, -1)


def computed(op: dots.Dot) -> DType:
    """The type in which products are added."""
    scalar = op.a.scalar
    assert isinstance(scalar, DType)
    return scalar.compute if scalar.is_floating() else int32


def dot_home(op: dots.Dot, num_warps: int) -> LinearLayout:
    """The layout that a product is made in.

    A thread has squares of as many neighbours as one access loads; lanes, and then warps, cover the
    tile as squarely as they can, and batches last.
    """
    physical = Extents(op.result.shape).physical
    vector = VECTOR_BYTES // computed(op).itemsize
    sizes = [1] * len(physical)
    for axis in ROW_AND_COLUMN:
        sizes[axis] = min(vector, physical[axis])
    left = [extent // size for extent, size in zip(physical, sizes, strict=True)]
    boxes = []
    for count in (THREADS_PER_WARP, num_warps):
        box = [1] * len(physical)
        while math.prod(box) < count:
            axis = _longest(box, left)
            box[axis] *= 2
        left = [max(1, extent // size) for extent, size in zip(left, box, strict=True)]
        boxes.append(tuple(box))
    order = tuple(range(len(physical)))[::-1]
    return Blocked(tuple(sizes), boxes[0], boxes[1], order).layout(physical)


def _longest(box: Sequence[int], left: Sequence[int]) -> int:
    """The axis to double: of those not yet covered, columns and rows in turn, then batches."""
    rank = len(box)
    open_axes = [axis for axis in range(rank) if box[axis] < left[axis]]
    if not open_axes:
        return rank - 1
    inner = [axis for axis in open_axes if axis >= rank - 2]
    return min(inner or open_axes, key=lambda axis: (box[axis], -axis))


@dataclass(frozen=True)
class Operand:
    """One operand in shared memory, ``depth`` indices of K at a time.

    ``free`` and ``summed`` number its axes M or N, and K. ``start`` is its first byte.
    """

    held: Held
    free: int
    summed: int
    dtype: DType
    depth: int
    start: int

    @property
    def physical(self) -> tuple[int, ...]:
        return self.held.layout.shape

    @cached_property
    def shared(self) -> LinearLayout:
        """From offsets, in elements, to the axes: the free axis, K, batches."""
        layout = LinearLayout((), axes(self.physical))
        bases: list[int] = []
        for axis in (self.free, self.summed, *range(len(self.physical) - 2)):
            for bit in range(log2(self.physical[axis])):
                coordinates = [0] * len(self.physical)
                coordinates[axis] = 1 << bit
                if axis == self.summed:
                    coordinates[self.free] = self.swizzle(1 << bit)
                bases.append(layout.pack(coordinates))
        if len(self.physical) == 3:
            # K comes last, so that its upper part can be left to further passes.
            row, depth = log2(self.physical[self.free]), log2(self.physical[self.summed])
            bases = bases[:row] + bases[row + depth :] + bases[row : row + depth]
        return LinearLayout(((OFFSET, tuple(bases)),), layout.outputs)

    def swizzle(self, k: int) -> int:
        """What is added (by XOR) to the free coordinate at an index of K, in elements."""
        return k // UNROLLED % self.groups * self.vector

    @property
    def vector(self) -> int:
        return VECTOR_BYTES // self.dtype.itemsize

    @property
    def groups(self) -> int:
        """The groups of a row that change places."""
        return max(1, min(SWIZZLED, self.physical[self.free] // self.vector))

    @property
    def stride(self) -> int:
        """The elements from one index of K to the next."""
        return math.prod(self.physical) // self.physical[self.summed]

    @property
    def bytes(self) -> int:
        """The memory for ``depth`` indices."""
        return self.stride * self.depth * self.dtype.itemsize


def _thread(writer: Writer, side: SharedAccess, size: int) -> V:
    """The byte offset of a thread's first register."""
    bases = side.offsets.bases(LANE) + side.offsets.bases(WARP)
    return writer.positions.part(tuple(basis * size for basis in bases))


def _touched(side: SharedAccess) -> int:
    """The offset bits that depend on the thread."""
    return reach(side.offsets.bases(LANE) + side.offsets.bases(WARP))


class DotWriter:
    """Writes one product where the writer stands."""

    def __init__(
        self, writer: Writer, op: dots.Dot, a: Held, b: Held, layout: LinearLayout
    ) -> None:
        self.writer = writer
        self.op = op
        self.layout = layout
        self.dtype = computed(op)
        self.extent = op.a.shape[-1]
        rank = len(op.a.shape)
        depth = self._depth(a, b)
        self.a = Operand(a, rank - 2, rank - 1, self.dtype, depth, 0)
        start = -(-self.a.bytes // VECTOR_BYTES) * VECTOR_BYTES
        self.b = Operand(b, rank - 1, rank - 2, self.dtype, depth, start)
        self.depth = depth

    def _depth(self, a: Held, b: Held) -> int:
        """How many indices of K shared memory has room for, a power of two."""
        depth = a.layout.shape[-1]
        each = (math.prod(a.layout.shape) + math.prod(b.layout.shape)) // depth
        room = self.writer.shared.limit // (each * self.dtype.itemsize)
        return min(depth, max(UNROLLED, 1 << max(0, room.bit_length() - 1)))

    def write(self, acc: Held | None) -> Held:
        """acc + a @ b."""
        total = self._start(acc)
        size = self.b.start + self.b.bytes
        with self.writer.shared.scratch(size, 128) as scratch:
            for number in range(-(-self.extent // self.depth)):
                scratch.stores()
                for operand in (self.a, self.b):
                    self._store(operand, scratch, number)
                scratch.loads()
                total = self._products(scratch, total, number)
        return self._end(total)

    def _start(self, acc: Held | None) -> dict[int, V]:
        """The elements of the result that a thread has, by register."""
        lowering = self.writer.lowering()
        start = zero(register_type(self.dtype))
        holding = enumerate(holdings(self.op.result.shape, self.layout))
        kept = [register for register, held in holding if held is not Holding.PADDING]
        if acc is None:
            return dict.fromkeys(kept, start)
        scalar = acc.type.scalar
        assert isinstance(scalar, DType)
        found: dict[int, V] = {}
        for register in kept:
            value = acc.registers[register]
            found[register] = start if value is None else cast(lowering, value, scalar, self.dtype)
        return found

    def _end(self, total: dict[int, V]) -> Held:
        lowering = self.writer.lowering()
        registers = tuple(
            cast(lowering, total[register], self.dtype, self.op.out_dtype)
            if register in total
            else None
            for register in range(self.layout.input_extent(REGISTER))
        )
        return Held(self.op.result.type, self.layout, registers)

    # Into shared memory.

    def _store(self, operand: Operand, scratch: Scratch, number: int) -> None:
        """Those elements of an operand that belong to one pass over K."""
        writer, layout = self.writer, operand.held.layout
        size = self.dtype.itemsize
        side = SharedAccess.of(layout, operand.shared, 8 * size)
        low = operand.stride * operand.depth
        with only(writer, layout.copies(LANE), layout.copies(WARP)):
            thread = _thread(writer, side, size)
            for group, at in zip(side.vectors.groups, side.vectors.offsets, strict=True):
                values = [operand.held.registers[register] for register in group]
                if all(value is None for value in values):
                    continue
                b = writer.b
                here = b.xor(thread, const(i32, at * size))
                if _touched(side) >= low:
                    top = b.lshr(here, const(i32, log2(low * size)))
                    inside = b.icmp("eq", top, const(i32, number))
                    here = b.and_(here, const(i32, low * size - 1))
                    with b.when(inside, "pass"):
                        self._store_group(operand, values, scratch, here)
                elif at // low == number:
                    here = b.xor(thread, const(i32, at % low * size))
                    self._store_group(operand, values, scratch, here)

    def _store_group(
        self, operand: Operand, values: Sequence[V | None], scratch: Scratch, here: V
    ) -> None:
        lowering, b = self.writer.lowering(), self.writer.b
        scalar = operand.held.type.scalar
        assert isinstance(scalar, DType)
        wide = [None if v is None else cast(lowering, v, scalar, self.dtype) for v in values]
        base = b.gep(scratch.address, operand.start, inbounds=True)
        address = b.gep(base, here, inbounds=True)
        carriers.store(b, wide, register_type(self.dtype), address)

    # Out of it.

    def _products(self, scratch: Scratch, total: dict[int, V], number: int) -> dict[int, V]:
        """Add the products of one pass."""
        b = self.writer.b
        depth = min(self.depth, self.extent - number * self.depth)
        whole = depth // UNROLLED
        first = number * self.depth // UNROLLED

        def block(total: dict[int, V], index: V, count: int) -> dict[int, V]:
            phase = b.add(index, const(i32, first))
            left, right = (
                _Reader(self.writer, operand, self.layout, scratch, index, phase)
                for operand in (self.a, self.b)
            )
            return self._block(left, right, total, count)

        if whole > 1:
            start, end = const(i32, 0), const(i32, whole)
            with b.loop(start, end, carried=list(total.values()), name="k") as loop:
                inner = dict(zip(total, loop.carried, strict=True))
                loop.next(list(block(inner, loop.index, UNROLLED).values()))
            total = dict(zip(total, loop.results, strict=True))
        elif whole:
            total = block(total, const(i32, 0), UNROLLED)
        if depth % UNROLLED:
            total = block(total, const(i32, whole), depth % UNROLLED)
        return total

    def _block(
        self, left: _Reader, right: _Reader, total: dict[int, V], count: int
    ) -> dict[int, V]:
        """Add the products of ``count`` indices of K."""
        for step in range(count):
            x, y = left.load(step), right.load(step)
            total = {
                register: self._step(x[left.source(register)], y[right.source(register)], old)
                for register, old in total.items()
            }
        return total

    def _step(self, x: V, y: V, total: V) -> V:
        b = self.writer.b
        if self.dtype.is_floating():
            return b.fma(x, y, total)
        return b.add(total, b.mul(x, y))


class _Reader:
    """Loads what a thread needs of one operand, for one block of indices of K.

    ``block`` numbers it in its pass, ``phase`` in the whole extent.
    """

    def __init__(
        self,
        writer: Writer,
        operand: Operand,
        result: LinearLayout,
        scratch: Scratch,
        block: V,
        phase: V,
    ) -> None:
        self.writer = writer
        self.operand = operand
        self.result = result
        dropped = operand.summed
        # The result without the other operand's axis, at index 0 of K.
        rows = shapes.slice_axis(result, dropped)
        outputs = axes(operand.physical)
        self.rows = _with_axis(rows, dropped, outputs)
        size = operand.dtype.itemsize
        self.side = SharedAccess.of(self.rows, operand.shared, 8 * size)
        self.base = self._bases(scratch, block, phase)

    def source(self, register: int) -> int:
        """The operand's register that a register of the result is multiplied from."""
        return self._sources[register]

    @cached_property
    def _sources(self) -> tuple[int, ...]:
        places = {image: place for place, image in enumerate(self.rows.images(REGISTER))}
        found = []
        for image in self.result.images(REGISTER):
            coordinates = list(self.result.unpack(image))
            coordinates[self.operand.summed] = 0
            found.append(places[self.rows.pack(coordinates)])
        return tuple(found)

    def _bases(self, scratch: Scratch, block: V, phase: V) -> dict[int, V]:
        """Addresses by what is added (by XOR) where threads, or the swizzle, have a part."""
        b, operand, size = self.writer.b, self.operand, self.operand.dtype.itemsize
        thread = _thread(self.writer, self.side, size)
        group = b.and_(phase, const(i32, operand.groups - 1))
        mixed = b.xor(thread, b.mul(group, const(i32, VECTOR_BYTES)))
        row = b.mul(block, const(i32, UNROLLED * operand.stride * size))
        base = b.gep(scratch.address, operand.start, inbounds=True)
        base = b.gep(base, row, inbounds=True)
        return {
            x: b.gep(base, b.xor(mixed, const(i32, x * size)), inbounds=True)
            for x in dict.fromkeys(x for x, _ in self._splits)
        }

    @cached_property
    def _splits(self) -> list[tuple[int, int]]:
        """For each access what is added by XOR, and what is simply added, in elements."""
        operand = self.operand
        mixed = _touched(self.side) | (operand.groups - 1) * operand.vector
        return [(at & mixed, at & ~mixed) for at in self.side.vectors.offsets]

    def load(self, step: int) -> dict[int, V]:
        """What the registers of ``rows`` hold at index ``step`` of the block."""
        b, operand = self.writer.b, self.operand
        size = operand.dtype.itemsize
        type_ = register_type(operand.dtype)
        found: dict[int, V] = {}
        for group, (x, y) in zip(self.side.vectors.groups, self._splits, strict=True):
            address = b.gep(self.base[x], (y + step * operand.stride) * size, inbounds=True)
            values = carriers.load(b, len(group), type_, address)
            found.update(zip(group, values, strict=True))
        return found


def _with_axis(
    layout: LinearLayout, number: int, outputs: tuple[tuple[str, int], ...]
) -> LinearLayout:
    """A layout with one more axis before axis ``number``, at index 0 of it."""
    whole = LinearLayout((), outputs)

    def placed(basis: int) -> int:
        coordinates = list(layout.unpack(basis))
        coordinates.insert(number, 0)
        return whole.pack(coordinates)

    inputs = tuple((name, tuple(map(placed, bases))) for name, bases in layout.inputs)
    return LinearLayout(inputs, outputs)


def dot(writer: Writer, op: dots.Dot, a: Held, b: Held, acc: Held | None) -> Held:
    """``a @ b``, plus ``acc`` (in ``dot_home``) where it is given, in ``dot_home``."""
    layout = dot_home(op, writer.num_warps)
    return DotWriter(writer, op, a, b, layout).write(acc)
