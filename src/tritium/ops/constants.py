"""Python numbers as tiles: which type a constant has, alone or beside a tile."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np

from tritium.diagnostics import error
from tritium.ir.dtypes import (
    DType,
    Kind,
    float32,
    float64,
    int1,
    int32,
    int64,
    uint32,
    uint64,
)

from .constexpr import unwrap
from .create import Constant
from .emit import emit, surface
from .tile import Tile

Number: TypeAlias = "bool | int | float"


def number(value: Any) -> Number | None:
    """The Python number in a number, a ``constexpr`` or a NumPy scalar; None for anything else."""
    known = unwrap(value)
    if isinstance(known, np.generic):
        known = known.item()
    return known if isinstance(known, (bool, int, float)) else None


def constant_kind(value: Number) -> Kind:
    """Place of a constant in the promotion order."""
    if isinstance(value, bool):
        return Kind.BOOLEAN
    return Kind.INTEGRAL if isinstance(value, int) else Kind.FLOATING


def constant_dtype(value: Number, argument: str | None = None) -> DType:
    """The type of a constant that stands alone.

    bool: int1. int: the first of int32, uint32, int64, uint64 that holds it, E0203 where none
    does. float: fp32, or fp64 when it is finite, not zero, and outside fp32's normal range.
    """
    if isinstance(value, bool):
        return int1
    if isinstance(value, int):
        for dtype in (int32, uint32, int64, uint64):
            if dtype.get_int_min_value() <= value <= dtype.get_int_max_value():
                return dtype
        raise error("E0203", value=value, type="any integer type", argument=argument)
    layout = float32.format
    if value == 0 or not math.isfinite(value):
        return float32
    return float32 if layout.smallest_normal <= abs(value) <= layout.largest else float64


def constant(value: Number, dtype: DType, argument: str | None = None) -> Tile:
    """A scalar constant of ``dtype``. Raises E0203 for what an integer type can't hold."""
    if dtype.is_floating():
        try:
            made: Number = float(value)
        except OverflowError:
            raise error("E0203", value=value, type=dtype, argument=argument) from None
    else:
        low, high = dtype.get_int_min_value(), dtype.get_int_max_value()
        if not (isinstance(value, int) and low <= value <= high):
            raise error("E0203", value=value, type=dtype, argument=argument)
        made = bool(value) if dtype is int1 else int(value)
    tile: Tile = emit(Constant, value=made, dtype=dtype)
    return tile


def describe(value: Any) -> str:
    """What a message calls an operand: a tile's type, a constant's value, a Python type.

    Types of elements, the language's and other libraries', are called by their own names.
    """
    known = unwrap(value)
    if isinstance(known, Tile):
        return str(known.type)
    plain = number(known)
    if plain is not None:
        return f"the constant {plain!r}"
    if known is None:
        return "None"
    kind = type(known).__name__
    if isinstance(known, type):
        return f"the class {known.__name__}"
    return repr(known) if kind.lower().endswith("dtype") else f"a {kind}"


def to_tile(value: Any, op: str = "this operation", argument: str | None = None) -> Tile:
    """A tile as it is; a number or ``constexpr`` as a scalar tile of ``constant_dtype``.

    Raises E0210 for anything else, naming ``op`` and the parameter ``argument``.
    """
    known = unwrap(value)
    if isinstance(known, Tile):
        return known
    plain = number(known)
    if plain is None:
        raise error(
            "E0210",
            op=op,
            got=describe(known),
            hint="pass a tile or a number",
            argument=argument,
        )
    return constant(plain, constant_dtype(plain, argument), argument)


@surface
def to_tensor(x: Any) -> Tile:
    """A number or ``constexpr`` as a scalar tile; a tile as it is.

    bool gives int1; int the first of int32, uint32, int64 and uint64 that holds it; float gives
    fp32, or fp64 when fp32 can't hold it as a normal number.
    """
    return to_tile(x, "to_tensor", "x")
