"""Prints and checks: compiled code tells the process what to print, and which check has failed.

It calls ``tritium_report(launch, what, size, x, y, z, values)``. ``launch`` is the number that the
launch has given, ``what`` a text of ``size`` bytes that describes the operation, ``values`` the
addresses of its operands' elements. Checks call it only where a lane fails; their program then
ends.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

from tritium.backends.emit import Builder, V, const, i1, i32, i64, ptr, void
from tritium.backends.host.layout import REPORT, Slot, Waiter
from tritium.ir.core import Op, Value
from tritium.ir.dtypes import DType
from tritium.ops import report
from tritium.passes.waiting import waits

from .dots import copy_tile
from .index import Index, Point
from .loops import OpenLoop
from .points import Points
from .whole import writes

if TYPE_CHECKING:
    from .kernel import KernelWriter


def description(op: Op) -> bytes:
    """What the process needs to know of an operation, as JSON."""
    operands = [
        [value.scalar.name if isinstance(value.scalar, DType) else "", list(value.shape)]
        for value in op.operands
    ]
    told: dict[str, object] = {"operands": operands}
    if isinstance(op, report.Print):
        told.update(prefix=op.prefix, hex=op.hex)
    else:
        assert isinstance(op, report.Assert)
        place = op.place
        told["message"] = op.message
        if place is not None:
            told["place"] = [place.file, place.line, place.function]
    return json.dumps(told).encode()


class ReportWriter:
    """Writes one print or check where the kernel stands."""

    def __init__(self, kernel: KernelWriter, op: Op) -> None:
        self.kernel = kernel
        self.op = op

    def write(self) -> None:
        """The operation."""
        kernel, op = self.kernel, self.op
        mark = kernel.arena.top
        addresses = self._addresses()
        if isinstance(op, report.Print):
            self._tell(kernel.b, addresses)
        else:
            failed, on = kernel.function.block("failed"), kernel.function.block("holds")
            kernel.b.cbr(self._holds(), on, failed, weights=(2000, 1))
            telling = Builder(failed)
            self._tell(telling, addresses)
            if waits(kernel.source):
                self._end_others(telling)
            telling.br(kernel.abandoned)
            kernel.b = Builder(on)
        kernel.arena.release(mark)

    def _end_others(self, b: Builder) -> None:
        """Programs that wait for this one end as well; see ``host.blocking``."""
        waiter = self.kernel.scratch_base
        hook = b.load(ptr, b.gep(waiter, Waiter.HOOK), align=8)
        with b.when(b.icmp("ne", hook, const(ptr, 0)), "others"):
            slot = b.load(ptr, b.gep(waiter, Waiter.SLOT), align=8)
            flag = b.gep(slot, Slot.ABORT)
            b.store(const(i32, 1), flag, align=4, ordering="seq_cst")

    def _holds(self) -> V:
        """Whether a check holds in every lane."""
        kernel, op = self.kernel, self.op
        assert isinstance(op, report.Assert)
        if not op.condition.shape:
            return self._lane(kernel.b, *(kernel.scalars[each] for each in op.operands))
        count = math.prod(op.condition.shape)
        loop = OpenLoop(kernel.function, "lane")
        points = Points(kernel, [kernel.b, loop.b], {}, 1)
        at: Point = (Index(1, loop.index),)
        read = [
            points.access.read_linear(kernel.buffers[each], each.scalar, (count,), at).v
            for each in op.operands
        ]
        held = kernel.entry.alloca(i1, align=1)
        kernel.b.store(const(i1, 1), held, align=1)
        so_far = loop.b.load(i1, held, align=1)
        loop.b.store(loop.b.and_(so_far, self._lane(loop.b, *read)), held, align=1)
        loop.close(kernel.b, const(i64, 0), const(i64, count), 1)
        return kernel.b.load(i1, held, align=1)

    @staticmethod
    def _lane(b: Builder, condition: V, mask: V | None = None) -> V:
        return condition if mask is None else b.or_(condition, b.xor(mask, const(i1, 1)))

    def _addresses(self) -> V:
        """A table of the addresses of all operands."""
        kernel = self.kernel
        addresses = kernel.scratch(8 * len(self.op.operands))
        for number, value in enumerate(self.op.operands):
            address = self._address(value)
            kernel.b.store(address, kernel.b.gep(addresses, 8 * number), align=8)
        return addresses

    def _tell(self, b: Builder, addresses: V) -> None:
        """Call the process."""
        kernel = self.kernel
        text = description(self.op)
        what = kernel.module.string(f"report.{kernel.reports}", text)
        kernel.reports += 1
        size = const(i64, len(text))
        b.call(REPORT, void, (kernel.launch(b), what, size, *kernel.program, addresses))

    def _address(self, value: Value) -> V:
        """Where an operand's elements lie, in their own type."""
        kernel = self.kernel
        if value.shape:
            buffer = kernel.buffers[value]
            if buffer.scalar is not value.scalar:
                made = kernel.buffer(value)
                copy_tile(kernel, buffer, value.scalar, made, value.shape)
                buffer = made
            return buffer.base
        place = kernel.scratch(value.scalar.itemsize)
        kernel.b.store(kernel.scalars[value], place, align=value.scalar.itemsize)
        return place


@writes(report.Print, report.Assert)
def write_report(kernel: KernelWriter, op: Op) -> None:
    """Write one print or check where the kernel stands."""
    ReportWriter(kernel, op).write()
