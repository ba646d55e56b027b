"""Loops: unrolled where their bounds are declared static, else operations with carried values.

What a loop carries is found by visiting its body once for trial, with the variables as they are
before it; the operations of that visit are dropped. Inner loops of a trial are visited once only,
so a body inside d loops is visited d + 1 times.
"""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tritium.diagnostics import error
from tritium.ir.core import Block, Op, Region, Value
from tritium.ir.dtypes import Type
from tritium.ops.constexpr import unwrap
from tritium.ops.control import For, While, Yield
from tritium.ops.emit import emit
from tritium.ops.hints import Condition, Range, StaticRange
from tritium.ops.python import condition, describe
from tritium.ops.tile import Tile

from .arguments import nodes_of, signature_of
from .base import Flow, Work
from .branches import Branches
from .carried import Carried
from .names import Scope

MOST_UNROLLED = 1 << 15
"""Iterations of one ``static_range``, each of which is compiled."""


@dataclass
class Attempt:
    """One visit of a loop's body: its blocks, and the variables at its start and end."""

    blocks: tuple[Block, ...]
    inside: Scope
    after: Scope
    decided: bool | Tile = True

    def drop(self) -> None:
        """Forget the operations: nothing they read counts them as readers any more."""
        for block in self.blocks:
            for op in block.ops:
                op.drop_operands()


class Loops(Branches):
    """``for`` and ``while``."""

    def visit_For(self, node: ast.For, work: Work) -> Flow:
        if node.orelse:
            self.refuse("for ... else", "put the else part after the loop")
        with self.at(node.iter):
            loop, nodes = self._iterator(node.iter)
        if not isinstance(node.target, ast.Name):
            with self.at(node.target):
                self.refuse("a loop variable that is no name")
        if isinstance(loop, StaticRange):
            self._unroll(node, node.target, loop, work)
            return None
        with self.at(node.iter), self.pointing(nodes):
            bounds = loop.counter()
        self._run_time_for(node, node.target.id, loop, bounds)
        return None

    def _iterator(self, node: ast.expr) -> tuple[Range | StaticRange, dict[str, ast.AST]]:
        """What a loop goes over, and the places of its bounds."""
        nodes: dict[str, ast.AST] = {}
        if isinstance(node, ast.Call):
            callee, arguments = self.call_parts(node)
            loop = unwrap(self.invoke(node, callee, arguments))
            if isinstance(loop, Range):
                nodes = nodes_of(arguments.bind("range", signature_of(Range)))
                nodes.setdefault("arg2", nodes.get("arg1", node))
        else:
            loop = self.expression(node)
        if not isinstance(loop, (Range, StaticRange)):
            hint = "use range, tl.range or tl.static_range"
            self.refuse(f"a loop over {describe(loop)}", hint)
        return loop, nodes

    def _unroll(self, node: ast.For, target: ast.Name, loop: StaticRange, work: Work) -> None:
        if range(loop.start, loop.end, loop.step)[MOST_UNROLLED:]:
            text = f"more than {MOST_UNROLLED} iterations would be written out"
            with self.at(node.iter):
                raise error("E0206", op="static_range", text=text, hint="use range")
        values = iter(loop)

        def iteration(work: Work) -> Flow:
            value = next(values, None)
            if value is not None:
                with self.at(target):
                    self.bind(target.id, value)
                work.appendleft(iteration)
                work.extendleft(reversed(node.body))
            return None

        work.appendleft(iteration)

    # ---- for -------------------------------------------------------------------------------------

    def _run_time_for(
        self, node: ast.For, name: str, loop: Range, bounds: tuple[Tile, Tile, Tile]
    ) -> None:
        lower, upper, step = bounds
        carried = Carried("for loop", hidden=(name,))

        def visit() -> Attempt:
            block = self._loop_block(carried, [lower.type], [name])
            with self._body(block, carried.enter(self.frame.scope, block.args[1:])) as attempt:
                with self.at(node.target):
                    self.bind(name, loop.value(Tile(block.args[0]), lower, upper))
                attempt.inside = dict(self.frame.scope)
                self.run(deque(node.body))
            return attempt

        attempt = self._settle(carried, visit)
        if attempt is None:
            return
        (block,) = attempt.blocks
        self._end(block, carried.next, attempt.after)
        made = For(
            lower=lower.value,
            upper=upper.value,
            step=step.value,
            init=self._initial(carried),
            num_stages=loop.num_stages,
            unroll=loop.loop_unroll_factor,
            hints=loop.hints,
            body=Region(block),
        )
        self._leave(carried, attempt, made)

    # ---- while -----------------------------------------------------------------------------------

    def visit_While(self, node: ast.While, work: Work) -> Flow:
        if node.orelse:
            self.refuse("while ... else", "put the else part after the loop")
        carried = Carried("while loop")

        def visit() -> Attempt:
            test = self._loop_block(carried)
            with self._body(test, carried.enter(self.frame.scope, test.args)) as tested:
                decided = self._while_condition(node.test)
            block = self._loop_block(carried)
            with self._body(block, carried.enter(self.frame.scope, block.args)) as attempt:
                attempt.inside = dict(self.frame.scope)
                if decided is not False:
                    self.run(deque(node.body))
            attempt.blocks = (*tested.blocks, *attempt.blocks)
            attempt.decided = decided
            return attempt

        attempt = self._settle(carried, visit)
        if attempt is None:
            return None
        if isinstance(attempt.decided, bool):
            attempt.drop()
            if attempt.decided:
                with self.at(node.test):
                    self.refuse("a while loop with a constant condition", "it would never end")
            return None
        test, block = attempt.blocks
        decided = attempt.decided
        self._end(test, lambda after: [decided], attempt.after)
        self._end(block, carried.next, attempt.after)
        made = While(
            init=self._initial(carried),
            condition=Region(test),
            body=Region(block),
        )
        self._leave(carried, attempt, made)
        return None

    def _while_condition(self, node: ast.expr) -> bool | Tile:
        before = dict(self.frame.scope)
        value = self.expression(node)
        with self.at(node):
            if self.frame.scope != before:
                self.refuse(
                    "an assignment in the condition of a while loop",
                    "assign before the loop and at the end of its body",
                )
            if isinstance(value, Condition):
                value = value.condition
            return condition(value, "while")

    # ---- both ------------------------------------------------------------------------------------

    def _loop_block(
        self, carried: Carried, types: Sequence[Type] = (), names: Sequence[str] = ()
    ) -> Block:
        """A block whose arguments are those of ``types``, then the carried values."""
        held = [name for name, _ in carried.places]
        return Block([*types, *carried.places.values()], [*names, *held])

    @contextmanager
    def _body(self, block: Block, scope: Scope) -> Iterator[Attempt]:
        """Visit the body of a loop: operations go to ``block``, variables are ``scope``."""
        outer = self.frame.scope
        attempt = Attempt((block,), scope, scope)
        self.frame.scope = scope
        self.frame.loops += 1
        try:
            with self.tracer.inside(block):
                yield attempt
        finally:
            attempt.after = self.frame.scope
            self.frame.scope = outer
            self.frame.loops -= 1

    def _settle(self, carried: Carried, visit: Any) -> Attempt | None:
        """Visit a body for trial, then until the carried values are all known.

        Returns None within another loop's trial: variables are then as the trial leaves them.
        """
        self.tracer.trials += 1
        try:
            attempt: Attempt = visit()
        finally:
            self.tracer.trials -= 1
        attempt.drop()
        if attempt.decided is False:
            return attempt
        scope = self.frame.scope
        carried.discover(scope, attempt.inside, attempt.after)
        if self.tracer.trials:
            self.frame.scope = carried.leave(
                scope, attempt.after, [tile.value for tile in carried.next(attempt.after)]
            )
            return None
        while True:
            attempt = visit()
            if not carried.discover(scope, attempt.inside, attempt.after):
                return attempt
            attempt.drop()

    def _end(self, block: Block, values: Any, after: Scope) -> None:
        with self.tracer.inside(block):
            emit(Yield, values=tuple(values(after)))

    def _initial(self, carried: Carried) -> tuple[Value, ...]:
        return tuple(tile.value for tile in carried.initial(self.frame.scope))

    def _leave(self, carried: Carried, attempt: Attempt, made: Op) -> None:
        """Record the operation; its results are the variables' values after the loop."""
        made.loc = self.frame.loc()
        results = self.tracer.emit(made)
        for result, (name, _) in zip(results, carried.places):
            result.name = name
        self.frame.scope = carried.leave(self.frame.scope, attempt.after, results)
