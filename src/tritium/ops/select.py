"""Choice between two values, element by element."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tritium.diagnostics import error
from tritium.ir.core import Op, Value, op, operand
from tritium.ir.dtypes import VALUES, Type, float32, int1, int8, int32, uint8
from tritium.ir.types import PointerType, shaped

from . import samples
from .cast import convert_tile
from .constants import describe, to_tile
from .constexpr import unwrap
from .emit import emit_tile, surface, warn_here
from .promotion import broadcast_named, meet
from .spec import Case, Reject, given
from .tile import Tile


@op("select.where")
class Where(Op):
    """``x`` where ``condition`` is true, else ``y``. All have one shape; x and y one type."""

    condition: Value = operand()
    x: Value = operand()
    y: Value = operand()

    def infer(self) -> Type:
        if self.condition.scalar is not int1:
            raise error(
                "E0204",
                op="where",
                expected="an int1 condition",
                got=self.condition.type,
                hint="compare it: x != 0",
                argument="condition",
            )
        if self.x.type is not self.y.type or self.x.shape != self.condition.shape:
            raise error(
                "E0201",
                op="where",
                left=self.x.type,
                right=self.y.type,
                hint=f"they must have one type, of the condition's shape {self.condition.shape}",
                argument="y",
            )
        return self.x.type

    def evaluate(self, machine: Any, condition: Any, x: Any, y: Any) -> Any:
        return np.where(condition, x, y)

    @classmethod
    def cases(cls) -> Iterator[Case]:
        """Every type, and small shapes."""
        pairs: list[tuple[Type, tuple[int, ...]]]
        pairs = [(scalar, (64,)) for scalar in (*VALUES, samples.POINTER)]
        for scalar, shape in (*pairs, (float32, ()), (int8, (3, 5))):
            operands = {
                "condition": samples.tile(int1, shape),
                "x": samples.tile(scalar, shape, 1),
                "y": samples.tile(scalar, shape, 2),
            }
            yield Case(cls, f"{shaped(scalar, shape)}", operands, row=scalar)

    @classmethod
    def rejects(cls) -> Iterator[Reject]:
        """Pointers with other types, values that don't fit, shapes that don't broadcast."""
        flag, pointer = int1, PointerType(float32)
        other = PointerType(int8)
        yield Reject(
            "a pointer with 0", "E0201", lambda: where(given(flag), given(pointer), 0), "y"
        )
        yield Reject(
            "two kinds of pointers",
            "E0201",
            lambda: where(given(flag), given(pointer), given(other)),
            "y",
        )
        yield Reject(
            "a pointer as condition", "E0204", lambda: where(given(pointer), 1, 0), "condition"
        )
        yield Reject("a string", "E0201", lambda: where(given(flag), given(int32), "0"), "y")
        yield Reject("a constant", "E0203", lambda: where(given(flag), -1, given(uint8)), "x")
        yield Reject(
            "shapes", "E0202", lambda: where(given(flag, 4), given(int32, 3), given(int32, 3)), "x"
        )
        yield Reject(
            "a condition's shape", "E0202", lambda: where(given(flag, 4), given(int8, 3), 0), "x"
        )


def _condition(value: Any) -> Tile:
    tile = to_tile(value, "where", "condition")
    if tile.dtype is int1:
        return tile
    if tile.dtype.is_ptr():
        raise error(
            "E0204",
            op="where",
            expected="an int1 condition",
            got=tile.type,
            hint="compare what it points to",
            argument="condition",
        )
    text = f"where: the condition is {tile.type}, not int1; it counts as condition != 0"
    warn_here(text, "compare it: condition != 0", "condition")
    return convert_tile(tile, int1)


def _choices(x: Any, y: Any) -> tuple[Tile, Tile]:
    """x and y with one element type; two pointers must have it already."""
    x, y = unwrap(x), unwrap(y)
    if not any(isinstance(each, Tile) and each.dtype.is_ptr() for each in (x, y)):
        return meet("where", x, y, names=("x", "y"))
    if isinstance(x, Tile) and isinstance(y, Tile) and x.dtype is y.dtype:
        return x, y
    hint = "a pointer needs a pointer of the same type beside it"
    raise error("E0201", op="where", left=describe(x), right=describe(y), hint=hint, argument="y")


@surface
def where(condition: Any, x: Any, y: Any) -> Tile:
    """``x`` where ``condition`` is true, else ``y``; all three are broadcast together.

    Both sides are computed. x and y meet as the operands of ``+`` do, or are pointers of one type.
    Another condition than int1 counts as ``condition != 0``, with a warning. Raises E0201 where x
    and y have no common type, E0204 for a pointer as condition.
    """
    tile = _condition(condition)
    left, right = _choices(x, y)
    tile, left, right = broadcast_named("where", ("condition", "x", "y"), tile, left, right)
    return emit_tile(Where, condition=tile, x=left, y=right)
