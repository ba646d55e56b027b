"""Conversions as LLVM IR, run by the emulator: every place of the target gets its element."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from tests.backends.nvptx.emulator import unsupported
from tests.backends.nvptx.layouts import random_layouts
from tests.backends.nvptx.tiles import TileKernel, agree

from tritium.backends.nvptx.converts import by_index, convert
from tritium.backends.nvptx.layouts import (
    Blocked,
    Extents,
    LinearLayout,
    Rename,
    Scope,
    Shuffle,
    ThroughShared,
    plan_conversion,
)
from tritium.ir.dtypes import (
    Type,
    bfloat16,
    float8e5,
    float16,
    float32,
    float64,
    int1,
    int8,
    int16,
    int32,
    int64,
    uint8,
)
from tritium.ir.types import PointerType, shaped

pytestmark = pytest.mark.skipif(unsupported() is not None, reason=str(unsupported()))

SCALARS = (
    *(int1, int8, uint8, int16, int32, int64, float8e5, bfloat16, float16, float32, float64),
    PointerType(float32),
)


def values_of(scalar: Type, shape: tuple[int, ...], seed: int = 1) -> np.ndarray:
    """Random bits; 0 and 1 of int1."""
    rng = np.random.default_rng(seed)
    if scalar is int1:
        return rng.integers(0, 2, shape).astype(bool)
    size = scalar.itemsize
    bits = rng.integers(0, 256, (*shape, size), np.uint8)
    return np.ascontiguousarray(bits).view(scalar.numpy).reshape(shape)


def logical(random: Random, physical: tuple[int, ...]) -> tuple[int, ...]:
    """Extents that have these as their next powers of two."""
    return tuple(random.randint(extent // 2 + 1, extent) for extent in physical)


def moved(
    scalar: Type,
    shape: tuple[int, ...],
    source: LinearLayout,
    target: LinearLayout,
    warps: int,
    limit: int | None = None,
    seed: int = 0,
) -> None:
    """Convert and look at everything."""
    type = shaped(scalar, shape)
    kernel = TileKernel(warps)
    if limit is not None:
        kernel.writer.shared.limit = limit
    kernel.dump(convert(kernel.writer, kernel.load(type, source), target))
    array = values_of(scalar, shape)
    (got,) = kernel.run([array], seed)
    agree(got, type, target, array)


def pair(random: Random) -> tuple[tuple[int, ...], LinearLayout, LinearLayout, int]:
    warp_bits = random.randrange(3)
    physical = random_layouts.shape(random, random.randint(1, 3), random.randint(0, 9))
    source = random_layouts.layout(random, physical, warp_bits)
    if random.random() < 0.4:
        target = random_layouts.mixed_in_warps(random, source)
    else:
        target = random_layouts.layout(random, physical, warp_bits)
    return physical, source, target, 1 << warp_bits


def test_every_element_arrives() -> None:
    kinds = set()
    for seed in range(110):
        random = Random(seed)
        physical, source, target, warps = pair(random)
        shape = logical(random, physical) if seed % 2 else physical
        scalar = SCALARS[seed % len(SCALARS)]
        plan = plan_conversion(source, target, 8 * scalar.itemsize)
        kinds.add(type(plan))
        if isinstance(plan, ThroughShared):
            kinds.add(plan.scope)
            kinds |= {"idle"} if plan.idle_lanes or plan.idle_warps else set()
        if isinstance(plan, Shuffle):
            kinds.add("butterfly" if plan.is_butterfly else "indexed")
        moved(scalar, shape, source, target, warps, seed=seed)
    assert kinds >= {Rename, Shuffle, ThroughShared, *Scope, "idle", "butterfly", "indexed"}


@pytest.mark.parametrize("scalar", SCALARS, ids=str)
def test_every_type_through_shared_memory_in_passes(scalar: Type) -> None:
    """Transpositions of four matrices, with memory for one of them."""
    shape = (4, 32, 32)
    source = Blocked.covering(shape, (2, 1, 0), 4, 4).layout(shape)
    target = Blocked.covering(shape, (1, 2, 0), 4, 4).layout(shape)
    limit = 32 * 32 * scalar.itemsize
    plan = plan_conversion(source, target, 8 * scalar.itemsize, limit)
    assert isinstance(plan, ThroughShared)
    assert plan.arrangement.passes_within(limit) == 4
    moved(scalar, shape, source, target, 4)
    moved(scalar, shape, source, target, 4, limit)


@pytest.mark.parametrize("scalar", SCALARS, ids=str)
def test_every_type_by_shuffles(scalar: Type) -> None:
    shape = (32, 8)
    source = Blocked((1, 8), (32, 1), (1, 1), (1, 0)).layout(shape)
    target = Blocked((8, 1), (4, 8), (1, 1), (1, 0)).layout(shape)
    bits = 8 * scalar.itemsize
    if isinstance(plan_conversion(source, target, bits), Shuffle):
        moved(scalar, shape, source, target, 1)
    # Few enough elements for shuffles in any type.
    small = (8, 2)
    source = Blocked((1, 2), (32, 1), (1, 1), (1, 0)).layout(small)
    target = Blocked((1, 1), (16, 2), (1, 1), (1, 0)).layout(small)
    assert isinstance(plan_conversion(source, target, bits), Shuffle)
    moved(scalar, small, source, target, 1)


RESHAPES: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((3, 5), (15,)),
    ((15,), (5, 3)),
    ((6, 10), (4, 15)),
    ((2, 3, 5), (30,)),
    ((1, 1), (1,)),
    ((48, 5), (5, 48)),
]


@pytest.mark.parametrize("old,new", RESHAPES, ids=str)
@pytest.mark.parametrize("limit", [None, 32])
def test_reshapes_that_move_padding_go_by_index(
    old: tuple[int, ...], new: tuple[int, ...], limit: int | None
) -> None:
    for number, scalar in enumerate((float32, int1, PointerType(int8))):
        warps = (1, 2, 4)[number]
        source_type, target_type = shaped(scalar, old), shaped(scalar, new)
        layouts = [
            Blocked.covering(
                Extents(shape).physical, tuple(range(len(shape)))[::-1], 2, warps
            ).layout(Extents(shape).physical)
            for shape in (old, new)
        ]
        kernel = TileKernel(warps)
        if limit is not None:
            kernel.writer.shared.limit = limit
        held = kernel.load(source_type, layouts[0])
        kernel.dump(by_index(kernel.writer, held, target_type, layouts[1]))
        array = values_of(scalar, old)
        (got,) = kernel.run([array])
        agree(got, target_type, layouts[1], array)


def test_a_chain_of_conversions_waits_no_more_than_it_must() -> None:
    """Scratch alternates: each conversion waits once, between its stores and its loads."""
    shape = (32, 32)
    rows = Blocked.covering(shape, (1, 0), 1, 4).layout(shape)
    columns = Blocked.covering(shape, (0, 1), 1, 4).layout(shape)
    kernel = TileKernel(4)
    held = kernel.load(shaped(float32, shape), rows)
    for target in (columns, rows, columns):
        held = convert(kernel.writer, held, target)
    kernel.dump(held)
    array = values_of(float32, shape)
    gpu = kernel.emulator()
    from tests.backends.nvptx.tiles import run

    (got,) = run(gpu, kernel, [array], 3)
    agree(got, held.type, columns, array)
    assert gpu.barriers == 3
    assert kernel.writer.shared.total == 2 * 4096
