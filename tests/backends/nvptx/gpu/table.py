"""The operation table: of each kind of operation one small case."""

from __future__ import annotations

import functools
from collections.abc import Hashable
from dataclasses import replace
from typing import Any

from tests.backends.nvptx.gpu.batches import EXTENTS, grouped, groups

from tritium.backends.common.rules import COMMON
from tritium.ir.types import shaped
from tritium.ops.spec import Case, Sample

EXTENT = 5
"""Elements of the operands of elementwise cases."""


def kind(case: Case) -> Hashable:
    """What a lowering depends on: the types, and the region where there is one."""
    operands = tuple(str(sample.type.scalar) for sample in case.samples())
    results = tuple(str(each.scalar) for each in case.result_types())
    region = case.label.split(" ")[0] if case.regions else ""
    return operands, results, region


def small(case: Case) -> Case:
    """The case with a few elements, where the operation takes each element for itself."""
    ranks = {len(sample.type.shape) for sample in case.samples()}
    if case.op not in COMMON or ranks != {1}:
        return case
    operands: dict[str, Any] = {}
    for name, given in case.operands.items():
        assert isinstance(given, Sample)
        data = given.data[:EXTENT]
        operands[name] = replace(given, type=shaped(given.type.scalar, data.shape), data=data)
    return replace(case, operands=operands)


@functools.cache
def table() -> list[Case]:
    """One case of each kind of every operation."""
    found: list[Case] = []
    for group in groups():
        if group.startswith(EXTENTS):
            continue
        kinds: dict[Hashable, Case] = {}
        for case in [*grouped(group), *grouped(group, large=True)]:
            kinds.setdefault(kind(case), case)
        found += [small(case) for case in kinds.values()]
    return found
