"""What became of a kernel's tiles, for its author: who holds them, how wide memory is accessed and
why, and what moves between threads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tritium.ir.core import Block, Function, Op, Value
from tritium.ir.types import element
from tritium.ops import dot, memory
from tritium.passes.facts import Facts

from .chunks import chunks
from .coalesce import Access, AccessOp
from .guards import Guard
from .homes import Homes, Reduction
from .layouts import (
    LANE,
    PLACES,
    REGISTER,
    WARP,
    LinearLayout,
    Shuffle,
    ThroughShared,
    cost,
    draw,
    in_trips,
    plan_conversion,
)
from .layouts.trips import whole
from .layouts.vectors import MAXIMAL_VECTOR_BYTES
from .shared import most_bytes
from .target import GpuTarget
from .versions import Versions

_ROWS = 8
_COLUMNS = 8
"""How much of a layout is drawn."""


def describe(function: Function, target: GpuTarget, num_warps: int, shared: int) -> str:
    """The text of ``tritium explain --layout``; ``shared`` are the bytes that a block needs."""
    versions = Versions(function, num_warps)
    warps = f"{num_warps} warp{'s' * (num_warps > 1)} of 32 threads"
    lines = [f"{function.name} for {target.arch}: {warps}, {shared} bytes of shared memory"]
    for homes in versions.all:
        if versions.wide is not None:
            names = ", ".join(value.name for value in versions.tested)
            sure = f"where {names} are multiples of {versions.divisor}"
            lines += ["", f"==== {sure if homes is versions.wide else 'else'}"]
        lines += _Table(function, homes, target).lines()
    return "\n".join(lines) + "\n"


class _Table:
    """One version of a kernel, in lines of text."""

    def __init__(self, function: Function, homes: Homes, target: GpuTarget) -> None:
        self.function = function
        self.homes = homes
        self.limit = most_bytes(target.capability)
        self._letters: dict[tuple[LinearLayout, tuple[int, ...]], str] = {}
        self._ops = list(function.walk())
        self._made_at = {result: op for op in self._ops for result in op.results}

    def lines(self) -> Iterator[str]:
        """Everything that is said of it."""
        for title, found in (
            ("Accesses to memory", list(self._accesses())),
            ("Tiles in registers", list(self._held())),
            ("Between threads", list(self._moves())),
        ):
            if found:
                yield from ("", title, *_columns(found))
        computed = self._computed()
        if computed:
            yield from ("", f"Computed wherever they are wanted: {', '.join(computed)}")
        if self._letters:
            yield from ("", "Layouts")
        for (layout, shape), letter in self._letters.items():
            yield from (f"  {letter}", *_indented(draw(layout, shape, _ROWS, _COLUMNS)))

    def _letter(self, layout: LinearLayout, shape: tuple[int, ...]) -> str:
        number = self._letters.setdefault((layout, shape), _letter(len(self._letters)))
        return number

    # Memory.

    def _accesses(self) -> Iterator[Sequence[str]]:
        for op, access in self.homes.accesses.items():
            size = element(op.pointer.type).itemsize
            width = access.vectors.width
            count = len(access.vectors.groups)
            what = op.result if isinstance(op, memory.Load) else op.value
            often = f"{count} time{'s' * (count > 1)} a thread{_further(access.layout)}"
            times = f"{width * size} bytes at a time, {often}"
            yield (_line(op), op.verb, _name(what), str(what.type), times)
            for reason in _reasons(op, access, self.homes.facts):
                yield ("", "", "", "", f"  {reason}")

    # Tiles.

    def _held(self) -> Iterator[Sequence[str]]:
        for value, layout in self.homes.home.items():
            count = layout.input_extent(REGISTER)
            times = f"{count} register{'s' * (count > 1)}{_further(layout)}"
            held = f"{self._letter(layout, value.shape)}, {times}"
            yield (self._line_of(value), _name(value), str(value.type), held)

    def _computed(self) -> list[str]:
        values = (value for op in self._ops for value in op.results if value.shape)
        names = (value.name for value in values if not self.homes.is_held(value))
        return list(dict.fromkeys(filter(None, names)))

    def _line_of(self, value: Value) -> str:
        op = self._made_at.get(value)
        if op is None and isinstance(value.owner, Block):
            op = value.owner.parent_op
        return _line(op)

    # What moves.

    def _moves(self) -> Iterator[Sequence[str]]:
        for value, layouts in self.homes.wanted.items():
            for layout in layouts:
                yield (self._line_of(value), _name(value), *self._conversion(value, layout))
        for op in self._ops:
            if isinstance(op, Reduction):
                yield (_line(op), op.verb, *self._reduction(op))
            elif isinstance(op, dot.Dot):
                text = "multiplied and added by each thread, operands through shared memory"
                yield (_line(op), op.verb, "", text)
            elif op in self.homes.operands:
                yield (
                    _line(op),
                    op.verb,
                    "",
                    "elements move by their index, through shared memory",
                )

    def _conversion(self, value: Value, layout: LinearLayout) -> tuple[str, str]:
        home, moved, count = self.homes.home[value], layout, 1
        letters = (self._letter(each, value.shape) for each in (home, layout))
        source = home
        if in_trips(home):
            plan_ = chunks(whole(home)[0], layout)
            source, moved, count = plan_.source.layout, plan_.target.layout, 1 << plan_.bits
        bits = 64 if value.scalar.is_ptr() else 8 * value.scalar.itemsize
        plan = plan_conversion(source, moved, bits, self.limit)
        text = str(plan) if count == 1 else f"in {count} chunks, each: {plan}"
        if isinstance(plan, (Shuffle, ThroughShared)):
            text += f"; about {cost(plan) // 2} cycles"
        return " to ".join(letters), text

    def _reduction(self, op: Op) -> tuple[str, str]:
        layout = self.homes.operands[op]
        axis: int = op.attributes["axis"]
        parts = []
        ways = {LANE: "by shuffles", WARP: "through shared memory"}
        for name in dict.fromkeys((REGISTER, *layout.input_names[len(PLACES) :], LANE, WARP)):
            count = 1
            for basis in layout.bases(name):
                count *= 2 if layout.unpack(basis)[axis] else 1
            if count > 1:
                parts.append(f"{count} {name}s {ways.get(name, 'in a thread')}")
        return self._letter(layout, op.operands[0].shape), ", then ".join(parts) or "nothing to do"


def _letter(number: int) -> str:
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    outer, inner = divmod(number, len(letters))
    return (_letter(outer - 1) if outer else "") + letters[inner]


def _line(op: Op | None) -> str:
    """The kernel's own line that an operation comes from."""
    return "" if op is None or op.loc is None else f"line {op.loc.chain()[-1].line}"


def _further(layout: LinearLayout) -> str:
    """What a layout counts beside places: how often a thread goes through its registers."""
    others = [(name, len(bases)) for name, bases in layout.inputs if name not in PLACES and bases]
    return "".join(f", in each of {1 << bits} {name}s" for name, bits in others)


def _name(value: Value) -> str:
    if value.name:
        return value.name
    return value.owner.verb if isinstance(value.owner, Op) else "carried"


def _columns(rows: list[Sequence[str]]) -> Iterator[str]:
    """Rows of a table, all columns but the last padded."""
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]) - 1)]
    for row in rows:
        padded = (cell.ljust(width) for cell, width in zip(row, widths))
        yield "  ".join(("", *padded, row[-1])).rstrip()


def _indented(text: str) -> list[str]:
    return [f"    {line}" for line in text.splitlines()]


# ---- why accesses are as wide as they are --------------------------------------------------------


def _reasons(op: AccessOp, access: Access, facts: Facts) -> Iterator[str]:
    """What lets an access be so wide and not wider; how its mask is asked."""
    size = element(op.pointer.type).itemsize
    width = access.vectors.width
    if width * size == MAXIMAL_VECTOR_BYTES:
        yield f"as {_known(op, access, facts)}"
    else:
        yield "not wider, as " + " and ".join(_limits(op, access, facts, width))
    if access.guard is not None:
        asked = "last element" if access.guard is Guard.LAST else "first and last element"
        yield f"where the mask holds for all of them, as its {asked} tells, else one by one"


def _known(op: AccessOp, access: Access, facts: Facts) -> str:
    size = element(op.pointer.type).itemsize
    axis = facts.of(op.pointer).axes[access.fastest]
    run = axis.contiguity(size)
    count = min(run, op.pointer.shape[access.fastest])
    start = min(axis.within(run).start, count * size)
    text = f"{count} elements lie side by side, from multiples of {start} bytes on"
    if op.mask is None or access.guard is not None:
        return text
    constancy = facts.of(op.mask).axes[access.fastest].constancy
    same = min(constancy, op.pointer.shape[access.fastest])
    return f"{text}, and the mask has one value for {same}"


def _limits(op: AccessOp, access: Access, facts: Facts, width: int) -> list[str]:
    size = element(op.pointer.type).itemsize
    number = access.fastest
    axis = facts.of(op.pointer).axes[number]
    run = axis.contiguity(size)
    known = axis.within(run).start
    found = []
    if run <= width:
        run_text = "no neighbours" if run == 1 else f"only {run} elements"
        found.append(f"{run_text} are known to lie side by side")
    if known // size <= width < run:
        sure = max(known, size)
        found.append(f"addresses are only known to be multiples of {sure} bytes")
    extent = op.pointer.shape[number]
    if extent & -extent <= width:
        found.append(f"the tile's extent is {extent}")
    if op.mask is not None and access.guard is None:
        constancy = facts.of(op.mask).axes[number].constancy
        if constancy <= width:
            each = "each element" if constancy == 1 else f"{constancy} elements"
            found.append(f"the mask may differ after {each}")
    return found or ["threads would have nothing to do"]
