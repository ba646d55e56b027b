"""Native code that runs beside the kernels: the threads of the pool, the launch from Python.

It is generated as kernels are, so that the package needs no compiler and no extension module, and
depends on the machine alone: the objects are cached on disk. ``layout`` names the memory that it
shares with Python.
"""

from __future__ import annotations

POOL_FUNCTIONS = ("prepare", "run_grid", "call", "close", "ticks")
"""What the code of the pool exports."""
LAUNCH_FUNCTIONS = ("make", "launch", "read", "scan")
"""What the code of the launch exports; it imports the pool's ``run_grid``."""
