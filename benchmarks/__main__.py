"""Runs the benchmark: python -m benchmarks [--quick] [--only NAME] [--threads 1,2] [--out DIR].

Exits with 1 if a side gave a wrong result or a process failed; a missed floor is only reported.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from . import compile_times, interpreter, machine, report, triton_env
from .specs import specs

HERE = Path(__file__).parent
PEERS = ("torch", "numpy", "numba", "compile")
QUICK_PAIRS = 3

# Whatever of these the caller has set would change what is measured.
FOREIGN = (
    "GOMP_", "KMP_", "MKL_", "NUMBA_", "OMP_", "OPENBLAS_", "TORCHINDUCTOR_", "TRITIUM_", "TRITON_",
)  # fmt: skip


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--quick", action="store_true", help="small sizes, for a check")
    parser.add_argument(
        "--only",
        metavar="NAME",
        action="append",
        default=[],
        help="what begins so: a kernel ('softmax', 'add 10,000,000'), or 'interpreter', "
        "'compile', 'launch'; may be repeated",
    )
    parser.add_argument("--threads", default="1,2", help="thread counts (default: 1,2)")
    parser.add_argument("--pairs", type=int, help="rounds of each case (default: 40)")
    parser.add_argument(
        "--peers",
        help="what is timed beside, of " + ",".join(PEERS) + " (default: all that is installed; "
        "compile, which is torch.compile, not with --quick)",
    )
    parser.add_argument(
        "--out",
        type=Path,
        help="folder of RESULTS.md, results.json and plots; default: benchmarks for a whole run, "
        "else nothing is written",
    )
    options = parser.parse_args(arguments)
    options.threads = [int(n) for n in options.threads.split(",")]
    if options.peers is None:
        options.peers = ",".join(PEERS[:-1] if options.quick else PEERS)
    options.peers = [name for name in options.peers.split(",") if name]
    unknown = set(options.peers) - set(PEERS)
    if unknown:
        parser.error(f"no such peer: {', '.join(sorted(unknown))}; there are {', '.join(PEERS)}")
    if min(options.threads) < 1 or (options.pairs is not None and options.pairs < 1):
        parser.error("thread counts and pairs are positive")
    options.pairs = options.pairs or (QUICK_PAIRS if options.quick else 40)
    if options.out is None and not (options.quick or options.only):
        options.out = HERE
    return options


def clean_environment(cache: str) -> dict[str, str]:
    """The caller's without what steers the libraries; with a compile cache of this run."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    return {**kept, "TRITIUM_CACHE_DIR": cache}


def with_threads(environment: Mapping[str, str], threads: int) -> dict[str, str]:
    count = str(threads)
    names = ("TRITIUM_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
    return {**environment, **dict.fromkeys(names, count)}


class Run:
    """One run of the benchmark: what was asked for, and what has been found so far."""

    def __init__(self, options: argparse.Namespace, environment: Mapping[str, str]) -> None:
        self.options = options
        self.environment = environment
        self.skipped: list[dict[str, str]] = []
        self.errors: list[dict[str, str]] = []

    def wanted(self, name: str) -> bool:
        only = self.options.only
        return not only or any(name.startswith(start) for start in only)

    def skip(self, name: str, reason: str) -> None:
        print(f"{name} is left out: {reason}", flush=True)
        self.skipped.append({"name": name, "reason": reason})

    def fail(self, name: str, problem: str) -> None:
        """``problem`` is a process' standard error; its last line is what is reported."""
        print(problem, file=sys.stderr, flush=True)
        last = (problem.strip() or "no message").splitlines()[-1]
        self.errors.append({"name": name, "reason": last})

    def worker(self, names: Sequence[str], threads: int, *more: str) -> list[dict[str, Any]]:
        """Results of the cases in processes of one thread count: one, and another after a failure.

        A worker ends at its first failure; what it has written until then counts.
        """
        found: list[dict[str, Any]] = []
        left = list(names)
        options = self.options
        while left:
            with tempfile.TemporaryDirectory() as folder:
                out, errors = Path(folder, "results"), Path(folder, "errors")
                command = [
                    sys.executable, "-m", "benchmarks.worker", "--threads", str(threads),
                    "--pairs", str(options.pairs), "--peers", ",".join(options.peers),
                    *(["--quick"] if options.quick else []), *more, "--out", str(out), *left,
                ]  # fmt: skip
                with errors.open("w") as stream:
                    done = subprocess.run(
                        command,
                        stderr=stream,
                        cwd=HERE.parent,
                        env=with_threads(self.environment, threads),
                    )
                lines = out.read_text().splitlines() if out.is_file() else []
                problem = errors.read_text()
            found += [json.loads(line) for line in lines]
            left = left[len(lines) :]
            if left:
                problem = problem or f"the process ended with status {done.returncode}"
                self.fail(f"{left.pop(0)}, {threads} thread(s)", problem)
        return found

    def cases(self) -> list[dict[str, Any]]:
        names = [spec.name for spec in specs(self.options.quick) if self.wanted(spec.name)]
        found = []
        for threads in self.options.threads:
            if names and threads > machine.processors():
                self.skip(f"{threads} threads", f"{machine.processors()} processors are usable")
            elif names:
                found += self.worker(names, threads)
        return found

    def interpreter(self) -> list[dict[str, Any]]:
        known = [spec.name for spec in interpreter.specs(self.options.quick)]
        names = [name for name in known if self.wanted(f"interpreter {name}")]
        if not names:
            return []
        try:
            python = triton_env.prepare(make=not self.options.quick)
        except (triton_env.Unavailable, OSError) as reason:
            self.skip("interpreter", str(reason))
            return []
        return self.worker(names, 1, "--triton", str(python))

    def compile(self) -> list[dict[str, Any]]:
        if not self.wanted("compile"):
            return []
        print("compile times, in fresh processes", flush=True)
        try:
            return compile_times.run(self.environment, self.options.quick)
        except subprocess.CalledProcessError as problem:
            self.fail("compile", problem.stderr)
            return []

    def launch(self) -> list[dict[str, Any]]:
        """What ``benchmarks.launch --json FILE`` writes: lines as ``compile_times.row``'s."""
        if not self.wanted("launch"):
            return []
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder, "launch.json")
            command = [sys.executable, "-m", "benchmarks.launch", "--json", str(out)]
            command += ["--quick"] if self.options.quick else []
            done = subprocess.run(
                command, stderr=subprocess.PIPE, text=True, cwd=HERE.parent, env=self.environment
            )
            if done.returncode:
                self.fail("launch", done.stderr)
                return []
            lines: list[dict[str, Any]] = json.loads(out.read_text())
            return lines

    def missing(self) -> None:
        """Says which peers that were asked for are not installed."""
        for name in ("torch", "numba"):
            if name in self.options.peers and not importlib.util.find_spec(name):
                self.skip(name, f"it is not installed (python -m pip install {name})")


def write(results: dict[str, Any], folder: Path) -> None:
    """``results.json``, ``plots/ratios.png`` and ``RESULTS.md`` into ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    if not results["cases"]:
        results["plot"] = ""
    elif importlib.util.find_spec("matplotlib"):
        from . import plot

        plot.draw(results, folder / "plots" / "ratios.png")
        results["plot"] = "plots/ratios.png"
    else:
        results["plot"] = ""
        print("no plot: matplotlib is not installed", flush=True)
    (folder / "results.json").write_text(json.dumps(results) + "\n")
    (folder / "RESULTS.md").write_text(report.page(results))
    print(f"written: {folder / 'RESULTS.md'}", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    given = sys.argv[1:] if arguments is None else list(arguments)
    options = parse(given)
    with tempfile.TemporaryDirectory() as cache:
        run = Run(options, clean_environment(cache))
        described = machine.describe()
        run.missing()
        results: dict[str, Any] = {
            "command": machine.command("benchmarks", given),
            "machine": described,
            "pairs": options.pairs,
            "triton": triton_env.VERSION,
            "launch": run.launch(),
            "cases": run.cases(),
            "interpreter": run.interpreter(),
            "compile": run.compile(),
            "skipped": run.skipped,
            "errors": run.errors,
        }
    described["load after"] = machine.load()
    print(report.summary_line(results), flush=True)
    if options.out is not None:
        write(results, options.out)
    for error in run.errors:
        print(f"failed: {error['name']}: {error['reason']}", flush=True)
    return 1 if run.errors else 0


if __name__ == "__main__":
    sys.exit(main())
