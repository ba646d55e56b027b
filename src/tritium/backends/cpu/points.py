"""Computes elements of tiles at points: the pull-based heart of the code generator.

``Points.at(value, point)`` gives a tile's elements at one position, or over the lanes of a vector,
by walking back through the operations that make it. What does not depend on an inner loop is
written outside of it. Three modes compile the same sinks under different assumptions:

* INTERIOR: masks that are intervals are true, linear integers don't wrap,
* BOUNDARY: linear integers don't wrap, masks are computed lane by lane,
* GENERIC: nothing is assumed.

The conditions of an assumption are collected in ``Assumptions`` for the loop's head to test.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tritium.backends.common.rules import Lowering, register_type, rule_of
from tritium.backends.emit import Builder, LType, V, const, i32, i64, i128, int_, true
from tritium.diagnostics import InternalError
from tritium.ir.core import Op, Value
from tritium.ir.dtypes import DType, Type, int1
from tritium.ir.types import element
from tritium.ops import arith, cast, compare, create, logic, memory, rearrange
from tritium.ops.shape import Reshape

from .access import Access
from .facts import is_affine, is_generator
from .index import SHAPE_OPS, ZERO, Index, Point, map_point, operand_of, splits_axis
from .lanes import LaneMath, Lanes, ramp, uniform, vector
from .memory_map import Buffer
from .modes import Mode

if TYPE_CHECKING:
    from .kernel import KernelWriter


@dataclass
class Assumptions:
    """What must hold before a loop, found while its body is written.

    ``linear``: conditions under which no linear integer wraps. ``rows``: masks that are uniform
    over the lanes. ``lower``/``upper``: bounds of the lane axis between which every interval mask
    is true, as i64 values. All are uniform and known before the loop.
    """

    linear: list[Lanes] = field(default_factory=list)
    rows: list[Lanes] = field(default_factory=list)
    lower: list[Lanes] = field(default_factory=list)
    upper: list[Lanes] = field(default_factory=list)


_ORDERED = {
    compare.Lt: ("lt", "gt"),
    compare.Le: ("le", "ge"),
    compare.Gt: ("gt", "lt"),
    compare.Ge: ("ge", "le"),
}


class Points:
    """Elements at points inside one subnest. ``builders`` by loop level; the last is innermost."""

    def __init__(
        self,
        kernel: KernelWriter,
        builders: Sequence[Builder],
        row_values: dict[Value, tuple[Point, V]],
        extent: int,
        block: Sequence[Index] | None = None,
        kept: Collection[Value] = (),
    ) -> None:
        self.kernel = kernel
        self.kept = kept
        """Values that this subnest stores: until it has, none of their elements can be read."""
        self.block = block
        """The rows of a block that is transposed in registers."""
        self.transposed: dict[Any, list[V]] = {}
        self.contiguous: set[Op] = set()
        """Stores that the interior carries out as whole vectors."""
        self.streaming: set[memory.Store] = set()
        """Stores that bypass the cache in the version being written."""
        self.builders = list(builders)
        self.row_level = len(builders) - 1
        self.row_values = row_values
        self.extent = extent
        self.mode = Mode.GENERIC
        self.n = 1
        self.math = LaneMath(self.builders, 1)
        self.access = Access(self)
        self.assumed = Assumptions()
        self.store_bounds: dict[Op, list[Lanes]] = {}
        """What masks of stores were assumed to be: row masks (i1) and upper bounds (i64)."""
        self._linear_keys: set[Any] = set()
        self._intervals: dict[Any, tuple[bool, Lanes]] = {}
        self._merged: dict[tuple[tuple[Index, int], ...], Index] = {}
        self._parts: dict[tuple[Index, int, int], Index] = {}
        self._outer_memo: dict[Any, Lanes] = {}
        self._inner_memo: dict[Any, Lanes] = {}

    def body(self, builder: Builder, mode: Mode, lanes: int) -> None:
        """Start writing an inner loop's body."""
        self.builders = [*self.builders[: self.row_level + 1], builder]
        self.mode = mode
        self.n = lanes
        self.math = LaneMath(self.builders, lanes)
        self._inner_memo = {}
        self.transposed = {}

    # Points.

    def row(self, point: Point) -> Point:
        """The point at lane axis position 0, the same for every trip of the inner loop."""
        return tuple(index.origin or index for index in point)

    def merge(self, parts: Sequence[tuple[Index, int]]) -> Index:
        """Row-major position of several axes taken as one."""
        key = tuple(parts)
        if key not in self._merged:
            self._merged[key] = self._merge(parts)
        return self._merged[key]

    def _merge(self, parts: Sequence[tuple[Index, int]]) -> Index:
        level = max(index.level for index, _ in parts)
        b = self.builders[level]
        base, stride = const(i64, 0), 0
        for index, extent in parts:
            base = b.add(b.mul(base, const(i64, extent)), index.base)
            stride = stride * extent + index.stride
        origin = None
        if any(index.origin for index, _ in parts):
            origin = self.merge([(index.origin or index, extent) for index, extent in parts])
        along, sliced = (any(getattr(i, name) for i, _ in parts) for name in ("along", "sliced"))
        return Index(level, base, stride, origin, along, sliced)

    def part(self, index: Index, start: int, step: int) -> Index:
        """The place of a slice."""
        key = (index, start, step)
        if key not in self._parts:
            b = self.builders[index.level]
            base = b.add(b.mul(index.base, const(i64, step)), const(i64, start))
            origin = self.part(index.origin, start, step) if index.origin is not None else None
            self._parts[key] = Index(
                index.level, base, index.stride * step, origin, index.along, True
            )
        return self._parts[key]

    def at(self, value: Value, point: Point) -> Lanes:
        """The elements of ``value`` at ``point``."""
        known = self._memo(point).get((value, point))
        return self._chain(value, point) if known is None else known

    def _chain(self, value: Value, point: Point) -> Lanes:
        """As ``at``: operands before what is made from them, however long that chain is."""
        pending = [(value, point)]
        while True:
            value, point = pending[-1]
            memo = self._memo(point)
            made_from = [] if (value, point) in memo else self._made_from(value, point)
            missing = [each for each in made_from if each not in self._memo(each[1])]
            pending.extend(reversed(missing))
            if missing:
                continue
            pending.pop()
            known = memo.get((value, point))
            if known is None:
                known = memo[value, point] = self._find(value, point)
            if not pending:
                return known

    def _made_from(self, value: Value, point: Point) -> list[tuple[Value, Point]]:
        """What a value that is computed here is made from first, and where."""
        op = value.defining_op
        if not value.shape or op is None or self._buffer(value) is not None:
            return []
        row = self.row_values.get(value)
        if row is not None and _same(row[0], point):
            return []
        if isinstance(op, SHAPE_OPS):
            return self._source(op, point)
        if isinstance(op, (create.Splat, create.Arange)):
            return []
        if isinstance(op, memory.Load):
            return [(op.pointer, point)]
        if isinstance(op, rearrange.Gather):
            return [(op.index, point)]
        return [(operand, point) for operand in op.operands]

    def _source(self, op: Op, point: Point) -> list[tuple[Value, Point]]:
        """The operand of a shape operation and the point of it, unless it is read linearly."""
        if isinstance(op, Reshape) and splits_axis(op):
            return []
        source = operand_of(op)
        return [(source, map_point(op, point, ZERO, self.merge, self.part) if source.shape else ())]

    def compute(self, value: Value, point: Point) -> Lanes:
        """As ``at``, for a value that is being stored: its elements are computed, not read."""
        known = self._from_op(value, point)
        self._memo(point)[(value, point)] = known
        return known

    def _memo(self, point: Point) -> dict[Any, Lanes]:
        inner = any(index.is_lane or index.level > self.row_level for index in point)
        return self._inner_memo if inner else self._outer_memo

    def _buffer(self, value: Value) -> Buffer | None:
        """Where a stored value is read; None where it is computed.

        Positions that an operation reads as a whole are stored for it alone: elsewhere they are
        computed, since accesses are planned by their strides.
        """
        if value in self.kept:
            return None
        kernel = self.kernel
        buffer = kernel.buffers.get(value)
        if buffer is None or not is_generator(value, kernel.generators):
            return buffer
        return None if is_affine(value, kernel.strides) else buffer

    def _find(self, value: Value, point: Point) -> Lanes:
        if not value.shape:
            return uniform(self.kernel.scalars[value], 0)
        row = self.row_values.get(value)
        if row is not None and _same(row[0], point):
            return uniform(row[1], self.row_level)
        buffer = self._buffer(value)
        if buffer is not None:
            return self.access.read_buffer(buffer, value.scalar, point)
        return self._from_op(value, point)

    def _from_op(self, value: Value, point: Point) -> Lanes:
        op = value.defining_op
        if op is None:
            raise InternalError(f"no storage for {value}")
        if isinstance(op, SHAPE_OPS):
            return self._shape(op, point)
        if isinstance(op, create.Splat):
            return self.at(op.x, ())
        if isinstance(op, create.Arange):
            return self._arange(op, point[0])
        if isinstance(op, memory.Load):
            return self.access.load(op, point)
        if isinstance(op, rearrange.Gather):
            return self.access.gather(op, self.kernel.buffers[op.x], point)
        operands = [self.at(operand, point) for operand in op.operands]
        return self._integer(op, operands, point) or self.elementwise(op, operands)

    def _shape(self, op: Op, point: Point) -> Lanes:
        for source, inner in self._source(op, point):
            return self.at(source, inner)
        source = operand_of(op)
        shape = op.results[0].shape
        return self.access.read_linear(self.kernel.buffers[source], source.scalar, shape, point)

    def _arange(self, op: create.Arange, index: Index) -> Lanes:
        b = self.builders[index.level]
        base = b.add(b.trunc(index.base, i32), const(i32, op.start))
        return ramp(base, const(i32, index.stride), index.level, 0)

    # Linear integers.

    def _integer(self, op: Op, operands: list[Lanes], point: Point) -> Lanes | None:
        """The result as a ramp where that is possible and pays; None otherwise."""
        if all(x.is_uniform for x in operands) or not all(map(self.math.linear, operands)):
            return None if not isinstance(op, memory.Offset) else self._offset(op, operands, point)
        if isinstance(op, memory.Offset):
            return self._offset(op, operands, point)
        scalar = op.results[0].scalar
        if not scalar.is_int() or scalar is int1:
            return None
        if isinstance(op, (arith.Add, arith.Sub)):
            return self.math.add(*operands, subtract=isinstance(op, arith.Sub))
        if isinstance(op, arith.Mul):
            x, y = operands
            if y.is_uniform:
                return self.math.scale(x, y)
            return self.math.scale(y, x) if x.is_uniform else None
        if isinstance(op, cast.Convert):
            return self._convert(op, operands[0], point)
        return None

    def _convert(self, op: cast.Convert, x: Lanes, point: Point) -> Lanes | None:
        source = op.x.scalar
        assert isinstance(source, DType)
        if source is int1 or not source.is_int():
            return None
        return self._resize(op.x, x, op.dtype.bits, point)

    def _resize(self, value: Value, x: Lanes, bits: int, point: Point) -> Lanes | None:
        """A linear integer in another width; None when it may wrap on the way up."""
        source = value.scalar
        assert isinstance(source, DType)
        signed = source.is_int_signed()
        if bits > source.bits and x.is_ramp:
            if not self.assume_linear(value, point):
                return None
            lane = next((index for index in point if index.is_lane), None)
            if lane is not None and lane.stride == 1 and not any(index.along for index in point):
                return self._widened_ramp(value, x, int_(bits), point, lane)
        return self.math.resize(x, int_(bits), signed=signed)

    def _widened_ramp(
        self, value: Value, x: Lanes, target: LType, point: Point, lane: Index
    ) -> Lanes:
        """A ramp that doesn't wrap in a wider type: its start is widened outside of the loop."""
        source = value.scalar
        assert isinstance(source, DType)
        row = self.builders[self.row_level]
        start = self.at(value, self.row(point)).v
        first = row.int_cast(start, target, signed=source.is_int_signed())
        step = self.builders[x.stride_level].int_cast(x.step, target, signed=True)
        b = self.builders[lane.level]
        start_of_axis = lane.origin.base if lane.origin is not None else const(i64, 0)
        position = b.int_cast(b.sub(lane.base, start_of_axis), target, signed=True)
        return ramp(b.add(first, b.mul(position, step)), step, lane.level, x.stride_level)

    def _offset(self, op: memory.Offset, operands: list[Lanes], point: Point) -> Lanes:
        pointer, offset = operands
        size = element(op.pointer.type).itemsize
        wide = self._resize(op.offset, offset, 64, point) if self.math.linear(offset) else None
        if wide is None:
            source = op.offset.scalar
            b = self.builders[offset.level]
            lanes = self.math.widen(offset)
            signed = source.is_int_signed()
            wide = vector(b.int_cast(lanes, i64, signed=signed), offset.level)
        return self.math.offset(pointer, wide, size)

    def assume_linear(self, value: Value, point: Point) -> bool:
        """Assume that an integer does not wrap along the lane axis, unless nothing is assumed."""
        if self.mode is Mode.GENERIC:
            return False
        moving = [axis for axis, index in enumerate(point) if index.along]
        if any(point[axis].sliced for axis in moving):
            return False
        if moving and any(self.kernel.strides.of(value)[axis] is None for axis in moving):
            return False
        row = self.row(point)
        key = (value, row, tuple(moving))
        if key not in self._linear_keys:
            self._linear_keys.add(key)
            here = self.at(value, point)
            self.assumed.linear.append(self._stays_in_range(value, here, row, moving))
        return True

    def assume_adjoining(self, pointer: Value, point: Point, axis: int, size: int) -> bool:
        """Assume that the rows of the block follow each other in memory, unless nothing is assumed.

        With ``assume_linear`` of each row this holds in every lane.
        """
        if self.mode is Mode.GENERIC or self.block is None:
            return False
        row = self.row(point)
        key = (pointer, row, axis)
        if key not in self._linear_keys:
            self._linear_keys.add(key)
            first, *others = (
                self.at(pointer, (*row[:axis], index, *row[axis + 1 :])) for index in self.block
            )
            level = max(each.level for each in (first, *others))
            b = self.builders[level]
            holds = true
            for number, other in enumerate(others, 1):
                expected = b.gep(first.v, number * size)
                holds = b.and_(holds, b.icmp("eq", other.v, expected))
            self.assumed.linear.append(uniform(holds, level))
        return True

    def _stays_in_range(self, value: Value, x: Lanes, row: Point, moving: list[int]) -> Lanes:
        """Whether an affine integer stays within its type at every corner of the inner loops."""
        scalar = value.scalar
        assert isinstance(scalar, DType)
        signed = scalar.is_int_signed()
        wide = i64 if scalar.bits < 64 else i128
        first_lane = self.at(value, row)
        level = max(first_lane.level, x.stride_level)
        b, start = self.builders[level], first_lane.v
        first = b.int_cast(start, wide, signed=signed)
        step = b.int_cast(x.step, wide, signed=True)
        corners = [first, b.add(first, b.mul(step, const(wide, self.extent - 1)))]
        for axis in moving:
            beside = (*row[:axis], Index(0, const(i64, 1)), *row[axis + 1 :])
            stride = b.int_cast(b.sub(self.at(value, beside).v, start), wide, signed=True)
            reach = b.mul(stride, const(wide, value.shape[axis] - 1))
            corners += [b.add(corner, reach) for corner in corners]
        holds = true
        for corner in corners[1:]:
            low = b.icmp("sge", corner, const(wide, scalar.get_int_min_value()))
            high = b.icmp("sle", corner, const(wide, scalar.get_int_max_value()))
            holds = b.and_(holds, b.and_(low, high))
        return uniform(holds, level)

    # Masks.

    def mask_at(self, value: Value, point: Point, store: Op | None = None) -> Lanes:
        """A mask's lanes; in the interior, intervals and row masks become true by assumption.

        What is assumed of the mask of a ``store`` is noted in ``store_bounds``.
        """
        if self.mode is Mode.INTERIOR and value.shape and value not in self.kernel.buffers:
            op = value.defining_op
            if isinstance(op, logic.And):
                x, y = self.mask_at(op.x, point, store), self.mask_at(op.y, point, store)
                if x.v.integer == 1:
                    return y
                return x if y.v.integer == 1 else self.elementwise(op, [x, y])
            if isinstance(op, SHAPE_OPS) and not (isinstance(op, Reshape) and splits_axis(op)):
                source = operand_of(op)
                inner = map_point(op, point, ZERO, self.merge, self.part) if source.shape else ()
                return self.mask_at(source, inner, store)
            if type(op) in _ORDERED and self._assume_interval(op, point, store):
                return uniform(true, 0)
        mask = self.at(value, point)
        if self.mode is Mode.INTERIOR and mask.is_uniform and mask.level <= self.row_level:
            if mask.v.integer is None:
                if all(known.v.text != mask.v.text for known in self.assumed.rows):
                    self.assumed.rows.append(mask)
                self._note_bound(store, mask)
            elif mask.v.integer == 0:
                return mask
            return uniform(true, 0)
        return mask

    def _note_bound(self, store: Op | None, bound: Lanes) -> None:
        if store is not None:
            noted = self.store_bounds.setdefault(store, [])
            if all(known.v.text != bound.v.text for known in noted):
                noted.append(bound)

    def store_mask(self, op: memory.Store, point: Point) -> Lanes:
        """The mask of a store; what is assumed of it is noted in ``store_bounds``."""
        if op.mask is None:
            return uniform(true, 0)
        return self.mask_at(op.mask, point, op)

    def _assume_interval(self, op: Any, point: Point, store: Op | None) -> bool:
        scalar = op.x.scalar
        if not isinstance(scalar, DType) or not scalar.is_int() or scalar is int1:
            return False
        x, y = self.at(op.x, point), self.at(op.y, point)
        relation, mirrored = _ORDERED[type(op)]
        if x.is_ramp and y.is_uniform and y.level <= self.row_level:
            return self._interval(op.x, x, y, relation, point, store)
        if y.is_ramp and x.is_uniform and x.level <= self.row_level:
            return self._interval(op.y, y, x, mirrored, point, store)
        return False

    def _interval(
        self,
        value: Value,
        x: Lanes,
        bound: Lanes,
        relation: str,
        point: Point,
        store: Op | None,
    ) -> bool:
        """Assume first + step * i <relation> bound for the lane positions i of the interior."""
        step = x.step.integer
        if step is None or any(index.along for index in point):
            return False
        key = (value, self.row(point), bound.v.text, relation)
        if key not in self._intervals:
            self._intervals[key] = self._find_interval(value, step, bound, relation, point)
            is_upper, position = self._intervals[key]
            (self.assumed.upper if is_upper else self.assumed.lower).append(position)
        is_upper, position = self._intervals[key]
        if is_upper:
            self._note_bound(store, position)
        return True

    def _find_interval(
        self, value: Value, step: int, bound: Lanes, relation: str, point: Point
    ) -> tuple[bool, Lanes]:
        self.assume_linear(value, point)
        scalar = value.scalar
        assert isinstance(scalar, DType)
        signed = scalar.is_int_signed()
        wide = i64 if scalar.bits < 64 else i128
        start = self.at(value, self.row(point))
        level = max(start.level, bound.level)
        b = self.builders[level]
        first = b.int_cast(start.v, wide, signed=signed)
        room = b.sub(b.int_cast(bound.v, wide, signed=signed), first)
        if step < 0:
            relation = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}[relation]
            room, step = b.sub(const(wide, 0), room), -step
        return relation in ("lt", "le"), uniform(self._bound(b, room, step, relation), level)

    def _bound(self, b: Builder, room: V, step: int, relation: str) -> V:
        """step * i <relation> room as a bound of i, clamped to the axis."""
        wide = room.type
        if relation not in ("lt", "ge"):
            # i * step <= room is i * step < room + 1, and > is >=.
            room = b.add(room, const(wide, 1))
        if step == 1:
            clamped = b.smin(b.smax(room, const(wide, 0)), const(wide, self.extent))
            return b.trunc(clamped, i64)
        # room / step rounded up; room - 1 fits 64 bits where room is positive.
        last = b.trunc(b.sub(room, const(wide, 1)), i64)
        last = b.umin(b.udiv(last, const(i64, step)), const(i64, self.extent - 1))
        positive = b.icmp("sgt", room, const(wide, 0))
        return b.select(positive, b.add(last, const(i64, 1)), const(i64, 0))

    # Everything else.

    def elementwise(self, op: Op, operands: list[Lanes]) -> Lanes:
        """Apply the operation's lowering rule, on scalars where no operand varies."""
        level = max((x.level for x in operands), default=0)
        rule = rule_of(op, *self.kernel.rules)
        b = self.builders[level]
        if all(x.is_uniform for x in operands):
            lowering = Lowering(b, self.kernel.target, 1)
            return uniform(rule(lowering, op, *(x.v for x in operands)), level)
        lowering = Lowering(b, self.kernel.target, self.n)
        lanes = [self.math.widen(x) for x in operands]
        return vector(rule(lowering, op, *lanes), level)

    def convert(self, x: Lanes, source: Type, target: Type) -> Lanes:
        """A value in another scalar type, by the rule of ``cast.convert``."""
        if source is target:
            return x
        assert isinstance(target, DType)
        template = cast.Convert(x=Value(source), dtype=target, rounding="rtne")
        template.make_results()
        return self.elementwise(template, [x])

    def register(self, scalar: Type) -> Any:
        """The LLVM type of a vector of this many lanes."""
        return register_type(scalar, self.n)


def _same(left: Point, right: Point) -> bool:
    return len(left) == len(right) and all(a is b for a, b in zip(left, right, strict=True))
