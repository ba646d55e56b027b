"""Expressions: each is evaluated through the same surface functions that eager mode runs."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from tritium.diagnostics import error
from tritium.ops.aggregates import Aggregate
from tritium.ops.constexpr import constexpr, unwrap
from tritium.ops.create import folded
from tritium.ops.hints import Range
from tritium.ops.python import (
    BINARY,
    SYMBOLS,
    BoundMethod,
    Combination,
    assigned,
    attribute,
    binary,
    compare,
    describe,
    is_known,
    negate,
    no_attribute,
    plain,
    unary,
    wrap,
)
from tritium.ops.tile import Tile
from tritium.ops.tuples import TileTuple

from .base import Base
from .names import read

_CONVERSIONS: dict[str, Callable[[Any], str]] = {"r": repr, "s": str, "a": ascii}

_REFLECTED = ("<", "<=", ">", ">=", "==", "!=")


class Expressions(Base):
    """Expressions other than calls and conditional ones."""

    def visit_Constant(self, node: ast.Constant) -> Any:
        return wrap(node.value)

    def visit_Name(self, node: ast.Name) -> Any:
        return read(self.frame.scope, self.frame.reads, node.id)

    # ---- operators -------------------------------------------------------------------------------

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        left = self.expression(node.left)
        right = self.expression(node.right)
        return self.operator(SYMBOLS[type(node.op)], left, right, node.left, node.right)

    def operator(
        self, symbol: str, left: Any, right: Any, left_node: ast.AST, right_node: ast.AST
    ) -> Any:
        """A binary operator; problems of one operand point at it."""
        if symbol in _REFLECTED and isinstance(right, Tile) and not isinstance(left, Tile):
            # Python asks the right operand for the mirrored comparison.
            left_node, right_node = right_node, left_node
        with self.pointing({"left": left_node, "right": right_node}):
            return binary(symbol, left, right)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        value = self.expression(node.operand)
        with self.pointing({"x": node.operand}):
            if isinstance(node.op, ast.Not):
                return negate(value)
            return unary(SYMBOLS[type(node.op)], value)

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        made = Combination("and" if isinstance(node.op, ast.And) else "or")
        first: ast.expr | None = None
        for operand in node.values:
            value = self.expression(operand)
            with self.pointing({"x": first or operand, "y": operand}):
                if made.add(value):
                    break
            if first is None and isinstance(value, Tile):
                first = operand
        return made.value

    def visit_Compare(self, node: ast.Compare) -> Any:
        made = Combination("and")
        left, left_node = self.expression(node.left), node.left
        for op, right_node in zip(node.ops, node.comparators):
            right = self.expression(right_node)
            result = self._comparison(SYMBOLS[type(op)], left, right, left_node, right_node)
            if len(node.ops) == 1:
                return result
            if made.add(result):
                break
            left, left_node = right, right_node
        return made.value

    def _comparison(
        self, symbol: str, left: Any, right: Any, left_node: ast.expr, right_node: ast.expr
    ) -> Any:
        if symbol in BINARY:
            return self.operator(symbol, left, right, left_node, right_node)
        return compare(symbol, left, right)

    # ---- containers ------------------------------------------------------------------------------

    def visit_Tuple(self, node: ast.Tuple) -> Any:
        return TileTuple(self._elements(node.elts))

    def visit_List(self, node: ast.List) -> Any:
        return TileTuple(self._elements(node.elts))

    def _elements(self, nodes: list[ast.expr]) -> Iterator[Any]:
        for node in nodes:
            if isinstance(node, ast.Starred):
                yield from self.unpacked(node)
            else:
                yield self.expression(node)

    def unpacked(self, node: ast.Starred) -> TileTuple:
        """The elements of ``*value``, which must be a tuple (E0204)."""
        value = self.expression(node.value)
        if not isinstance(value, TileTuple):
            with self.at(node):
                raise error("E0204", op="*", expected="a tuple", got=describe(value), hint="")
        return value

    def visit_ListComp(self, node: ast.ListComp) -> Any:
        if len(node.generators) != 1 or node.generators[0].is_async:
            self.refuse("a comprehension with several loops", "use one loop over a tuple")
        loop = node.generators[0]
        elements = self.expression(loop.iter)
        if not isinstance(elements, TileTuple):
            over = "a range" if isinstance(elements, Range) else describe(elements)
            self.refuse(f"a comprehension over {over}", "go over a tuple, or write a loop")
        own = [each.id for each in ast.walk(loop.target) if isinstance(each, ast.Name)]
        outer = {name: self.frame.scope.get(name) for name in own}
        results = []
        for element in elements:
            self._store_element(loop.target, element)
            if all(self._keeps(test) for test in loop.ifs):
                results.append(self.expression(node.elt))
        for name, binding in outer.items():
            self.frame.scope.pop(name, None)
            if binding is not None:
                self.frame.scope[name] = binding
        return TileTuple(results)

    def _store_element(self, target: ast.expr, value: Any) -> None:
        """Bind a comprehension's variable: constants stay known, unlike in an assignment."""
        if isinstance(target, ast.Name):
            self.bind(target.id, value)
        elif isinstance(target, ast.Tuple) and isinstance(value, TileTuple):
            for name, part in zip(target.elts, value):
                self._store_element(name, part)
        else:
            self.store(target, value)

    def _keeps(self, test: ast.expr) -> bool:
        value = self.expression(test)
        if not is_known(value):
            self.refuse("a run-time filter of a comprehension", "use tl.where")
        return bool(plain(value))

    # ---- attributes and elements -----------------------------------------------------------------

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        owner = self.expression(node.value)
        if not isinstance(owner, (ModuleType, type)):
            try:
                found = attribute(owner, node.attr)
            except AttributeError:
                raise no_attribute(owner, node.attr) from None
            if isinstance(owner, Aggregate) and isinstance(found, BoundMethod):
                cls = type(owner)
                self.tracer.dependencies.attribute(cls, node.attr, found.function)
            return found
        if not hasattr(owner, node.attr):
            close = difflib.get_close_matches(node.attr, dir(owner), n=1)
            hint = f"did you mean {close[0]}?" if close else ""
            raise error("E0101", name=ast.unparse(node), hint=hint)
        value = getattr(owner, node.attr)
        self.tracer.dependencies.attribute(owner, node.attr, value)
        return wrap(value)

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        value = self.expression(node.value)
        index = self.expression(node.slice)
        if isinstance(value, (Tile, Aggregate)):
            subscripted: Any = value
            with self.pointing({"index": node.slice}):
                return wrap(subscripted[index])
        index = _folded_index(index)
        if not is_known(index):
            with self.pointing({"index": node.slice}):
                name, got = "the index of a tuple", describe(index)
                raise error("E0205", op="[]", name=name, got=got, argument="index")
        with self.pointing({"index": node.slice, "value": node.value}):
            return _element(value, index)

    def visit_Slice(self, node: ast.Slice) -> Any:
        parts = (node.lower, node.upper, node.step)
        return slice(*(None if part is None else self.expression(part) for part in parts))

    # ---- the rest --------------------------------------------------------------------------------

    def visit_NamedExpr(self, node: ast.NamedExpr) -> Any:
        value = assigned(self.expression(node.value), node.target.id)
        self.bind(node.target.id, value)
        return value

    def visit_JoinedStr(self, node: ast.JoinedStr) -> Any:
        return constexpr("".join(self._text(part) for part in node.values))

    def _text(self, part: ast.expr) -> str:
        if isinstance(part, ast.Constant):
            return str(part.value)
        assert isinstance(part, ast.FormattedValue)
        value = self.expression(part.value)
        if not is_known(value):
            self.refuse(
                "a run-time value in an f-string", "print it at run time, by tl.device_print"
            )
        shown = plain(value)
        if part.conversion != -1:
            shown = _CONVERSIONS[chr(part.conversion)](shown)
        spec = "" if part.format_spec is None else str(plain(self.expression(part.format_spec)))
        return format(shown, spec)


def _element(value: Any, index: Any) -> Any:
    """``value[index]`` of a tuple or another constant.

    Raises E0204 for what has no elements and for an index that isn't one, IndexError for one that
    is out of range.
    """
    held, place = unwrap(value), _plain_index(index)
    if not hasattr(type(held), "__getitem__"):
        expected = "a tile, a tuple or a string"
        raise error(
            "E0204", op="[]", expected=expected, got=describe(value), hint="", argument="value"
        )
    try:
        return wrap(held[place])
    except TypeError:
        expected = "an integer or a slice as the index of a tuple"
        raise error(
            "E0204", op="[]", expected=expected, got=describe(index), hint="", argument="index"
        ) from None


def _folded_index(index: Any) -> Any:
    if isinstance(index, slice):
        return slice(folded(index.start), folded(index.stop), folded(index.step))
    return wrap(folded(index))


def _plain_index(index: Any) -> Any:
    if isinstance(index, slice):
        return slice(plain(index.start), plain(index.stop), plain(index.step))
    return plain(index)
