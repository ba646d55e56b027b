"""A second version of a kernel's code for numbers that turn out to be multiples at run time.

Launches are specialised for multiples of 16. A row of 5,000 fp16 is none, yet every row starts at a
multiple of 16 bytes: where that makes accesses wider the kernel tests it once, and has code for
both answers.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence

from tritium.ir.core import Block, Function, Op, Param, Region, Value
from tritium.ir.types import element
from tritium.ops import control, memory

from .homes import Homes
from .layouts import REGISTER
from .layouts.vectors import MAXIMAL_VECTOR_BYTES

SPECIALISED = 16
"""A number that is a multiple of it is known to be one."""

MOST_ELEMENTS = 128
"""Elements a thread loads and stores in a kernel, from which on its code isn't doubled."""


class Versions:
    """The table of layouts, and ``wide``, the one for the case that each of ``tested`` is a
    multiple of ``divisor``; None where that would make no difference."""

    def __init__(self, function: Function, num_warps: int) -> None:
        self.plain = Homes(function, num_warps)
        self.wide: Homes | None = None
        self.tested: list[Value] = []
        self.divisor = _divisor(self.plain)
        if not 1 < self.divisor < SPECIALISED or _elements(self.plain) >= MOST_ELEMENTS:
            return
        self.tested = _unaligned(function, self.plain, self.divisor)
        if self.tested:
            wide = Homes(_assumed(function, self.tested, self.divisor), num_warps)
            if _widths(wide) > _widths(self.plain):
                self.wide = wide

    @property
    def all(self) -> list[Homes]:
        """Every version, the plain one last."""
        return [self.plain] if self.wide is None else [self.wide, self.plain]


def _widths(homes: Homes) -> int:
    return sum(access.vectors.width for access in homes.accesses.values())


def _elements(homes: Homes) -> int:
    layouts = (access.layout for access in homes.accesses.values())
    return sum(layout.input_extent(REGISTER) for layout in layouts)


def _divisor(homes: Homes) -> int:
    """By what a row's length is to be divided so that rows of the smallest elements are aligned."""
    sizes = [element(op.pointer.type).itemsize for op in homes.accesses]
    return MAXIMAL_VECTOR_BYTES // min(sizes, default=MAXIMAL_VECTOR_BYTES)


def _assumed(function: Function, tested: Sequence[Value], divisor: int) -> Function:
    """The same function, knowing more of its parameters."""
    made = copy.copy(function)
    made.params = [
        Param(param.name, param.value, divisor) if param.value in tested else param
        for param in function.params
    ]
    return made


def _unaligned(function: Function, homes: Homes, divisor: int) -> list[Value]:
    """The integer parameters that addresses are made of and that may be no multiples."""
    reached = _made_of(op.pointer for op in homes.accesses)
    return [
        param.value
        for param in function.params
        if param.type.is_int()
        and param.type.primitive_bitwidth > 8
        and param.divisibility % divisor
        and param.value in reached
    ]


def _made_of(values: Iterable[Value]) -> set[Value]:
    """Everything that values depend on, also through loops."""
    seen: set[Value] = set()
    pending = list(values)
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        owner = value.owner if isinstance(value.owner, Op) else None
        if owner is None and isinstance(value.owner, Block):
            owner = value.owner.parent_op
        if owner is not None and not isinstance(owner, memory.Load):
            pending += [x for x in owner.operands if not _is_bound(x, owner)]
            pending += [each for region in owner.regions for each in _ends(region)]
    return seen


def _is_bound(value: Value, op: Op) -> bool:
    """Whether a loop ends at a number, and does nothing else with it."""
    return isinstance(op, control.For) and value not in (op.lower, op.step, *op.init)


def _ends(region: Region) -> Sequence[Value]:
    end = region.block.terminator
    return () if end is None else end.operands
