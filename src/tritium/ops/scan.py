"""Scans along one axis: every element combined with those before it, in one documented order.

The order is that of a left fold: result 0 is element 0, result k is ``combine(result k - 1, element
k)``. In reverse it starts at the other end: result k is ``combine(result k + 1, element k)``. So
the bits depend on nothing but the shape, on every executor.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from tritium.diagnostics import error
from tritium.ir.core import Op, Region, Value, attribute, op, operands, region
from tritium.ir.dtypes import (
    VALUES,
    Array,
    DType,
    Type,
    bfloat16,
    float32,
    int1,
    int8,
    int32,
    uint32,
)
from tritium.ir.types import PointerType

from . import samples
from .callable import composite
from .cast import cast
from .combines import add_region, argmin_region, first_region, maximum_region, welford_region
from .constants import to_tile
from .constexpr import unwrap
from .create import static_flag
from .emit import emit, surface, tracer_of
from .reduce import CASE_SHAPES, check_combine, combine_rule, combiner, impure
from .shape import require_axis, require_one_shape, require_tile, wrap_axis
from .spec import Case, Reject, Sample, given
from .tile import Tile
from .tuples import TileTuple, elements, several


@op("scan.scan")
class Scan(Op):
    """``inputs``, of one shape, combined along ``axis`` with all that stands before each element.

    The region ``combine`` takes the n values so far, then the n of the element, and yields n values
    of the same types; it has no branches, loops or memory accesses. With ``initial``, one scalar an
    input, the scan is exclusive: the first results are these scalars, every other result is what
    the inclusive scan has one place before. ``reverse`` runs from the end of the axis.
    """

    unsupported: ClassVar[Mapping[str, str]] = {"nvptx": "scans have no layout of tiles yet"}

    inputs: tuple[Value, ...] = operands()
    initial: tuple[Value, ...] = operands()
    axis: int = attribute()
    reverse: bool = attribute(False)
    combine: Region = region()

    def infer(self) -> tuple[Type, ...]:
        types = [each.type for each in self.inputs]
        shape = require_tile("associative_scan", types, "input")
        require_one_shape("associative_scan", types, "input")
        require_axis("associative_scan", self.axis, shape, "axis")
        wanted = [each.scalar for each in self.inputs]
        if self.initial and [each.type for each in self.initial] != wanted:
            raise error("E0301", text="scan.scan: its initial values have other types")
        check_combine(combine_rule("associative_scan"), self.combine, wanted)
        return tuple(each.type for each in self.inputs)

    def evaluate(
        self, machine: Any, inputs: tuple[Any, ...], initial: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        combine = combiner(
            "associative_scan", machine, self.combine, [each.scalar for each in self.inputs]
        )
        ahead = [np.moveaxis(each, self.axis, 0) for each in inputs]
        if self.reverse:
            ahead = [each[::-1] for each in ahead]
        before = [np.broadcast_to(each, x.shape[1:]) for each, x in zip(initial, ahead)]
        made = [np.empty(each.shape, each.dtype) for each in ahead]
        with np.errstate(all="ignore"):
            total: Sequence[Array] = [each[0] for each in ahead]
            if len(ahead[0]) == 1:
                # Nothing is to be combined, and yet the function is refused for what it does.
                combine(total, total)
            for place in range(len(ahead[0])):
                if place:
                    total = combine(total, [each[place] for each in ahead])
                for result, value in zip(made, before or total):
                    result[place] = value
                before = list(total) if initial else []
        if self.reverse:
            made = [each[::-1] for each in made]
        return tuple(np.moveaxis(each, 0, self.axis) for each in made)

    @classmethod
    def cases(cls) -> Iterator[Case]:
        """Sums, maxima, the two-value argmin and Welford's three, on every shape; every type."""
        pointers = (samples.tile(samples.POINTER, (3, 5)),)
        yield cls._case("first", pointers, 0, functools.partial(first_region, samples.POINTER))
        for position, (shape, axis) in enumerate(CASE_SHAPES):
            for dtype in VALUES if position < 2 else (float32, int8, bfloat16):
                inputs = (samples.ordinary(dtype, shape),)
                add = functools.partial(add_region, dtype)
                greatest = functools.partial(maximum_region, dtype)
                yield cls._case("add", inputs, axis, add)
                yield cls._case("add", inputs, axis, add, reverse=True)
                yield cls._case("max", inputs, axis, greatest, exclusive=True)
            yield cls._several(shape, axis)
            weights = Sample(samples.tile(float32, shape).type, np.ones(shape, np.float32))
            triple = (*(samples.ordinary(float32, shape, seed) for seed in range(2)), weights)
            yield cls._case("welford", triple, axis, welford_region, reverse=True, exclusive=True)

    @classmethod
    def _several(cls, shape: tuple[int, ...], axis: int) -> Case:
        pair = (samples.ordinary(float32, shape), samples.ordinary(int32, shape))
        return cls._case("argmin", pair, axis, functools.partial(argmin_region, float32))

    @classmethod
    def _case(
        cls,
        label: str,
        inputs: tuple[Sample, ...],
        axis: int,
        make: Callable[[], Region],
        *,
        reverse: bool = False,
        exclusive: bool = False,
    ) -> Case:
        kind = f"{label}{' exclusive' * exclusive}{' reverse' * reverse}"
        text = f"{kind} {inputs[0].type} axis {axis}"
        starts: tuple[Sample, ...] = ()
        if exclusive:
            scalars = [each.type.scalar for each in inputs]
            assert all(isinstance(each, DType) for each in scalars)
            starts = tuple(samples.tile(each, (), seed=7) for each in scalars)
        given_operands = {"inputs": inputs, "initial": starts}
        attributes = {"axis": axis, "reverse": reverse}
        return Case(cls, text, given_operands, attributes, {"combine": make})

    @classmethod
    def rejects(cls) -> Iterator[Reject]:
        """Inputs that differ in shape, axes out of range, functions that return something else."""
        x = samples.floats
        add = lambda a, b: a + b  # noqa: E731
        pair = lambda a, b, c, d: (a, b)  # noqa: E731
        scan = associative_scan
        yield Reject("a scalar", "E0204", lambda: scan(x(), 0, add), "input")
        yield Reject("nothing", "E0204", lambda: scan((), 0, add), "input")
        yield Reject("two shapes", "E0206", lambda: scan((x(3), x(4)), 0, pair), "input")
        yield Reject("a runtime axis", "E0205", lambda: scan(x(3), given(int32), add), "axis")
        yield Reject("an axis", "E0207", lambda: scan(x(3), 1, add), "axis")
        compares = lambda: scan(x(3), 0, lambda a, b: a > b)  # noqa: E731
        yield Reject("another type", "E0206", compares, "combine_fn")
        twice = lambda: scan(x(3), 0, lambda a, b: (a, b))  # noqa: E731
        yield Reject("two results", "E0206", twice, "combine_fn")
        few = lambda: scan((x(3), x(3)), 0, pair, exclusive=0.0)  # noqa: E731
        yield Reject("one initial value of two", "E0206", few, "exclusive")
        tile = lambda: scan(x(3), 0, add, exclusive=x(3))  # noqa: E731
        yield Reject("an initial tile", "E0206", tile, "exclusive")
        yield Reject("a sum of a scalar", "E0204", lambda: cumsum(x()), "input")
        yield Reject("a sum along an axis", "E0207", lambda: cumsum(x(3), 1), "axis")
        yield Reject("a product along an axis", "E0207", lambda: cumprod(x(3), -2), "axis")
        for what, function in impure(given(PointerType(float32))).items():
            for extent in (3, 1):
                attempt = functools.partial(scan, x(extent), 0, function)
                yield Reject(f"a function that {what} {extent}", "E0206", attempt, "combine_fn")
        flag = given(int1)
        way = lambda: scan(x(3), 0, add, reverse=flag)  # noqa: E731
        yield Reject("a runtime direction", "E0205", way, "reverse")
        for call in (cumsum, cumprod):
            for name in ("reverse", "exclusive"):
                attempt = functools.partial(call, x(3), **{name: flag})
                yield Reject(f"a runtime {name} of {call.__name__}", "E0205", attempt, name)
        start = lambda: cumsum(x(3), exclusive=1.5)  # noqa: E731
        yield Reject("a number as a flag", "E0204", start, "exclusive")


def _initial(exclusive: Any, tiles: Sequence[Tile]) -> tuple[Tile, ...]:
    """The scalars that an exclusive scan starts with, in the types of the inputs."""
    if unwrap(exclusive) is None:
        return ()
    values = [to_tile(value, "associative_scan", "exclusive") for value in several(exclusive)]
    if len(values) != len(tiles) or any(value.type.shape for value in values):
        raise error(
            "E0206",
            op="associative_scan",
            text=f"exclusive gives {len(values)} values for {len(tiles)} inputs, or a tile",
            hint="give the scalar that each result starts with",
            argument="exclusive",
        )
    return tuple(
        value if value.dtype == tile.dtype else cast(value, tile.dtype)
        for value, tile in zip(values, tiles)
    )


@surface(method=True)
def associative_scan(
    input: Any, axis: Any, combine_fn: Any, reverse: Any = False, exclusive: Any = None
) -> Any:
    """Each element of ``input`` combined with all that stand before it along ``axis``.

    ``input`` is a tile or a tuple of n tiles of one shape; ``combine_fn``, a kernel function, takes
    the n scalars so far and the n of the next element, and returns n scalars of the same types. It
    should be associative. ``reverse`` runs from the end of the axis. ``exclusive``, a scalar (n of
    them for a tuple), leaves the element itself out: the first result is that scalar, every other
    one what the inclusive scan has one place before. Returns a tile, or a tuple of them.

    Raises E0204 for a scalar, E0206 where the shapes, the function's results or ``exclusive`` don't
    fit, E0207 for an axis out of range.
    """
    tiles = [to_tile(each, "associative_scan", "input") for each in several(input)]
    results = _scan("associative_scan", tiles, axis, combine_fn, reverse, exclusive)
    return results[0] if elements(input) is None else TileTuple(results)


def _scan(
    name: str, tiles: Sequence[Tile], axis: Any, combine: Any, reverse: Any, exclusive: Any
) -> Sequence[Tile]:
    shape = require_tile(name, [tile.type for tile in tiles], "input")
    place = wrap_axis(name, axis, len(shape), shape, "axis")
    types = [tile.dtype for tile in tiles]
    result = emit(
        Scan,
        inputs=tuple(tiles),
        initial=_initial(exclusive, tiles),
        axis=place,
        reverse=static_flag(name, reverse, "reverse"),
        combine=tracer_of(f"tl.{name}").region(combine, types + types, combine_rule(name)),
    )
    return result if len(tiles) > 1 else (result,)


@composite
def add_combine(a: Any, b: Any) -> Any:
    """``a + b``."""
    return a + b


@composite
def multiply_combine(a: Any, b: Any) -> Any:
    """``a * b``."""
    return a * b


def _cumulated(name: str, combine: Any, start: int, given: tuple[Any, Any, Any, Any, Any]) -> Tile:
    """A running sum or product, ``start`` being what an exclusive one starts with."""
    input, axis, reverse, dtype, exclusive = given
    x = to_tile(input, name, "input")
    scalar = x.dtype
    if unwrap(dtype) is not None:
        x = cast(x, dtype)
    elif isinstance(scalar, DType) and scalar.is_int() and scalar.bits < 32:
        x = cast(x, int32 if scalar.is_int_signed() else uint32)
    initial = start if static_flag(name, exclusive, "exclusive") else None
    return _scan(name, [x], axis, combine, reverse, initial)[0]


@surface(method=True)
def cumsum(
    input: Any, axis: Any = 0, reverse: Any = False, dtype: Any = None, exclusive: Any = False
) -> Tile:
    """The running sums along ``axis``: result k is the sum of the elements 0 to k.

    Signed integers under 32 bits are summed as int32, unsigned ones and int1 as uint32; all other
    types in their own, fp16 and bf16 included. ``dtype`` converts the elements before. The sums are
    added one after the other, from the end of the axis with ``reverse``. ``exclusive`` leaves the
    element itself out: the first result is 0.

    Raises E0204 for a scalar, E0207 for an axis out of range.
    """
    return _cumulated("cumsum", add_combine, 0, (input, axis, reverse, dtype, exclusive))


@surface(method=True)
def cumprod(
    input: Any, axis: Any = 0, reverse: Any = False, dtype: Any = None, exclusive: Any = False
) -> Tile:
    """The running products along ``axis``, by the rules of ``cumsum``; an exclusive one starts
    with 1."""
    return _cumulated("cumprod", multiply_combine, 1, (input, axis, reverse, dtype, exclusive))
