"""The GPU's benchmark: cases on the CPU, its timing with a clock of its own, its arithmetic."""

from __future__ import annotations

import argparse
import ctypes
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the benchmark's tensors are torch's")

from benchmarks import (  # noqa: E402
    gpu,
    gpu_compile,
    gpu_first,
    gpu_kernels,
    gpu_launch,
    gpu_report,
    gpu_timing,
)
from benchmarks.gpu_cases import Data, Spec, specs  # noqa: E402
from benchmarks.gpu_worker import Package, run_case  # noqa: E402
from benchmarks.measure import Side  # noqa: E402

import tritium  # noqa: E402
import tritium.language as tl  # noqa: E402

OURS = Package("tritium", tritium, tl)


class HostClock:
    """Times calls by the host's clock, and counts how often the device got a lead."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.starts = 0

    def start(self) -> None:
        self.starts += 1

    def time(self, call: Callable[[], object]) -> None:
        begin = time.perf_counter()
        call()
        self.times.append(time.perf_counter() - begin)

    def seconds(self) -> list[float]:
        found, self.times = self.times, []
        return found


def measured(spec: Spec, *packages: Package, rounds: int = 2) -> dict[str, Any]:
    return run_case(spec, Data(torch, "cpu"), HostClock(), packages, rounds)


# ---- cases ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", specs(True), ids=lambda spec: spec.name)
def test_every_configuration_is_right(spec: Spec) -> None:
    found = measured(spec, OURS)
    assert found["errors"] == {}
    assert set(found["sides"]) == {"tritium", "torch"}
    assert len(found["sides"]["torch"]["times"]) == 2


def test_sizes_are_those_of_the_report() -> None:
    names = [spec.name for spec in specs(False)]
    assert len(set(names)) == len(names)
    assert names[0] == "copy 2^28 float32"
    assert {"add 100,000,003 float32", "softmax 4096x12345 float32"} <= set(names)
    assert {spec.kernel for spec in specs(True)} == {spec.kernel for spec in specs(False)}


def test_a_wrong_kernel_is_told_and_the_others_are_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    lazy = gpu_kernels.SOURCES["add"].replace("offs < n", "offs < n - 2")
    monkeypatch.setitem(gpu_kernels.SOURCES, "add", lazy)
    found = measured(Spec("add", (100,)), OURS)
    assert set(found["sides"]) == {"torch"}
    assert found["ratios"] == {}
    wrong = r"1024, 4 warps: WrongResult: 2 of 100 results are wrong, the first at (98,): nan for"
    assert found["errors"]["tritium"].startswith(wrong)


def test_a_package_that_raises_is_told() -> None:
    def refuse(function: Any) -> Any:
        raise ValueError("not today\nnor tomorrow")

    other = Package("triton", SimpleNamespace(jit=refuse), tl)
    found = measured(Spec("copy", (100,)), OURS, other)
    assert found["errors"] == {"triton": "1024, 4 warps: ValueError: not today"}
    assert set(found["sides"]) == {"tritium", "torch"}


# ---- timing --------------------------------------------------------------------------------------


def test_every_side_runs_once_a_round_and_once_before() -> None:
    calls: list[str] = []
    clock = HostClock()
    sides = [Side("a", lambda: calls.append("a")), Side("b", lambda: calls.append("b"))]
    rounds = gpu_timing.BATCH + 3
    times = gpu_timing.time_rounds(clock, sides, rounds)
    assert {name: len(found) for name, found in times.items()} == {"a": rounds, "b": rounds}
    assert clock.starts == 2
    assert calls[:2] == ["a", "b"]
    pairs = {"".join(calls[i : i + 2]) for i in range(2, len(calls), 2)}
    assert pairs == {"ab", "ba"}


def test_the_fastest_side_is_found() -> None:
    sides = [Side("slow", lambda: time.sleep(0.002)), Side("fast", lambda: None)]
    assert gpu_timing.fastest(HostClock(), sides, 3) == "fast"


# ---- launches ------------------------------------------------------------------------------------


def test_the_floor_s_loop_calls_as_often_as_asked_and_keeps_a_failure() -> None:
    seen: list[tuple[int, ...]] = []

    def launch(*given: int) -> int:
        seen.append(given)
        return 4 if len(seen) == 2 else 0

    kind = ctypes.CFUNCTYPE(
        ctypes.c_int, ctypes.c_void_p, *[ctypes.c_uint] * 7, *[ctypes.c_void_p] * 3
    )
    callback = kind(launch)
    loop, _engine = gpu_launch.compiled_loop()
    assert loop(3, ctypes.cast(callback, ctypes.c_void_p), 11, 12, 13) == 4
    assert seen == [(11, 1, 1, 1, 128, 1, 1, 0, 12, 13, None)] * 3


@pytest.mark.parametrize("arguments", [4, 19])
def test_the_floor_s_kernel_assembles(arguments: int, tmp_path: Path) -> None:
    ptxas = shutil.which("ptxas")
    if ptxas is None:
        pytest.skip("ptxas is not installed")
    text = gpu_launch.empty_kernel(gpu_launch.PARAMETERS[arguments])
    (tmp_path / "empty.ptx").write_text(text)
    command = [ptxas, "-arch=sm_90", str(tmp_path / "empty.ptx"), "-o", str(tmp_path / "empty")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_launches_of_both_kernels_are_right_before_they_are_timed() -> None:
    trains, errors = gpu_launch.sides(torch, [OURS], "cpu")
    assert errors == []
    names = ["torch.add", "tritium, 4 arguments", "tritium, 19 arguments"]
    assert [train.name for train in trains] == names
    waits: list[int] = []
    times = gpu_launch.rounds_of(trains, lambda: waits.append(1), 3, 2)
    assert {name: len(found) for name, found in times.items()} == dict.fromkeys(names, 3)
    assert len(waits) == 4 * len(trains) + 1


def test_limits_of_launches_are_above_the_floor_of_the_same_run() -> None:
    times = {
        "floor: cuLaunchKernel, 4 arguments": [5e-6] * 3,
        "floor: cuLaunchKernel, 19 arguments": [6e-6] * 3,
        "tritium, 4 arguments": [6.4e-6] * 3,
        "tritium, 19 arguments": [8.6e-6] * 3,
        "triton, 4 arguments": [17e-6] * 3,
    }
    lines = {line["name"]: line for line in gpu_launch.judged(times)}
    assert lines["tritium, 4 arguments"]["most"] == pytest.approx(6.5e-6)
    assert lines["tritium, 4 arguments"]["met"]
    assert not lines["tritium, 19 arguments"]["met"]
    assert "met" not in lines["triton, 4 arguments"]


def test_a_first_result_is_right_and_timed() -> None:
    for spec in (gpu_first.FIRST, *gpu_first.FURTHER):
        seconds = gpu_first.first_result(spec, Data(torch, "cpu"), tritium, tl, lambda: None)
        assert seconds > 0


def test_nothing_of_tritium_is_loaded_before_it_is_timed() -> None:
    text = "import sys, benchmarks.gpu_first; print([m for m in sys.modules if m in sys.argv])"
    command = [sys.executable, "-c", text, "tritium", "llvmlite", "torch"]
    done = subprocess.run(command, cwd=gpu.HERE.parent, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_limits_of_first_results_are_tritium_s_alone() -> None:
    times = {"import": 0.1, "first": 0.29, "add": 0.07, "softmax": 0.1, "layernorm": 0.1}
    found = [{**times, "cached": 0.009}]
    lines = gpu_compile.lines_of({"tritium": found, "triton": found})
    met = {line["name"]: line["met"] for line in lines if "met" in line}
    assert met == {
        "tritium, first kernel of a process": True,
        "tritium, add": False,
        "tritium, softmax": True,
        "tritium, layernorm": True,
        "tritium, first kernel, second process": True,
    }
    assert sum(line["name"].startswith("triton, ") for line in lines) == 6


# ---- the report ----------------------------------------------------------------------------------


def case(name: str, moved: int, **seconds: float) -> dict[str, Any]:
    """A result with one time a side."""
    ours = seconds.get("tritium")
    ratios = {
        peer: dict.fromkeys(("median", "low", "high", "minima"), theirs / ours)
        for peer, theirs in seconds.items()
        if ours and peer != "tritium"
    }
    sides = {side: {"median": found, "minimum": found} for side, found in seconds.items()}
    return {
        "name": name, "moved": moved, "sides": sides, "ratios": ratios, "configs": {}, "errors": {},
    }  # fmt: skip


COPY = case("copy 2^28 float32", 2 << 30, tritium=0.5e-3, triton=0.5e-3, torch=0.5e-3)


@pytest.mark.parametrize(
    ("found", "missed"),
    [
        (case("small", 10**7, tritium=1.0, triton=0.98, torch=1.0), []),
        (case("small", 10**7, tritium=1.0, triton=0.97, torch=1.0), ["below 0.98x Triton"]),
        (case("large", 10**9, tritium=1 / 3300, triton=1 / 3300, torch=1.0), []),
        (
            case("large", 10**9, tritium=1 / 3185, triton=1 / 3185, torch=1.0),
            ["at 74% of the copy"],
        ),
        (case("large", 10**9, tritium=1 / 2000, triton=1.21 / 2000, torch=1.0), []),
    ],
)
def test_what_a_case_must_meet(found: dict[str, Any], missed: list[str]) -> None:
    copied = gpu_report.copy_rate([COPY])
    assert copied == pytest.approx(4295, rel=1e-3)
    assert gpu_report.verdict(found, copied) == missed


def test_geometric_mean_of_the_ratios_to_triton() -> None:
    cases = [
        case("a", 1, tritium=1.0, triton=2.0, torch=9.0),
        case("b", 1, tritium=1.0, triton=0.5, torch=9.0),
        case("c", 1, tritium=1.0, triton=8.0, torch=9.0),
        case("failed", 1, triton=8.0, torch=9.0),
    ]
    assert gpu_report.geometric_mean(cases) == pytest.approx(2.0)
    assert gpu_report.geometric_mean(cases[3:]) is None
    further = {**case("further", 1, tritium=1.0, triton=9.0, torch=9.0), "further": True}
    assert gpu_report.geometric_mean([*cases, further]) == pytest.approx(2.0)


def report_of(cases: list[dict[str, Any]]) -> dict[str, Any]:
    names = ("date", "revision", "device", "driver", "ptxas", "processor", "system")
    return {
        "command": "python -m benchmarks.gpu",
        "machine": {**dict.fromkeys(names, "?"), "versions": {"torch": "2.0"}},
        "rounds": 50,
        "cases": cases,
        "launch": gpu_launch.judged({"torch.add": [1e-5]}),
        "first": gpu_compile.lines_of({"tritium": [dict.fromkeys(gpu_keys(), 0.001)]}),
        "errors": [{"name": "add, tritium", "reason": "no lowering"}],
    }


def gpu_keys() -> list[str]:
    return ["import", "first", "add", "softmax", "layernorm", "cached"]


def test_the_page_and_the_table_hold_every_case() -> None:
    failed = {**case("add", 3, triton=1.0, torch=1.0), "errors": {"tritium": "no lowering"}}
    results = report_of([COPY, failed])
    page = gpu_report.page(results)
    assert "| copy 2^28 float32 | 4,295 | 4,295 | 4,295 | 100% | 1.00 [1.00, 1.00] |" in page
    assert "| tritium failed |" in page
    assert "* add, tritium: no lowering" in page
    assert "1 of 2 cases pass." in page
    short = gpu_report.short_table(results).splitlines()
    assert short[1].startswith("copy 2^28 float32")
    assert "5 of 5 limits of time are met." in short
    assert short[-1] == "Missed: add: tritium failed."
    assert json.loads(json.dumps(results)) == results


def test_without_a_ratio_to_triton_no_case_passes_and_tritium_is_not_blamed() -> None:
    lost = {**case("add", 3, tritium=1.0, torch=1.0), "errors": {"triton": "out of memory"}}
    assert gpu_report.verdict(lost, None) == []
    assert gpu_report.summary_lines(report_of([COPY, lost]))[0] == "1 of 2 cases pass."


# ---- the program ---------------------------------------------------------------------------------


class Scripted(gpu.Run):
    """A run whose worker answers from a list."""

    def __init__(self, answers: list[tuple[list[dict[str, Any]], str]]) -> None:
        options = argparse.Namespace(
            quick=True, only=["add"], packages=["tritium", "triton"], limit=1000.0, rounds=1
        )
        super().__init__(options, {})
        self.answers = answers
        self.asked: list[tuple[list[str], list[str]]] = []

    def worker(self, names: Any, packages: Any) -> tuple[list[dict[str, Any]], str]:
        self.asked.append((list(names), list(packages)))
        return self.answers.pop(0)


def test_a_case_that_ends_its_process_is_measured_without_tritium() -> None:
    first, second = (spec.name for spec in specs(True) if spec.kernel == "add")
    whole = {**case(second, 1, tritium=1.0, triton=1.0), "name": second}
    peers = {**case(first, 1, triton=1.0), "name": first}
    run = Scripted([([], "Traceback\nLLVM ERROR: Cannot select"), ([peers], ""), ([whole], "")])
    found = run.cases()
    assert [each["name"] for each in found] == [first, second]
    assert set(found[0]["sides"]) == {"triton"}
    assert run.asked == [
        ([first, second], ["tritium", "triton"]),
        ([first], ["triton"]),
        ([second], ["tritium", "triton"]),
    ]
    assert run.errors == [{"name": f"{first}, case", "reason": "LLVM ERROR: Cannot select"}]
    assert gpu_report.verdict(found[0], None) == ["tritium failed"]


def test_time_that_is_over_is_told() -> None:
    run = Scripted([])
    run.end = time.monotonic()
    assert run.cases() == []
    assert {error["reason"] for error in run.errors} == {"no time was left"}


def test_without_a_gpu_nothing_is_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gpu, "device", lambda: "torch finds no CUDA device")
    assert gpu.main(["--quick"]) == gpu.NO_DEVICE
    assert capsys.readouterr().err == "nothing is measured: torch finds no CUDA device\n"


def test_arguments_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert gpu.parse([]).out == gpu.HERE
    assert gpu.parse(["--only", "add"]).out is None
    assert (gpu.parse(["--quick"]).rounds, gpu.parse([]).rounds) == (3, 50)
    with pytest.raises(SystemExit):
        gpu.parse(["--packages", "jax"])
    assert "no such package: jax" in capsys.readouterr().err
