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
    "matmul_grouped_order.py": ["1 1 1", "65 33 17", "321 130 100"],
    "matmul_batched.py": ["1 1 1 1", "3 81 49 41", "2 200 20 100"],
    "matmul_pointer_table.py": ["1 1", "12 70"],
    "attention.py": ["1 1 16 0", "2 65 64 0", "2 130 128 1", "1 127 80 1"],
    "conv2d.py": ["1 3 3 1 1 0", "2 9 12 33 65 1", "1 7 5 3 4 2"],
    "cross_entropy.py": ["1 1", "7 1024", "5 3001"],
    "dropout.py": ["0 0.5", "1 0.5", "1025 0.0", "100003 0.9"],
    "histogram.py": ["1 1", "100 1000", "8192 3", "100003 256"],
    "kmeans.py": ["1 1 1", "600 3 5", "2000 20 40"],
    "layernorm_backward.py": ["1 2", "7 1000", "300 64"],
    "matmul_split_k.py": ["1 1 1", "65 33 1700"],
    "prefix_sum.py": ["1", "4096", "10000003"],
    "topk.py": ["1 1 1", "30 70 70", "7 3000 100"],
    "rmsnorm.py": ["1 1", "7 1000", "300 64"],
    "rope.py": ["1 1 2", "5 3 16", "70 12 128"],
    "softmax_online.py": ["1 1", "7 1025", "30 5000"],
    "swiglu.py": ["0", "1", "1025", "100003"],
}
SMALL = {
    "vector_add.py": "3000",
    "softmax.py": "3 70",
    "layernorm.py": "3 70",
    "matmul.py": "70 40 50",
    "matmul_grouped_order.py": "70 40 50",
    "matmul_batched.py": "2 30 50 20",
    "matmul_pointer_table.py": "2 70",
    "attention.py": "1 70 16 1",
    "conv2d.py": "1 5 6 3 4 1",
    "cross_entropy.py": "3 1100",
    "dropout.py": "3000 0.25",
    "histogram.py": "9000 10",
    "kmeans.py": "300 3 5",
    "layernorm_backward.py": "3 70",
    "matmul_split_k.py": "20 30 600",
    "prefix_sum.py": "9000",
    "topk.py": "3 70 5",
    "rmsnorm.py": "3 70",
    "rope.py": "3 3 16",
    "softmax_online.py": "3 1100",
    "swiglu.py": "3000",
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
