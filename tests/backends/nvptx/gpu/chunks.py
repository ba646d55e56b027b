"""Compiles parts of the operation table. Importing it makes the table: the fork server does so."""

from __future__ import annotations

from tests.backends.cpu import one_op
from tests.backends.nvptx.gpu import table
from tests.backends.nvptx.gpu.compiling import Code, compiled

from tritium.ops.spec import Case

CHUNK = 30
"""Cases that are compiled as one kernel."""
CHUNKS = [table.table()[start : start + CHUNK] for start in range(0, len(table.table()), CHUNK)]


def compile_chunk(number: int, arch: str) -> Code:
    """All of a chunk."""
    return compile_cases(CHUNKS[number], arch)


def compile_case(number: int, position: int, arch: str) -> Code:
    """One case of a chunk."""
    return compile_cases([CHUNKS[number][position]], arch)


def compile_cases(cases: list[Case], arch: str) -> Code:
    return compiled(one_op.build(cases, 16), arch, 4)
