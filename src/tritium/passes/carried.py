"""Carried tiles that only move by scalars become carried scalars.

A loop that carries a tile of pointers or integers and hands on that tile plus steps that are equal
in every element (chains of ``memory.offset``, ``arith.add`` and ``arith.sub`` with splats; a step
may differ from one iteration to the next) carries the sum of the steps instead: in elements as
int64 for pointers, also for a single pointer, else in the tile's own type. The tile is the initial
tile moved by that sum, so its pattern is known inside of the loop and after it. This is exact:
addresses and integers are computed modulo a power of two.

A carried value that never changes is read from outside of the loop instead.

Before::

    func @f(%p: *fp32, %n: i32, %stride: i32, %c: i32) ({
      %zero = create.constant {value = 0, dtype = i32} : i32
      %one = create.constant {value = 1, dtype = i32} : i32
      %ps = create.splat %p {shape = (8,)} : tile<8x*fp32>
      %offsets = create.arange {start = 0, end = 8} : tile<8xi32>
      %start = memory.offset %ps, %offsets : tile<8x*fp32>
      %r:2 = control.for %zero, %n, %one, [%start, %c] ({ ^(%i: i32, %at: tile<8x*fp32>, %d: i32):
        %x = memory.load %at, _, _ : tile<8xfp32>
        memory.store %at, %x, _
        %step = create.splat %stride {shape = (8,)} : tile<8xi32>
        %next = memory.offset %at, %step : tile<8x*fp32>
        control.yield [%next, %d]
      }) : (tile<8x*fp32>, i32)
      %y = memory.load %r#0, _, _ : tile<8xfp32>
      memory.store %r#0, %y, _
      control.return
    })

After::

    func @f(%p: *fp32, %n: i32, %stride: i32, %c: i32) ({
      %zero = create.constant {value = 0, dtype = i32} : i32
      %one = create.constant {value = 1, dtype = i32} : i32
      %ps = create.splat %p {shape = (8,)} : tile<8x*fp32>
      %offsets = create.arange {start = 0, end = 8} : tile<8xi32>
      %start = memory.offset %ps, %offsets : tile<8x*fp32>
      %0 = create.constant {value = 0, dtype = i64} : i64
      %r = control.for %zero, %n, %one, [%0] ({ ^(%i: i32, %at_moved: i64):
        %1 = create.splat %at_moved {shape = (8,)} : tile<8xi64>
        %at = memory.offset %start, %1 : tile<8x*fp32>
        %x = memory.load %at, _, _ : tile<8xfp32>
        memory.store %at, %x, _
        %step = create.splat %stride {shape = (8,)} : tile<8xi32>
        %next = memory.offset %at, %step : tile<8x*fp32>
        %2 = cast.convert %stride {dtype = i64} : i64
        %3 = arith.add %at_moved, %2 : i64
        control.yield [%3]
      }) : i64
      %4 = create.splat %r {shape = (8,)} : tile<8xi64>
      %r_1 = memory.offset %start, %4 : tile<8x*fp32>
      %y = memory.load %r_1, _, _ : tile<8xfp32>
      memory.store %r_1, %y, _
      control.return
    })
"""

from __future__ import annotations

from dataclasses import dataclass

from tritium.diagnostics import Loc
from tritium.ir import Block, Function, Op, Region, Type, Value
from tritium.ir.dtypes import int64
from tritium.ops.arith import Add, Sub
from tritium.ops.cast import Convert
from tritium.ops.control import For, While
from tritium.ops.create import Splat
from tritium.ops.memory import Offset

from .pipeline import NoOptions, register_pass
from .structure import (
    Loop,
    carried_args,
    constant_ops,
    create,
    keep_results,
    next_values,
    regions_of,
    set_ops,
    splatted,
)


@register_pass("carried")
def carried(function: Function, options: NoOptions) -> bool:
    """Carry scalars in place of tiles that move uniformly; returns whether there were any."""
    return _block(function.body.block)


def _block(block: Block) -> bool:
    changed = False
    kept: list[Op] = []
    for op in block.ops:
        # Inner loops first: what they moved is then a step of the outer one.
        for region in op.regions:
            changed |= _block(region.block)
        if not isinstance(op, (For, While)):
            kept.append(op)
            continue
        changed |= _drop_unchanged(op)
        new = _Rewrite(op)
        for index in range(len(op.init)):
            steps = _steps(op, index)
            if steps is not None:
                changed = True
                new.value(index, steps)
        new.finish()
        kept += [*new.before, op, *new.after]
    set_ops(block, kept)
    return changed


def _drop_unchanged(loop: Loop) -> bool:
    """Take out of a loop the carried values that it hands on as they are."""
    body_args = carried_args(loop, loop.body)
    keep = []
    for index, (start, value) in enumerate(zip(loop.init, next_values(loop))):
        keep.append(value is not body_args[index] and value is not start)
        if not keep[-1]:
            for region in regions_of(loop):
                carried_args(loop, region)[index].replace_all_uses_with(start)
            loop.results[index].replace_all_uses_with(start)
    keep_results(loop, keep)
    return not all(keep)


@dataclass(frozen=True)
class _Step:
    """A scalar by which a tile moves, forward or back."""

    scalar: Value
    back: bool
    loc: Loc | None


def _steps(loop: Loop, index: int) -> list[_Step] | None:
    """The steps of a carried tile from one iteration to the next; None where it isn't such."""
    argument = carried_args(loop, loop.body)[index]
    type = argument.type
    if not (type.scalar.is_ptr() or (type.shape and type.scalar.is_int())):
        return None
    steps: list[_Step] = []
    value = next_values(loop)[index]
    while value is not argument:
        found = _last_step(value)
        if found is None:
            return None
        value, step = found
        steps.append(step)
    return steps[::-1]


def _last_step(value: Value) -> tuple[Value, _Step] | None:
    """What a value was before its last step, and that step.

    Of a sum of two splats either may be the step; the left one is taken for the tile.
    """
    maker = value.defining_op
    if isinstance(maker, Offset):
        return _step(maker.pointer, maker.offset, False, maker.loc)
    if isinstance(maker, Sub):
        return _step(maker.x, maker.y, True, maker.loc)
    if isinstance(maker, Add):
        right = _step(maker.x, maker.y, False, maker.loc)
        return right if right is not None else _step(maker.y, maker.x, False, maker.loc)
    return None


def _step(tile: Value, by: Value, back: bool, loc: Loc | None) -> tuple[Value, _Step] | None:
    scalar = splatted(by)
    return None if scalar is None else (tile, _Step(scalar, back, loc))


class _Rewrite:
    """Carries sums of steps in a loop; ``before`` and ``after`` are what comes around it."""

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self.before: list[Op] = []
        self.after: list[Op] = []
        self._first: dict[Region, list[Op]] = {region: [] for region in regions_of(loop)}
        self._last: list[Op] = []
        self._sums: dict[int, tuple[Value, Value]] = {}

    def value(self, index: int, steps: list[_Step]) -> None:
        """Carry the sum of the steps in place of one tile."""
        loop = self.loop
        start, result = loop.init[index], loop.results[index]
        counted = int64 if start.scalar.is_ptr() else start.scalar
        self.before += constant_ops(0, counted, loop.loc)
        for region, first in self._first.items():
            place = len(region.args) - len(loop.init) + index
            argument = region.args[place]
            moved = Value(counted, region.block, f"{argument.name}_moved" * bool(argument.name))
            region.args[place] = moved
            self._replace(argument, start, moved, first)
        self._sums[index] = self.before[-1].result, self._total(index, steps, counted)
        loop.results[index] = Value(counted, loop, result.name)
        self._replace(result, start, loop.results[index], self.after)

    def _replace(self, old: Value, start: Value, moved: Value, into: list[Op]) -> None:
        """Let the readers of a carried tile, if any, read the initial one and what it moved by."""
        if old.uses:
            into += _moved_tile(start, moved, self.loop.loc)
            into[-1].result.name = old.name
            old.replace_all_uses_with(into[-1].result)

    def _total(self, index: int, steps: list[_Step], counted: Type) -> Value:
        """The sum so far plus the steps, in their order: what the body is to yield."""
        total = carried_args(self.loop, self.loop.body)[index]
        for step in steps:
            scalar = step.scalar
            if scalar.type is not counted:
                self._last.append(create(Convert, loc=step.loc, x=scalar, dtype=counted))
                scalar = self._last[-1].result
            cls = Sub if step.back else Add
            self._last.append(create(cls, loc=step.loc, x=total, y=scalar))
            total = self._last[-1].result
        return total

    def finish(self) -> None:
        """Put everything into its place."""
        if not self._sums:
            return
        end = self.loop.body.ops[-1]
        init, following = list(self.loop.init), list(end.operands)
        for index, (zero, total) in self._sums.items():
            init[index], following[index] = zero, total
        self.loop.set_group("init", init)
        end.set_group("values", following)
        set_ops(self.loop.body.block, [*self.loop.body.ops[:-1], *self._last, end])
        for region, first in self._first.items():
            set_ops(region.block, first + region.ops)


def _moved_tile(start: Value, moved: Value, loc: Loc | None) -> list[Op]:
    """``start`` moved by the scalar ``moved`` in every element."""
    made: list[Op] = []
    by = moved
    if start.shape:
        made.append(create(Splat, loc=loc, x=moved, shape=start.shape))
        by = made[-1].result
    if start.scalar.is_ptr():
        made.append(create(Offset, loc=loc, pointer=start, offset=by))
    else:
        made.append(create(Add, loc=loc, x=start, y=by))
    return made
