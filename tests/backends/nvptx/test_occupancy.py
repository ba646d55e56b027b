"""What the assembler is told of the blocks that run together."""

from __future__ import annotations

import re

import pytest
from tests.backends.nvptx import kernels
from tests.backends.nvptx.kernels import number, pointer, traced

from tritium.backends.nvptx.compile import compile_kernel
from tritium.backends.nvptx.homes import Homes
from tritium.backends.nvptx.occupancy import ADDRESSES, least_blocks, most_words, registers_left
from tritium.backends.nvptx.target import gpu_target
from tritium.ir.core import Function


def softmax(block: int) -> Function:
    given = {"x_ptr": pointer(), "out_ptr": pointer(), "stride": number(), "columns": number()}
    return traced(kernels.softmax, **given, BLOCK=block)


def column_sum() -> Function:
    sizes = {name: number() for name in ("rows", "columns", "stride")}
    given = {"x_ptr": pointer(), "out_ptr": pointer(), **sizes}
    return traced(kernels.column_sum, **given, BM=32, BN=64)


@pytest.mark.parametrize(("block", "words"), [(512, 5), (4096, 33), (8192, 65)])
def test_a_row_is_held_once(block: int, words: int) -> None:
    function = softmax(block)
    assert most_words(function, Homes(function, 4)) == words


def test_what_a_loop_carries_is_held_beside_what_it_loads() -> None:
    function = column_sum()
    tile = 32 * 64 // 128
    rows = 32 * 64 // 128 // 4
    assert most_words(function, Homes(function, 4)) == 2 * tile + rows


@pytest.mark.parametrize("num_warps", [1, 2, 4, 8, 16, 32])
@pytest.mark.parametrize("block", [1024, 4096, 16384])
def test_what_is_held_fits_into_the_registers_that_are_left(block: int, num_warps: int) -> None:
    function = softmax(block)
    homes = Homes(function, num_warps)
    blocks = least_blocks(function, [homes], num_warps)
    need = most_words(function, homes) + ADDRESSES
    threads = 32 * num_warps
    assert blocks is not None
    assert max(1, 256 // threads) <= blocks <= 1024 // threads
    assert registers_left(blocks, threads) <= 65536 / (blocks * threads)
    assert need <= registers_left(blocks, threads) or blocks == max(1, 256 // threads)


def test_ptx_says_so() -> None:
    made = compile_kernel(softmax(1024), gpu_target("sm_90a"), num_warps=4, disjoint=True)
    assert re.findall(r"\.minnctapersm (\d+)", made.ptx) == ["8"]
    large = compile_kernel(softmax(16384), gpu_target("sm_90a"), num_warps=4, disjoint=True)
    assert re.findall(r"\.minnctapersm (\d+)", large.ptx) == ["3"]
