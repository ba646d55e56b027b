"""Operations that take elements of tiles to other places: slices, joined tiles, gathers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tritium.diagnostics import error
from tritium.ir.core import Op, Value, attribute, op, operand
from tritium.ir.dtypes import (
    INTEGERS,
    VALUES,
    DType,
    Type,
    float32,
    int1,
    int8,
    int32,
    int64,
    uint8,
    uint64,
)
from tritium.ir.types import TileType

from . import samples
from .constants import to_tile
from .create import static_flag
from .emit import emit_tile, surface
from .shape import Reshape, broadcast_tiles, insert_axes, wrap_axis
from .spec import Case, Reject, Sample, given
from .tile import Tile

Shape = tuple[int, ...]
Part = tuple[tuple[int, int, int], ...]
"""For each axis the first place, the step and how many."""


def places(starts: Shape, steps: Shape, extents: Shape) -> Any:
    """NumPy's index of a grid of places."""
    axes = zip(starts, steps, extents, strict=True)
    return np.ix_(*(start + step * np.arange(count) for start, step, count in axes))


def _check_places(name: str, shape: Shape, starts: Shape, steps: Shape, extents: Shape) -> None:
    """Raises E0206 unless the places lie in a tile of that shape."""
    fits = len(shape) == len(starts) == len(steps) == len(extents) and all(
        count > 0 and step != 0 and 0 <= start < n and 0 <= start + step * (count - 1) < n
        for n, start, step, count in zip(shape, starts, steps, extents)
    )
    if not fits:
        raise error(
            "E0206",
            op=name,
            text=f"{extents} elements from {starts} on in steps of {steps} don't lie in {shape}",
            hint="",
        )


def _every_type() -> tuple[Type, ...]:
    return (*VALUES, samples.POINTER)


_PARTS: tuple[tuple[Shape, Part], ...] = (
    ((8,), ((2, 1, 5),)),
    ((7,), ((6, -1, 7),)),
    ((80,), ((1, 3, 26),)),
    ((1,), ((0, 1, 1),)),
    ((5, 48), ((0, 1, 5), (24, 1, 24))),
    ((5, 48), ((4, -2, 3), (0, 1, 48))),
    ((3, 5), ((1, 1, 1), (4, -2, 2))),
    ((80, 3), ((16, 1, 48), (2, 1, 1))),
    ((2, 3, 5), ((1, 1, 1), (0, 2, 2), (3, -1, 3))),
    ((4, 64), ((0, 1, 4), (32, 1, 32))),
)
"""Shapes, and parts of them."""


def _columns(part: Part) -> tuple[Shape, Shape, Shape]:
    starts, steps, extents = zip(*part, strict=True)
    return tuple(starts), tuple(steps), tuple(extents)


@op("rearrange.slice")
class Slice(Op):
    """A part of ``x``: along axis a the places ``starts[a] + k * steps[a]``, ``extents[a]`` of
    them. A step may be negative; every place lies in the tile."""

    x: Value = operand()
    starts: tuple[int, ...] = attribute()
    steps: tuple[int, ...] = attribute()
    extents: tuple[int, ...] = attribute()

    def infer(self) -> Type:
        _check_places("slice", self.x.shape, self.starts, self.steps, self.extents)
        return TileType(self.x.scalar, self.extents)

    def evaluate(self, machine: Any, x: Any) -> Any:
        return x[places(self.starts, self.steps, self.extents)]

    @classmethod
    def cases(cls) -> Iterator[Case]:
        """Forwards, backwards, in steps, one element, of ranks 1 to 3; the first of every type."""
        for position, (shape, part) in enumerate(_PARTS):
            starts, steps, extents = _columns(part)
            for scalar in (float32, int8, int1) if position else _every_type():
                attributes = {"starts": starts, "steps": steps, "extents": extents}
                label = f"{scalar} {list(shape)} {part}"
                yield Case(cls, label, {"x": samples.tile(scalar, shape)}, attributes)

    @classmethod
    def rejects(cls) -> Iterator[Reject]:
        """Places outside of the tile, none at all, other indices."""
        x = samples.floats
        yield Reject("an ellipsis", "E0208", lambda: x(3)[...], "index")
        yield Reject("too many axes", "E0208", lambda: x(3)[:, :], "index")
        yield Reject("an axis of a scalar", "E0208", lambda: x()[:], "index")
        yield Reject("a float", "E0208", lambda: x(3)[1.0], "index")
        yield Reject("an index tile", "E0208", lambda: x(3)[given(int32, 3)], "index")
        yield Reject("a run-time float", "E0208", lambda: x(3)[given(float32)], "index")
        yield Reject("an element past the end", "E0206", lambda: x(3)[3], "index")
        yield Reject("an element before the start", "E0206", lambda: x(3)[-4], "index")
        yield Reject("nothing", "E0206", lambda: x(3)[2:2], "index")
        yield Reject("no step", "E0206", lambda: x(3)[::0], "index")
        yield Reject("a run-time bound", "E0205", lambda: x(3)[: given(int32)], "index")
        yield Reject("a float bound", "E0204", lambda: x(3)[:1.5], "index")


def _check_one_scalar(name: str, left: Type, right: Type) -> None:
    if left.scalar != right.scalar:
        hint = "cast one of them: both have one element type"
        raise error("E0201", op=name, left=left, right=right, hint=hint)


@op("rearrange.cat")
class Cat(Op):
    """``left``, then ``right``, along ``axis``."""

    left: Value = operand()
    right: Value = operand()
    axis: int = attribute()

    def infer(self) -> Type:
        a, b = self.left.shape, self.right.shape
        _check_one_scalar("cat", self.left.type, self.right.type)
        if not 0 <= self.axis < len(a):
            raise error("E0207", op="cat", axis=self.axis, shape=a, argument="dim")
        if len(a) != len(b) or self._rest(a) != self._rest(b):
            raise error(
                "E0206",
                op="cat",
                text=f"{a} and {b} differ in more than axis {self.axis}",
                hint="only the extents along dim may differ",
                argument="other",
            )
        extents = list(a)
        extents[self.axis] += b[self.axis]
        return TileType(self.left.scalar, tuple(extents))

    def _rest(self, shape: Shape) -> Shape:
        return shape[: self.axis] + shape[self.axis + 1 :]

    def evaluate(self, machine: Any, left: Any, right: Any) -> Any:
        return np.concatenate([left, right], axis=self.axis)

    @classmethod
    def cases(cls) -> Iterator[Case]:
        """Each axis of ranks 1 to 3, equal and unequal extents; the first of every type."""
        pairs: list[tuple[Shape, Shape, int]] = [
            ((4,), (3,), 0),
            ((1,), (1,), 0),
            ((80,), (48,), 0),
            ((32,), (32,), 0),
            ((3, 5), (3, 2), 1),
            ((3, 5), (1, 5), 0),
            ((48, 1), (48, 1), 1),
            ((2, 3, 5), (2, 1, 5), 1),
        ]
        for position, (left, right, axis) in enumerate(pairs):
            for scalar in (float32, int8, int1) if position else _every_type():
                both = {
                    "left": samples.tile(scalar, left),
                    "right": samples.tile(scalar, right, 1),
                }
                label = f"{scalar} {list(left)} {list(right)} axis={axis}"
                yield Case(cls, label, both, {"axis": axis})

    @classmethod
    def rejects(cls) -> Iterator[Reject]:
        """Other types, ranks and extents; axes out of range."""
        x = samples.floats
        yield Reject("another type", "E0201", lambda: cat(x(3), given(int32, 3)), None)
        yield Reject("another extent", "E0206", lambda: cat(x(2, 3), x(2, 4)), "other")
        yield Reject("another rank", "E0206", lambda: cat(x(3), x(3, 1)), "other")
        yield Reject("an axis", "E0207", lambda: cat(x(3), x(3), dim=1), "dim")
        yield Reject("a run-time axis", "E0205", lambda: cat(x(3), x(3), dim=given(int32)), "dim")
        yield Reject("a scalar", "E0207", lambda: cat(x(), x()), "dim")
        order = lambda: cat(x(3), x(3), can_reorder=given(int32))  # noqa: E731
        yield Reject("a run-time permission", "E0205", order, "can_reorder")
        yield Reject("join: types", "E0201", lambda: join(x(3), given(int32, 3)), None)
        yield Reject("join: shapes", "E0202", lambda: join(x(3), x(2)), None)
        yield Reject("join: a string", "E0210", lambda: join("a", x(3)), "a")


@op("rearrange.update")
class Update(Op):
    """``x`` with the elements of ``value`` at the places of a slice: along axis a at
    ``starts[a] + k * steps[a]``, one for each of the value's extent."""

    x: Value = operand()
    value: Value = operand()
    starts: tuple[int, ...] = attribute()
    steps: tuple[int, ...] = attribute()

    def infer(self) -> Type:
        _check_places("set", self.x.shape, self.starts, self.steps, self.value.shape)
        if self.x.scalar != self.value.scalar:
            raise error(
                "E0201", op="set", left=self.x.type, right=self.value.type, hint="cast the value"
            )
        return self.x.type

    def evaluate(self, machine: Any, x: Any, value: Any) -> Any:
        made = np.array(x)
        made[places(self.starts, self.steps, value.shape)] = value
        return made

    @classmethod
    def cases(cls) -> Iterator[Case]:
        """The same places as slices."""
        for position, (shape, part) in enumerate(_PARTS):
            starts, steps, extents = _columns(part)
            for scalar in (float32, int8, int1) if position else _every_type():
                both = {
                    "x": samples.tile(scalar, shape),
                    "value": samples.tile(scalar, extents, 1),
                }
                label = f"{scalar} {list(shape)} {part}"
                yield Case(cls, label, both, {"starts": starts, "steps": steps})

    @classmethod
    def rejects(cls) -> Iterator[Reject]:
        """Values that don't fit, indices that are none."""
        from .indexing import set

        x = samples.floats
        yield Reject("a value too wide", "E0202", lambda: set(x(4), slice(0, 2), x(3)), None)
        yield Reject("a value of higher rank", "E0202", lambda: set(x(4), 0, x(2, 1)), None)
        yield Reject("a new axis", "E0208", lambda: set(x(4), None, 0.0), "index")
        yield Reject("past the end", "E0206", lambda: set(x(4), 4, 0.0), "index")
        yield Reject("a scalar", "E0208", lambda: set(x(), 0, 0.0), "index")


@op("rearrange.gather")
class Gather(Op):
    """Elements of ``x`` at the places along ``axis`` that ``index`` gives.

    The result has the shape of ``index``; along the other axes an element stays where it is. A
    place before the first is taken as the first, one behind the last as the last.
    """

    x: Value = operand()
    index: Value = operand()
    axis: int = attribute()

    def infer(self) -> Type:
        shape, wanted, scalar = self.x.shape, self.index.shape, self.index.scalar
        if not isinstance(scalar, DType) or not scalar.is_int() or scalar is int1:
            raise error(
                "E0204",
                op="gather",
                expected="integers as places",
                got=self.index.type,
                hint="cast it to tl.int32",
                argument="index",
            )
        if not 0 <= self.axis < len(shape):
            raise error("E0207", op="gather", axis=self.axis, shape=shape, argument="axis")
        fits = len(shape) == len(wanted) and all(
            m == n for a, (m, n) in enumerate(zip(shape, wanted)) if a != self.axis
        )
        if not fits:
            raise error(
                "E0206",
                op="gather",
                text=f"the places of shape {wanted} don't fit {shape}",
                hint=f"all extents but that of axis {self.axis} must be equal",
                argument="index",
            )
        return TileType(self.x.scalar, wanted)

    def evaluate(self, machine: Any, x: Any, index: Any) -> Any:
        last = x.shape[self.axis] - 1
        low = np.maximum(index, index.dtype.type(0))
        limited = np.where(low.astype(np.uint64) > last, last, low.astype(np.int64))
        return np.take_along_axis(x, limited, self.axis)

    @classmethod
    def cases(cls) -> Iterator[Case]:
        """Every type of elements and of places, each axis, more and fewer places, outside ones."""
        for position, scalar in enumerate(_every_type()):
            yield cls._case(scalar, (7,), (5,), 0, int32, position)
        for kind in INTEGERS:
            if kind is not int1:
                yield cls._case(float32, (20,), (33,), 0, kind)
        shapes: list[tuple[Shape, Shape, int]] = [
            ((80,), (48,), 0),
            ((1,), (3,), 0),
            ((3, 5), (3, 7), 1),
            ((3, 5), (1, 5), 0),
            ((48, 20), (16, 20), 0),
            ((2, 3, 5), (2, 4, 5), 1),
            ((64, 32), (64, 32), 1),
        ]
        for shape, wanted, axis in shapes:
            for scalar in (float32, int8, int1):
                yield cls._case(scalar, shape, wanted, axis, int64 if axis else int32)

    @classmethod
    def _case(
        cls, scalar: Type, shape: Shape, wanted: Shape, axis: int, kind: DType, seed: int = 0
    ) -> Case:
        rng = np.random.default_rng(seed)
        low = -3 if kind.is_int_signed() else 0
        index = np.asarray(rng.integers(low, shape[axis] + 3, wanted).astype(kind.numpy))
        index.reshape(-1)[-1] = kind.get_int_max_value()
        index.reshape(-1)[0] = kind.get_int_min_value()
        operands = {
            "x": samples.tile(scalar, shape, seed),
            "index": Sample(TileType(kind, wanted), index),
        }
        label = f"{scalar} {list(shape)} at {kind} {list(wanted)} axis={axis}"
        return Case(cls, label, operands, {"axis": axis})

    @classmethod
    def rejects(cls) -> Iterator[Reject]:
        """Places that are no integers, other ranks and extents, axes out of range."""
        x = samples.floats
        yield Reject("float places", "E0204", lambda: gather(x(3), x(3), 0), "index")
        yield Reject("a rank", "E0206", lambda: gather(x(3), given(int32, 3, 1), 0), "index")
        yield Reject("extents", "E0206", lambda: gather(x(2, 3), given(int32, 3, 3), 1), "index")
        yield Reject("an axis", "E0207", lambda: gather(x(3), given(int32, 3), 1), "axis")
        yield Reject(
            "a run-time axis",
            "E0205",
            lambda: gather(x(3), given(int32, 3), given(uint8)),
            "axis",
        )
        yield Reject("a scalar", "E0207", lambda: gather(x(), given(uint64), 0), "axis")


@surface
def cat(input: Any, other: Any, can_reorder: Any = False, dim: Any = 0) -> Tile:
    """``input``, then ``other``, along axis ``dim``; all other extents are equal.

    ``can_reorder`` permits another order of the elements; it is never used. Raises E0201 for two
    element types, E0206 where other extents differ, E0207 for an axis out of range.
    """
    left, right = to_tile(input, "cat", "input"), to_tile(other, "cat", "other")
    shape = left.type.shape
    axis = wrap_axis("cat", dim, len(shape), shape, "dim")
    static_flag("cat", can_reorder, "can_reorder")
    return emit_tile(Cat, left=left, right=right, axis=axis)


@surface
def join(a: Any, b: Any) -> Tile:
    """``a`` and ``b``, broadcast to each other, side by side on a new last axis of extent 2.

    Two scalars give a tile of shape (2,). Raises E0201 for two element types, E0202 where the
    shapes don't fit.
    """
    return _join("join", a, b)


def _join(name: str, a: Any, b: Any) -> Tile:
    left, right = broadcast_tiles(name, to_tile(a, name, "a"), to_tile(b, name, "b"))
    _check_one_scalar(name, left.type, right.type)
    rank = len(left.type.shape)
    left, right = insert_axes(left, [rank]), insert_axes(right, [rank])
    return emit_tile(Cat, left=left, right=right, axis=rank)


@surface
def interleave(a: Any, b: Any) -> Tile:
    """The elements of ``a`` and ``b`` in turn along the last axis, ``a``'s first.

    Two scalars give a tile of shape (2,). Raises E0201 for two element types, E0202 where the
    shapes don't fit.
    """
    both = _join("interleave", a, b)
    *outer, last, two = (1, *both.type.shape)
    shape = (*outer[1:], last * two) if outer else (two,)
    return emit_tile(Reshape, x=both, shape=shape) if outer else both


@surface(method=True)
def gather(src: Any, index: Any, axis: Any) -> Tile:
    """Elements of ``src`` at the places along ``axis`` that the integers ``index`` give.

    ``index`` has the rank of ``src``, and its extents but along ``axis``; the result has its shape.
    A place before the first is taken as the first, one behind the last as the last. Raises E0204
    for places that are no integers, E0206 for extents that differ, E0207 for an axis out of range.
    """
    x, places_of = to_tile(src, "gather", "src"), to_tile(index, "gather", "index")
    shape = x.type.shape
    known = wrap_axis("gather", axis, len(shape), shape, "axis")
    return emit_tile(Gather, x=x, index=places_of, axis=known)
