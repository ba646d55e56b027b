"""Every kernel of the guide and of the benchmarks becomes machine code, for three generations."""

from __future__ import annotations

import ast
import linecache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from benchmarks import gpu_kernels
from benchmarks import kernels as cpu_kernels
from tests.backends.nvptx.kernels import number, pointer, ptxas_or_skip, traced

import tritium.language as tl
from tritium.backends.nvptx import ptxas
from tritium.backends.nvptx.compile import compile_kernel
from tritium.backends.nvptx.target import gpu_target
from tritium.frontend.specialize import ScalarSpec
from tritium.ir import Function
from tritium.ir.dtypes import float16, float32, int32, int64
from tritium.ops.callable import DeviceFunction

ARCHES = ("sm_80", "sm_90a", "sm_100a")
GUIDE = Path(__file__).parents[2] / "guide"

BLOCKS: dict[str, list[tuple[int, dict[str, int]]]] = {
    "guide add": [(4, {"BLOCK_SIZE": 1024})],
    "guide matmul": [
        (4, {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32}),
        (2, {"BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 32}),
    ],
    "add": [(4, {"BLOCK": 1024})],
    "chain": [(4, {"BLOCK": 1024})],
    "softmax": [(8, {"BLOCK": 4096})],
    "layernorm": [(8, {"BLOCK": 1024})],
    "rmsnorm": [(4, {"BLOCK": 1024})],
    "cross_entropy": [(4, {"BLOCK": 1024})],
    "dot": [(4, {"BLOCK_M": 32, "BLOCK_N": 64, "BLOCK_K": 32})],
    "many": [(4, {"BLOCK": 1024})],
    "gpu copy": [(4, {"BLOCK": 1024})],
    "gpu softmax": [(4, {"BLOCK": 1024})],
    "gpu layernorm": [(4, {"BLOCK": 1024})],
    "gpu colsum": [(8, {"BLOCK_M": 32, "BLOCK_N": 128})],
    "gpu transpose": [(4, {"BLOCK_M": 32, "BLOCK_N": 64})],
}
"""Warps and constants of each kernel."""
FLOATS = ("epsilon", "eps", "f0", "f1")


def of_guide(file: str, name: str) -> DeviceFunction:
    """A kernel of one of the guide's programs, without running that."""
    path = GUIDE / file
    text = path.read_text(encoding="utf-8")
    (found,) = [n for n in ast.parse(text).body if getattr(n, "name", "") == name]
    assert isinstance(found, ast.FunctionDef)
    lines = text.splitlines(keepends=True)[found.lineno - 1 : found.end_lineno]
    source = "@triton.jit\n" + "".join(lines)
    made = f"<{file}>"
    linecache.cache[made] = (len(source), None, source.splitlines(keepends=True), made)
    names: dict[str, Any] = {"triton": SimpleNamespace(jit=DeviceFunction), "tl": tl}
    exec(compile(source, made, "exec"), names)
    return names[name]


def kernel_of(name: str) -> DeviceFunction:
    package = SimpleNamespace(jit=DeviceFunction)
    kind, _, rest = name.rpartition(" ")
    if kind == "guide":
        files = {"add": ("vector_add.py", "add_kernel")}
        return of_guide(*files.get(rest, ("matmul_autotuned.py", "matmul_kernel")))
    return (gpu_kernels if kind else cpu_kernels).build(rest, package, tl)


def functions(name: str) -> list[tuple[int, Function]]:
    kernel = kernel_of(name)
    made = []
    for num_warps, constants in BLOCKS[name]:
        given: dict[str, Any] = dict(constants)
        for parameter in kernel.python_signature.parameters:
            if parameter.endswith("_ptr"):
                dtype = {"target_ptr": int64}.get(parameter, float32)
                given[parameter] = pointer(float16 if name == "guide matmul" else dtype)
            elif parameter in FLOATS:
                given[parameter] = ScalarSpec(float32, False)
            elif parameter not in constants:
                given[parameter] = number(int32, parameter not in ("n", "columns", "rows"))
        made.append((num_warps, traced(kernel, **given)))
    return made


def test_no_kernel_is_left_out() -> None:
    theirs = cpu_kernels.SOURCES
    own = {name for name, text in gpu_kernels.SOURCES.items() if theirs.get(name) != text}
    assert set(BLOCKS) == {"guide add", "guide matmul", *theirs, *(f"gpu {name}" for name in own)}


@pytest.mark.parametrize("name", BLOCKS)
def test_it_is_assembled_without_spills(name: str) -> None:
    path = ptxas_or_skip()
    for num_warps, function in functions(name):
        for arch in ARCHES:
            made = compile_kernel(function, gpu_target(arch), num_warps=num_warps, disjoint=True)
            usage = ptxas.assemble(path, made.ptx, arch).usage
            assert usage.spill_stores == 0, arch
            assert usage.registers


@pytest.mark.parametrize("num_warps", [1, 16, 32])
def test_any_number_of_warps(num_warps: int) -> None:
    path = ptxas_or_skip()
    for name in ("softmax", "gpu colsum", "guide matmul"):
        _, function = functions(name)[-1]
        made = compile_kernel(function, gpu_target("sm_90a"), num_warps=num_warps, disjoint=False)
        usage = ptxas.assemble(path, made.ptx, "sm_90a").usage
        # A block has 65,536 registers; 255 are the most that a thread can have.
        assert usage.registers <= min(255, 65536 // (32 * num_warps))
