"""How many generated cases a run of the suite tried, by family of operations and by executor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

PROPERTY = "generated cases"

Record = Callable[[str, object], None]


def note(record_property: Record, executor: str, mnemonic: str, count: int) -> None:
    """Say of the running test that it tries that many cases of an operation."""
    record_property(PROPERTY, (executor, mnemonic.partition(".")[0], count))


def lines(counted: Iterable[tuple[str, str, int]]) -> list[str]:
    """A table of the numbers, families down and executors across; empty where there are none."""
    total: Counter[tuple[str, str]] = Counter()
    for executor, family, count in counted:
        total[executor, family] += count
    if not total:
        return []
    executors = sorted({executor for executor, _ in total})
    families = sorted({family for _, family in total})
    rows = [_row("", executors)]
    for family in families:
        rows.append(_row(family, [total[executor, family] for executor in executors]))
    sums = [sum(total[executor, family] for family in families) for executor in executors]
    return [*rows, _row("all", sums)]


def _row(name: str, cells: Sequence[object]) -> str:
    return f"{name:12}" + "".join(f"{cell:>16}" for cell in cells)
