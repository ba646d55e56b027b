"""Operations that make tiles from nothing or from scalars."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tritium.diagnostics import error
from tritium.ir.core import Op, Value, attribute, op, operand
from tritium.ir.dtypes import DType, Type, int32
from tritium.ir.types import MAX_TILE_NUMEL, TileType

from .codecs import encode
from .constexpr import unwrap
from .emit import METHODS, emit_tile, surface
from .tile import Tile
from .tuples import TileTuple


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


def static_int(name: str, value: Any, argument: str) -> int:
    """A compile-time integer. Raises E0205 for a run-time value, E0204 for another type."""
    known = unwrap(value)
    if isinstance(known, Tile):
        raise error("E0205", op=name, name=argument, got=known.type, argument=argument)
    if not isinstance(known, int) or isinstance(known, bool):
        raise error(
            "E0204",
            op=name,
            expected=f"an integer {argument}",
            got=repr(known),
            hint="",
            argument=argument,
        )
    return known


def static_shape(name: str, shape: Any, argument: str = "shape") -> tuple[int, ...]:
    """A shape given as a tuple or list of compile-time integers.

    Raises E0205 for a run-time extent, E0204 for anything but integers, E0206 for an extent under
    1 or more elements than a tile may have.
    """
    known = unwrap(shape)
    if not isinstance(known, (tuple, list, TileTuple)):
        raise error(
            "E0204",
            op=name,
            expected="a tuple of integers",
            got=known.type if isinstance(known, Tile) else repr(known),
            hint="write (n,) for one axis",
            argument=argument,
        )
    extents = tuple(static_int(name, extent, argument) for extent in known)
    count = math.prod(extents)
    if any(extent < 1 for extent in extents) or count > MAX_TILE_NUMEL:
        raise error(
            "E0206",
            op=name,
            text=f"{extents} is no shape of a tile",
            hint=f"each extent is at least 1, their product at most {MAX_TILE_NUMEL}",
            argument=argument,
        )
    return extents


@surface
def arange(start: Any, end: Any) -> Tile:
    """The int32 vector start, start + 1, ..., end - 1, of any length from 1.

    Raises E0205 for a run-time bound, E0204 for one that is no integer, E0206 where ``end`` is not
    above ``start`` or the vector is too long, E0203 where it leaves int32.
    """
    first, last = static_int("arange", start, "start"), static_int("arange", end, "end")
    if last - first > MAX_TILE_NUMEL:
        raise error(
            "E0206",
            op="arange",
            text=f"{last - first} elements are too many for a tile",
            hint=f"at most {MAX_TILE_NUMEL}",
            argument="end",
        )
    return emit_tile(Arange, start=first, end=last)


@surface
def full(shape: Any, value: Any, dtype: Any) -> Tile:
    """A tile of that shape whose elements are ``value``; ``()`` gives a scalar.

    ``value`` is a number, of a kind that ``dtype`` takes (an integer wraps, a float must be whole
    for an integer type), or a tile of one element, which is cast. Raises E0203 for a number of
    another kind, E0204 for a shape or type that is none, E0205 where they aren't known at compile
    time.
    """
    # These modules build on this one.
    from .cast import cast, dtype_argument
    from .constants import number

    extents = static_shape("full", shape)
    kind = dtype_argument("full", dtype)
    if isinstance(unwrap(value), Tile):
        scalar = cast(METHODS["item"](unwrap(value)), kind)
    else:
        scalar = _filled(number(value), value, kind)
    return emit_tile(Splat, x=scalar, shape=extents) if extents else scalar


def _filled(plain: bool | int | float | None, value: Any, dtype: Type) -> Tile:
    """The number ``plain`` as a scalar of ``dtype``; integers wrap. Raises E0203 as ``full``."""
    fits = plain is not None and isinstance(dtype, DType)
    if plain is not None and dtype.is_int():
        whole = not isinstance(plain, float) or plain.is_integer()
        fits = whole and not (plain < 0 and dtype.is_int_unsigned())
    if plain is None or not fits:
        raise error("E0203", value=value, type=dtype, argument="value")
    return emit_tile(Constant, value=plain if dtype.is_floating() else int(plain), dtype=dtype)
