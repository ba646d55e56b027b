"""Reductions along one axis, in one documented order.

Partials: along the innermost axis there are min(64, extent) of them, along any other min(4,
extent). Partial p takes the elements p, p + 64, p + 128, ... (or p, p + 4, ...) in this order.
Then for h = 32, 16, ..., 1 (or 2, 1) partial p takes partial p + h where that exists; partial 0 is
the result. A sum's partials start at +0.0, all others with their first element, the left operand
being what came first. So the bits depend on nothing but the shape.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, TypeAlias

import numpy as np

from tritium.diagnostics import TritiumError, error
from tritium.ir.core import Op, Region, Value, attribute, op, operand, operands, region
from tritium.ir.dtypes import (
    FLOATS,
    INTEGERS,
    STANDARD_FLOATS,
    VALUES,
    Array,
    DType,
    Type,
    bfloat16,
    float32,
    from_numpy,
    int1,
    int8,
    int32,
    uint32,
)
from tritium.ir.types import PointerType, shaped

from . import samples
from .arith import extremum
from .callable import composite
from .cast import cast
from .codecs import decode, encode
from .combines import add_region, argmin_region, first_region, maximum_region, welford_region
from .constants import to_tile
from .constexpr import unwrap
from .control import Yield
from .create import arange, static_flag
from .elementwise import compute_storage
from .emit import SURFACE, emit, emit_tile, surface, tracer_of
from .scalars import ScalarRule
from .select import where
from .shape import (
    ExpandDims,
    broadcast_tile,
    flatten,
    require_axis,
    require_one_shape,
    require_tile,
    wrap_axis,
)
from .spec import AgreementTable, Case, Order, Reject, Sample, given
from .tile import Tile
from .tuples import TileTuple, elements, several

Combine: TypeAlias = Callable[[Sequence[Array], Sequence[Array]], Sequence[Array]]

INNERMOST_PARTIALS = 64
OTHER_PARTIALS = 4

REDUCED = tuple(dtype for dtype in INTEGERS if dtype is not int1) + STANDARD_FLOATS
"""Element types that sum, max and min take; the surface functions convert int1 and fp8 first."""


CASE_SHAPES: tuple[tuple[tuple[int, ...], int], ...] = (
    ((80,), 0),
    ((3, 5), 0),
    ((1,), 0),
    ((3,), 0),
    ((5,), 0),
    ((48,), 0),
    ((64,), 0),
    ((65,), 0),
    ((200,), 0),
    ((5, 80), 1),
    ((80, 3), 0),
    ((3, 1), 1),
    ((1, 3), 0),
    ((7, 200), 1),
    ((2, 5, 3), 1),
    ((2, 3, 48), 2),
    ((6, 1, 2), 0),
)
"""Shapes and axes of the generated cases; the first two are tried with every element type."""


def partials(shape: tuple[int, ...], axis: int) -> int:
    """The number of partial results along an axis, before the trailing partials that are unused."""
    return INNERMOST_PARTIALS if axis == len(shape) - 1 else OTHER_PARTIALS


def in_order(inputs: Sequence[Array], axis: int, combine: Combine) -> list[Array]:
    """``inputs``, of one shape, combined along ``axis`` in the documented order.

    ``combine`` takes the left and the right values, a list of arrays each, and returns the new
    ones; the reduced axis comes first in these arrays.
    """
    lanes = partials(inputs[0].shape, axis)
    moved = [np.moveaxis(each, axis, 0) for each in inputs]
    extent = len(moved[0])
    kept = [each[:lanes] for each in moved]
    for start in range(lanes, extent, lanes):
        kept = _merge(kept, [each[start : start + lanes] for each in moved], combine)
    half = lanes // 2
    while half:
        if len(kept[0]) > half:
            rest = [each[half:] for each in kept]
            kept = _merge([each[:half] for each in kept], rest, combine)
        half //= 2
    return [each[0] for each in kept]


def _merge(left: list[Array], right: list[Array], combine: Combine) -> list[Array]:
    """``left`` combined with ``right``, which may be shorter along the first axis."""
    count = len(right[0])
    merged = combine([each[:count] for each in left], right)
    if count == len(left[0]):
        return list(merged)
    return [np.concatenate([new, old[count:]]) for new, old in zip(merged, left)]


def _drop_axis(name: str, input: Value, axis: int) -> Type:
    """The type of a result: ``input``'s without ``axis``."""
    shape = require_tile(name, [input.type], "input")
    require_axis(name, axis, shape, "axis")
    return shaped(input.scalar, shape[:axis] + shape[axis + 1 :])


def _magnitude(dtype: DType, axis: int, x: Array) -> Array:
    """The number of terms times the sum of their absolute values, for the bound of an order."""
    values = decode(x, dtype) if dtype.is_floating() else x.astype(np.float64)
    return np.asarray(x.shape[axis] * np.abs(values).sum(axis))


def _none(*arrays: Array) -> Array:
    """The magnitude of what no order changes."""
    return np.zeros(())


def _welford_magnitude(axis: int, mean: Array, squares: Array, weight: Array) -> Array:
    """As ``_magnitude``, for all three results: sums of squares have the largest errors."""
    terms = np.abs(mean) + mean.astype(np.float64) ** 2 + np.abs(squares) + weight
    return np.asarray(mean.shape[axis] * terms.sum(axis))


def _zeros(dtype: DType) -> Sample:
    """A row of negative zeros, and two of mixed ones."""
    rows = np.array([[-0.0] * 5, [0.0, -0.0, -0.0, -0.0, -0.0], [-0.0, -0.0, -0.0, -0.0, 0.0]])
    return Sample(shaped(dtype, (3, 5)), encode(rows, dtype))


class Reduction(Op):
    """Base of the reductions that have an operation of their own."""

    x: Value = operand()
    axis: int = attribute()

    @property
    def dtype(self) -> DType:
        """The element type."""
        assert isinstance(self.x.scalar, DType)
        return self.x.scalar

    def infer(self) -> Type:
        if self.x.scalar not in REDUCED:
            raise error(
                "E0204",
                op=self.verb,
                expected="integers or floats of 16 bits and more",
                got=self.x.type,
                hint="cast it first",
                argument="input",
            )
        return _drop_axis(self.verb, self.x, self.axis)

    def combine(self, left: Array, right: Array) -> Array:
        """Two partials as one, in storage form."""
        raise TypeError(f"{type(self).__name__} has no reference rule")

    def evaluate(self, machine: Any, x: Any) -> Any:
        with np.errstate(all="ignore"):
            (result,) = in_order([x], self.axis, lambda a, b: [self.combine(a[0], b[0])])
        return result

    @classmethod
    def cases(cls) -> Iterator[Case]:
        """Every type, odd extents, every axis; ordinary values and special ones."""
        for position, (shape, axis) in enumerate(CASE_SHAPES):
            for dtype in (float32, int8) if position > 1 else REDUCED:
                for make in (samples.ordinary, samples.tile):
                    label = f"{dtype} {list(shape)} axis {axis} {make.__name__}"
                    operands = {"x": make(dtype, shape)}
                    magnitude = functools.partial(_magnitude, dtype, axis)
                    yield Case(cls, label, operands, {"axis": axis}, magnitude=magnitude)
        for dtype in STANDARD_FLOATS:
            magnitude = functools.partial(_magnitude, dtype, 1)
            operands = {"x": _zeros(dtype)}
            yield Case(cls, f"{dtype} zeros", operands, {"axis": 1}, magnitude=magnitude)

    @classmethod
    def rejects(cls) -> Iterator[Reject]:
        """Scalars, axes out of range, pointers."""
        call: Any = SURFACE[cls.verb]
        x = samples.floats
        yield Reject("a scalar", "E0204", lambda: call(x()), "input")
        yield Reject("an axis past the end", "E0207", lambda: call(x(3, 4), 2), "axis")
        yield Reject("an axis before the start", "E0207", lambda: call(x(3, 4), -3), "axis")
        yield Reject("a runtime axis", "E0205", lambda: call(x(3), given(int32)), "axis")
        yield Reject("several axes", "E0204", lambda: call(x(3, 4), (0, 1)), "axis")
        pointer = PointerType(float32)
        yield Reject("pointers", "E0204", lambda: call(given(pointer, 4)), "input")


@op("reduce.sum")
class Sum(Reduction):
    """The sum along ``axis``, in the type of ``x``: integers wrap, every float addition rounds.

    Float partials start at +0.0, so a sum of negative zeros is +0.0.
    """

    agreement: ClassVar[AgreementTable] = {
        "nvptx": {dtype: Order(1.0) for dtype in STANDARD_FLOATS}
    }

    def combine(self, left: Array, right: Array) -> Array:
        return compute_storage(np.add, self.dtype, [left, right])

    def evaluate(self, machine: Any, x: Any) -> Any:
        # Adding +0.0 changes nothing but the sign of a zero.
        with np.errstate(all="ignore"):
            started = self.combine(np.zeros_like(x), x) if self.dtype.is_floating() else x
        return Reduction.evaluate(self, machine, started)


@op("reduce.max")
class Max(Reduction):
    """The largest element along ``axis``, as ``arith.maximum`` without ``propagate_nan`` has it.

    NaN is dropped where there is anything else; +0.0 is above -0.0.
    """

    def combine(self, left: Array, right: Array) -> Array:
        return extremum(left, right, self.dtype, larger=True, propagate_nan=False)


@op("reduce.min")
class Min(Reduction):
    """The smallest element along ``axis``, as ``arith.minimum`` without ``propagate_nan`` has it.

    NaN is dropped where there is anything else; -0.0 is below +0.0.
    """

    def combine(self, left: Array, right: Array) -> Array:
        return extremum(left, right, self.dtype, larger=False, propagate_nan=False)


@op("reduce.reduce")
class Reduce(Op):
    """``inputs``, of one shape, combined along ``axis`` by a function of scalars.

    The region ``combine`` takes the n left values, then the n right ones, and yields n values of
    the same types; it has no branches, loops or memory accesses. It should be associative and
    commutative: each executor keeps the documented order as far as its class of agreement says.
    On GPUs the order depends on the layout, and of two partial results the one of the lower
    indices is the left operand.
    """

    agreement: ClassVar[AgreementTable] = {"nvptx": {dtype: Order(1.0) for dtype in FLOATS}}

    inputs: tuple[Value, ...] = operands()
    axis: int = attribute()
    combine: Region = region()

    def infer(self) -> tuple[Type, ...]:
        types = [each.type for each in self.inputs]
        require_tile("reduce", types, "input")
        require_one_shape("reduce", types, "input")
        results = tuple(_drop_axis("reduce", each, self.axis) for each in self.inputs)
        check_combine(combine_rule("reduce"), self.combine, [each.scalar for each in self.inputs])
        return results

    def evaluate(self, machine: Any, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        wanted = [each.scalar for each in self.inputs]
        combine = combiner("reduce", machine, self.combine, wanted)
        if self.inputs[0].shape[self.axis] == 1:
            # Nothing is to be combined, and yet the function is refused for what it does.
            combine(inputs, inputs)
        return tuple(in_order(inputs, self.axis, combine))

    @classmethod
    def cases(cls) -> Iterator[Case]:
        """Sums, maxima, the two-value argmin and Welford's three, on every shape; every type."""
        regions: Mapping[str, Callable[[], Region]]
        regions = {"combine": functools.partial(add_region, float32)}
        added = functools.partial(_magnitude, float32, 1)
        yield cls._case("add zeros", (_zeros(float32),), 1, regions, added)
        regions = {"combine": functools.partial(first_region, samples.POINTER)}
        yield cls._case("first", (samples.tile(samples.POINTER, (3, 5)),), 0, regions)
        for position, (shape, axis) in enumerate(CASE_SHAPES):
            for dtype in VALUES if position < 2 else (float32, int8, bfloat16):
                for make, region_of in (("add", add_region), ("max", maximum_region)):
                    regions = {"combine": functools.partial(region_of, dtype)}
                    inputs = (samples.ordinary(dtype, shape),)
                    added = functools.partial(_magnitude, dtype, axis)
                    magnitude = added if make == "add" else _none
                    yield cls._case(f"{make} {dtype}", inputs, axis, regions, magnitude)
                indices = np.broadcast_to(
                    np.arange(shape[axis], dtype=np.int32),
                    shape[:axis] + shape[axis + 1 :] + (shape[axis],),
                )
                index = Sample(shaped(int32, shape), np.moveaxis(indices, -1, axis))
                regions = {"combine": functools.partial(argmin_region, dtype)}
                yield cls._case(
                    f"argmin {dtype}", (samples.ordinary(dtype, shape), index), axis, regions
                )
            triple = tuple(samples.ordinary(float32, shape, seed) for seed in range(2))
            weights = Sample(shaped(float32, shape), np.ones(shape, np.float32))
            regions = {"combine": welford_region}
            magnitude = functools.partial(_welford_magnitude, axis)
            yield cls._case("welford", (*triple, weights), axis, regions, magnitude)

    @classmethod
    def _case(
        cls,
        label: str,
        inputs: tuple[Sample, ...],
        axis: int,
        regions: Mapping[str, Callable[[], Region]],
        magnitude: Callable[..., Array] = _none,
    ) -> Case:
        text = f"{label} {list(inputs[0].type.shape)} axis {axis}"
        operands = {"inputs": inputs}
        return Case(cls, text, operands, {"axis": axis}, regions, magnitude=magnitude)

    @classmethod
    def rejects(cls) -> Iterator[Reject]:
        """Inputs that differ in shape, combine functions that return something else."""
        x = samples.floats
        add = lambda a, b: a + b  # noqa: E731
        pair = lambda a, b, c, d: (a, b)  # noqa: E731
        yield Reject("a scalar", "E0204", lambda: reduce(x(), 0, add), "input")
        yield Reject("nothing", "E0204", lambda: reduce((), 0, add), "input")
        yield Reject("two shapes", "E0206", lambda: reduce((x(3), x(4)), 0, pair), "input")
        yield Reject("a runtime axis", "E0205", lambda: reduce(x(3), given(int32), add), "axis")
        yield Reject("an axis", "E0207", lambda: reduce(x(3), 1, add), "axis")
        compares = lambda: reduce(x(3), 0, lambda a, b: a > b)  # noqa: E731
        yield Reject("another type", "E0206", compares, "combine_fn")
        twice = lambda: reduce(x(3), 0, lambda a, b: (a, b))  # noqa: E731
        yield Reject("two results", "E0206", twice, "combine_fn")
        indices = lambda: max(x(3), return_indices=True)  # noqa: E731
        yield Reject("indices without an axis", "E0206", indices, "axis")
        indices = lambda: max(x(), 0, return_indices=True)  # noqa: E731
        yield Reject("indices of a scalar", "E0204", indices, "input")
        keep = lambda: reduce(x(3), 0, add, keep_dims=given(int1))  # noqa: E731
        yield Reject("runtime kept axes", "E0205", keep, "keep_dims")
        text = lambda: reduce(x(3), 0, add, keep_dims="yes")  # noqa: E731
        yield Reject("kept axes by name", "E0204", text, "keep_dims")
        pointer = given(PointerType(float32))
        for what, function in impure(pointer).items():
            for extent in (3, 1):
                attempt = functools.partial(reduce, x(extent), 0, function)
                yield Reject(f"a function that {what} {extent}", "E0206", attempt, "combine_fn")
        decided = lambda: reduce(x(2), 0, lambda a, b: a if a > b else b)  # noqa: E731
        yield Reject("a function that branches", "E0206", decided, "combine_fn")
        yield from _flag_rejects()


def impure(pointer: Tile) -> dict[str, Callable[..., Any]]:
    """Functions of scalars that do more than compute, by what they do. For tests."""
    from .atomic import atomic_add
    from .memory import load, store
    from .report import device_assert, device_print

    def after(effect: Callable[[], Any]) -> Callable[..., Any]:
        def function(a: Any, *rest: Any) -> Any:
            effect()
            return a

        return function

    return {
        "loads": after(lambda: load(pointer)),
        "stores": after(lambda: store(pointer, 1.0)),
        "changes memory": after(lambda: atomic_add(pointer, 1.0)),
        "prints": after(lambda: device_print("x")),
        "asserts": after(lambda: device_assert(True)),
    }


def _flag_rejects() -> Iterator[Reject]:
    """Run-time values for what the surface functions must know."""
    calls: list[tuple[Any, Sequence[str]]] = [
        (sum, ("keep_dims",)),
        (argmax, ("tie_break_left", "keep_dims")),
        (argmin, ("tie_break_left", "keep_dims")),
    ]
    named = ("return_indices", "return_indices_tie_break_left", "keep_dims")
    for call, names in (*calls, (max, named), (min, named)):
        for name in names:
            flag = {name: given(int1)}
            attempt = functools.partial(call, samples.floats(3), 0, **flag)
            yield Reject(f"a runtime {name} of {call.__name__}", "E0205", attempt, name)


def combine_rule(name: str) -> ScalarRule:
    """What a combine function may hold."""
    return ScalarRule(name, "combine_fn", "the combine function")


def check_combine(rule: ScalarRule, combine: Any, wanted: Sequence[Type]) -> None:
    """Raises E0206 where a combine region isn't one from pairs of ``wanted`` to ``wanted``.

    It must hold what ``rule`` lets it. Eager mode's combine is a callable, which is checked while
    it runs.
    """
    name = rule.op
    if not isinstance(combine, Region):
        return
    if [arg.type for arg in combine.args] != [*wanted, *wanted]:
        raise error("E0301", text=f"{name}: its region takes other types than its inputs")
    for each in combine.walk():
        rule.check(each)
    end = combine.block.terminator
    if not isinstance(end, Yield):
        raise error("E0301", text=f"{name}: its region must end with control.yield")
    yielded = [value.type for value in end.values]
    if yielded != [*wanted]:
        raise _wrong_results(name, yielded, wanted)


def combiner(name: str, machine: Any, region: Any, wanted: Sequence[Type]) -> Combine:
    """A combine region as a function of arrays. It raises E0206 for results of other types."""

    def combine(left: Sequence[Array], right: Sequence[Array]) -> Sequence[Array]:
        merged = [np.asarray(each) for each in machine.run(region, (*left, *right))]
        if [each.dtype for each in merged] != [each.numpy for each in wanted]:
            raise _wrong_results(name, [from_numpy(each.dtype) for each in merged], wanted)
        # A constant result comes without an axis.
        return [np.broadcast_to(each, old.shape) for each, old in zip(merged, left)]

    return combine


def _wrong_results(name: str, got: Sequence[Type], wanted: Sequence[Type]) -> TritiumError:
    return error(
        "E0206",
        op=name,
        text=f"the combine function returns {_listed(got)}, its inputs are {_listed(wanted)}",
        hint="cast its results back to the types of the inputs",
        argument="combine_fn",
    )


def _listed(types: Sequence[Type]) -> str:
    return ", ".join(map(str, types)) or "nothing"


@surface(method=True)
def reduce(input: Any, axis: Any, combine_fn: Any, keep_dims: Any = False) -> Any:
    """``input`` combined along ``axis`` by ``combine_fn``.

    ``input`` is a tile or a tuple of n tiles of one shape; ``combine_fn``, a kernel function, takes
    n left and n right scalars and returns n scalars of the same types. It should be associative and
    commutative. ``axis`` None reduces all elements, in row-major order; ``keep_dims`` keeps the
    reduced axes with extent 1. Returns a tile, or a tuple of them.

    Raises E0204 for a scalar, E0206 where the shapes or the function's results don't fit, E0207
    for an axis out of range.
    """
    return _reduce("reduce", input, axis, combine_fn, keep_dims)


def _reduce(name: str, input: Any, axis: Any, combine_fn: Any, keep_dims: Any) -> Any:
    tiles = [to_tile(each, name, "input") for each in several(input)]
    types = [tile.dtype for tile in tiles]
    made = tracer_of(f"tl.{name}").region(combine_fn, types + types, combine_rule(name))

    def emit_reduce(flat: Sequence[Tile], place: int) -> Any:
        result = emit(Reduce, inputs=tuple(flat), axis=place, combine=made)
        return result if len(flat) > 1 else (result,)

    results = _along(name, tiles, axis, keep_dims, emit_reduce)
    return results[0] if elements(input) is None else TileTuple(results)


def _along(
    name: str,
    tiles: Sequence[Tile],
    axis: Any,
    keep_dims: Any,
    apply: Callable[[Sequence[Tile], int], Sequence[Tile]],
) -> list[Tile]:
    """``apply`` on the tiles and an axis of theirs; axis None flattens, kept axes come back."""
    shape = require_tile(name, [tile.type for tile in tiles], "input")
    keep = static_flag(name, keep_dims, "keep_dims")
    if unwrap(axis) is None:
        results = apply([flatten(tile) for tile in tiles], 0)
        ones = (1,) * len(shape)
        return [broadcast_tile(result, ones) if keep else result for result in results]
    place = wrap_axis(name, axis, len(shape), shape, "axis")
    results = apply(tiles, place)
    return [_restore_axis(result, place) if keep else result for result in results]


def _restore_axis(result: Tile, axis: int) -> Tile:
    if not result.type.shape:
        return broadcast_tile(result, (1,))
    return emit_tile(ExpandDims, x=result, axis=axis)


def _reduced(name: str, cls: type[Op], x: Tile, axis: Any, keep_dims: Any) -> Tile:
    def apply(tiles: Sequence[Tile], place: int) -> Sequence[Tile]:
        return [emit_tile(cls, x=tiles[0], axis=place)]

    (result,) = _along(name, [x], axis, keep_dims, apply)
    return result


@surface(method=True)
def sum(input: Any, axis: Any = None, keep_dims: Any = False, dtype: Any = None) -> Tile:
    """The sum along ``axis``, of all elements where it is None.

    Signed integers under 32 bits are summed as int32, unsigned ones and int1 as uint32; all other
    types in their own, fp16 and bf16 included. ``dtype`` converts the elements before. Integers
    wrap. The order of the additions is documented. ``keep_dims`` keeps reduced axes with extent 1.

    Raises E0204 for a scalar or fp8 elements, E0207 for an axis out of range.
    """
    x = to_tile(input, "sum", "input")
    scalar = x.dtype
    if unwrap(dtype) is not None:
        x = cast(x, dtype)
    elif isinstance(scalar, DType) and scalar.is_int() and scalar.bits < 32:
        x = cast(x, int32 if scalar.is_int_signed() else uint32)
    return _reduced("sum", Sum, x, axis, keep_dims)


def _at_least_32_bits(x: Tile) -> Tile:
    scalar = x.dtype
    if not isinstance(scalar, DType) or scalar.bits >= 32:
        return x
    return cast(x, float32 if scalar.is_floating() else int32)


def _extremum(
    name: str,
    cls: type[Op],
    combines: tuple[Any, Any],
    input: Any,
    axis: Any,
    return_indices: Any,
    ties: tuple[str, Any],
    keep_dims: Any,
) -> Any:
    x = to_tile(input, name, "input")
    leftmost = static_flag(name, ties[1], ties[0])
    if not static_flag(name, return_indices, "return_indices"):
        return _reduced(name, cls, _at_least_32_bits(x), axis, keep_dims)
    shape = require_tile(name, [x.type], "input")
    if unwrap(axis) is None:
        raise error(
            "E0206",
            op=name,
            text="indices need an axis",
            hint="pass axis=0, after tl.ravel(x) for the index among all elements",
            argument="axis",
        )
    place = wrap_axis(name, axis, len(shape), shape, "axis")
    indices = arange(0, shape[place])
    for _ in shape[place + 1 :]:
        indices = emit_tile(ExpandDims, x=indices, axis=len(indices.type.shape))
    pair = (x, broadcast_tile(indices, shape))
    return _reduce(name, pair, place, combines[0 if leftmost else 1], keep_dims)


@composite
def argmax_combine_left(value1: Any, index1: Any, value2: Any, index2: Any) -> Any:
    """The pair with the larger value; of equal values that with the smaller index."""
    first = (value1 > value2) | ((value1 == value2) & (index1 < index2))
    return where(first, value1, value2), where(first, index1, index2)


@composite
def argmax_combine_any(value1: Any, index1: Any, value2: Any, index2: Any) -> Any:
    """The pair with the larger value; the right one of equal values."""
    first = value1 > value2
    return where(first, value1, value2), where(first, index1, index2)


@composite
def argmin_combine_left(value1: Any, index1: Any, value2: Any, index2: Any) -> Any:
    """The pair with the smaller value; of equal values that with the smaller index."""
    first = (value1 < value2) | ((value1 == value2) & (index1 < index2))
    return where(first, value1, value2), where(first, index1, index2)


@composite
def argmin_combine_any(value1: Any, index1: Any, value2: Any, index2: Any) -> Any:
    """The pair with the smaller value; the right one of equal values."""
    first = value1 < value2
    return where(first, value1, value2), where(first, index1, index2)


LARGEST = (argmax_combine_left, argmax_combine_any)
SMALLEST = (argmin_combine_left, argmin_combine_any)


@surface(method=True)
def max(
    input: Any,
    axis: Any = None,
    return_indices: Any = False,
    return_indices_tie_break_left: Any = True,
    keep_dims: Any = False,
) -> Any:
    """The largest element along ``axis``, of all elements where it is None.

    Floats under 32 bits give fp32, integers and int1 int32; wider types stay. NaN is dropped where
    there is anything else. With ``return_indices`` the pair (largest, its int32 index along
    ``axis``), in the type of ``input``: the smallest index of equal ones, or any of them without
    ``return_indices_tie_break_left``; which one is unspecified where there is a NaN. ``keep_dims``
    keeps reduced axes with extent 1.

    Raises E0204 for a scalar, E0207 for an axis out of range, E0206 for indices without an axis.
    """
    ties = ("return_indices_tie_break_left", return_indices_tie_break_left)
    return _extremum("max", Max, LARGEST, input, axis, return_indices, ties, keep_dims)


@surface(method=True)
def min(
    input: Any,
    axis: Any = None,
    return_indices: Any = False,
    return_indices_tie_break_left: Any = True,
    keep_dims: Any = False,
) -> Any:
    """The smallest element along ``axis``, of all elements where it is None; else as ``max``."""
    ties = ("return_indices_tie_break_left", return_indices_tie_break_left)
    return _extremum("min", Min, SMALLEST, input, axis, return_indices, ties, keep_dims)


@surface(method=True)
def argmax(input: Any, axis: Any, tie_break_left: Any = True, keep_dims: Any = False) -> Tile:
    """The int32 index of the largest element along ``axis``, as ``max`` gives it."""
    ties = ("tie_break_left", tie_break_left)
    made = _extremum("argmax", Max, LARGEST, input, axis, True, ties, keep_dims)
    index: Tile = made[1]
    return index


@surface(method=True)
def argmin(input: Any, axis: Any, tie_break_left: Any = True, keep_dims: Any = False) -> Tile:
    """The int32 index of the smallest element along ``axis``, as ``min`` gives it."""
    ties = ("tie_break_left", tie_break_left)
    made = _extremum("argmin", Min, SMALLEST, input, axis, True, ties, keep_dims)
    index: Tile = made[1]
    return index
