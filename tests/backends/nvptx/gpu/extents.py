"""Further cases of the operations at extents that meet threads and vectors in every way."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from tests.ops.harness import load_operations

from tritium.ir.core import REGISTRY, Op, Region
from tritium.ir.dtypes import (
    DType,
    bfloat16,
    float8e5,
    float16,
    float32,
    int1,
    int8,
    int16,
    int32,
    int64,
)
from tritium.ir.types import shaped
from tritium.ops import samples
from tritium.ops.codecs import decode
from tritium.ops.combines import argmin_region
from tritium.ops.spec import Case, Sample

EXTENTS = (1, 3, 5, 48, 80, 96, 160)
MATRICES = tuple(zip(EXTENTS, (160, 96, 80, 5, 48, 3, 1)))
"""Each extent as the outer one and as the inner one."""
SHAPES = (*((n,) for n in EXTENTS), *MATRICES, (3, 5, 48), (5, 80, 3), (1, 96, 5))
PRODUCTS = (
    (1, 3, 5), (48, 80, 96), (160, 5, 48), (5, 160, 3), (80, 48, 1), (96, 1, 160), (3, 96, 80),
)  # fmt: skip
"""M, K and N of products."""


def case(name: str, label: str, operands: Any, **more: Any) -> Case:
    return Case(REGISTRY[name], label, operands, **more)


def elementwise() -> Iterator[Case]:
    for shape in SHAPES:
        for dtype in (float32, int8, float16):
            operands = {"x": samples.ordinary(dtype, shape, 1), "y": samples.ordinary(dtype, shape)}
            yield case("arith.add", f"{dtype} {list(shape)}", operands)
        for dtype, wanted in ((int8, float32), (float32, bfloat16), (float8e5, float16)):
            operands = {"x": samples.ordinary(dtype, shape)}
            label = f"{dtype} to {wanted} {list(shape)}"
            yield case("cast.convert", label, operands, attributes={"dtype": wanted})
        flags = Sample(shaped(int1, shape), samples.ordinary(int32, shape, 3).data > 0)
        operands = {"condition": flags}
        operands.update(x=samples.ordinary(int16, shape, 1), y=samples.ordinary(int16, shape, 2))
        yield case("select.where", f"{list(shape)}", operands)


def axes(shape: tuple[int, ...]) -> range:
    return range(len(shape))


def magnitude(dtype: DType, axis: int, x: Any) -> Any:
    """As the sum's own cases have it: the number of terms times the sum of absolute values."""
    values = decode(x, dtype) if dtype.is_floating() else x.astype(np.float64)
    return np.asarray(x.shape[axis] * np.abs(values).sum(axis))


def reductions() -> Iterator[Case]:
    for shape in SHAPES:
        for axis in axes(shape):
            for dtype in (float32, int8, int64, float16):
                for name in ("reduce.sum", "reduce.max"):
                    yield case(
                        name,
                        f"{dtype} {list(shape)} axis {axis}",
                        {"x": samples.ordinary(dtype, shape)},
                        attributes={"axis": axis},
                        magnitude=functools.partial(magnitude, dtype, axis),
                    )
            yield argmin(shape, axis)


def argmin(shape: tuple[int, ...], axis: int) -> Case:
    """Of few values, so that many are equal."""
    values = samples.ordinary(int32, shape).data % 5
    index = np.broadcast_to(np.expand_dims(np.arange(shape[axis]), axes_but(shape, axis)), shape)
    inputs = (
        Sample(shaped(int32, shape), np.asarray(values, np.int32)),
        Sample(shaped(int32, shape), np.array(index, np.int32)),
    )
    regions: Mapping[str, Callable[[], Region]]
    regions = {"combine": functools.partial(argmin_region, int32)}
    label = f"argmin {list(shape)} axis {axis}"
    return Case(
        REGISTRY["reduce.reduce"], label, {"inputs": inputs}, {"axis": axis}, regions=regions
    )


def axes_but(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return tuple(each for each in axes(shape) if each != axis)


def shapes() -> Iterator[Case]:
    for position, (m, n) in enumerate(MATRICES):
        dtype = (float32, int8, float16, int64, int1)[position % 5]
        given = {"x": samples.ordinary(dtype, (m, n))}
        for other in ((n, m), (m * n,)):
            label = f"{dtype} {[m, n]} to {list(other)}"
            yield case("shape.reshape", label, given, attributes={"shape": other})
        yield case("shape.trans", f"{dtype} {[m, n]}", given, attributes={"order": (1, 0)})
        for start in ((m, 1), (1, n)):
            label = f"{dtype} {list(start)} to {[m, n]}"
            operands = {"x": samples.ordinary(dtype, start)}
            yield case("shape.broadcast", label, operands, attributes={"shape": (m, n)})
        for axis in (0, 1, 2):
            label = f"{dtype} {[m, n]} axis {axis}"
            yield case("shape.expand_dims", label, given, attributes={"axis": axis})


def products() -> Iterator[Case]:
    dot: Any = REGISTRY["dot.dot"]
    for m, k, n in PRODUCTS:
        for dtype, out in (
            (float32, float32),
            (float16, float32),
            (bfloat16, float32),
            (int8, int32),
        ):
            for with_acc in (False, True):
                yield dot._case(dtype, dtype, ((m, k), (k, n)), out, with_acc)


@functools.cache
def cases() -> Mapping[str, list[Case]]:
    """By the operation's mnemonic."""
    load_operations()
    found: dict[str, list[Case]] = defaultdict(list)
    for family in (elementwise, reductions, shapes, products):
        for each in family():
            cls: type[Op] = each.op
            found[cls.mnemonic].append(each)
    return found
