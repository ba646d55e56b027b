"""Which type the operands of a binary operation meet in, and how they get there.

The rules are Triton's. Between two tiles (a scalar computed at run time is a tile of shape ``()``):

- any fp64: fp64. Else ``/`` or ``%`` with any float: fp32. Else any fp32: fp32. Else any fp16:
  fp16.
- bf16 with bf16: bf16; bf16 with anything else: fp32. One fp8 type: itself; two: fp16; fp8 with an
  integer: refused.
- integers of equal signedness: the wider. Mixed: the unsigned one if it is at least as wide, else
  the signed one; ``/``, ``//`` and ``%`` refuse mixed signedness. int1 is a 1-bit unsigned integer.

Between a tile and a Python number, with kinds bool < integer < float: a number whose kind is not
above the tile's takes the tile's type (it must fit, if that is an integer type); otherwise it has
the type it would have alone (``constants.constant_dtype``) and the rules above hold.
"""

from __future__ import annotations

from typing import Any

from tritium.diagnostics import TritiumError, error
from tritium.ir.dtypes import DType, Type, bfloat16, float16, float32, float64

from .cast import convert_tile
from .constants import Number, constant, constant_dtype, constant_kind, describe, number, to_tile
from .constexpr import unwrap
from .shape import broadcast_tiles, common_shape
from .tile import Tile

__all__ = ["broadcast_named", "common_type", "meet", "promote", "promote_all", "to_tile"]

Names = tuple[str, ...]
OPERATOR: Names = ("left", "right")
"""What the operands of an operator are called in messages."""


def common_type(op: str, left: Type, right: Type, *, divides: bool = False) -> DType:
    """The element type that two tiles' operands are converted to.

    ``divides`` for ``/``, ``//`` and ``%``. Raises E0201 where there is none: pointers, fp8 with
    integers, integers of mixed signedness in a division.
    """
    if not (isinstance(left, DType) and isinstance(right, DType)):
        raise _mismatch(op, left, right, "pointers take part in + and - with integers only")
    pair = (left, right)
    floating = left.is_floating() or right.is_floating()
    if (left.is_fp8() and right.is_int()) or (left.is_int() and right.is_fp8()):
        raise _mismatch(op, left, right, "cast the fp8 operand to a wider float first")
    if float64 in pair:
        return float64
    if (divides and floating) or float32 in pair:
        return float32
    if float16 in pair:
        return float16
    if bfloat16 in pair:
        return bfloat16 if left is right else float32
    if floating:
        return left if left is right else float16
    return _common_integer(op, left, right, divides)


def _common_integer(op: str, left: DType, right: DType, divides: bool) -> DType:
    if left.is_int_signed() == right.is_int_signed():
        return left if left.bits >= right.bits else right
    if divides:
        raise _mismatch(op, left, right, "cast them to the same signedness")
    signed, unsigned = (left, right) if left.is_int_signed() else (right, left)
    return unsigned if unsigned.bits >= signed.bits else signed


def _mismatch(op: str, left: object, right: object, hint: str) -> TritiumError:
    return error("E0201", op=op, left=left, right=right, hint=hint, argument=None)


def _type_beside(op: str, value: Number, tile: Type, divides: bool, swapped: bool) -> DType:
    """The common type of a constant and a tile's element type."""
    if not isinstance(tile, DType):
        raise _mismatch(op, *_order(f"the constant {value!r}", tile, swapped), "")
    if constant_kind(value) <= tile.kind():
        if divides and tile.is_floating():
            return float64 if tile is float64 else float32
        return tile
    return common_type(op, *_order(constant_dtype(value), tile, swapped), divides=divides)


def _order(constant: Any, tile: Any, swapped: bool) -> tuple[Any, Any]:
    """Left and right, for messages: the constant stands left where ``swapped``."""
    return (constant, tile) if swapped else (tile, constant)


def _check_operand(op: str, x: Any, y: Any, names: Names) -> None:
    for name, each in zip(names, (x, y)):
        if not isinstance(unwrap(each), Tile) and number(each) is None:
            raise error(
                "E0201",
                op=op,
                left=describe(x),
                right=describe(y),
                hint="operands must be tiles or numbers",
                argument=name,
            )


def meet(
    op: str, x: Any, y: Any, *, names: Names = OPERATOR, divides: bool = False
) -> tuple[Tile, Tile]:
    """Two operands, tiles or numbers, as tiles of their common element type; shapes unchanged.

    Raises E0201 where they have none, E0203 for a number that the other's type can't hold; the
    error's ``argument`` is one of ``names``.
    """
    x, y = unwrap(x), unwrap(y)
    _check_operand(op, x, y, names)
    left, right = number(x), number(y)
    try:
        if left is not None and right is None:
            dtype = _type_beside(op, left, y.dtype, divides, True)
            return constant(left, dtype, names[0]), convert_tile(y, dtype)
        if right is not None and left is None:
            dtype = _type_beside(op, right, x.dtype, divides, False)
            return convert_tile(x, dtype), constant(right, dtype, names[1])
        x, y = to_tile(x, op, names[0]), to_tile(y, op, names[1])
        dtype = common_type(op, x.dtype, y.dtype, divides=divides)
        return convert_tile(x, dtype), convert_tile(y, dtype)
    except TritiumError as problem:
        problem.argument = problem.argument or names[1]
        raise


def broadcast_named(op: str, names: Names, *tiles: Tile) -> tuple[Tile, ...]:
    """The tiles broadcast to their common shape. Raises E0202 at the first one that doesn't fit."""
    shapes = [tile.type.shape for tile in tiles]
    for last in range(2, len(tiles) + 1):
        try:
            common_shape(op, *shapes[:last])
        except TritiumError as problem:
            problem.argument = problem.argument or names[last - 1]
            raise
    return broadcast_tiles(op, *tiles)


def promote(
    op: str, x: Any, y: Any, *, names: Names = OPERATOR, divides: bool = False
) -> tuple[Tile, Tile]:
    """Two operands as tiles of one type, shape included: ``meet``, then broadcasting."""
    left, right = meet(op, x, y, names=names, divides=divides)
    left, right = broadcast_named(op, names, left, right)
    return left, right


def promote_all(op: str, *operands: Any, names: Names) -> tuple[Tile, ...]:
    """Operands as tiles of one type, shape included: numbers count as tiles of their own type.

    Raises E0210 for what is neither a tile nor a number, E0201 where the types don't meet.
    """
    tiles = [to_tile(each, op, name) for each, name in zip(operands, names)]
    dtype: Type = tiles[0].dtype
    for name, tile in zip(names[1:], tiles[1:]):
        try:
            dtype = common_type(op, dtype, tile.dtype)
        except TritiumError as problem:
            problem.argument = name if isinstance(dtype, DType) else names[0]
            raise
    return broadcast_named(op, names, *(_converted(tile, dtype) for tile in tiles))


def _converted(tile: Tile, dtype: Type) -> Tile:
    assert isinstance(dtype, DType)
    return convert_tile(tile, dtype)
