"""Times of fresh processes on the GPU: first results with an empty cache, and with a full one.

    python -m benchmarks.gpu_compile            # the table alone; --quick: once

Each repetition runs, for each package, a process with an empty cache and a second one with what the
first has left. Both have torch's context before anything is timed. Python's byte code is there, as
in any installation that has been used before: a first round isn't counted.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .compile_times import print_lines, python, row
from .gpu_first import FURTHER, NO_LLVM
from .gpu_worker import PACKAGES
from .specs import OURS

REPETITIONS = 3
MOST_FIRST, MOST_CACHED = 0.300, 0.010
MOST_FURTHER = {"add": 0.060, "softmax": 0.100, "layernorm": 0.150}


def process(environment: Mapping[str, str], package: str, *more: str) -> dict[str, float]:
    """Times of one fresh process. Raises CalledProcessError with its standard error."""
    times: dict[str, float] = json.loads(
        python(environment, "-m", "benchmarks.gpu_first", package, *more).splitlines()[-1]
    )
    return times


def repetition(environment: Mapping[str, str], package: str) -> dict[str, float]:
    """Times of a process with an empty cache, and ``cached``: the first result of a second one."""
    with tempfile.TemporaryDirectory() as cache:
        fresh = {**environment, "TRITIUM_CACHE_DIR": cache, "TRITON_CACHE_DIR": cache}
        times = process(fresh, package)
        more = [NO_LLVM] if package == OURS else []
        return {**times, "cached": process(fresh, package, *more)["first"]}


def limit(package: str, key: str) -> float | None:
    if package != OURS:
        return None
    return {"first": MOST_FIRST, "cached": MOST_CACHED, **MOST_FURTHER}.get(key)


def label(package: str, key: str) -> str:
    named = {
        "import": "import after torch",
        "first": "first kernel of a process",
        "cached": "first kernel, second process",
    }
    return f"{package}, {named.get(key, key)}"


def lines_of(found: Mapping[str, Sequence[Mapping[str, float]]]) -> list[dict[str, Any]]:
    """The report's lines from each package's repetitions."""
    keys = ["import", "first", *(spec.kernel for spec in FURTHER), "cached"]
    return [
        row(label(package, key), [times[key] for times in repetitions], limit(package, key))
        for package, repetitions in found.items()
        for key in keys
        if repetitions
    ]


def run(
    environment: Mapping[str, str], quick: bool, names: Sequence[str] = PACKAGES
) -> dict[str, Any]:
    """``lines`` as ``compile_times.row`` makes them, and ``errors``."""
    with tempfile.TemporaryDirectory() as folder:
        kept = {n: v for n, v in environment.items() if n != "PYTHONDONTWRITEBYTECODE"}
        return _run({**kept, "PYTHONPYCACHEPREFIX": folder}, quick, names)


def _run(environment: Mapping[str, str], quick: bool, names: Sequence[str]) -> dict[str, Any]:
    found: dict[str, list[dict[str, float]]] = {name: [] for name in names}
    errors: dict[str, str] = {}
    for number in range(1 if quick else REPETITIONS + 1):
        for name in names:
            if name in errors:
                continue
            try:
                times = repetition(environment, name)
            except subprocess.CalledProcessError as problem:
                print(problem.stderr, file=sys.stderr, flush=True)
                errors[name] = (problem.stderr.strip() or "no message").splitlines()[-1]
                continue
            if number or quick:
                found[name].append(times)
    told = [{"name": f"first results, {name}", "reason": text} for name, text in errors.items()]
    return {"lines": lines_of(found), "errors": told}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--packages", default=",".join(PACKAGES))
    parser.add_argument("--json", type=Path, help="gets the lines and the errors")
    options = parser.parse_args()
    found = run(os.environ, options.quick, options.packages.split(","))
    if options.json is not None:
        options.json.write_text(json.dumps(found))
    print_lines(found["lines"])
    for error in found["errors"]:
        print(f"failed: {error['name']}: {error['reason']}")


if __name__ == "__main__":
    main()
