"""Operations that make tiles from nothing or from scalars."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tritium.diagnostics import error
from tritium.ir.core import PURE, ConcreteValue, Op, Value, attribute, op, operand
from tritium.ir.dtypes import VALUES, DType, Type, float32, int8, int32, uint8
from tritium.ir.types import MAX_TILE_NUMEL, TileType

from . import samples
from .codecs import encode
from .constexpr import unwrap
from .emit import emit_tile, surface
from .spec import Case, Reject, given
from .tile import Tile
from .tuples import elements


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

    @classmethod
    def cases(cls) -> Iterator[Case]:
        """Numbers that every type holds, that floats round, and the limits of integers."""
        for dtype in VALUES:
            numbers: list[bool | int | float] = [False, True] if dtype.bits == 1 else [0, 1, 100]
            if dtype.is_floating():
                numbers += [-0.0, -1.5, 0.1, 1e-7, 1e30, math.inf, -math.inf, math.nan]
            elif dtype.bits > 1:
                numbers = [-1, 0] if dtype.is_int_signed() else []
                numbers += [100, dtype.get_int_min_value(), dtype.get_int_max_value()]
            for value in numbers:
                yield Case(cls, f"{value} as {dtype}", {}, {"value": value, "dtype": dtype})

    @classmethod
    def rejects(cls) -> Iterator[Reject]:
        """What ``full`` refuses."""
        yield Reject("an integer as shape", "E0204", lambda: full(3, 0, int8), "shape")
        yield Reject("an extent of 0", "E0206", lambda: full((0,), 0, int8), "shape")
        yield Reject("too large", "E0206", lambda: full((1 << 20, 2), 0, int8), "shape")
        yield Reject("a runtime extent", "E0205", lambda: full((given(int32),), 0, int8), "shape")
        yield Reject("a fraction", "E0203", lambda: full((2,), 1.5, int8), "value")
        yield Reject("infinity", "E0203", lambda: full((2,), math.inf, int8), "value")
        yield Reject("a negative number", "E0203", lambda: full((2,), -1, uint8), "value")
        yield Reject("a string", "E0203", lambda: full((2,), "1", int8), "value")
        yield Reject("a vector", "E0206", lambda: full((2,), given(int8, 2), int8), "value")
        yield Reject("a dtype by name", "E0204", lambda: full((2,), 1, "int8"), "dtype")


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

    @classmethod
    def cases(cls) -> Iterator[Case]:
        """Every type, several shapes."""
        pairs: list[tuple[Type, tuple[int, ...]]]
        pairs = [(scalar, (5,)) for scalar in (*VALUES, samples.POINTER)]
        pairs += [(float32, shape) for shape in ((1,), (80,), (3, 48), (2, 1, 3))]
        for scalar, shape in pairs:
            label = f"{scalar} {list(shape)}"
            yield Case(cls, label, {"x": samples.tile(scalar, ())}, {"shape": shape})


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

    @classmethod
    def cases(cls) -> Iterator[Case]:
        """Any start and length, up to the limits of int32."""
        bounds = [
            (0, 1),
            (0, 5),
            (-3, 80),
            (7, 55),
            (0, 1024),
            (2**31 - 3, 2**31),
            (-(2**31), -(2**31) + 2),
        ]
        for start, end in bounds:
            yield Case(cls, f"{start}:{end}", {}, {"start": start, "end": end})

    @classmethod
    def rejects(cls) -> Iterator[Reject]:
        """Bounds that are no compile-time integers, empty or too long vectors."""
        yield Reject("a runtime bound", "E0205", lambda: arange(0, given(int32)), "end")
        yield Reject("a runtime start", "E0205", lambda: arange(given(int32), 4), "start")
        yield Reject("a float", "E0204", lambda: arange(0, 4.0), "end")
        yield Reject("nothing", "E0206", lambda: arange(4, 4), "end")
        yield Reject("too long", "E0206", lambda: arange(0, 1 << 21), "end")
        yield Reject("past int32", "E0203", lambda: arange(2**31 - 1, 2**31 + 1), "end")


_FOLDED = frozenset({"arith", "cast", "compare", "logic", "select"})
"""Families of operations whose results are known where their operands are."""


def folds(op: Op) -> bool:
    """Whether the operation's result is known when the kernel is compiled if its operands are."""
    family = op.mnemonic.partition(".")[0]
    return isinstance(op, Constant) or (family in _FOLDED and op.effects is PURE)


def folded(value: Any) -> Any:
    """The number that a scalar tile made of constants alone is; any other value unwrapped.

    ``B = 1024`` makes ``B`` a tile, and ``B // 2`` too: where a compile-time value is needed they
    are known all the same, as tiles: -7 // 2 is -3. What a run-time loop or branch changes isn't;
    in eager mode, which has no loops to tell it by, what is computed from constants is.
    """
    known = unwrap(value)
    if not isinstance(known, Tile) or known.type.shape or known.dtype.is_ptr():
        return known
    data = _constant_data(known.value)
    return known if data is None else data.item()


def _constant_data(value: Value) -> Any:
    if isinstance(value, ConcreteValue):
        return value.data if value.fixed else None
    op = value.defining_op
    if op is None or value.shape or not folds(op):
        return None
    operands = [_constant_data(each) for each in op.operands]
    dropped = not operands and not isinstance(op, Constant)
    if dropped or any(each is None for each in operands):
        return None
    with np.errstate(all="ignore"):
        return np.asarray(op.evaluate(None, *operands))


def static_value(name: str, value: Any, argument: str) -> Any:
    """A value that is known when the kernel is compiled, as Python's.

    Every compile-time argument of an operation is read by it, so local constants may stand for
    one. Raises E0205 for a run-time value.
    """
    known = folded(value)
    if isinstance(known, Tile):
        raise error("E0205", op=name, name=argument, got=known.type, argument=argument)
    return known


def static_flag(name: str, value: Any, argument: str) -> bool:
    """A compile-time bool, integers and None too. Raises E0205 at run time, E0204 for others."""
    known = static_value(name, value, argument)
    if known is not None and not isinstance(known, (int, np.bool_)):
        expected, got = f"a bool as {argument}", repr(known)
        raise error("E0204", op=name, expected=expected, got=got, hint="", argument=argument)
    return bool(known)


def static_choice(
    name: str, value: Any, argument: str, allowed: Sequence[str], *, prefix: str = ""
) -> str:
    """One of the allowed words, with ``prefix`` or without; the first of them where it is None.

    Raises E0205 for a run-time value, E0606 for another word.
    """
    known = static_value(name, value, argument)
    word = known.removeprefix(prefix) if isinstance(known, str) else known
    if word is None:
        return allowed[0]
    if word not in allowed:
        raise error(
            "E0606",
            op=name,
            name=argument,
            value=known,
            allowed=", ".join(map(repr, allowed)),
            argument=argument,
        )
    return str(word)


def static_int(name: str, value: Any, argument: str) -> int:
    """A compile-time integer. Raises E0205 for a run-time value, E0204 for another type."""
    known = static_value(name, value, argument)
    if not isinstance(known, int) or isinstance(known, bool):
        raise error(
            "E0204",
            op=name,
            expected=f"an integer {argument}",
            got=repr(known),
            hint="convert it with int(...)" if isinstance(known, np.integer) else "",
            argument=argument,
        )
    return known


def static_shape(name: str, shape: Any, argument: str = "shape") -> tuple[int, ...]:
    """A shape given as a tuple or list of compile-time integers.

    Raises E0205 for a run-time extent, E0204 for anything but integers, E0206 for an extent under
    1 or more elements than a tile may have.
    """
    listed = elements(shape)
    if listed is None:
        known = unwrap(shape)
        raise error(
            "E0204",
            op=name,
            expected="a tuple of integers",
            got=known.type if isinstance(known, Tile) else repr(known),
            hint="write (n,) for one axis",
            argument=argument,
        )
    extents = tuple(static_int(name, extent, argument) for extent in listed)
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
    another kind, E0206 for a tile of several elements, E0204 for a shape or type that is none,
    E0205 where they aren't known at compile time.
    """
    # These modules build on this one.
    from .cast import cast, dtype_argument
    from .constants import number
    from .shape import only_element

    extents = static_shape("full", shape)
    kind = dtype_argument("full", dtype)
    if isinstance(unwrap(value), Tile):
        scalar = cast(only_element(unwrap(value), "full", "value"), kind)
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
