"""The benchmark's results are right and its report says what was measured; no time is judged."""

from __future__ import annotations

import inspect
import json
import math
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from benchmarks import __main__ as program
from benchmarks import (
    case,
    compile_times,
    kernels,
    machine,
    measure,
    report,
    specs,
    triton_env,
    worker,
)

ROOT = Path(__file__).parents[1]
SOME = (
    "add 5,003", "chain 5,000", "softmax 7x100", "layernorm 8x128", "rmsnorm 7x100",
    "cross_entropy 8x128", "dot",
)  # fmt: skip
ALONE = case.Setup(1, frozenset({"numpy"}), None)


def ratio(median: float) -> dict[str, float]:
    return {"median": median, "low": median, "high": median, "minima": median}


# ---- whole runs ----------------------------------------------------------------------------------


def test_quick_run_is_right_and_written(tmp_path: Path) -> None:
    only = [word for name in SOME for word in ("--only", name)]
    command = [sys.executable, "-m", "benchmarks", "--quick", "--threads", "1", "--pairs", "2"]
    command += ["--peers", "torch,numpy", *only, "--out", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr

    results = json.loads((tmp_path / "results.json").read_text())
    wanted = [s.name for s in specs.specs(True) if s.name.startswith(SOME)]
    assert [found["name"] for found in results["cases"]] == wanted
    assert len(wanted) == 2 * len(SOME)
    assert results["errors"] == []
    for found in results["cases"]:
        sides = found["sides"]
        assert {len(side["times"]) for side in sides.values()} == {2}
        assert set(found["ratios"]) == set(sides) - {specs.OURS}
        assert ("NumPy" in sides) == (found["dtype"] == "float32")
    page = (tmp_path / "RESULTS.md").read_text()
    assert all(f"| {name} | " in page for name in wanted)
    assert f"numpy {np.__version__}" in page
    assert (tmp_path / "plots" / "ratios.png").is_file() == ("](plots/ratios.png)" in page)


def test_failing_case_is_reported_and_the_others_run(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    options = program.parse(["--quick", "--peers", "numpy", "--pairs", "1"])
    run = program.Run(options, program.clean_environment(str(tmp_path)))
    found = run.worker(["add 5,000", "no such case", "add 5,003"], 1)
    assert [result["name"] for result in found] == ["add 5,000", "add 5,003"]
    assert run.errors == [
        {"name": "no such case, 1 thread(s)", "reason": "KeyError: 'no such case'"}
    ]
    assert "Traceback" in capfd.readouterr().err


def test_first_result_of_a_fresh_process(tmp_path: Path) -> None:
    environment = program.clean_environment(str(tmp_path))
    times = compile_times.first_result(environment, "cross_entropy", 100)
    assert set(times) == {"import", "first"}
    assert min(times.values()) > 0


def test_arguments_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert program.parse([]).out == program.HERE
    assert program.parse([]).pairs == 40
    assert program.parse(["--only", "add"]).out is None
    assert program.parse(["--quick"]).peers == ["torch", "numpy", "numba"]
    with pytest.raises(SystemExit):
        program.parse(["--peers", "jax"])
    assert "no such peer: jax" in capsys.readouterr().err


def test_steering_variables_are_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENBLAS_CORETYPE", "OMP_WAIT_POLICY", "TRITON_INTERPRET", "TRITIUM_VERIFY"):
        monkeypatch.setenv(name, "1")
    environment = program.with_threads(program.clean_environment("place"), 2)
    set_here = {"TRITIUM_CACHE_DIR", "TRITIUM_NUM_THREADS", "OPENBLAS_NUM_THREADS"}
    steering = {name for name in environment if name.startswith(program.FOREIGN)}
    assert steering == set_here | {"NUMBA_NUM_THREADS"}
    assert environment["TRITIUM_NUM_THREADS"] == "2"


# ---- cases ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", [s for s in specs.specs(True) if s.odd], ids=lambda s: s.name)
def test_numpy_arguments(spec: specs.Spec) -> None:
    worker.BUILDERS[spec.kernel](spec, ALONE).check()


def test_wrong_kernel_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = kernels.SOURCES["add"].replace("x + y", "x + y * (offs < n - 1)")
    monkeypatch.setitem(kernels.SOURCES, "add", wrong)
    built = worker.BUILDERS["add"](specs.Spec("add", (100,)), ALONE)
    with pytest.raises(case.WrongResult, match=r"tritium: 1 of 100 .* first at \(99,\)"):
        built.check()


def test_result_that_is_not_written_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    lazy = kernels.SOURCES["add"].replace("offs < n", "offs < n - 2")
    monkeypatch.setitem(kernels.SOURCES, "add", lazy)
    built = worker.BUILDERS["add"](specs.Spec("add", (100,)), ALONE)
    with pytest.raises(case.WrongResult, match=r"2 of 100 .* \(98,\): nan for"):
        built.check()


def test_numba_loops_as_python() -> None:
    peers = pytest.importorskip("benchmarks.numba_peers", reason="needs numba")
    random = np.random.default_rng(0)
    x = random.standard_normal((3, 7), np.float32)
    weight, bias = random.standard_normal((2, 7), np.float32)
    wide, out = x.astype(np.float64), np.empty_like(x)
    e = np.exp(wide)

    peers.LOOPS["softmax"](x, out)
    np.testing.assert_allclose(out, e / e.sum(1, keepdims=True), rtol=1e-5)
    peers.LOOPS["layernorm"](x, weight, bias, out)
    scale = np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    centred = wide - wide.mean(1, keepdims=True)
    np.testing.assert_allclose(out, centred / scale * weight + bias, rtol=1e-4, atol=1e-5)
    peers.LOOPS["rmsnorm"](x, weight, out)
    scale = np.sqrt((wide**2).mean(1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(out, wide / scale * weight, rtol=1e-5)
    target, loss = np.array([6, 0, 3]), np.empty(3, np.float32)
    peers.LOOPS["cross_entropy"](x, target, loss)
    np.testing.assert_allclose(loss, np.log(e.sum(1)) - wide[np.arange(3), target], rtol=1e-5)


@pytest.mark.parametrize("name", kernels.SOURCES)
def test_source_is_executed_for_any_package(name: str) -> None:
    """The same text twice: each function has the package that it was built for, and its source."""
    first, second = (SimpleNamespace(jit=lambda f: f, constexpr=object()) for _ in range(2))
    one, two = kernels.build(name, first, first), kernels.build(name, second, second)
    assert one.__globals__["tl"] is first
    assert two.__globals__["triton"] is second
    assert inspect.getsource(one) == inspect.getsource(two) == kernels.SOURCES[name].lstrip("\n")


@pytest.mark.parametrize("n", [1, 2, 3, 1000, 1024, 1025])
def test_next_power_of_2(n: int) -> None:
    assert kernels.next_power_of_2(n) == 2 ** math.ceil(math.log2(n))


# ---- floors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "threads", "text"),
    [
        (specs.Spec("add", (10**7,)), 2, "1x best of torch, NumPy, numba"),
        (specs.Spec("add", (10**7 + 3,), odd=True), 1, "0.9x best of torch, NumPy, numba"),
        (specs.Spec("chain", (10**7,)), 1, "2x torch"),
        (specs.Spec("softmax", (1024, 8192)), 1, "1.2x torch"),
        (specs.Spec("softmax", (4095, 1000), odd=True), 1, "1.08x torch"),
        (specs.Spec("layernorm", (4096, 1024)), 2, "1x torch"),
        (specs.Spec("dot", (512, 512)), 2, "0.4x best of torch, NumPy"),
    ],
)
def test_floors(spec: specs.Spec, threads: int, text: str) -> None:
    floor = specs.floor(spec, threads)
    assert floor is not None
    assert floor.text == text


def test_what_has_no_floor() -> None:
    assert specs.floor(specs.Spec("add", (10**7,), "bfloat16"), 1) is None
    assert specs.floor(specs.Spec("dot", (1024, 1024)), 1) is None


def test_floor_counts_its_fastest_peer() -> None:
    floor = specs.Floor(1.0, ("torch", "NumPy"))
    times = {"torch": ratio(1.3), "torch rms_norm": ratio(1.1), "torch.compile": ratio(0.2)}
    assert floor.ratio({**times, "NumPy": ratio(1.2), "numba": ratio(0.5)}) == (
        "torch rms_norm",
        1.1,
    )
    assert floor.ratio({"numba": ratio(0.5)}) is None


def test_level_passes_for_one_only() -> None:
    assert specs.Floor(1.0, ("torch",)).met(0.97)
    assert not specs.Floor(1.0, ("torch",)).met(0.969)
    assert not specs.Floor(1.2, ("torch",)).met(1.199)


# ---- measuring -----------------------------------------------------------------------------------


def test_every_side_runs_in_every_round() -> None:
    calls: list[str] = []
    sides = [
        measure.Side("a", lambda: calls.append("a")),
        measure.Side("b", lambda: calls.append("b"), warm=False),
    ]
    times = measure.time_rounds(sides, 5)
    assert {name: len(found) for name, found in times.items()} == {"a": 5, "b": 5}
    assert (calls.count("a"), calls.count("b")) == (10, 5)
    rounds = ["".join(calls[i : i + 3]) for i in range(0, 15, 3)]
    assert set(rounds) == {"aab", "baa"}


def test_ratio_of_a_constant_factor() -> None:
    ours = np.random.default_rng(1).random(40) + 1.0
    found = measure.compare(2.5 * ours, ours)
    assert found.median == pytest.approx(2.5)
    assert found.minima == pytest.approx(2.5)
    assert found.low <= found.median <= found.high


def test_interval_is_that_of_the_median() -> None:
    """Of a normal sample, the median's standard deviation is 1.2533 sigma / sqrt(n)."""
    theirs = np.random.default_rng(2).normal(10.0, 1.0, 400)
    found = measure.compare(theirs, np.ones(400))
    width = 2 * 1.96 * 1.2533 / math.sqrt(400)
    assert found.high - found.low == pytest.approx(width, rel=0.35)
    assert found.low < 10.0 < found.high


def test_ratio_needs_pairs() -> None:
    with pytest.raises(ValueError, match="pairs are needed"):
        measure.compare([1.0, 2.0], [1.0])


# ---- the report ----------------------------------------------------------------------------------


def results() -> dict[str, Any]:
    """A run of one case that meets its floor and one that misses it, and a limit of each kind."""

    def of(name: str, median: float, met: bool) -> dict[str, Any]:
        side = {"median": 2e-3, "minimum": 1e-3, "times": []}
        return {
            "name": name,
            "threads": 1,
            "arguments": "NumPy arrays",
            "work": 4e6,
            "unit": "B",
            "sides": {"tritium": side, "NumPy": side},
            "ratios": {"NumPy": ratio(median)},
            "floor": {"text": "1x NumPy", "met": met},
        }

    return {
        "command": "python -m benchmarks",
        "machine": {
            "date": "today", "processor": "a processor", "processors": 2, "caches": "L1",
            "system": "a system", "versions": {"Python": "3"}, "NumPy's BLAS": "a BLAS",
            "revision": "1", "load before": 0.0, "load after": 0.0,
        },
        "pairs": 40,
        "triton": "3.9.0",
        "plot": "",
        "cases": [of("fast", 2.0, True), of("slow", 0.5, False)],
        "interpreter": [of("add", 1234.5, True)],
        "compile": [
            compile_times.row("import", [0.1, 0.3, 0.2], 0.2),
            compile_times.row("warm", [0.2, 0.4, 0.3], 0.2),
            compile_times.row("other", [0.0000005], None),
        ],
        "launch": [],
        "skipped": [{"name": "launch", "reason": "it is not there"}],
        "errors": [],
    }  # fmt: skip


def test_page() -> None:
    page = report.page(results())
    assert "3 of 5 floors and limits are met. Missed: slow, 1 thread(s); warm." in page
    assert "| fast | 2 | 2.0 GB/s | 2.00 [2.00, 2.00] | met: 1x NumPy |" in page
    assert "| slow | 2 | 2.0 GB/s | 0.50 [0.50, 0.50] | **missed**: 1x NumPy |" in page
    assert "| fast | 2 / 1 | 2 / 1 (2.00x) |" in page
    assert "1,234 [1,234, 1,234]" in page
    assert "| import | 200 ms | 100 ms | met: 200 ms |" in page
    assert "| other | 0.5 us | 0.5 us | - |" in page
    assert "* launch: it is not there" in page
    assert "## Launches" not in page


def test_tables_are_even() -> None:
    """Every line of a table has as many cells as its head."""
    blocks = report.page(results()).split("\n\n")
    tables = [block.strip().splitlines() for block in blocks if block.startswith("|")]
    assert len(tables) == 5
    for lines in tables:
        assert len({line.count("|") for line in lines}) == 1


def test_triton_environment_is_not_made_unasked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(triton_env, "PLACE", tmp_path / "nowhere")
    with pytest.raises(triton_env.Unavailable, match="without --quick"):
        triton_env.prepare(make=False)
    assert list(tmp_path.iterdir()) == []


def test_the_command_is_told_without_folders() -> None:
    given = ["--quick", "--out", "/a/folder", "--out=/another", "--only", "add 5,003"]
    assert machine.command("benchmarks", given) == "python -m benchmarks --quick --only 'add 5,003'"
