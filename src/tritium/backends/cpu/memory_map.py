"""Scratch memory: where stored tiles live, at offsets known when the kernel is compiled."""

from __future__ import annotations

from dataclasses import dataclass

from tritium.backends.emit import V
from tritium.ir.core import Value
from tritium.ir.dtypes import DType, Type, float32, int8

ALIGNMENT = 64


class Arena:
    """Offsets in one thread's scratch memory. Memory is given back in the order of a stack."""

    def __init__(self) -> None:
        self.top = 0
        self.peak = 0
        self._tiles: list[tuple[int, Value, int]] = []
        self.at_peak: list[tuple[Value, int]] = []
        """The tiles that were stored when most was in use, and their bytes."""

    def take(self, size: int, value: Value | None = None) -> int:
        """The offset of ``size`` fresh bytes, at a cache line, for a tile or something else."""
        offset = self.top
        self.top += -(-max(size, 1) // ALIGNMENT) * ALIGNMENT
        if value is not None:
            self._tiles.append((offset, value, size))
        if self.top > self.peak:
            self.peak = self.top
            self.at_peak = [(tile, taken) for _, tile, taken in self._tiles]
        return offset

    def release(self, mark: int) -> None:
        """Give back everything taken since ``mark = arena.top``."""
        self.top = mark
        while self._tiles and self._tiles[-1][0] >= mark:
            self._tiles.pop()


@dataclass(frozen=True, eq=False)
class Buffer:
    """A stored tile: ``base`` address, element type in memory, strides in elements an axis."""

    base: V
    scalar: Type
    strides: tuple[int, ...]

    @property
    def itemsize(self) -> int:
        return self.scalar.itemsize


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides in elements; 0 for axes of extent 1."""
    strides = [0] * len(shape)
    step = 1
    for axis in range(len(shape) - 1, -1, -1):
        strides[axis] = step if shape[axis] > 1 else 0
        step *= shape[axis]
    return tuple(strides)


def widened(scalar: Type) -> Type:
    """The type that a dot's operands are stored in, which it computes in if that is exact."""
    if scalar is int8 or (isinstance(scalar, DType) and scalar.is_floating() and scalar.bits < 32):
        return float32
    return scalar
