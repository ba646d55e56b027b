"""The guide's first program on a GPU, as it stands, and that it writes its output alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
GUIDE = ROOT / "tests" / "guide" / "vector_add.py"
LENGTHS = (0, 1, 1023, 1024, 1025, 98_432, 10**7, 1 << 28)

AS_TRITON = """
import json, runpy, sys
import tritium.compat
tritium.compat.install()
script, lengths = sys.argv[1], json.loads(sys.argv[2])
for n in lengths:
    sys.argv = [script, str(n)]
    runpy.run_path(script, run_name="__main__")
"""


def output(*arguments: str) -> list[str]:
    """The lines that a fresh Python prints."""
    found = [str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(found)}
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=300, env=variables
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.gpu
def test_the_guide_s_program_as_it_stands() -> None:
    pytest.importorskip("torch", reason="the guide's tensors are torch's")
    lines = output("-c", AS_TRITON, str(GUIDE), json.dumps(LENGTHS))
    assert lines == [f"ok cuda {n}" for n in LENGTHS]


@pytest.mark.gpu
def test_nothing_is_written_outside_of_the_output() -> None:
    pytest.importorskip("torch", reason="the tensors are torch's")
    lengths = [str(n) for n in LENGTHS[:6]]
    script = str(Path(__file__).with_name("guarded_add.py"))
    assert output(script, *lengths) == [f"ok {n}" for n in lengths]


def test_the_check_of_outputs_holds_on_the_cpu() -> None:
    pytest.importorskip("torch", reason="the tensors are torch's")
    from tests.backends.nvptx.gpu import guarded_add

    for n in (0, 1, 1025):
        for start in guarded_add.STARTS:
            guarded_add.check(n, start, "cpu")
