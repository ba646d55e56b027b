"""Says where the time of a compilation went: what ``knobs.compilation.time_passes`` prints."""

from __future__ import annotations

import sys
from collections.abc import Mapping


def report(kernel: str, times: Mapping[str, float]) -> None:
    """Print the seconds of each phase on stderr, as milliseconds, in the order they were taken."""
    total = sum(times.values())
    width = max(map(len, times), default=0)
    lines = [f"{kernel}: {total * 1e3:.2f} ms"]
    for phase, seconds in times.items():
        lines.append(f"  {phase:{width}}  {seconds * 1e3:8.2f} ms  {seconds / total:4.0%}")
    print("\n".join(lines), file=sys.stderr)
