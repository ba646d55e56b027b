"""Random tile programs: kernel source, arguments and grid, from a seed.

A program is legal by construction: every access stays in its buffer, stores of one statement never
collide, programs of a grid write disjoint regions. Everything else is allowed: odd extents, any
axis order, masks on any axis, overlapping arguments, loops that carry tiles and pointers, branches.
Values are computed by operations whose class is ``exact``, so results must agree bit for bit.
"""

from __future__ import annotations

import linecache
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

import tritium.language as tl
from tritium.ops.callable import DeviceFunction

EXTENTS = (1, 2, 3, 5, 8, 16, 17, 24, 33, 48, 64, 67, 100, 128)
FLOATS = ("float32", "float32", "float32", "float16", "bfloat16", "float64")
INTS = ("int32", "int32", "int8", "uint8", "int16", "int64", "uint32")
NUMPY: dict[str, Any] = {
    **{name: np.dtype(name) for name in (*INTS, "float16", "float32", "float64")},
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
}
MOST_ELEMENTS = 8192


@dataclass
class Tile:
    """A variable of the program."""

    name: str
    dtype: str
    shape: tuple[int, ...]


@dataclass
class Program:
    """A generated program."""

    seed: int
    source: str
    arguments: dict[str, Any]
    grid: tuple[int, ...]
    features: set[str] = field(default_factory=set)

    def kernel(self) -> DeviceFunction:
        """The kernel as a device function whose source can be found."""
        filename = f"<fuzz {self.seed}>"
        linecache.cache[filename] = (
            len(self.source),
            None,
            self.source.splitlines(keepends=True),
            filename,
        )
        namespace: dict[str, Any] = {"tl": tl}
        exec(compile(self.source, filename, "exec"), namespace)
        return DeviceFunction(namespace["kernel"])


class Generator:
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
        if not plain and self.chance(0.15):
            factor = self.pick((3, 5, 7))
            text = f"({text} * {factor} % {extent})"
            self.features.add("rows out of order")
        name = self.fresh("p")
        self.line(f"{name} = {text}{f'[{index}]' if len(shape) > 1 else ''}")
        return name, extent - 1

    def offsets(self, shape: tuple[int, ...], *, injective: bool) -> tuple[str, int]:
        """Offsets of a tile and the number of elements they span."""
        order = list(range(len(shape)))
        if self.chance(0.35):
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
        name = self.fresh("off")
        self.line(f"{name} = {' + '.join(terms)}")
        if start:
            self.line(f"{name} = {name} + {self.scalar(start)}")
        return name, last + 1

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
            parts.append(f"({name} {'>=' if kind == 'lower' else '<'} {bound})")
        name = self.fresh("m")
        joined = (" | " if kind == "either" else " & ").join(parts)
        self.line(f"{name} = tl.broadcast_to({joined}, {shape})" if shape else f"{name} = {joined}")
        self.features.add(f"mask {kind}")
        return name

    # Statements.

    def load(self, shape: tuple[int, ...], dtype: str | None = None) -> Tile:
        dtype = dtype or self.pick(FLOATS if self.chance(0.6) else INTS)
        offsets, span = self.offsets(shape, injective=False)
        array = self.array(dtype, span)
        made = Tile(self.fresh("t"), dtype, shape)
        mask = ""
        if self.chance(0.5):
            mask = f", mask={self.mask(shape)}"
            if self.chance(0.5):
                mask += f", other={self.pick((0, 1, 3))}"
        self.line(f"{made.name} = tl.load({array} + {offsets}{mask})")
        return self.define(made)

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

    def operand(self, shape: tuple[int, ...], dtype: str) -> str:
        """An expression of a shape (or broadcasting to it) in a dtype."""
        same = [t for t in self.tiles if t.shape == shape]
        if same and self.chance(0.75):
            tile = self.pick(same)
        else:
            smaller = [t for t in self.tiles if self.broadcasts(t.shape, shape)]
            if not smaller:
                return self.literal(dtype)
            tile = self.pick(smaller)
        text = self.reshaped(tile, shape)
        return text if tile.dtype == dtype else f"{text}.to(tl.{dtype})"

    @staticmethod
    def broadcasts(shape: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
        """Whether a tile of a lower rank fits one run of axes."""
        return len(shape) == 1 and len(wanted) > 1 and shape[0] in wanted

    @staticmethod
    def reshaped(tile: Tile, wanted: tuple[int, ...]) -> str:
        if tile.shape == wanted:
            return tile.name
        axis = wanted.index(tile.shape[0])
        index = ", ".join(":" if n == axis else "None" for n in range(len(wanted)))
        return f"tl.broadcast_to({tile.name}[{index}], {wanted})"

    def literal(self, dtype: str) -> str:
        value = self.pick((0, 1, 2, 3, 5))
        if "float" in dtype:
            return f"{value}.{self.pick((0, 25, 5))}"
        return str(value)

    def pointwise(self, shape: tuple[int, ...], dtype: str) -> str:
        x, y = self.operand(shape, dtype), self.operand(shape, dtype)
        if x[0].isdigit():
            x = f"tl.full({shape}, {x}, tl.{dtype})"
        if "float" in dtype:
            form = self.pick(
                (
                    *("{x} + {y}", "{x} - {y}", "{x} * {y}", "{x} / {y}", "-{x} + {y}"),
                    *(
                        "tl.maximum({x}, {y})",
                        "tl.minimum({x}, {y})",
                        "tl.where({x} < {y}, {x}, {y})",
                    ),
                    *("tl.abs({x}) + {y}", "tl.where({x} != {y}, {y}, {x})"),
                )
            )
        else:
            form = self.pick(
                (
                    *("{x} + {y}", "{x} - {y}", "{x} * {y}", "{x} & {y}", "{x} | {y}", "{x} ^ {y}"),
                    *("tl.maximum({x}, {y})", "tl.where({x} <= {y}, {x}, {y})", "{x} << 2"),
                    *("{x} >> 1", "{x} // {y}", "{x} % {y}"),
                )
            )
        return form.format(x=x, y=y)

    def compute(self, target: Tile | None = None) -> Tile:
        """A pointwise result; into an existing variable where one is given."""
        if target is None:
            base = self.pick(self.tiles)
            dtype = base.dtype if self.chance(0.7) else self.pick((*FLOATS, *INTS))
            made = Tile(self.fresh("t"), dtype, base.shape)
        else:
            made = target
        text = self.pointwise(made.shape, made.dtype)
        self.line(f"{made.name} = ({text}).to(tl.{made.dtype})")
        return made if target is not None else self.define(made)

    def rearrange(self) -> Tile:
        """A transpose or a reshape."""
        tile = self.pick(self.tiles)
        if len(tile.shape) > 1 and self.chance(0.5):
            order = list(range(len(tile.shape)))
            self.random.shuffle(order)
            shape = tuple(tile.shape[axis] for axis in order)
            text = f"tl.permute({tile.name}, {tuple(order)})"
            self.features.add("permute")
        else:
            shape = self.other_shape(tile.shape)
            text = f"tl.reshape({tile.name}, {shape})"
            self.features.add("reshape")
        made = Tile(self.fresh("t"), tile.dtype, shape)
        self.line(f"{made.name} = {text}")
        return self.define(made)

    def other_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        total = int(np.prod(shape))
        divisors = [d for d in range(1, total + 1) if total % d == 0]
        first = self.pick(divisors)
        return self.pick(((total,), (first, total // first), (total // first, first)))

    def reduce(self) -> Tile | None:
        wide = [t for t in self.tiles if t.shape and t.dtype != "uint32"]
        if not wide:
            return None
        tile = self.pick(wide)
        axis = self.pick(range(len(tile.shape)))
        kind = self.pick(("sum", "max", "min"))
        text = f"tl.{kind}({tile.name}, axis={axis}).to(tl.{tile.dtype})"
        shape = tile.shape[:axis] + tile.shape[axis + 1 :]
        self.features.add(f"reduce {'inner' if axis == len(tile.shape) - 1 else 'outer'}")
        made = Tile(self.fresh("t"), tile.dtype, shape)
        self.line(f"{made.name} = {text}")
        if shape:
            return self.define(made)
        wide_name = Tile(self.fresh("t"), tile.dtype, tile.shape)
        self.line(f"{wide_name.name} = ({tile.name} + {made.name}).to(tl.{tile.dtype})")
        return self.define(wide_name)

    def store(self, tile: Tile | None = None) -> None:
        tile = tile or self.pick([t for t in self.tiles if t.shape])
        offsets, span = self.offsets(tile.shape, injective=True)
        mask = f", mask={self.mask(tile.shape)}" if self.chance(0.4) else ""
        name = f"o{len(self.outputs)}"
        self.outputs.append((name, tile.dtype, span))
        region = self.scalar(span)
        self.line(f"tl.store({name} + (pid * {region} + {offsets}), {tile.name}{mask})")

    def in_place(self) -> None:
        """Load from an output that was stored, or store to it again."""
        if not self.outputs or self.depth:
            return
        name, dtype, span = self.pick(self.outputs)
        extent = max(1, min(span - 1, self.pick(EXTENTS)))
        if span < 2:
            return
        shift = self.random.randint(0, span - extent)
        p = self.fresh("p")
        self.line(f"{p} = tl.arange(0, {extent})")
        made = Tile(self.fresh("t"), dtype, (extent,))
        self.line(f"{made.name} = tl.load({name} + (pid * {span} + {p}))")
        self.define(made)
        self.line(f"tl.store({name} + (pid * {span} + {shift} + {p}), {made.name})")
        self.features.add("in place")

    # Control flow.

    def nested(self, write: Callable[[], None]) -> None:
        outside = list(self.tiles)
        self.indent += 1
        self.depth += 1
        write()
        self.indent -= 1
        self.depth -= 1
        self.tiles = outside

    def loop(self) -> None:
        carried = self.random.sample(self.tiles, min(len(self.tiles), self.pick((1, 1, 2))))
        trips = self.scalar(self.pick((0, 1, 2, 3)))
        shape = self.shape()
        dtype = self.pick(FLOATS)
        pointers = self.fresh("ptr")
        offsets, span = self.offsets(shape, injective=False)
        array = self.array(dtype, span + 3 * 5)
        self.line(f"{pointers} = {array} + {offsets}")
        step = self.scalar(self.pick((1, 2, 5)))
        if self.chance(0.7):
            self.line(f"for {self.fresh('i')} in range(0, {trips}):")
        else:
            counter = self.fresh("w")
            self.line(f"{counter} = 0")
            self.line(f"while {counter} < {trips}:")
            self.lines.append("    " * (self.indent + 1) + f"{counter} += 1")
            self.features.add("while")
        self.features.add("loop")

        def body() -> None:
            loaded = Tile(self.fresh("t"), dtype, shape)
            self.line(f"{loaded.name} = tl.load({pointers})")
            self.define(loaded)
            for _ in range(self.pick((0, 1, 2))):
                self.step()
            for tile in carried:
                self.compute(tile)
            if self.depth < 2 and self.chance(0.15):
                self.loop()
            self.line(f"{pointers} += {step}")

        self.nested(body)

    def branch(self) -> None:
        changed = self.pick(self.tiles)
        name = f"s{len(self.scalars)}"
        self.scalars[name] = self.pick((0, 2))
        self.line(f"if {name} > 1:")
        self.nested(lambda: self.compute(changed) and None)
        if self.chance(0.5):
            self.line("else:")
            self.nested(lambda: self.compute(changed) and None)
        self.features.add("branch")

    def step(self) -> None:
        """Any statement that makes a tile."""
        self.pick((self.compute, self.compute, self.compute, self.rearrange, self.reduce))()

    def run(self) -> Program:
        for _ in range(self.pick((1, 2, 3))):
            self.load(self.shape())
        for _ in range(self.random.randint(1, 6)):
            kind = self.random.random()
            if kind < 0.55:
                self.step()
            elif kind < 0.7:
                self.load(self.pick(self.tiles).shape)
            elif kind < 0.85:
                self.loop()
            elif kind < 0.92:
                self.branch()
            else:
                self.store()
                self.in_place()
        self.store()
        self.store(self.tiles[-1] if self.tiles[-1].shape else None)
        return self.finish()

    # The whole.

    def finish(self) -> Program:
        overlap = self.chance(0.3)
        grid = (1,) if overlap else (self.pick((1, 1, 2, 3)),)
        arguments: dict[str, Any] = {}
        data = np.random.default_rng(self.seed)
        for name, (dtype, span) in self.arrays.items():
            arguments[name] = values(data, dtype, span + self.random.randint(0, 9))
        for name, dtype, span in self.outputs:
            arguments[name] = values(data, dtype, span * grid[0])
        if overlap:
            self.share(arguments)
        arguments.update(self.scalars)
        parameters = ", ".join(arguments)
        source = "\n".join(
            [f"def kernel({parameters}):", "    pid = tl.program_id(0)", *self.lines, ""]
        )
        return Program(self.seed, source, arguments, grid, self.features)

    def share(self, arguments: dict[str, Any]) -> None:
        """Let an output start inside an input's memory, shifted by a few elements."""
        for name, dtype, _ in self.outputs:
            partners = [a for a, (kind, _) in self.arrays.items() if kind == dtype]
            if not partners:
                continue
            partner = self.pick(partners)
            base, mine = arguments[partner], arguments[name]
            shift = self.pick((0, 0, 1, 3, 16))
            length = max(len(base), shift + len(mine))
            whole = np.resize(np.concatenate([base, mine]), length)
            arguments[partner] = whole[: len(base)]
            arguments[name] = whole[shift : shift + len(mine)]
            self.arrays[partner] = ("taken", 0)
            self.features.add("overlap")


def values(data: np.random.Generator, dtype: str, count: int) -> np.ndarray:
    """Random elements, small enough that most results are finite and many are equal."""
    if "float" in dtype:
        made = data.integers(-16, 17, count) / np.float64(4)
        made[data.random(count) < 0.02] = np.nan
        made[data.random(count) < 0.02] = np.inf
        made[data.random(count) < 0.02] = -0.0
        return made.astype(np.float32).astype(NUMPY[dtype])
    kind = NUMPY[dtype]
    low = 0 if kind.kind == "u" else -20
    return data.integers(low, 21, count).astype(kind)


def generate(seed: int) -> Program:
    """The program of a seed."""
    return Generator(seed).run()
