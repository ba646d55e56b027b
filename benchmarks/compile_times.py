"""Times of fresh processes: the import, the first result with an empty cache, and with a full one.

Each repetition runs, for each kernel, a process with an empty cache, a second one with what the
first has left, and one that only imports ``llvmlite.binding``.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

from .specs import POINTWISE, ROWS
from .triton_env import ROOT

REPETITIONS = 5
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
