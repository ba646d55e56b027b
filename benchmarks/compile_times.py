"""Times of fresh processes: the import, the first result with an empty cache, and with a full one.

    python -m benchmarks.compile_times          # the table alone; --quick: two kernels, once

Each repetition runs, for each kernel, a process with an empty cache, a second one with what the
first has left, and one that only imports ``llvmlite.binding``. Python's byte code is there, as in
any installation that has been used before.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

from .report import time_text
from .specs import POINTWISE, ROWS
from .triton_env import ROOT

REPETITIONS = 9
MOST_IMPORT = 0.200
MOST_COLD = {"add": 0.200}
MOST_COLD_OTHERS = 0.300
MOST_WARM_OVER_LLVMLITE = 0.015

# NumPy first, as in the processes that are compared with it.
LLVMLITE = """
import time, numpy
start = time.perf_counter()
import llvmlite.binding
print(time.perf_counter() - start)
"""


def jobs(quick: bool) -> list[tuple[str, int]]:
    """Kernels and their columns; a pointwise kernel's length is a multiple of 16 plus these."""
    if quick:
        return [("add", 0), ("softmax", 100)]
    return [
        *((kernel, tail) for kernel in POINTWISE for tail in (0, 3)),
        *((kernel, columns) for kernel in ROWS for columns in (1024, 8192, 1000)),
    ]


def label(kernel: str, columns: int) -> str:
    if kernel in POINTWISE:
        return f"{kernel}, odd length" if columns else kernel
    return f"{kernel}, {columns} columns"


def python(environment: Mapping[str, str], *arguments: str) -> str:
    """What a fresh Python prints. Raises CalledProcessError with its standard error."""
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, env=environment, cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout


def first_result(environment: Mapping[str, str], kernel: str, columns: int) -> dict[str, float]:
    reply = python(environment, "-m", "benchmarks.first_result", kernel, str(columns))
    times: dict[str, float] = json.loads(reply)
    return times


def row(name: str, times: Sequence[float], most: float | None) -> dict[str, Any]:
    """One line of the report; seconds. ``most`` is the limit of the median, if it has one."""
    median = statistics.median(times)
    line = {"name": name, "median": median, "minimum": min(times), "times": list(times)}
    return line if most is None else {**line, "most": most, "met": median <= most}


def run(environment: Mapping[str, str], quick: bool) -> list[dict[str, Any]]:
    """All lines: each kernel cold and warm, the imports. Raises CalledProcessError."""
    with tempfile.TemporaryDirectory() as folder:
        kept = {n: v for n, v in environment.items() if n != "PYTHONDONTWRITEBYTECODE"}
        return _lines({**kept, "PYTHONPYCACHEPREFIX": folder}, quick)


def _lines(environment: Mapping[str, str], quick: bool) -> list[dict[str, Any]]:
    imports: list[float] = []
    llvmlite: list[float] = []
    cold: dict[tuple[str, int], list[float]] = {job: [] for job in jobs(quick)}
    warm: dict[tuple[str, int], list[float]] = {job: [] for job in jobs(quick)}
    python(environment, "-c", LLVMLITE)
    for repetition in range(1 if quick else REPETITIONS + 1):
        for job in cold:
            with tempfile.TemporaryDirectory() as cache:
                fresh = {**environment, "TRITIUM_CACHE_DIR": cache}
                empty, full = first_result(fresh, *job), first_result(fresh, *job)
            baseline = float(python(environment, "-c", LLVMLITE))
            # The first repetition brings files and byte code into memory.
            if repetition or quick:
                cold[job].append(empty["first"])
                warm[job].append(full["first"])
                imports += [empty["import"], full["import"]]
                llvmlite.append(baseline)
    limit = statistics.median(llvmlite) + MOST_WARM_OVER_LLVMLITE
    lines = [row("import tritium", imports, None if quick else MOST_IMPORT)]
    lines.append(row("import llvmlite.binding", llvmlite, None))
    for job in cold:
        name = label(*job)
        most = MOST_COLD.get(job[0], MOST_COLD_OTHERS)
        lines.append(row(f"{name}, empty cache", cold[job], None if quick else most))
        lines.append(row(f"{name}, second process", warm[job], None if quick else limit))
    return lines


def print_lines(lines: Sequence[Mapping[str, Any]]) -> None:
    """The table of such lines; ``time_text`` has the units."""
    print(f"{'':34}{'median':>10}{'minimum':>10}{'limit':>10}")
    for line in lines:
        limit = time_text(line["most"]) if "most" in line else ""
        met = {True: " met", False: " MISSED"}.get(line.get("met"), "")
        times = f"{time_text(line['median']):>10}{time_text(line['minimum']):>10}"
        print(f"{line['name']:34}{times}{limit:>10}{met}")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    print_lines(run(os.environ, parser.parse_args().quick))


if __name__ == "__main__":
    main()
