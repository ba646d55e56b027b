"""Dead code: operations that nothing depends on, and carried values and results that no one reads.

Stores, ordered operations, volatile loads and terminators are needed; whatever they read is; all
else goes, also a loop without effects whose results aren't read. A carried value that only feeds
its own next value is not needed.

Before::

    func @f(%p: *i32, %n: i32) ({
      %zero = create.constant {value = 0, dtype = i32} : i32
      %one = create.constant {value = 1, dtype = i32} : i32
      %unused = memory.load %p, _, _ : i32
      %r:2 = control.for %zero, %n, %one, [%zero, %zero] ({ ^(%i: i32, %a: i32, %b: i32):
        %a_next = arith.add %a, %i : i32
        %b_next = arith.add %b, %a : i32
        control.yield [%a_next, %b_next]
      }) : (i32, i32)
      memory.store %p, %r#0, _
      control.return
    })

After::

    func @f(%p: *i32, %n: i32) ({
      %zero = create.constant {value = 0, dtype = i32} : i32
      %one = create.constant {value = 1, dtype = i32} : i32
      %r = control.for %zero, %n, %one, [%zero] ({ ^(%i: i32, %a: i32):
        %a_next = arith.add %a, %i : i32
        control.yield [%a_next]
      }) : i32
      memory.store %p, %r, _
      control.return
    })
"""

from __future__ import annotations

from tritium.ir import ORDERED, WRITES, Block, Function, Op, Value
from tritium.ops.control import For, If, While, Yield
from tritium.ops.memory import Load

from .pipeline import NoOptions, register_pass
from .structure import carried_args, detach, keep_results, regions_of, set_ops, yielded

_BY_VALUE = (For, While, If)
"""Operations of which each result and carried value is needed or not for itself."""


@register_pass("dce")
def dce(function: Function, options: NoOptions) -> bool:
    """Remove what nothing depends on; returns whether there was anything."""
    needs = _Needs()
    needs.find(function)
    return _sweep(function.body.block, needs)


class _Needs:
    """The operations and values that something depends on."""

    def __init__(self) -> None:
        self.ops: set[Op] = set()
        self.values: set[Value] = set()
        self._pending: list[Value] = []

    def find(self, function: Function) -> None:
        """Start from what has effects and follow what it reads."""
        for op in function.walk():
            if _has_effect(op):
                self.op(op)
        while self._pending:
            self._follow(self._pending.pop())

    def value(self, value: Value) -> None:
        if value not in self.values:
            self.values.add(value)
            self._pending.append(value)

    def op(self, op: Op) -> None:
        """An operation runs: so does what it stands in, and what decides on it is read."""
        if op in self.ops:
            return
        self.ops.add(op)
        if op.parent is not None and op.parent.parent_op is not None:
            self.op(op.parent.parent_op)
        if isinstance(op, Yield) and isinstance(op.parent and op.parent.parent_op, _BY_VALUE):
            return
        if isinstance(op, _BY_VALUE):
            self._control(op)
            return
        for value in op.operands:
            self.value(value)
        for region in op.regions:
            for inner in region.ops:
                self.op(inner)

    def _control(self, op: Op) -> None:
        for region in op.regions:
            self.op(region.ops[-1])
        if isinstance(op, While):
            self.value(yielded(op.condition)[0])
        elif isinstance(op, For):
            for value in (op.lower, op.upper, op.step):
                self.value(value)
        else:
            self.value(op.operands[0])

    def _follow(self, value: Value) -> None:
        """A value is read: so is what it is made from."""
        maker = value.defining_op
        if maker is None:
            assert isinstance(value.owner, Block)
            owner = value.owner.parent_op
            if isinstance(owner, (For, While)):
                self.op(owner)
                args = value.owner.args
                index = args.index(value) - (len(args) - len(owner.init))
                if index >= 0:
                    self._carried(owner, index)
            return
        self.op(maker)
        if isinstance(maker, If):
            for region in (maker.then, maker.otherwise):
                self.value(yielded(region)[maker.results.index(value)])
        elif isinstance(maker, (For, While)):
            self._carried(maker, maker.results.index(value))

    def _carried(self, loop: For | While, index: int) -> None:
        """A carried value is needed: everywhere in the loop."""
        self.value(loop.init[index])
        self.value(yielded(loop.body)[index])
        self.value(loop.results[index])
        for region in regions_of(loop):
            self.value(carried_args(loop, region)[index])


def _has_effect(op: Op) -> bool:
    if isinstance(op, Load):
        return op.volatile
    if op.terminator:
        return op.parent is not None and op.parent.parent_op is None
    return bool(op.effects & (WRITES | ORDERED))


def _sweep(block: Block, needs: _Needs) -> bool:
    """Remove from a block what isn't needed. Readers go before what they read."""
    dead = [op for op in block.ops if op not in needs.ops]
    for op in dead:
        detach(op)
    if dead:
        set_ops(block, [op for op in block.ops if op in needs.ops])
    changed = bool(dead)
    for op in block.ops:
        for region in op.regions:
            changed |= _sweep(region.block, needs)
        if isinstance(op, _BY_VALUE):
            keep = [result in needs.values for result in op.results]
            keep_results(op, keep)
            changed |= not all(keep)
    return changed
