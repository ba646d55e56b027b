"""Calls: of operations, kernel functions, compile-time functions and classes."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from enum import EnumMeta
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, NoReturn, cast

from tritium.diagnostics import error
from tritium.ir.dtypes import Type
from tritium.ops.aggregates import Aggregate
from tritium.ops.builtins import in_kernel
from tritium.ops.callable import ConstexprFunction, DeviceFunction
from tritium.ops.constexpr import constexpr, unwrap
from tritium.ops.create import folded
from tritium.ops.python import BoundMethod, describe, is_known, plain, wrap
from tritium.ops.tuples import TileTuple, elements

from .arguments import Argument, Arguments, nodes_of, signature_of
from .base import Base
from .expressions import Expressions
from .fingerprint import in_library
from .names import HELPER, counterpart


class Calls(Expressions, Base):
    """Calls, by what is called."""

    def visit_Call(self, node: ast.Call) -> Any:
        callee, arguments = self.call_parts(node)
        return self.invoke(node, callee, arguments)

    def call_parts(self, node: ast.Call) -> tuple[Any, Arguments]:
        """What a call calls, and the arguments, evaluated in order; a method's receiver first."""
        callee = self.expression(node.func)
        arguments = Arguments(place=self.frame.loc)
        for each in node.args:
            if isinstance(each, ast.Starred):
                elements = self.unpacked(each)
                arguments.positional += [Argument(element, each) for element in elements]
            else:
                arguments.positional.append(Argument(self.expression(each), each))
        for keyword in node.keywords:
            if keyword.arg is None:
                with self.at(keyword.value):
                    self.refuse("** in a call", "write the keywords out")
            value = self.expression(keyword.value)
            arguments.keywords[keyword.arg] = Argument(value, keyword)
        callee = in_kernel(callee)
        if isinstance(callee, BoundMethod):
            receiver = node.func.value if isinstance(node.func, ast.Attribute) else node.func
            arguments.positional.insert(0, Argument(callee.receiver, receiver))
            callee = callee.function
        return callee, arguments

    def invoke(self, node: ast.Call, callee: Any, arguments: Arguments) -> Any:
        """The result of a call. Raises E0111 for what kernels can't call."""
        if isinstance(callee, DeviceFunction):
            return self._inline(callee, arguments)
        if isinstance(callee, ConstexprFunction):
            return wrap(callee(*arguments.values, **arguments.keyword_values))
        if isinstance(callee, constexpr) and isinstance(unwrap(callee), FunctionType):
            return wrap(unwrap(callee)(*arguments.values, **arguments.keyword_values))
        is_surface = getattr(callee, "is_surface", False) is True and callable(callee)
        if is_surface or _is_builtin_rule(callee):
            return self._surface(node, callee, arguments)
        if isinstance(callee, type):
            return self._construct(node, callee, arguments)
        if _runs_on_constants(callee):
            return self._on_constants(node, callee, arguments)
        self._refuse_call(node, callee)

    def _inline(self, function: DeviceFunction, arguments: Arguments) -> Any:
        bound = arguments.bind(function.__name__, function.python_signature)
        # Within the library's functions every place is that of the call.
        with self.pointing(nodes_of(bound) if in_library(function.__module__) else {}):
            return self.tracer.inline(function, bound)

    def _surface(self, node: ast.Call, function: Callable[..., Any], arguments: Arguments) -> Any:
        of_python = _is_builtin_rule(function) or isinstance(function, type)
        written = ast.unparse(node.func).rpartition(".")[2]
        name = written if of_python else function.__name__
        bound = arguments.bind(name, signature_of(function))
        with self.pointing(nodes_of(bound)):
            return wrap(function(*arguments.values, **arguments.keyword_values))

    def _construct(self, node: ast.Call, cls: type, arguments: Arguments) -> Any:
        if cls is constexpr:
            return self._known_argument(arguments)
        if issubclass(cls, Aggregate):
            make: Callable[..., Any] = cls
            with self.pointing(nodes_of(arguments.bind(cls.__name__, signature_of(make)))):
                return make(*arguments.values, **arguments.keyword_values)
        if issubclass(cls, TileTuple):
            make = cast(Callable[..., Any], cls)
            bound = arguments.bind("tl.tuple", signature_of(make))
            return self._tuple(bound["values"]) if "values" in bound else TileTuple()
        fields = getattr(cls, "_fields", None)
        if issubclass(cls, tuple) and fields is not None:
            signature = signature_of(cls)
            bound = arguments.bind(cls.__name__, signature)
            defaults = signature.parameters
            values = (
                bound[name].value if name in bound else wrap(defaults[name].default)
                for name in fields
            )
            return TileTuple(values, fields)
        if issubclass(cls, Type) or isinstance(cls, EnumMeta):
            return self._on_constants(node, cls, arguments)
        self._refuse_call(node, cls)

    def _tuple(self, argument: Argument) -> TileTuple:
        held = elements(argument.value)
        if held is None:
            with self.at(argument.node or self.frame.node):
                got = describe(argument.value)
                raise error("E0204", op="tl.tuple", expected="a tuple", got=got, hint="")
        return TileTuple(map(wrap, held), getattr(argument.value, "fields", None))

    def _known_argument(self, arguments: Arguments) -> Any:
        bound = arguments.bind("constexpr", signature_of(constexpr))
        argument = bound["value"]
        value = folded(argument.value)
        if not is_known(value):
            with self.pointing(nodes_of(bound)):
                raise error(
                    "E0205",
                    op="tl.constexpr",
                    name="value",
                    got=describe(argument.value),
                    argument="value",
                )
        return wrap(value)

    def _on_constants(
        self, node: ast.Call, function: Callable[..., Any], arguments: Arguments
    ) -> Any:
        """Python's own result on known values. Raises E0204 for a tile among them."""
        for argument in (*arguments.positional, *arguments.keywords.values()):
            if not is_known(argument.value):
                with self.at(argument.node or node):
                    raise error(
                        "E0204",
                        op=ast.unparse(node.func),
                        expected="compile-time values",
                        got=describe(argument.value),
                        hint=counterpart(ast.unparse(node.func)),
                    )
        args = map(plain, arguments.values)
        keywords = {name: plain(value) for name, value in arguments.keyword_values.items()}
        return wrap(function(*args, **keywords))

    def _refuse_call(self, node: ast.Call, callee: Any) -> NoReturn:
        name = ast.unparse(node.func)
        hint = counterpart(name)
        if not hint and isinstance(callee, (FunctionType, MethodType)):
            hint = HELPER
        elif isinstance(callee, Type):
            hint = f"convert a tile by x.to({name})"
        with self.at(node.func):
            raise error("E0111", name=name, hint=hint)


def _is_builtin_rule(callee: Any) -> bool:
    return getattr(callee, "__module__", None) == in_kernel.__module__


def _runs_on_constants(callee: Any) -> bool:
    """Whether that is a plain function of ``math`` or of the library, or a constant's method."""
    if isinstance(callee, BuiltinFunctionType) and callee.__module__ == math.__name__:
        return True
    if isinstance(callee, FunctionType) and in_library(callee.__module__):
        return True
    owner = getattr(callee, "__self__", None)
    return isinstance(owner, (bool, int, float, str, tuple, Type, TileTuple, constexpr))
