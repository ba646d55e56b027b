"""The front end as a ``Tracer``: surface functions hand it their operations to be recorded."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

from tritium import knobs
from tritium.diagnostics import Loc, error
from tritium.ir.core import Block, Op, Region, Value
from tritium.ir.dtypes import Type
from tritium.ops.callable import DeviceFunction
from tritium.ops.constants import to_tile
from tritium.ops.constexpr import constexpr
from tritium.ops.control import Yield
from tritium.ops.emit import emit
from tritium.ops.python import is_known, wrap
from tritium.ops.scalars import ScalarRule
from tritium.ops.source import capture
from tritium.ops.tile import Tile
from tritium.ops.tuples import Structure, TileTuple, several

from .arguments import Argument, Arguments
from .base import Frame, Returned
from .dependencies import Dependencies
from .fingerprint import in_library
from .names import Binding, Scope
from .walker import Walker

MAX_CALL_DEPTH = 100
"""Most calls of kernel functions inside one another; recursion over constants included."""


@dataclass(frozen=True)
class TraceOptions:
    """What besides the arguments decides what is recorded.

    ``debug`` keeps ``assert`` statements, ``quiet`` leaves out what is printed at compile time and
    warnings.
    """

    debug: bool = False
    quiet: bool = False


class CompileTracer:
    """Appends operations to ``block``; inlines calls of kernel functions."""

    eager = False

    def __init__(self, block: Block, options: TraceOptions | None = None) -> None:
        self.block = block
        self.options = options or TraceOptions()
        self.quiet = self.options.quiet
        self.checks = self.options.debug
        self.dependencies = Dependencies()
        self.frames: list[Frame] = []
        self.trials = 0
        """Loop bodies around the current place that are visited to find what they carry."""
        self.shows_library: bool = knobs.compilation.front_end_debugging
        self._active_calls: list[Any] = []

    # ---- the protocol ----------------------------------------------------------------------------

    def loc(self) -> Loc | None:
        """The expression or statement that is being visited, with its chain of calls."""
        return self.frames[-1].loc() if self.frames else None

    def emit(self, op: Op) -> Sequence[Value]:
        """Append ``op`` to the current block, once ``infer`` accepts it."""
        results = op.make_results()
        self.block.append(op)
        return results

    def call(
        self, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Inline a kernel function called by a surface function."""
        arguments = Arguments(
            [Argument(value) for value in args],
            {name: Argument(value) for name, value in (kwargs or {}).items()},
        )
        return self.inline(function, arguments.bind(function.__name__, function.python_signature))

    def region(self, function: Any, arg_types: Sequence[Type], rule: ScalarRule) -> Region:
        """``function`` over scalars as a region that yields what it returns."""
        rule.check_function(function)
        body = Block(arg_types)
        with self.inside(body):
            args = [Tile(value) for value in body.args]
            if isinstance(function, DeviceFunction):
                result = self.call(function, args)
            else:
                result = function(*args)
            values = [to_tile(part, rule.function) for part in several(result)]
            emit(Yield, values=tuple(values))
        return Region(body)

    def decides(self, value: Value) -> None:
        """Nothing is known while a kernel is compiled."""

    def again(self, frame: FrameType, execution: object) -> None:
        """No loop runs while a kernel is compiled."""

    def tells(self, verb: str) -> None:
        """Python neither prints nor asserts while a kernel is compiled: operations do."""

    # ---- blocks and calls ------------------------------------------------------------------------

    @contextmanager
    def inside(self, block: Block) -> Iterator[None]:
        """Operations go to ``block``."""
        before = self.block
        self.block = block
        try:
            yield
        finally:
            self.block = before

    def inline(self, function: DeviceFunction, bound: Mapping[str, Any]) -> Any:
        """The result of a call with bound arguments, its operations recorded in the current block.

        Raises E0116 for a function that calls itself with arguments of the same types and
        constants, or too deeply.
        """
        values: dict[str, Any] = {}
        for name, parameter in function.python_signature.parameters.items():
            if parameter.kind is parameter.VAR_KEYWORD:
                raise error("E0110", construct=f"**{name}", hint="name each parameter")
            given = bound.get(name)
            values[name] = wrap(parameter.default) if given is None else _parameter_value(given)
        key = (id(function), tuple(map(_key, values.values())))
        if key in self._active_calls or len(self._active_calls) >= MAX_CALL_DEPTH:
            raise error("E0116", name=function.__name__)
        self._active_calls.append(key)
        try:
            return self.run(function, values, self.loc()).value
        finally:
            self._active_calls.pop()

    def run(
        self, function: DeviceFunction, values: Mapping[str, Any], call_site: Loc | None
    ) -> Returned:
        """Visit the body of ``function`` with these values of its parameters."""
        source = capture(function.fn)
        caller = self.frames[-1].reads if self.frames else None
        reads = self.dependencies.enter(function, caller)
        frame = Frame(function, source, reads, {}, call_site, source.tree, not self.frames)
        frame.hidden = in_library(function.__module__) and not self.shows_library
        frame.scope = _scope(frame, values)
        self.frames.append(frame)
        try:
            return Walker(self, frame).function_body()
        finally:
            self.frames.pop()


def _scope(frame: Frame, values: Mapping[str, Any]) -> Scope:
    given = frame.source.tree.args
    nodes: dict[str, ast.AST] = {
        each.arg: each
        for each in (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg)
        if each is not None
    }
    declared = frame.function.constexpr_names
    return {
        name: Binding(value, frame.loc(nodes[name]), name in declared and is_known(value))
        for name, value in values.items()
    }


def _parameter_value(argument: Argument | list[Argument]) -> Any:
    if isinstance(argument, list):
        return TileTuple(wrap(each.value) for each in argument)
    return wrap(argument.value)


def _key(value: Any) -> Any:
    """What makes two calls compile to the same code: types of tiles, known values."""
    if isinstance(value, Tile):
        return value.type
    if isinstance(value, Structure):
        return (value._kind(), *map(_key, value._parts()))
    if isinstance(value, constexpr):
        return (type(value.value), repr(value.value))
    return id(value)
