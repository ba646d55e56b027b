"""The random tile programs of tests/fuzz as kernels of a GPU: compiled by seed, run on an image."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from tests.backends.nvptx.gpu.image import LaunchImage
from tests.backends.three_way import address, overlapping, run_eager, same, storage_of
from tests.fuzz.generate import Program, generate
from tests.ops.harness import load_operations

from tritium import passes
from tritium.frontend import ArrayArgument, parameters, specialize_arg, trace
from tritium.ir.core import Function, Op, Region
from tritium.ir.dtypes import from_numpy
from tritium.ops.create import Constant
from tritium.ops.spec import Exact, agreement_of
from tritium.passes.origins import alias_pairs

WARPS = (1, 2, 4, 8)


def function_of(program: Program) -> Function:
    """In tile IR after the passes; every array begins at a multiple of 256 bytes, views where
    they lie in it."""
    kernel = program.kernel()
    rules = parameters(kernel)
    specs = {}
    for name, value in program.arguments.items():
        if isinstance(value, np.ndarray):
            value = ArrayArgument(from_numpy(value.dtype), 256 + offset(value))
        specs[name] = specialize_arg(value, rules[name])
    function = trace(kernel, specs).function
    passes.run_pipeline(function, passes.DEVICE)
    return function


def offset(array: np.ndarray) -> int:
    """Bytes from the start of its memory."""
    return address(array) - address(storage_of(array))


def operations(function: Function) -> Iterator[Op]:
    """All of a function's, those in regions too."""
    load_operations()
    pending: list[Region] = [function.body]
    while pending:
        for op in pending.pop().ops:
            pending += op.regions
            yield op


def has_code(function: Function) -> bool:
    """Whether GPUs have code for all of its operations."""
    return not any("nvptx" in op.unsupported for op in operations(function))


def is_exact(function: Function) -> bool:
    """Whether an nvptx kernel must agree bit for bit: sums of floats, say, have any order.

    Products count as exact: the programs' operands make them so. Where NaN takes part, the order
    also decides which index ``argmax`` gives.
    """
    for op in operations(function):
        exact = all(
            isinstance(agreement_of(type(op), "nvptx", result.type.scalar), Exact)
            for result in op.results
        )
        ordered = op.mnemonic == "reduce.reduce" and op.operands[0].scalar.is_floating()
        if ordered or (not exact and op.mnemonic != "dot.dot"):
            return False
    return True


def is_disjoint(function: Function, program: Program) -> bool:
    return not overlapping(function, alias_pairs(function), program.arguments)


class ProgramImage(LaunchImage):
    """The memory of a program's launch; arrays that share memory share it here."""

    def __init__(self, program: Program, function: Function) -> None:
        super().__init__()
        self.grid = (*program.grid, 1, 1)[:3]
        self.owners: dict[int, int] = {}
        for param in function.params:
            value = program.arguments[param.name]
            if isinstance(value, np.ndarray):
                owner = storage_of(value)
                if id(owner) not in self.owners:
                    self.owners[id(owner)] = self.add(owner)
                self.parameters.append((self.owners[id(owner)], offset(value)))
                continue
            number = float(value) if param.type.is_floating() else int(value)
            data = Constant(value=number, dtype=param.type).evaluate(None)
            self.parameters.append(np.asarray(data))

    def differences(self, given: dict[str, Any], want: dict[str, Any]) -> list[str]:
        """The arrays whose memory isn't what eager mode made of ``given``, and where."""
        found = []
        for name, value in want.items():
            if isinstance(value, np.ndarray) and id(storage_of(given[name])) in self.owners:
                held = self.read(self.owners[id(storage_of(given[name]))]).reshape(-1)
                wanted = storage_of(value).reshape(-1)
                if not same(held, wanted):
                    wrong = [
                        at
                        for at in range(len(held))
                        if not same(held[at : at + 1], wanted[at : at + 1])
                    ]
                    at = wrong[0]
                    found.append(
                        f"{len(wrong)} of {name}, first at {at}: {held[at]!r} for {wanted[at]!r}"
                    )
        return found


def wanted(program: Program) -> dict[str, Any]:
    """The arguments as eager mode leaves them."""
    return run_eager(program.kernel(), program.arguments, program.grid)


def num_warps(seed: int) -> int:
    return WARPS[seed % len(WARPS)]


def program_of(seed: int) -> tuple[Program, Function]:
    program = generate(seed)
    return program, function_of(program)
