"""Scans: a left fold along the axis, the other axes' elements being the lanes of vectors.

Along the innermost axis the lanes are rows, whose elements are loaded one by one: the chain from
one element to the next is what takes the time, and each lane has its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tritium.backends.common.rules import Lowering
from tritium.backends.emit import Builder, V, const, i64
from tritium.ops.scan import Scan

from .lines import Lines, counted, operand_buffer, read, write
from .memory_map import Buffer
from .reductions import inline_region
from .whole import writes_tiles

if TYPE_CHECKING:
    from .kernel import KernelWriter

ROWS = 8
"""Rows that are scanned side by side along the innermost axis."""


class ScanWriter:
    """Writes one scan where the kernel stands."""

    def __init__(self, kernel: KernelWriter, op: Scan, results: Sequence[Buffer]) -> None:
        self.kernel = kernel
        self.op = op
        self.results = results
        self.inputs = [operand_buffer(kernel, value) for value in op.inputs]
        self.lines = Lines(op.inputs[0].shape, op.axis)

    def write(self) -> None:
        lines, b = self.lines, self.kernel.b
        if lines.inner > 1:
            with counted(b, lines.outer) as outer:
                self._groups(b, lines.start(b, outer, const(i64, 0)), lines.inner, 1)
        else:
            self._groups(b, const(i64, 0), lines.outer, lines.extent)

    def _groups(self, b: Builder, start: V, count: int, stride: int) -> None:
        """``count`` lines that begin ``stride`` apart, a vector of them at a time."""
        width = min(self.kernel.width if stride == 1 else ROWS, count)
        whole = count // width * width
        with counted(b, whole, width) as first:
            self._fold(b, b.add(start, b.mul(first, const(i64, stride))), width, stride)
        if whole < count:
            self._fold(b, b.add(start, const(i64, whole * stride)), count - whole, stride)

    def _fold(self, b: Builder, start: V, lanes: int, stride: int) -> None:
        """Scan ``lanes`` lines."""
        lines = self.lines
        step = lines.inner
        if self.op.reverse:
            start = b.add(start, const(i64, (lines.extent - 1) * step))
            step = -step
        totals = [read(b, each, start, lanes, stride) for each in self.inputs]
        initial = [b.splat(self.kernel.scalars[each], lanes) for each in self.op.initial]
        self._put(b, initial or totals, start, lanes, stride)
        if lines.extent == 1:
            return
        one, end = const(i64, 1), const(i64, lines.extent)
        loop = b.loop_open(one, end, 1, carried=totals, name="scan")
        position = b.add(start, b.mul(loop.index, const(i64, step)))
        values = [read(b, each, position, lanes, stride) for each in self.inputs]
        lowering = Lowering(b, self.kernel.target, lanes)
        before = list(loop.carried)
        after = inline_region(self.kernel, lowering, self.op.combine, before + values)
        self._put(b, before if initial else after, position, lanes, stride)
        loop.next(after)
        loop.close(b)

    def _put(self, b: Builder, values: list[V], position: V, lanes: int, stride: int) -> None:
        for buffer, value in zip(self.results, values, strict=True):
            write(b, buffer, value, position, lanes, stride)


@writes_tiles(Scan)
def write_scan(kernel: KernelWriter, op: Scan, results: Sequence[Buffer]) -> None:
    """Write one scan where the kernel stands."""
    ScanWriter(kernel, op, results).write()
