"""What the random programs made of the nests: how many fall back, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from tritium.backends.cpu import CpuKernel

PROGRAMS = "programs"
ANY_INDEXED = "with a gather or scatter"
ANY_UNFUSED = "with an unfused nest"


def of_kernel(kernel: CpuKernel) -> set[str]:
    """What is counted of one program: each reason once.

    The version of a nest for integers that wrap is left out: it is compiled, hardly ever run.
    """
    found = {PROGRAMS}
    for what in kernel.slow:
        if "where integers may wrap" not in what:
            found.add(f"access: {what}")
            found.add(ANY_INDEXED)
    for line in kernel.dump.splitlines():
        text = line.strip()
        if not text.startswith("because "):
            continue
        what, _, why = text.partition(", ")
        if what.endswith(": stored"):
            found.add(f"stored: {why}")
        elif what.endswith("a nest of its own"):
            found.add(f"unfused: {why}")
            found.add(ANY_UNFUSED)
    return found


def lines(counted: Iterable[Mapping[str, int]]) -> list[str]:
    """The tallies of several chunks as a table of shares; empty where there are none."""
    total: Counter[str] = Counter()
    for each in counted:
        total.update(each)
    programs = total.pop(PROGRAMS, 0)
    if not programs:
        return []
    order = sorted(total, key=lambda what: (":" in what, what.partition(":")[0], -total[what]))
    shares = [f"{total[what] / programs:7.1%}  {what}" for what in order]
    return [f"{programs} random programs, of which", *shares]
