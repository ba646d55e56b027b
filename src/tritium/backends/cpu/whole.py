"""Operations on stored tiles other than dots: each reads its operands from scratch and leaves its
results there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tritium.diagnostics import InternalError
from tritium.ir.core import Op
from tritium.ops import bins, map, scan, sort

from .bins import write_histogram
from .maps import write_map
from .scans import ScanWriter
from .sorts import SortWriter

if TYPE_CHECKING:
    from .kernel import KernelWriter


def write_whole(kernel: KernelWriter, op: Op) -> None:
    """Write one such operation where the kernel stands."""
    results = {value: kernel.placed.get(value) or kernel.buffer(value) for value in op.results}
    mark = kernel.arena.top
    if isinstance(op, scan.Scan):
        ScanWriter(kernel, op, [*results.values()]).write()
    elif isinstance(op, bins.Histogram):
        write_histogram(kernel, op, *results.values())
    elif isinstance(op, map.MapElementwise):
        write_map(kernel, op, [*results.values()])
    elif isinstance(op, sort.Sort):
        SortWriter(kernel, op, [*results.values()]).write()
    else:
        raise InternalError(f"{op.mnemonic} has no code on the CPU")
    kernel.arena.release(mark)
    kernel.buffers.update(results)
