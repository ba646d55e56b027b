"""The benchmark's kernels are assembled for the GPU that is measured, and spill no register."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

torch = pytest.importorskip("torch", reason="the benchmark's tensors are torch's")

from tests.backends.nvptx.gpu import benchmark  # noqa: E402
from tests.backends.nvptx.gpu.compiling import (  # noqa: E402
    compiled,
    importable,
    in_process,
    why_not,
)

ARCH = "sm_90a"
NAMES = [spec.name for spec in benchmark.all_specs()]


@pytest.fixture(scope="module", autouse=True)
def processes() -> Iterator[None]:
    with importable():
        yield


def spills(name: str) -> dict[str, int]:
    """Bytes of spills by configuration."""
    (spec,) = (each for each in benchmark.all_specs() if each.name == name)
    return {
        config.name: compiled(function, ARCH, config.num_warps).spilled
        for config, function in benchmark.functions(torch, spec)
    }


@pytest.mark.parametrize("name", NAMES)
def test_no_register_is_spilled(name: str) -> None:
    if reason := why_not(ARCH):
        pytest.skip(reason)
    found = in_process(spills, name)
    assert found
    assert {config: count for config, count in found.items() if count} == {}
