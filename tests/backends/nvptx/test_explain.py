"""The text that says what became of a kernel."""

from __future__ import annotations

import inspect

import pytest
from tests.backends.nvptx import kernels
from tests.backends.nvptx.test_structure import add, column_sum, softmax, transpose

from tritium.backends.nvptx.explain import describe
from tritium.backends.nvptx.target import gpu_target
from tritium.ir import Function
from tritium.ir.dtypes import float16, int32

TARGET = gpu_target("sm_90a")


def text(function: Function, num_warps: int = 4) -> str:
    return describe(function, TARGET, num_warps, 0)


def line_of(kernel: object, words: str) -> int:
    lines, first = inspect.getsourcelines(kernel.fn)  # type: ignore[attr-defined]
    (found,) = [place for place, line in enumerate(lines, first) if words in line]
    return found


def test_an_access_says_its_line_its_width_and_why() -> None:
    shown = text(add())
    where = line_of(kernels.add, "x = tl.load")
    assert f"line {where}  load   x    tile<1024xfp32>  16 bytes at a time, 2 times" in shown
    assert "as 1024 elements lie side by side, from multiples of 16 bytes on" in shown
    assert "and the mask has one value for 16" in shown


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (add(aligned=False), "addresses are only known to be multiples of 4 bytes"),
        (add(dtype=int32, block=128), "threads would have nothing to do"),
        (add(n=False), "where the mask holds for all of them, as its last element tells"),
        (add(block=90), "the tile's extent is 90"),
    ],
)
def test_what_keeps_an_access_from_being_wider(function: Function, words: str) -> None:
    assert words in text(function, 1 if "extent" in words else 4)


def test_conversions_say_how_and_what_they_cost() -> None:
    shown = text(transpose(float16))
    assert "B to A  through 8192 bytes of shared memory" in shown
    assert "wavefronts" in shown
    assert "about" in shown
    assert "cells: warp.lane:register" in shown
    shown = text(column_sum())
    assert "indexed shuffles" in shown


def test_reductions_say_where_they_happen() -> None:
    wanted = "32 registers in a thread, then 32 lanes by shuffles, then 4 warps through shared"
    assert text(softmax()).count(wanted) == 2


def test_large_tiles_are_worked_on_in_trips() -> None:
    shown = text(softmax(65536))
    assert "16 bytes at a time, 8 times a thread, in each of 16 trips" in shown
    assert "A, 32 registers, in each of 16 trips" in shown
    assert "32 registers in a thread, then 16 trips in a thread, then 32 lanes by shuffles" in shown


def test_index_arithmetic_is_in_no_registers() -> None:
    assert "Computed wherever they are wanted: offs, mask" in text(softmax())


def test_each_layout_is_drawn_once() -> None:
    shown = text(column_sum())
    assert [line for line in shown.splitlines() if line in ("  A", "  B", "  C")] == [
        "  A",
        "  B",
        "  C",
    ]
