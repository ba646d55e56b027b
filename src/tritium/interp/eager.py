"""Eager mode: a kernel runs as Python, each operation is evaluated at once.

What runs is the rewritten copy of the user's function (``rewrite``), so frames, lines and columns
are the user's own; values are ``ConcreteValue`` objects.
"""

from __future__ import annotations

import bdb
import inspect
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

import numpy as np

from tritium.diagnostics import InternalError, TritiumError, error
from tritium.ir.core import READS, ConcreteValue, Op, Value
from tritium.ir.dtypes import Array, Type
from tritium.ir.tracer import tracing
from tritium.ops.callable import DeviceFunction
from tritium.ops.constants import to_tile
from tritium.ops.constexpr import unwrap
from tritium.ops.create import folds
from tritium.ops.scalars import ScalarRule
from tritium.ops.tile import Tile
from tritium.ops.tuples import several

from .arguments import Argument, surface_value
from .frames import call_program, current_loc, loc_of_traceback
from .grid import Baton, Index
from .machine import Client, Launch, Machine, conform_all
from .memory import Memory, Range
from .rewrite import rewritten
from .waiting import state_of


class EagerTracer:
    """Evaluates every operation when it is made."""

    eager = True
    quiet = False
    checks = True
    over_lanes = False
    """Whether operations on scalars are carried out for many elements at once."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine

    def loc(self) -> None:
        """Not known in advance: found in the frames when a message needs it."""

    def emit(self, op: Op) -> Sequence[Value]:
        """Evaluate ``op``; returns its results. Raises the coded errors of its rules."""
        self.machine.baton.check()
        polls = self.machine.polls
        types = op.result_types()
        results = [ConcreteValue(type, None) for type in types]
        op.results = [*results]
        arrays = [_data(group) for group in op.operand_groups()]
        with np.errstate(all="ignore"):
            outcome = op.evaluate(self.machine, *arrays)
        fixed = len(types) == 1 and not types[0].shape and folds(op)
        fixed = fixed and all(getattr(each, "fixed", False) for each in op.operands)
        polled = self.machine.polls != polls
        polled = polled or any(getattr(each, "polled", False) for each in op.operands)
        polled = polled or (self.machine.kept and bool(op.effects & READS))
        for value, array in zip(results, conform_all(op, types, outcome, self.over_lanes)):
            value.data = array
            value.fixed = fixed
            value.polled = polled
        return results

    def call(self, function: DeviceFunction, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Run the rewritten copy of a device function; constants stay Python's."""
        given = {name: unwrap(value) for name, value in kwargs.items()}
        return rewritten(function.fn)(*map(unwrap, args), **given)

    def region(
        self, function: Any, arg_types: Sequence[Type], rule: ScalarRule
    ) -> Callable[..., tuple[Array, ...]]:
        """``function`` of scalars as a callable over arrays of any shape, one for each type.

        It returns a tuple of arrays in storage form, and raises what ``rule`` refuses, at the
        operation that the function belongs to.
        """
        rule.check_function(function)
        inner = _ScalarTracer(self.machine, rule)

        def run(*arrays: Array) -> tuple[Array, ...]:
            tiles = [
                Tile(ConcreteValue(type.scalar, array)) for type, array in zip(arg_types, arrays)
            ]
            try:
                with tracing(inner):
                    parts = [to_tile(part, rule.function) for part in several(function(*tiles))]
            except TritiumError as problem:
                if problem is inner.refusal:
                    problem.at(current_loc())
                raise
            return tuple(part.data for part in parts)

        return run

    def decides(self, value: Value) -> None:
        """A program may do what known values decide; what it polled may make it wait."""
        if getattr(value, "polled", False):
            self.machine.decided = True

    def again(self, frame: FrameType, execution: object) -> None:
        """A loop of the kernel's ``frame`` begins another pass of an ``execution`` of it."""
        self.machine.turn(lambda: state_of(frame, execution))

    def tells(self, verb: str) -> None:
        """A program may print and assert by Python itself."""


class _ScalarTracer(EagerTracer):
    """Evaluates the operations of a function of scalars, and refuses those that aren't for it."""

    over_lanes = True

    def __init__(self, machine: Machine, rule: ScalarRule) -> None:
        super().__init__(machine)
        self.rule = rule
        self.refusal: TritiumError | None = None

    def emit(self, op: Op) -> Sequence[Value]:
        with self._refusing():
            self.rule.check(op)
        return super().emit(op)

    def decides(self, value: Value) -> None:
        with self._refusing():
            self.rule.decides()

    def tells(self, verb: str) -> None:
        with self._refusing():
            raise self.rule.tells(verb)

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        try:
            yield
        except TritiumError as problem:
            self.refusal = problem
            raise


def _data(group: Value | tuple[Value, ...] | None) -> Any:
    if group is None:
        return None
    if isinstance(group, tuple):
        return tuple(_data(value) for value in group)
    if not isinstance(group, ConcreteValue):
        raise InternalError(f"{group!r} has no value in eager mode")
    return group.data


class EagerLaunch(Launch):
    """A kernel together with the arguments of one launch, to be run step by step as Python.

    ``arguments`` gives every parameter by name. ``known_ranges`` is the memory of the arguments;
    what pointers reach outside of it is an error if ``closed``, else asked of the system first.
    """

    def __init__(
        self,
        function: DeviceFunction,
        arguments: Mapping[str, Argument],
        grid: Sequence[int],
        known_ranges: Iterable[Range | tuple[int, int]] = (),
        *,
        closed: bool = False,
        clients: Sequence[Client] = (),
    ) -> None:
        super().__init__(grid, clients)
        self.function = function
        self._memory = Memory(known_ranges, closed=closed)
        values = {name: surface_value(argument) for name, argument in arguments.items()}
        self._call = rewritten(function.fn)
        self._args = inspect.BoundArguments(function.python_signature, OrderedDict(values))

    def machine(self, program: Index, baton: Baton) -> Machine:
        name = self.function.__name__
        return Machine(program, self.grid, self._memory, baton, name, self.clients)

    def body(self, machine: Machine) -> None:
        with tracing(EagerTracer(machine)):
            run_kernel(self._call, self._args.args, self._args.kwargs)


def run_kernel(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> None:
    """Run one program.

    A coded error gets its place. Any other exception of the user's code becomes an
    ``InterpreterError`` (E0701) that is chained to it and has its traceback, so that a post-mortem
    debugger starts in the user's frame. A debugger's order to quit passes as it is.
    """
    try:
        call_program(function, args, kwargs)
    except TritiumError as problem:
        problem.at(loc_of_traceback(problem.__traceback__))
        raise
    except (bdb.BdbQuit, InternalError):
        raise
    except Exception as problem:
        wrapped = error(
            "E0701",
            error=type(problem).__name__,
            text=str(problem) or "no message",
            hint="",
            loc=loc_of_traceback(problem.__traceback__),
        )
        raise wrapped.with_traceback(problem.__traceback__) from problem
