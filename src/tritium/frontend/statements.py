"""Statements other than branches and loops."""

from __future__ import annotations

import ast

from tritium.diagnostics import error
from tritium.ops.create import folded
from tritium.ops.emit import SURFACE
from tritium.ops.python import SYMBOLS, describe, is_known, wrap

from .base import Flow, Returned, Work
from .calls import Calls
from .names import Binding, Unset, read


class Statements(Calls):
    """Assignments, expressions, ``return``, ``assert``."""

    def visit_Expr(self, node: ast.Expr, work: Work) -> Flow:
        if not isinstance(node.value, ast.Constant):
            self.expression(node.value)
        return None

    def visit_Pass(self, node: ast.Pass, work: Work) -> Flow:
        return None

    def visit_Assign(self, node: ast.Assign, work: Work) -> Flow:
        value = self.expression(node.value)
        for target in node.targets:
            self.store(target, value)
        return None

    def visit_AugAssign(self, node: ast.AugAssign, work: Work) -> Flow:
        target = node.target
        if not isinstance(target, ast.Name):
            self.store(target, None)
            return None
        with self.at(target):
            left = read(self.frame.scope, self.frame.reads, target.id)
        right = self.expression(node.value)
        value = self.operator(SYMBOLS[type(node.op)], left, right, target, node.value)
        self.store(target, value)
        return None

    def visit_AnnAssign(self, node: ast.AnnAssign, work: Work) -> Flow:
        if "constexpr" not in ast.unparse(node.annotation):
            if node.value is not None:
                self.store(node.target, self.expression(node.value))
            return None
        if not isinstance(node.target, ast.Name):
            self.refuse("a declaration of anything but a variable")
        name = node.target.id
        if node.value is None:
            self._check_undeclared(name, node)
            # The next assignment gives the value, and that stays known.
            self.frame.scope[name] = Binding(
                Unset("give it a value where it is declared"), self.frame.loc(), declared=True
            )
            return None
        value = wrap(folded(self.expression(node.value)))
        self._check_undeclared(name, node)
        if not is_known(value):
            with self.pointing({"value": node.value}):
                raise error(
                    "E0205",
                    op=f"{name}: tl.constexpr",
                    name="the value",
                    got=describe(value),
                    argument="value",
                )
        with self.at(node.target):
            self.bind(name, value, declared=True)
        return None

    def _check_undeclared(self, name: str, node: ast.AnnAssign) -> None:
        """Raises E0120 for a variable that has a value, unless the same line gave it."""
        before = self.frame.scope.get(name)
        if before is None or not before.is_set:
            return
        if before.declared and before.loc == self.frame.loc(node.target):
            # The body of a static_range loop comes again.
            return
        with self.at(node.target):
            raise error("E0120", name=name)

    def visit_Return(self, node: ast.Return, work: Work) -> Flow:
        if self.frame.loops:
            raise error("E0404")
        value = None if node.value is None else self.expression(node.value)
        # What a kernel returns goes nowhere.
        return Returned(None if self.frame.is_kernel else value, loc=self.frame.loc())

    def visit_Assert(self, node: ast.Assert, work: Work) -> Flow:
        condition = self.expression(node.test)
        message = "" if node.msg is None else self.expression(node.msg)
        if self.tracer.checks:
            SURFACE["device_assert"](condition, message)
        return None
