"""The elements of a sort as unsigned keys, on lanes: ``ops.sort.order_keys``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tritium.backends.common.rules import Lowering, rule_of
from tritium.backends.emit import Builder, V, const, elem, i8, i64, int_, lanes, zero
from tritium.ir.core import Value
from tritium.ir.dtypes import DType, int1, uint8, uint16, uint32, uint64
from tritium.ops import compare
from tritium.ops.sort import Sort, has_nan_for_zero

if TYPE_CHECKING:
    from .kernel import KernelWriter

_TYPES = {8: uint8, 16: uint16, 32: uint32, 64: uint64}


class OrderKeys:
    """The keys of one sort: ``scalar`` is their type, the first element has the smallest."""

    def __init__(self, kernel: KernelWriter, op: Sort) -> None:
        self.kernel = kernel
        dtype = op.inputs[0].scalar
        assert isinstance(dtype, DType)
        self.dtype = dtype
        self.descending = op.descending
        self.bits = dtype.itemsize * 8
        self.scalar = _TYPES[self.bits]

    def of(self, b: Builder, x: V) -> V:
        """The keys of elements; all bits the other way round for a descending sort."""
        if self.dtype is int1:
            key = b.zext(x, i8)
        elif not self.dtype.is_floating():
            key = b.xor(x, self._sign(x)) if self.dtype.is_int_signed() else x
        else:
            bits = b.as_int(x) if elem(x.type).is_float else x
            sign = self._sign(bits)
            negative = b.icmp("slt", bits, zero(bits.type))
            above = b.or_(bits, sign)
            if has_nan_for_zero(self.dtype):
                above = b.sub(above, const(bits.type, 1))
            key = b.select(negative, b.not_(bits), above)
            key = b.select(self._is_nan(b, x), const(bits.type, -1), key)
        return b.not_(key) if self.descending else key

    def _sign(self, x: V) -> V:
        return const(x.type, -(1 << (self.bits - 1)))

    def _is_nan(self, b: Builder, x: V) -> V:
        scalar = self.dtype
        template = compare.Ne(x=Value(scalar), y=Value(scalar))
        template.make_results()
        lowering = Lowering(b, self.kernel.target, lanes(x.type))
        return rule_of(template, *self.kernel.rules)(lowering, template, x, x)


def number_of(b: Builder, holds: V) -> V:
    """How many lanes of a condition hold, as i64."""
    return b.int_cast(b.intrinsic("ctpop", [mask_of(b, holds)]), i64, signed=False)


def mask_of(b: Builder, holds: V) -> V:
    """A condition as an integer of a bit a lane."""
    return b.bitcast(holds, int_(lanes(holds.type)))
