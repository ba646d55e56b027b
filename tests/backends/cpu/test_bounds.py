"""Bounds of loops and of masks at the ends of their types: Python's values, on every executor."""

from __future__ import annotations

import numpy as np
import pytest
from tests.backends.three_way import agree

import tritium.language as tl
from tritium.ops.callable import DeviceFunction as jit


@jit
def counted(out_ptr, start, stop, step):
    count = 0
    for i in range(start, stop, step):
        if count < 8:
            tl.store(out_ptr + count, i)
        count += 1
    tl.store(out_ptr + 8, count)


@pytest.mark.parametrize("start, stop, step", [
    (0, 10, 3), (10, 0, -3), (0, 10, -1), (5, 5, -5), (0, 10, 0), (10, 0, 0),
    (2**31 - 1, -(2**31), -(2**30)), (-(2**31), 2**31 - 1, 2**31 - 1), (2**31 - 10, 2**31 + 10, 3),
    (2**63 - 1, -(2**63), -(2**62)), (-(2**63), 2**63 - 1, 2**62), (2**63 - 5, 2**63 - 1, 2),
    (7, 0, -(2**63)), (2**63, 2**64 - 1, 2**62), (3, 2**64 - 1, 2**63),
])  # fmt: skip
def test_run_time_loops(start: int, stop: int, step: int) -> None:
    """64-bit bounds too, and a run-time step of either sign; a step of 0 runs no iteration."""
    values = list(range(start, stop, step)) if step else []
    want = np.zeros(9, np.uint64)
    want[: len(values[:8])] = [value % 2**64 for value in values[:8]]
    want[8] = len(values)
    result, _ = agree(counted, out_ptr=np.zeros(9, np.int64), start=start, stop=stop, step=step)
    np.testing.assert_array_equal(result["out_ptr"].view(np.uint64), want)


@jit
def masked(x_ptr, first, bound, SCALE: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK).to(tl.int64)
    tl.store(x_ptr + at, 1, mask=at * SCALE + first < bound)
    tl.store(x_ptr + BLOCK + at, 1, mask=at * SCALE + first >= bound)


@pytest.mark.parametrize("scale", [1, 2, 3, -1, -3, 1000])
@pytest.mark.parametrize("first, bound", [
    (0, -100), (0, 0), (0, 1), (0, 50), (0, 99), (0, 10**6), (2**62 + 5, 2**62),
    (2**63 - 20, 2**63 - 10), (0, -(2**63)), (2**63 - 100, 2**63 - 1), (-(2**63), 2**63 - 1),
])  # fmt: skip
def test_masks_of_64_bit_positions(scale: int, first: int, bound: int) -> None:
    """``scale * position`` is divided by in 64 bits where an interval of lanes is found."""
    with np.errstate(over="ignore"):
        low = np.arange(64) * scale + np.int64(first) < bound
    result, _ = agree(
        masked, x_ptr=np.zeros(128, np.int8), first=first, bound=bound, SCALE=scale, BLOCK=64
    )
    np.testing.assert_array_equal(result["x_ptr"], np.concatenate([low, ~low]))
