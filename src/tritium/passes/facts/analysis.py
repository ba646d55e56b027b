"""Facts of all values of a kernel, in one walk; loops until nothing changes."""

from __future__ import annotations

from collections.abc import Sequence

from tritium.ir.core import Block, Function, Op, Value
from tritium.ops import control, hints

from .assumed import assumed
from .fact import Fact, join, type_range, unknown
from .rules import fact_of

_MOST_ROUNDS = 4
"""A loop whose facts are still changing after as many rounds is taken to carry anything."""


class Facts:
    """What is known of each value of a function; see ``of``."""

    def __init__(self, function: Function) -> None:
        self._known: dict[Value, Fact] = {}
        for param in function.params:
            made = unknown(param.type, max(1, param.divisibility & -param.divisibility))
            self._known[param.value] = made
        self._block(function.body.block)

    def of(self, value: Value) -> Fact:
        """What holds of a value. Raises KeyError for one of another function."""
        return self._known[value]

    def _block(self, block: Block) -> tuple[Fact, ...]:
        """Walk a block whose arguments are known. Returns the facts of what it yields."""
        before: dict[Value, Fact] = {}
        yielded = self._walk(block, before)
        # What is assumed in a block says nothing where that doesn't run.
        self._known.update(before)
        return yielded

    def _walk(self, block: Block, before: dict[Value, Fact]) -> tuple[Fact, ...]:
        for op in block.ops:
            if isinstance(op, control.Yield):
                return tuple(map(self.of, op.values))
            if isinstance(op, hints.Assume):
                for value, fact in assumed(op.condition, self.of):
                    before.setdefault(value, self.of(value))
                    self._known[value] = fact
                continue
            if isinstance(op, control.For):
                self._count_loop(op)
            elif isinstance(op, control.While):
                self._while_loop(op)
            elif isinstance(op, control.If):
                yielded = [self._block(inner.block) for inner in (op.then, op.otherwise)]
                self._set(op.results, [join(a, b) for a, b in zip(*yielded)])
            else:
                self._plain(op)
        return ()

    def _plain(self, op: Op) -> None:
        if len(op.results) == 1:
            self._known[op.results[0]] = fact_of(op, [self.of(x) for x in op.operands])
        else:
            self._set(op.results, [unknown(result.type) for result in op.results])

    def _set(self, values: Sequence[Value], facts: Sequence[Fact]) -> None:
        self._known.update(zip(values, facts, strict=True))

    # Loops.

    def _count_loop(self, op: control.For) -> None:
        variable, *carried = op.body.args
        lower, upper, step = (self.of(each) for each in (op.lower, op.upper, op.step))
        span = type_range(variable.type)
        if step.range is not None and step.range[0] > 0 and lower.range and upper.range:
            # Where nothing is between the bounds the body doesn't run.
            span = (lower.range[0], max(lower.range[0], upper.range[1] - 1))
        self._known[variable] = Fact((), min(lower.divisor, step.divisor), span)
        facts = self._until_steady(op.body.block, op.init, [carried])
        self._set(op.results, facts)

    def _while_loop(self, op: control.While) -> None:
        facts = self._until_steady(
            op.body.block, op.init, [op.body.args, op.condition.args], op.condition.block
        )
        self._set(op.results, facts)

    def _until_steady(
        self,
        body: Block,
        init: Sequence[Value],
        arguments: Sequence[Sequence[Value]],
        first: Block | None = None,
    ) -> list[Fact]:
        """What holds of carried values before each round and after the last."""
        facts = [self.of(value) for value in init]
        for number in range(_MOST_ROUNDS + 1):
            if number == _MOST_ROUNDS:
                facts = [unknown(value.type) for value in init]
            for values in arguments:
                self._set(values, facts)
            if first is not None:
                self._block(first)
            merged = [join(a, b) for a, b in zip(facts, self._block(body))]
            if merged == facts or number == _MOST_ROUNDS:
                break
            # Ranges could grow for long: one that grows at all may be any.
            facts = [
                fact if fact.range == old.range else fact._replace(range=type_range(value.type))
                for fact, old, value in zip(merged, facts, init)
            ]
        return facts
