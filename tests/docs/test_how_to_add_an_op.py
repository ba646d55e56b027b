"""Performs the steps of docs/how-to-add-an-op.md on a copy of the project."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to-add-an-op.md"
STEP = re.compile(
    r"Add\s+to\s+`(?P<file>[^`]+)`:\n\n```python no-run\n(?P<code>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)

USE = """
import numpy as np

import tritium.language as tl
from tests.backends.three_way import run_cpu, run_eager, run_ir
from tritium.ops.callable import DeviceFunction


@DeviceFunction
def kernel(out, x, N: tl.constexpr):
    line = tl.arange(0, N)
    tile = tl.load(x + line)
    tl.store(out + line, tl.popcount(tile) + tile.popcount() * 100)
    tl.store(out + N + line, tl.lerp(tile, 10, 2) + tile.lerp(0, 1))


x = np.array([0, 1, -1, 7, 2**31 - 1, -(2**31), 255], np.int32)
counts = [bin(int(value) & 0xFFFFFFFF).count("1") for value in x]
wanted = [101 * count for count in counts]
wanted += [(20 - int(v) + 2**31) % 2**32 - 2**31 for v in x]
arguments = {"out": np.zeros(14, np.int32), "x": x, "N": 7}
machine_code, _ = run_cpu(kernel, arguments, (1,))
for results in (run_eager(kernel, arguments, (1,)), run_ir(kernel, arguments, (1,)), machine_code):
    assert results["out"].tolist() == wanted
print("agrees")
"""


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project with the page's code in place."""
    copy = tmp_path_factory.mktemp("project")
    for folder in ("src", "tests", "scripts"):
        shutil.copytree(
            ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__", ".*")
        )
    shutil.copy(ROOT / "pyproject.toml", copy)
    (copy / "docs").mkdir()
    steps = STEP.findall(PAGE.read_text(encoding="utf-8"))
    assert [file for file, _ in steps] == [
        "src/tritium/language/standard.py",
        "src/tritium/ops/logic.py",
        "src/tritium/backends/common/logic.py",
        "tests/ops/oracles.py",
    ]
    for file, code in steps:
        path = copy / file
        path.write_text(f"{path.read_text(encoding='utf-8')}\n\n{code}", encoding="utf-8")
    return copy


def run(project: Path, *command: str) -> str:
    """What a Python command prints in a project; it must succeed."""
    path = os.pathsep.join(map(str, (project / "src", project)))
    done = subprocess.run(
        [sys.executable, *command],
        cwd=project,
        env={**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=170,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_operation_runs_on_every_executor(changed: Path) -> None:
    (changed / "use.py").write_text(USE, encoding="utf-8")
    assert run(changed, "use.py") == "agrees\n"


def test_the_generated_tests_cover_it(changed: Path) -> None:
    options = ("-q", "-p", "no:cacheprovider", "-k", "popcount")
    output = run(changed, "-m", "pytest", *options, "tests/ops/test_generated.py")
    passed = re.search(r"(\d+) passed", output)
    # Its docstring, its oracle, and two rejects.
    assert passed is not None
    assert int(passed[1]) >= 4, output


def test_the_stub_is_written_anew(changed: Path) -> None:
    run(changed, "scripts/generate_stubs.py")
    stub = (changed / "src" / "tritium" / "language" / "__init__.pyi").read_text(encoding="utf-8")
    assert "def popcount(x: Any) -> tensor:" in stub
    assert "def lerp(self, b: Any, t: Any) -> Any:" in stub


def test_the_page_s_other_files_exist() -> None:
    text = PAGE.read_text(encoding="utf-8")
    named = set(
        re.findall(r"`((?:ops|diagnostics|docs|tests|scripts|src)/[\w/.]+\.(?:py|md))`", text)
    )
    assert len(named) > 8
    missing = [
        name
        for name in sorted(named)
        if not any((base / name).is_file() for base in (ROOT, ROOT / "src" / "tritium"))
    ]
    assert missing == []
