"""PTX of the whole operation table, and of the benchmark's kernels, is taken by ptxas."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.backends.nvptx.gpu import chunks
from tests.backends.nvptx.gpu.compiling import (
    Failed,
    importable,
    in_process,
    why_not,
)

ARCHES = ("sm_80", "sm_90a", "sm_100a")


@pytest.fixture(scope="module", autouse=True)
def processes() -> Iterator[None]:
    with importable():
        yield


@pytest.mark.parametrize("number", range(len(chunks.CHUNKS)))
@pytest.mark.parametrize("arch", ARCHES)
def test_the_operation_table_assembles(arch: str, number: int) -> None:
    if reason := why_not(arch):
        pytest.skip(reason)
    try:
        assert in_process(chunks.compile_chunk, number, arch).cubin
    except Failed as problem:
        pytest.fail(f"{problem}; alone: {blamed(number, arch)}")


def blamed(number: int, arch: str) -> list[str]:
    """The cases of a chunk that don't compile alone, and why."""
    found: list[str] = []
    for position, case in enumerate(chunks.CHUNKS[number]):
        try:
            in_process(chunks.compile_case, number, position, arch)
        except Failed as problem:
            found.append(f"{case.op.mnemonic}: {case.label}: {problem}")
    return found
