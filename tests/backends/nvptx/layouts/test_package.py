"""The package stands alone: no compiler, no driver, no NumPy."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
for name in ("numpy", "llvmlite", "cuda", "torch", "ml_dtypes"):
    sys.modules[name] = None
from tritium.backends.nvptx import layouts
a = layouts.Blocked((1, 4), (4, 8), (4, 1), (1, 0)).layout((64, 64))
b = layouts.Blocked((4, 1), (8, 4), (1, 4), (0, 1)).layout((64, 64))
print(layouts.plan_conversion(a, b, 32))
print(layouts.draw(a, (64, 50), rows=1))
"""


def test_it_needs_nothing_but_python() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "through 16384 bytes of shared memory" in done.stdout
