"""Sorting along an axis, stable, by one total order of each element type.

Integers are ordered as such, False stands before True. Floats: -0.0 stands before +0.0, and NaN
(every pattern alike) after all numbers. Descending is the reverse order, so NaN comes first there;
equal elements keep their places in both directions.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from tritium.diagnostics import error
from tritium.ir.core import Op, Value, attribute, op, operands
from tritium.ir.dtypes import VALUES, Array, DType, Type, float32, int1, int32
from tritium.ir.types import PointerType, TileType, shaped

from . import samples
from .codecs import decode
from .constants import to_tile
from .constexpr import unwrap
from .create import arange, static_flag, static_int
from .emit import emit, emit_tile, surface
from .reduce import CASE_SHAPES
from .shape import (
    ExpandDims,
    broadcast_tile,
    require_axis,
    require_one_shape,
    require_tile,
    wrap_axis,
)
from .spec import Case, Reject, Sample, given
from .tile import Tile
from .tuples import TileTuple, several


def has_nan_for_zero(dtype: DType) -> bool:
    """Whether the pattern of -0.0 is NaN: the key of 0.0 takes its place, NaN that of the largest.

    In such types the largest number's pattern has all bits but the sign.
    """
    return dtype.format.nan_pattern == dtype.format.sign_pattern


def order_keys(x: Array, dtype: DType) -> Array:
    """Unsigned integers that are ordered as the elements are."""
    if not dtype.is_floating():
        bits = x.view(f"u{x.dtype.itemsize}")
        sign = 1 << (dtype.bits - 1) if dtype.is_int_signed() and dtype.bits > 1 else 0
        return np.asarray(bits ^ bits.dtype.type(sign))
    bits = x.view(f"u{x.dtype.itemsize}")
    sign = bits.dtype.type(dtype.format.sign_pattern)
    above = bits.dtype.type(has_nan_for_zero(dtype))
    keys = np.where(bits & sign, ~bits, (bits | sign) - above)
    return np.where(np.isnan(decode(x, dtype)), ~bits.dtype.type(0), keys)


@op("sort.sort")
class Sort(Op):
    """``inputs``, of one shape, in the order of the first one's elements along ``axis``.

    The sort is stable, by the total order that the module states. The other inputs' elements move
    with those of the first. Where ``count`` isn't None only as many are kept, the first ones.
    """

    unsupported: ClassVar[Mapping[str, str]] = {"nvptx": "sorts have no layout of tiles yet"}

    inputs: tuple[Value, ...] = operands()
    axis: int = attribute()
    descending: bool = attribute(False)
    count: int | None = attribute(None)

    def infer(self) -> tuple[Type, ...]:
        types = [each.type for each in self.inputs]
        shape = _require_keys("sort", types[0])
        require_one_shape("sort", types, "values")
        require_axis("sort", self.axis, shape, "dim")
        count = shape[self.axis] if self.count is None else self.count
        if not 1 <= count <= shape[self.axis]:
            raise error(
                "E0206",
                op="topk",
                text=f"{count} of the {shape[self.axis]} elements along axis {self.axis}",
                hint=f"keep 1 to {shape[self.axis]}",
                argument="k",
            )
        kept = (*shape[: self.axis], count, *shape[self.axis + 1 :])
        return tuple(TileType(each.scalar, kept) for each in self.inputs)

    def evaluate(self, machine: Any, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        dtype = self.inputs[0].scalar
        assert isinstance(dtype, DType)
        keys = order_keys(np.ascontiguousarray(inputs[0]), dtype)
        places = np.argsort(~keys if self.descending else keys, self.axis, kind="stable")
        first = np.moveaxis(places, self.axis, -1)[..., : self.count]
        places = np.moveaxis(first, -1, self.axis)
        return tuple(np.take_along_axis(each, places, self.axis) for each in inputs)

    @classmethod
    def cases(cls) -> Iterator[Case]:
        """Every type and special values; every shape, with values, in both directions."""
        for position, (shape, axis) in enumerate(CASE_SHAPES):
            for number, dtype in enumerate(VALUES if position < 2 else VALUES[position % 4 :: 4]):
                keys = samples.tile(dtype, shape)
                down = bool((position + number) % 2)
                yield cls._case((keys,), axis, not down)
                equal = Sample(keys.type, samples.ordinary(dtype, shape).data)
                count = max(1, shape[axis] // 3)
                yield cls._case((equal, _places(shape, axis)), axis, down, count)
        pointers = samples.tile(samples.POINTER, (3, 5))
        yield cls._case((samples.ordinary(int32, (3, 5)), pointers), 0, False)
        for dtype in VALUES:
            edges = samples.edges(dtype)
            whole = Sample(shaped(dtype, (len(edges) * 5,)), np.tile(edges, 5))
            yield cls._case((whole, _places((len(edges) * 5,), 0)), 0, False)

    @classmethod
    def _case(
        cls, inputs: tuple[Sample, ...], axis: int, descending: bool, count: int | None = None
    ) -> Case:
        attributes = {"axis": axis, "descending": descending, "count": count}
        types = ", ".join(str(each.type) for each in inputs)
        label = f"{types} axis {axis}{' descending' * descending} {count or ''}"
        return Case(cls, label, {"inputs": inputs}, attributes)

    @classmethod
    def rejects(cls) -> Iterator[Reject]:
        """Scalars, pointers, axes out of range, values of another shape, counts."""
        x = samples.floats
        pointers = given(PointerType(float32), 4)
        yield Reject("a scalar", "E0204", lambda: sort(x()), "x")
        yield Reject("pointers", "E0204", lambda: sort(pointers), "x")
        yield Reject("an axis", "E0207", lambda: sort(x(3), 1), "dim")
        yield Reject("a runtime axis", "E0205", lambda: sort(x(3), given(int32)), "dim")
        other = lambda: sort(x(3), values=x(4))  # noqa: E731
        yield Reject("values of another shape", "E0206", other, "values")
        yield Reject("too many", "E0206", lambda: topk(x(3), 4), "k")
        yield Reject("none", "E0206", lambda: topk(x(3), 0), "k")
        yield Reject("a runtime count", "E0205", lambda: topk(x(3), given(int32)), "k")
        yield Reject("an argsort of a scalar", "E0204", lambda: argsort(x()), "x")
        down = {"descending": given(int1)}
        for call in (sort, argsort, bitonic_merge):
            which = f"a runtime direction of {call.__name__}"
            yield Reject(which, "E0205", functools.partial(call, x(3), **down), "descending")
        yield Reject("a runtime direction", "E0205", lambda: topk(x(3), 1, **down), "descending")
        text = lambda: sort(x(3), descending="no")  # noqa: E731
        yield Reject("a direction by name", "E0204", text, "descending")
        indices = lambda: topk(x(3), 1, return_indices=given(int1))  # noqa: E731
        yield Reject("runtime indices", "E0205", indices, "return_indices")


def _places(shape: tuple[int, ...], axis: int) -> Sample:
    """The index of each element along an axis."""
    index = np.arange(shape[axis], dtype=np.int32)
    index = index.reshape([-1 if a == axis else 1 for a in range(len(shape))])
    return Sample(shaped(int32, shape), np.array(np.broadcast_to(index, shape)))


def _require_keys(name: str, keys: Type) -> tuple[int, ...]:
    """The shape of what is sorted by. Raises E0204 for scalars and pointers."""
    fits = isinstance(keys.scalar, DType)
    return require_tile(name, [keys], "x", "a tile of integers or floats", fits=fits)


def _axis_of(name: str, x: Tile, dim: Any) -> int:
    """The axis to sort along: the last one unless ``dim`` names another."""
    shape = _require_keys(name, x.type)
    return wrap_axis(name, -1 if unwrap(dim) is None else dim, len(shape), shape, "dim")


def _sorted(
    name: str, inputs: Sequence[Tile], axis: int, descending: Any, count: int | None = None
) -> tuple[Tile, ...]:
    down = static_flag(name, descending, "descending")
    made = emit(Sort, inputs=tuple(inputs), axis=axis, descending=down, count=count)
    return made if len(inputs) > 1 else (made,)


def _indices(x: Tile, axis: int) -> Tile:
    """int32 positions along an axis, in the shape of ``x``."""
    shape = x.type.shape
    index = arange(0, shape[axis])
    for _ in shape[axis + 1 :]:
        index = emit_tile(ExpandDims, x=index, axis=len(index.type.shape))
    return broadcast_tile(index, shape)


@surface(method=True)
def sort(x: Any, dim: Any = None, descending: Any = False, values: Any = None) -> Any:
    """The elements of ``x`` in order along ``dim``, the last axis where that is None.

    The sort is stable. -0.0 stands before +0.0, and NaN after all numbers, before them with
    ``descending``. ``values``, a tile of the same shape or a tuple of them, is sorted along: the
    result is then the tuple (sorted ``x``, values...). Any extent.

    Raises E0204 for scalars and pointers, E0207 for an axis out of range, E0206 for values of
    another shape.
    """
    keys = to_tile(x, "sort", "x")
    axis = _axis_of("sort", keys, dim)
    if unwrap(values) is None:
        return _sorted("sort", [keys], axis, descending)[0]
    tiles = [to_tile(each, "sort", "values") for each in several(values)]
    return TileTuple(_sorted("sort", [keys, *tiles], axis, descending))


@surface(method=True)
def argsort(x: Any, dim: Any = None, descending: Any = False) -> Tile:
    """The int32 indices along ``dim`` that sort ``x`` as ``sort`` does: stable."""
    keys = to_tile(x, "argsort", "x")
    axis = _axis_of("argsort", keys, dim)
    return _sorted("argsort", [keys, _indices(keys, axis)], axis, descending)[1]


@surface(method=True)
def topk(
    x: Any, k: Any, dim: Any = None, descending: Any = True, return_indices: Any = False
) -> Any:
    """The ``k`` largest elements along ``dim``, the smallest without ``descending``, in order.

    NaN counts as the largest. ``dim`` None is the last axis; ``k`` may be any number of its
    elements. With ``return_indices`` the pair (elements, their int32 indices along ``dim``); of
    equal elements those of lower indices come first.

    Raises E0204 for scalars and pointers, E0207 for an axis out of range, E0206 for a ``k`` that is
    not 1 to the extent.
    """
    keys = to_tile(x, "topk", "x")
    axis = _axis_of("topk", keys, dim)
    count = static_int("topk", k, "k")
    if static_flag("topk", return_indices, "return_indices"):
        pair = [keys, _indices(keys, axis)]
        return TileTuple(_sorted("topk", pair, axis, descending, count))
    return _sorted("topk", [keys], axis, descending, count)[0]


@surface
def bitonic_merge(x: Any, dim: Any = None, descending: Any = False) -> Tile:
    """A bitonic sequence along ``dim`` (rising, then falling, or rotated) in order: ``sort``."""
    keys = to_tile(x, "bitonic_merge", "x")
    axis = _axis_of("bitonic_merge", keys, dim)
    return _sorted("bitonic_merge", [keys], axis, descending)[0]
