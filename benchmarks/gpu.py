"""Runs the benchmark on a GPU: python -m benchmarks.gpu [--quick] [--only NAME] [--out DIR].

Triton and torch have to be installed beside Tritium. Exits with 1 if a side failed or gave a wrong
result, with 3 where there is no GPU to measure; a missed floor is only reported.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from . import gpu_report, machine
from .__main__ import clean_environment
from .gpu_cases import specs
from .gpu_worker import PACKAGES
from .specs import OURS

HERE = Path(__file__).parent
ROUNDS, QUICK_ROUNDS = 50, 3
NO_DEVICE = 3
LEAST_TIME = 10.0
"""Seconds that a part isn't begun with less than."""

QUESTION = """
import json, torch
if not torch.cuda.is_available():
    raise SystemExit("torch finds no CUDA device")
of = torch.cuda.get_device_properties(0)
print(json.dumps({
    "device": f"{of.name}, {of.multi_processor_count} multiprocessors, "
    f"compute capability {of.major}.{of.minor}, {of.total_memory >> 20:,} MiB",
    "cuda": torch.version.cuda,
}))
"""


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.gpu", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--quick", action="store_true", help="small sizes, for a check")
    parser.add_argument(
        "--only",
        metavar="NAME",
        action="append",
        default=[],
        help="what begins so: a kernel ('softmax', 'add 2^28'), or 'launch', 'first'; may be "
        "repeated",
    )
    parser.add_argument("--rounds", type=int, help=f"of each case (default: {ROUNDS})")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds for all of it")
    parser.add_argument("--packages", default=",".join(PACKAGES), help="default: tritium,triton")
    parser.add_argument(
        "--out",
        type=Path,
        help="folder of RESULTS_GPU.md and results_gpu.json; default: benchmarks for a whole run, "
        "else nothing is written",
    )
    options = parser.parse_args(arguments)
    options.packages = [name for name in options.packages.split(",") if name]
    if unknown := set(options.packages) - set(PACKAGES):
        parser.error(f"no such package: {', '.join(sorted(unknown))}")
    if options.rounds is not None and options.rounds < 1:
        parser.error("rounds are positive")
    options.rounds = options.rounds or (QUICK_ROUNDS if options.quick else ROUNDS)
    if options.out is None and not (options.quick or options.only):
        options.out = HERE
    return options


def in_one_line(problem: str) -> str:
    return (problem.strip() or "no message").splitlines()[-1]


class Run:
    """One run: what was asked for, until when, and what has failed so far."""

    def __init__(self, options: argparse.Namespace, environment: Mapping[str, str]) -> None:
        self.options = options
        self.environment = environment
        self.errors: list[dict[str, str]] = []
        self.end = time.monotonic() + options.limit

    def wanted(self, name: str) -> bool:
        only = self.options.only
        return not only or any(name.startswith(start) for start in only)

    def fail(self, name: str, problem: str) -> None:
        """``problem`` may be a process' standard error: its last line is what is reported."""
        reason = in_one_line(problem)
        print(f"failed: {name}: {reason}", flush=True)
        self.errors.append({"name": name, "reason": reason})

    def process(self, name: str, *arguments: str) -> tuple[bool, str]:
        """Runs a module of the benchmark; whether it ended well, and its standard error."""
        left = self.end - time.monotonic()
        if left < LEAST_TIME:
            return False, "no time was left"
        command = [sys.executable, "-m", f"benchmarks.{name}", *arguments]
        command += ["--quick"] if self.options.quick else []
        with tempfile.TemporaryFile("w+") as errors:
            try:
                done = subprocess.run(
                    command, stderr=errors, cwd=HERE.parent, env=self.environment, timeout=left
                )
            except subprocess.TimeoutExpired:
                return False, "it ran out of time"
            errors.seek(0)
            text = errors.read()
        sys.stderr.write(text)
        return done.returncode == 0, text or f"the process ended with status {done.returncode}"

    def worker(
        self, names: Sequence[str], packages: Sequence[str]
    ) -> tuple[list[dict[str, Any]], str]:
        """The results of the cases until a process ended, and why it did."""
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder, "results")
            _, problem = self.process(
                "gpu_worker", "--rounds", str(self.options.rounds), "--packages",
                ",".join(packages), "--out", str(out), *names,
            )  # fmt: skip
            lines = out.read_text().splitlines() if out.is_file() else []
        return [json.loads(line) for line in lines], problem

    def cases(self) -> list[dict[str, Any]]:
        """All cases; one that fails as a whole, or ends its process, again without Tritium."""
        left = [spec.name for spec in specs(self.options.quick) if self.wanted(spec.name)]
        found: list[dict[str, Any]] = []
        while left and time.monotonic() < self.end - LEAST_TIME:
            results, problem = self.worker(left, self.options.packages)
            if not results:
                results = [{"name": left[0], "sides": {}, "errors": {"case": in_one_line(problem)}}]
            found += [each if each["sides"] else self.peers_of(each) for each in results]
            left = left[len(results) :]
        for name in left:
            self.fail(name, "no time was left")
        for result in found:
            for side, text in result["errors"].items():
                self.fail(f"{result['name']}, {side}", text)
        return found

    def peers_of(self, failed: Mapping[str, Any]) -> dict[str, Any]:
        """The case that failed as a whole, measured without Tritium."""
        peers = [name for name in self.options.packages if name != OURS]
        results, _ = self.worker([failed["name"]], peers)
        found = results[0] if results and results[0]["sides"] else {**failed, "errors": {}}
        blank: dict[str, Any] = {"ratios": {}, "configs": {}}
        return {**blank, **found, "errors": {**found["errors"], **failed["errors"]}}

    def part(self, name: str, module: str) -> list[dict[str, Any]]:
        """The lines of another module of the benchmark, and its errors."""
        if not self.wanted(name):
            return []
        print(f"{name}, in {module}", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder, "found.json")
            packages = ",".join(self.options.packages)
            well, problem = self.process(module, "--packages", packages, "--json", str(out))
            if not well:
                self.fail(name, problem)
                return []
            found = json.loads(out.read_text())
        for error in found["errors"]:
            self.fail(error["name"], error["reason"])
        lines: list[dict[str, Any]] = found["lines"]
        return lines


def answer(*command: str) -> str:
    """The last line of what a program prints; ``unknown`` where it can't run."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return (done.stdout.strip() or "unknown").splitlines()[-1]


def describe(device: Mapping[str, str]) -> dict[str, Any]:
    found = machine.describe()
    if importlib.util.find_spec("triton"):
        found["versions"]["triton"] = importlib.metadata.version("triton")
    found["versions"]["CUDA of torch"] = device["cuda"]
    driver = answer("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader")
    ptxas = answer(shutil.which("ptxas") or "/usr/local/cuda/bin/ptxas", "--version")
    return {**found, "device": device["device"], "driver": driver, "ptxas": ptxas}


def device() -> dict[str, str] | str:
    """The GPU in words, or the reason why there is none to measure."""
    for name in ("torch", "triton"):
        if importlib.util.find_spec(name) is None:
            return f"{name} is not installed"
    done = subprocess.run([sys.executable, "-c", QUESTION], capture_output=True, text=True)
    if done.returncode:
        return (done.stderr.strip() or "no message").splitlines()[-1]
    found: dict[str, str] = json.loads(done.stdout)
    return found


def write(results: Mapping[str, Any], folder: Path) -> None:
    """``results_gpu.json`` and ``RESULTS_GPU.md`` into ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results_gpu.json").write_text(json.dumps(results) + "\n")
    (folder / "RESULTS_GPU.md").write_text(gpu_report.page(results))
    print(f"written: {folder / 'RESULTS_GPU.md'}", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    given = sys.argv[1:] if arguments is None else list(arguments)
    options = parse(given)
    found = device()
    if isinstance(found, str):
        print(f"nothing is measured: {found}", file=sys.stderr)
        return NO_DEVICE
    with tempfile.TemporaryDirectory() as cache:
        environment = {**clean_environment(cache), "TRITON_CACHE_DIR": cache}
        run = Run(options, environment)
        results: dict[str, Any] = {
            "command": machine.command("benchmarks.gpu", given),
            "machine": describe(found),
            "rounds": options.rounds,
            "launch": run.part("launch", "gpu_launch"),
            "first": run.part("first", "gpu_compile"),
            "cases": run.cases(),
            "errors": run.errors,
        }
    if options.out is not None:
        write(results, options.out)
    for error in run.errors:
        print(f"failed: {error['name']}: {error['reason']}", flush=True)
    print(gpu_report.short_table(results), flush=True)
    return 1 if run.errors else 0


if __name__ == "__main__":
    sys.exit(main())
