"""The check of a machine with a GPU: its stages with programs that stand for the real ones."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def script() -> Any:
    spec = importlib.util.spec_from_file_location("gpu_check", ROOT / "scripts" / "gpu_check.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["gpu_check"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def check(script: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("OUT", str(tmp_path))
    return script.Check(script.parse(["machine", "--seconds", "100"]))


def python(text: str) -> list[str]:
    return [sys.executable, "-c", text]


def test_a_command_s_output_is_returned_and_logged(check: Any) -> None:
    assert check.run("tests", python("print('one')"), 20.0) == (0, "one\n")
    assert check.run("tests", python("print('two'); exit(3)"), 20.0) == (3, "two\n")
    log = (check.logs / "tests.log").read_text()
    assert log.count("$ ") == 2
    assert log.endswith("two\n")


def test_a_command_that_runs_too_long_is_ended_with_its_children(check: Any) -> None:
    child = "import time; print('child', flush=True); time.sleep(60)"
    text = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    begin = time.monotonic()
    status, text = check.run("tests", python(text), 2.0)
    assert status is None
    assert text in ("child\n", "")
    assert time.monotonic() - begin < 20.0


def test_the_tree_is_used_as_it_lies(check: Any) -> None:
    status, text = check.run("machine", python("import tritium; print(tritium.__file__)"), 30.0)
    assert (status, Path(text.strip()).parents[2]) == (0, ROOT)


def test_missing_packages_are_named(check: Any, script: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(script, "NEEDED", ("numpy", "no_such_package"))
    found = script.machine(check)
    assert found.status == "FAILED"
    assert found.told.startswith("missing: no_such_package")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("....\nnvptx cases on the GPU: 6619\n668 passed in 95.31s\n",
         "668 passed in 95.31s; nvptx cases on the GPU: 6619"),
        ("== 1 failed, 3 passed in 2s ==\n", "1 failed, 3 passed in 2s"),
        ("ImportError\n", "no summary"),
    ],
)  # fmt: skip
def test_what_pytest_says_in_a_line(script: Any, text: str, told: str) -> None:
    assert script.summary_of(text) == told


def test_tests_that_are_all_skipped_fail(script: Any, check: Any, tmp_path: Path) -> None:
    file = tmp_path / "test_skipped.py"
    file.write_text("import pytest\n@pytest.mark.gpu\ndef test(): pytest.skip('no GPU')\n")
    found = script.stage_of_tests("tests", lambda: [str(file)])(check)
    assert found.status == "FAILED"
    assert found.told.startswith("1 skipped")
    file.write_text("import pytest\n@pytest.mark.gpu\ndef test(): pass\n")
    found = script.stage_of_tests("tests", lambda: [str(file)])(check)
    assert (found.status, found.told[:8]) == ("passed", "1 passed")


def test_files_with_marked_tests_are_found(script: Any) -> None:
    found = script.marked_files()
    assert script.CASES not in found
    assert (ROOT / script.CASES).is_file()
    assert all((ROOT / path).is_file() for path in found)


def test_the_table_has_a_line_for_each_stage(script: Any) -> None:
    outcomes = [script.Outcome("tests", "passed", 12.34, "3 passed")]
    outcomes.append(script.Outcome("bench", "NOT RUN", 0.0, "no time was left"))
    assert script.table(outcomes).splitlines()[1:] == [
        "tests      passed        12.3  3 passed",
        "bench      NOT RUN        0.0  no time was left",
    ]


def test_stages_without_time_are_not_run(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "scripts" / "gpu_check.py"), "bench", "--seconds", "1"]
    done = subprocess.run(command, capture_output=True, text=True, env={"OUT": str(tmp_path)})
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == "bench      NOT RUN        0.0  no time was left"


def test_unknown_stages_are_refused(script: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        script.parse(["benchmark"])
    assert "no such stage: benchmark" in capsys.readouterr().err
