"""``if`` and conditional expressions, and functions that return in the middle.

Control flow of the IR is structured, so what follows a run-time ``if`` of which one branch returns
becomes part of the other branch. Where a branch returns on some of its paths only, the ``if`` hands
out a flag, and what follows runs under it.
"""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tritium.diagnostics import Loc, error
from tritium.ir.core import Block
from tritium.ops.constexpr import constexpr
from tritium.ops.python import condition, type_text
from tritium.ops.tile import Tile

from .base import Flow, Maybe, Returned, Work
from .merge import ABSENT, Merge, Mismatch, Rebuild
from .names import Binding, Scope, Unset
from .statements import Statements


@dataclass
class Branch:
    """One branch of a run-time ``if``: its operations, its variables, and how it ends."""

    block: Block
    scope: Scope
    flow: Flow = None

    @property
    def falls(self) -> bool:
        """Whether some path goes on to what follows."""
        return not isinstance(self.flow, Returned)


class Branches(Statements):
    """Branches, decided at compile time where the condition is known."""

    def decide(self, node: ast.expr, construct: str) -> bool | Tile:
        """The condition of ``construct``: known, or an int1 scalar."""
        value = self.expression(node)
        with self.at(node):
            return condition(value, construct)

    def visit_If(self, node: ast.If, work: Work) -> Flow:
        decided = self.decide(node.test, "if")
        if isinstance(decided, bool):
            work.extendleft(reversed(node.body if decided else node.orelse))
            return None
        then = self._branch(node.body)
        otherwise = self._branch(node.orelse)
        return self._join(decided, then, otherwise, work)

    def _branch(self, statements: Sequence[ast.stmt]) -> Branch:
        branch = Branch(Block(), dict(self.frame.scope))
        self._resume(branch, deque(statements))
        return branch

    def _resume(self, branch: Branch, work: Work) -> None:
        """Carry out ``work`` at the end of a branch; nothing of it is left."""
        with self._inside(branch):
            branch.flow = self.run(work)
        work.clear()

    @contextmanager
    def _inside(self, branch: Branch) -> Iterator[None]:
        outer = self.frame.scope
        self.frame.scope = branch.scope
        try:
            with self.tracer.inside(branch.block):
                yield
        finally:
            branch.scope = self.frame.scope
            self.frame.scope = outer

    def _join(self, decided: Tile, then: Branch, otherwise: Branch, work: Work) -> Flow:
        """Record the ``if``, and what follows where that belongs into a branch."""
        for one, other in ((then, otherwise), (otherwise, then)):
            if isinstance(one.flow, Returned) and other.flow is None:
                self._resume(other, work)
        merge = Merge(self.tracer, then.block, otherwise.block)
        variables = self._merge_variables(merge, then, otherwise)
        if then.flow is None and otherwise.flow is None:
            self._set_variables(variables, merge.finish(decided))
            return None
        result = self._merge_returned(merge, then, otherwise)
        if not (then.falls or otherwise.falls):
            return _returned(result(merge.finish(decided)), then, otherwise)
        flag = merge.value("returned", _flag(then.flow), _flag(otherwise.flow))
        results = merge.finish(decided)
        self._set_variables(variables, results)
        maybe = Maybe(flag(results), _returned(result(results), then, otherwise))
        if not work:
            return maybe
        left = Branch(Block(), dict(self.frame.scope), maybe.value)
        stayed = Branch(Block(), dict(self.frame.scope))
        return self._join(maybe.flag, left, stayed, work)

    # ---- variables -------------------------------------------------------------------------------

    def _merge_variables(
        self, merge: Merge, then: Branch, otherwise: Branch
    ) -> dict[str, Binding | tuple[Rebuild, Loc | None, bool]]:
        """What each variable becomes: a binding as it is, or how to make its value."""
        merged: dict[str, Any] = {}
        for name in {**then.scope, **otherwise.scope}:
            left, right = then.scope.get(name), otherwise.scope.get(name)
            if left is right or not then.falls or not otherwise.falls:
                merged[name] = self._one_sided(merge, name, then, otherwise)
            elif left is None or right is None or not (left.is_set and right.is_set):
                merged[name] = Binding(Unset.by("if"))
            else:
                merged[name] = self._both(merge, name, left, right)
        return {name: value for name, value in merged.items() if value is not None}

    def _one_sided(self, merge: Merge, name: str, then: Branch, otherwise: Branch) -> Any:
        """A variable that only one branch hands on, or that neither has changed."""
        before = self.frame.scope.get(name)
        used = [branch.scope.get(name) for branch in (then, otherwise) if branch.falls]
        binding = used[0] if used else before
        if binding is None or binding is before or not binding.is_set:
            return binding
        sides = [binding.value if branch.falls else ABSENT for branch in (then, otherwise)]
        return merge.value(name, sides[0], sides[1]), binding.loc, binding.declared

    def _both(self, merge: Merge, name: str, left: Binding, right: Binding) -> Any:
        try:
            rebuild = merge.value(name, left.value, right.value)
        except Mismatch:
            changed = left if right is self.frame.scope.get(name) else right
            raise error(
                "E0402",
                name=name,
                left=type_text(left.value),
                right=type_text(right.value),
                loc=changed.loc,
            ) from None
        return rebuild, right.loc, left.declared and right.declared

    def _set_variables(self, variables: dict[str, Any], results: list[Any]) -> None:
        scope: Scope = {}
        for name, merged in variables.items():
            if not isinstance(merged, Binding):
                rebuild, loc, declared = merged
                merged = Binding(rebuild(results), loc, declared)
            scope[name] = merged
        self.frame.scope = scope

    # ---- returned values -------------------------------------------------------------------------

    def _merge_returned(self, merge: Merge, then: Branch, otherwise: Branch) -> Rebuild:
        left, right = _result(then.flow), _result(otherwise.flow)
        # Where one path ends without a return, what it returns is undefined.
        values = [
            ABSENT if one is None or (one.implicit and other is not None) else one.value
            for one, other in ((left, right), (right, left))
        ]
        if values[0] is ABSENT and values[1] is ABSENT:
            return lambda results: None
        try:
            return merge.value("result", values[0], values[1], promote=True)
        except Mismatch:
            raise error(
                "E0406",
                left=type_text(values[0]),
                right=type_text(values[1]),
                loc=right.loc if right is not None else None,
            ) from None

    # ---- conditional expressions -----------------------------------------------------------------

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        decided = self.decide(node.test, "a conditional expression")
        if isinstance(decided, bool):
            return self.expression(node.body if decided else node.orelse)
        sides = []
        for arm in (node.body, node.orelse):
            branch = Branch(Block(), dict(self.frame.scope))
            with self._inside(branch):
                sides.append((branch.block, self.expression(arm)))
            if branch.scope != self.frame.scope:
                with self.at(arm):
                    self.refuse("an assignment in one arm of a conditional expression", "use if")
        (then, left), (otherwise, right) = sides
        merge = Merge(self.tracer, then, otherwise)
        try:
            rebuild = merge.value("", left, right)
        except Mismatch:
            with self.at(node.orelse):
                raise error(
                    "E0402",
                    name="the value",
                    left=type_text(left),
                    right=type_text(right),
                ) from None
        return rebuild(merge.finish(decided))


def _flag(flow: Flow) -> Any:
    """Whether the function has returned at the end of a branch."""
    return flow.flag if isinstance(flow, Maybe) else constexpr(isinstance(flow, Returned))


def _result(flow: Flow) -> Returned | None:
    return flow.value if isinstance(flow, Maybe) else flow


def _returned(value: Any, then: Branch, otherwise: Branch) -> Returned:
    """The merged result of two branches of which at least one has returned."""
    parts = [part for part in map(_result, (then.flow, otherwise.flow)) if part is not None]
    loc = next((part.loc for part in parts if part.loc is not None), None)
    return Returned(value, all(part.implicit for part in parts), loc)
