"""The lines of a stored tile along one axis: where they begin and how their elements lie."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tritium.backends.common.rules import register_type
from tritium.backends.emit import Builder, V, const, i64, undef
from tritium.ir.core import Value
from tritium.ir.dtypes import Type

from .dots import copy_tile
from .memory_map import Buffer

if TYPE_CHECKING:
    from .kernel import KernelWriter


class Lines:
    """A tile's shape cut at an axis: ``outer`` blocks of ``extent`` rows of ``inner`` elements."""

    def __init__(self, shape: tuple[int, ...], axis: int) -> None:
        self.outer = math.prod(shape[:axis])
        self.extent = shape[axis]
        self.inner = math.prod(shape[axis + 1 :])

    def start(self, b: Builder, outer: V, inner: V) -> V:
        """The position of a line's first element."""
        return b.add(b.mul(outer, const(i64, self.extent * self.inner)), inner)


@contextmanager
def counted(b: Builder, count: int, step: int = 1) -> Iterator[V]:
    """A loop over 0, ``step``, ... below ``count``, or its only trip without a loop."""
    if count <= step:
        yield const(i64, 0)
        return
    with b.loop(const(i64, 0), const(i64, count), step) as loop:
        yield loop.index


def operand_buffer(kernel: KernelWriter, value: Value) -> Buffer:
    """A stored operand in its own type, row by row."""
    source = kernel.buffers[value]
    if source.scalar is value.scalar:
        return source
    made = kernel.buffer(value, value.scalar)
    copy_tile(kernel, source, value.scalar, made, value.shape)
    return made


def address(b: Builder, buffer: Buffer, position: V) -> V:
    """Where an element of a row-major buffer is."""
    return b.gep(buffer.base, b.mul(position, const(i64, buffer.itemsize)))


def read(b: Builder, buffer: Buffer, position: V, count: int = 1, stride: int = 1) -> V:
    """``count`` elements from a position on, ``stride`` apart."""
    size = buffer.itemsize
    base = address(b, buffer, position)
    if stride == 1 or count == 1:
        return b.load(register_type(buffer.scalar, count), base, align=size)
    whole = undef(register_type(buffer.scalar, count))
    for lane in range(count):
        one = b.load(register_type(buffer.scalar), b.gep(base, lane * stride * size), align=size)
        whole = b.insert(whole, one, lane)
    return whole


def write(
    b: Builder, buffer: Buffer, value: V, position: V, count: int = 1, stride: int = 1
) -> None:
    """Store ``count`` elements from a position on, ``stride`` apart."""
    size = buffer.itemsize
    base = address(b, buffer, position)
    if stride == 1 or count == 1:
        b.store(value, base, align=size)
        return
    for lane in range(count):
        b.store(b.extract(value, lane), b.gep(base, lane * stride * size), align=size)


def scratch_lines(kernel: KernelWriter, scalar: Type, count: int) -> Buffer:
    """Fresh scratch for ``count`` elements one after the other."""
    return Buffer(kernel.scratch(count * scalar.itemsize), scalar, (1,))
