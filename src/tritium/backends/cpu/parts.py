"""Tiles that are put together from stored ones: joined, or one with a part replaced."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from tritium.backends.emit import V, const, i64
from tritium.ir.core import Value
from tritium.ops.rearrange import Cat, Update

from .dots import copy_tile
from .index import ZERO, Index, Point
from .memory_map import Buffer
from .points import Points
from .sinks import default_lane
from .whole import writes

if TYPE_CHECKING:
    from .kernel import KernelWriter

Shape = tuple[int, ...]


@writes(Cat, Update)
def put_together(kernel: KernelWriter, op: Cat | Update) -> None:
    """Write such an operation where the kernel stands."""
    # It is placed where the result of a branch lives, never where it would be read meanwhile.
    target = kernel.placed.get(op.result) or kernel.buffer(op.result)
    kernel.buffers[op.result] = target
    rank = len(op.result.shape)
    if isinstance(op, Update):
        copy_tile(kernel, kernel.buffers[op.x], op.x.scalar, target, op.x.shape)
        copy_part(kernel, op.value, target, op.starts, op.steps)
        return
    ones = (1,) * rank
    behind = tuple(op.left.shape[axis] if axis == op.axis else 0 for axis in range(rank))
    copy_part(kernel, op.left, target, (0,) * rank, ones)
    copy_part(kernel, op.right, target, behind, ones)


def copy_part(
    kernel: KernelWriter, value: Value, target: Buffer, starts: Shape, steps: Shape
) -> None:
    """Copy a stored tile to the places ``starts + k * steps`` of a larger one."""
    shape = value.shape
    lane = default_lane(shape)
    with ExitStack() as stack:
        point = [ZERO] * len(shape)
        for axis, extent in enumerate(shape):
            if axis != lane and extent > 1:
                loop = kernel.b.loop(const(i64, 0), const(i64, extent), name="row")
                point[axis] = Index(0, stack.enter_context(loop).index)
        width = min(kernel.width, shape[lane])
        whole = shape[lane] // width * width

        def copy(start: V, lanes: int) -> None:
            point[lane] = Index(0, start, 1 if lanes > 1 else 0)
            _copy(kernel, value, target, tuple(point), starts, steps, lanes)

        with kernel.b.loop(const(i64, 0), const(i64, whole), width, name="copy") as loop_of_lanes:
            copy(loop_of_lanes.index, width)
        if whole < shape[lane]:
            copy(const(i64, whole), shape[lane] - whole)


def _copy(
    kernel: KernelWriter,
    value: Value,
    target: Buffer,
    point: Point,
    starts: Shape,
    steps: Shape,
    lanes: int,
) -> None:
    points = Points(kernel, [kernel.b], {}, lanes)
    points.body(kernel.b, points.mode, lanes)
    read = points.access.read_buffer(kernel.buffers[value], value.scalar, point)
    places = zip(point, starts, steps, strict=True)
    there = tuple(points.part(index, start, step) for index, start, step in places)
    points.access.write_buffer(target, value.scalar, read, there)
