"""What random programs are written with: names, numbers, shapes, places and masks."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

EXTENTS = (1, 2, 3, 5, 8, 16, 17, 24, 33, 48, 64, 67, 100, 128)
FLOATS = ("float32", "float32", "float32", "float16", "bfloat16", "float64")
INTS = ("int32", "int32", "int8", "uint8", "int16", "int64", "uint32", "int1")
NUMPY: dict[str, Any] = {
    **{name: np.dtype(name) for name in (*INTS[:-1], "float16", "float32", "float64")},
    "int1": np.dtype(np.bool_),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
}
SUMS = {"int1": "uint32", "int8": "int32", "int16": "int32", "uint8": "uint32"}
"""Types that a sum of integers doesn't keep."""
EXTREMA = {
    **dict.fromkeys(("int1", "int8", "int16", "uint8"), "int32"),
    "float16": "float32",
    "bfloat16": "float32",
}
MULTIPLIED = {"float32": "float32", "float16": "float32", "bfloat16": "float32", "int8": "int32"}
"""Types of a product's operands and result."""
DEPTHS = (1, 2, 3, 5, 8, 16, 17, 24, 33)
LARGEST = 2**31 - 1
MOST_ELEMENTS = 8192


@dataclass
class Tile:
    """A variable of the program."""

    name: str
    dtype: str
    shape: tuple[int, ...]


class Pieces:
    """Writes one program. The methods append lines and return variables."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.indent = 1
        self.count = 0
        self.tiles: list[Tile] = []
        self.arrays: dict[str, tuple[str, int]] = {}
        self.scalars: dict[str, int | float] = {}
        self.outputs: list[tuple[str, str, int]] = []
        self.features: set[str] = set()
        self.depth = 0

    # Pieces.

    def fresh(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def line(self, text: str) -> None:
        self.lines.append("    " * self.indent + text)

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def pick(self, choices: Any) -> Any:
        return self.random.choice(list(choices))

    def scalar(self, value: int) -> str:
        """An integer: spelt out, or passed at run time."""
        if self.chance(0.5):
            return str(value)
        name = f"s{len(self.scalars)}"
        self.scalars[name] = value
        return name

    def shape(self) -> tuple[int, ...]:
        rank = self.pick((1, 1, 2, 2, 2, 3))
        while True:
            made = tuple(self.pick(EXTENTS) for _ in range(rank))
            if self.chance(0.2):
                made = (made[-1],) * rank
            if np.prod(made) <= MOST_ELEMENTS:
                return made

    # Addresses.

    def positions(self, shape: tuple[int, ...], axis: int, *, plain: bool) -> tuple[str, int]:
        """Positions along one axis, shaped to broadcast, and the largest."""
        extent = shape[axis]
        index = "".join(
            f"{', ' if n else ''}{':' if n == axis else 'None'}" for n in range(len(shape))
        )
        text = f"tl.arange(0, {extent})"
        factor = self.pick((3, 5, 7))
        if self.chance(0.12) and not (plain and math.gcd(factor, extent) > 1):
            text = f"({text} * {factor} % {extent})"
            self.features.add("rows out of order")
        name = self.fresh("p")
        self.line(f"{name} = {text}{f'[{index}]' if len(shape) > 1 else ''}")
        return name, extent - 1

    def offsets(self, shape: tuple[int, ...], *, injective: bool) -> tuple[str, int]:
        """Offsets of a tile and the number of elements they span."""
        order = list(range(len(shape)))
        if self.chance(0.28):
            self.random.shuffle(order)
            self.features.add("transposed access")
        strides = [0] * len(shape)
        step = 1 if self.chance(0.8) else 2
        for axis in reversed(order):
            strides[axis] = step
            step *= shape[axis]
            step += self.pick((0, 0, 0, 3))
        if not injective and self.chance(0.15):
            strides[self.pick(order)] = 0
            self.features.add("stride 0")
        terms: list[str] = []
        last = 0
        start = 0
        for axis, stride in enumerate(strides):
            name, largest = self.positions(shape, axis, plain=injective)
            last += largest * stride
            if stride and self.chance(0.12):
                start += largest * stride
                stride = -stride
                self.features.add("negative stride")
            terms.append(f"{name} * {self.scalar(stride)}" if stride != 1 else name)
        if not injective and len(shape) > 1 and self.chance(0.06):
            (a, most_a), (b, most_b) = (self.positions(shape, n, plain=True) for n in (0, 1))
            terms.append(f"{a} * {b}")
            last += most_a * most_b
            self.features.add("product of positions")
        name = self.fresh("off")
        self.line(f"{name} = {' + '.join(terms)}")
        if start:
            self.line(f"{name} = {name} + {self.scalar(start)}")
        self.detour(name, last)
        return name, last + 1

    def detour(self, name: str, last: int) -> None:
        """Offsets in 0 to ``last`` by way of an overflow, or in another type that holds them."""
        if self.chance(0.06):
            far = LARGEST - self.random.randint(0, last + 1)
            self.line(f"{name} = {name} + {self.scalar(far)}")
            self.line(f"{name} = {name} - {self.scalar(far)}")
            self.features.add("offset wraps")
        if self.chance(0.1):
            narrow = [
                d for d, most in (("int8", 127), ("uint8", 255), ("int16", 32767)) if last <= most
            ]
            dtype = self.pick(("int64", "uint32", *narrow))
            self.line(f"{name} = {name}.to(tl.{dtype})")
            self.features.add(f"offset {dtype}")

    def mask(self, shape: tuple[int, ...]) -> str:
        """A mask that broadcasts to a shape."""
        kind = self.pick(("axis", "axis", "both", "lower", "either", "data"))
        data = [t for t in self.tiles if t.shape == shape and t.dtype != "float64"]
        if kind == "data" and data:
            self.features.add("data mask")
            return f"({self.pick(data).name} > 1)"
        axes = list(range(len(shape)))
        parts = []
        for axis in axes if kind in ("both", "either") else [self.pick(axes)]:
            name, _ = self.positions(shape, axis, plain=True)
            bound = self.scalar(self.random.randint(0, shape[axis] + 1))
            if self.chance(0.08):
                far = LARGEST - self.random.randint(0, shape[axis] + 1)
                name = f"{name} + {self.scalar(far)}"
                bound = self.scalar(self.pick((0, -LARGEST, LARGEST)))
                self.features.add("mask wraps")
            parts.append(f"({name} {'>=' if kind == 'lower' else '<'} {bound})")
        name = self.fresh("m")
        joined = (" | " if kind == "either" else " & ").join(parts)
        self.line(f"{name} = tl.broadcast_to({joined}, {shape})" if shape else f"{name} = {joined}")
        self.features.add(f"mask {kind}")
        return name

    def array(self, dtype: str, span: int) -> str:
        known = [name for name, (kind, _) in self.arrays.items() if kind == dtype]
        if known and self.chance(0.5):
            name = self.pick(known)
        else:
            name = f"a{len(self.arrays)}"
            self.arrays[name] = (dtype, 0)
        self.arrays[name] = (dtype, max(span, self.arrays[name][1]))
        return name

    def define(self, tile: Tile) -> Tile:
        self.tiles.append(tile)
        return tile
