"""What becomes of kernels: how wide they access memory, what they convert, where they wait."""

from __future__ import annotations

import re

import pytest
from tests.backends.nvptx import kernels
from tests.backends.nvptx.kernels import number, pointer, ptxas_or_skip, traced

import tritium.language as tl
from tritium.backends.nvptx import ptxas
from tritium.backends.nvptx.compile import GpuKernel, compile_kernel, write_module
from tritium.backends.nvptx.homes import Homes
from tritium.backends.nvptx.target import gpu_target
from tritium.ir.core import Function
from tritium.ir.dtypes import DType, float16, float32, int8, int32
from tritium.ops import memory
from tritium.ops.callable import DeviceFunction

TARGET = gpu_target("sm_90a")
ARCHES = ("sm_80", "sm_90a", "sm_100a")


def add(
    n: bool = True, aligned: bool = True, dtype: DType = float32, block: int = 1024
) -> Function:
    given = {name: pointer(dtype, aligned) for name in ("x_ptr", "y_ptr", "out_ptr")}
    return traced(kernels.add, **given, n=number(int32, n), BLOCK=block)


def softmax(block: int = 4096) -> Function:
    given = {"x_ptr": pointer(), "out_ptr": pointer(), "stride": number(), "columns": number()}
    return traced(kernels.softmax, **given, BLOCK=block)


def transpose(dtype: DType = float32) -> Function:
    sizes = {name: number() for name in ("rows", "columns", "sx", "so")}
    given = {"x_ptr": pointer(dtype), "out_ptr": pointer(dtype), **sizes}
    return traced(kernels.transpose, **given, BM=64, BN=64)


def column_sum() -> Function:
    sizes = {name: number() for name in ("rows", "columns", "stride")}
    given = {"x_ptr": pointer(), "out_ptr": pointer(), **sizes}
    return traced(kernels.column_sum, **given, BM=32, BN=64)


def compiled(function: Function, num_warps: int = 4, disjoint: bool = True) -> GpuKernel:
    return compile_kernel(function, TARGET, num_warps=num_warps, disjoint=disjoint)


def accesses(ptx: str, kind: str) -> list[str]:
    """The widths of the accesses to global memory, as ``v4.b32``."""
    return re.findall(rf"{kind}\.global(?:\.nc)?\.((?:v\d\.)?[bf]\d+)", ptx)


# ---- widths --------------------------------------------------------------------------------------


def test_vector_add_moves_16_bytes_at_a_time() -> None:
    ptx = compiled(add()).ptx
    assert accesses(ptx, "ld") == ["v4.b32"] * 4
    assert accesses(ptx, "st") == ["v4.b32"] * 2


@pytest.mark.parametrize("n", [False, True])
def test_without_proof_elements_are_moved_one_by_one(n: bool) -> None:
    ptx = compiled(add(n, aligned=False)).ptx
    assert accesses(ptx, "ld") == ["b32"] * 16
    assert accesses(ptx, "st") == ["b32"] * 8


@pytest.mark.parametrize("dtype", [float16, int8])
def test_narrow_types_move_16_bytes_too(dtype: DType) -> None:
    ptx = compiled(add(dtype=dtype, block=4096)).ptx
    count = 4096 * dtype.itemsize // 16 // 128
    assert accesses(ptx, "ld") == ["v4.b32"] * 2 * count
    assert accesses(ptx, "st") == ["v4.b32"] * count


@pytest.mark.parametrize("num_warps", [1, 2, 4, 8, 16, 32])
def test_no_thread_is_idle_where_a_tile_is_small(num_warps: int) -> None:
    function = add(block=1024)
    homes = Homes(function, num_warps)
    loads = [op for op in function.walk() if isinstance(op, memory.Load)]
    width = homes.accesses[loads[0]].vectors.width
    assert width == min(4, max(1, 1024 // (32 * num_warps)))


def test_a_transposition_reads_and_writes_whole_vectors() -> None:
    kernel = compiled(transpose())
    assert set(accesses(kernel.ptx, "ld")) == {"v4.b32"}
    assert set(accesses(kernel.ptx, "st")) == {"v4.b32"}
    assert kernel.shared_bytes == 64 * 64 * 4


# ---- conversions and waits -----------------------------------------------------------------------


def conversions(function: Function) -> int:
    return sum(map(len, Homes(function, 4).wanted.values()))


@pytest.mark.parametrize(
    ("function", "count"), [(add(), 0), (softmax(), 0), (transpose(), 1), (column_sum(), 1)]
)
def test_ordinary_kernels_convert_only_what_they_must(function: Function, count: int) -> None:
    assert conversions(function) == count


def waits(function: Function, *, disjoint: bool = True, num_warps: int = 4) -> int:
    writer = write_module(function, TARGET, num_warps=num_warps, disjoint=disjoint)
    return writer.module.text().count("call void @llvm.nvvm.barrier")


def small(kernel: str) -> Function:
    names = getattr(kernels, kernel).python_signature.parameters
    given = {name: pointer() for name in names if name.endswith("_ptr")}
    return traced(getattr(kernels, kernel), **given, n=number(), BLOCK=1024)


def test_each_thread_meets_only_its_own_accesses_in_place() -> None:
    assert waits(small("in_place")) == 0


def test_what_another_thread_has_stored_is_waited_for() -> None:
    assert waits(small("neighbours")) == 1


def test_an_iteration_waits_for_the_one_before_it() -> None:
    assert waits(small("every_iteration")) >= 1


def test_a_scalar_is_stored_when_all_have_loaded_it() -> None:
    assert waits(small("one_for_all")) == 2


def test_arrays_that_may_overlap_are_accessed_in_order() -> None:
    assert waits(add(block=4096)) == 0
    assert waits(add(block=4096), disjoint=False) == 1


def test_pairs_are_those_of_disjoint_code() -> None:
    assert set(compiled(add()).alias_pairs) == {(0, 2), (1, 2)}
    assert compiled(add(), disjoint=False).alias_pairs == ()
    assert compiled(add()).written == {2}


# ---- machine code --------------------------------------------------------------------------------


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("kernel", [add, softmax, transpose, column_sum])
def test_it_is_assembled_without_spills(kernel, arch: str) -> None:  # type: ignore[no-untyped-def]
    path = ptxas_or_skip()
    made = compile_kernel(kernel(), gpu_target(arch), num_warps=4, disjoint=True)
    usage = ptxas.assemble(path, made.ptx, arch).usage
    assert usage.spill_stores == 0
    assert ".local" not in made.ptx


def test_names_that_ptx_does_not_take_are_changed() -> None:
    function = add()
    for name, wanted in (("größe", "gr__e"), ("WARP_SZ", "WARP_SZ_"), ("f", "f")):
        function.name = name
        assert compiled(function).entry == wanted


def test_a_kernel_may_have_the_name_of_shared_memory() -> None:
    function = softmax()
    function.name = "smem"
    kernel = compiled(function)
    assert kernel.shared_bytes
    assert f".entry {kernel.entry}(" in kernel.ptx


# ---- how much is computed ------------------------------------------------------------------------


@DeviceFunction
def masked_sum(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs)
    tl.store(out_ptr + offs, tl.where(offs < n, x * x, 0.0))


@pytest.mark.parametrize(("divisible", "count"), [(True, 2), (False, 8)])
def test_a_mask_is_computed_once_for_all_that_it_is_equal_for(divisible: bool, count: int) -> None:
    given = {"x_ptr": pointer(), "out_ptr": pointer(), "n": number(int32, divisible)}
    function = traced(masked_sum, **given, BLOCK=1024)
    text = write_module(function, TARGET, num_warps=4, disjoint=True).module.text()
    assert text.count("icmp slt") == count


@DeviceFunction
def counting(out_ptr, start, end, step, BLOCK: tl.constexpr):
    total = 0
    for at in tl.range(start, end, step):
        total += at
    tl.store(out_ptr, total)


def test_loops_take_no_division() -> None:
    bounds = {name: number(int32, False) for name in ("start", "end", "step")}
    function = traced(counting, out_ptr=pointer(int32), **bounds, BLOCK=1)
    assert not re.search(r"\bdiv\.", compiled(function).ptx)


@DeviceFunction
def wide_transpose(x_ptr, out_ptr, BLOCK: tl.constexpr):
    r, c = tl.arange(0, BLOCK)[:, None], tl.arange(0, BLOCK)[None, :]
    x = tl.load(x_ptr + r * BLOCK + c).to(tl.float32)
    y = tl.load(out_ptr + r + c * BLOCK)
    tl.store(out_ptr + r + c * BLOCK, y + x)


def test_what_is_widened_is_moved_before() -> None:
    given = {"x_ptr": pointer(float16), "out_ptr": pointer()}
    assert compiled(traced(wide_transpose, **given, BLOCK=64)).shared_bytes == 64 * 64 * 2
