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
import inspect
import sys
import weakref
from collections.abc import Callable, Sequence
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any, TypeVar

from tritium.diagnostics import InternalError, error
from tritium.ops.callable import is_constexpr_annotation
from tritium.ops.python import SYMBOLS
from tritium.ops.recursion import deep_recursion
from tritium.ops.source import FunctionSource, capture

from . import support
from .frames import EXECUTION, MARK

_SUPPORT = "\0tritium.interp.support"
"""Stands for the module ``support`` among a code object's constants until it is replaced."""
NOWHERE = -1
"""The line of nodes that have none; Python's compiler uses it for its own instructions too."""
_FUTURE = 0
for _feature in __future__.all_feature_names:
    _FUTURE |= getattr(__future__, _feature).compiler_flag

Node = TypeVar("Node", bound=ast.AST)

_copies: weakref.WeakKeyDictionary[FunctionType, tuple[CodeType, FunctionType]] = (
    weakref.WeakKeyDictionary()
)


def rewritten(function: Callable[..., Any]) -> FunctionType:
    """The copy of ``function`` for eager mode; the same one as long as its code stays.

    Raises E0118 where the source can't be found.
    """
    function = inspect.unwrap(function)
    if not isinstance(function, FunctionType):
        raise error("E0118", name=getattr(function, "__name__", repr(function)))
    known = _copies.get(function)
    if known is not None and known[0] is function.__code__:
        return known[1]
    made = _copy(function)
    _copies[function] = (function.__code__, made)
    return made


def _copy(function: FunctionType) -> FunctionType:
    old = function.__code__
    source, rewriter = capture(function), _Rewriter(_static_names(function))
    with deep_recursion:
        code = _compile(source, old, rewriter)
    cells = dict(zip(old.co_freevars, function.__closure__ or ()))
    made = FunctionType(
        code,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        tuple(cells[name] for name in code.co_freevars) or None,
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
    """Rewrites statements and expressions in place.

    New nodes stand where the node they replace stood, so errors underline it and a debugger sees
    its line. In one that spans lines the new instructions count to a line that is reached anyway:
    that of what ran before them, or of what the node computes first where Python jumps.

    ``look_up`` gives what a name outside of the function means now.
    """

    def __init__(self, look_up: Callable[[str], Any]) -> None:
        self._look_up = look_up
        self._declared: set[str] = set()
        self._loops = 0

    def statements(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """A function's body, rewritten."""
        made: list[ast.stmt] = []
        for statement in body:
            new: Any = self.visit(statement)
            made.extend(new if isinstance(new, list) else [new])
        return made

    # ---- statements ------------------------------------------------------------------------------

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._nested(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self._nested(node)

    def _nested(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        # Annotations stay as they are written.
        node.decorator_list = [self.visit(each) for each in node.decorator_list]
        node.args.defaults = [self.visit(each) for each in node.args.defaults]
        node.args.kw_defaults = [each and self.visit(each) for each in node.args.kw_defaults]
        node.body = self.statements(node.body)
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        """A class of the user's is Python's."""
        return node

    def visit_match_case(self, node: ast.match_case) -> ast.AST:
        """Patterns are no expressions."""
        if node.guard is not None:
            node.guard = self.visit(node.guard)
        node.body = self.statements(node.body)
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        node.targets = [self.visit(target) for target in node.targets]
        names = {target.id for target in node.targets if isinstance(target, ast.Name)}
        if names & self._declared:
            node.value = self._wrapped("declared", node.value)
        elif names or any(isinstance(target, (ast.Tuple, ast.List)) for target in node.targets):
            node.value = self._assigned(node.value)
        else:
            node.value = self.visit(node.value)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        constant = is_constexpr_annotation(ast.unparse(node.annotation))
        if node.value is None:
            if constant and isinstance(node.target, ast.Name):
                self._declared.add(node.target.id)
            return node
        if constant:
            node.value = self._wrapped("declared", node.value)
        elif isinstance(node.target, ast.Name):
            node.value = self._assigned(node.value)
        else:
            node.value = self.visit(node.value)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        node.value = self.visit(node.value)
        if not isinstance(node.target, ast.Name):
            node.target = self.visit(node.target)
            return node
        # Python's own operation first: a list is extended in place.
        target = node.target
        load = ast.copy_location(ast.Name(target.id, ast.Load()), target)
        store = ast.copy_location(ast.Name(target.id, ast.Store()), target)
        fix = ast.Assign([store], self._wrapped("assigned", load))
        return [node, ast.copy_location(fix, target)]

    def _assigned(self, value: ast.expr) -> ast.expr:
        """The value of an assignment to names, converted; a display part by part."""
        if isinstance(value, ast.List):
            value.elts = [self._assigned(part) for part in value.elts]
            return value
        if isinstance(value, ast.Starred):
            value.value = self._assigned(value.value)
            return value
        if isinstance(value, ast.Constant) and not isinstance(value.value, (int, float)):
            return value
        return self._wrapped("assigned", value)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.AST:
        node.value = self._assigned(node.value)
        return node

    def visit_If(self, node: ast.If) -> ast.stmt:
        # Python compiles known conditions away.
        if not isinstance(node.test, ast.Constant):
            node.test = self._wrapped("truth", node.test)
        return self._branch(node)

    def visit_While(self, node: ast.While) -> list[ast.stmt]:
        name = f"{EXECUTION}{self._loops}"
        self._loops += 1
        start = _first(node.test)
        begins = self._call("begins", start=start, at=start)
        begin = _at(ast.Assign([_at(ast.Name(name, ast.Store()), start)], begins), start)
        if not isinstance(node.test, ast.Constant):
            test = self.visit(node.test)
            execution = _at(ast.Name(name, ast.Load()), test)
            node.test = self._call("again", test, execution, start=start, at=test)
            return [begin, self._branch(node)]
        # There is no test whose evaluation could tell of another pass: the body begins with that.
        if sys.version_info < (3, 11):
            # On the loop's line it takes the place of an instruction that each pass begins with.
            for each in ast.walk(begin):
                if isinstance(each, (ast.expr, ast.stmt)):
                    _at(each)
        place, execution = _begin(node.body[0]), ast.Name(name, ast.Load())
        told = self._call("again", ast.Constant(True), execution, start=start, at=start)
        for each in ast.walk(told):
            ast.copy_location(each, place)
        self._branch(node)
        node.body.insert(0, ast.copy_location(ast.Expr(told), place))
        return [begin, node]

    def _branch(self, node: ast.If | ast.While) -> ast.stmt:
        node.body = self.statements(node.body)
        node.orelse = self.statements(node.orelse)
        return node

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        node.test = self._wrapped("holds", node.test)
        if node.msg is not None:
            node.msg = self.visit(node.msg)
        return node

    # ---- expressions -----------------------------------------------------------------------------

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        word = "and" if isinstance(node.op, ast.And) else "or"
        start = _first(node)
        first, *rest = [self.visit(value) for value in node.values]
        label = _at(ast.Constant(word), start)
        step = self._call("combination", label, first, start=start, at=first)
        return self._result(step, rest, start, node)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        start = _first(node)
        operands = [node.left, *node.comparators]
        if len(node.ops) > 1:
            left, right, *rest = map(self.visit, operands)
            text = [_at(ast.Constant(SYMBOLS[type(each)]), start) for each in node.ops]
            symbols = _at(ast.Tuple([*text], ast.Load()), start)
            step = self._call("chain", symbols, left, right, start=start, at=node)
            return self._result(step, rest, start, node)
        if isinstance(node.ops[0], (ast.Is, ast.IsNot)):
            operands = [
                each if isinstance(each, ast.Constant) else self._wrapped("unwrap", each)
                for each in operands
            ]
        else:
            operands = [self.visit(each) for each in operands]
        node.left, *node.comparators = operands
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        start = _first(node)
        test, body, orelse = map(self.visit, (node.test, node.body, node.orelse))
        step = self._call("choice", test, start=start, at=test)
        chosen = ast.Attribute(_ask(step, body, start, node), "otherwise", ast.Load())
        return self._result(_at(chosen, node, start), [orelse], start, node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        start = _first(node)
        node.operand = self.visit(node.operand)
        if isinstance(node.op, ast.Not):
            return self._call("negate", node.operand, start=start, at=node)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        function = node.func
        self.generic_visit(node)
        if isinstance(function, ast.Name) and function.id in support.REPLACED:
            node.func = self._call("builtin", function, start=function, at=function)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if isinstance(node.ctx, ast.Load) and not isinstance(self._static(node.value), ModuleType):
            start = _first(node)
            owner = self.visit(node.value)
            label = ast.Constant(node.attr)
            node.value = self._call("receiver", owner, _at(label, owner), start=start, at=owner)
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
        return found if isinstance(found, ModuleType) else None

    def _wrapped(self, name: str, value: ast.expr) -> ast.Call:
        """``support.name(value)``, the value rewritten."""
        start = _first(value)
        made = self.visit(value)
        return self._call(name, made, start=start, at=made)

    def _call(self, name: str, *args: ast.expr, start: ast.expr, at: ast.expr) -> ast.Call:
        """``support.name(*args)``, called where ``at`` is; ``start`` is what is computed first."""
        module = _at(ast.Constant(_SUPPORT), start)
        function = _at(ast.Attribute(module, name, ast.Load()), start)
        return _at(ast.Call(function, list(args), []), at)

    def _result(
        self, step: ast.expr, operands: Sequence[ast.expr], start: ast.expr, at: ast.expr
    ) -> ast.Call:
        """The value of a construct that begins with ``step`` and may take the other operands."""
        for operand in operands:
            step = _ask(step, operand, start, at)
        return _at(self._call("result", step, start=start, at=at), at, start)


def _ask(step: ast.expr, operand: ast.expr, start: ast.expr, at: ast.expr) -> ast.Compare:
    """``0 < step == operand``, see ``support``."""
    zero = _at(ast.Constant(0), start)
    return _at(ast.Compare(zero, [ast.Lt(), ast.Eq()], [step, operand]), at, start)


def _at(node: Node, *places: ast.AST) -> Node:
    """``node``, standing at the first of ``places`` that is on one line; nowhere without one."""
    made: Any = node
    for place in places:
        ast.copy_location(made, place)
        if made.lineno == made.end_lineno:
            return node
    made.lineno = made.end_lineno = made.col_offset = made.end_col_offset = NOWHERE
    return node


def _begin(statement: ast.stmt) -> ast.AST:
    """The part of a statement that is computed first; the statement itself without one."""
    for name in ("test", "value", "iter", "subject", "exc"):
        part = getattr(statement, name, None)
        if isinstance(part, ast.expr):
            return _first(part)
    return statement


def _first(node: ast.expr) -> ast.expr:
    """The part of an expression that is computed first."""
    inner: Any = node
    while True:
        match inner:
            case ast.BinOp(left=part) | ast.Compare(left=part) | ast.IfExp(test=part):
                inner = part
            case ast.BoolOp(values=[part, *_]) | ast.Tuple(elts=[part, *_]):
                inner = part
            case ast.List(elts=[part, *_]) | ast.UnaryOp(operand=part) | ast.Call(func=part):
                inner = part
            case ast.Attribute(value=part) | ast.Subscript(value=part) | ast.Starred(value=part):
                inner = part
            case _:
                found: ast.expr = inner
                return found
