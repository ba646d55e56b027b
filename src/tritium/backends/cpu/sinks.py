"""Sinks: the operations that force elements of a tile to be computed, and what each reads.

A sink walks its operands back to what is known already: scalars, stored tiles, positions. The walk
carries an abstract point, so that it also tells at which positions each stored tile is read.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tritium.ir.core import Op, Value
from tritium.ops import create, memory, rearrange
from tritium.ops.shape import Reshape

from .facts import Strides
from .index import SHAPE_OPS, Point, map_point, operand_of, splits_axis

LANE = "lane"
ALONG = "along"
ZERO_TOKEN = "0"


class SinkKind(enum.Enum):
    """What happens to the elements."""

    STORE = "store"
    REDUCE = "reduce"
    KEEP = "keep"
    """Written to scratch, to be read again."""


@dataclass(eq=False)
class Sink:
    """One sink with its loop structure.

    ``space`` are the extents of its index space; ``lane`` is the axis vectors run along, ``along``
    the axis a reduction runs over when that is not the lane axis, ``outer`` the other axes.
    """

    kind: SinkKind
    op: Op
    position: int
    space: tuple[int, ...]
    lane: int
    along: int | None = None
    value: Value | None = None
    reads: dict[memory.Load, list[Point]] = field(default_factory=dict)
    """Loads computed inside the sink's loops, each with the points it is read at."""
    uses: list[tuple[Value, Point]] = field(default_factory=list)
    inlined: set[Value] = field(default_factory=set)
    block: int | None = None
    """The outer axis blocked for in-register transposition, if any."""

    @property
    def outer(self) -> tuple[int, ...]:
        return tuple(a for a in range(len(self.space)) if a not in (self.lane, self.along))

    @property
    def outer_extents(self) -> tuple[int, ...]:
        return tuple(self.space[axis] for axis in self.outer)

    @property
    def results(self) -> tuple[Value, ...]:
        """The values that later code may read from this sink."""
        if self.kind is SinkKind.REDUCE:
            return tuple(self.op.results)
        return (self.value,) if self.value is not None else ()

    @property
    def store(self) -> memory.Store | None:
        return self.op if isinstance(self.op, memory.Store) and self.value is None else None

    def roots(self) -> list[Value]:
        """The tiles whose elements are computed, all of shape ``space``."""
        if self.kind is SinkKind.KEEP:
            assert self.value is not None
            return [self.value]
        return [operand for operand in self.op.operands if operand.shape == self.space]

    def tokens(self) -> Point:
        """The abstract point: outer axes by number, the lane, the reduced axis."""
        point: list[Any] = [ZERO_TOKEN] * len(self.space)
        for number, axis in enumerate(self.outer):
            point[axis] = ("outer", number)
        point[self.lane] = LANE
        if self.along is not None:
            point[self.along] = ALONG
        return tuple(
            ZERO_TOKEN if extent == 1 else token
            for extent, token in zip(self.space, point, strict=True)
        )

    def result_tokens(self) -> Point:
        """The abstract point of a result: without the axis that a reduction takes away."""
        tokens = self.tokens()
        if self.kind is not SinkKind.REDUCE:
            return tokens
        axis = self.op.attributes["axis"]
        return (*tokens[:axis], *tokens[axis + 1 :])


def default_lane(shape: Sequence[int]) -> int:
    """The last axis that is longer than 1."""
    for axis in range(len(shape) - 1, -1, -1):
        if shape[axis] > 1:
            return axis
    return len(shape) - 1


def contiguous_axis(strides: Sequence[int | str | None], size: int) -> int | None:
    """The axis an access steps along element by element."""
    for axis in range(len(strides) - 1, -1, -1):
        stride = strides[axis]
        if isinstance(stride, int) and abs(stride) == size:
            return axis
    return None


def access_lane(pointer: Value, size: int, strides: Strides) -> int:
    """The axis along which vectors of an access should run."""
    found = contiguous_axis(strides.of(pointer), size)
    return default_lane(pointer.shape) if found is None else found


def transposed_axis(sink: Sink, strides: Strides, width: int) -> int | None:
    """The outer axis along which a load of the sink is contiguous while the lanes stride it.

    Blocks of ``width`` rows by ``width`` lanes then load along that axis and transpose in
    registers.
    """
    if sink.kind is SinkKind.REDUCE or sink.space[sink.lane] < width:
        return None
    reads = [(load, point) for load, points in sink.reads.items() for point in points]
    for load, point in reads:
        size = load.result.scalar.itemsize
        steps = strides.of(load.pointer)
        if LANE not in point or len(steps) != len(point):
            continue
        step = steps[point.index(LANE)]
        if step is None or step in (0, size, -size):
            continue
        for axis, token in enumerate(point):
            if steps[axis] == size and isinstance(token, tuple) and token[0] == "outer":
                outer = sink.outer[token[1]]
                if sink.space[outer] >= width:
                    return outer
    return None


class Walker:
    """Fills in what a sink reads, given the values that are stored."""

    def __init__(self, sink: Sink, stored: set[Value]) -> None:
        self.sink = sink
        self.stored = stored
        self.seen: set[tuple[Value, Point]] = set()

    def run(self) -> None:
        self.sink.reads.clear()
        self.sink.uses.clear()
        self.sink.inlined.clear()
        for value in self.sink.roots():
            self.visit(value, self.sink.tokens(), top=self.sink.kind is SinkKind.KEEP)
        for operand in self.sink.op.operands:
            if not operand.shape and self.sink.kind is not SinkKind.KEEP:
                self.sink.uses.append((operand, ()))

    def visit(self, value: Value, point: Point, *, top: bool = False) -> None:
        """Follow what ``value`` is made from; chains of operations may be of any length."""
        pending = [(value, point)]
        while pending:
            value, point = pending.pop()
            if (value, point) not in self.seen:
                self.seen.add((value, point))
                pending.extend(reversed(self._made_from(value, point, top)))
            top = False

    def _made_from(self, value: Value, point: Point, top: bool) -> list[tuple[Value, Point]]:
        """The operands that are computed along with ``value``, if it is, and where."""
        op = value.defining_op
        if not value.shape or (value in self.stored and not top):
            self.sink.uses.append((value, point))
            return []
        self.sink.inlined.add(value)
        if op is None:
            self.sink.uses.append((value, point))
            return []
        if isinstance(op, SHAPE_OPS):
            return [self._source(op, point)]
        if isinstance(op, memory.Load):
            self.sink.reads.setdefault(op, []).append(point)
        if isinstance(op, rearrange.Gather):
            return [(op.x, ("anywhere",) * (len(op.x.shape) + 1)), (op.index, point)]
        inner = () if isinstance(op, create.Splat) else point
        return [(operand, inner if operand.shape else ()) for operand in op.operands]

    @staticmethod
    def _source(op: Op, point: Point) -> tuple[Value, Point]:
        source = operand_of(op)
        if isinstance(op, Reshape) and splits_axis(op):
            return source, ("linear",)
        if not source.shape:
            return source, ()
        return source, map_point(
            op,
            point,
            ZERO_TOKEN,
            lambda parts: ("merged", tuple(parts)),
            lambda index, start, step: ("part", index, start, step),
        )
