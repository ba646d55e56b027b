"""Reductions as LLVM IR, run by the emulator: all places of the result, in every layout."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest
from tests.backends.nvptx.emulator import unsupported
from tests.backends.nvptx.layouts import random_layouts
from tests.backends.nvptx.test_converts import logical, values_of
from tests.backends.nvptx.tiles import TileKernel, agree, run
from tests.ops.harness import ReferenceMachine, evaluate_op

from tritium.backends.nvptx.layouts import (
    LANE,
    REGISTER,
    WARP,
    Blocked,
    Extents,
    LinearLayout,
    axes,
    f2,
    shapes,
)
from tritium.backends.nvptx.reductions import Fold, reduce
from tritium.backends.nvptx.values import Held
from tritium.ir.core import Block, Op, Region, Value
from tritium.ir.dtypes import (
    DType,
    Type,
    bfloat16,
    float16,
    float32,
    float64,
    int1,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint32,
)
from tritium.ir.types import PointerType, shaped
from tritium.ops import combines, samples
from tritium.ops import reduce as reductions
from tritium.ops.codecs import decode
from tritium.ops.control import Yield
from tritium.ops.reduce import CASE_SHAPES

pytestmark = pytest.mark.skipif(unsupported() is not None, reason=str(unsupported()))

INTEGERS = (int8, uint8, int16, int32, uint32, int64)
FLOATS = (float16, bfloat16, float32, float64)
POINTER = PointerType(float32)

Make = Callable[[list[Value], int], Op]


def region(make: Callable[[], Any]) -> Make:
    return lambda x, axis: reductions.Reduce(inputs=tuple(x), axis=axis, combine=make())


def named(cls: Any) -> Make:
    return lambda x, axis: cls(x=x[0], axis=axis)


def last_region(scalar: Type) -> Region:
    """``return b``"""
    block = Block([scalar, scalar])
    block.append(Yield(values=(block.args[1],)))
    return Region(block)


def exact(seed: int) -> tuple[str, Make, list[Type]]:
    """A reduction whose result no order changes."""
    random = Random(seed)
    scalar = random.choice(INTEGERS)
    anything = random.choice((*INTEGERS, *FLOATS))
    choices: list[tuple[str, Make, list[Type]]] = [
        ("sum", named(reductions.Sum), [scalar]),
        ("max", named(reductions.Max), [anything]),
        ("min", named(reductions.Min), [anything]),
        ("add", region(lambda: combines.add_region(scalar)), [scalar]),
        ("first", region(lambda: combines.first_region(POINTER)), [POINTER]),
        ("argmin", region(lambda: combines.argmin_region(float32)), [float32, int32]),
        ("maximum", region(lambda: combines.maximum_region(anything)), [anything]),
    ]
    return choices[seed % len(choices)]


def inputs(label: str, scalars: list[Type], shape: tuple[int, ...], axis: int) -> list[np.ndarray]:
    if label == "argmin":
        values = np.random.default_rng(3).integers(0, 4, shape).astype(np.float32)
        index = np.broadcast_to(
            np.arange(shape[axis], dtype=np.int32).reshape(
                [-1 if number == axis else 1 for number in range(len(shape))]
            ),
            shape,
        )
        return [values, np.ascontiguousarray(index)]
    made = []
    for number, scalar in enumerate(scalars):
        if isinstance(scalar, DType) and scalar.is_floating():
            made.append(np.resize(samples.vector(scalar), shape))
        else:
            made.append(values_of(scalar, shape, number))
    return made


def check(
    make: Make,
    label: str,
    scalars: list[Type],
    shape: tuple[int, ...],
    axis: int,
    layout: LinearLayout,
    warps: int,
    seed: int = 0,
    arch: str = "sm_90a",
) -> Any:
    """Reduce and compare every place of the result with the reference rule."""
    arrays = inputs(label, scalars, shape, axis)
    kernel = TileKernel(warps, arch)
    types = [shaped(scalar, shape) for scalar in scalars]
    op = make([Value(type) for type in types], axis)
    op.make_results()
    tiles = [kernel.load(type, layout) for type in types]
    results = reduce(kernel.writer, op, tiles)
    wanted = evaluate(op, arrays)
    for result, value in zip(results, op.results, strict=True):
        kernel.dump(result, value.type)
    gpu = kernel.emulator()
    got = run(gpu, kernel, arrays, seed)
    sliced = shapes.slice_axis(layout, axis)
    for result, have, want, value in zip(results, got, wanted, op.results, strict=True):
        if isinstance(result, Held):
            assert result.layout == sliced
        agree(have, value.type, sliced, want, same_value(value.scalar))
    return gpu


def test_of_two_partial_results_the_lower_is_on_the_left() -> None:
    """In full tiles the last element is what is left over of a function that takes the right."""
    for seed in range(24):
        random = Random(seed)
        warp_bits = random.randrange(3)
        shape = random_layouts.shape(random, random.randint(1, 2), random.randint(1, 8))
        layout = plain(random, shape, warp_bits)
        axis = random.randrange(len(shape))
        last = region(lambda: last_region(int32))
        check(last, "last", [int32], shape, axis, layout, 1 << warp_bits, seed)


def test_nearer_warps_count_where_lanes_are_combined() -> None:
    """Lanes along the axis above warps, with padding in some of them only."""
    layout = LinearLayout.from_bases(
        {REGISTER: [], LANE: [(4,), (8,), (16,), (0,), (0,)], WARP: [(1,), (2,)]}, {"dim0": 32}
    )
    argmin = region(lambda: combines.argmin_region(float32))
    for extent in range(17, 33):
        check(argmin, "argmin", [float32, int32], (extent,), 0, layout, 4)


def evaluate(op: Op, arrays: list[np.ndarray]) -> list[np.ndarray]:
    with np.errstate(all="ignore"):
        known = dict(zip(op.operands, arrays))
        return [np.asarray(each) for each in evaluate_op(op, ReferenceMachine(), known)]


def same_value(scalar: Type) -> Any:
    """Equal bits; any NaN equals any."""
    if not (isinstance(scalar, DType) and scalar.is_floating()):
        return None

    def equal(got: np.ndarray, want: np.ndarray) -> np.ndarray:
        bits = f"u{scalar.itemsize}"
        both = np.isnan(decode(got, scalar)) & np.isnan(decode(want, scalar))
        return both | (got.view(bits) == np.ascontiguousarray(want).view(bits))

    return equal


def covering(shape: tuple[int, ...], per_thread: int, warps: int, order: Any = None) -> Any:
    physical = Extents(shape).physical
    chosen = tuple(range(len(shape)))[::-1] if order is None else order
    return Blocked.covering(physical, chosen, per_thread, warps).layout(physical)


def plain(random: Random, physical: tuple[int, ...], warp_bits: int) -> LinearLayout:
    """Each bit of a coordinate held by any bit of any place, with copies in lanes and warps."""
    outputs = axes(physical)
    vectors = [1 << bit for bit in range(sum(width for _, width in outputs))]
    random.shuffle(vectors)
    places: dict[str, list[int]] = {LANE: [0] * 5, WARP: [0] * warp_bits}
    slots = [(name, bit) for name, bases in places.items() for bit in range(len(bases))]
    for name, bit in random.sample(slots, random.randint(0, min(len(slots), len(vectors)))):
        places[name][bit] = vectors.pop()
    inputs = ((REGISTER, tuple(vectors)), *((name, tuple(b)) for name, b in places.items()))
    return LinearLayout(inputs, outputs)


def test_reductions_that_no_order_changes_are_exact() -> None:
    for seed in range(112):
        random = Random(seed)
        label, make, scalars = exact(seed)
        warp_bits = random.randrange(3)
        physical = random_layouts.shape(random, random.randint(1, 3), random.randint(0, 9))
        shape = logical(random, physical) if random.random() < 0.6 else physical
        kind = random.choice((random_layouts.layout, random_layouts.of_encoding, plain, plain))
        layout = kind(random, physical, warp_bits)
        axis = random.randrange(len(shape))
        registers = shapes.slice_axis(layout, axis).bases(REGISTER)
        if f2.rank(registers) < len(registers):
            # The result would be in two registers of a thread: no layout of a tile.
            continue
        try:
            check(make, label, scalars, shape, axis, layout, 1 << warp_bits, seed)
        except AssertionError as error:
            raise AssertionError(
                f"seed {seed}: {label} of {shape} along {axis}: {error}"
            ) from error


@pytest.mark.parametrize("shape,axis", CASE_SHAPES, ids=str)
@pytest.mark.parametrize("warps", [1, 4])
def test_the_shapes_of_the_generated_cases(shape: tuple[int, ...], axis: int, warps: int) -> None:
    layout = covering(shape, 4, warps)
    argmin = region(lambda: combines.argmin_region(float32))
    check(argmin, "argmin", [float32, int32], shape, axis, layout, warps)
    check(named(reductions.Sum), "sum", [int32], shape, axis, layout, warps, arch="sm_75")
    check(named(reductions.Max), "max", [float32], shape, axis, layout, warps)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("axis", [0, 1])
def test_sums_of_floats_are_within_their_order(dtype: DType, axis: int) -> None:
    shape, warps = (48, 80), 4
    x = samples.ordinary(dtype, shape).data
    kernel = TileKernel(warps)
    layout = covering(shape, 2, warps)
    type = shaped(dtype, shape)
    op = reductions.Sum(x=Value(type), axis=axis)
    op.make_results()
    (made,) = reduce(kernel.writer, op, [kernel.load(type, layout)])
    kernel.dump(made)
    (got,) = kernel.run([x])
    wanted = decode(x, dtype).sum(axis)
    bound = shape[axis] * np.abs(decode(x, dtype)).sum(axis) * dtype.format.epsilon

    def close(have: np.ndarray, want: np.ndarray) -> np.ndarray:
        return np.abs(decode(have, dtype) - want) <= bound.max()

    agree(got, op.result.type, shapes.slice_axis(layout, axis), wanted, close)


def test_a_sum_of_negative_zeros_is_positive() -> None:
    shape = (3, 5)
    kernel = TileKernel(1)
    type = shaped(float32, shape)
    layout = covering(shape, 1, 1)
    op = reductions.Sum(x=Value(type), axis=1)
    op.make_results()
    kernel.dump(reduce(kernel.writer, op, [kernel.load(type, layout)])[0])
    (got,) = kernel.run([np.full(shape, -0.0, np.float32)])
    agree(got, op.result.type, shapes.slice_axis(layout, 1), np.zeros(3, np.float32))


def test_welford_keeps_its_partial_results_apart() -> None:
    """Three values, padding, warps along the axis: against float64."""
    shape, axis, warps = (5, 200), 1, 8
    rng = np.random.default_rng(5)
    x = rng.normal(3, 2, shape).astype(np.float32)
    arrays = [x, np.zeros_like(x), np.ones_like(x)]
    layout = covering(shape, 1, warps)
    kernel = TileKernel(warps)
    types = [shaped(float32, shape)] * 3
    op = reductions.Reduce(
        inputs=tuple(Value(type) for type in types), axis=axis, combine=combines.welford_region()
    )
    op.make_results()
    for made in reduce(kernel.writer, op, [kernel.load(type, layout) for type in types]):
        kernel.dump(made)
    got = kernel.run(arrays)
    exact = x.astype(np.float64)
    wanted = [exact.mean(axis), exact.var(axis) * shape[axis], np.full(5, float(shape[axis]))]
    sliced = shapes.slice_axis(layout, axis)
    for have, want in zip(got, wanted, strict=True):
        agree(have, op.results[0].type, sliced, want, lambda a, b: np.isclose(a, b, rtol=1e-5))


def test_a_fold_goes_on_where_the_last_step_ended() -> None:
    """A tile worked on in two trips, the second of lower rows in the same layout."""
    whole, part, warps = (8, 64), (4, 64), 2
    rng = np.random.default_rng(2)
    x = rng.integers(-9, 9, whole).astype(np.int32)
    index = np.broadcast_to(np.arange(8, dtype=np.int32)[:, None], whole).copy()
    kernel = TileKernel(warps)
    layout = covering(part, 1, warps)
    types = [shaped(int32, part)] * 2
    op = reductions.Reduce(
        inputs=(Value(types[0]), Value(types[1])), axis=0, combine=combines.argmin_region(int32)
    )
    op.make_results()
    fold = Fold(kernel.writer, op, types, layout)
    assert fold.start() is None
    partials = None
    for _ in range(2):
        partials = fold.step(partials, [kernel.load(type, layout) for type in types])
    assert partials is not None
    for made in fold.finish(partials):
        kernel.dump(made)
    got = kernel.run([x[:4], index[:4], x[4:], index[4:]])
    sliced = shapes.slice_axis(layout, 0)
    for have, want in zip(got, (x.min(0), x.argmin(0).astype(np.int32)), strict=True):
        agree(have, op.results[0].type, sliced, want)


@pytest.mark.parametrize("warps,barriers", [(1, 0), (2, 1), (8, 1)])
def test_a_row_waits_once(warps: int, barriers: int) -> None:
    """Also a reduction of two values; shuffles of 32-bit integers are one instruction."""
    shape = (1, 1024)
    layout = covering(shape, 4, warps)
    argmin = region(lambda: combines.argmin_region(float32))
    gpu = check(argmin, "argmin", [float32, int32], shape, 1, layout, warps)
    assert gpu.barriers == barriers
    gpu = check(named(reductions.Sum), "sum", [int32], shape, 1, layout, warps)
    assert (gpu.barriers, gpu.shuffles) == (barriers, 0)
    gpu = check(named(reductions.Max), "max", [float32], shape, 1, layout, warps)
    assert (gpu.barriers, gpu.shuffles) == (barriers, 5)


def test_every_type_is_reduced_by_a_function() -> None:
    for scalar in (int1, *INTEGERS, *FLOATS, POINTER):
        make = region(lambda scalar=scalar: combines.first_region(scalar))
        check(make, "first", [scalar], (3, 40), 1, covering((3, 40), 1, 4), 4)
