"""Kernels of generated cases: operands loaded from arguments, one operation, results stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from tests.backends.three_way import address, compiled, execute
from tests.ops.harness import case_buffers, operand_data

from tritium.ir.core import Block, Function, Value
from tritium.ir.dtypes import Type, int32
from tritium.ir.types import PointerType
from tritium.ops import arith, control, create, memory, shape
from tritium.ops.spec import Array, Case
from tritium.passes import run_pipeline


class Writer:
    """Appends operations to a block."""

    def __init__(self, block: Block) -> None:
        self.block = block

    def __call__(self, cls: Any, **fields: Any) -> Value:
        op = cls(**fields)
        op.make_results()
        self.block.append(op)
        return op.results[0] if op.results else None

    def offsets(self, extents: tuple[int, ...]) -> Value:
        """Row-major positions of a tile."""
        total: Value | None = None
        step = 1
        for axis in reversed(range(len(extents))):
            made = self(create.Arange, start=0, end=extents[axis])
            for other in range(len(extents)):
                if other != axis:
                    made = self(shape.ExpandDims, x=made, axis=other)
            factor = self(create.Constant, value=step, dtype=int32)
            factor = self(create.Splat, x=factor, shape=made.shape)
            made = self(arith.Mul, x=made, y=factor)
            if made.shape != extents:
                made = self(shape.Broadcast, x=made, shape=extents)
            total = made if total is None else self(arith.Add, x=total, y=made)
            step *= extents[axis]
        assert total is not None
        return total

    def pointer(self, param: Value, extents: tuple[int, ...]) -> Value:
        if not extents:
            return param
        base = self(create.Splat, x=param, shape=extents)
        return self(memory.Offset, pointer=base, offset=self.offsets(extents))


def build(cases: Sequence[Case], divisibility: int = 1) -> Function:
    """All cases one after the other; parameters: the operands of each, then its results.

    ``divisibility`` is what is known of every address, in bytes.
    """
    types: list[Type] = []
    for case in cases:
        types += [sample.type.scalar for sample in case.samples()]
        types += [type.scalar for type in case.result_types()]
    params = [
        (f"p{number}", PointerType(scalar), divisibility) for number, scalar in enumerate(types)
    ]
    function = Function("cases", params)
    emit = Writer(function.body.block)
    given = iter(function.body.args)
    for case in cases:
        operands = [
            emit(memory.Load, pointer=emit.pointer(next(given), sample.type.shape))
            for sample in case.samples()
        ]
        op = case.build(operands)
        op.make_results()
        emit.block.append(op)
        for result in op.results:
            emit(memory.Store, pointer=emit.pointer(next(given), result.shape), value=result)
    emit(control.Return)
    return function


def run(cases: Sequence[Case], cpu: str | None) -> list[list[Array]]:
    """For each case its results, then the final contents of its buffers."""
    function = build(cases)
    # The back end sees no hints.
    run_pipeline(function, "forget")
    kernel, library = compiled(function, cpu, False, False)
    arrays: list[Array] = []
    outcomes: list[list[Array]] = []
    for case in cases:
        buffers = case_buffers(case)
        arrays += [np.array(data, order="C") for data in operand_data(case, buffers)]
        results = [np.zeros(type.shape, type.scalar.numpy) for type in case.result_types()]
        arrays += results
        outcomes.append([*results, *buffers.values()])
    mine = {param.name: array for param, array in zip(function.params, arrays)}
    assert all(address(array) for array in arrays)
    execute(kernel, library, function, mine, (1,))
    return outcomes
