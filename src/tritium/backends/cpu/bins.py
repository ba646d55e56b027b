"""Histograms: one element after the other; what isn't counted goes to a bin that nobody reads."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tritium.backends.emit import const, i8, i32, i64
from tritium.ir.dtypes import DType, int1, int32
from tritium.ops.bins import Histogram

from .lines import counted, operand_buffer, read, scratch_lines, write
from .memory_map import Buffer
from .whole import writes_tiles

if TYPE_CHECKING:
    from .kernel import KernelWriter


@writes_tiles(Histogram)
def write_histogram(kernel: KernelWriter, op: Histogram, results: Sequence[Buffer]) -> None:
    """Write one histogram where the kernel stands."""
    (result,) = results
    x = operand_buffer(kernel, op.x)
    mask = None if op.mask is None else operand_buffer(kernel, op.mask)
    counts = scratch_lines(kernel, int32, op.bins + 1)
    dtype = op.x.scalar
    assert isinstance(dtype, DType)
    signed = dtype.is_int_signed() and dtype is not int1
    size = counts.itemsize
    b = kernel.b
    b.memset(counts.base, const(i8, 0), const(i64, (op.bins + 1) * size), align=size)
    with counted(b, math.prod(op.x.shape)) as at:
        value = b.int_cast(read(b, x, at), i64, signed=signed)
        # Seen as unsigned, negative values lie beyond every bin.
        holds = b.icmp("ult", value, const(i64, op.bins))
        if mask is not None:
            holds = b.and_(holds, read(b, mask, at))
        place = b.select(holds, value, const(i64, op.bins))
        write(b, counts, b.add(read(b, counts, place), const(i32, 1)), place)
    b.memcpy(result.base, counts.base, const(i64, op.bins * size), align=size)
