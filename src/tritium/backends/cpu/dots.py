"""Matrix products: register-blocked micro-kernels over operands in scratch.

Both operands are stored row by row, as a rule in the type the product is computed in. C is walked
in blocks of ``ROWS`` rows by two vectors; a block's accumulators stay in registers over the whole K
extent, A's elements are broadcast, B's rows are loaded as vectors. In fp32, 8 by 32 on AVX-512 and
6 by 16 on AVX2 run at the machine's peak.

Products of int8 are computed in fp32 as well, as long as that is exact: few processors multiply
32-bit integers as fast.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tritium.backends.common.rules import register_type
from tritium.backends.emit import Builder, V, const, i64, zero
from tritium.ir.core import Value
from tritium.ir.dtypes import DType, Type, int8, int32
from tritium.ops import dot

from .index import Index, Point
from .loops import OpenLoop
from .memory_map import Buffer, row_major, widened
from .points import Points
from .whole import writes

if TYPE_CHECKING:
    from .kernel import KernelWriter


EXACT_DEPTH = 1024
"""The most products of two int8, each at most 2^14 in size, whose sums fp32 holds: 2^24."""


@dataclass(frozen=True)
class Matrix:
    """A row-major matrix in scratch: address and row stride in elements."""

    base: V
    stride: int


class DotWriter:
    """Writes one dot where the kernel stands."""

    def __init__(self, kernel: KernelWriter, op: dot.Dot, result: Buffer) -> None:
        self.kernel = kernel
        self.op = op
        self.result = result
        computed = widened(op.a.scalar)
        assert isinstance(computed, DType)
        self.total = int32 if op.a.scalar is int8 else computed
        self.exact = op.a.scalar is int8 and op.a.shape[-1] <= EXACT_DEPTH
        self.type = computed if self.exact else self.total
        self.mark = kernel.arena.top
        self.a = self._operand(op.a)
        self.b_operand = self._operand(op.b)
        self.size = computed.itemsize
        shape = op.result.shape
        self.rows, self.columns = shape[-2], shape[-1]
        self.depth = op.a.shape[-1]
        self.batch = shape[0] if len(shape) == 3 else 1
        self.lanes = max(1, kernel.target.vector_bits // computed.bits)
        self.block = 6 if kernel.target.vector_bits == 256 else 8

    def _operand(self, value: Value) -> Buffer:
        """An operand in the type of the computation."""
        source = self.kernel.buffers[value]
        if source.scalar is self.type:
            return source
        made = self.kernel.buffer(value, self.type)
        copy_tile(self.kernel, source, value.scalar, made, value.shape)
        return made

    def write(self) -> None:
        """result = acc + a @ b."""
        kernel = self.kernel
        target = self.result
        shape = self.op.result.shape
        if self.result.scalar is not self.total:
            target = Buffer(self._scratch(shape, self.size), self.total, row_major(shape))
        fresh = self.op.acc is None
        if self.op.acc is not None:
            source = kernel.buffers[self.op.acc]
            if source is not target:
                self._copy(source, self.op.acc.scalar, target, shape)
        self._batches(target, fresh)
        if target is not self.result:
            self._copy(target, self.total, self.result, shape)
        kernel.arena.release(self.mark)

    def _scratch(self, shape: tuple[int, ...], size: int) -> V:
        count = size
        for extent in shape:
            count *= extent
        return self.kernel.scratch(count)

    def _copy(self, source: Buffer, scalar: Type, target: Buffer, shape: tuple[int, ...]) -> None:
        """Element by element, converting."""
        copy_tile(self.kernel, source, scalar, target, shape)

    def _batches(self, target: Buffer, fresh: bool) -> None:
        b = self.kernel.b
        if self.batch == 1:
            self._multiply(b, self.a.base, self.b_operand.base, target.base, fresh)
            return
        loop = OpenLoop(self.kernel.function, "batch")
        step = self.size
        bases = (
            loop.b.gep(self.a.base, self._times(loop, self.rows * self.depth * step)),
            loop.b.gep(self.b_operand.base, self._times(loop, self.depth * self.columns * step)),
            loop.b.gep(target.base, self._times(loop, self.rows * self.columns * step)),
        )
        self._multiply(loop.b, *bases, fresh)
        loop.close(b, const(i64, 0), const(i64, self.batch), 1)

    @staticmethod
    def _times(loop: OpenLoop, size: int) -> V:
        return loop.b.mul(loop.index, const(i64, size))

    def _multiply(self, b: Builder, a: V, bb: V, c: V, fresh: bool) -> None:
        """One matrix product: full panels of two vectors, then the columns left over."""
        panel = 2 * self.lanes
        whole = self.columns // panel * panel
        if whole:
            self._panels(b, a, bb, c, fresh, whole, panel)
        rest = self.columns - whole
        if rest:
            widths = [self.lanes] * (rest // self.lanes)
            if rest % self.lanes:
                widths.append(rest % self.lanes)
            at = const(i64, whole * self.size)
            self._row_blocks(b, a, b.gep(bb, at), b.gep(c, at), fresh, widths)

    def _panels(self, b: Builder, a: V, bb: V, c: V, fresh: bool, whole: int, panel: int) -> None:
        loop = OpenLoop(self.kernel.function, "n")
        at = self._times(loop, self.size)
        inner = loop.b
        widths = [self.lanes, self.lanes]
        self._row_blocks(inner, a, inner.gep(bb, at), inner.gep(c, at), fresh, widths)
        loop.close(b, const(i64, 0), const(i64, whole), panel)

    def _row_blocks(self, b: Builder, a: V, bb: V, c: V, fresh: bool, widths: list[int]) -> None:
        whole = self.rows // self.block * self.block
        if whole:
            loop = OpenLoop(self.kernel.function, "m")
            inner = loop.b
            left = inner.gep(a, self._times(loop, self.depth * self.size))
            out = inner.gep(c, self._times(loop, self.columns * self.size))
            self._kernel(inner, left, bb, out, fresh, widths, self.block)
            loop.close(b, const(i64, 0), const(i64, whole), self.block)
        rest = self.rows - whole
        if rest:
            left = b.gep(a, whole * self.depth * self.size)
            out = b.gep(c, whole * self.columns * self.size)
            self._kernel(b, left, bb, out, fresh, widths, rest)

    def _kernel(
        self, b: Builder, a: V, bb: V, c: V, fresh: bool, widths: list[int], rows: int
    ) -> None:
        """``rows`` rows by ``widths`` vectors of C, over the whole of K."""
        types = [register_type(self.type, width) for width in widths]
        starts = [sum(widths[:n]) for n in range(len(widths))]
        cells = [(r, n) for r in range(rows) for n in range(len(widths))]
        addresses = {(r, n): b.gep(c, (r * self.columns + starts[n]) * self.size) for r, n in cells}
        first = [
            zero(types[n])
            if fresh or self.exact
            else b.load(types[n], addresses[r, n], align=self.size)
            for r, n in cells
        ]
        loop = b.loop_open(const(i64, 0), const(i64, self.depth), 1, carried=first, name="k")
        row_at = b.mul(loop.index, const(i64, self.columns * self.size))
        vectors = [
            b.load(t, b.gep(b.gep(bb, row_at), starts[n] * self.size), align=self.size)
            for n, t in enumerate(types)
        ]
        column = b.gep(a, b.mul(loop.index, const(i64, self.size)))
        scalars = [
            b.load(
                register_type(self.type),
                b.gep(column, r * self.depth * self.size),
                align=self.size,
            )
            for r in range(rows)
        ]
        loop.next(
            [
                self._step(b, b.splat(scalars[r], widths[n]), vectors[n], old)
                for (r, n), old in zip(cells, loop.carried, strict=True)
            ]
        )
        loop.close(b)
        for cell, total in zip(cells, loop.results, strict=True):
            if self.exact:
                total = self._whole(b, total, None if fresh else addresses[cell], widths[cell[1]])
            b.store(total, addresses[cell], align=self.size)

    def _whole(self, b: Builder, total: V, old: V | None, width: int) -> V:
        """A sum in fp32 that is an integer, as one, added to what lies at ``old``."""
        type_ = register_type(self.total, width)
        whole = b.fptosi(total, type_)
        return whole if old is None else b.add(b.load(type_, old, align=self.size), whole)

    def _step(self, b: Builder, x: V, y: V, total: V) -> V:
        if not self.type.is_floating():
            return b.add(total, b.mul(x, y))
        if self.kernel.target.architecture != "x86_64" or self.kernel.target.has("fma"):
            return b.fma(x, y, total)
        return b.fadd(total, b.fmul(x, y))


def copy_tile(
    kernel: KernelWriter, source: Buffer, scalar: Type, target: Buffer, shape: tuple[int, ...]
) -> None:
    """Copy a stored tile of row-major layout to another buffer, converting if they differ.

    ``scalar`` is the type of the tile's values.
    """
    total = 1
    for extent in shape:
        total *= extent
    if source.scalar is target.scalar:
        size = const(i64, total * source.itemsize)
        kernel.b.memcpy(target.base, source.base, size, align=source.itemsize)
        return
    flat_source = Buffer(source.base, source.scalar, (1,) if total > 1 else (0,))
    flat_target = Buffer(target.base, target.scalar, (1,) if total > 1 else (0,))
    width = min(kernel.width, total)
    whole = total // width * width
    points = Points(kernel, [kernel.b], {}, total)
    loop = OpenLoop(kernel.function, "copy")
    points.body(loop.b, points.mode, width)
    _copy_vector(points, flat_source, scalar, flat_target, _position(loop.index, width))
    loop.close(kernel.b, const(i64, 0), const(i64, whole), width)
    if total > whole:
        points.body(kernel.b, points.mode, total - whole)
        position = _position(const(i64, whole), total - whole)
        _copy_vector(points, flat_source, scalar, flat_target, position)


def _position(start: V, lanes: int) -> Point:
    return (Index(1, start, 1) if lanes > 1 else Index(1, start),)


def _copy_vector(
    points: Points, source: Buffer, scalar: Type, target: Buffer, point: Point
) -> None:
    value = points.access.read_buffer(source, scalar, point)
    points.access.write_buffer(target, scalar, value, point)


@writes(dot.Dot)
def write_dot(kernel: KernelWriter, op: dot.Dot) -> None:
    """Write one product where the kernel stands."""
    result = kernel.placed.get(op.result) or kernel.buffer(op.result)
    DotWriter(kernel, op, result).write()
    kernel.buffers[op.result] = result
