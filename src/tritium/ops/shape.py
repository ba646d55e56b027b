"""Operations that rearrange or repeat elements, and the rules of broadcasting."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tritium.diagnostics import error
from tritium.ir.core import Op, Value, attribute, op, operand
from tritium.ir.dtypes import VALUES, Type, float32, int32
from tritium.ir.types import MAX_TILE_NUMEL, TileType, shaped

from . import samples
from .constants import to_tile
from .constexpr import unwrap
from .create import Splat, static_flag, static_int, static_shape
from .emit import emit_tile, surface
from .spec import Case, Reject, given
from .tile import Tile
from .tuples import TileTuple, several

Shape = tuple[int, ...]


def _shape_cases(cls: type[Op], name: str, pairs: Sequence[tuple[Shape, Any]]) -> Iterator[Case]:
    """A case for each (operand's shape, value of the attribute), and the first for every type."""
    for position, (shape, value) in enumerate(pairs):
        for scalar in (float32,) if position else (*VALUES, samples.POINTER):
            label = f"{scalar} {list(shape)} {name}={value}"
            yield Case(cls, label, {"x": samples.tile(scalar, shape)}, {name: value})


@op("shape.broadcast")
class Broadcast(Op):
    """``x`` repeated along its axes of extent 1 until it has ``shape``; the rank stays."""

    x: Value = operand()
    shape: tuple[int, ...] = attribute()

    def infer(self) -> Type:
        have = self.x.shape
        if len(have) != len(self.shape):
            raise error(
                "E0204",
                op="broadcast",
                expected=f"rank {len(self.shape)}",
                got=self.x.type,
                hint="",
            )
        for axis, (old, new) in enumerate(zip(have, self.shape)):
            if old not in (1, new):
                raise error("E0202", op="broadcast", left=have, right=self.shape, axis=axis)
        return shaped(self.x.scalar, self.shape)

    def evaluate(self, machine: Any, x: Any) -> Any:
        return np.broadcast_to(x, self.shape)

    @classmethod
    def cases(cls) -> Iterator[Case]:
        """Each axis alone and several at once, odd extents, nothing to do."""
        pairs: list[tuple[Shape, Shape]] = [
            ((3, 1), (3, 5)),
            ((1,), (7,)),
            ((1, 48), (80, 48)),
            ((1, 1, 4), (2, 3, 4)),
            ((5, 1, 1), (5, 3, 2)),
            ((1, 3, 1), (5, 3, 2)),
            ((2, 3), (2, 3)),
            ((1,), (1,)),
        ]
        return _shape_cases(cls, "shape", pairs)

    @classmethod
    def rejects(cls) -> Iterator[Reject]:
        """Other ranks, extents over 1 that differ."""
        x = samples.floats
        yield Reject("another rank", "E0204", lambda: broadcast_to(x(3), 2, 3), None)
        yield Reject("another extent", "E0202", lambda: broadcast_to(x(3), 4), None)
        yield Reject("a runtime extent", "E0205", lambda: broadcast_to(x(1), given(int32)), "shape")
        yield Reject("two tiles", "E0202", lambda: broadcast(x(2, 3), x(2)), None)
        yield Reject("too large", "E0206", lambda: broadcast(x(2048, 1), x(1, 1024)), None)
        yield Reject("a string", "E0210", lambda: broadcast_to("x", 2), "input")


@op("shape.expand_dims")
class ExpandDims(Op):
    """A tile with a new axis of extent 1 at position ``axis`` of the result."""

    x: Value = operand()
    axis: int = attribute()

    def infer(self) -> Type:
        have = self.x.shape
        if not have:
            raise error("E0204", op="expand_dims", expected="a tile", got=self.x.type, hint="")
        if not 0 <= self.axis <= len(have):
            raise error("E0207", op="expand_dims", axis=self.axis, shape=have)
        return TileType(self.x.scalar, (*have[: self.axis], 1, *have[self.axis :]))

    def evaluate(self, machine: Any, x: Any) -> Any:
        return np.expand_dims(x, self.axis)

    @classmethod
    def cases(cls) -> Iterator[Case]:
        """Every place of ranks 1 to 3."""
        pairs = [((5,), 0), ((5,), 1), ((3, 48), 0), ((3, 48), 1), ((3, 48), 2), ((2, 1, 3), 2)]
        return _shape_cases(cls, "axis", pairs)

    @classmethod
    def rejects(cls) -> Iterator[Reject]:
        """Axes out of range, given twice or known at run time only."""
        x = samples.floats
        yield Reject("an axis past the end", "E0207", lambda: expand_dims(x(3), 2), "axis")
        yield Reject("an axis before the start", "E0207", lambda: expand_dims(x(3), -3), "axis")
        yield Reject("an axis twice", "E0206", lambda: expand_dims(x(3), (0, -3)), "axis")
        yield Reject("a runtime axis", "E0205", lambda: expand_dims(x(3), given(int32)), "axis")
        yield Reject("a float axis", "E0204", lambda: expand_dims(x(3), 1.0), "axis")
        yield Reject("unsqueeze", "E0207", lambda: unsqueeze(x(3), 2), "dim")


@op("shape.reshape")
class Reshape(Op):
    """The elements of ``x`` in row-major order under another shape with as many elements.

    A scalar counts as one element, on either side.
    """

    x: Value = operand()
    shape: tuple[int, ...] = attribute()

    def infer(self) -> Type:
        have = math.prod(self.x.shape)
        want = math.prod(self.shape)
        if have != want:
            raise error(
                "E0206",
                op="reshape",
                text=f"{self.x.shape} has {have} elements and {self.shape} has {want}",
                hint="a reshape keeps every element",
                argument="shape",
            )
        return shaped(self.x.scalar, self.shape)

    def evaluate(self, machine: Any, x: Any) -> Any:
        return np.reshape(x, self.shape)

    @classmethod
    def cases(cls) -> Iterator[Case]:
        """Axes split and merged, scalars on either side."""
        pairs: list[tuple[Shape, Shape]] = [
            ((6,), (2, 3)),
            ((3, 5, 4), (5, 12)),
            ((48,), (3, 16)),
            ((80,), (5, 2, 8)),
            ((2, 3, 4), (24,)),
            ((4, 6), (6, 4)),
            ((), (1,)),
            ((), (1, 1)),
            ((1,), ()),
            ((1, 1), ()),
        ]
        return _shape_cases(cls, "shape", pairs)

    @classmethod
    def rejects(cls) -> Iterator[Reject]:
        """Another number of elements, shapes that are none."""
        x = samples.floats
        yield Reject("more elements", "E0206", lambda: reshape(x(6), 7), "shape")
        yield Reject("an open extent", "E0206", lambda: reshape(x(6), 2, -1), "shape")
        yield Reject("a float extent", "E0204", lambda: reshape(x(6), 2.0, 3), "shape")
        yield Reject("an item of several", "E0206", lambda: item(x(2)), "input")
        yield Reject("squeezing an extent of 3", "E0206", lambda: squeeze(x(3, 1), 0), "dim")
        yield Reject("squeezing a scalar", "E0207", lambda: squeeze(x(), 0), "dim")


@op("shape.trans")
class Trans(Op):
    """The axes of ``x`` in another order: axis i of the result is axis ``order[i]`` of ``x``."""

    x: Value = operand()
    order: tuple[int, ...] = attribute()

    def infer(self) -> Type:
        have = self.x.shape
        if not have or sorted(self.order) != list(range(len(have))):
            raise error(
                "E0206",
                op="permute",
                text=f"{self.order} does not name each axis of {self.x.type} once",
                hint=f"use each of 0 to {len(have) - 1} once" if have else "",
                argument="dims",
            )
        return TileType(self.x.scalar, tuple(have[axis] for axis in self.order))

    def evaluate(self, machine: Any, x: Any) -> Any:
        return np.transpose(x, self.order)

    @classmethod
    def cases(cls) -> Iterator[Case]:
        """Every order of three axes, larger matrices, one axis."""
        orders = [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]
        pairs = [((3, 5), (1, 0)), ((48, 80), (1, 0)), ((1, 7), (1, 0)), ((5,), (0,))]
        pairs += [((2, 3, 5), order) for order in orders]
        pairs += [((2, 1, 3, 4), (3, 1, 0, 2))]
        return _shape_cases(cls, "order", pairs)

    @classmethod
    def rejects(cls) -> Iterator[Reject]:
        """Orders that don't name each axis once."""
        x = samples.floats
        yield Reject("a missing axis", "E0206", lambda: permute(x(2, 3), 0), "dims")
        yield Reject("an axis twice", "E0206", lambda: permute(x(2, 3), 0, 0), "dims")
        yield Reject("a negative axis", "E0206", lambda: permute(x(2, 3), (-1, 0)), "dims")
        yield Reject("a runtime axis", "E0205", lambda: permute(x(2, 3), given(int32), 0), "dims")
        yield Reject("a vector", "E0204", lambda: trans(x(3)), "input")


def common_shape(name: str, *shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that all of ``shapes`` broadcast to, by NumPy's rules.

    Ranks are aligned at the last axis; extents must be equal or 1. Raises E0202 where they aren't,
    E0206 where the result is too large for a tile.
    """
    result: tuple[int, ...] = ()
    for shape in shapes:
        rank = max(len(result), len(shape))
        left = (1,) * (rank - len(result)) + result
        right = (1,) * (rank - len(shape)) + shape
        for axis, (m, n) in enumerate(zip(left, right)):
            if m != n and 1 not in (m, n):
                raise error("E0202", op=name, left=result, right=shape, axis=axis)
        result = tuple(n if m == 1 else m for m, n in zip(left, right))
    if math.prod(result) > MAX_TILE_NUMEL:
        raise error(
            "E0206",
            op=name,
            text=f"{result} has more than {MAX_TILE_NUMEL} elements",
            hint="use smaller tiles",
        )
    return result


def require_tile(
    name: str,
    types: Sequence[Type],
    argument: str,
    expected: str = "a tile",
    *,
    fits: bool = True,
    hint: str = "",
) -> tuple[int, ...]:
    """The shape of the first of ``types``.

    Raises E0204 for a scalar, where there is none, and unless its elements are such as it ``fits``.
    """
    if not types or not types[0].shape or not fits:
        got = types[0] if types else "nothing"
        raise error("E0204", op=name, expected=expected, got=got, hint=hint, argument=argument)
    return types[0].shape


def require_one_shape(name: str, types: Sequence[Type], argument: str) -> None:
    """Raises E0206 unless all ``types`` have the first one's shape."""
    for each in types[1:]:
        if each.shape != types[0].shape:
            raise error(
                "E0206",
                op=name,
                text=f"the inputs have the shapes {types[0].shape} and {each.shape}",
                hint="broadcast them first",
                argument=argument,
            )


def require_axis(name: str, axis: int, shape: tuple[int, ...], argument: str) -> None:
    """Raises E0207 unless ``axis``, counted from 0, is one of a tile's of that shape."""
    if not 0 <= axis < len(shape):
        raise error("E0207", op=name, axis=axis, shape=shape, argument=argument)


def broadcast_tile(x: Tile, shape: tuple[int, ...]) -> Tile:
    """``x`` repeated to ``shape``, which its own shape must broadcast to (E0202 otherwise)."""
    have = x.type.shape
    if have == shape:
        return x
    if not have:
        return splat(x, shape)
    for _ in range(len(shape) - len(have)):
        x = emit_tile(ExpandDims, x=x, axis=0)
    return x if x.type.shape == shape else emit_tile(Broadcast, x=x, shape=shape)


def splat(x: Tile, shape: tuple[int, ...]) -> Tile:
    """A tile of that shape whose elements are the scalar ``x``; ``x`` itself for ``()``."""
    return emit_tile(Splat, x=x, shape=shape) if shape else x


def broadcast_tiles(name: str, *tiles: Tile) -> tuple[Tile, ...]:
    """The tiles broadcast together; ``name`` is the operation that messages speak of."""
    shape = common_shape(name, *(tile.type.shape for tile in tiles))
    return tuple(broadcast_tile(tile, shape) for tile in tiles)


def wrap_axis(name: str, axis: Any, rank: int, shape: tuple[int, ...], argument: str) -> int:
    """A compile-time axis, negative ones counted from the end, as 0 ... rank - 1.

    Raises E0205 for a run-time axis, E0204 for anything that is no integer, E0207 out of range.
    """
    known = static_int(name, axis, argument)
    if not -rank <= known < rank:
        raise error("E0207", op=name, axis=known, shape=shape, argument=argument)
    return known % rank


def _shape_of(name: str, given: tuple[Any, ...]) -> tuple[int, ...]:
    """The shape in ``*shape`` arguments: several integers, or one sequence of them."""
    sequence = len(given) == 1 and not isinstance(unwrap(given[0]), (int, Tile))
    return static_shape(name, given[0] if sequence else given)


@surface
def broadcast(input: Any, other: Any) -> TileTuple:
    """Both operands broadcast to their common shape, by NumPy's rules.

    Raises E0202 where the shapes don't fit.
    """
    return TileTuple(
        broadcast_tiles(
            "broadcast", to_tile(input, "broadcast", "input"), to_tile(other, "broadcast", "other")
        )
    )


@surface(method=True)
def broadcast_to(input: Any, *shape: Any) -> Tile:
    """``input`` repeated along its axes of extent 1 until it has ``shape``.

    The ranks must be equal, but a scalar may become any shape. ``shape`` is given as several
    integers or as one tuple. Raises E0202 where an extent doesn't fit, E0204 for another rank.
    """
    x = to_tile(input, "broadcast_to", "input")
    wanted = _shape_of("broadcast_to", shape)
    return emit_tile(Broadcast, x=x, shape=wanted) if x.type.shape and wanted else splat(x, wanted)


@surface(method=True)
def expand_dims(input: Any, axis: Any) -> Tile:
    """``input`` with new axes of extent 1 at the positions ``axis`` of the result.

    ``axis`` is an integer or a sequence of them; negative ones count from the end of the result.
    A scalar becomes a tile. Raises E0207 for a position out of range, E0206 for one given twice.
    """
    x = to_tile(input, "expand_dims", "input")
    given = several(axis)
    shape = x.type.shape
    rank = len(shape) + len(given)
    places = sorted(wrap_axis("expand_dims", each, rank, shape, "axis") for each in given)
    if len(set(places)) < len(places):
        raise error(
            "E0206",
            op="expand_dims",
            text=f"the axes {tuple(map(unwrap, given))} name a position twice",
            hint="name each new axis once",
            argument="axis",
        )
    return insert_axes(x, places)


def insert_axes(x: Tile, places: list[int]) -> Tile:
    """New axes at ascending positions of the result."""
    if not x.type.shape:
        return splat(x, (1,) * len(places))
    for place in places:
        x = emit_tile(ExpandDims, x=x, axis=place)
    return x


@surface(method=True)
def unsqueeze(x: Any, dim: Any) -> Tile:
    """``x`` with a new axis of extent 1 at position ``dim`` of the result.

    A negative ``dim`` counts from the end of the result. Raises E0207 out of range.
    """
    tile = to_tile(x, "unsqueeze", "x")
    shape = tile.type.shape
    return insert_axes(tile, [wrap_axis("unsqueeze", dim, len(shape) + 1, shape, "dim")])


@surface(method=True)
def squeeze(x: Any, dim: Any) -> Tile:
    """``x`` without its axis ``dim``, whose extent must be 1; the last axis leaves a scalar.

    Raises E0207 for an axis out of range, E0206 where its extent isn't 1.
    """
    tile = to_tile(x, "squeeze", "x")
    shape = tile.type.shape
    axis = wrap_axis("squeeze", dim, len(shape), shape, "dim")
    if shape[axis] != 1:
        raise error(
            "E0206",
            op="squeeze",
            text=f"axis {axis} of {shape} has {shape[axis]} elements",
            hint="only an axis of extent 1 can be dropped",
            argument="dim",
        )
    return emit_tile(Reshape, x=tile, shape=shape[:axis] + shape[axis + 1 :])


@surface(method=True)
def reshape(input: Any, *shape: Any, can_reorder: Any = False) -> Tile:
    """The elements of ``input``, in row-major order, in another shape.

    ``shape`` is given as several integers or as one tuple; ``()`` makes a tile of one element a
    scalar. ``can_reorder`` permits another order of the elements; it is never used. Raises E0206
    where the number of elements differs.
    """
    static_flag("reshape", can_reorder, "can_reorder")
    return _reshape(to_tile(input, "reshape", "input"), _shape_of("reshape", shape))


def _reshape(x: Tile, shape: tuple[int, ...]) -> Tile:
    return x if x.type.shape == shape else emit_tile(Reshape, x=x, shape=shape)


@surface(method=True)
def view(input: Any, *shape: Any) -> Tile:
    """An older name of ``reshape``."""
    return _reshape(to_tile(input, "view", "input"), _shape_of("view", shape))


def flatten(x: Tile) -> Tile:
    """``x`` as one axis, in row-major order; a scalar becomes a tile of one element."""
    return _reshape(x, (math.prod(x.type.shape),))


@surface(method=True)
def ravel(x: Any, can_reorder: Any = False) -> Tile:
    """``x`` as one axis, in row-major order. ``can_reorder`` is never used."""
    static_flag("ravel", can_reorder, "can_reorder")
    return flatten(to_tile(x, "ravel", "x"))


@surface(name="", method="item")
def item(input: Any) -> Tile:
    """The only element of ``input``, as a scalar. Raises E0206 where there are more."""
    return only_element(to_tile(input, "item", "input"), "item", "input")


def only_element(tile: Tile, name: str, argument: str) -> Tile:
    """The element of ``tile`` as a scalar. Raises E0206 about ``argument`` where it has more."""
    if math.prod(tile.type.shape) != 1:
        text = f"{tile.type} has more than one element"
        hint = "reduce it first, or read one: x[i]"
        raise error("E0206", op=name, text=text, hint=hint, argument=argument)
    return _reshape(tile, ())


@surface(method=True)
def permute(input: Any, *dims: Any) -> Tile:
    """The axes of ``input`` in another order: axis i of the result is axis ``dims[i]``.

    ``dims`` is given as several integers or as one tuple and names every axis once. Raises E0206
    where it doesn't.
    """
    return _permute("permute", to_tile(input, "permute", "input"), dims)


@surface(method=True)
def trans(input: Any, *dims: Any) -> Tile:
    """``input`` with its last two axes exchanged, or permuted by ``dims`` as ``permute`` does.

    Raises E0204 for a rank under 2, E0206 where ``dims`` doesn't name every axis once.
    """
    x = to_tile(input, "trans", "input")
    if dims:
        return _permute("trans", x, dims)
    rank = len(x.type.shape)
    if rank < 2:
        raise error(
            "E0204",
            op="trans",
            expected="a tile of rank 2 or more",
            got=x.type,
            hint="",
            argument="input",
        )
    return emit_tile(Trans, x=x, order=(*range(rank - 2), rank - 1, rank - 2))


def _permute(name: str, x: Tile, given: tuple[Any, ...]) -> Tile:
    listed = several(given[0]) if len(given) == 1 else given
    return emit_tile(Trans, x=x, order=tuple(static_int(name, axis, "dims") for axis in listed))
