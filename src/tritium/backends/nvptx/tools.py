"""NVIDIA's tools for machine code: where they are, and what the assembler of PTX takes.

A warm start asks for them and runs none, so running them is another module (``ptxas``).
"""

from __future__ import annotations

import glob
import os
import re
import shutil
import sys
from collections.abc import Iterator
from typing import NamedTuple

from tritium import knobs

# CUDA's release and the newest version of PTX that its assembler reads (PTX ISA, "Release Notes"),
# both times ten.
PTX_OF_RELEASE = (
    (118, 78),
    (120, 80),
    (121, 81),
    (122, 82),
    (123, 83),
    (124, 84),
    (125, 85),
    (127, 86),
    (128, 87),
    (129, 88),
    (130, 90),
    (131, 91),
)
_VERSION = r"release (\d+)\.(\d+), V([\d.]+)"
_SECONDS = 300.0
"""After which a tool counts as hung."""
FLAGS = ("-v", "-O3", "-lineinfo", "--fmad=false")
"""Products and sums are fused by a pass of the tile IR, or not at all."""


class Assembler(NamedTuple):
    """An assembler: its release ("13.0.88"), the newest PTX it reads times ten, and its targets."""

    path: str
    release: str
    ptx_version: int
    arches: frozenset[str]

    def takes(self, arch: str, ptx_version: int) -> bool:
        """Whether it can assemble PTX of that version for an architecture."""
        return arch in self.arches and ptx_version <= self.ptx_version


def find(tool: str) -> str | None:
    """The path of ``ptxas`` or ``nvdisasm``, None where there is none.

    What the knob of that name says counts alone.
    """
    chosen: str | None = getattr(knobs.nvidia, tool)
    if chosen is not None:
        return chosen if os.access(chosen, os.X_OK) else None
    name = tool + (".exe" if os.name == "nt" else "")
    return next((path for path in _places(name) if os.access(path, os.X_OK)), None)


def _places(name: str) -> Iterator[str]:
    on_path = shutil.which(name)
    if on_path is not None:
        yield on_path
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if home := os.environ.get(variable):
            yield os.path.join(home, "bin", name)
    yield os.path.join("/usr/local/cuda/bin", name)
    # Where the packages nvidia-cuda-nvcc of CUDA 13, and -cu12, put it.
    for folder in sys.path:
        yield from sorted(glob.glob(os.path.join(glob.escape(folder), "nvidia/cu*/bin", name)))


def describe(path: str) -> Assembler:
    """Ask an assembler what it is. Raises OSError or ValueError where it is none."""
    said = re.search(_VERSION, _output(path, "--version"))
    if said is None:
        raise ValueError(f"{path} doesn't say its version")
    number = 10 * int(said[1]) + int(said[2])
    known = [ptx for release, ptx in PTX_OF_RELEASE if release <= number]
    arches = re.findall(r"'(sm_\w+)'", _output(path, "--help"))
    return Assembler(path, said[3], known[-1] if known else 0, frozenset(arches))


def _output(path: str, flag: str) -> str:
    # Not loaded by a warm start.
    import subprocess

    done = subprocess.run(
        [path, flag], capture_output=True, text=True, timeout=_SECONDS, check=False
    )
    return done.stdout
