"""Random tile programs on the GPU leave the same bits in memory as eager mode.

Programs whose results may differ (sums of floats, functions of a few ulp) are left out, and those
with operations that GPUs have no code for.
``python -m tests.fuzz.test_fuzz 17`` shows the program of seed 17.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import pytest
from tests.backends.nvptx.gpu.compiling import (
    Code,
    Failed,
    compiled,
    importable,
    in_process,
    processors,
)
from tests.backends.nvptx.gpu.device import Device, Fault
from tests.backends.nvptx.gpu.programs import (
    ProgramImage,
    has_code,
    is_disjoint,
    is_exact,
    num_warps,
    program_of,
    wanted,
)
from tests.backends.nvptx.gpu.running import COUNTED

from tritium.backends.nvptx.target import gpu_target

PROGRAMS = 400
CHUNK = 25


def compile_program(seed: int, arch: str) -> Code | None:
    """None where results may differ, or there is no code."""
    program, function = program_of(seed)
    if not (has_code(function) and is_exact(function)):
        return None
    return compiled(function, arch, num_warps(seed), is_disjoint(function, program))


@pytest.fixture(scope="module")
def codes(device: Device) -> Iterator[Callable[[int], Future[Code | None]]]:
    """Compiles the programs of a chunk, all at once."""
    arch = gpu_target(device.capability).arch
    with importable(), ThreadPoolExecutor(processors()) as threads:
        yield lambda seed: threads.submit(in_process, compile_program, seed, arch)


def check(seed: int, code: Code, device: Device) -> str | None:
    """What is wrong with a program's results, None if nothing."""
    program, function = program_of(seed)
    image = ProgramImage(program, function)
    device.run(code, image)
    wrong = image.differences(program.arguments, wanted(program))
    return f"{', '.join(wrong)} differ" if wrong else image.damage()


@pytest.mark.gpu
@pytest.mark.parametrize("first", range(0, PROGRAMS, CHUNK))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_programs(
    first: int,
    codes: Callable[[int], Future[Code | None]],
    device: Device,
    record_property: Callable[[str, object], None],
) -> None:
    problems = []
    pending = {seed: codes(seed) for seed in range(first, first + CHUNK)}
    ran = 0
    for seed, future in pending.items():
        try:
            code = future.result()
            if code is None:
                continue
            ran += 1
            with np.errstate(all="ignore"):
                found = check(seed, code, device)
        except (Failed, Fault) as problem:
            found = str(problem)
        if found:
            problems.append(f"seed {seed}: {found}")
    record_property(f"{COUNTED}random programs on the GPU", ran)
    assert ran
    assert problems == []
