"""An environment of its own for Triton, made by the benchmark: Tritium's never has it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PLACE = ROOT / ".bench" / "triton-env"
VERSION = "3.9.0"
PACKAGES = (f"triton=={VERSION}", "numpy", "torch==2.13.0")
OLDEST_PYTHON = (3, 11)
LONGEST = 1200


class Unavailable(Exception):
    """A part of the benchmark can't run here; the message says why."""


def _run(command: list[str], what: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST)
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{what} took longer than {LONGEST} s") from None
    if done.returncode:
        last = (done.stderr.strip() or "no message").splitlines()[-1]
        raise Unavailable(f"{what} failed: {last}")
    return done.stdout.strip()


def prepare(make: bool) -> Path:
    """The Python of Triton's environment; made where it is missing, if so asked.

    Raises Unavailable.
    """
    python = PLACE / "bin" / "python"
    asks = [str(python), "-c", "import numpy, torch, triton; print(triton.__version__)"]
    if python.is_file():
        try:
            if _run(asks, "import triton") == VERSION:
                return python
        except Unavailable as problem:
            print(f"Triton's environment is made anew: {problem}", flush=True)
    if not make:
        raise Unavailable("its environment is made by a run without --quick")
    if sys.version_info < OLDEST_PYTHON:
        raise Unavailable(f"Triton {VERSION} needs Python 3.11, this is {sys.version.split()[0]}")
    print(f"making an environment for {' '.join(PACKAGES)} (minutes, once)", flush=True)
    _run([sys.executable, "-m", "venv", "--clear", str(PLACE)], "python -m venv")
    install = [str(python), "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
    _run([*install, *PACKAGES], f"pip install {' '.join(PACKAGES)}")
    _run(asks, "import triton")
    return python
