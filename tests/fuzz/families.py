"""Statements of random programs by family: functions of scalars, bins, random numbers, places that
are known at run time, block pointers and descriptors."""

from __future__ import annotations

import math

from tests.fuzz.pieces import FLOATS, INTS, MOST_ELEMENTS, NUMPY, Tile
from tests.fuzz.tiles import Tiles

HELPERS = """
@jit
def halvings(x):
    count = 0
    while x > 1:
        if x % 2 == 0:
            x = x // 2
        else:
            x = x - 3
        count += 1
    return count


@jit
def folded(x, y):
    if x < y:
        return x
    for i in range(3):
        if x > y:
            x = x * 0.5
        else:
            x = x + i
    return x - y


@jit
def sum_and_first(a0, a1, b0, b1):
    return a0 + b0, a1 + b1, a0, b1


@jit
def largest(a, p, b, q):
    first = a > b or (a == b and p < q)
    return tl.where(first, a, b), tl.where(first, p, q)


@jit
def affine(a, b, c, d):
    return a * c, b * c + d

"""
"""What programs that map, reduce and scan by functions of their own hold in front."""

BINS = (1, 2, 5, 16, 33, 100)
ALIGNMENT = 16
"""Bytes that strides of descriptors are multiples of."""


class Families(Tiles):
    """Writes statements of the families that few kernels use."""

    def integers(self) -> Tile | None:
        """A tile of integers, if there is one."""
        found = [t for t in self.tiles if "int" in t.dtype and t.shape]
        return self.pick(found) if found else None

    def made(self, dtype: str, shape: tuple[int, ...], text: str) -> Tile:
        """A new tile by an expression."""
        tile = Tile(self.fresh("t"), dtype, shape)
        self.line(f"{tile.name} = {text}")
        return self.define(tile)

    # Functions of scalars.

    def histogram(self) -> Tile | None:
        tile = self.integers()
        if tile is None:
            return None
        x = f"{tile.name}.to(tl.int32)" if tile.dtype == "int1" else tile.name
        bins = self.pick(BINS)
        mask = f", mask={self.mask(tile.shape)}" if self.chance(0.4) else ""
        self.features.add("histogram")
        return self.made("int32", (bins,), f"tl.histogram({x}, {bins}{mask})")

    def mapped(self) -> Tile | None:
        """A function with branches and loops on each element, or on two at once."""
        tiles = [t for t in self.tiles if t.shape and math.prod(t.shape) <= MOST_ELEMENTS // 8]
        if not tiles:
            return None
        tile = self.pick(tiles)
        shape = tile.shape
        self.features |= {"map", "helpers"}
        kind = self.pick(("halvings", "folded", "pack"))
        if kind == "halvings":
            x = f"tl.minimum(tl.zeros({shape}, tl.int32) + {self.operand(shape, 'int32')}, 50)"
            return self.made("int32", shape, f"tl.map_elementwise(halvings, {x})")
        x, y = (
            f"tl.full({shape}, 0.5, tl.float32) + {self.operand(shape, 'float32')}" for _ in "xy"
        )
        if kind == "folded" or math.prod(shape) % 2:
            return self.made("float32", shape, f"tl.map_elementwise(folded, {x}, {y})")
        text = f"tl.map_elementwise(sum_and_first, {x}, {y}, pack=2)"
        left, right = (Tile(self.fresh("t"), "float32", shape) for _ in "lr")
        self.line(f"{left.name}, {right.name} = {text}")
        self.define(right)
        return self.define(left)

    def combined(self) -> Tile | None:
        """A reduction or a scan of a pair of tiles by a function."""
        tiles = [t for t in self.tiles if len(t.shape) > 0 and t.dtype != "int1"]
        if not tiles:
            return None
        tile = self.pick(tiles)
        shape = tile.shape
        axis = self.pick(range(len(shape)))
        self.features |= {"combine", "helpers"}
        if self.chance(0.5):
            second, _ = self.positions(shape, axis, plain=True)
            pair = f"({tile.name}, tl.broadcast_to({second}, {shape}))"
            function, kinds = "largest", (tile.dtype, "int32")
        else:
            other = self.operand(shape, "int32")
            pair = f"({self.operand(shape, 'int32')} | tl.zeros({shape}, tl.int32), "
            pair += f"{other} | tl.zeros({shape}, tl.int32))"
            function, kinds = "affine", ("int32", "int32")
        names = [self.fresh("t") for _ in kinds]
        if self.chance(0.5):
            call = f"tl.associative_scan({pair}, {axis}, {function}, reverse={self.chance(0.5)})"
        else:
            call = f"tl.reduce({pair}, {axis}, {function})"
            shape = shape[:axis] + shape[axis + 1 :]
        self.line(f"{', '.join(names)} = {call}")
        made = [Tile(name, kind, shape) for name, kind in zip(names, kinds)]
        if not shape:
            sum_of = f"({made[0].name} + {tile.name}).to(tl.{tile.dtype})"
            return self.made(tile.dtype, tile.shape, sum_of)
        self.define(made[1])
        return self.define(made[0])

    # Random numbers.

    def random_numbers(self) -> Tile:
        tile = self.integers()
        if tile is None:
            shape = self.shape()
            places = self.positions(shape, 0, plain=True)[0]
            offset = f"tl.broadcast_to({places}, {shape})"
        else:
            shape, offset = tile.shape, f"{tile.name}.to(tl.{self.pick(('int32', 'int64'))})"
        seed = self.scalar(self.pick((0, 1, 77, 2**40 + 5)))
        rounds = self.pick(("", "", ", n_rounds=3"))
        kind = self.pick(("rand", "randint", "rand4x", "randint4x"))
        dtype = "float32" if kind.startswith("rand") and "int" not in kind else "uint32"
        text = f"tl.{kind}({seed}, {offset}{rounds})"
        self.features.add("random numbers")
        if kind.endswith("4x"):
            names = [self.fresh("t") for _ in range(4)]
            self.line(f"{', '.join(names)} = {text}")
            return self.define(Tile(self.pick(names), dtype, shape))
        return self.made(dtype, shape, text)

    # Places.

    def run_time_place(self, extent: int) -> str:
        """A place on an axis that is known when the program runs."""
        kind = self.pick(("argument", "program", "data"))
        tile = self.integers()
        if kind == "data" and tile is not None:
            return f"tl.abs(tl.max({tile.name}.to(tl.int32))) % {extent}"
        if kind == "program":
            return f"(pid * 3 + {self.random.randrange(extent)}) % {extent}"
        name = f"s{len(self.scalars)}"
        self.scalars[name] = self.random.randrange(extent)
        return name

    def place(self) -> Tile | None:
        """A row or element at a run-time place, or a tile with one replaced."""
        tiles = [t for t in self.tiles if t.shape]
        if not tiles:
            return None
        tile = self.pick(tiles)
        shape = tile.shape
        axis = self.pick(range(len(shape)))
        at = self.run_time_place(shape[axis])
        row = shape[:axis] + shape[axis + 1 :]
        self.features.add("run-time place")
        if self.chance(0.5):
            text = f"{tile.name}[{':, ' * axis}{at}]"
            if row:
                return self.made(tile.dtype, row, text)
            return self.made(tile.dtype, shape, f"({tile.name} + {text}).to(tl.{tile.dtype})")
        index = f"({'slice(None), ' * axis}{at},)"
        same = [t for t in self.tiles if t.shape == row and row]
        value = self.pick(same).name if same else self.literal(tile.dtype)
        return self.made(tile.dtype, shape, f"tl.set({tile.name}, {index}, {value})")

    # Block pointers and descriptors.

    def block(self) -> Tile:
        """A block that is loaded; now and then one that is stored first."""
        if self.chance(0.5):
            return self.block_pointer()
        return self.descriptor()

    def block_shape(self, last: int = 1) -> tuple[int, ...]:
        """Of one to three axes, the last of at least ``last``."""
        while True:
            shape = self.shape()
            if shape[-1] >= last:
                return shape

    def block_pointer(self) -> Tile:
        shape = self.block_shape()
        store = self.chance(0.3)
        sources = [t for t in self.tiles if t.shape]
        if store and sources:
            source = self.pick(sources)
            shape, dtype = source.shape, source.dtype
        else:
            store, dtype = False, self.pick((*FLOATS, *INTS))
        extents = [self.pick((each, each + 3, max(1, each - 2), 2 * each)) for each in shape]
        order = list(range(len(shape)))
        if self.chance(0.3):
            self.random.shuffle(order)
        strides, step = [0] * len(shape), 1
        for axis in reversed(order):
            strides[axis] = step
            step = step * extents[axis] + self.pick((0, 0, 3))
        span = sum((n - 1) * s for n, s in zip(extents, strides)) + 1
        starts, checked = [], []
        for axis, (extent, width) in enumerate(zip(extents, shape)):
            inside = extent - width
            if inside < 0 or self.chance(0.5):
                checked.append(axis)
                starts.append(self.random.randint(-width - 1, extent + 1))
            else:
                starts.append(self.random.randint(0, inside))
        base = self.target(dtype, span) if store else self.array(dtype, span)
        name = self.fresh("b")
        given = [self.listed(each) for each in (extents, strides, starts)]
        self.line(
            f"{name} = tl.make_block_ptr({base}, {', '.join(given)}, {shape}, {tuple(order)})"
        )
        if self.chance(0.3):
            moved = [
                self.pick((0, 1, -2, 5)) if axis in checked else 0 for axis in range(len(shape))
            ]
            self.line(f"{name} = tl.advance({name}, {self.listed(moved)})")
        check = f", boundary_check={tuple(checked)}" if checked else ""
        self.features.add("block pointer")
        if store:
            self.line(f"tl.store({name}, {source.name}{check})")
            return source
        padding = f", padding_option={self.padding(dtype)}" if checked and self.chance(0.5) else ""
        return self.made(dtype, shape, f"tl.load({name}{check}{padding})")

    def listed(self, numbers: list[int]) -> str:
        """Numbers as a tuple, some of them passed at run time."""
        return f"({', '.join(self.scalar(each) for each in numbers)},)"

    def padding(self, dtype: str) -> str:
        return self.pick(("'zero'", "'nan'")) if "float" in dtype else "'zero'"

    def target(self, dtype: str, span: int) -> str:
        """Where a program may write ``span`` elements of a new output."""
        name = f"o{len(self.outputs)}"
        self.outputs.append((name, dtype, span))
        return f"{name} + pid * {span}"

    def descriptor(self) -> Tile:
        dtype = self.pick([each for each in (*FLOATS, *INTS) if each != "int1"])
        size = NUMPY[dtype].itemsize
        shape = self.block_shape(last=ALIGNMENT // size)
        unit = ALIGNMENT // size
        extents = [self.pick((each, each + 3, max(1, each - 2))) for each in shape]
        strides, step = [1] * len(shape), -(-extents[-1] // unit) * unit
        for axis in reversed(range(len(shape) - 1)):
            strides[axis] = step
            step *= extents[axis]
        span = sum((n - 1) * s for n, s in zip(extents, strides)) + 1
        same = [t for t in self.tiles if t.shape == shape and t.dtype == dtype]
        store = bool(same) or self.chance(0.2)
        base = self.target(dtype, span) if store else self.array(dtype, span)
        padding = f", padding_option={self.padding(dtype)}" if self.chance(0.4) else ""
        name = self.fresh("d")
        steps = ", ".join(map(str, strides))
        sizes = self.listed(extents)
        block = f"[{', '.join(map(str, shape))}]"
        self.line(
            f"{name} = tl.make_tensor_descriptor({base}, {sizes}, [{steps}], {block}{padding})"
        )
        at = [self.random.randint(-2, extent + 1) for extent in extents]
        self.features.add("descriptor")
        if store:
            value = self.pick(same).name if same else f"tl.zeros({shape}, tl.{dtype}) + 1"
            verb = self.pick(("store", "store", "atomic_add")) if dtype == "int32" else "store"
            self.line(f"{name}.{verb}({self.listed(at)}, ({value}).to(tl.{dtype}))")
        return self.made(dtype, shape, f"{name}.load({self.listed(at)})")

    def family(self) -> Tile | None:
        """A statement of any of them."""
        return self.pick(
            (
                *(self.histogram, self.mapped, self.combined, self.random_numbers),
                *(self.place, self.place, self.block, self.block),
            )
        )()
