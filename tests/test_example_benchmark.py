"""``python -m benchmarks.examples``: it knows every example, and says what it measured."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from benchmarks import machine
from benchmarks.example_cases import EXAMPLES
from benchmarks.examples import ROOT, lines_of, page


def test_every_example_is_timed() -> None:
    assert set(EXAMPLES) == {path.stem for path in (ROOT / "examples").glob("*.py")}


def test_measuring_one() -> None:
    command = [sys.executable, "-m", "benchmarks.examples", "--measure", "rope", "--rounds", "1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    result: dict[str, Any] = json.loads(done.stdout)
    assert [row["tritium"] > 0 for row in result["rows"]] == [True]
    assert [name for name, _ in result["compiled"]] == ["rope_kernel"]
    assert 2**14 < result["peak"] < 2**24


def test_what_is_below_its_floor_is_marked() -> None:
    rows = [
        {"case": "one", "dot": True, "tritium": 2e-3, "torch": 1e-3},
        {"case": "two", "dot": False, "tritium": 1e-3, "torch": 4e-4},
        {"case": "three", "dot": False, "tritium": 1e-3},
    ]
    assert [line.split("ms  ")[1] for line in lines_of("it", {"rows": rows})] == [
        "0.50",
        "0.40 (below 0.5)",
        "-",
    ]


def test_a_page() -> None:
    text = page(["it  1.0 ms  2.00", "", "all in 3 s"], machine.describe(), 5)
    assert "medians of 5 rounds on 2 threads" in text
    assert "```text\nit  1.0 ms  2.00\n\nall in 3 s\n```" in text
    assert "LLVM" in text
    assert max(map(len, text.splitlines())) <= 100


def test_unknown_names() -> None:
    command = [sys.executable, "-m", "benchmarks.examples", "vectors"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert "no example vectors; there are vector_add, " in done.stderr
