"""Loop-invariant code: cheap operations that give the same in every iteration move out of loops.

Moved are pure operations on scalars, and those that make tiles of scalars and positions alone
(``create.splat`` and ``create.arange``, and what is computed from these element by element): they
take no memory, so a long life costs nothing. An operation moves as far out as it can; what stands
under a branch inside of the loop stays.

Before::

    func @f(%p: *i32, %n: i32) ({
      %zero = create.constant {value = 0, dtype = i32} : i32
      %one = create.constant {value = 1, dtype = i32} : i32
      control.for %zero, %n, %one, [] ({ ^(%i: i32):
        %twice = arith.mul %n, %n : i32
        %ps = create.splat %p {shape = (8,)} : tile<8x*i32>
        %offsets = create.arange {start = 0, end = 8} : tile<8xi32>
        %at = memory.offset %ps, %offsets : tile<8x*i32>
        %sum = arith.add %twice, %i : i32
        %values = create.splat %sum {shape = (8,)} : tile<8xi32>
        memory.store %at, %values, _
        control.yield []
      })
      control.return
    })

After::

    func @f(%p: *i32, %n: i32) ({
      %zero = create.constant {value = 0, dtype = i32} : i32
      %one = create.constant {value = 1, dtype = i32} : i32
      %twice = arith.mul %n, %n : i32
      %ps = create.splat %p {shape = (8,)} : tile<8x*i32>
      %offsets = create.arange {start = 0, end = 8} : tile<8xi32>
      %at = memory.offset %ps, %offsets : tile<8x*i32>
      control.for %zero, %n, %one, [] ({ ^(%i: i32):
        %sum = arith.add %twice, %i : i32
        %values = create.splat %sum {shape = (8,)} : tile<8xi32>
        memory.store %at, %values, _
        control.yield []
      })
      control.return
    })
"""

from __future__ import annotations

from tritium.ir import PURE, Block, Function, Op, Value
from tritium.ops.cast import Bitcast, Convert
from tritium.ops.control import For, While
from tritium.ops.create import Arange, Splat
from tritium.ops.elementwise import Elementwise
from tritium.ops.hints import Promise
from tritium.ops.memory import Offset
from tritium.ops.select import Where
from tritium.ops.shape import Broadcast, ExpandDims, Trans

from .pipeline import NoOptions, register_pass
from .structure import regions_of, set_ops

_POINTWISE = (
    *(Splat, Arange, Broadcast, ExpandDims, Trans),
    *(Elementwise, Where, Convert, Bitcast, Offset, Promise),
)


@register_pass("hoist")
def hoist(function: Function, options: NoOptions) -> bool:
    """Move invariant operations out of loops; returns whether any moved."""
    return _Hoist().block(function.body.block)


class _Hoist:
    def __init__(self) -> None:
        self._cheap: dict[Value, bool] = {}

    def block(self, block: Block) -> bool:
        """Move operations out of the loops of a block, inner loops first."""
        changed = False
        kept: list[Op] = []
        for op in block.ops:
            for region in op.regions:
                changed |= self.block(region.block)
            if isinstance(op, (For, While)):
                for region in regions_of(op):
                    moved = self._invariant(region.block)
                    kept += moved
                    changed |= bool(moved)
            kept.append(op)
        set_ops(block, kept)
        return changed

    def _invariant(self, body: Block) -> list[Op]:
        """Take out of a loop's body what can stand before the loop."""
        varying = set(body.args)
        moved: list[Op] = []
        kept: list[Op] = []
        for op in body.ops:
            if varying.isdisjoint(op.operands) and self._moves(op):
                moved.append(op)
            else:
                kept.append(op)
                varying.update(op.results)
        if moved:
            set_ops(body, kept)
        return moved

    def _moves(self, op: Op) -> bool:
        pure = op.effects is PURE and not op.terminator and not op.regions
        return pure and all(map(self._is_cheap, (*op.operands, *op.results)))

    def _is_cheap(self, value: Value) -> bool:
        """Whether a value is a scalar, or a tile made of scalars and positions alone."""
        if not value.shape:
            return True
        known = self._cheap.get(value)
        if known is None:
            maker = value.defining_op
            known = isinstance(maker, _POINTWISE) and all(map(self._is_cheap, maker.operands))
            self._cheap[value] = known
        return known
