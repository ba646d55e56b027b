"""Loads and stores over lanes: contiguous, reversed, strided, gathered; masked or not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tritium.backends.common.rules import register_type
from tritium.backends.emit import (
    Builder,
    V,
    const,
    const_lanes,
    elem,
    i64,
    lanes,
    memory_type,
    true,
    undef,
    vec,
    zero,
)
from tritium.ir.dtypes import Type, int1
from tritium.ir.types import element
from tritium.ops import memory, rearrange

from .index import Point
from .lanes import Lanes, uniform, vector
from .memory_map import Buffer, row_major
from .modes import Mode

if TYPE_CHECKING:
    from .points import Points


class Access:
    """Memory accesses of one ``Points``."""

    def __init__(self, points: Points) -> None:
        self.points = points

    # Scratch.

    def address(self, buffer: Buffer, strides: Sequence[int], point: Point) -> tuple[V, int, int]:
        """Base address at a point, its level, and the lane stride in elements."""
        level = max((index.level for index in point), default=0)
        b = self.points.builders[level]
        offset, step = const(i64, 0), 0
        for index, stride in zip(point, strides, strict=True):
            if stride:
                offset = b.add(offset, b.mul(index.base, const(i64, stride)))
                step += index.stride * stride
        return b.gep(buffer.base, b.mul(offset, const(i64, buffer.itemsize))), level, step

    def read_buffer(self, buffer: Buffer, scalar: Type, point: Point) -> Lanes:
        """A stored tile's elements at a point."""
        return self._read(buffer, buffer.strides, scalar, point)

    def read_linear(
        self, buffer: Buffer, scalar: Type, shape: tuple[int, ...], point: Point
    ) -> Lanes:
        """As ``read_buffer``, the buffer seen under another shape with as many elements."""
        return self._read(buffer, row_major(shape), scalar, point)

    def _read(self, buffer: Buffer, strides: Sequence[int], scalar: Type, point: Point) -> Lanes:
        base, level, step = self.address(buffer, strides, point)
        return self._read_from(buffer, base, level, step, scalar)

    def _read_from(self, buffer: Buffer, base: V, level: int, step: int, scalar: Type) -> Lanes:
        """What lies at an address and every ``step`` elements from there on."""
        p = self.points
        b = p.builders[level]
        size = buffer.itemsize
        if step == 0:
            read = uniform(b.load(register_type(buffer.scalar), base, align=size), level)
        elif step == 1:
            read = vector(b.load(p.register(buffer.scalar), base, align=size), level)
        elif step == -1 and p.n > 1:
            first = b.gep(base, -(p.n - 1) * size)
            loaded = b.load(p.register(buffer.scalar), first, align=size)
            read = vector(self._reversed(level, loaded), level)
        else:
            parts = [
                b.load(
                    memory_type(register_type(buffer.scalar)),
                    b.gep(base, lane * step * size),
                    align=size,
                )
                for lane in range(p.n)
            ]
            read = vector(self._assemble(level, parts, register_type(buffer.scalar, p.n)), level)
        return read if buffer.scalar is scalar else p.convert(read, buffer.scalar, scalar)

    def gather(self, op: rearrange.Gather, buffer: Buffer, point: Point) -> Lanes:
        """Elements of a stored tile at places along an axis that a tile of integers gives."""
        p = self.points
        stride = buffer.strides[op.axis]
        others = tuple(0 if a == op.axis else s for a, s in enumerate(buffer.strides))
        base, level, step = self.address(buffer, others, point)
        index = p.at(op.index, point)
        level = max(level, index.level)
        b = p.builders[level]
        size = buffer.itemsize
        if index.is_uniform or p.n == 1:
            place = self._limited(op, index.v, 1, level)
            start = b.gep(base, b.mul(place, const(i64, stride * size)))
            return self._read_from(buffer, start, level, step, op.x.scalar)
        wide = vec(i64, p.n)
        offsets = b.mul(self._limited(op, p.math.widen(index), p.n, level), const(wide, stride))
        if step:
            offsets = b.add(offsets, const_lanes(i64, [lane * step for lane in range(p.n)]))
        addresses = b.gep(base, b.mul(offsets, const(wide, size)))
        every = const(self._mask_type(), 1)
        read = vector(b.gather(p.register(buffer.scalar), addresses, every, align=size), level)
        scalar = op.x.scalar
        return read if buffer.scalar is scalar else p.convert(read, buffer.scalar, scalar)

    def _limited(self, op: rearrange.Gather, place: V, count: int, level: int) -> V:
        """Places as i64, those outside of the axis moved to its ends."""
        b, type_ = self.points.builders[level], vec(i64, count)
        last = const(type_, op.x.shape[op.axis] - 1)
        signed = op.index.scalar.is_int_signed()
        wide = b.int_cast(place, i64, signed=signed)
        return b.smin(b.smax(wide, const(type_, 0)), last) if signed else b.umin(wide, last)

    def _assemble(self, level: int, parts: Sequence[V], type_: Any) -> V:
        """A vector of lanes loaded one by one as their memory type."""
        b = self.points.builders[level]
        if len(parts) == 1:
            moved = parts[0]
        else:
            moved = undef(memory_type(type_))
            for lane, part in enumerate(parts):
                if part.type is not elem(moved.type):
                    part = b.bitcast(part, elem(moved.type))
                moved = b.insert(moved, part, lane)
        if moved.type is type_:
            return moved
        if elem(type_).bits == 1:
            return b.icmp("ne", moved, zero(moved.type))
        return b.bitcast(moved, type_)

    def write_buffer(self, buffer: Buffer, scalar: Type, value: Lanes, point: Point) -> None:
        """Store a tile's elements at a point."""
        p = self.points
        if buffer.scalar is not scalar:
            value = p.convert(value, scalar, buffer.scalar)
        base, level, step = self.address(buffer, buffer.strides, point)
        level = max(level, value.level, len(p.builders) - 1)
        b = p.builders[level]
        size = buffer.itemsize
        if step == 0:
            b.store(p.math.lane(value, 0), base, align=size)
        elif step == 1:
            b.store(p.math.widen(value), base, align=size)
        else:
            for lane in range(p.n):
                b.store(p.math.lane(value, lane), b.gep(base, lane * step * size), align=size)

    # The user's memory.

    def load(self, op: memory.Load, point: Point) -> Lanes:
        """A load's elements at a point."""
        p = self.points
        scalar = element(op.pointer.type)
        pointer = p.at(op.pointer, point)
        mask = self._load_mask(op, pointer, point)
        if mask.is_uniform and mask.v.integer == 0:
            return self._other(op, scalar, point)
        if pointer.is_uniform and mask.is_uniform:
            return self._load_uniform(op, scalar, pointer, mask, point)
        if mask.is_uniform and mask.v.integer == 1:
            transposed = self._load_transposed(op, scalar, point)
            if transposed is not None:
                return transposed
            return self._load_all(scalar, pointer, op.is_fresh)
        return self._load_masked(op, scalar, pointer, mask, point)

    def _load_mask(self, op: memory.Load, pointer: Lanes, point: Point) -> Lanes:
        """The mask of a load. One that is carried out before the loop can assume nothing."""
        p = self.points
        if op.mask is None:
            return uniform(true, 0)
        if pointer.is_uniform and pointer.level <= p.row_level:
            return p.at(op.mask, point)
        return p.mask_at(op.mask, point)

    def _other(self, op: memory.Load, scalar: Type, point: Point) -> Lanes:
        if op.other is not None:
            return self.points.at(op.other, point)
        return uniform(zero(register_type(scalar)), 0)

    def _load_uniform(
        self, op: memory.Load, scalar: Type, pointer: Lanes, mask: Lanes, point: Point
    ) -> Lanes:
        p = self.points
        type_ = register_type(scalar)
        size = scalar.itemsize
        if mask.v.integer == 1:
            b = p.builders[pointer.level]
            return uniform(
                b.load(type_, pointer.v, align=size, volatile=op.is_fresh), pointer.level
            )
        other = self._other(op, scalar, point)
        if not other.is_uniform:
            loaded = self._guarded(op, pointer, mask, zero(type_))
            level = max(loaded.level, other.level)
            b = p.builders[level]
            mask_lanes = p.math.widen(mask)
            return vector(b.select(mask_lanes, p.math.widen(loaded), p.math.widen(other)), level)
        return self._guarded(op, pointer, mask, other.v, other.level)

    def _guarded(
        self, op: memory.Load, pointer: Lanes, mask: Lanes, other: V, other_level: int = 0
    ) -> Lanes:
        """A scalar load behind a branch: what the mask excludes is not touched."""
        scalar = element(op.pointer.type)
        level = max(pointer.level, mask.level, other_level)
        b = self.points.builders[level]
        before = b.block
        with b.when(mask.v, "masked"):
            type_, size = register_type(scalar), scalar.itemsize
            loaded = b.load(type_, pointer.v, align=size, volatile=op.is_fresh)
            taken = b.block
        return uniform(b.phi(other.type, "", [(other, before), (loaded, taken)]), level)

    def _load_all(self, scalar: Type, pointer: Lanes, volatile: bool) -> Lanes:
        """Every lane is read."""
        p = self.points
        type_ = p.register(scalar)
        size = scalar.itemsize
        level = pointer.level
        b = p.builders[level]
        if p.n == 1:
            return vector(b.load(type_, pointer.v, align=size, volatile=volatile), level)
        if pointer.is_ramp:
            step = pointer.step.integer
            if step == size:
                return vector(b.load(type_, pointer.v, align=size, volatile=volatile), level)
            if step == -size:
                first = b.gep(pointer.v, -(p.n - 1) * size)
                loaded = b.load(type_, first, align=size, volatile=volatile)
                return vector(self._reversed(level, loaded), level)
            scalar_type = memory_type(register_type(scalar))
            parts = [
                b.load(scalar_type, p.math.lane(pointer, lane), align=size, volatile=volatile)
                for lane in range(p.n)
            ]
            return vector(self._assemble(level, parts, type_), level)
        p.kernel.count("gather", p.mode)
        every = const(self._mask_type(), 1)
        return vector(b.gather(type_, p.math.widen(pointer), every, align=size), level)

    def _load_transposed(self, op: memory.Load, scalar: Type, point: Point) -> Lanes | None:
        """The lanes of one row of a block, from vectors loaded along the rows' axis.

        The first row that asks loads and transposes the whole block.
        """
        p = self.points
        block = p.block
        if block is None or p.n != len(block):
            return None
        axis = next((a for a, index in enumerate(point) if index in block), None)
        if axis is None or p.kernel.strides.of(op.pointer)[axis] != scalar.itemsize:
            return None
        first = (*point[:axis], block[0], *point[axis + 1 :])
        pointer = p.at(op.pointer, first)
        if not pointer.is_ramp or pointer.step.integer in (scalar.itemsize, -scalar.itemsize):
            return None
        if not p.assume_adjoining(op.pointer, first, axis, scalar.itemsize):
            return None
        rows = p.transposed.get((op, first))
        if rows is None:
            rows = p.transposed[(op, first)] = self._transpose(scalar, pointer)
        return vector(rows[block.index(point[axis])], pointer.level)

    def _transpose(self, scalar: Type, pointer: Lanes) -> list[V]:
        """n vectors loaded at the lanes of ``pointer``, as n vectors across them."""
        p = self.points
        b = p.builders[pointer.level]
        n = p.n
        rows = [
            b.load(p.register(scalar), p.math.lane(pointer, lane), align=scalar.itemsize)
            for lane in range(n)
        ]
        half = n // 2
        while half:
            rows = _exchange(b, rows, half)
            half //= 2
        return rows

    def _reversed(self, level: int, x: V) -> V:
        b = self.points.builders[level]
        order = list(range(lanes(x.type) - 1, -1, -1))
        return b.shuffle(x, None, order)

    def _mask_type(self) -> Any:
        return self.points.register(int1)

    def _load_masked(
        self, op: memory.Load, scalar: Type, pointer: Lanes, mask: Lanes, point: Point
    ) -> Lanes:
        p = self.points
        type_ = p.register(scalar)
        size = scalar.itemsize
        other = self._other(op, scalar, point)
        passed = p.math.widen(other)
        lanes_mask = p.math.widen(mask)
        if p.n == 1:
            guarded = self._guarded(op, pointer, mask, passed, other.level)
            return vector(guarded.v, guarded.level)
        level = max(pointer.level, mask.level, other.level)
        b = p.builders[level]
        if pointer.is_ramp and pointer.step.integer == size:
            return vector(b.masked_load(type_, pointer.v, lanes_mask, passed, align=size), level)
        if pointer.is_ramp and pointer.step.integer == -size:
            first = b.gep(pointer.v, -(p.n - 1) * size)
            flipped = self._reversed(level, lanes_mask)
            other_flipped = self._reversed(level, passed)
            loaded = b.masked_load(type_, first, flipped, other_flipped, align=size)
            return vector(self._reversed(level, loaded), level)
        p.kernel.count("masked strided load" if pointer.is_ramp else "masked gather", p.mode)
        addresses = p.math.widen(pointer)
        return vector(b.gather(type_, addresses, lanes_mask, passed, align=size), level)

    def store(self, op: memory.Store, point: Point) -> None:
        """Carry out a store at a point, in the innermost loop."""
        p = self.points
        scalar = element(op.pointer.type)
        mask = p.store_mask(op, point)
        if mask.is_uniform and mask.v.integer == 0:
            return
        pointer = p.at(op.pointer, point)
        value = p.at(op.value, point)
        b = p.builders[-1]
        if mask.is_uniform:
            if mask.v.integer == 1:
                self._store_all(op, scalar, pointer, value)
            else:
                with b.when(mask.v, "masked"):
                    self._store_all(op, scalar, pointer, value)
        else:
            self._store_masked(scalar, pointer, value, mask)

    def _store_all(self, op: memory.Store, scalar: Type, pointer: Lanes, value: Lanes) -> None:
        p = self.points
        size = scalar.itemsize
        b = p.builders[-1]
        if pointer.is_uniform or p.n == 1:
            # All lanes share the address: the last one wins.
            b.store(p.math.lane(value, p.n - 1), pointer.v, align=size)
        elif pointer.is_ramp:
            step = pointer.step.integer
            if step == size:
                self._store_vector(op, p.math.widen(value), pointer.v, size)
            elif step == -size:
                turned = self._reversed(len(p.builders) - 1, p.math.widen(value))
                b.store(turned, b.gep(pointer.v, -(p.n - 1) * size), align=size)
            else:
                for lane in range(p.n):
                    b.store(p.math.lane(value, lane), p.math.lane(pointer, lane), align=size)
        else:
            p.kernel.count("scatter", p.mode)
            every = const(self._mask_type(), 1)
            b.scatter(p.math.widen(value), p.math.widen(pointer), every, align=size)

    def _store_vector(self, op: memory.Store, value: V, address: V, size: int) -> None:
        p = self.points
        if p.mode is Mode.INTERIOR:
            p.contiguous.add(op)
        streaming = op in p.streaming
        align = size * p.n if streaming else size
        p.builders[-1].store(value, address, align=align, nontemporal=streaming)

    def _store_masked(self, scalar: Type, pointer: Lanes, value: Lanes, mask: Lanes) -> None:
        p = self.points
        size = scalar.itemsize
        b = p.builders[-1]
        if p.n == 1:
            with b.when(mask.v, "masked"):
                b.store(p.math.lane(value, 0), pointer.v, align=size)
            return
        lanes_mask = p.math.widen(mask)
        if pointer.is_ramp and abs(pointer.step.integer or 0) == size:
            lanes_mask = p.kernel.hidden(b, lanes_mask, size)
        if pointer.is_ramp and pointer.step.integer == size:
            b.masked_store(p.math.widen(value), pointer.v, lanes_mask, align=size)
        elif pointer.is_ramp and pointer.step.integer == -size:
            level = len(p.builders) - 1
            turned = self._reversed(level, p.math.widen(value))
            first = b.gep(pointer.v, -(p.n - 1) * size)
            b.masked_store(turned, first, self._reversed(level, lanes_mask), align=size)
        else:
            what = "masked strided store" if pointer.is_ramp else "masked scatter"
            p.kernel.count(what, p.mode)
            b.scatter(p.math.widen(value), p.math.widen(pointer), lanes_mask, align=size)


def _exchange(b: Builder, rows: list[V], half: int) -> list[V]:
    """One round of a transposition: swap blocks of ``half`` lanes between rows ``half`` apart."""
    n = len(rows)
    low = [lane if not lane & half else n + lane - half for lane in range(n)]
    high = [lane + half if not lane & half else n + lane for lane in range(n)]
    made = list(rows)
    for row in range(n):
        if not row & half:
            upper, lower = rows[row], rows[row + half]
            made[row] = b.shuffle(upper, lower, low)
            made[row + half] = b.shuffle(upper, lower, high)
    return made
