"""Launches for tests, before there is a runtime: NumPy arrays and numbers as arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tritium import interp
from tritium.ir.dtypes import DType, float32, int32, int64
from tritium.ops.callable import DeviceFunction


class Raw:
    """An array whose elements are of ``dtype``, stored as patterns."""

    def __init__(self, array: np.ndarray, dtype: DType) -> None:
        self.array = array
        self.dtype = dtype


def described(kernel: DeviceFunction, name: str, value: Any) -> interp.Argument:
    if name in kernel.constexpr_names or callable(value) or isinstance(value, str):
        return interp.Known(value)
    if value is None or isinstance(value, (interp.Pointer, interp.Scalar, interp.Known)):
        return value
    if isinstance(value, Raw):
        return interp.array_argument(value.array, value.dtype)
    if isinstance(value, np.ndarray):
        return interp.array_argument(value)
    if isinstance(value, tuple):
        parts = [described(kernel, "", part) for part in value]
        return getattr(type(value), "_make", tuple)(parts)
    if isinstance(value, float):
        return interp.Scalar(float32, value)
    return interp.Scalar(int32 if -(2**31) <= value < 2**31 else int64, value)


def arrays_in(values: Iterable[Any]) -> list[np.ndarray]:
    found: list[np.ndarray] = []
    for value in values:
        if isinstance(value, Raw):
            found.append(value.array)
        elif isinstance(value, np.ndarray):
            found.append(value)
        elif isinstance(value, tuple):
            found += arrays_in(value)
    return found


def prepared(
    kernel: DeviceFunction, given: Mapping[str, Any]
) -> tuple[dict[str, interp.Argument], list[interp.Range]]:
    arguments = {name: described(kernel, name, value) for name, value in given.items()}
    ranges = [interp.byte_range(array, name) for name, array in named_arrays(given)]
    return arguments, ranges


def named_arrays(given: Mapping[str, Any]) -> list[tuple[str, np.ndarray]]:
    return [(name, array) for name, value in given.items() for array in arrays_in([value])]


def launch(
    kernel: DeviceFunction, grid: Sequence[int], *, options: Any = None, **given: Any
) -> None:
    """Run a kernel eagerly with arguments by name."""
    arguments, ranges = prepared(kernel, given)
    interp.run_eager(kernel, arguments, grid, ranges, **(options or {}))


def jit(function: Any) -> DeviceFunction:
    return DeviceFunction(function)
