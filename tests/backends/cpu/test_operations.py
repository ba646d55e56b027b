"""Every operation that the nest generator writes itself, in machine code, against `evaluate`.

The generated cases of these operations, several in a kernel: operands are loaded from memory of
their own, results stored to it. The rules of the other operations are tested in `test_rules`.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from tests.backends.three_way import execute, narrow_cpu
from tests.ops.harness import (
    case_buffers,
    disagreement,
    evaluate_case,
    load_operations,
    operand_data,
)

from tritium.backends import llvm
from tritium.backends.cpu import STRUCTURAL, compile_kernel
from tritium.ir import REGISTRY, Function, Op, PointerType, Type, Value, verify
from tritium.ops.control import Return
from tritium.ops.create import Arange, Splat
from tritium.ops.memory import Load, Offset, Store
from tritium.ops.shape import Reshape
from tritium.ops.spec import Array, Case, agreement_of, cases_of

load_operations()
MNEMONICS = sorted(name for name in STRUCTURAL if not name.startswith("control."))
CASES_A_KERNEL = 16


def batches(mnemonic: str) -> Iterator[list[Case]]:
    cases = cases_of(REGISTRY[mnemonic])
    for start in range(0, len(cases), CASES_A_KERNEL):
        yield cases[start : start + CASES_A_KERNEL]


class Kernel:
    """A kernel under construction; parameters are pointers to one array each."""

    def __init__(self, types: Sequence[Type]) -> None:
        params = [(f"p{number}", PointerType(each.scalar), 1) for number, each in enumerate(types)]
        self.function = Function("cases", params)
        self.params = iter(self.function.params)

    def append(self, op: Op) -> Op:
        op.make_results()
        self.function.body.block.append(op)
        return op

    def place(self, shape: tuple[int, ...]) -> Value:
        """Pointers to the elements of the next parameter, row by row."""
        pointer = next(self.params).value
        if not shape:
            return pointer
        count = int(np.prod(shape))
        offsets = self.append(Arange(start=0, end=count)).result
        if len(shape) > 1:
            offsets = self.append(Reshape(x=offsets, shape=shape)).result
        base = self.append(Splat(x=pointer, shape=shape)).result
        return self.append(Offset(pointer=base, offset=offsets)).result

    def add(self, case: Case) -> None:
        """Load a case's operands, carry it out, store its results."""
        operands = [
            self.append(Load(pointer=self.place(each.type.shape))).result for each in case.samples()
        ]
        for result in self.append(case.build(operands)).results:
            self.append(Store(pointer=self.place(result.shape), value=result))


def types_of(case: Case) -> list[Type]:
    """Of the arrays a case needs: its operands, its results."""
    return [*(each.type for each in case.samples()), *case.result_types()]


def run(cases: Sequence[Case], cpu: str | None) -> list[list[Array]]:
    """For each case the results, then the final contents of its buffers."""
    kernel = Kernel([type for case in cases for type in types_of(case)])
    arrays: dict[str, Any] = {}
    outcomes: list[list[Array]] = []
    for case in cases:
        kernel.add(case)
        buffers = case_buffers(case)
        results = [np.zeros(each.shape, each.scalar.numpy) for each in case.result_types()]
        given = [np.array(each, order="C") for each in operand_data(case, buffers)]
        for array in (*given, *results):
            arrays[f"p{len(arrays)}"] = array
        outcomes.append([*results, *buffers.values()])
    kernel.append(Return())
    verify(kernel.function)
    made = compile_kernel(kernel.function, llvm.host_target(cpu), disjoint=True)
    library = llvm.link(made.object, [made.entry])
    execute(made, library, kernel.function, arrays, (1,))
    return outcomes


@functools.cache
def expected(mnemonic: str) -> list[list[Array]]:
    return [evaluate_case(case) for case in cases_of(REGISTRY[mnemonic])]


@pytest.mark.parametrize("cpu", ["native", "narrow"])
@pytest.mark.parametrize("mnemonic", MNEMONICS)
def test_cases(mnemonic: str, cpu: str) -> None:
    cls = REGISTRY[mnemonic]
    got = [
        each
        for batch in batches(mnemonic)
        for each in run(batch, narrow_cpu() if cpu == "narrow" else None)
    ]
    assert got
    for case, results, wanted in zip(cases_of(cls), got, expected(mnemonic), strict=True):
        types = case.result_types()
        for number, (have, want) in enumerate(zip(results, wanted, strict=True)):
            if number >= len(types):
                assert have.tobytes() == want.tobytes(), case.label
                continue
            scalar = types[number].scalar
            magnitude = None
            if case.magnitude is not None:
                magnitude = case.magnitude(*(each.data for each in case.samples()))
            promised = agreement_of(cls, "cpu", scalar)
            wrong = disagreement(have, want, promised, scalar, magnitude, case.accumulator)
            assert wrong is None, f"{case.label}: {wrong}"
