"""Variables and results that leave the two branches of a run-time ``if``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from tritium.ir.core import Block, Region, Value
from tritium.ir.dtypes import DType, Type, int64
from tritium.ir.types import PointerType
from tritium.ops.cast import bitcast_tile
from tritium.ops.constants import constant, constant_kind, number, to_tile
from tritium.ops.constexpr import unwrap
from tritium.ops.control import If, Yield
from tritium.ops.emit import emit
from tritium.ops.python import same
from tritium.ops.shape import splat
from tritium.ops.tile import Tile
from tritium.ops.tuples import Structure

if TYPE_CHECKING:
    from .tracer import CompileTracer

ABSENT: Any = object()
"""Stands for a value on a path that leaves before it is used."""

Rebuild = Callable[[list[Value]], Any]
"""Makes a merged value from the results of the operation."""


class Mismatch(Exception):
    """Two values have different types, so that no variable can hold either."""


class Merge:
    """Collects what both branches yield, then records the ``control.if``."""

    def __init__(self, tracer: CompileTracer, then: Block, otherwise: Block) -> None:
        self.tracer = tracer
        self.blocks = (then, otherwise)
        self.yielded: tuple[list[Tile], list[Tile]] = ([], [])
        self.names: list[str] = []

    def value(self, name: str, left: Any, right: Any, *, promote: bool = False) -> Rebuild:
        """How to make the value that is ``left`` after one branch and ``right`` after the other.

        Equal known values stay known, numbers that differ become scalar tiles of their own type;
        with ``promote`` a number beside a tile takes the tile's type and shape. Raises ``Mismatch``
        for different types.
        """
        pair = _present(left, right)
        if isinstance(pair, Structure):
            sides = zip(_parts(left, pair), _parts(right, pair))
            parts = [self.value(name, one, other, promote=promote) for one, other in sides]
            return lambda results: pair._rebuilt(part(results) for part in parts)
        if left is ABSENT or right is ABSENT:
            return self._one_sided(name, left, right)
        if _identical(left, right):
            return lambda results: left
        return self._yield(name, self._tiles(left, right, promote))

    def _one_sided(self, name: str, left: Any, right: Any) -> Rebuild:
        value = _present(left, right)
        if not isinstance(value, Tile):
            return lambda results: value
        sides = [
            self._in_branch(side, lambda: zeros(value.type)) if each is ABSENT else value
            for side, each in enumerate((left, right))
        ]
        return self._yield(name, (sides[0], sides[1]))

    def _tiles(self, left: Any, right: Any, promote: bool) -> tuple[Tile, Tile]:
        made = []
        for side, (value, other) in enumerate(((left, right), (right, left))):
            if isinstance(value, Tile):
                made.append(value)
                continue
            if number(value) is None:
                raise Mismatch
            like = other if promote and isinstance(other, Tile) else None
            made.append(self._in_branch(side, partial(number_as, value, like)))
        if made[0].type is not made[1].type:
            raise Mismatch
        return made[0], made[1]

    def _in_branch(self, side: int, make: Callable[[], Tile]) -> Tile:
        with self.tracer.inside(self.blocks[side]):
            return make()

    def _yield(self, name: str, tiles: tuple[Tile, Tile]) -> Rebuild:
        place = len(self.names)
        self.names.append(name)
        for side in (0, 1):
            self.yielded[side].append(tiles[side])
        return lambda results: Tile(results[place])

    def finish(self, condition: Tile) -> list[Value]:
        """Record the operation in the current block, unless it would do nothing."""
        if not self.names and not any(block.ops for block in self.blocks):
            return []
        for side, block in enumerate(self.blocks):
            with self.tracer.inside(block):
                emit(Yield, values=tuple(self.yielded[side]))
        then, otherwise = map(Region, self.blocks)
        made = If(condition=condition.value, then=then, otherwise=otherwise)
        made.loc = self.tracer.loc()
        results = list(self.tracer.emit(made))
        for result, name in zip(results, self.names):
            result.name = name
        return results


def _present(left: Any, right: Any) -> Any:
    return right if left is ABSENT else left


def _parts(value: Any, like: Structure) -> tuple[Any, ...]:
    if value is ABSENT:
        return (ABSENT,) * len(like._parts())
    if not isinstance(value, Structure) or value._kind() != like._kind():
        raise Mismatch
    return value._parts()


def _identical(left: Any, right: Any) -> bool:
    if isinstance(left, Tile) or isinstance(right, Tile):
        return isinstance(left, Tile) and isinstance(right, Tile) and left.value is right.value
    return same(left, right)


def number_as(value: Any, like: Tile | None) -> Tile:
    """A number as a scalar tile; as a tile like ``like``, if that has a type for numbers of its
    kind. Raises ``Mismatch`` where it hasn't.
    """
    if like is None:
        return to_tile(value)
    plain = number(unwrap(value))
    dtype = like.dtype
    if plain is None or not isinstance(dtype, DType) or constant_kind(plain) > dtype.kind():
        raise Mismatch
    return splat(constant(plain, dtype), like.type.shape)


def zeros(type: Type) -> Tile:
    """A tile of zeros, or null pointers: what a path yields whose value is never used."""
    scalar = type.scalar
    if isinstance(scalar, PointerType):
        zero = bitcast_tile(constant(0, int64), scalar)
    else:
        assert isinstance(scalar, DType)
        zero = constant(0, scalar)
    return splat(zero, type.shape)
