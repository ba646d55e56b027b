"""Points of an index space, and how shape operations map a result's point to their operand's.

The planner runs the maps on abstract points, the code generator on real ones: one rule for both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tritium.backends.emit import V, const, i64
from tritium.ir.core import Op, Value
from tritium.ops.rearrange import Slice
from tritium.ops.shape import Broadcast, ExpandDims, Reshape, Trans


@dataclass(frozen=True, eq=False)
class Index:
    """A position along one axis: ``base + stride * lane``.

    ``base`` is an i64 known at loop level ``level`` (0: before the nest); ``stride`` is 0 where
    all lanes stand at one position. ``origin`` is the index for position 0 of the inner loops,
    None for an index that doesn't depend on them.
    """

    level: int
    base: V
    stride: int = 0
    origin: Index | None = None
    along: bool = False
    """Whether it counts along a reduced axis, inside the lane loop."""
    sliced: bool = False
    """Whether it is a place of a slice, whose order and distances are its own."""

    @property
    def is_lane(self) -> bool:
        return self.stride != 0


ZERO = Index(0, const(i64, 0))
"""The only position of an axis of extent 1."""

Point = tuple[Any, ...]
Merge = Callable[[Sequence[tuple[Any, int]]], Any]
"""Row-major position of several (index, extent) pairs taken as one axis."""

Part = Callable[[Any, int, int], Any]
"""``start + step * index`` of an index."""

SHAPE_OPS = (Broadcast, ExpandDims, Reshape, Trans, Slice)


def reshape_groups(
    source: Sequence[int], result: Sequence[int]
) -> list[tuple[list[int], list[int]]]:
    """Cut two shapes of equal size into the finest runs of axes with equal products."""
    groups: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(source) or j < len(result):
        left: list[int] = []
        right: list[int] = []
        a = b = 1
        while a != b or not (left or right):
            if (a <= b and i < len(source)) or j >= len(result):
                a *= source[i]
                left.append(i)
                i += 1
            else:
                b *= result[j]
                right.append(j)
                j += 1
        groups.append((left, right))
    return groups


def splits_axis(op: Reshape) -> bool:
    """Whether a result axis runs over several operand axes: then the operand is stored first."""
    source, result = op.x.shape, op.shape
    return any(
        sum(source[axis] > 1 for axis in left) > 1 for left, _ in reshape_groups(source, result)
    )


def map_point(op: Op, point: Point, zero: Any, merge: Merge, part: Part) -> Point:
    """The operand's point for a result's point of a shape operation."""
    if isinstance(op, Slice):
        axes = zip(point, op.starts, op.steps, op.x.shape, op.extents, strict=True)
        return tuple(
            index if n == count and step == 1 else part(index, start, step)
            for index, start, step, n, count in axes
        )
    if isinstance(op, Broadcast):
        return tuple(
            zero if old == 1 else index for old, index in zip(op.x.shape, point, strict=True)
        )
    if isinstance(op, ExpandDims):
        return (*point[: op.axis], *point[op.axis + 1 :])
    if isinstance(op, Trans):
        mapped = [zero] * len(point)
        for axis, source in enumerate(op.order):
            mapped[source] = point[axis]
        return tuple(mapped)
    assert isinstance(op, Reshape)
    shape, result = op.x.shape, op.shape
    mapped = [zero] * len(shape)
    for left, right in reshape_groups(shape, result):
        long = [axis for axis in left if shape[axis] > 1]
        parts = [(point[axis], result[axis]) for axis in right if result[axis] > 1]
        if long:
            (axis,) = long
            mapped[axis] = parts[0][0] if len(parts) == 1 else merge(parts)
    return tuple(mapped)


def operand_of(op: Op) -> Value:
    """The one operand of a shape operation."""
    assert isinstance(op, SHAPE_OPS)
    value: Value = op.x
    return value
