"""The benchmark's kernels give NumPy's results; what it measures isn't judged."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BENCHMARK = Path(__file__).parents[1] / "benchmarks" / "run.py"


def test_quick_benchmark_is_right() -> None:
    command = [sys.executable, str(BENCHMARK), "--quick"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stdout + result.stderr
    lines = [line for line in result.stdout.splitlines() if line.endswith("/s")]
    assert [line.split()[0] for line in lines] == ["add", "softmax", "transpose", "matmul"]
    assert "WRONG" not in result.stdout
