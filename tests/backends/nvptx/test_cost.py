"""What ptxas says of single parts: registers without spills, and the instructions that count."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.backends.nvptx.test_reductions import covering
from tests.backends.nvptx.tiles import TileKernel

from tritium.backends.nvptx import ptxas, tools
from tritium.backends.nvptx.converts import convert
from tritium.backends.nvptx.dots import dot
from tritium.backends.nvptx.reductions import reduce
from tritium.ir.core import Op, Value
from tritium.ir.dtypes import DType, float16, float32, int8, int32
from tritium.ir.types import shaped
from tritium.ops import combines
from tritium.ops import reduce as reductions
from tritium.ops.dot import Dot, result_dtype

ARCH = "sm_90a"


def product(dtype: DType, m: int, k: int, n: int, warps: int) -> TileKernel:
    kernel = TileKernel(warps, ARCH)
    types = [shaped(dtype, (m, k)), shaped(dtype, (k, n))]
    op = Dot(a=Value(types[0]), b=Value(types[1]), out_dtype=result_dtype(dtype, dtype, None))
    op.make_results()
    tiles = [kernel.load(type, covering(type.shape, 4, warps)) for type in types]
    kernel.dump(dot(kernel.writer, op, tiles[0], tiles[1], None))
    return kernel


def row(extent: int, warps: int) -> TileKernel:
    kernel = TileKernel(warps, ARCH)
    type = shaped(float32, (extent,))
    op = reductions.Max(x=Value(type), axis=0)
    op.make_results()
    tile = kernel.load(type, covering((extent,), 4, warps))
    kernel.dump(reduce(kernel.writer, op, [tile])[0], op.result.type)
    return kernel


def positions(extent: int, warps: int) -> TileKernel:
    """The smallest element and where it is."""
    kernel = TileKernel(warps, ARCH)
    types = [shaped(float32, (extent,)), shaped(int32, (extent,))]
    region = combines.argmin_region(float32)
    op: Op = reductions.Reduce(inputs=tuple(map(Value, types)), axis=0, combine=region)
    op.make_results()
    tiles = [kernel.load(type, covering((extent,), 4, warps)) for type in types]
    for made, value in zip(reduce(kernel.writer, op, tiles), op.results, strict=True):
        kernel.dump(made, value.type)
    return kernel


def transposition(dtype: DType, extent: int, warps: int) -> TileKernel:
    kernel = TileKernel(warps, ARCH)
    shape = (extent, extent)
    tile = kernel.load(shaped(dtype, shape), covering(shape, 4, warps))
    kernel.dump(convert(kernel.writer, tile, covering(shape, 4, warps, (0, 1))))
    return kernel


PARTS: dict[str, tuple[Callable[[], TileKernel], int]] = {
    "fp32 product 64x64x64": (lambda: product(float32, 64, 64, 64, 4), 80),
    "fp32 product 128x32x128": (lambda: product(float32, 128, 32, 128, 8), 128),
    "fp16 product 64x32x64": (lambda: product(float16, 64, 32, 64, 4), 80),
    "int8 product 64x64x64": (lambda: product(int8, 64, 64, 64, 4), 80),
    "row of 4096": (lambda: row(4096, 4), 48),
    "positions in a row of 2048": (lambda: positions(2048, 4), 64),
    "fp32 transposition of 64x64": (lambda: transposition(float32, 64, 4), 72),
    "fp16 transposition of 64x64": (lambda: transposition(float16, 64, 4), 72),
}


@pytest.mark.parametrize("name", PARTS)
def test_registers(name: str) -> None:
    """Bounds a little above what the present code takes."""
    path = tools.find("ptxas")
    if path is None:
        pytest.skip("there is no ptxas to count registers")
    make, most = PARTS[name]
    used = ptxas.assemble(path, make().ptx(), ARCH).usage
    assert used.spill_stores == used.stack == 0
    assert used.registers <= most


def counted(kernel: TileKernel, *names: str) -> list[int]:
    ptx = kernel.ptx()
    return [ptx.count(f"\t{name}") for name in names]


def test_a_row_takes_five_shuffles_and_one_barrier() -> None:
    """Four partial results come back in one load."""
    names = ("shfl.sync", "bar.sync", "st.shared", "ld.shared.v4.b32", "ld.shared")
    assert counted(row(4096, 4), *names) == [5, 1, 1, 1, 1]
    assert counted(positions(2048, 4), *names) == [10, 1, 2, 2, 2]


def test_a_transposition_moves_vectors_on_one_side() -> None:
    """Of which neither has conflicts: both sides take as many wavefronts as there are words."""
    names = ("st.shared.v4.b32", "st.shared", "ld.shared", "bar.sync")
    assert counted(transposition(float32, 64, 4), *names) == [8, 8, 32, 1]
