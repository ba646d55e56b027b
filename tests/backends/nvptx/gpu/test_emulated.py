"""A share of the generated cases and random programs as kernels, through the emulator of a GPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from tests.backends.cpu import one_op
from tests.backends.nvptx.emulator import unsupported
from tests.backends.nvptx.gpu import chunks, extents
from tests.backends.nvptx.gpu.batches import ALIGNED, EXTENTS, grouped
from tests.backends.nvptx.gpu.compiling import Part
from tests.backends.nvptx.gpu.host import Host, written
from tests.backends.nvptx.gpu.programs import (
    ProgramImage,
    has_code,
    is_disjoint,
    is_exact,
    num_warps,
    program_of,
    wanted,
)
from tests.backends.nvptx.gpu.running import COUNTED, run_part

from tritium.ops.spec import Case

pytestmark = [
    pytest.mark.skipif(bool(unsupported()), reason=str(unsupported())),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]

WARPS = (4, 1, 2, 8)
STRIDE = 9
"""Of the cases of further extents, one in so many runs here."""
PROGRAMS = 40
CHUNK = 10


def check(cases: Sequence[Case], turn: int) -> list[str]:
    """What is wrong with cases as one kernel; ``turn`` picks warps, alignment, order of threads."""
    divisibility = ALIGNED if turn % 3 else 1
    code = written(one_op.build(cases, divisibility), WARPS[turn % len(WARPS)])
    with np.errstate(all="ignore"):
        return run_part(Host(turn), Part(cases, code), divisibility == ALIGNED)


@pytest.mark.parametrize("number", range(len(chunks.CHUNKS)))
def test_the_operation_table(number: int, record_property: Callable[[str, object], None]) -> None:
    # Products take longest here, and have tests of their own.
    cases = [
        case
        for position, case in enumerate(chunks.CHUNKS[number])
        if case.op.mnemonic != "dot.dot" or position % 4 == 0
    ]
    record_property(f"{COUNTED}cases emulated", len(cases))
    assert check(cases, number) == []


@pytest.mark.parametrize("mnemonic", sorted(extents.cases()))
def test_further_extents(mnemonic: str, record_property: Callable[[str, object], None]) -> None:
    cases = grouped(EXTENTS + mnemonic)[::STRIDE]
    record_property(f"{COUNTED}cases emulated", len(cases))
    assert check(cases, len(mnemonic)) == []


@pytest.mark.parametrize("first", range(0, PROGRAMS, CHUNK))
def test_random_programs(first: int, record_property: Callable[[str, object], None]) -> None:
    ran, problems = 0, []
    for seed in range(first, first + CHUNK):
        program, function = program_of(seed)
        if not (has_code(function) and is_exact(function)):
            continue
        ran += 1
        image = ProgramImage(program, function)
        code = written(function, num_warps(seed), is_disjoint(function, program))
        Host(seed).run(code, image)
        wrong = image.differences(program.arguments, wanted(program))
        if wrong or image.damage():
            problems.append(f"seed {seed}: {wrong} differ, {image.damage()}")
    record_property(f"{COUNTED}random programs emulated", ran)
    assert problems == []
