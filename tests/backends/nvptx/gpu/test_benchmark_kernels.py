"""The benchmark's kernels spill no register on the GPU that is measured, and emulated are right."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

torch = pytest.importorskip("torch", reason="the benchmark's tensors are torch's")

from benchmarks.gpu_cases import BUILDERS, Data, Spec, specs  # noqa: E402
from tests.backends.nvptx.emulator import Emulator, unsupported  # noqa: E402
from tests.backends.nvptx.gpu import benchmark  # noqa: E402
from tests.backends.nvptx.gpu.compiling import (  # noqa: E402
    compiled,
    importable,
    in_process,
    why_not,
)
from tests.backends.nvptx.gpu.host import written  # noqa: E402

ARCH = "sm_90a"
NAMES = [spec.name for spec in specs(False)]


@pytest.fixture(scope="module", autouse=True)
def processes() -> Iterator[None]:
    with importable():
        yield


def spills(name: str) -> dict[str, int]:
    """Bytes of spills by configuration."""
    (spec,) = (each for each in specs(False) if each.name == name)
    return {
        config.name: compiled(function, ARCH, config.num_warps).spilled
        for config, function in benchmark.functions(benchmark.without_data(torch, spec))
    }


@pytest.mark.parametrize("name", NAMES)
def test_no_register_is_spilled(name: str) -> None:
    if reason := why_not(ARCH):
        pytest.skip(reason)
    found = in_process(spills, name)
    assert found
    assert {config: count for config, count in found.items() if count} == {}


@pytest.mark.skipif(bool(unsupported()), reason=str(unsupported()))
@pytest.mark.parametrize("spec", specs(True), ids=lambda spec: spec.name)
def test_results_are_right(spec: Spec) -> None:
    problem = BUILDERS[spec.kernel](spec, Data(torch, "cpu"))
    arguments = [a if isinstance(a, (int, float)) else a.data_ptr() for a in problem.args]
    for config, function in benchmark.functions(problem):
        code = written(function, config.num_warps)
        emulator = Emulator(code.llvm_ir, code.entry, num_warps=code.num_warps)
        problem.check(lambda: emulator.launch(arguments, config.grid))  # noqa: B023 - called here
