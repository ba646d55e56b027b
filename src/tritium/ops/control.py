"""Structured control flow: loops, branches, and the terminators of their regions."""

from __future__ import annotations

from typing import Any

from tritium.diagnostics import error
from tritium.ir.core import Op, Region, Value, attribute, op, operand, operands, region
from tritium.ir.dtypes import DType, Type, int1


@op("control.yield", terminator=True)
class Yield(Op):
    """Ends a region and hands ``values`` to the operation around it."""

    values: tuple[Value, ...] = operands()

    def infer(self) -> None:
        return None

    def evaluate(self, machine: Any, values: tuple[Any, ...]) -> tuple[Any, ...]:
        return values


@op("control.return", terminator=True)
class Return(Op):
    """Ends the kernel."""

    def infer(self) -> None:
        return None

    def evaluate(self, machine: Any) -> tuple[Any, ...]:
        return ()


def check_yield(owner: Op, body: Region, types: tuple[Type, ...], what: str) -> None:
    """The region must yield exactly ``types``. Raises E0301."""
    end = body.block.terminator
    if not isinstance(end, Yield):
        raise error("E0301", text=f"{owner.mnemonic}: its {what} must end with control.yield")
    got = tuple(value.type for value in end.values)
    if got != types:
        raise error("E0301", text=f"{owner.mnemonic}: its {what} yields {got}, expected {types}")


@op("control.if")
class If(Op):
    """Runs one of two regions, by a scalar int1; the results are what that region yields."""

    condition: Value = operand()
    then: Region = region()
    otherwise: Region = region()

    def infer(self) -> tuple[Type, ...]:
        if self.condition.type is not int1:
            raise error("E0403", got=self.condition.type, argument="condition")
        end = self.then.block.terminator
        types = tuple(value.type for value in end.values) if isinstance(end, Yield) else ()
        check_yield(self, self.then, types, "then region")
        check_yield(self, self.otherwise, types, "else region")
        return types

    def evaluate(self, machine: Any, condition: Any) -> tuple[Any, ...]:
        taken: tuple[Any, ...] = machine.run(self.then if condition else self.otherwise, ())
        return taken


def iterations(lower: int, upper: int, step: int) -> range:
    """The values of a loop's variable: Python's, none where ``step`` is 0."""
    return range(lower, upper, step) if step else range(0)


@op("control.for")
class For(Op):
    """Counts ``iv`` from ``lower`` while below ``upper`` by ``step``, carrying values along.

    The body's arguments are ``iv`` and the carried values; it yields their next values. Bounds,
    step and ``iv`` have one integer type. ``iv`` takes Python's values: a negative ``step`` counts
    down while above ``upper``, and nothing wraps; a ``step`` of 0 runs no iteration. The remaining
    attributes are Triton's scheduling hints, without any effect on results.
    """

    lower: Value = operand()
    upper: Value = operand()
    step: Value = operand()
    init: tuple[Value, ...] = operands()
    num_stages: int | None = attribute(None)
    unroll: int | None = attribute(None)
    hints: tuple[str, ...] = attribute(())
    body: Region = region()

    def infer(self) -> tuple[Type, ...]:
        bound = self.lower.type
        if not (isinstance(bound, DType) and bound.is_int()):
            raise error("E0405", got=bound, argument="lower")
        for value in (self.upper, self.step, self.body.args[0]):
            if value.type is not bound:
                raise error("E0405", got=f"{bound} and {value.type}", argument="upper")
        types = tuple(value.type for value in self.init)
        if tuple(arg.type for arg in self.body.args[1:]) != types:
            raise error("E0301", text="control.for: body arguments and init differ in type")
        check_yield(self, self.body, types, "body")
        return types

    def evaluate(
        self, machine: Any, lower: Any, upper: Any, step: Any, init: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        kind = self.lower.type.numpy
        carried = init
        for iv in iterations(int(lower), int(upper), int(step)):
            carried = machine.run(self.body, (kind.type(iv), *carried))
        return carried


@op("control.while")
class While(Op):
    """Repeats ``body`` as long as ``condition`` yields true, carrying values along.

    Both regions take the carried values; ``condition`` yields one scalar int1, ``body`` the next
    values.
    """

    init: tuple[Value, ...] = operands()
    condition: Region = region()
    body: Region = region()

    def infer(self) -> tuple[Type, ...]:
        types = tuple(value.type for value in self.init)
        for inner in (self.condition, self.body):
            if tuple(arg.type for arg in inner.args) != types:
                raise error("E0301", text="control.while: region arguments and init differ in type")
        check_yield(self, self.condition, (int1,), "condition")
        check_yield(self, self.body, types, "body")
        return types

    def evaluate(self, machine: Any, init: tuple[Any, ...]) -> tuple[Any, ...]:
        carried, execution = init, object()
        while machine.run(self.condition, carried)[0]:
            machine.again(self, execution, carried)
            carried = machine.run(self.body, carried)
        return carried
