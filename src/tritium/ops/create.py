"""Operations that make tiles from nothing or from scalars."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritium.diagnostics import error
from tritium.ir.core import Op, Value, attribute, op, operand
from tritium.ir.dtypes import DType, Type, int32
from tritium.ir.types import TileType

from .codecs import encode


@op("create.constant")
class Constant(Op):
    """A scalar known at compile time: a Python bool, int or float in ``dtype``."""

    value: bool | int | float = attribute()
    dtype: DType = attribute()

    def infer(self) -> Type:
        if self.dtype.is_int() and not isinstance(self.value, int):
            raise error("E0203", value=self.value, type=self.dtype)
        return self.dtype

    def evaluate(self, machine: Any) -> Any:
        if self.dtype.is_floating():
            return encode(np.asarray(float(self.value), np.float64), self.dtype)
        bits = int(self.value) & ((1 << self.dtype.bits) - 1)
        unsigned = np.dtype(f"u{self.dtype.itemsize}")
        return (
            np.asarray(bits, unsigned).view(self.dtype.numpy)
            if self.dtype.bits > 1
            else (np.asarray(bool(bits)))
        )


@op("create.splat")
class Splat(Op):
    """A tile whose elements all equal a scalar."""

    x: Value = operand()
    shape: tuple[int, ...] = attribute()

    def infer(self) -> Type:
        if self.x.shape != ():
            raise error("E0204", op="splat", expected="a scalar", got=self.x.type, hint="")
        return TileType(self.x.type, self.shape)

    def evaluate(self, machine: Any, x: Any) -> Any:
        return np.broadcast_to(np.asarray(x), self.shape)


@op("create.arange")
class Arange(Op):
    """The int32 vector start, start + 1, ..., end - 1."""

    start: int = attribute()
    end: int = attribute()

    def infer(self) -> Type:
        if self.end <= self.start:
            raise error(
                "E0206",
                op="arange",
                text=f"the end {self.end} must be above the start {self.start}",
                hint="",
                argument="end",
            )
        if not (self.start >= -(2**31) and self.end <= 2**31):
            raise error("E0203", value=self.end, type=int32, argument="end")
        return TileType(int32, (self.end - self.start,))

    def evaluate(self, machine: Any) -> Any:
        return np.arange(self.start, self.end, dtype=np.int32)
