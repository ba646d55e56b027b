"""Which lines of Python the code of a kernel names."""

from __future__ import annotations

import inspect
import re
import subprocess
from pathlib import Path

import pytest
from tests.backends.nvptx.kernels import number, pointer, ptxas_or_skip, traced

import tritium.language as tl
from tritium.backends.nvptx import ptxas, sass, tools
from tritium.backends.nvptx.compile import GpuKernel, compile_kernel
from tritium.backends.nvptx.target import gpu_target
from tritium.diagnostics import Loc
from tritium.ops.callable import DeviceFunction

TARGET = gpu_target("sm_90a")


@DeviceFunction
def doubled(x):
    more = x * 3.0
    return more - x


@DeviceFunction
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, offs < n)
    x = doubled(x)
    total = tl.sum(x, axis=0)
    tl.store(out_ptr + offs, x / total)


def line_of(text: str) -> int:
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    (found,) = [place for place, line in enumerate(lines, 1) if line.strip() == text]
    return found


@pytest.fixture(scope="module")
def compiled() -> GpuKernel:
    specs = {"x_ptr": pointer(), "out_ptr": pointer(), "n": number()}
    function = traced(kernel, **specs, BLOCK=512)
    return compile_kernel(function, TARGET, num_warps=4, disjoint=True)


WANTED = [
    "x = tl.load(x_ptr + offs, offs < n)",
    "more = x * 3.0",
    "return more - x",
    "total = tl.sum(x, axis=0)",
    "tl.store(out_ptr + offs, x / total)",
]


def test_the_ptx_names_files_and_lines(compiled: GpuKernel) -> None:
    files = re.findall(r'^\s*\.file\s+(\d+)\s+"(.*)"', compiled.ptx, re.M)
    assert files == [("1", __file__)]
    lines = {int(line) for line in re.findall(r"\.loc\s+1 (\d+) ", compiled.ptx)}
    assert lines >= {line_of(text) for text in WANTED}
    # All other code belongs to the kernel too; 0 is code of no line.
    first = inspect.getsourcelines(doubled.fn)[1]
    assert lines - {0} <= set(range(first, line_of(WANTED[-1]) + 1))


def test_the_target_is_not_one_for_debuggers(compiled: GpuKernel) -> None:
    """Else ptxas wouldn't optimise."""
    assert re.findall(r"^\.target (.*)$", compiled.ptx, re.M) == ["sm_90a"]


def test_a_refused_line_of_ptx_is_told_as_one_of_python(compiled: GpuKernel) -> None:
    lines = compiled.ptx.splitlines()
    (store,) = [place for place, line in enumerate(lines, 1) if "st.global" in line]
    assert ptxas.python_place(compiled.ptx, store) == (__file__, line_of(WANTED[-1]))


def test_machine_code_has_the_lines(compiled: GpuKernel, tmp_path: Path) -> None:
    cubin = ptxas.assemble(ptxas_or_skip(), compiled.ptx, "sm_90a").cubin
    sections = dict(sass._sections(cubin))
    rows = {(row.file, row.line) for row in sass.lines(sections[".debug_line"])}
    assert rows >= {(__file__, line_of(text)) for text in WANTED}
    path = tools.find("nvdisasm")
    if path is None:
        pytest.skip("nvdisasm is not installed")
    file = tmp_path / "kernel.cubin"
    file.write_bytes(cubin)
    shown = subprocess.run([path, "-g", "-c", file], capture_output=True, text=True, check=True)
    for text in WANTED:
        assert f'//## File "{__file__}", line {line_of(text)}' in shown.stdout


@DeviceFunction
def crowded(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs)
    for _ in range(3):
        x = x + tl.sum(x * x, axis=0)
    tl.store(out_ptr + offs, x)


def test_spills_are_told_by_line() -> None:
    function = traced(crowded, x_ptr=pointer(), out_ptr=pointer(), BLOCK=4096)
    ptx = compile_kernel(function, TARGET, num_warps=1, disjoint=True).ptx
    ptx = re.sub(r"^\.reqntid.*\n(\.minnctapersm.*\n)?", ".maxnreg 32\n", ptx, flags=re.M)
    code = ptxas.assemble(ptxas_or_skip(), ptx, "sm_90a")
    assert code.usage.spill_stores
    place = sass.spill_place(code.cubin)
    assert place is not None
    first = inspect.getsourcelines(crowded.fn)[1]
    assert place[0] == __file__
    assert first < place[1] < first + 8


def test_odd_names_of_files_stand_in_the_ptx() -> None:
    function = traced(kernel, x_ptr=pointer(), out_ptr=pointer(), n=number(), BLOCK=128)
    for op in function.walk():
        op.loc = Loc('C:\\a "b"\\größe.py', 7)
    ptx = compile_kernel(function, TARGET, num_warps=1, disjoint=True).ptx
    assert re.search(r'\.file\s+1 "C:/a _b_/gr__e.py"', ptx)
    assert ptxas.assemble(ptxas_or_skip(), ptx, "sm_90a").cubin


def test_a_kernel_without_locations_has_none() -> None:
    function = traced(kernel, x_ptr=pointer(), out_ptr=pointer(), n=number(), BLOCK=128)
    for op in function.walk():
        op.loc = None
    made = compile_kernel(function, TARGET, num_warps=1, disjoint=True)
    assert ".loc" not in made.ptx
    assert "!dbg" not in made.llvm_ir
