"""What the machine code looks like: vector loops whose size doesn't depend on a tile's extents."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.backends.cpu import kernels
from tests.backends.three_way import traced

from tritium.backends import llvm
from tritium.backends.cpu import CpuKernel, compile_kernel, nest
from tritium.backends.cpu.compile import write_module
from tritium.backends.emit import Block, Builder
from tritium.backends.llvm import Target

TARGETS = {
    "512": ("x86_64-unknown-linux-gnu", "x86-64-v4"),
    "256": ("x86_64-unknown-linux-gnu", "x86-64-v3"),
    "arm64": ("aarch64-unknown-linux-gnu", "neoverse-n1"),
}
EXAMPLES = ("add", "softmax_row", "transpose", "matmul")
INDEXED = re.compile(r"gather|scatter")


def optimised(name: str, target: Target, **changed: Any) -> llvm.CompiledModule:
    function, arguments, _ = kernels.example(name, **changed)
    writer = write_module(traced(function, arguments), target, disjoint=True)
    return llvm.optimise(writer.module.text(), target)


def compiled(name: str, **changed: Any) -> CpuKernel:
    function, arguments, _ = kernels.example(name, **changed)
    return compile_kernel(traced(function, arguments), llvm.host_target(), disjoint=True)


@pytest.fixture(params=TARGETS)
def target(request: pytest.FixtureRequest) -> Target:
    return llvm.cross_target(*TARGETS[request.param])


# ---- assembly ------------------------------------------------------------------------------------


def innermost_loops(assembly: str) -> list[list[str]]:
    """The instructions of each loop without a loop in it: from a label to the jump back to it."""
    lines = [line.strip() for line in assembly.splitlines()]
    label_at = {
        line[:-1]: number for number, line in enumerate(lines) if re.match(r"\.LBB\w+:", line)
    }
    spans = []
    for number, line in enumerate(lines):
        jump = re.match(r"[a-z][\w.]*\s.*?(\.LBB\w+)$", line)
        if jump and label_at.get(jump[1], number) < number:
            spans.append((label_at[jump[1]], number))
    return [
        [line for line in lines[start : end + 1] if re.match(r"[a-z]", line)]
        for start, end in spans
        if not any((start, end) != other and start <= other[0] < end for other in spans)
    ]


def test_innermost_loops_of_assembly() -> None:
    text = """
    .LBB0_1:
        movl $0, %eax
    .LBB0_2:
        vaddps %zmm0, %zmm1, %zmm1
        jb .LBB0_2
        jmp .LBB0_1
    """
    assert innermost_loops(text) == [["vaddps %zmm0, %zmm1, %zmm1", "jb .LBB0_2"]]


@pytest.fixture
def without_generic(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves the versions out that run where integers wrap, so that the fast ones stand alone."""

    def nothing(writer: Any, start: Block, join: Block) -> None:
        Builder(start).br(join)

    monkeypatch.setattr(nest.SubnestWriter, "_generic", nothing)


@pytest.mark.usefixtures("without_generic")
@pytest.mark.parametrize("name", EXAMPLES)
def test_fast_loops_have_no_indexed_accesses(name: str, target: Target) -> None:
    module = optimised(name, target)
    assert not INDEXED.search(str(module))
    assert not INDEXED.search(llvm.assembly(module))


def test_generic_loops_have_indexed_accesses() -> None:
    """Else the test above would say nothing."""
    module = optimised("add", llvm.cross_target(*TARGETS["512"]))
    assert "vgatherdps" in llvm.assembly(module)


VECTOR = {"512": r"%zmm", "256": r"%ymm", "arm64": r"\b[qv]\d"}


@pytest.mark.usefixtures("without_generic")
@pytest.mark.parametrize("width", TARGETS)
@pytest.mark.parametrize("name", EXAMPLES)
def test_inner_loops_move_whole_vectors(name: str, width: str) -> None:
    """Each example has loops that load and store whole vectors, four a trip where bodies are
    light."""
    loops = innermost_loops(llvm.assembly(optimised(name, llvm.cross_target(*TARGETS[width]))))
    moves = [line for loop in loops for line in loop if re.search(VECTOR[width], line)]
    assert len(moves) >= 8, loops


def x86_loops(name: str, width: str) -> list[list[str]]:
    return innermost_loops(llvm.assembly(optimised(name, llvm.cross_target(*TARGETS[width]))))


@pytest.mark.usefixtures("without_generic")
@pytest.mark.parametrize("width,register", [("512", "zmm"), ("256", "ymm")])
def test_add_is_loads_adds_and_stores(width: str, register: str) -> None:
    """The interior loop: per vector a load, an addition that loads, and a store.

    It stands twice: with plain stores, and with stores past the cache for large outputs.
    """
    loops = [loop for loop in x86_loops("add", width) if not any("%k" in x for x in loop)]
    stores: list[str] = []
    for loop in loops:
        if sum("vaddps" in line for line in loop) == 4:
            loads = [x for x in loop if re.match(rf"vmovups\s+\S*\(.*\), %{register}", x)]
            stores += re.findall(rf"(vmov\w+)\s+%{register}\d+, .*\(", "\n".join(loop))
            assert len(loads) == 4
            assert len(loop) <= 4 * 3 + 4
    assert sorted(stores) == ["vmovntps"] * 4 + ["vmovups"] * 4


@pytest.mark.usefixtures("without_generic")
@pytest.mark.parametrize("width,register", [("512", "zmm"), ("256", "ymm")])
def test_matmul_accumulates_in_registers(width: str, register: str) -> None:
    """The loop over K holds a block of C in registers: it multiplies, adds and stores nothing."""
    rows = {"512": 8, "256": 6}[width]
    kernel = [
        loop
        for loop in x86_loops("matmul", width)
        if sum("vfmadd" in line for line in loop) == 2 * rows
    ]
    assert kernel
    for loop in kernel:
        assert all(f"%{register}" in line for line in loop if "vfmadd" in line)
        assert not [line for line in loop if re.search(rf"%{register}\d+, .*\(", line)]


@pytest.mark.usefixtures("without_generic")
@pytest.mark.parametrize("width", ["512", "256"])
def test_transposition_is_done_in_registers(width: str) -> None:
    """As many vector loads as stores, shuffles between them, no element moved alone."""
    register = {"512": "zmm", "256": "ymm"}[width]
    (loop,) = x86_loops("transpose", width)
    count = {"512": 16, "256": 8}[width]
    assert sum(bool(re.search(rf"vmovups\s+%{register}\d+, .*\(", x)) for x in loop) == count
    assert sum(bool(re.search(r"vunpck|vshuf|vperm|vinsertf|vblend", x)) for x in loop) >= count
    assert not [line for line in loop if re.match(r"v?movss|vextractps|vinsertps|vpinsr", line)]


# ---- sizes ---------------------------------------------------------------------------------------


def instructions(module: llvm.CompiledModule) -> int:
    """LLVM instructions of the optimised module."""
    return sum(line.startswith("  ") for line in str(module).splitlines())


def test_instruction_count_does_not_depend_on_the_block(target: Target) -> None:
    small, large = (
        instructions(optimised("add", target, BLOCK_SIZE=size)) for size in (256, 65536)
    )
    assert abs(large - small) < 0.1 * small, (small, large)


def test_large_tiles_stay_small() -> None:
    row = compiled("softmax_row", BLOCK=65536)
    assert len(row.llvm_ir.splitlines()) < 1000
    assert row.scratch_bytes == 65536 * 4
    tile = compiled("softmax_tile", BM=256, BN=256)
    assert len(tile.llvm_ir.splitlines()) < 1000
    assert tile.scratch_bytes == 256 * 4
    product = compiled("matmul", BLOCK_M=256, BLOCK_N=256, BLOCK_K=64)
    assert len(product.llvm_ir.splitlines()) < 1200
    assert product.scratch_bytes == (256 * 256 + 2 * 256 * 64) * 4


def test_memory_of_compiling_large_tiles() -> None:
    """The peak of a process that compiles them lies less than 150 MB above the imports'."""
    script = """
import resource, sys
sys.path.insert(0, {root!r})
from tests.backends.cpu import test_structure

def peak():
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit

before = peak()
test_structure.compiled("add", BLOCK_SIZE=65536)
test_structure.test_large_tiles_stay_small()
print(peak() - before)
"""
    root = str(Path(__file__).parents[3])
    done = subprocess.run(
        [sys.executable, "-c", script.format(root=root)], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 150 * 2**20
