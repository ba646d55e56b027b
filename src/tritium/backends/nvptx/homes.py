"""In which layout each tile is made, and in which others it is wanted.

One walk forward finds homes, one walk over what demands layouts finds conversions. Nothing is
searched for: ``design/0005-nvptx.md`` has the rules.
"""

from __future__ import annotations

from collections.abc import Sequence

from tritium.ir.core import Block, Function, Op, Value
from tritium.ops import (
    arith,
    cast,
    compare,
    control,
    create,
    dot,
    hints,
    logic,
    memory,
    reduce,
    select,
)
from tritium.ops.shape import Broadcast
from tritium.passes.facts import Facts

from .chunks import is_plain
from .coalesce import Access, AccessOp, accesses, default_layout
from .dots import dot_home
from .layouts import LinearLayout, in_trips, shapes
from .layouts.trips import split, whole
from .rearrange import REARRANGE, in_result_layout
from .sources import MOVES, is_free, result_layout, source_of

_CHEAP = (
    *(create.Splat, create.Arange, memory.Offset, select.Where, cast.Convert, cast.Bitcast),
    hints.Promise,
    *(arith.Add, arith.Sub, arith.Mul, arith.Neg, arith.Abs, arith.Maximum, arith.Minimum),
    *(arith.Idiv, logic.And, logic.Or, logic.Xor, logic.Not, logic.Shl, logic.Shr),
    *(compare.Eq, compare.Ne, compare.Lt, compare.Le, compare.Gt, compare.Ge),
)
"""What is written again in each layout in which somebody wants it, where it has no home."""

Reduction = (reduce.Sum, reduce.Max, reduce.Min, reduce.Reduce)


TRIP_REGISTERS = 32
"""Elements of a thread in one trip."""


def most_registers(num_warps: int) -> int:
    """Elements of a thread in a tile that is worked on at once: what half of the registers hold
    if there are 16 or 32 warps."""
    return min(128, 1024 // num_warps)


class Homes:
    """The table of layouts of a function.

    ``home`` has each tile that is held in registers from where it is made, ``wanted`` the other
    layouts it is converted to there. Tiles in neither are computed where they are used.
    ``operands`` has the layout in which a reduction, or an operation that moves elements between
    threads, takes its operands. ``indexed`` has the layouts in which operations that are written in
    trips read a tile.
    """

    def __init__(self, function: Function, num_warps: int) -> None:
        self.num_warps = num_warps
        self.facts = Facts(function)
        self._fill(function, in_parts=True)
        if self.beyond or not all(map(self._in_parts, function.walk())):
            self._fill(function, in_parts=False)

    def _fill(self, function: Function, in_parts: bool) -> None:
        self._most = most_registers(self.num_warps) if in_parts else 1 << 62
        self.accesses: dict[AccessOp, Access] = accesses(
            function, self.facts, self.num_warps, self.shaped
        )
        self.indexed: dict[Value, dict[LinearLayout, None]] = {}
        self.beyond = False
        """Whether a tile that is worked on in trips is wanted in a way that isn't."""
        self.home: dict[Value, LinearLayout] = {}
        self.wanted: dict[Value, list[LinearLayout]] = {}
        self.operands: dict[Op, LinearLayout] = {}
        self._open: dict[Value, None] = {}
        """Held tiles whose home is what their first user demands."""
        self._of_shape: dict[tuple[int, ...], LinearLayout] = {}
        for op, access in self.accesses.items():
            self._of_shape.setdefault(op.pointer.shape, access.layout)
        self._forward(function.body.block)
        _Demands(self).run(function)

    def shaped(self, layout: LinearLayout) -> LinearLayout:
        """A layout as operations are written in it: in trips where it is large."""
        return split(layout, self._most, TRIP_REGISTERS)

    def _in_parts(self, op: Op) -> bool:
        """Whether an operation can be written, of which a tile may be worked on in trips."""
        if isinstance(op, (memory.Load, memory.Store)):
            large = op in self.accesses and in_trips(self.accesses[op].layout)
            return not (large and isinstance(op, memory.Load) and op.is_fresh)
        moves = isinstance(op, MOVES) and (op in self.operands or not op.result.shape)
        if not (moves or isinstance(op, (dot.Dot, *REARRANGE))):
            return True
        tiles = [x for x in (*op.operands, *op.results) if x.shape]
        return not any(in_trips(self.home.get(x) or self.usual(x.shape)) for x in tiles)

    def is_held(self, value: Value) -> bool:
        """Whether a tile is in registers from where it is made on."""
        return value in self.home or value in self._open

    def usual(self, shape: tuple[int, ...]) -> LinearLayout:
        """The layout of tiles of a shape that nothing else speaks for."""
        known = self._of_shape.get(shape)
        if known is None:
            known = self._of_shape[shape] = self.shaped(default_layout(shape, self.num_warps))
        return known

    def settle(self, value: Value, layout: LinearLayout) -> None:
        """Give a tile without a home one."""
        del self._open[value]
        self.home[value] = layout

    # Forward.

    def _forward(self, block: Block) -> None:
        for op in block.ops:
            if isinstance(op, (control.For, control.While)):
                self._loop(op)
            elif isinstance(op, control.If):
                for inner in (op.then, op.otherwise):
                    self._forward(inner.block)
                for number, result in enumerate(op.results):
                    ends = [yields_of(inner.block)[number] for inner in (op.then, op.otherwise)]
                    self._set(result, next(filter(None, map(self.home.get, ends)), None))
            else:
                self._plain(op)

    def _set(self, value: Value, layout: LinearLayout | None) -> None:
        """A tile is held: in a layout, or in one that is still to be found."""
        if not value.shape:
            return
        if layout is None:
            self._open[value] = None
        else:
            self._open.pop(value, None)
            self.home[value] = layout

    def _loop(self, op: control.For | control.While) -> None:
        skipped = 1 if isinstance(op, control.For) else 0
        args = op.body.args[skipped:]
        regions = [op.body] if isinstance(op, control.For) else [op.condition, op.body]
        homes = [self.home.get(value) for value in op.init]
        for again in (False, True):
            for number, layout in enumerate(homes):
                for region in regions:
                    start = skipped if region is op.body else 0
                    self._set(region.args[start + number], layout)
            for region in regions:
                self._forward(region.block)
            found = [
                known or self.home.get(value)
                for known, value in zip(homes, yields_of(op.body.block), strict=True)
            ]
            if again or found == homes:
                break
            homes = found
        for result, argument in zip(op.results, args, strict=True):
            self._set(result, self.home.get(argument))

    def _plain(self, op: Op) -> None:
        if isinstance(op, memory.Load) and op.pointer.shape:
            self._set(op.result, self.accesses[op].layout)
        elif isinstance(op, dot.Dot):
            self._set(op.result, dot_home(op, self.num_warps))
        elif isinstance(op, Reduction):
            self._reduction(op)
        elif isinstance(op, MOVES):
            self._move(op)
        elif isinstance(op, REARRANGE):
            self._set(op.result, self.usual(op.result.shape))
        elif len(op.results) == 1 and op.result.shape:
            self._pointwise(op)

    def _reduction(self, op: Op) -> None:
        inputs = op.operands
        axis: int = op.attributes["axis"]
        layout = next(filter(None, map(self.home.get, inputs)), None)
        if layout is None:
            layout = self.usual(inputs[0].shape)
        self.operands[op] = layout
        for result in op.results:
            self._set(result, self.shaped(whole(shapes.slice_axis(layout, axis))[0]))

    def _move(self, op: Op) -> None:
        (operand,), (result,) = op.operands, op.results
        if not result.shape or not operand.shape:
            return
        if not is_free(op):
            self.operands[op] = self.home.get(operand) or self.usual(operand.shape)
            self._set(result, None)
        elif operand in self.home and not isinstance(op, Broadcast):
            self._set(result, result_layout(op, self.home[operand]))

    def _pointwise(self, op: Op) -> None:
        shape = op.result.shape
        homes = (self.home.get(x) for x in op.operands if x.shape == shape)
        layout = next(filter(None, homes), None)
        if layout is not None or not isinstance(op, _CHEAP):
            self._set(op.result, layout)


def yields_of(block: Block) -> tuple[Value, ...]:
    """What a region's block yields."""
    end = block.terminator
    return end.values if isinstance(end, control.Yield) else ()


class _Demands:
    """Finds every layout in which a held tile is wanted, from those who want one."""

    def __init__(self, homes: Homes) -> None:
        self.homes = homes
        self.seen: set[tuple[Value, LinearLayout]] = set()
        self.pending: list[tuple[Value, LinearLayout]] = []

    def run(self, function: Function) -> None:
        """Fill ``homes.wanted`` and the homes that were left to the first user."""
        ops = list(function.walk())
        for op in ops:
            self._demands_of(op)
            self._drain()
        for op in ops:
            for value in (*op.results, *(arg for region in op.regions for arg in region.args)):
                if value in self.homes._open:
                    self.want(value, self.homes.usual(value.shape))
                    self._drain()

    def want(self, value: Value, layout: LinearLayout) -> None:
        """Somebody reads a tile in a layout."""
        if value.shape and (value, layout) not in self.seen:
            self.seen.add((value, layout))
            self.pending.append((value, layout))

    def _drain(self) -> None:
        homes = self.homes
        while self.pending:
            value, layout = self.pending.pop()
            if value in homes._open:
                homes.settle(value, layout)
                self._settled(value)
            home = homes.home.get(value)
            if home is None or (layout != home and self._widens(value)):
                self._through(value, layout)
            elif in_trips(layout) or in_trips(home):
                self._indexed(value, home, layout)
            elif layout != home:
                homes.wanted.setdefault(value, []).append(layout)

    def _indexed(self, value: Value, home: LinearLayout, layout: LinearLayout) -> None:
        """A tile is read by trips, or is made in trips."""
        homes = self.homes
        all_trips, own = whole(layout)[0], whole(home)[0]
        if all_trips != own:
            wanted = homes.wanted.setdefault(value, [])
            homes.beyond |= in_trips(home) and not (is_plain(own) and is_plain(all_trips))
            if all_trips not in wanted:
                wanted.append(all_trips)
        elif not in_trips(layout):
            homes.beyond = True
        if in_trips(layout):
            homes.indexed.setdefault(value, {})[all_trips] = None

    def _widens(self, value: Value) -> bool:
        """Whether a tile is a cast of a held one of narrower elements: those are converted."""
        op = value.defining_op
        if not isinstance(op, cast.Convert) or op.x not in self.homes.home:
            return False
        return op.x.scalar.primitive_bitwidth < value.scalar.primitive_bitwidth

    def _through(self, value: Value, layout: LinearLayout) -> None:
        """A tile that is computed where it is used wants its operands there."""
        op = value.defining_op
        assert op is not None
        if isinstance(op, MOVES):
            if op.x.shape:
                self.want(op.x, source_of(op, layout).layout)
            return
        for operand in op.operands:
            self.want(operand, layout)

    def _settled(self, value: Value) -> None:
        """What has a home now wants what it is made of there."""
        if isinstance(value.owner, Op):
            self._demands_of(value.owner)
        else:
            assert isinstance(value.owner, Block)
            owner = value.owner.parent_op
            assert owner is not None
            self._demands_of(owner)

    def _demands_of(self, op: Op) -> None:
        homes = self.homes
        if isinstance(op, (memory.Load, memory.Store)):
            if op.pointer.shape:
                for operand in op.operands:
                    self.want(operand, homes.accesses[op].layout)
        elif isinstance(op, control.For):
            self._carried(op.init, op.body.args[1:], yields_of(op.body.block), op.results)
        elif isinstance(op, control.While):
            ends = yields_of(op.body.block)
            self._carried(op.init, op.body.args, ends, op.results)
            for argument, inner in zip(op.body.args, op.condition.args, strict=True):
                self._agree(argument, inner)
        elif isinstance(op, control.If):
            for number, result in enumerate(op.results):
                for side in (op.then, op.otherwise):
                    self._follow(yields_of(side.block)[number], result)
        elif isinstance(op, dot.Dot):
            self._dot(op)
        elif op in homes.operands:
            for operand in op.operands:
                self.want(operand, homes.operands[op])
        elif isinstance(op, MOVES):
            self._moved(op)
        elif isinstance(op, REARRANGE):
            self._rearranged(op)
        elif len(op.results) == 1 and op.result in homes.home:
            for operand in op.operands:
                self.want(operand, homes.home[op.result])

    def _dot(self, op: dot.Dot) -> None:
        for operand in (op.a, op.b):
            self.want(operand, self.homes.home.get(operand) or self.homes.usual(operand.shape))
        if op.acc is not None:
            self.want(op.acc, self.homes.home[op.result])

    def _rearranged(self, op: Op) -> None:
        homes = self.homes
        for operand in op.operands:
            if operand in in_result_layout(op):
                self.want(operand, homes.home[op.result])
            else:
                self.want(operand, homes.home.get(operand) or homes.usual(operand.shape))

    def _moved(self, op: Op) -> None:
        (operand,), (result,) = op.operands, op.results
        if not result.shape and operand.shape:
            # A tile of one element as a scalar: every thread has it in every layout.
            self.want(operand, self.homes.home.get(operand) or self.homes.usual(operand.shape))
        elif operand.shape and result in self.homes.home:
            self.want(operand, source_of(op, self.homes.home[result]).layout)

    # Control flow.

    def _carried(
        self,
        init: Sequence[Value],
        arguments: Sequence[Value],
        yielded: Sequence[Value],
        results: Sequence[Value],
    ) -> None:
        for start, argument, end, result in zip(init, arguments, yielded, results, strict=True):
            self._agree(argument, result)
            self._follow(start, argument)
            self._follow(end, argument)

    def _agree(self, left: Value, right: Value) -> None:
        """Two names of one carried tile have one home: that of the one that has it first."""
        known = self.homes.home.get(left) or self.homes.home.get(right)
        if known is not None and left.shape:
            self.want(left, known)
            self.want(right, known)

    def _follow(self, source: Value, target: Value) -> None:
        """``target`` is made of ``source``, so it is wanted where that has its home."""
        layout = self.homes.home.get(target)
        if layout is not None:
            self.want(source, layout)
