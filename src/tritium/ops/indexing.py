"""``x[...]`` and its kin: parts of tiles, single elements, tiles with a part replaced or moved."""

from __future__ import annotations

import builtins
from dataclasses import dataclass
from typing import Any

from tritium.diagnostics import TritiumError, error
from tritium.ir.dtypes import DType, int1, int32, int64, uint64

from .arith import minimum
from .cast import cast
from .constants import describe, to_tile
from .constexpr import unwrap
from .create import arange, full, static_int
from .emit import emit_tile, surface
from .rearrange import Cat, Gather, Slice, Update
from .select import where
from .shape import Reshape, broadcast_tile, common_shape, insert_axes, wrap_axis
from .tile import Tile
from .tuples import TileTuple, several

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Parts:
    """What an index takes of a tile. ``starts``, ``steps`` and ``extents`` by axis; ``at`` the
    axes that a run-time place is taken of (extent 1 is left); ``dropped`` the axes of single
    places, in ascending order; ``new`` the positions of new axes in the result."""

    starts: Shape
    steps: Shape
    extents: Shape
    at: dict[int, Tile]
    dropped: Shape
    new: Shape

    def kept(self, extents: Shape) -> Shape:
        """A shape without the axes of single places."""
        return tuple(n for axis, n in enumerate(extents) if axis not in self.dropped)

    def inner(self) -> Shape:
        """The extents of what is left when run-time places are taken."""
        return tuple(1 if axis in self.at else n for axis, n in enumerate(self.extents))


def _text(keys: list[Any]) -> str:
    """The index as it stood in the source."""

    def part(value: Any) -> str:
        known = unwrap(value)
        return "" if known is None else describe(known) if isinstance(known, Tile) else str(known)

    def text(key: Any) -> str:
        if isinstance(key, builtins.slice):
            step = part(key.step)
            return f"{part(key.start)}:{part(key.stop)}" + (f":{step}" if step else "")
        return "..." if key is Ellipsis else describe(key) if isinstance(key, Tile) else str(key)

    return f"[{', '.join(map(text, keys))}]"


def _refused(keys: list[Any]) -> TritiumError:
    return error("E0208", index=_text(keys), argument="index")


def _wrong(name: str, text: str, hint: str) -> TritiumError:
    return error("E0206", op=name, text=text, hint=hint, argument="index")


def _range(name: str, key: builtins.slice, n: int, axis: int) -> range:
    """The places of a slice, by Python's rules."""
    ends = [
        None if unwrap(part) is None else static_int(name, part, "index")
        for part in (key.start, key.stop, key.step)
    ]
    if ends[2] == 0:
        raise _wrong(name, "a slice needs a step", "leave it out, or use 1")
    found = range(*builtins.slice(*ends).indices(n))
    if not found:
        raise _wrong(name, f"a slice takes nothing of axis {axis} of extent {n}", "")
    return found


def _is_place(key: Any) -> bool:
    """Whether a key is a run-time integer."""
    scalar = key.dtype if isinstance(key, Tile) and not key.type.shape else None
    return isinstance(scalar, DType) and scalar.is_int() and scalar is not int1


def parse(name: str, shape: Shape, index: Any) -> Parts:
    """What ``index`` takes of a tile of that shape; trailing ``:`` may be left out.

    Raises E0208 for an index that is none, E0206 for places outside of the tile, E0205 for a slice
    with a run-time bound.
    """
    known = [unwrap(key) for key in several(index)]
    ranges: list[range] = []
    at: dict[int, Tile] = {}
    dropped: list[int] = []
    new: list[int] = []
    for key in known:
        axis = len(ranges)
        if key is None:
            new.append(axis - len(dropped) + len(new))
        elif axis >= len(shape):
            raise _refused(known)
        elif isinstance(key, builtins.slice):
            ranges.append(_range(name, key, shape[axis], axis))
        elif _is_place(key):
            at[axis] = key
            dropped.append(axis)
            ranges.append(range(shape[axis]))
        elif type(key) is int:
            if not -shape[axis] <= key < shape[axis]:
                text = f"place {key} is out of range for axis {axis} of {shape}"
                raise _wrong(name, text, "places count from 0, or back from -1")
            ranges.append(range(key % shape[axis], key % shape[axis] + 1))
            dropped.append(axis)
        else:
            raise _refused(known)
    ranges += [range(n) for n in shape[len(ranges) :]]
    return Parts(
        tuple(each.start for each in ranges),
        tuple(each.step for each in ranges),
        tuple(map(len, ranges)),
        at,
        tuple(dropped),
        tuple(new),
    )


def _slice(x: Tile, parts: Parts) -> Tile:
    if parts.extents == x.type.shape and all(step == 1 for step in parts.steps):
        return x
    return emit_tile(Slice, x=x, starts=parts.starts, steps=parts.steps, extents=parts.extents)


def _take(x: Tile, at: Tile, axis: int) -> Tile:
    """The part of extent 1 at a run-time place of an axis."""
    shape = x.type.shape
    wanted = (*shape[:axis], 1, *shape[axis + 1 :])
    return emit_tile(Gather, x=x, index=broadcast_tile(at, wanted), axis=axis)


@surface(name="", method="__getitem__")
def getitem(x: Tile, index: Any) -> Tile:
    """``x[...]``: for each axis a slice, whose bounds and step are known when the kernel is
    compiled, or one place, which may be a run-time integer; ``None`` makes a new axis of extent 1.
    Trailing ``:`` may be left out. ``x[0]`` of a scalar is the scalar.

    Slices and known places follow Python's rules: negative ones count from the end. A run-time
    place isn't checked: one before the first is taken as the first, one behind the last as the
    last. Raises E0208 for any other index, E0206 for places outside of the tile or no element at
    all, E0205 for a slice with a run-time bound.
    """
    shape = x.type.shape
    if not shape and type(unwrap(index)) is int and unwrap(index) == 0:
        return x
    parts = parse("index", shape, index)
    made = _slice(x, parts)
    for axis, at in parts.at.items():
        made = _take(made, at, axis)
    if parts.dropped:
        made = emit_tile(Reshape, x=made, shape=parts.kept(made.type.shape))
    return insert_axes(made, [*parts.new]) if parts.new else made


@surface(name="set", method="set")
def set(x: Any, index: Any, value: Any) -> Tile:
    """A tile like ``x`` with ``value`` at ``index``; ``x`` itself doesn't change.

    ``index`` is what may stand in ``x[...]``, without new axes: places, ``slice(start, stop)``,
    or a tuple of these. ``value`` is broadcast to the shape of ``x[index]`` and cast to the type of
    ``x``. A run-time place outside of the tile replaces nothing. Raises E0202 where the value
    doesn't fit, and what ``x[index]`` raises.
    """
    tile = to_tile(x, "set", "x")
    parts = parse("set", tile.type.shape, index)
    if parts.new or not tile.type.shape:
        raise _refused([unwrap(index)])
    new = cast(to_tile(value, "set", "value"), tile.dtype)
    kept = parts.kept(parts.extents)
    if not kept:
        if new.type.shape:
            raise error("E0202", op="set", left=new.type.shape, right=(), axis=0)
        new = broadcast_tile(new, (1,) * len(parts.extents))
    else:
        _fits(new.type.shape, kept)
        new = emit_tile(Reshape, x=broadcast_tile(new, kept), shape=parts.inner())
    if parts.at:
        hit: Any = None
        for axis, at in parts.at.items():
            here = _positions(parts.extents, axis) == at
            hit = here if hit is None else hit & here
        old = _slice(tile, parts)
        new = where(hit, broadcast_tile(new, parts.extents), old)
    if parts.extents == tile.type.shape and all(step == 1 for step in parts.steps):
        return new
    return emit_tile(Update, x=tile, value=new, starts=parts.starts, steps=parts.steps)


def _fits(have: Shape, wanted: Shape) -> None:
    """Raises E0202 unless a shape broadcasts to another one."""
    rank = len(wanted)
    padded = (1,) * (rank - len(have)) + have
    for axis, (m, n) in enumerate(zip(padded[-rank:], wanted)):
        if len(have) > rank or m not in (1, n):
            raise error("E0202", op="set", left=have, right=wanted, axis=axis)


def _positions(shape: Shape, axis: int) -> Any:
    """The int32 place of each element along an axis, in a tile of that shape."""
    line = arange(0, shape[axis])
    outer = insert_axes(line, [*range(axis), *range(axis + 1, len(shape))])
    return broadcast_tile(outer, shape)


def _axis(name: str, x: Tile, dim: Any) -> int:
    shape = x.type.shape
    return wrap_axis(name, -1 if unwrap(dim) is None else dim, len(shape), shape, "dim")


def _run(x: Tile, axis: int, part: range) -> Tile:
    """The places ``part`` of one axis."""
    shape = x.type.shape
    rank = range(len(shape))
    return emit_tile(
        Slice,
        x=x,
        starts=tuple(part.start if a == axis else 0 for a in rank),
        steps=tuple(part.step if a == axis else 1 for a in rank),
        extents=tuple(len(part) if a == axis else shape[a] for a in rank),
    )


@surface(method=True)
def flip(x: Any, dim: Any = None) -> Tile:
    """``x`` with its elements in the opposite order along axis ``dim``, the last where it is None.

    Raises E0207 for an axis out of range.
    """
    tile = to_tile(x, "flip", "x")
    axis = _axis("flip", tile, dim)
    return _run(tile, axis, range(tile.type.shape[axis] - 1, -1, -1))


@surface(method=True)
def split(a: Any) -> TileTuple:
    """The two halves of ``a`` along its last axis, of extent 2, which they don't have.

    Raises E0206 for another extent.
    """
    tile = to_tile(a, "split", "a")
    shape = tile.type.shape
    if not shape or shape[-1] != 2:
        text = f"the last axis of {shape} must have extent 2"
        raise error("E0206", op="split", text=text, hint="use x[:, :n] for a part", argument="a")
    halves = (_run(tile, len(shape) - 1, range(k, k + 1)) for k in (0, 1))
    return TileTuple(emit_tile(Reshape, x=half, shape=shape[:-1]) for half in halves)


def _known_shift(name: str, shift: Any) -> int | None:
    """A shift that is known when the kernel is compiled; None for a run-time integer."""
    if _is_place(shift):
        return None
    if isinstance(shift, Tile):
        raise error(
            "E0204",
            op=name,
            expected="an integer",
            got=shift.type,
            hint="every row is moved by one number",
            argument="shift",
        )
    return static_int(name, shift, "shift")


def _is_uint64(shift: Any) -> bool:
    return bool(unwrap(shift).dtype is uint64)


@surface(method=True)
def roll(x: Any, shift: Any, dim: Any = None) -> Tile:
    """``x`` moved by ``shift`` places along axis ``dim``, the last where it is None; what leaves at
    one end comes in at the other. ``shift`` may be a run-time integer of any type.

    Raises E0204 for a shift that is no integer, E0207 for an axis out of range.
    """
    tile = to_tile(x, "roll", "x")
    axis = _axis("roll", tile, dim)
    n = tile.type.shape[axis]
    known = _known_shift("roll", unwrap(shift))
    if known is None:
        # uint64 isn't one of the integers of int64: its remainder is taken as it is.
        far: Any = shift if _is_uint64(shift) else cast(shift, int64)
        at = (_positions(tile.type.shape, axis) - cast(far % n, int32) + n) % n
        return emit_tile(Gather, x=tile, index=at, axis=axis)
    cut = n - known % n
    if cut == n:
        return tile
    ends = _run(tile, axis, range(cut, n)), _run(tile, axis, range(cut))
    return emit_tile(Cat, left=ends[0], right=ends[1], axis=axis)


@surface(method=True)
def shift(x: Any, shift: Any, fill: Any = 0, dim: Any = None) -> Tile:
    """``x`` moved by ``shift`` places along axis ``dim``, the last where it is None; ``fill`` comes
    in, cast to the type of ``x``. ``shift`` may be a run-time integer of any type.

    Raises E0204 for a shift that is no integer, E0207 for an axis out of range.
    """
    tile = to_tile(x, "shift", "x")
    axis = _axis("shift", tile, dim)
    shape, n = tile.type.shape, tile.type.shape[axis]
    known = _known_shift("shift", unwrap(shift))
    if known is None:
        at: Any = cast(_positions(shape, axis), int64)
        at = at - cast(minimum(shift, n) if _is_uint64(shift) else shift, int64)
        # A far shift may wrap, to places outside of the tile like those that it stands for.
        inside = (at >= 0) & (at < n)
        moved = emit_tile(Gather, x=tile, index=at, axis=axis)
        return where(inside, moved, cast(full(shape, fill, tile.dtype), tile.dtype))
    count = min(abs(known), n)
    if not count:
        return tile
    blank = full((*shape[:axis], count, *shape[axis + 1 :]), fill, tile.dtype)
    if count == n:
        return blank
    if known > 0:
        return emit_tile(Cat, left=blank, right=_run(tile, axis, range(n - count)), axis=axis)
    return emit_tile(Cat, left=_run(tile, axis, range(count, n)), right=blank, axis=axis)


@surface
def expect_zero(x: Any, mask: Any) -> Tile:
    """``x`` itself, of which the caller expects 0 where ``mask`` is false. Nothing checks that.

    Raises E0602 for a mask that isn't int1, E0202 for one that doesn't broadcast with ``x``.
    """
    tile, expected = to_tile(x, "expect_zero", "x"), to_tile(mask, "expect_zero", "mask")
    if expected.dtype is not int1:
        raise error("E0602", op="expect_zero", got=expected.type, argument="mask")
    common_shape("expect_zero", tile.type.shape, expected.type.shape)
    return tile
