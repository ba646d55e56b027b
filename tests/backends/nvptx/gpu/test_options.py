"""Cache operators, priorities, volatile loads and hints on a device; the lines that tools name."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tritium
import tritium.language as tl
from tritium.ops.memory import CACHE_MODIFIERS

torch = pytest.importorskip("torch", reason="the tensors are torch's")

ROOT = Path(__file__).parents[4]
DEVICES = [pytest.param("cuda", marks=pytest.mark.gpu), "cpu"]


@tritium.jit
def copy(
    x_ptr,
    out_ptr,
    n,
    BLOCK: tl.constexpr,
    CACHE: tl.constexpr,
    POLICY: tl.constexpr,
    VOLATILE: tl.constexpr,
):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask, cache_modifier=CACHE, eviction_policy=POLICY, volatile=VOLATILE)
    tl.store(out_ptr + offs, x, mask, cache_modifier=CACHE, eviction_policy=POLICY)


OPTIONS = [
    *itertools.product(CACHE_MODIFIERS, ("", "evict_first", "evict_last"), (False,)),
    ("", "", True),
    ("cg", "evict_normal", True),
]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", ["bool", "float16", "float32"])
def test_every_option_copies(dtype: str, device: str) -> None:
    # A block of 8 elements has copies of each in many threads.
    for n, block in ((5000, 1024), (8, 8)):
        x = torch.randint(0, 2, (n,), device=device).to(getattr(torch, dtype))
        for cache, policy, volatile in (
            OPTIONS if device == "cuda" else OPTIONS[:: len(OPTIONS) - 1]
        ):
            out = torch.zeros_like(x)
            options = {"CACHE": cache, "POLICY": policy, "VOLATILE": volatile}
            copy[(-(-n // block),)](x, out, n, BLOCK=block, **options)
            assert torch.equal(x, out), (n, cache, policy, volatile)


@tritium.jit
def rows(x_ptr, index_ptr, out_ptr, stride, columns, BLOCK: tl.constexpr):
    tl.assume(stride % 4 == 0)
    tl.assume(columns % 4 == 0)
    row = tl.load(index_ptr + tl.program_id(0))
    offs = tl.max_contiguous(tl.multiple_of(tl.arange(0, BLOCK) % columns, 4), 4)
    x = tl.load(x_ptr + row * stride + offs)
    tl.store(out_ptr + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), x)


@pytest.mark.parametrize("device", DEVICES)
def test_hints_that_hold_change_nothing(device: str) -> None:
    columns, block = 1004, 2048
    x = torch.randn(37, columns, device=device)
    index = torch.randperm(37, device=device, dtype=torch.int32)
    out = torch.empty(37, block, device=device)
    rows[(37,)](x, index, out, x.stride(0), columns, BLOCK=block)
    offsets = torch.arange(block, device=device) % columns
    assert torch.equal(out, x[index.long()][:, offsets])


WRONG = """
import torch
import tritium
import tritium.language as tl

@tritium.jit
def outside(x_ptr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs)
    tl.store(x_ptr + offs + (1 << 40), x)

outside[(1,)](torch.zeros(64, device="cuda"), BLOCK=64)
torch.cuda.synchronize()
"""


@pytest.mark.gpu
def test_compute_sanitizer_names_the_line(tmp_path: Path) -> None:
    tool = shutil.which("compute-sanitizer")
    if tool is None:
        pytest.skip("compute-sanitizer is not installed")
    script = tmp_path / "wrong.py"
    script.write_text(WRONG)
    found = [str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
    done = subprocess.run(
        [tool, "--tool", "memcheck", sys.executable, str(script)],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(found)},
    )
    assert "Invalid __global__ write of size 4 bytes" in done.stdout, done.stdout
    (line,) = [n for n, text in enumerate(WRONG.splitlines(), 1) if "tl.store" in text]
    # Its messages have the names of files without their folders.
    assert f"in {script.name}:{line}" in done.stdout, done.stdout
