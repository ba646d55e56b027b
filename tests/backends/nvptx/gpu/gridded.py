"""Elementwise cases of many elements as a grid of programs, the last of them with a tail."""

from __future__ import annotations

from collections.abc import Sequence

from tests.backends.cpu.one_op import Writer

from tritium.backends.common.rules import COMMON
from tritium.ir.core import Function, Value
from tritium.ir.dtypes import Type, int32
from tritium.ir.types import PointerType
from tritium.ops import arith, compare, control, create, memory, program
from tritium.ops.spec import Case

MANY = 2048
BLOCK = 1024
"""Elements of a program."""


def is_large(case: Case) -> bool:
    """Whether a case has many elements and computes each from those in its place."""
    shapes = {sample.type.shape for sample in case.samples()}
    shapes |= {type.shape for type in case.result_types()}
    if case.op not in COMMON or len(shapes) != 1:
        return False
    (shape,) = shapes
    return len(shape) == 1 and shape[0] > MANY


def extent(case: Case) -> int:
    """Elements of a large case."""
    found: int = case.samples()[0].type.shape[0]
    return found


def grid(cases: Sequence[Case]) -> tuple[int, int, int]:
    """Of a kernel of such cases; programs behind the end of a case do nothing in it."""
    return -(-max(map(extent, cases)) // BLOCK), 1, 1


def build(cases: Sequence[Case], divisibility: int) -> Function:
    """As ``one_op.build``: the operands of each case are parameters, then its results."""
    types: list[Type] = []
    for case in cases:
        types += [sample.type.scalar for sample in case.samples()]
        types += [type.scalar for type in case.result_types()]
    params = [(f"p{n}", PointerType(scalar), divisibility) for n, scalar in enumerate(types)]
    function = Function("gridded", params)
    emit = Writer(function.body.block)
    given = iter(function.body.args)

    def splat(value: Value) -> Value:
        return emit(create.Splat, x=value, shape=(BLOCK,))

    def number(value: int) -> Value:
        return emit(create.Constant, value=value, dtype=int32)

    first = emit(arith.Mul, x=emit(program.ProgramId, axis=0), y=number(BLOCK))
    lanes = emit(create.Arange, start=0, end=BLOCK)
    places = emit(arith.Add, x=splat(first), y=lanes)
    for case in cases:
        mask = emit(compare.Lt, x=places, y=splat(number(extent(case))))

        def place(param: Value) -> Value:
            return emit(memory.Offset, pointer=splat(param), offset=places)

        operands = [
            emit(memory.Load, pointer=place(next(given)), mask=mask) for _ in case.samples()
        ]
        op = case.build(operands)
        op.make_results()
        emit.block.append(op)
        for result in op.results:
            emit(memory.Store, pointer=place(next(given)), value=result, mask=mask)
    emit(control.Return)
    return function
