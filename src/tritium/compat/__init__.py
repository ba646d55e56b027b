"""Being Triton: ``import triton`` means Tritium, in this process and its children only.

    import tritium.compat
    tritium.compat.install()
    import triton, triton.language as tl

``tritium run`` and ``pytest -p tritium.compat.pytest`` do so for scripts and tests that are to run
unmodified. An installed Triton is neither needed nor touched.
"""

from __future__ import annotations

from .alias import TRITON_VERSION, install, installed, uninstall
from .device import map_cuda_to_cpu

__all__ = ["TRITON_VERSION", "install", "installed", "map_cuda_to_cpu", "uninstall"]
