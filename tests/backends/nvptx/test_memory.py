"""Loads and stores with what the user says about caches: their PTX, and what they do."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest
import tests.backends.nvptx.emulator as emu
from tests.backends.nvptx import kernels
from tests.backends.nvptx.kernels import number, pointer, traced
from tests.backends.nvptx.kernels import ptxas_or_skip as assembler

import tritium.language as tl
from tritium.backends.nvptx import ptxas, sass, tools
from tritium.backends.nvptx.compile import compile_kernel, write_module
from tritium.backends.nvptx.target import gpu_target
from tritium.ir.core import Function
from tritium.ir.dtypes import DType, bfloat16, float16, float32, float64, int1, int8, int64
from tritium.ops.callable import DeviceFunction
from tritium.ops.memory import CACHE_MODIFIERS, EVICTION_POLICIES

TARGET = gpu_target("sm_90a")


@DeviceFunction
def copy(
    x_ptr,
    out_ptr,
    n,
    BLOCK: tl.constexpr,
    CACHE: tl.constexpr,
    POLICY: tl.constexpr,
    VOLATILE: tl.constexpr,
):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask, cache_modifier=CACHE, eviction_policy=POLICY, volatile=VOLATILE)
    tl.store(out_ptr + offs, x, mask, cache_modifier=CACHE, eviction_policy=POLICY)


@DeviceFunction
def copy_in_place(x_ptr, out_ptr, CACHE: tl.constexpr):
    x = tl.load(x_ptr, cache_modifier=CACHE)
    tl.store(x_ptr, x + 1, cache_modifier=CACHE)
    tl.store(out_ptr + tl.arange(0, 8), tl.load(x_ptr + tl.arange(0, 8), cache_modifier=CACHE))


def traced_copy(
    cache: str = "",
    policy: str = "",
    *,
    volatile: bool = False,
    dtype: DType = float32,
    block: int = 1024,
    divisible: bool = True,
) -> Function:
    specs = {"x_ptr": pointer(dtype), "out_ptr": pointer(dtype), "n": number(divisible=divisible)}
    constants = {"CACHE": cache, "POLICY": policy, "VOLATILE": volatile}
    return traced(copy, **specs, BLOCK=block, **constants)


def compiled(function: Function, arch: str = "sm_90a", num_warps: int = 4) -> str:
    return compile_kernel(function, gpu_target(arch), num_warps=num_warps, disjoint=True).ptx


def instructions(ptx: str, kind: str) -> set[str]:
    return set(re.findall(rf"^\s*(?:@\S+ )?({kind}\.(?:volatile\.)?global\S*)", ptx, re.M))


LOADS = {
    ("", ""): "ld.global.nc.v4.b32",
    ("ca", ""): "ld.global.ca.nc.v4.b32",
    ("cg", ""): "ld.global.cg.v4.b32",
    ("cs", ""): "ld.global.cs.nc.v4.b32",
    ("cv", ""): "ld.global.cv.v4.b32",
    ("wb", ""): "ld.global.nc.v4.b32",
    ("", "evict_normal"): "ld.global.nc.v4.b32",
    ("", "evict_first"): "ld.global.nc.L1::evict_first.L2::cache_hint.v4.b32",
    ("", "evict_last"): "ld.global.nc.L1::evict_last.L2::cache_hint.v4.b32",
    ("cg", "evict_last"): "ld.global.cg.L2::cache_hint.v4.b32",
    ("cv", "evict_last"): "ld.global.cv.L2::cache_hint.v4.b32",
}
STORES = {
    ("", ""): "st.global.v4.b32",
    ("wb", ""): "st.global.wb.v4.b32",
    ("cg", ""): "st.global.cg.v4.b32",
    ("cs", ""): "st.global.cs.v4.b32",
    ("wt", ""): "st.global.wt.v4.b32",
    ("ca", ""): "st.global.v4.b32",
    ("", "evict_first"): "st.global.L1::evict_first.L2::cache_hint.v4.b32",
    ("cs", "evict_first"): "st.global.cs.L2::cache_hint.v4.b32",
}


@pytest.mark.parametrize(("said", "wanted"), LOADS.items())
def test_a_load_is_as_it_was_asked_for(said: tuple[str, str], wanted: str) -> None:
    assert instructions(compiled(traced_copy(*said)), "ld") == {wanted}


@pytest.mark.parametrize(("said", "wanted"), STORES.items())
def test_a_store_is_as_it_was_asked_for(said: tuple[str, str], wanted: str) -> None:
    assert instructions(compiled(traced_copy(*said)), "st") == {wanted}


def test_there_are_no_policies_of_l2_before_sm_80() -> None:
    ptx = compiled(traced_copy("", "evict_first"), "sm_75")
    assert instructions(ptx, "ld") == {"ld.global.nc.L1::evict_first.v4.b32"}
    assert "createpolicy" not in ptx
    ptx = compiled(traced_copy("cg", "evict_first"), "sm_75")
    assert instructions(ptx, "ld") == {"ld.global.cg.v4.b32"}


@pytest.mark.parametrize("dtype", [float32, int8, float64])
def test_a_volatile_load_stays_wide(dtype: DType) -> None:
    ptx = compiled(traced_copy(volatile=True, dtype=dtype, block=4096))
    width = "v2.b64" if dtype is float64 else "v4.b32"
    assert instructions(ptx, "ld") == {f"ld.volatile.global.{width}"}


EVERY = [(cache, policy) for cache in CACHE_MODIFIERS for policy in EVICTION_POLICIES]


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_every_combination_and_width_is_assembled(arch: str) -> None:
    """One module for each dtype: ptxas takes a while to start."""
    path = assembler()
    for dtype, width in [(int1, 1), (int8, 2), (int8, 16), (float16, 4), (float32, 1), (int64, 2)]:
        seen = set()
        entries = []
        for number_, (cache, policy) in enumerate(EVERY):
            function = traced_copy(cache, policy, dtype=dtype, block=128 * width)
            for op in function.walk():
                # A module has each line's label once.
                op.loc = None
            ptx = compiled(function, arch)
            head, entry = ptx.split(".visible .entry ", 1)
            key = frozenset(instructions(ptx, "ld") | instructions(ptx, "st"))
            if key not in seen:
                seen.add(key)
                named = entry.replace("copy(", f"copy{number_}(", 1).replace("copy_param", "p")
                entries.append(".visible .entry " + named.replace("$L__", f"$L{number_}__"))
        usage = ptxas.assemble(path, head + "".join(entries), arch).usage
        assert usage.spill_stores == 0


MACHINE = {
    ("", ""): ("LDG.E.128.CONSTANT", "STG.E.128"),
    ("cg", ""): ("LDG.E.128.STRONG.GPU", "STG.E.128.STRONG.GPU"),
    ("cs", "evict_last"): ("LDG.E.EF.128.CONSTANT", "STG.E.EF.128"),
    ("cv", ""): ("LDG.E.128.STRONG.SYS", "STG.E.128"),
    ("wt", ""): ("LDG.E.128.CONSTANT", "STG.E.128.STRONG.SYS"),
    ("", "evict_first"): ("LDG.E.EF.128.CONSTANT", "STG.E.EF.128"),
    ("", "evict_last"): ("LDG.E.EL.128.CONSTANT", "STG.E.EL.128"),
}


@pytest.mark.parametrize(("said", "wanted"), MACHINE.items())
def test_machine_code_has_it_and_predicates_for_masks(
    said: tuple[str, str], wanted: tuple[str, str]
) -> None:
    path = assembler()
    if tools.find("nvdisasm") is None:
        pytest.skip("nvdisasm is not installed")
    cubin = ptxas.assemble(path, compiled(traced_copy(*said)), "sm_90a").cubin
    found = re.findall(r"(@!?P\d )?((?:LDG|STG|BRA)\S*) ", sass.disassemble(cubin))
    # The last store follows an exit; a branch to itself ends all code.
    assert [name for _, name in found] == [wanted[0]] * 2 + [wanted[1]] * 2 + ["BRA"]
    assert all(predicate for predicate, _ in found[:3])


@pytest.mark.parametrize("dtype", [float16, int8, float32])
def test_a_mask_costs_no_more_than_the_words_that_are_loaded(dtype: DType) -> None:
    """Of narrow elements whole words are chosen, so that what is done with each is done always."""
    ptx = compiled(traced_copy(dtype=dtype, block=512 * 4 // dtype.itemsize))
    assert instructions(ptx, "ld") == {"ld.global.nc.v4.b32"}
    assert len(re.findall(r"@%p\d+ ld", ptx)) == len(re.findall(r"@%p\d+ st", ptx)) == 1
    assert " bra" not in ptx
    assert "prmt" not in ptx
    assert "mov.b32 \t{" not in ptx


@DeviceFunction
def rows(x_ptr, out_ptr, stride, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    starts = tl.arange(0, ROWS)[:, None] * stride
    columns = tl.arange(0, COLUMNS)[None, :]
    tl.store(out_ptr + starts + columns, tl.load(x_ptr + starts + columns))


def test_vectors_of_a_row_share_an_address() -> None:
    """What is a known distance away is told by the instruction."""
    for count in (1, 4):
        specs = {"x_ptr": pointer(), "out_ptr": pointer(), "stride": number()}
        ptx = compiled(traced(rows, **specs, ROWS=count, COLUMNS=4096 // count), num_warps=1)
        for kind in ("ld", "st"):
            found = re.findall(rf"{kind}\.global.*\[(%rd\d+)(?:\+(\d+))?\]", ptx)
            assert len(found) == 32
            assert len({base for base, _ in found}) == count
            assert {int(step or 0) for _, step in found} == set(range(0, 16384 // count, 512))


DTYPES = [
    (int1, np.uint8),
    (int8, np.int8),
    (float16, np.float16),
    (bfloat16, ml_dtypes.bfloat16),
    (float32, np.float32),
    (int64, np.int64),
]


@pytest.mark.skipif(emu.unsupported() is not None, reason=str(emu.unsupported()))
@pytest.mark.parametrize(("dtype", "storage"), DTYPES)
@pytest.mark.parametrize("said", [("cg", "evict_first"), ("cv", ""), ("wt", "evict_last")])
@pytest.mark.parametrize("block", [16, 1024])
def test_it_copies(dtype: DType, storage: type, said: tuple[str, str], block: int) -> None:
    rng = np.random.default_rng(5)
    n = block - 16 if block > 16 else block
    x = rng.integers(0, 2, block).astype(storage)
    out = np.zeros(block, storage)
    for divisible in (True, False):
        function = traced_copy(*said, dtype=dtype, block=block, divisible=divisible)
        writer = write_module(function, TARGET, num_warps=2, disjoint=True)
        gpu = emu.Emulator(writer.module.text(), "copy", 2)
        out[:] = 0
        gpu.launch([x.ctypes.data, out.ctypes.data, n])
        assert np.array_equal(out[:n], x[:n])
        assert not out[n:].any()


@pytest.mark.skipif(emu.unsupported() is not None, reason=str(emu.unsupported()))
@pytest.mark.parametrize("num_warps", [1, 2, 8])
def test_what_may_change_is_read_by_one_thread_for_all(num_warps: int) -> None:
    """Each element is loaded once, whatever the number of threads that hold it."""
    function = traced_copy(volatile=True, block=8)
    writer = write_module(function, TARGET, num_warps=num_warps, disjoint=True)
    x, out = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    gpu = emu.Emulator(writer.module.text(), "copy", num_warps)
    gpu.launch([x.ctypes.data, out.ctypes.data, 8])
    log = gpu.accesses(emu.GLOBAL_SPACE)
    loaded = log[log[:, 1] >> 16 == 0]
    assert loaded[:, 1].sum() == 4 * 8
    assert np.array_equal(out, x)


@pytest.mark.skipif(emu.unsupported() is not None, reason=str(emu.unsupported()))
@pytest.mark.parametrize("cache", ["", "cv", "cg"])
def test_accesses_of_all_kinds_keep_their_order(cache: str) -> None:
    function = traced(copy_in_place, x_ptr=pointer(), out_ptr=pointer(), CACHE=cache)
    writer = write_module(function, TARGET, num_warps=2, disjoint=True)
    for seed in range(4):
        x, out = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
        emu.Emulator(writer.module.text(), "copy_in_place", 2).launch(
            [x.ctypes.data, out.ctypes.data], seed=seed
        )
        assert np.array_equal(out, [1, *range(1, 8)])


def test_threads_wait_where_several_elements_are_one_place() -> None:
    for kernel, waits in ((kernels.folded, 1), (kernels.in_place, 0)):
        ptx = compiled(traced(kernel, x_ptr=pointer(), n=number(), BLOCK=256))
        assert ptx.count("bar.sync") == waits


def test_what_may_be_stored_to_by_an_address_from_memory_is_not_constant() -> None:
    given = {"table_ptr": pointer(int64), "x_ptr": pointer(), "n": number()}
    ptx = compiled(traced(kernels.through_a_table, **given, BLOCK=256))
    assert instructions(ptx, "ld") == {"ld.global.b64", "ld.global.v2.b32"}
    assert ptx.count("ld.global.v2.b32") == 2
