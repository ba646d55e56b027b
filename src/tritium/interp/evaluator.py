"""Runs compiled tile IR by the operations' reference rules.

Where eager mode and this evaluator differ, the front end (or a pass) is at fault; where native code
and this evaluator differ, the back end is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tritium.diagnostics import TritiumError
from tritium.ir.core import Block, Function, Op, Region, Value
from tritium.ir.dtypes import Array, Type
from tritium.ops.control import While
from tritium.passes.waiting import waits_in

from .arguments import parameter_data
from .grid import Baton, Index
from .machine import Client, Launch, Machine, conform_all
from .memory import Memory, Range


class _Step(NamedTuple):
    """One operation: what it reads, makes, and who is read here for the last time."""

    op: Op
    operands: list[Value | tuple[Value, ...] | None]
    results: list[Value]
    types: list[Type]
    dead: list[Value]


class Evaluator(Launch):
    """A kernel in tile IR together with the arguments of one launch.

    ``args`` follow the function's parameters: a pointer is an array (its first element), a
    ``Pointer`` or a byte address; a scalar is a number or a ``Scalar``. ``known_ranges`` adds
    memory that pointers may reach without being checked.
    """

    def __init__(
        self,
        function: Function,
        args: Sequence[Any],
        grid: Sequence[int],
        known_ranges: Iterable[Range | tuple[int, int]] = (),
        *,
        clients: Sequence[Client] = (),
    ) -> None:
        if len(args) != len(function.params):
            raise TypeError(f"{function.name} takes {len(function.params)} arguments")
        super().__init__(grid, clients)
        self.function = function
        given = [parameter_data(param.type, arg) for param, arg in zip(function.params, args)]
        self._args = [data for data, _ in given]
        self._memory = Memory([*known_ranges, *(owned for _, owned in given if owned is not None)])
        self._plans: dict[Block, list[_Step]] = {}
        self._waits: dict[Op, bool] = {}

    def machine(self, program: Index, baton: Baton) -> Machine:
        name = self.function.name
        return _RegionMachine(self, program, self.grid, self._memory, baton, name, self.clients)

    def body(self, machine: Machine) -> None:
        with np.errstate(all="ignore"):
            machine.run(self.function.body, self._args)

    def waits(self, loop: Op) -> bool:
        """Whether it is a loop that may wait for what other programs write."""
        known = self._waits.get(loop)
        if known is None:
            known = self._waits[loop] = isinstance(loop, While) and waits_in(loop)
        return known

    def plan(self, block: Block) -> list[_Step]:
        """The operations of a block, prepared."""
        steps = self._plans.get(block)
        if steps is None:
            steps = self._plans[block] = _prepare(block)
        return steps


class _RegionMachine(Machine):
    """A program whose operations have regions of IR."""

    __slots__ = ("evaluator", "values")

    def __init__(self, evaluator: Evaluator, *state: Any) -> None:
        super().__init__(*state)
        self.evaluator = evaluator
        self.values: dict[Value, Array] = {}

    def run(self, region: Region, args: Sequence[Any]) -> tuple[Any, ...]:
        """Evaluate a region's operations on arrays; returns what its terminator hands on.

        The arguments of a combine function are scalars by type and get arrays of any one shape.
        """
        values = self.values
        over_lanes = False
        for value, data in zip(region.args, args):
            values[value] = np.asarray(data)
            over_lanes |= values[value].shape != value.type.shape
        for step in self.evaluator.plan(region.block):
            self.baton.check()
            arrays = [self._operand(each) for each in step.operands]
            try:
                outcome = step.op.evaluate(self, *arrays)
            except TritiumError as problem:
                problem.at(step.op.loc)
                raise
            if step.op.terminator:
                handed: tuple[Any, ...] = outcome
                return handed
            arrays = conform_all(step.op, step.types, outcome, over_lanes)
            values.update(zip(step.results, arrays))
            for value in step.dead:
                del values[value]
        return ()

    def again(self, loop: Op, execution: object, carried: tuple[Any, ...]) -> None:
        """A loop begins another pass: where it is one that waits, others get their turn."""
        if self.evaluator.waits(loop):
            # Whatever else the program knows stays as it is until this execution ends.
            self.decided = True
            self.turn(lambda: (execution, *(np.asarray(each).tobytes() for each in carried)))

    def _operand(self, group: Value | tuple[Value, ...] | None) -> Any:
        if group is None:
            return None
        if isinstance(group, tuple):
            return tuple(self.values[value] for value in group)
        return self.values[group]


def _prepare(block: Block) -> list[_Step]:
    last: dict[Value, int] = {}
    for place, op in enumerate(block.ops):
        for value in (*op.operands, *op.results):
            last[value] = place
        for region in op.regions:
            for inner in region.walk():
                for value in inner.operands:
                    last[value] = place
    # What comes from outside of the block is for that block to drop.
    mine = {*block.args, *(value for op in block.ops for value in op.results)}
    dead: list[list[Value]] = [[] for _ in block.ops]
    for value, place in last.items():
        if value in mine:
            dead[place].append(value)
    return [
        _Step(op, op.operand_groups(), op.results, [value.type for value in op.results], gone)
        for op, gone in zip(block.ops, dead)
    ]
