"""Checks Tritium on a machine with an NVIDIA GPU: correctness, speed, memory errors, in one call.

    python scripts/gpu_check.py [--seconds 560] [STAGE ...]

Stages, all of them where none is named:

    machine    what is installed; wheels in the folder .whl beside this tree are installed if needed
    tests      tests marked gpu, but for the generated cases
    cases      every generated case as a kernel, compiled by as many processes as there are cores
    bench      python -m benchmarks.gpu
    sanitizer  compute-sanitizer, memcheck and racecheck, on a sample of 20 kernels

The tree is used as it lies, by PYTHONPATH. Each stage writes a log into $OUT where that is set,
else into a temporary folder; a short table is printed last. The exit status is 1 if a stage failed.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CASES = "tests/backends/nvptx/gpu/test_cases.py"
NEEDED = ("numpy", "llvmlite", "ml_dtypes", "click", "rich", "pytest", "hypothesis")
USEFUL = ("torch", "triton", "xdist", "pytest_timeout", "mpmath")
SHOWN = 25
"""Lines of a failed stage's log that are printed."""
LEAST = 15.0
"""Seconds that a stage isn't begun with less than."""

LIMITS = {"machine": 60.0, "tests": 200.0, "cases": 300.0, "bench": 300.0, "sanitizer": 150.0}
"""The most seconds of each stage, within the whole run's."""


@dataclass(frozen=True)
class Outcome:
    """How a stage ended: the status, the seconds, and what it says of itself in a line."""

    stage: str
    status: str
    seconds: float
    told: str


class Check:
    """One run: its environment, its logs, its end."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.end = time.monotonic() + options.seconds
        self.logs = Path(os.environ.get("OUT") or tempfile.mkdtemp(prefix="gpu-check-"))
        self.logs.mkdir(parents=True, exist_ok=True)
        self.environment = environment()

    def left(self, stage: str) -> float:
        return min(LIMITS[stage], self.end - time.monotonic())

    def run(self, stage: str, command: Sequence[str], seconds: float) -> tuple[int | None, str]:
        """The status, None if it ran out of time, and the output, which is appended to the log."""
        print(f"== {stage}: {shlex.join(command)}", flush=True)
        log = self.logs / f"{stage}.log"
        with log.open("a+", encoding="utf-8") as stream:
            stream.write(f"$ {shlex.join(command)}\n")
            start = stream.tell()
            status = run_until(command, stream, self.environment, seconds)
            stream.seek(start)
            return status, stream.read()


def run_until(
    command: Sequence[str], stream: object, variables: Mapping[str, str], seconds: float
) -> int | None:
    """Runs a command with all its children for so long at most; None where it had to be ended."""
    process = subprocess.Popen(
        command,
        stdout=stream,  # type: ignore[call-overload]
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        cwd=ROOT,
        env=dict(variables),
        start_new_session=True,
    )
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None
    finally:
        # Its own session: nothing that it started outlives it.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def environment() -> dict[str, str]:
    """The caller's, with the tree in front, and CUDA's tools on the path."""
    found = {**os.environ, "PYTHONUNBUFFERED": "1"}
    places = [str(ROOT / "src"), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    found["PYTHONPATH"] = os.pathsep.join(places)
    cuda = os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "bin")
    found["PATH"] = os.pathsep.join([os.environ.get("PATH", os.defpath), cuda])
    return found


def is_there(name: str, variables: Mapping[str, str]) -> bool:
    """Whether a package can be imported by a process with these variables."""
    if importlib.util.find_spec(name):
        return True
    places = variables["PYTHONPATH"].split(os.pathsep)
    return any((Path(place) / name).exists() for place in places)


# ---- stages --------------------------------------------------------------------------------------


def machine(check: Check) -> Outcome:
    """What is there. What is missing is installed from wheels into a folder of this run."""
    begin = time.monotonic()
    wheels = sorted(check.options.wheels.glob("*.whl"))
    if wheels and not all(is_there(name, check.environment) for name in NEEDED):
        folder = tempfile.mkdtemp(prefix="gpu-check-site-")
        install = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps"]
        install += ["--no-compile", "--target", folder, *map(str, wheels)]
        check.run("machine", install, check.left("machine"))
        check.environment["PYTHONPATH"] += os.pathsep + folder
    missing = [name for name in NEEDED if not is_there(name, check.environment)]
    absent = [name for name in USEFUL if not is_there(name, check.environment)]
    doctor = [sys.executable, "-m", "tritium", "doctor"]
    _, text = check.run("machine", doctor, check.left("machine"))
    print(text, flush=True)
    told = f"missing: {', '.join(missing)}" if missing else "all that is needed is installed"
    told += f"; without {', '.join(absent)}" if absent else ""
    status = "FAILED" if missing else "passed"
    return Outcome("machine", status, time.monotonic() - begin, told)


def marked_files() -> list[str]:
    """The files of tests that need a GPU, but for the generated cases."""
    mark = re.compile(r"\bmark\.gpu\b|\blaunching import EXECUTORS\b")
    found = [
        str(path.relative_to(ROOT))
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        if mark.search(path.read_text(encoding="utf-8"))
    ]
    return [path for path in found if path != CASES]


def pytest_command(check: Check, files: Sequence[str]) -> list[str]:
    """Runs what is marked in these files."""
    command = [sys.executable, "-m", "pytest", "-m", "gpu", "-q", "-p", "no:cacheprovider"]
    return [*command, "--tb=short", *shlex.split(check.options.pytest), *files]


def summary_of(text: str) -> str:
    """pytest's last line, and the lines that count cases and programs."""
    lines = [line.strip("= ") for line in text.splitlines()]
    counted = [line for line in lines if line.startswith("nvptx ")]
    ended = [line for line in lines if re.search(r"\b\d+ (passed|failed|error|skipped)", line)]
    return "; ".join([*ended[-1:], *counted]) or "no summary"


def stage_of_tests(name: str, files: Callable[[], Sequence[str]]) -> Callable[[Check], Outcome]:
    """A stage that runs pytest; it fails too where no test ran."""

    def run(check: Check) -> Outcome:
        begin = time.monotonic()
        if not files():
            return Outcome(name, "FAILED", 0.0, "there are no such tests")
        status, text = check.run(name, pytest_command(check, files()), check.left(name))
        told = summary_of(text)
        if status == 0 and "passed" not in told:
            status = 1
        return outcome(name, status, begin, told, text)

    return run


def outcome(stage: str, status: int | None, begin: float, told: str, text: str) -> Outcome:
    """How a stage ended; the end of its log is printed where it failed."""
    if status != 0:
        print("\n".join(text.splitlines()[-SHOWN:]), flush=True)
    word = {0: "passed", None: "OUT OF TIME"}.get(status, "FAILED")
    return Outcome(stage, word, time.monotonic() - begin, told)


def bench(check: Check) -> Outcome:
    """The benchmark; its page and its JSON lie beside the logs."""
    begin = time.monotonic()
    seconds = check.left("bench")
    command = [sys.executable, "-m", "benchmarks.gpu", "--limit", f"{seconds - 5:.0f}"]
    command += ["--out", str(check.logs), *(["--quick"] if check.options.quick else [])]
    for name in check.options.only:
        command += ["--only", name]
    status, text = check.run("bench", command, seconds)
    passed = [line for line in text.splitlines() if "cases pass" in line or "mean" in line]
    if status == 0:
        print(text[text.rfind("case  ") :], flush=True)
    return outcome("bench", status, begin, " ".join(passed) or last_line(text), text)


def sanitizer(check: Check) -> Outcome:
    """Both tools on the same compiled sample."""
    begin = time.monotonic()
    tool = shutil.which("compute-sanitizer", path=check.environment["PATH"])
    if tool is None:
        return Outcome("sanitizer", "FAILED", 0.0, "compute-sanitizer is not installed")
    sample = [sys.executable, "-m", "tests.backends.nvptx.gpu.sample"]
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "sample")
        worst, text = check.run("sanitizer", [*sample, "compile", file], check.left("sanitizer"))
        told = [last_line(text)]
        for name in ("memcheck", "racecheck"):
            command = [tool, "--tool", name, "--error-exitcode", "9", *sample, "run", file]
            status, text = check.run("sanitizer", command, check.left("sanitizer"))
            said = re.findall(r"(?:ERROR|RACECHECK) SUMMARY: (.*)", text)
            told.append(f"{name}: {said[-1] if said else last_line(text)}")
            worst = worst or status if status is not None else None
    return outcome("sanitizer", worst, begin, "; ".join(told), text)


def last_line(text: str) -> str:
    """Of what a program printed."""
    return (text.strip() or "no output").splitlines()[-1]


STAGES: dict[str, Callable[[Check], Outcome]] = {
    "machine": machine,
    "tests": stage_of_tests("tests", marked_files),
    "cases": stage_of_tests("cases", lambda: [CASES]),
    "bench": bench,
    "sanitizer": sanitizer,
}


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The options; every stage where none is named."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("stages", nargs="*", metavar="STAGE", help=", ".join(STAGES))
    parser.add_argument("--seconds", type=float, default=560.0, help="for all of it")
    parser.add_argument("--quick", action="store_true", help="the benchmark at small sizes")
    parser.add_argument("--only", action="append", default=[], help="of the benchmark's cases")
    parser.add_argument("--pytest", default="", help="more arguments of pytest: '-k dot -x'")
    parser.add_argument("--wheels", type=Path, default=ROOT / ".whl", help="folder of wheels")
    options = parser.parse_args(arguments)
    if unknown := set(options.stages) - set(STAGES):
        parser.error(f"no such stage: {', '.join(sorted(unknown))}")
    options.stages = options.stages or list(STAGES)
    return options


def table(outcomes: Sequence[Outcome]) -> str:
    """A line for each stage."""
    lines = [f"{'stage':10} {'':11} {'s':>6}"]
    lines += [f"{o.stage:10} {o.status:11} {o.seconds:6.1f}  {o.told}" for o in outcomes]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the stages and prints the table; the exit status is 1 if one failed."""
    check = Check(parse(arguments))
    outcomes = []
    for stage in check.options.stages:
        if check.left(stage) < LEAST:
            outcomes.append(Outcome(stage, "NOT RUN", 0.0, "no time was left"))
        else:
            outcomes.append(STAGES[stage](check))
    print(f"\nlogs: {check.logs}\n{table(outcomes)}", flush=True)
    return 0 if all(each.status == "passed" for each in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
