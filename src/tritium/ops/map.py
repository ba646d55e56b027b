"""A function of scalars on each element, with control flow of its own."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from tritium.diagnostics import TritiumError, error
from tritium.ir.core import Op, Region, Value, attribute, op, operands, region
from tritium.ir.dtypes import VALUES, DType, Type, float32, int8, int32
from tritium.ir.types import PointerType, TileType

from . import samples
from .combines import add_region, branch_region, swap_region
from .constants import to_tile
from .control import Yield
from .create import static_int
from .emit import emit, surface, tracer_of
from .reduce import impure
from .scalars import ScalarRule
from .shape import broadcast_tiles, require_tile
from .spec import Case, Reject, Sample, given
from .tile import Tile
from .tuples import TileTuple, several

RULE = ScalarRule("map_elementwise", "scalar_fn", "the function", branches=True)
"""What a mapped function may hold."""


@op("map.elementwise")
class MapElementwise(Op):
    """``function`` on the elements of ``inputs``, tiles of one shape, one after the other.

    The region takes ``pack`` elements of each input that follow one another in row-major order,
    those of the first input first, and yields as many of each result, whose element types are
    ``types``. It may branch and loop, but neither accesses memory nor prints or asserts.
    """

    unsupported: ClassVar[Mapping[str, str]] = {
        "nvptx": "functions with branches have no layout of tiles yet"
    }

    inputs: tuple[Value, ...] = operands()
    pack: int = attribute(1)
    types: tuple[Type, ...] = attribute()
    function: Region = region()

    def infer(self) -> tuple[Type, ...]:
        shape = require_tile("map_elementwise", [each.type for each in self.inputs], "args")
        if any(each.shape != shape for each in self.inputs):
            raise error("E0301", text="map.elementwise: its inputs differ in shape")
        _check_pack(shape, self.pack)
        if isinstance(self.function, Region):
            self._check_region(self.function)
        return tuple(TileType(each, shape) for each in self.types)

    def _check_region(self, function: Region) -> None:
        taken = [each.scalar for each in self.inputs for _ in range(self.pack)]
        if [arg.type for arg in function.args] != taken:
            raise error("E0301", text="map.elementwise: its region takes other types")
        for each in function.walk():
            RULE.check(each)
        yielded = [each for each in self.types for _ in range(self.pack)]
        end = function.block.terminator
        if not isinstance(end, Yield) or [value.type for value in end.values] != yielded:
            raise error("E0301", text="map.elementwise: its region yields other types")

    def evaluate(self, machine: Any, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        flat = [np.ascontiguousarray(each).reshape(-1) for each in inputs]
        made = [np.empty(flat[0].shape, each.numpy) for each in self.types]
        wanted = [each.dtype for each in made for _ in range(self.pack)]
        for start in range(0, flat[0].size, self.pack):
            pack = range(start, start + self.pack)
            results = machine.run(self.function, [np.asarray(x[n]) for x in flat for n in pack])
            if [np.asarray(each).dtype for each in results] != wanted:
                raise _refused(
                    "E0206",
                    text="the function returns other types for other elements",
                    hint="cast its results to one type on every way through it",
                    argument="scalar_fn",
                )
            rest = iter(results)
            for tile in made:
                for place in pack:
                    tile[place] = next(rest)
        return tuple(tile.reshape(inputs[0].shape) for tile in made)

    @classmethod
    def cases(cls) -> Iterator[Case]:
        """One input and two, packs, a branch; every type, odd extents."""
        for position, shape in enumerate([(80,), (3, 5), (1,), (48, 2), (2, 3, 4)]):
            for dtype in VALUES if not position else (float32, int8):
                pair = samples.ordinary(dtype, shape), samples.ordinary(dtype, shape, 1)
                yield cls._case("add", pair, 1, functools.partial(add_region, dtype))
                yield cls._case("greater", pair, 1, functools.partial(branch_region, dtype))
                if math.prod(shape) % 2 == 0:
                    swap = functools.partial(swap_region, dtype)
                    yield cls._case("swap", pair[:1], 2, swap)

    @classmethod
    def _case(
        cls, kind: str, inputs: tuple[Sample, ...], pack: int, make: Callable[[], Region]
    ) -> Case:
        attributes = {"pack": pack, "types": (inputs[0].type.scalar,)}
        label = f"{kind} {inputs[0].type}"
        return Case(cls, label, {"inputs": inputs}, attributes, {"function": make})

    @classmethod
    def rejects(cls) -> Iterator[Reject]:
        """Scalars, shapes that don't broadcast, packs that don't fit."""
        x = samples.floats
        add = lambda a, b: a + b  # noqa: E731
        yield Reject("nothing", "E0204", lambda: map_elementwise(add), "args")
        yield Reject("a scalar", "E0204", lambda: map_elementwise(lambda a: a, x()), "args")
        yield Reject("shapes", "E0202", lambda: map_elementwise(add, x(3), x(4)), None)
        yield Reject("a pack", "E0206", lambda: map_elementwise(add, x(3), pack=2), "pack")
        runtime = lambda: map_elementwise(add, x(4), pack=given(int32))  # noqa: E731
        yield Reject("a runtime pack", "E0205", runtime, "pack")
        one = lambda: map_elementwise(lambda a, b: a, x(4), pack=2)  # noqa: E731
        yield Reject("one result of two", "E0206", one, "scalar_fn")
        mixed = lambda: map_elementwise(lambda a, b: (a, a > b), x(4), pack=2)  # noqa: E731
        yield Reject("results of two types in a pack", "E0206", mixed, "scalar_fn")
        for what, function in impure(given(PointerType(float32))).items():
            attempt = functools.partial(map_elementwise, function, x(3))
            yield Reject(f"a function that {what}", "E0206", attempt, "scalar_fn")


def _refused(code: str, **parts: Any) -> TritiumError:
    return error(code, op="map_elementwise", **parts)


def _check_pack(shape: Sequence[int], pack: int) -> None:
    """Raises E0206 where a tile's elements are no whole number of packs."""
    if pack < 1 or math.prod(shape) % pack:
        raise _refused(
            "E0206",
            text=f"{math.prod(shape)} elements are no whole number of packs of {pack}",
            hint="use a pack that divides the number of elements",
            argument="pack",
        )


def _packed(types: Sequence[Type], pack: int) -> tuple[Type, ...]:
    """One type for each ``pack`` of them, which must be equal."""
    firsts = tuple(types[::pack])
    if not types or [each for each in firsts for _ in range(pack)] != [*types]:
        raise _refused(
            "E0206",
            text=f"the function returns {', '.join(map(str, types)) or 'nothing'}",
            hint=f"return {pack} values of one type for each result",
            argument="scalar_fn",
        )
    return firsts


@surface
def map_elementwise(scalar_fn: Any, *args: Any, pack: Any = 1) -> Any:
    """``scalar_fn``, a kernel function of scalars, on each element of the tiles ``args``.

    The tiles are broadcast together. Unlike a tile's operations the function may branch and loop by
    the element's value; it neither accesses memory nor prints or asserts. It returns one value, or
    a tuple of them: the result is a tile, or a tuple of tiles. With ``pack`` it takes that many
    elements of each tile at once, those of the first tile first, and returns as many values of each
    result.

    Raises E0204 for scalars, E0202 for shapes that don't fit, E0206 where ``pack`` doesn't divide
    the number of elements, or for a function that returns something else or does more than compute.
    """
    count = static_int("map_elementwise", pack, "pack")
    tiles = [to_tile(each, "map_elementwise", "args") for each in args]
    if not any(tile.type.shape for tile in tiles):
        got = tiles[0].type if tiles else "nothing"
        raise _refused("E0204", expected="a tile", got=got, hint="", argument="args")
    tiles = [*broadcast_tiles("map_elementwise", *tiles)]
    for tile in tiles:
        if not isinstance(tile.dtype, DType):
            expected = "integers or floats"
            raise _refused("E0204", expected=expected, got=tile.type, hint="", argument="args")
    _check_pack(tiles[0].type.shape, count)
    RULE.check_function(scalar_fn)
    made, types = _function(scalar_fn, tiles, count)
    results = emit(MapElementwise, inputs=tuple(tiles), pack=count, types=types, function=made)
    return TileTuple(results) if isinstance(results, tuple) else results


def _function(
    scalar_fn: Any, tiles: Sequence[Tile], pack: int
) -> tuple[Region | Callable[..., tuple[Any, ...]], tuple[Type, ...]]:
    """The function over scalars, and the element types of its results."""
    returned: list[Type] = []

    def telling(*args: Tile) -> TileTuple:
        parts = [to_tile(part, RULE.function) for part in several(scalar_fn(*args))]
        returned[:] = [part.type for part in parts]
        return TileTuple(parts)

    taken = [tile.dtype for tile in tiles for _ in range(pack)]
    tracer = tracer_of("tl.map_elementwise")
    made = tracer.region(telling, taken, RULE)
    if not tracer.eager or isinstance(made, Region):
        return made, _packed(returned, pack)
    # Which types come out is seen when the first elements are there: they aren't computed again.
    flat = [tile.data.reshape(-1) for tile in tiles]
    first = [made(*(np.asarray(x[place]) for x in flat for place in range(pack)))]

    def function(*arrays: Any) -> tuple[Any, ...]:
        return first.pop() if first else made(*arrays)

    return function, _packed(returned, pack)
