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
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from tests.fuzz.families import HELPERS, Families
from tests.fuzz.pieces import EXTENTS, FLOATS, INTS, NUMPY, Tile

import tritium.language as tl
from tritium.ops.callable import DeviceFunction


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
        namespace: dict[str, Any] = {"tl": tl, "jit": DeviceFunction}
        exec(compile(self.source, filename, "exec"), namespace)
        made: DeviceFunction = namespace["kernel"]
        return made


class Generator(Families):
    """Writes one program: statements that make tiles, stores, control flow."""

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
        elif kind < 0.32:
            self.family()
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
        head = "@jit", f"def kernel({parameters}):"
        source = "\n".join([*head, *PROGRAM_NUMBER, *self.lines, ""])
        if "helpers" in self.features:
            source = HELPERS + "\n" + source
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
