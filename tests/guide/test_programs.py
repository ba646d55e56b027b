"""The guide's programs with torch, word for word: the autotuned matrix product on many shapes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).parent
SHAPES = [(1, 1, 1), (512, 512, 512), (64, 128, 32), (129, 65, 33)]
DATA = np.random.default_rng(3)
SHAPES += [tuple(int(extent) for extent in DATA.integers(1, 300, 3)) for _ in range(16)]

MANY = """
import runpy, sys
for shape in {shapes}:
    sys.argv[1:] = map(str, shape)
    made = runpy.run_path({path!r})
    assert len(made["matmul_kernel"].configs_timings) == 4
    assert set(made["matmul_kernel"].cache) == {{(*shape, *["fp16"] * 3, "cpu")}}
"""


def test_the_autotuned_matmul(tmp_path: Path) -> None:
    """20 shapes, each with all configurations timed; the program itself checks the result."""
    pytest.importorskip("torch")
    assert len(SHAPES) == 20
    script = tmp_path / "many.py"
    script.write_text(MANY.format(shapes=SHAPES, path=str(HERE / "matmul_autotuned.py")))
    done = subprocess.run(
        [sys.executable, "-m", "tritium", "run", "--device", "cpu", str(script)],
        capture_output=True,
        text=True,
        env={**os.environ, "TRITIUM_NUM_THREADS": "2"},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("relative error") == len(SHAPES)
    assert all(float(line.rsplit(" ", 1)[1]) < 1e-3 for line in done.stdout.splitlines())
