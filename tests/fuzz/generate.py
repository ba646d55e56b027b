"""Random tile programs: kernel source, arguments and grid, from a seed.

A program is legal by construction: every access stays in its buffer, stores of one statement never
collide, programs of a grid write disjoint regions. Everything else is allowed: odd extents, any
axis order, masks on any axis, offsets that wrap on the way, gathers, overlapping arguments, loops
that carry tiles and pointers, branches on data. Values are computed by operations whose class is
``exact``, and products have operands whose sums are exact in any order: results must agree bit for
bit.
"""

from __future__ import annotations

import linecache
import math
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
        volatile = ", volatile=True" if self.chance(0.04) else ""
        self.line(f"{made.name} = tl.load({array} + {offsets}{mask}{volatile})")
        return self.define(made)

    def gather(self) -> Tile:
        """Elements at places that a tile of integers gives."""
        indices = [t for t in self.tiles if "int" in t.dtype and t.shape]
        if not indices:
            return self.load(self.shape(), "int32")
        index = self.pick(indices)
        most = self.random.randint(0, 40)
        dtype = self.pick((*FLOATS, *INTS))
        made = Tile(self.fresh("t"), dtype, index.shape)
        at = f"tl.minimum(tl.maximum({index.name}.to(tl.int32), 0), {self.scalar(most)})"
        mask = f", mask={self.mask(index.shape)}" if self.chance(0.3) else ""
        self.line(f"{made.name} = tl.load({self.array(dtype, most + 1)} + {at}{mask})")
        self.features.add("gather")
        return self.define(made)

    def dot(self) -> Tile:
        """A product of two tiles that are just loaded: any order of the sums is exact."""
        m, n, k = (self.pick(DEPTHS) for _ in range(3))
        batch = (self.pick((2, 3)),) if self.chance(0.2) and m * n * k < 2000 else ()
        dtype = self.pick(list(MULTIPLIED))
        # Outputs hold anything, also where an input would overlap them.
        self.features.add("dot")
        a = self.load((*batch, m, k), dtype)
        turned = not batch and self.chance(0.3)
        b = self.load((n, k) if turned else (*batch, k, n), dtype)
        right = f"tl.trans({b.name})" if turned else b.name
        made = Tile(self.fresh("t"), MULTIPLIED[dtype], (*batch, m, n))
        acc = f", tl.zeros({made.shape}, tl.{made.dtype})" if self.chance(0.3) else ""
        self.line(f"{made.name} = tl.dot({a.name}, {right}{acc})")
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

    def pointwise(self, shape: tuple[int, ...], dtype: str, depth: int = 0) -> str:
        x, y = self.operand(shape, dtype), self.operand(shape, dtype)
        if depth < 2 and self.chance(0.2):
            x = f"({self.pointwise(shape, dtype, depth + 1)}).to(tl.{dtype})"
        if x[0].isdigit():
            x = f"tl.full({shape}, {x}, tl.{dtype})"
        if dtype == "int1":
            form = self.pick(
                ("{x} & {y}", "{x} | {y}", "{x} ^ {y}", "{x} == {y}", "~{x}", "{x} != {y}")
            )
        elif "float" in dtype:
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
        """A transpose, a reshape, or a broadcast along a new axis."""
        tile = self.pick(self.tiles)
        room = MOST_ELEMENTS // math.prod(tile.shape)
        if 1 <= len(tile.shape) < 3 and self.chance(0.25):
            axis = self.pick(range(len(tile.shape) + 1))
            extent = self.pick([each for each in EXTENTS if each <= room] or [1])
            shape = (*tile.shape[:axis], extent, *tile.shape[axis:])
            text = f"tl.broadcast_to(tl.expand_dims({tile.name}, {axis}), {shape})"
            self.features.add("expand")
        elif len(tile.shape) > 1 and self.chance(0.5):
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

    def part(self) -> Tile | None:
        """A slice, a row, a tile with a part replaced, joined tiles, or one that is moved."""
        tiles = [t for t in self.tiles if t.shape]
        if not tiles:
            return None
        tile = self.pick(tiles)
        axis = self.pick(range(len(tile.shape)))
        n = tile.shape[axis]
        start, step = self.random.randrange(n), self.pick((1, 1, 1, 2, -1, -3))
        stop = self.random.randint(start + 1, n) if step > 0 else None
        taken = len(range(n)[start:stop:step])
        index = f"{':, ' * axis}{start}:{'' if stop is None else stop}:{step}"
        shape = (*tile.shape[:axis], taken, *tile.shape[axis + 1 :])
        kinds = ["slice", "slice", "roll", "shift", "flip", "set", "gather"]
        kinds += ["row"] if len(tile.shape) > 1 else []
        kinds += ["cat", "interleave"] if 2 * math.prod(tile.shape) <= MOST_ELEMENTS else []
        kind = self.pick(kinds)
        x, by = tile.name, self.scalar(self.random.randint(-n - 1, n + 1))
        same = self.pick([t for t in tiles if t.shape == tile.shape and t.dtype == tile.dtype])
        if kind == "slice":
            text = f"{x}[{index}]"
        elif kind == "row":
            text = f"{x}[{':, ' * axis}{self.scalar(start)}]"
            shape = tile.shape[:axis] + tile.shape[axis + 1 :]
        elif kind == "set":
            ends = f"{'slice(None, None), ' * axis}slice({start}, {stop}, {step})"
            text = f"tl.set({x}, ({ends},), {x}[{index}] + {x}[{index}])"
        elif kind == "gather":
            places = f"({self.positions(tile.shape, axis, plain=True)[0]} * 3 + {by})"
            text = f"tl.gather({x}, tl.broadcast_to({places}, {tile.shape}), {axis})"
        elif kind in ("roll", "shift"):
            fill = ", 1" if kind == "shift" else ""
            text = f"tl.{kind}({x}, {by}{fill}, dim={axis})"
        elif kind == "flip":
            text = f"{x}.flip({axis})"
        elif kind == "cat":
            text = f"tl.cat({x}, {same.name}, dim={axis})"
        else:
            text = f"tl.interleave({x}, {same.name})"
            axis = len(tile.shape) - 1
        if kind not in ("slice", "row"):
            twice = 2 if kind in ("cat", "interleave") else 1
            shape = (*tile.shape[:axis], twice * tile.shape[axis], *tile.shape[axis + 1 :])
        self.features.add(kind)
        made = Tile(self.fresh("t"), tile.dtype, shape)
        self.line(f"{made.name} = {text}")
        return self.define(made)

    def other_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        total = int(np.prod(shape))
        divisors = [d for d in range(1, total + 1) if total % d == 0]
        first = self.pick(divisors)
        return self.pick(((total,), (first, total // first), (total // first, first)))

    def along(self) -> Tile | None:
        """A scan or a sort: a tile of the same shape, what goes before each element or in order."""
        tiles = [t for t in self.tiles if t.shape]
        if not tiles:
            return None
        tile = self.pick(tiles)
        axis = self.pick(range(len(tile.shape)))
        kind = self.pick(("cumsum", "cumsum", "cumprod", "sort", "argsort"))
        if kind.startswith("cum"):
            dtype = SUMS.get(tile.dtype, tile.dtype)
            options = f", reverse={self.chance(0.5)}, exclusive={self.chance(0.5)}"
        else:
            dtype = "int32" if kind == "argsort" else tile.dtype
            options = f", descending={self.chance(0.5)}"
        text = f"tl.{kind}({tile.name}, {axis}{options})"
        if self.chance(0.5):
            text, dtype = f"{text}.to(tl.{tile.dtype})", tile.dtype
        self.features.add(f"{kind} {'inner' if axis == len(tile.shape) - 1 else 'outer'}")
        made = Tile(self.fresh("t"), dtype, tile.shape)
        self.line(f"{made.name} = {text}")
        return self.define(made)

    def reduce(self) -> Tile | None:
        tiles = [t for t in self.tiles if t.shape]
        if not tiles:
            return None
        tile = self.pick(tiles)
        axis = self.pick(range(len(tile.shape)))
        kinds = ["sum", "sum", "max", "min", "argmax", "argmin"]
        kinds += ["xor_sum"] if tile.dtype == "int32" else []
        kind = self.pick(kinds)
        text = f"tl.{kind}({tile.name}, axis={axis})"
        dtype = {"sum": SUMS, "max": EXTREMA, "min": EXTREMA}.get(kind, {}).get(tile.dtype)
        dtype = "int32" if kind.startswith("arg") else dtype or tile.dtype
        if self.chance(0.5):
            text, dtype = f"{text}.to(tl.{tile.dtype})", tile.dtype
        shape = tile.shape[:axis] + tile.shape[axis + 1 :]
        self.features.add(f"{kind} {'inner' if axis == len(tile.shape) - 1 else 'outer'}")
        made = Tile(self.fresh("t"), dtype, shape)
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
        if not self.outputs:
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

    def turns(self) -> None:
        """An atomic operation on an output; lanes share elements where there are fewer of these."""
        outputs = [each for each in self.outputs if each[1] != "int1"]
        if not outputs:
            return
        name, dtype, span = self.pick(outputs)
        extent = self.pick(EXTENTS)
        p, value = self.fresh("p"), self.pointwise((extent,), dtype)
        self.line(f"{p} = tl.arange(0, {extent})")
        kinds = ["add", "max", "min", "xchg"] + ["and", "or", "xor"] * (dtype in INTS)
        mask = f", mask={self.mask((extent,))}" if self.chance(0.4) else ""
        made = Tile(self.fresh("t"), dtype, (extent,))
        kind = self.pick(kinds)
        self.line(
            f"{made.name} = tl.atomic_{kind}({name} + (pid * {span} + {p} % {span}), {value}{mask})"
        )
        self.define(made)
        self.features.add("atomic")

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
        shape = self.pick((self.shape(), carried[0].shape)) or self.shape()
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
            self.exchange(carried)
            if self.depth < 2 and self.chance(0.2):
                self.loop()
            elif self.chance(0.12):
                self.branch()
            if self.chance(0.12):
                self.store()
                self.in_place()
            self.line(f"{pointers} += {step}")

        self.nested(body)

    def exchange(self, carried: list[Tile]) -> None:
        """Two carried tiles of one type change places."""
        if len(carried) == 2 and self.chance(0.4):
            a, b = carried
            if (a.dtype, a.shape) == (b.dtype, b.shape):
                self.line(f"{a.name}, {b.name} = {b.name}, {a.name}")
                self.features.add("exchange")

    def branch(self) -> None:
        changed = self.pick(self.tiles)
        if self.chance(0.4):
            # Known from the data only.
            tile = self.pick([t for t in self.tiles if t.shape])
            found = f"tl.sum(({tile.name} > 1).to(tl.int32))"
            self.line(f"if {found} > {self.pick((0, 1, 4, 40))}:")
            self.features.add("branch on data")
        else:
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
        kind = self.random.random()
        if kind < 0.06:
            self.gather()
        elif kind < 0.1:
            self.dot()
        elif kind < 0.2:
            self.part()
        else:
            self.pick(
                (self.compute, self.compute, self.compute, self.rearrange, self.reduce, self.along)
            )()

    def run(self) -> Program:
        for _ in range(self.pick((1, 1, 2))):
            self.load(self.shape())
        for _ in range(self.random.randint(1, 5)):
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
                self.pick((self.in_place, self.turns))()
        self.store()
        if self.chance(0.04):
            self.line(f"if pid == {self.scalar(1)}:")
            self.line("    return")
            self.features.add("early return")
        self.store(self.tiles[-1] if self.tiles[-1].shape else None)
        return self.finish()

    # The whole.

    def finish(self) -> Program:
        overlap = self.chance(0.3) and "dot" not in self.features
        grid = (1,) if overlap else self.pick(((1,), (1,), (2,), (3,), (2, 2), (1, 1, 3)))
        arguments: dict[str, Any] = {}
        data = np.random.default_rng(self.seed)
        for name, (dtype, span) in self.arrays.items():
            arguments[name] = values(data, dtype, span + self.random.randint(0, 9))
        for name, dtype, span in self.outputs:
            arguments[name] = values(data, dtype, span * math.prod(grid))
        if overlap:
            self.share(arguments)
        arguments.update(self.scalars)
        parameters = ", ".join(arguments)
        source = "\n".join([f"def kernel({parameters}):", *PROGRAM_NUMBER, *self.lines, ""])
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


PROGRAM_NUMBER = (
    "    rest = tl.program_id(1) + tl.num_programs(1) * tl.program_id(2)",
    "    pid = tl.program_id(0) + tl.num_programs(0) * rest",
)


def values(data: np.random.Generator, dtype: str, count: int) -> np.ndarray:
    """Random elements, small enough that most results are finite and many are equal."""
    if "float" in dtype:
        made = data.integers(-16, 17, count) / np.float64(4)
        made[data.random(count) < 0.02] = np.nan
        made[data.random(count) < 0.02] = np.inf
        made[data.random(count) < 0.02] = -0.0
        return made.astype(np.float32).astype(NUMPY[dtype])
    kind = NUMPY[dtype]
    if dtype == "int1":
        return data.random(count) < 0.5
    low = 0 if kind.kind == "u" else -20
    return data.integers(low, 21, count).astype(kind)


def generate(seed: int) -> Program:
    """The program of a seed."""
    return Generator(seed).run()
