"""Statements of random programs that make tiles: loads, products, what is computed of others."""

from __future__ import annotations

import math

import numpy as np
from tests.fuzz.pieces import (
    DEPTHS,
    EXTENTS,
    EXTREMA,
    FLOATS,
    INTS,
    MOST_ELEMENTS,
    MULTIPLIED,
    SUMS,
    Pieces,
    Tile,
)


class Tiles(Pieces):
    """Writes statements that make a tile."""

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
