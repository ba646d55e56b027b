"""Which cases run as nvptx kernels, cut into batches: all cases of a batch are one kernel."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tests.backends.cpu import one_op
from tests.backends.nvptx.gpu import extents, gridded
from tests.ops.harness import load_operations

from tritium.ir.core import REGISTRY, Function
from tritium.ir.dtypes import DType
from tritium.ops.spec import Case, cases_of

BATCH = 12
"""Cases that are compiled as one kernel."""

USUAL_WARPS = 4
INTEGER_WARPS = (1, 2, 8)
"""Cases of integers alone run with these too: their results are the same bit for bit."""

OTHER_WARPS = (1, 8, 32)
"""One in ``OTHER_SHARE`` of all batches runs with one of these too, addresses being unaligned."""
OTHER_SHARE = 4

ALIGNED = 16
"""What a launch knows of torch's tensors, in bytes."""

EXTENTS = "extents of "
"""Begins the name of a group of further cases of an operation, of more extents."""


@dataclass(frozen=True)
class Batch:
    """Cases of a group, by number, and how they are compiled. ``alone``: one of them only.

    ``large``: those with many elements, as a grid of programs.
    """

    group: str
    integers: bool
    number: int
    large: bool = False
    num_warps: int = USUAL_WARPS
    divisibility: int = ALIGNED
    alone: int | None = None

    @property
    def name(self) -> str:
        kind = ("-integers" if self.integers else "") + ("-large" if self.large else "")
        alone = "" if self.alone is None else f"-case{self.alone}"
        aligned = "" if self.divisibility == ALIGNED else "-unaligned"
        return f"{self.group}{kind}-{self.number}-{self.num_warps}warps{aligned}{alone}"

    @property
    def cases(self) -> list[Case]:
        start = self.number * BATCH
        found = grouped(self.group, self.integers, self.large)[start : start + BATCH]
        return found if self.alone is None else [found[self.alone]]

    @property
    def grid(self) -> tuple[int, int, int]:
        return gridded.grid(self.cases) if self.large else (1, 1, 1)

    def build(self) -> Function:
        """The kernel in tile IR."""
        build = gridded.build if self.large else one_op.build
        return build(self.cases, self.divisibility)

    def singly(self) -> list[Batch]:
        """A batch for each of its cases."""
        return [replace(self, alone=position) for position in range(len(self.cases))]


def is_integral(case: Case) -> bool:
    """Whether neither operands nor results are floats."""
    types = [sample.type.scalar for sample in case.samples()]
    types += [type.scalar for type in case.result_types()]
    return not any(isinstance(each, DType) and each.is_floating() for each in types)


@functools.cache
def grouped(group: str, integers: bool = False, large: bool = False) -> list[Case]:
    """The cases of an operation, or those of more extents; of integers alone, or all."""
    load_operations()
    mnemonic = group.removeprefix(EXTENTS)
    cases = cases_of(REGISTRY[mnemonic]) if group == mnemonic else extents.cases()[mnemonic]
    return [
        case
        for case in cases
        if gridded.is_large(case) == large and (not integers or is_integral(case))
    ]


def groups() -> list[str]:
    load_operations()
    mnemonics = [
        name
        for name in sorted(REGISTRY)
        if not name.startswith("control.") and "nvptx" not in REGISTRY[name].unsupported
    ]
    return mnemonics + [EXTENTS + name for name in sorted(extents.cases())]


def cut(group: str, integers: bool) -> Iterator[Batch]:
    """The batches of a group, with the usual warps."""
    for large in (False, True):
        for number in range(-(-len(grouped(group, integers, large)) // BATCH)):
            yield Batch(group, integers, number, large)


def plan() -> Iterator[Batch]:
    """Every case with the usual warps; the integers' with others too, and a share of the rest."""
    turn = 0
    for group in groups():
        yield from cut(group, False)
        for batch in cut(group, True):
            yield from (replace(batch, num_warps=num_warps) for num_warps in INTEGER_WARPS)
        for batch in cut(group, False):
            turn += 1
            if turn % OTHER_SHARE == 0:
                num_warps = OTHER_WARPS[turn // OTHER_SHARE % len(OTHER_WARPS)]
                yield replace(batch, num_warps=num_warps, divisibility=1)
