"""Matrix products as LLVM IR, run by the emulator, against the reference rule."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from tests.backends.nvptx.emulator import unsupported
from tests.backends.nvptx.layouts import machine, random_layouts
from tests.backends.nvptx.test_reductions import covering
from tests.backends.nvptx.tiles import TileKernel, agree, elements, run
from tests.ops.harness import case_difference

from tritium.backends.nvptx.dots import Operand, dot, dot_home
from tritium.backends.nvptx.layouts import Extents, SharedAccess
from tritium.backends.nvptx.values import Held
from tritium.ir.core import Value
from tritium.ir.dtypes import DType, bfloat16, float16, float32, float64, int8
from tritium.ir.types import shaped
from tritium.ops.dot import Dot, result_dtype
from tritium.ops.spec import Case

pytestmark = pytest.mark.skipif(unsupported() is not None, reason=str(unsupported()))

CASES = list(Dot.cases())


def multiplied(
    case: Case, warps: int, seed: int = 0, limit: int | None = None, layouts: Any = None
) -> tuple[np.ndarray, Any, TileKernel]:
    """The product of a case as a whole tile, after looking at every place of it."""
    kernel = TileKernel(warps)
    if limit is not None:
        kernel.writer.shared.limit = limit
    given = case.samples()
    op: Any = case.build([Value(sample.type) for sample in given])
    op.make_results()
    home = dot_home(op, warps)
    random = Random(seed)
    tiles = []
    for number, sample in enumerate(given):
        physical = Extents(sample.type.shape).physical
        layout = covering(sample.type.shape, 4, warps)
        if number == 2:
            layout = home
        elif layouts is not None:
            layout = layouts(random, physical, warps.bit_length() - 1)
        tiles.append(kernel.load(sample.type, layout))
    acc = tiles[2] if len(tiles) == 3 else None
    made = dot(kernel.writer, op, tiles[0], tiles[1], acc)
    assert isinstance(made, Held)
    assert made.layout == home
    kernel.dump(made)
    gpu = kernel.emulator()
    (got,) = run(gpu, kernel, [sample.data for sample in given], seed)
    index, inside = elements(op.result.type, home)
    whole = np.zeros(op.result.type.shape, op.result.scalar.numpy)
    whole.reshape(-1)[index[inside]] = got[inside]
    # Every copy holds the same.
    agree(got, op.result.type, home, whole)
    return whole, gpu, kernel


def check(case: Case, warps: int, **options: Any) -> Any:
    whole, gpu, kernel = multiplied(case, warps, **options)
    problem = case_difference(case, [whole], "nvptx")
    assert problem is None, f"{case.label}: {problem}"
    return gpu, kernel


@pytest.mark.parametrize("number", range(0, len(CASES), 3))
def test_generated_cases(number: int) -> None:
    check(CASES[number], (1, 2, 4)[number % 3], seed=number)


def case_of(dtype: DType, m: int, k: int, n: int, acc: bool = False) -> Case:
    out = result_dtype(dtype, dtype, None)
    return Dot._case(dtype, dtype, ((m, k), (k, n)), out, acc)


@pytest.mark.parametrize("dtype", [int8, float16, bfloat16, float32, float64], ids=str)
def test_shared_memory_for_a_part_of_k_at_a_time(dtype: DType) -> None:
    """Once with lanes along K, which then belong to different passes."""
    case = case_of(dtype, 16, 40, 24, acc=True)
    size = dtype.compute.itemsize if dtype.is_floating() else 4
    for depth in (4, 16):
        _, kernel = check(case, 2, limit=(16 + 32) * size * depth)
        assert kernel.writer.shared.total == (16 + 32) * size * depth


@pytest.mark.parametrize("shape", [(1, 1, 2), (1, 1, 8), (1, 3, 8), (2, 1, 16), (1, 2, 4)])
def test_the_first_operand_may_be_smaller_than_an_access(shape: tuple[int, int, int]) -> None:
    for dtype in (int8, float16, float32, float64):
        check(case_of(dtype, *shape), 4)


def test_operands_in_any_layout() -> None:
    for seed in range(12):
        case = case_of((float32, int8)[seed % 2], 13, 20, 9)
        check(case, 4, seed=seed, layouts=random_layouts.layout)


def test_large_tiles_are_loaded_in_vectors_and_stored_without_conflicts() -> None:
    shape, warps = (64, 64), 4
    op = Dot(a=Value(shaped(float32, shape)), b=Value(shaped(float32, shape)), out_dtype=float32)
    op.make_results()
    home = dot_home(op, warps)
    kernel = TileKernel(warps)
    layout = covering(shape, 4, warps)
    held = [kernel.load(shaped(float32, shape), layout) for _ in range(2)]
    for number, operand in enumerate(
        (Operand(held[0], 0, 1, float32, 64, 0), Operand(held[1], 1, 0, float32, 64, 0))
    ):
        side = SharedAccess.of(layout, operand.shared, 32)
        assert side.width == (1, 4)[number]
        least = side.instructions * max(1, side.bytes // 4)
        assert machine.total_wavefronts(side) <= (2, 1)[number] * least
    kernel.dump(dot(kernel.writer, op, *held, None))
    loop = [block for block in kernel.ptx().split("$L__BB") if block.count("fma.rn.f32") > 64]
    assert len(loop) == 1
    assert loop[0].count("ld.shared.v4.b32") == 4 * 3
    assert loop[0].count("fma.rn.f32") == 4 * 32
    assert home.input_extent("register") == 32
