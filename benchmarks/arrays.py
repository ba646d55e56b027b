"""Memory that all sides of a case share: one buffer, seen by NumPy and, if it's there, by torch."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np

ALIGNMENT = 64
"""Bytes: torch's own, and a cache line. NumPy's allocator gives 16."""

TYPES = {
    "float32": np.dtype(np.float32),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    "int64": np.dtype(np.int64),
}


class Arrays:
    """Makes the arrays of a case; ``torch`` is the module, or None where it is no peer."""

    def __init__(self, torch: ModuleType | None, seed: int = 0) -> None:
        self.torch = torch
        self.random = np.random.default_rng(seed)

    def empty(self, shape: tuple[int, ...], dtype: str) -> Array:
        kind = TYPES[dtype]
        nbytes = int(np.prod(shape)) * kind.itemsize
        raw = np.empty(nbytes + ALIGNMENT, np.uint8)
        start = -raw.ctypes.data % ALIGNMENT
        raw = raw[start : start + nbytes]
        raw[:] = 0
        tensor = None
        if self.torch is not None:
            tensor = self.torch.from_numpy(raw).view(getattr(self.torch, dtype)).reshape(shape)
        return Array(raw.view(kind).reshape(shape), tensor)

    def normal(self, shape: tuple[int, ...], dtype: str, spread: float = 1.0) -> Array:
        array = self.empty(shape, dtype)
        array.numpy[...] = self.random.standard_normal(shape, np.float32) * np.float32(spread)
        return array

    def integers(self, shape: tuple[int, ...], end: int) -> Array:
        array = self.empty(shape, "int64")
        array.numpy[...] = self.random.integers(0, end, shape)
        return array


class Array:
    """One array: ``numpy`` and ``torch`` are two views of the same memory."""

    __slots__ = ("numpy", "torch")

    def __init__(self, numpy: np.ndarray, torch: Any) -> None:
        self.numpy = numpy
        self.torch = torch

    @property
    def argument(self) -> Any:
        """What is passed to our kernels: the tensor where torch is in use, else the array."""
        return self.numpy if self.torch is None else self.torch

    @property
    def exact(self) -> np.ndarray:
        return self.numpy.astype(np.float64)
