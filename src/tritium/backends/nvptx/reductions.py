"""Reductions: first a thread's own registers, then lanes by butterflies, then warps.

Of two partial results the one of the lower indices is the left operand. Padding takes no part:
where a reduction has a neutral element padding is replaced by it, else a partial result of padding
alone is not combined. That the lower one of two partial results holds an element whenever the upper
one does makes one condition enough for both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tritium.backends.common.rules import register_type
from tritium.backends.emit import V, const, i32, zero
from tritium.ir.core import Op, Region, Value
from tritium.ir.dtypes import DType, Type
from tritium.ir.types import shaped
from tritium.ops import arith, control, logic
from tritium.ops import reduce as reductions

from . import carriers
from .converts import convert, convert_together, shuffle_by_butterfly
from .layouts import (
    LANE,
    REGISTER,
    WARP,
    Blocked,
    LinearLayout,
    shapes,
)
from .layouts.dims import axes
from .positions import constants, reach, thread_bases
from .values import Held

if TYPE_CHECKING:
    from .kernel import Writer

Values = list[V]
"""One value of each input."""

_COMMUTATIVE = (
    *(arith.Add, arith.Mul, arith.Maximum, arith.Minimum),
    *(logic.And, logic.Or, logic.Xor),
)


class Combiner:
    """Combines the values of two groups of elements by a reduction's rule."""

    def __init__(self, writer: Writer, op: Op) -> None:
        self.writer = writer
        self.op = op
        self.scalars = [operand.scalar for operand in op.operands]
        self.template = _template(op)
        self.commutes = self.template is not None or (
            isinstance(op, reductions.Reduce) and _commutes(op.combine)
        )

    def __call__(self, left: Values, right: Values) -> Values:
        writer = self.writer
        if self.template is not None:
            return [writer.apply(self.template, [left[0], right[0]])]
        assert isinstance(self.op, reductions.Reduce)
        return writer.region(self.op.combine, [*left, *right])

    def neutral(self) -> Values | None:
        """What changes nothing it is combined with; None of a user's function."""
        if self.template is None:
            return None
        (scalar,) = self.scalars
        assert isinstance(scalar, DType)
        type_ = register_type(scalar)
        if isinstance(self.op, reductions.Sum):
            return [zero(type_)]
        if not scalar.is_floating():
            smallest, largest = scalar.get_int_min_value, scalar.get_int_max_value
            return [const(type_, (smallest if self._is_max() else largest)())]
        # NaN is dropped for any element.
        pattern = scalar.format.nan_pattern
        assert pattern is not None
        return [const(type_, math.nan if type_.is_float else pattern)]

    def _is_max(self) -> bool:
        return isinstance(self.op, reductions.Max)

    def closed(self, values: Values) -> Values:
        """The result: a sum of floats starts at +0."""
        scalar = self.scalars[0]
        if not isinstance(self.op, reductions.Sum) or not scalar.is_floating():
            return values
        return self([zero(values[0].type)], values)

    def in_one_warp(self) -> str | None:
        """The instruction that reduces 32-bit integers of all lanes at once."""
        scalar = self.scalars[0]
        if self.template is None or not scalar.is_int() or scalar.itemsize > 4:
            return None
        if not self.writer.target.at_least(8):
            return None
        if isinstance(self.op, reductions.Sum):
            return "add"
        name = "max" if self._is_max() else "min"
        return name if scalar.is_int_signed() else f"u{name}"


def _template(op: Op) -> Op | None:
    """The operation on two elements that a reduction with a name of its own repeats."""
    x, y = Value(op.operands[0].scalar), Value(op.operands[0].scalar)
    made: Op
    if isinstance(op, reductions.Sum):
        made = arith.Add(x=x, y=y)
    elif isinstance(op, reductions.Max):
        made = arith.Maximum(x=x, y=y, propagate_nan=False)
    elif isinstance(op, reductions.Min):
        made = arith.Minimum(x=x, y=y, propagate_nan=False)
    else:
        return None
    made.make_results()
    return made


def _commutes(region: Region) -> bool:
    """Whether a region is one operation that doesn't care for the order of its operands."""
    if len(region.args) != 2 or len(region.block.ops) != 2:
        return False
    first, end = region.block.ops
    return (
        isinstance(first, _COMMUTATIVE)
        and set(first.operands) == set(region.args)
        and isinstance(end, control.Yield)
        and tuple(end.values) == (first.result,)
    )


@dataclass(frozen=True)
class Part:
    """The combined values of some elements; ``holds`` (None: always) where there is one at all."""

    values: Values
    holds: V | None = None


Partials = list[Part | None]
"""For each register of the result what a thread has of it so far, None where it has nothing."""


class Fold:
    """A reduction in steps: the tiles of successive trips, then lanes and warps.

    ``layout`` is that of the operand of one trip, ``types`` those of the inputs. ``step`` takes
    the partial results so far, of lower indices, and one trip's tiles; ``finish`` gives the
    results, in ``layout`` without the axis.
    """

    def __init__(self, writer: Writer, op: Op, types: Sequence[Type], layout: LinearLayout) -> None:
        self.writer = writer
        self.axis: int = op.attributes["axis"]
        self.types = list(types)
        self.layout = layout
        self.result = shapes.slice_axis(layout, self.axis)
        self.combine = Combiner(writer, op)
        self.groups = _groups(layout, self.axis, self.result)

    def start(self) -> Partials | None:
        """What partial results may begin with, to be carried by a loop; None of a user's
        function, whose first step has to be written before the loop."""
        neutral = self.combine.neutral()
        return None if neutral is None else [Part(neutral) for _ in self.groups]

    def step(
        self,
        partials: Partials | None,
        tiles: Sequence[Held],
        inside: Sequence[V | None] | None = None,
    ) -> Partials:
        """Take in one trip's tiles, one for each input.

        ``inside`` says of each register whether it is an element (None: always), where that isn't
        what ``types`` and ``layout`` say.
        """
        made: Partials = []
        for number, group in enumerate(self.groups):
            parts = [self._element(tiles, register, inside) for register in group]
            part = self._tree([each for each in parts if each is not None])
            before = None if partials is None else partials[number]
            made.append(part if before is None else self._merged(before, part))
        return made

    def finish(self, partials: Partials) -> list[Held | V]:
        """The results, of every input."""
        partials = self._across_lanes(partials)
        partials = self._across_warps(partials)
        closed = [None if part is None else self.combine.closed(part.values) for part in partials]
        shape = self.types[0].shape
        rest = (*shape[: self.axis], *shape[self.axis + 1 :])
        results: list[Held | V] = []
        for number, type in enumerate(self.types):
            registers = tuple(None if each is None else each[number] for each in closed)
            if rest:
                results.append(Held(shaped(type.scalar, rest), self.result, registers))
            else:
                (single,) = registers
                assert single is not None
                results.append(single)
        return results

    # Registers.

    def _element(
        self, tiles: Sequence[Held], register: int, inside: Sequence[V | None] | None
    ) -> Part | None:
        values: Values = []
        for tile in tiles:
            value = tile.registers[register]
            if value is None:
                return None
            values.append(value)
        if inside is not None:
            holds = inside[register]
        else:
            holds = self.writer.inside(self.types[0], self.layout, register)
        neutral = None if holds is None else self.combine.neutral()
        if holds is None or neutral is None:
            return Part(values, holds)
        b = self.writer.b
        return Part([b.select(holds, v, n) for v, n in zip(values, neutral, strict=True)])

    def _tree(self, parts: Sequence[Part]) -> Part | None:
        """Parts in order of their indices as one: neighbours first, so that chains are short."""
        level = list(parts)
        while len(level) > 1:
            pairs = zip(level[::2], level[1::2])
            rest = level[-1:] if len(level) % 2 else []
            level = [self._both(left, right) for left, right in pairs] + rest
        return level[0] if level else None

    def _merged(self, left: Part | None, right: Part | None) -> Part | None:
        if left is None or right is None:
            return right if left is None else left
        return self._both(left, right)

    def _both(self, left: Part, right: Part) -> Part:
        made = self.combine(left.values, right.values)
        if right.holds is not None:
            b = self.writer.b
            pairs = zip(made, left.values, strict=True)
            made = [b.select(right.holds, new, old) for new, old in pairs]
        return Part(made, left.holds)

    # Lanes.

    def _across_lanes(self, partials: Partials) -> Partials:
        steps = self._bits(LANE)
        whole = self.combine.in_one_warp()
        if whole is not None and len(steps) == 5:
            return [self._in_one_warp(whole, part) for part in partials]
        for bit, basis in steps:
            holds = self._upper_holds(basis)
            partials = [
                None if part is None else Part(self._butterfly(part.values, bit, holds))
                for part in partials
            ]
        return partials

    def _bits(self, name: str) -> list[tuple[int, int]]:
        """The bits of lanes or warps along the axis: number and distance, the nearest first."""
        column = [self.layout.unpack(basis)[self.axis] for basis in self.layout.bases(name)]
        return sorted(
            ((bit, basis) for bit, basis in enumerate(column) if basis), key=lambda pair: pair[1]
        )

    def _upper_holds(self, basis: int) -> V | None:
        """Whether the upper one of the partial results that differ in a bit of the coordinate
        holds an element; None where it always does."""
        if self.combine.neutral() is not None:
            return None
        extent = self.types[0].shape[self.axis]
        bases = thread_bases(self.layout)[self.axis]
        # Registers and nearer lanes are combined: of them the lowest coordinate counts.
        lanes = len(self.layout.bases(LANE))
        apart = [each if each > basis or bit >= lanes else 0 for bit, each in enumerate(bases)]
        if reach(tuple(apart)) | basis < extent:
            return None
        b = self.writer.b
        lowest = b.or_(self.writer.positions.part(tuple(apart)), const(i32, basis))
        return b.icmp("ult", lowest, const(i32, extent))

    def _butterfly(self, values: Values, bit: int, holds: V | None) -> Values:
        writer, b = self.writer, self.writer.b
        others = [exchanged(writer, value, 1 << bit) for value in values]
        left, right = values, others
        if holds is not None or not self.combine.commutes:
            mask = const(i32, 1 << bit)
            upper = b.icmp("ne", b.and_(writer.threads.thread, mask), zero(i32))
            pairs = list(zip(values, others, strict=True))
            left = [b.select(upper, other, mine) for mine, other in pairs]
            right = [b.select(upper, mine, other) for mine, other in pairs]
        made = self.combine(left, right)
        if holds is None:
            return made
        return [b.select(holds, new, old) for new, old in zip(made, left, strict=True)]

    def _in_one_warp(self, name: str, part: Part | None) -> Part | None:
        if part is None:
            return None
        b, (value,) = self.writer.b, part.values
        wide = b.int_cast(value, i32, signed=self.combine.scalars[0].is_int_signed())
        made = b.intrinsic(f"nvvm.redux.sync.{name}", (wide, const(i32, -1)), i32, ())
        return Part([b.int_cast(made, value.type, signed=False)])

    # Warps.

    def _across_warps(self, partials: Partials) -> Partials:
        """Every thread gets the partial results of all warps along the axis, and combines them.

        They are a tile with one more axis, which is held by warps, and then by registers.
        """
        bits = self._bits(WARP)
        if not bits:
            return partials
        spread, gathered = _layouts_over_warps(self.result, [bit for bit, _ in bits])
        shape = self.types[0].shape
        rest = (*shape[: self.axis], *shape[self.axis + 1 :])
        tiles = [
            Held(
                shaped(type.scalar, (1 << len(bits), *rest)),
                spread,
                tuple(None if part is None else part.values[number] for part in partials),
            )
            for number, type in enumerate(self.types)
        ]
        moved = convert_together(self.writer, tiles, gathered)
        count = 1 << len(bits)
        made: Partials = []
        for register in range(len(partials)):
            parts = []
            for warp in range(count):
                values = [tile.registers[register * count + warp] for tile in moved]
                present = [value for value in values if value is not None]
                if len(present) == len(values) and self._warp_holds(bits, warp):
                    parts.append(Part(present))
            made.append(self._tree(parts))
        return made

    def _warp_holds(self, bits: Sequence[tuple[int, int]], warp: int) -> bool:
        """Whether a warp has any element along the axis."""
        lowest = sum(basis for place, (_, basis) in enumerate(bits) if warp >> place & 1)
        return lowest < self.types[0].shape[self.axis]


def exchanged(writer: Writer, value: V, distance: int) -> V:
    """A value of the lane whose number differs in those bits."""
    words = carriers.pack(writer.b, [value], value.type)
    moved = [shuffle_by_butterfly(writer, word, distance) for word in words]
    return carriers.unpack(writer.b, moved, 1, value.type)[0]


def _groups(layout: LinearLayout, number: int, result: LinearLayout) -> tuple[tuple[int, ...], ...]:
    """For each register of the result those of the operand, in order of their indices."""
    places = {image: place for place, image in enumerate(result.images(REGISTER))}
    groups: list[list[tuple[int, int]]] = [[] for _ in places]
    for register, coordinates in enumerate(constants(layout)):
        rest = result.pack((*coordinates[:number], *coordinates[number + 1 :]))
        groups[places[rest]].append((coordinates[number], register))
    return tuple(tuple(register for _, register in sorted(group)) for group in groups)


def _layouts_over_warps(
    result: LinearLayout, bits: Sequence[int]
) -> tuple[LinearLayout, LinearLayout]:
    """Layouts of a result with an axis before it for the warps that have a part of it.

    In the first that axis is those bits of the warp, in the second the lowest registers. The axis
    being the first, the others' bases stay as they are.
    """
    outputs = axes((1 << len(bits), *result.shape))
    above = result.total_output_bits
    warps = list(result.bases(WARP))
    for place, bit in enumerate(bits):
        warps[bit] = 1 << (above + place)
    spread = LinearLayout(result.inputs, outputs).with_bases(WARP, warps)
    low = [1 << (above + place) for place in range(len(bits))]
    gathered = LinearLayout(result.inputs, outputs).with_bases(
        REGISTER, [*low, *result.bases(REGISTER)]
    )
    return spread, gathered


def _is_plain(layout: LinearLayout) -> bool:
    """Whether each bit of a place is one bit of one coordinate, or none."""
    return all(basis & (basis - 1) == 0 for basis in layout.columns)


def reduce(writer: Writer, op: Op, operands: Sequence[Held]) -> list[Held | V]:
    """The results of a reduction: tiles in the operands' layout without the axis, or scalars."""
    layout = operands[0].layout
    types = [operand.type for operand in operands]
    if _is_plain(layout):
        fold = Fold(writer, op, types, layout)
        return fold.finish(fold.step(None, operands))
    order = tuple(range(len(layout.shape)))[::-1]
    plain = Blocked.covering(layout.shape, order, 1, writer.num_warps).layout(layout.shape)
    fold = Fold(writer, op, types, plain)
    results = fold.finish(fold.step(None, convert_together(writer, operands, plain)))
    wanted = shapes.slice_axis(layout, op.attributes["axis"])
    return [convert(writer, r, wanted) if isinstance(r, Held) else r for r in results]
