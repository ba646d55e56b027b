"""Random tile programs: eager mode, IR evaluator and machine code at two widths of vectors agree.

A failing test names the program's seed and shows its source. ``python -m tests.fuzz.test_fuzz 17``
runs the program of seed 17 alone, ``python -m tests.fuzz.job generated`` 20,000 of them.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from tests import crashes
from tests.backends.three_way import narrow_cpu, run_cpu, run_eager, run_ir, same, storage_of
from tests.fuzz import tally
from tests.fuzz.generate import Program, generate

PROGRAMS = 2000
CHUNK = 50


def differences(got: dict, want: dict) -> list[str]:
    """The arrays whose memory holds something else."""
    return [
        name
        for name, value in want.items()
        if isinstance(value, np.ndarray) and not same(storage_of(got[name]), storage_of(value))
    ]


def check(program: Program) -> set[str]:
    """Run a program on every executor; returns what is counted of it."""
    kernel, given, grid = program.kernel(), program.arguments, program.grid
    want = run_eager(kernel, given, grid)
    got = run_ir(kernel, given, grid)
    assert not differences(got, want), "the IR evaluator differs from eager mode"
    got, code = run_cpu(kernel, given, grid)
    assert not differences(got, want), "machine code differs from eager mode"
    # Also the version for overlapping arguments, where they don't, and stores past the cache.
    how = {"disjoint": program.seed % 4 > 0, "stream": program.seed % 4 > 1}
    got, _ = run_cpu(kernel, given, grid, cpu=narrow_cpu(), parts=2, **how)
    assert not differences(got, want), "machine code with short vectors differs from eager mode"
    return tally.of_kernel(code)


@pytest.mark.parametrize("first", range(0, PROGRAMS, CHUNK))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_programs(first: int, record_property: Callable[[str, object], None]) -> None:
    counted: Counter[str] = Counter()
    for seed in range(first, first + CHUNK):
        program = generate(seed)
        crashes.note(f"random program {seed}")
        try:
            counted.update(check(program))
        except Exception as problem:
            what = f"seed {seed}: {type(problem).__name__}: {problem}"
            raise AssertionError(f"{what}\n\n{program.source}") from problem
    record_property("random programs", dict(counted))


def test_a_seed_gives_the_same_program() -> None:
    first, second = generate(7), generate(7)
    assert first.source == second.source
    assert not differences(first.arguments, second.arguments)
    assert list(first.arguments) == list(second.arguments)


def test_tally_counts_reasons_once() -> None:
    counted = [{"programs": 2, "unfused: x": 1}, {"programs": 2, "unfused: x": 2, "with y": 1}]
    assert tally.lines(counted) == [
        "4 random programs, of which",
        "  25.0%  with y",
        "  75.0%  unfused: x",
    ]
    assert tally.lines([]) == []


if __name__ == "__main__":
    chosen = generate(int(sys.argv[1]))
    print(chosen.source)
    print(check(chosen))
