"""What the figures depend on: the processor, the versions, the load, the revision."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

PACKAGES = ("tritium", "llvmlite", "numpy", "torch", "numba", "ml_dtypes")
ROOT = Path(__file__).parents[1]


def command(module: str, arguments: Sequence[str]) -> str:
    """How a benchmark was run, without the folder its page goes to, which says nothing of it."""
    kept, rest = [], iter(arguments)
    for argument in rest:
        if argument == "--out":
            next(rest, None)
        elif not argument.startswith("--out="):
            kept.append(argument)
    return shlex.join(["python", "-m", module, *kept])


def processor() -> str:
    """The model as the system names it, with LLVM's name for its kind where llvmlite is there."""
    model = platform.processor() or platform.machine()
    information = Path("/proc/cpuinfo")
    if information.is_file():
        for line in information.read_text().splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    import llvmlite.binding

    return f"{model} ({llvmlite.binding.get_host_cpu_name()})"


def caches() -> str:
    """Levels and sizes of the first processor's caches, as Linux tells them; may be empty."""
    found = []
    for place in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level, kind, size = (
            (place / name).read_text().strip() for name in ("level", "type", "size")
        )
        if kind != "Instruction":
            found.append(f"L{level} {size}")
    return ", ".join(found)


def processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def versions() -> dict[str, str]:
    found = {"Python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "not installed"
    import llvmlite.binding

    found["LLVM"] = ".".join(map(str, llvmlite.binding.llvm_version_info))
    return found


def blas() -> str:
    """The library behind NumPy's matrix product."""
    import numpy as np

    found = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return f"{found.get('name', 'unknown')} {found.get('version', '')}".strip()


def revision() -> str:
    """The commit, with a mark if files differ from it; ``unknown`` outside a repository."""
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return done.stdout.strip()


def load() -> float:
    """Processes that compute or wait for the disk, the mean of the last minute."""
    return os.getloadavg()[0]


def describe() -> dict[str, Any]:
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="minutes"),
        "processor": processor(),
        "processors": processors(),
        "caches": caches(),
        "system": f"{platform.system()} {platform.release()}, {platform.machine()}",
        "versions": versions(),
        "NumPy's BLAS": blas(),
        "revision": revision(),
        "load before": load(),
    }
