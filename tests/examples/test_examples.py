"""The programs of ``examples/`` run as their README says: as they are, and interpreted."""

from __future__ import annotations

import pathlib
import runpy
import subprocess
import sys

import pytest

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"

ARGUMENTS = {
    "vector_add.py": ["0", "1", "1023", "1024", "1025", "100003"],
    "softmax.py": ["1 1", "7 1000", "300 64"],
    "layernorm.py": ["1 2", "7 1000", "300 64"],
    "matmul.py": ["1 1 1", "65 33 17", "200 130 300"],
}
SMALL = {
    "vector_add.py": "3000",
    "softmax.py": "3 70",
    "layernorm.py": "3 70",
    "matmul.py": "70 40 50",
}


def run(*command: str) -> str:
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def test_every_example_is_run_and_listed() -> None:
    names = {path.name for path in EXAMPLES.glob("*.py")}
    assert names == set(ARGUMENTS) == set(SMALL)
    readme = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert all(f"| `{name}` |" in readme for name in names)


@pytest.mark.parametrize("name", sorted(ARGUMENTS))
def test_as_a_program(name: str) -> None:
    assert run(str(EXAMPLES / name)).startswith("ok ")


@pytest.mark.parametrize("name", sorted(ARGUMENTS))
def test_other_sizes(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for given in ARGUMENTS[name]:
        monkeypatch.setattr(sys, "argv", [name, *given.split()])
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        assert capsys.readouterr().out.startswith(f"ok {given}")


@pytest.mark.parametrize("name", sorted(SMALL))
def test_interpreted(name: str) -> None:
    given = SMALL[name].split()
    out = run("-m", "tritium", "run", "--interpret", str(EXAMPLES / name), *given)
    assert out.startswith(f"ok {SMALL[name]}")
