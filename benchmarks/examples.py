"""Times the programs of ``examples/``: how long they take, beside PyTorch, and to be compiled.

    python -m benchmarks.examples            # or the names of some; --rounds N

Each example runs in a process of its own with an empty cache: first alone, where its kernels are
compiled and the most memory that the process held is noted, then in turn with PyTorch. The columns:
the median time, the ratio of PyTorch's time to it (two threads each; more is better), and for each
example the slowest kernel's compilation and that memory. The exit status is 1 where a ratio is
below its floor, or what a compilation or all of it takes is above its limit.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from . import machine
from .triton_env import ROOT

THREADS = 2
FLOOR_DOT = 0.2
FLOOR = 0.5
MOST_COMPILE = 1.0
MOST_COMPILE_MEDIAN = 0.2
MOST_SECONDS = 300.0
COMPILED = re.compile(r"^(\S[^:]*): ([\d.]+) ms$", re.MULTILINE)
"""What ``knobs.compilation.time_passes`` prints for each kernel."""


def load(name: str) -> Any:
    """The example as a module. Raises FileNotFoundError where there is none."""
    spec = importlib.util.spec_from_file_location(f"example_{name}", ROOT / f"examples/{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def torch_or_none() -> Any:
    if importlib.util.find_spec("torch") is None:
        return None
    import torch

    torch.set_num_threads(THREADS)
    return torch


def measure(name: str, rounds: int) -> dict[str, Any]:
    """One example, in this process: seconds, compilations and peak memory (KiB, without torch)."""
    import numpy as np

    from .example_cases import EXAMPLES
    from .measure import Side, time_rounds

    module = load(name)
    compiled = first_calls(
        [case.ours for case in EXAMPLES[name](module, np.random.default_rng(0), None)]
    )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    rows = []
    for case in EXAMPLES[name](module, np.random.default_rng(0), torch_or_none()):
        sides = [Side("tritium", case.ours)]
        if case.torch is not None:
            sides.append(Side("torch", case.torch))
        times = {side: statistics.median(t) for side, t in time_rounds(sides, rounds).items()}
        rows.append({"case": case.name, "dot": case.dot, **times})
    return {"rows": rows, "compiled": compiled, "peak": peak}


def first_calls(calls: Sequence[Callable[[], object]]) -> list[tuple[str, float]]:
    """Run each once; the seconds that every kernel's compilation took."""
    from tritium import knobs

    said = io.StringIO()
    with contextlib.redirect_stderr(said), knobs.compilation.scope():
        knobs.compilation.time_passes = True
        for call in calls:
            call()
    return [(kernel, float(ms) / 1e3) for kernel, ms in COMPILED.findall(said.getvalue())]


def in_a_process(name: str, rounds: int) -> dict[str, Any]:
    """``measure`` in a fresh process with an empty cache."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {
            **os.environ,
            "TRITIUM_CACHE_DIR": cache,
            "TRITIUM_NUM_THREADS": str(THREADS),
            "OMP_NUM_THREADS": str(THREADS),
        }
        command = [sys.executable, "-m", "benchmarks.examples", "--measure", name]
        done = subprocess.run(
            [*command, "--rounds", str(rounds)],
            cwd=ROOT,
            env=environment,
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def lines_of(name: str, result: dict[str, Any]) -> list[str]:
    """The rows of the table for one example."""
    lines = []
    for row in result["rows"]:
        label = f"{name} {row['case']}".strip()
        ratio = "-"
        if "torch" in row:
            value = row["torch"] / row["tritium"]
            floor = FLOOR_DOT if row["dot"] else FLOOR
            ratio = f"{value:.2f}{'' if value >= floor else f' (below {floor})'}"
        lines.append(f"{label:42} {row['tritium'] * 1e3:10.3f} ms  {ratio}")
    return lines


def report(names: Sequence[str], rounds: int) -> tuple[bool, list[str]]:
    """Print the table; whether every floor and limit is met, and the lines."""
    start = time.perf_counter()
    compiled: list[tuple[str, float]] = []
    text: list[str] = []
    for name in names:
        result = in_a_process(name, rounds)
        lines = lines_of(name, result)
        slowest = max((seconds for _, seconds in result["compiled"]), default=0.0)
        lines[0] += f"   [compiled in {slowest * 1e3:.0f} ms, {result['peak'] / 1024:.0f} MiB]"
        print("\n".join(lines), flush=True)
        compiled += [(f"{name}: {kernel}", seconds) for kernel, seconds in result["compiled"]]
        text += lines
    took = time.perf_counter() - start
    median = statistics.median(seconds for _, seconds in compiled)
    worst = max(compiled, key=lambda each: each[1])
    last = (
        f"all in {took:.0f} s; {len(compiled)} kernels, compiled in {median * 1e3:.0f} ms (median)"
        f", {worst[1] * 1e3:.0f} ms at most: {worst[0]}"
    )
    print(f"\n{last}")
    fast = worst[1] <= MOST_COMPILE and median <= MOST_COMPILE_MEDIAN
    met = fast and took <= MOST_SECONDS and not any("below" in line for line in text)
    return met, [*text, "", last]


def page(lines: Sequence[str], about: dict[str, Any], rounds: int) -> str:
    """The table with what it depends on."""
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    where = (
        f"{about['date']}; {about['processor']}, {about['caches']}; {about['system']}; {versions}; "
        f"revision {about['revision']}; load before {about['load before']:.2f}."
    )
    return "\n".join(
        [
            "# The examples, timed",
            "",
            f"`python -m benchmarks.examples`: medians of {rounds} rounds on {THREADS} threads,",
            "and PyTorch's time over Tritium's where PyTorch has the call (more is better); for",
            "each example the slowest compilation of a kernel, cold, and the peak memory of a",
            "process that runs it without PyTorch.",
            "",
            "```text",
            *lines,
            "```",
            "",
            *textwrap.wrap(where, 100),
            "",
        ]
    )


def main() -> int:
    from .example_cases import EXAMPLES

    parser = argparse.ArgumentParser(prog="python -m benchmarks.examples", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(EXAMPLES))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the table there too")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    unknown = sorted(set(given.names) - set(EXAMPLES))
    if unknown:
        parser.error(f"no example {', '.join(unknown)}; there are {', '.join(EXAMPLES)}")
    if given.measure:
        print(json.dumps(measure(given.names[0], given.rounds)))
        return 0
    about = machine.describe()
    met, lines = report(given.names or list(EXAMPLES), given.rounds)
    if given.out is not None:
        given.out.write_text(page(lines, about, given.rounds), encoding="utf-8")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
