"""Processes that a script starts: ``import triton`` means Tritium in them too."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import textwrap

import pytest

SCRIPT = """
import multiprocessing
import numpy as np
import triton
import triton.language as tl

@triton.jit
def double(x_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(x_ptr + at, tl.load(x_ptr + at) * 2)

def work(number):
    x = np.full(4, number, np.float32)
    double[(1,)](x, 4)
    return x.sum(), triton.__version__

if __name__ == "__main__":
    with multiprocessing.get_context("{method}").Pool(2) as pool:
        print(pool.map(work, [1, 2, 3]))
"""


def tritium(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tritium", *arguments], capture_output=True, text=True, timeout=100
    )


@pytest.mark.skipif(os.name != "posix", reason="only POSIX systems have all of them")
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_processes_of_every_kind(method: str, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(textwrap.dedent(SCRIPT.format(method=method)))
    done = tritium("run", str(path))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("3.9.0") == 3
    assert "8.0" in done.stdout
    assert "24.0" in done.stdout


CUDA = """
import multiprocessing
import torch

def work(number):
    return torch.full((2,), number, device="cuda").device.type, torch.cuda.is_available()

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(work, [1.0]))
"""


def test_the_device_is_mapped_there_too(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("torch", reason="maps torch's devices")
    path = tmp_path / "script.py"
    path.write_text(CUDA)
    done = tritium("run", "--device", "cpu", str(path))
    assert (done.returncode, done.stdout) == (0, "[('cpu', True)]\n"), done.stderr
