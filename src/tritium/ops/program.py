"""Where a program stands on the grid."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tritium.diagnostics import error
from tritium.ir.core import Op, attribute, op
from tritium.ir.dtypes import Type, int32

from .create import static_value
from .emit import emit_tile, surface
from .spec import Case, Reject, given
from .tile import Tile


def _axis_cases(cls: type[Op]) -> Iterator[Case]:
    for axis in range(3):
        yield Case(cls, f"axis {axis}", {}, {"axis": axis})


@op("program.id")
class ProgramId(Op):
    """This program's index along one axis of the grid, from 0."""

    axis: int = attribute()

    def infer(self) -> Type:
        return _check_axis("program_id", self.axis)

    def evaluate(self, machine: Any) -> Any:
        return np.int32(machine.program[self.axis])

    @classmethod
    def cases(cls) -> Iterator[Case]:
        """Every axis."""
        return _axis_cases(cls)

    @classmethod
    def rejects(cls) -> Iterator[Reject]:
        """Other axes."""
        yield Reject("a fourth axis", "E0206", lambda: program_id(3), "axis")
        yield Reject("a negative axis", "E0206", lambda: program_id(-1), "axis")
        yield Reject("a runtime axis", "E0205", lambda: program_id(given(int32)), "axis")


@op("program.count")
class ProgramCount(Op):
    """The number of programs along one axis of the grid."""

    axis: int = attribute()

    def infer(self) -> Type:
        return _check_axis("num_programs", self.axis)

    def evaluate(self, machine: Any) -> Any:
        return np.int32(machine.grid[self.axis])

    @classmethod
    def cases(cls) -> Iterator[Case]:
        """Every axis."""
        return _axis_cases(cls)

    @classmethod
    def rejects(cls) -> Iterator[Reject]:
        """Other axes."""
        yield Reject("a fourth axis", "E0206", lambda: num_programs(3), "axis")
        yield Reject("a negative axis", "E0206", lambda: num_programs(-1), "axis")
        yield Reject("a runtime axis", "E0205", lambda: num_programs(given(int32)), "axis")


def _check_axis(name: str, axis: Any) -> Type:
    if axis not in (0, 1, 2):
        raise error(
            "E0206",
            op=name,
            text=f"the axis must be 0, 1 or 2, got {axis!r}",
            hint="a grid has at most three axes",
            argument="axis",
        )
    return int32


def _static_axis(name: str, axis: Any) -> int:
    known = static_value(name, axis, "axis")
    _check_axis(name, known)
    return int(known)


@surface
def program_id(axis: Any) -> Tile:
    """This program's index along ``axis`` (0, 1 or 2) of the grid: an int32 scalar, from 0.

    Raises E0206 for another axis, E0205 where it isn't a compile-time value.
    """
    return emit_tile(ProgramId, axis=_static_axis("program_id", axis))


@surface
def num_programs(axis: Any) -> Tile:
    """The number of programs along ``axis`` (0, 1 or 2) of the grid: an int32 scalar.

    Raises E0206 for another axis, E0205 where it isn't a compile-time value.
    """
    return emit_tile(ProgramCount, axis=_static_axis("num_programs", axis))
