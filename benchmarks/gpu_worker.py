"""One process of the GPU's benchmark: checks and times cases, writes a line of JSON for each.

A side that fails is reported with its case, and the others are timed; where the device's context
is lost with it the process ends, and its caller goes on in a new one.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .gpu_cases import BUILDERS, Data, Problem, Spec, specs
from .gpu_timing import Clock, EventClock, fastest, time_rounds
from .measure import Side, summary
from .specs import OURS

PACKAGES = (OURS, "triton")
TRIED = 7
"""Rounds in which a side's configurations are compared."""

CONTEXT_LOST = 3
"""Exit status of a worker whose device context can't be used any longer."""


@dataclass(frozen=True)
class Package:
    """One that compiles the kernels' source: its name, the module, and its ``language``."""

    name: str
    module: Any
    language: Any


def packages(names: Sequence[str]) -> list[Package]:
    return [
        Package(name, importlib.import_module(name), importlib.import_module(f"{name}.language"))
        for name in names
    ]


def in_short(problem: BaseException) -> str:
    """The class and the first line of an exception."""
    lines = str(problem).strip().splitlines() or ["no message"]
    return f"{type(problem).__name__}: {lines[0]}"


def configured(problem: Problem, package: Package, errors: dict[str, str]) -> list[Side]:
    """The configurations whose result is right; of those that fail, the first is told."""
    sides = []
    for config in problem.configs:
        try:
            call = problem.launcher(package.module, package.language, config)
            problem.check(call)
        except Exception as failure:  # noqa: BLE001 - the report shows it; other sides are timed
            errors.setdefault(package.name, f"{config.name}: {in_short(failure)}")
            continue
        sides.append(Side(config.name, call))
    return sides


def run_case(
    spec: Spec, data: Data, clock: Clock, given: Sequence[Package], rounds: int
) -> dict[str, Any]:
    """The case as it is written to JSON; times in seconds."""
    problem = BUILDERS[spec.kernel](spec, data)
    errors: dict[str, str] = {}
    problem.check(problem.torch)
    best, configs = [], {}
    for package in given:
        sides = configured(problem, package, errors)
        if not sides:
            continue
        name = sides[0].name if len(sides) == 1 else fastest(clock, sides, TRIED)
        configs[package.name] = name
        best += [Side(package.name, side.call) for side in sides if side.name == name]
    times = time_rounds(clock, [*best, Side("torch", problem.torch)], rounds)
    return {
        "name": spec.name,
        "kernel": spec.kernel,
        "further": spec.further,
        "shape": spec.shape,
        "dtype": spec.dtype,
        "moved": problem.moved,
        "configs": configs,
        "errors": errors,
        **timed(times),
    }


def timed(times: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """``measure.summary``; without ratios where our side is missing."""
    if OURS in times:
        return summary(times, OURS)
    return {**summary(times, "torch"), "ratios": {}}


def line(result: Mapping[str, Any]) -> str:
    """The case in one printed line."""
    rates = "  ".join(
        f"{name} {result['moved'] / side['median'] / 1e9:,.0f}"
        for name, side in result["sides"].items()
    )
    failed = "".join(f"  {name} FAILED" for name in result["errors"])
    return f"{result['name']:34} GB/s: {rates}{failed}"


def context_lost(torch: Any) -> bool:
    try:
        torch.cuda.synchronize()
    except RuntimeError:
        return True
    return False


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--packages", default=",".join(PACKAGES), help="tritium,triton")
    parser.add_argument("--rounds", type=int, required=True)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path, required=True, help="gets a line of JSON for each case")
    parser.add_argument("names", nargs="+")
    return parser.parse_args()


def main() -> int:
    options = parse()
    torch = importlib.import_module("torch")
    given = packages([name for name in options.packages.split(",") if name])
    known = {spec.name: spec for spec in specs(options.quick)}
    clock = EventClock(torch)
    with options.out.open("w") as out:
        for name in options.names:
            result: dict[str, Any] = {"name": name, "sides": {}, "ratios": {}, "configs": {}}
            try:
                data = Data(torch, "cuda")
                result = run_case(known[name], data, clock, given, options.rounds)
                print(line(result), flush=True)
            except Exception as failure:  # noqa: BLE001 - told with the case; others still run
                result["errors"] = {"case": in_short(failure)}
                print(f"{name:34} FAILED: {in_short(failure)}", flush=True)
            out.write(json.dumps(result) + "\n")
            out.flush()
            if context_lost(torch):
                return CONTEXT_LOST
    return 0


if __name__ == "__main__":
    sys.exit(main())
