"""Threads never meet in memory without waiting: random programs at every number of warps, through
an emulator that records who touches what between waits."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
import tests.backends.nvptx.emulator as emu
from tests.backends.nvptx import kernels
from tests.backends.nvptx.gpu.host import Host, written
from tests.backends.nvptx.gpu.programs import (
    ProgramImage,
    has_code,
    is_disjoint,
    is_exact,
    program_of,
    wanted,
)
from tests.backends.nvptx.gpu.running import COUNTED
from tests.backends.nvptx.kernels import number, pointer, traced

from tritium.backends.nvptx.compile import write_module
from tritium.backends.nvptx.target import gpu_target

pytestmark = [
    pytest.mark.skipif(emu.unsupported() is not None, reason=str(emu.unsupported())),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]

FIRST = 1000
"""Other seeds than elsewhere."""
WARPS = (1, 2, 4, 8, 16, 32)
EACH = 6
"""Programs for each number of warps."""


@pytest.mark.parametrize("num_warps", WARPS)
def test_random_programs(num_warps: int, record_property: Callable[[str, object], None]) -> None:
    problems, ran = [], 0
    for seed in range(FIRST + 100 * num_warps, FIRST + 100 * num_warps + EACH):
        program, function = program_of(seed)
        if not has_code(function):
            continue
        image = ProgramImage(program, function)
        code = written(function, num_warps, is_disjoint(function, program))
        Host(seed, global_races=True).run(code, image)
        ran += 1
        if is_exact(function):
            wrong = image.differences(program.arguments, wanted(program))
            problems += [f"seed {seed}: {wrong} differ"] if wrong or image.damage() else []
    record_property(f"{COUNTED}random programs without races", ran)
    assert ran
    assert problems == []


SMALL = {
    "in_place": 0,
    "neighbours": 1,
    "every_iteration": 1,
    "one_for_all": 2,
    "until": 2,
    "in_steps": 0,
    "in_short_steps": 1,
    "in_steps_again": 1,
    "by_a_moving_start": 1,
}
"""Kernels, and how often a block waits in them at least."""


def small(name: str, num_warps: int) -> str:
    kernel = getattr(kernels, name)
    names = [each for each in kernel.python_signature.parameters if each.endswith("_ptr")]
    function = traced(kernel, **{each: pointer() for each in names}, n=number(), BLOCK=256)
    writer = write_module(function, gpu_target("sm_90a"), num_warps=num_warps, disjoint=True)
    return writer.module.text()


def launch(text: str, name: str, num_warps: int, seed: int = 0) -> int:
    """Returns how often the block waited. Raises RaceError."""
    count = sum(kind.startswith("ptr") for kind in emu.parameter_types(text, name))
    arrays = [np.ones(1024, np.float32) for _ in range(count)]
    gpu = emu.Emulator(text, name, num_warps)
    ns = [3] * (len(gpu.types) - count)
    gpu.launch([*(a.ctypes.data for a in arrays), *ns], seed=seed, global_races=True)
    return gpu.barriers + gpu.warp_barriers


@pytest.mark.parametrize("num_warps", [1, 4])
@pytest.mark.parametrize(("name", "least"), SMALL.items())
def test_what_must_wait_waits(name: str, least: int, num_warps: int) -> None:
    assert launch(small(name, num_warps), name, num_warps) >= least


@pytest.mark.parametrize("num_warps", [1, 4])
@pytest.mark.parametrize("name", [name for name, least in SMALL.items() if not least])
def test_what_need_not_wait_does_not(name: str, num_warps: int) -> None:
    assert launch(small(name, num_warps), name, num_warps) == 0


@pytest.mark.parametrize("name", [name for name, least in SMALL.items() if least])
@pytest.mark.parametrize("num_warps", [1, 4])
def test_without_its_waits_a_kernel_has_races(name: str, num_warps: int) -> None:
    """So the detector finds them."""
    waits = r"^  call void @llvm\.nvvm\.(barrier|bar)\..*\n"
    text, found = re.subn(waits, "", small(name, num_warps), flags=re.M)
    assert found
    with pytest.raises(emu.RaceError, match="without waiting"):
        launch(text, name, num_warps)


@pytest.mark.parametrize("block", [1, 3, 5, 48, 80, 96, 160])
@pytest.mark.parametrize("num_warps", [16, 32])
def test_tiles_smaller_than_the_threads(block: int, num_warps: int) -> None:
    """Copies in other threads neither store nor add twice."""
    given = {"x_ptr": pointer(aligned=False), "out_ptr": pointer(), "stride": number()}
    function = traced(kernels.softmax, **given, columns=number(), BLOCK=block)
    code = write_module(function, gpu_target("sm_90a"), num_warps=num_warps, disjoint=True)
    x = np.random.default_rng(block).standard_normal((2, block)).astype(np.float32)
    out = np.full((2, block + 16), 7, np.float32)
    gpu = emu.Emulator(code.module.text(), "softmax", num_warps)
    for row in range(2):
        memory = [x[row].ctypes.data, out[row].ctypes.data]
        gpu.launch([*memory, 0, block], seed=row, global_races=True)
    shifted = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    want = shifted / shifted.sum(axis=1, keepdims=True)
    assert np.allclose(out[:, :block], want, rtol=1e-5)
    assert (out[:, block:] == 7).all()
