"""Operand values for generated tests: every bit pattern of small types, edges and random values.

Everything is deterministic: the same call gives the same array in every process.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from tritium.ir.dtypes import Array, DType, Type, float32, int1
from tritium.ir.types import PointerType, shaped

from .codecs import encode
from .spec import Sample, given
from .tile import Tile


def patterns(values: Any, dtype: DType) -> Array:
    """Bit patterns, given as integers, in the storage form of ``dtype``."""
    if dtype is int1:
        return np.asarray(values, np.uint8).astype(np.bool_)
    mask = (1 << (8 * dtype.itemsize)) - 1
    bits = np.array([int(value) & mask for value in values], f"u{dtype.itemsize}")
    return bits.view(dtype.numpy)


@functools.cache
def every(dtype: DType) -> Array:
    """Every value of a type of at most 16 bits, as a vector in order of the patterns."""
    if dtype.bits > 16:
        raise ValueError(f"{dtype} has too many values")
    return patterns(range(1 << dtype.bits), dtype)


@functools.cache
def edges(dtype: DType) -> Array:
    """The values where rules change: zeros, limits, subnormals, infinities, NaN, small numbers."""
    if dtype is int1:
        return every(dtype)
    if not dtype.is_floating():
        low, high = dtype.get_int_min_value(), dtype.get_int_max_value()
        near = [-3, -2, -1, 0, 1, 2, 3, 7, dtype.bits - 1, dtype.bits, dtype.bits + 1]
        half = 1 << (dtype.bits // 2)
        return patterns([low, low + 1, high - 1, high, half - 1, half, half + 1, *near], dtype)
    layout = dtype.format
    one = layout.bias << layout.mantissa_bits
    positive = [0, 1, 2, (1 << layout.mantissa_bits) - 1, 1 << layout.mantissa_bits]
    positive += [one - 1, one, one + 1, layout.largest_pattern - 1, layout.largest_pattern]
    positive += [layout.infinity_pattern] if layout.infinity_pattern is not None else []
    positive += [layout.nan_pattern] if layout.nan_pattern is not None else []
    bits = positive + [pattern | layout.sign_pattern for pattern in positive]
    plain = [0.5, 1.5, 2.0, 2.5, 3.0, math.pi, 7.0, 10.0, 100.0, 0.1, 1e-3]
    values = np.array(plain + [-value for value in plain])
    return np.concatenate([patterns(bits, dtype), encode(values, dtype)])


def random(dtype: DType, count: int, seed: int = 0) -> Array:
    """Random values, half of them uniform bit patterns, half ordinary numbers."""
    rng = np.random.default_rng([seed, *dtype.name.encode()])
    if dtype is int1:
        return rng.integers(0, 2, count).astype(np.bool_)
    bits = rng.integers(0, 1 << (8 * dtype.itemsize), count, np.uint64, endpoint=False)
    mixed = bits.astype(f"u{dtype.itemsize}").view(dtype.numpy)
    if dtype.is_floating():
        ordinary = encode(rng.standard_normal(count - count // 2) * 8, dtype)
    else:
        low = -100 if dtype.is_int_signed() else 0
        ordinary = rng.integers(low, 100, count - count // 2).astype(dtype.numpy)
    mixed[count // 2 :] = ordinary
    rng.shuffle(mixed)
    return mixed


def vector(dtype: DType, count: int = 4096, seed: int = 0) -> Array:
    """Operands of a unary operation: every value where there are few, else edges and random."""
    if dtype.bits <= 16:
        return every(dtype)
    return np.concatenate([edges(dtype), random(dtype, count, seed)])


def grid(dtype: DType, arity: int, count: int = 2048, seed: int = 0) -> tuple[Array, ...]:
    """Operand vectors of one type: all pairs of 8-bit values, else all tuples of edges, and random.

    Three operands take about 20 of the edges, so that their tuples stay few.
    """
    values = every(dtype) if dtype.bits <= 8 and arity == 2 else edges(dtype)
    if arity > 2:
        values = values[:: max(1, len(values) // 16)]
    axes = np.meshgrid(*[np.arange(len(values))] * arity, indexing="ij")
    tuples = [values[axis.ravel()] for axis in axes]
    if dtype.bits <= 8 and arity == 2:
        return tuple(tuples)
    return tuple(
        np.concatenate([column, random(dtype, count, seed + position)])
        for position, column in enumerate(tuples)
    )


POINTER = PointerType(float32)
"""What stands for every pointer type where no memory is touched."""


def tile(scalar: Type, shape: tuple[int, ...], seed: int = 0) -> Sample:
    """An operand of random values; arbitrary addresses where the elements are pointers."""
    if isinstance(scalar, DType):
        data = random(scalar, math.prod(shape), seed).reshape(shape)
    else:
        data = np.asarray(np.random.default_rng(seed).integers(0, 2**64, shape, np.uint64))
    return Sample(shaped(scalar, shape), data)


def ordinary(dtype: DType, shape: tuple[int, ...], seed: int = 0) -> Sample:
    """An operand of moderate numbers: finite, of both signs where the type has them."""
    rng = np.random.default_rng([seed, len(shape), *dtype.name.encode()])
    if dtype.is_floating():
        return Sample(shaped(dtype, shape), encode(np.asarray(rng.standard_normal(shape)), dtype))
    low = -100 if dtype.is_int_signed() else 0
    integers = rng.integers(low, 100, shape)
    data = integers % 2 != 0 if dtype is int1 else integers.astype(dtype.numpy)
    return Sample(shaped(dtype, shape), np.asarray(data))


def floats(*shape: int) -> Tile:
    """A known fp32 tile of zeros, for rejects."""
    return given(float32, *shape)
