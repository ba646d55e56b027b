"""The copy of a user's function that runs in eager mode.

The copy has the same file, lines, columns, names, globals and closure cells, so that debuggers,
tracing, coverage and tracebacks see the user's own code. Where the kernel language differs from
Python (numbers that are assigned become tiles, ``and`` of tiles, ``range``, ...) the syntax tree
calls ``support`` instead. Everything else is left to Python.
"""

from __future__ import annotations
import __future__

import ast
import copy
import sys
import types
import weakref
from collections.abc import Callable, Sequence
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any, TypeVar

from tritium.diagnostics import InternalError
from tritium.ops.callable import is_constexpr_annotation
from tritium.ops.source import FunctionSource, capture

from . import support
from .frames import MARK

_SUPPORT = "\0tritium.interp.support"
"""Stands for the module ``support`` among a code object's constants until it is replaced."""
_FUTURE = 0
for _feature in __future__.all_feature_names:
    _FUTURE |= getattr(__future__, _feature).compiler_flag

_SYMBOLS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
}

Node = TypeVar("Node", bound=ast.AST)

_copies: weakref.WeakKeyDictionary[FunctionType, tuple[CodeType, FunctionType]] = (
    weakref.WeakKeyDictionary()
)


def rewritten(function: Callable[..., Any]) -> FunctionType:
    """The copy of ``function`` for eager mode; the same one as long as its code stays.

    Raises E0118 where the source can't be found.
    """
    if not isinstance(function, FunctionType):
        raise InternalError(f"{function!r} is no Python function")
    known = _copies.get(function)
    if known is not None and known[0] is function.__code__:
        return known[1]
    made = _copy(function)
    _copies[function] = (function.__code__, made)
    return made


def _copy(function: FunctionType) -> FunctionType:
    old = function.__code__
    code = _compile(capture(function), old, _Rewriter(_static_names(function)))
    cells = dict(zip(old.co_freevars, function.__closure__ or ()))
    made = FunctionType(
        code,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        tuple(cells[name] for name in code.co_freevars),
    )
    made.__kwdefaults__ = function.__kwdefaults__
    made.__qualname__ = function.__qualname__
    made.__module__ = function.__module__
    made.__doc__ = function.__doc__
    return made


def _static_names(function: FunctionType) -> Callable[[str], Any]:
    """Looks a name up that is not local to the function: its value now, None without one."""
    cells: dict[str, CellType] = dict(
        zip(function.__code__.co_freevars, function.__closure__ or ())
    )
    local = {*function.__code__.co_varnames, *function.__code__.co_cellvars}

    def look_up(name: str) -> Any:
        if name in local:
            return None
        if name in cells:
            try:
                return cells[name].cell_contents
            except ValueError:
                # Not assigned yet.
                return None
        return function.__globals__.get(name)

    return look_up


def _compile(source: FunctionSource, old: CodeType, rewriter: _Rewriter) -> CodeType:
    tree = copy.deepcopy(source.tree)
    tree.body = rewriter.statements(tree.body)
    if old.co_firstlineno != tree.lineno:
        # Functions begin at their first decorator, also in the eyes of a tracing tool.
        mark = ast.Constant(None)
        mark.lineno = mark.end_lineno = old.co_firstlineno
        mark.col_offset = mark.end_col_offset = 0
        tree.decorator_list = [mark]
    if sys.version_info >= (3, 12):
        tree.type_params = []
    module = ast.Module(body=[_enclosed(tree, old.co_freevars)], type_ignores=[])
    compiled = compile(module, source.file, "exec", flags=old.co_flags & _FUTURE, dont_inherit=True)
    return _finished(_find(compiled, old), getattr(old, "co_qualname", ""))


def _enclosed(tree: ast.FunctionDef, free: Sequence[str]) -> ast.FunctionDef:
    """The definition inside of a function whose parameters are the closure's variables."""
    if not free:
        return tree
    empty = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    outer = ast.FunctionDef(name="closure", args=empty, body=[tree], decorator_list=[])
    ast.copy_location(outer, tree)
    outer.args.args = [ast.copy_location(ast.arg(arg=name), tree) for name in free]
    if sys.version_info >= (3, 12):
        outer.type_params = []
    return outer


def _find(outer: CodeType, old: CodeType) -> CodeType:
    for each in outer.co_consts:
        if isinstance(each, CodeType):
            if each.co_name == old.co_name and each.co_firstlineno == old.co_firstlineno:
                return each
            if each.co_name == "closure":
                return _find(each, old)
    raise InternalError(f"{old.co_name} is missing from its own copy")


def _finished(code: CodeType, qualified_name: str) -> CodeType:
    """``code`` and the code inside of it with ``support`` in place, marked, and named as before."""
    consts = tuple(
        support
        if isinstance(each, str) and each == _SUPPORT
        else _finished(each, f"{qualified_name}.<locals>.{each.co_name}")
        if isinstance(each, CodeType)
        else each
        for each in code.co_consts
    )
    made = code.replace(co_consts=(*consts, MARK))
    if sys.version_info >= (3, 11):
        made = made.replace(co_qualname=qualified_name)
    return made


class _Rewriter(ast.NodeTransformer):
    """Rewrites statements and expressions in place; every new node stands where an old one did.

    ``look_up`` gives what a name outside of the function means now.
    """

    def __init__(self, look_up: Callable[[str], Any]) -> None:
        self._look_up = look_up

    def statements(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """A function's body, rewritten."""
        made: list[ast.stmt] = []
        for statement in body:
            new: Any = self.visit(statement)
            made.extend(new if isinstance(new, list) else [new])
        return made

    def _support(self, name: str, *args: ast.expr, at: ast.AST) -> ast.Call:
        """``support.name(*args)``, standing where ``at`` stands."""

        def place(node: Node) -> Node:
            return ast.copy_location(node, at)

        function = place(ast.Attribute(place(ast.Constant(_SUPPORT)), name, ast.Load()))
        return place(ast.Call(function, list(args), []))

    # ---- statements ------------------------------------------------------------------------------

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._nested(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self._nested(node)

    def _nested(self, node: Any) -> ast.AST:
        # Annotations stay as they are written.
        node.decorator_list = [self.visit(each) for each in node.decorator_list]
        node.args.defaults = [self.visit(each) for each in node.args.defaults]
        node.args.kw_defaults = [each and self.visit(each) for each in node.args.kw_defaults]
        node.body = self.statements(node.body)
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        """A class of the user's is Python's."""
        return node

    def visit_match_case(self, node: Any) -> ast.AST:
        """Patterns are no expressions."""
        if node.guard is not None:
            node.guard = self.visit(node.guard)
        node.body = self.statements(node.body)
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        node.targets = [self.visit(target) for target in node.targets]
        names = any(isinstance(target, (ast.Name, ast.Tuple, ast.List)) for target in node.targets)
        node.value = self.visit(node.value)
        if names:
            node.value = self._assigned(node.value)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is not None:
            value = self.visit(node.value)
            if is_constexpr_annotation(ast.unparse(node.annotation)):
                node.value = self._support("unwrap", value, at=value)
            elif isinstance(node.target, ast.Name):
                node.value = self._assigned(value)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        node.value = self.visit(node.value)
        if not isinstance(node.target, ast.Name):
            node.target = self.visit(node.target)
            return node
        # Python's own operation first: a list is extended in place.
        name = node.target.id
        load = ast.copy_location(ast.Name(name, ast.Load()), node.target)
        store = ast.copy_location(ast.Name(name, ast.Store()), node.target)
        fix = ast.Assign([store], self._support("assigned", load, at=node.target))
        return [node, ast.copy_location(fix, node.target)]

    def _assigned(self, value: ast.expr) -> ast.expr:
        """The value of an assignment to names, converted; a display part by part."""
        if isinstance(value, (ast.Tuple, ast.List)):
            value.elts = [self._assigned(part) for part in value.elts]
            return value
        if isinstance(value, ast.Starred):
            value.value = self._assigned(value.value)
            return value
        if isinstance(value, ast.Constant) and not isinstance(value.value, (int, float)):
            return value
        if isinstance(value, (ast.Lambda, ast.Dict, ast.Set, ast.JoinedStr, ast.ListComp)):
            return value
        return self._support("assigned", value, at=value)

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        node.test = self.visit(node.test)
        node.test = self._support("holds", node.test, at=node.test)
        if node.msg is not None:
            node.msg = self.visit(node.msg)
        return node

    # ---- expressions -----------------------------------------------------------------------------

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        word = "and" if isinstance(node.op, ast.And) else "or"
        first, *rest = [self.visit(value) for value in node.values]
        label = ast.copy_location(ast.Constant(word), node)
        step: ast.expr = self._support("combination", label, first, at=first)
        for operand in rest:
            step = self._ask(step, operand, at=node)
        return self._support("result", step, at=node)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        operands = [self.visit(each) for each in (node.left, *node.comparators)]
        node.left, *node.comparators = operands
        if len(node.ops) == 1:
            if isinstance(node.ops[0], (ast.Is, ast.IsNot)):
                node.left, right = (self._plain(each) for each in operands)
                node.comparators = [right]
            return node
        symbols = ast.Tuple(
            [ast.copy_location(ast.Constant(_SYMBOLS[type(op)]), node) for op in node.ops],
            ast.Load(),
        )
        left, right, *rest = operands
        ast.copy_location(symbols, left)
        step: ast.expr = self._support("chain", symbols, left, right, at=left)
        step.end_lineno, step.end_col_offset = right.end_lineno, right.end_col_offset
        for operand in rest:
            step = self._ask(step, operand, at=node)
        return self._support("result", step, at=node)

    def _plain(self, operand: ast.expr) -> ast.expr:
        if isinstance(operand, ast.Constant):
            return operand
        return self._support("unwrap", operand, at=operand)

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        test, body, orelse = map(self.visit, (node.test, node.body, node.orelse))
        step: ast.expr = self._support("choice", test, at=test)
        step = self._ask(step, body, at=node)
        step = ast.copy_location(ast.Attribute(step, "otherwise", ast.Load()), node)
        return self._support("result", self._ask(step, orelse, at=node), at=node)

    def _ask(self, step: ast.expr, operand: ast.expr, at: ast.AST) -> ast.Compare:
        """``0 < step == operand``, see ``support``."""
        zero = ast.copy_location(ast.Constant(0), at)
        return ast.copy_location(ast.Compare(zero, [ast.Lt(), ast.Eq()], [step, operand]), at)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        node.operand = self.visit(node.operand)
        if isinstance(node.op, ast.Not):
            return self._support("negate", node.operand, at=node)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        function = node.func
        self.generic_visit(node)
        if isinstance(function, ast.Name) and function.id in support.REPLACED:
            node.func = self._support("builtin", function, at=function)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if isinstance(node.ctx, ast.Load) and not isinstance(self._static(node.value), ModuleType):
            owner = self.visit(node.value)
            label = ast.copy_location(ast.Constant(node.attr), node)
            node.value = self._support("receiver", owner, label, at=owner)
            return node
        return self.generic_visit(node)

    def _static(self, node: ast.expr) -> Any:
        """The module that an expression names; None for everything else."""
        found: Any = None
        if isinstance(node, ast.Name):
            found = self._look_up(node.id)
        elif isinstance(node, ast.Attribute):
            owner = self._static(node.value)
            found = None if owner is None else vars(owner).get(node.attr)
        return found if isinstance(found, types.ModuleType) else None
