"""Programs that are wrong: one coded error under the right piece of text, and nothing written."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys
import textwrap
from typing import NamedTuple

import numpy as np
import pytest

HEAD = """
import numpy as np
import triton
import triton.language as tl


class OnADevice:
    __cuda_array_interface__ = {"shape": (64,), "typestr": "<f4", "data": (4096, False)}


x = np.arange(64, dtype=np.float32)
out = np.memmap("out.bin", np.float32, "r+", shape=(64,))
locked = np.memmap("out.bin", np.float32, "r", shape=(64,))


@triton.jit
def forever(n):
    return forever(n + 1)


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n, other=0.0)
"""

STORE = "tl.store(out_ptr + offs, x, mask=offs < n)"
LAUNCH = "kernel[(1,)](x, out, 64, BLOCK=64)"


class Wrong(NamedTuple):
    """A line (or several) of the kernel, the launch, and what is expected of the message."""

    body: str
    launch: str
    code: str
    caret: str
    message: str


def in_kernel(body: str, code: str, caret: str, message: str) -> Wrong:
    return Wrong(body, LAUNCH, code, caret, message)


def at_launch(launch: str, code: str, caret: str, message: str) -> Wrong:
    return Wrong(STORE, launch, code, caret, message)


WRONG = {
    "an undefined name": in_kernel(
        "tl.store(out_ptr + offs, nothing)", "E0101", "nothing", "nothing is not defined"
    ),
    "a type that changes in a loop": in_kernel(
        "total = 0\nfor i in range(n):\n    total += 1.5\ntl.store(out_ptr, total)",
        "E0401",
        "total",
        "total is int32 before the for loop and fp32 after",
    ),
    "a store through a number": in_kernel("tl.store(n, 1)", "E0601", "n", "needs a pointer"),
    "a float mask": in_kernel(
        "tl.store(out_ptr + offs, x, mask=x)", "E0602", "mask=x", "the mask must be int1"
    ),
    "a mask of another shape": in_kernel(
        "tl.store(out_ptr + offs, x, mask=tl.arange(0, 32) < n)",
        "E0603",
        "mask=tl.arange(0, 32) < n",
        "does not broadcast",
    ),
    "a range that is not known": in_kernel("tl.arange(0, n)", "E0205", "n", "must be known"),
    "recursion": in_kernel(
        "tl.store(out_ptr, forever(n))", "E0116", "forever(n + 1)", "forever calls itself"
    ),
    "a missing constexpr": at_launch(
        "kernel[(1,)](x, out, 64)",
        "E0502",
        "kernel[(1,)](x, out, 64)",
        "missing the argument BLOCK",
    ),
    "an unknown keyword": at_launch(
        "kernel[(1,)](x, out, 64, BLOCK=64, BLOK=32)", "E0503", "BLOK=32", "keyword BLOK"
    ),
    "too many arguments": at_launch(
        "kernel[(1,)](x, out, 64, 64, 5)",
        "E0504",
        "kernel[(1,)](x, out, 64, 64, 5)",
        "takes 4 arguments, got 5",
    ),
    "two values": at_launch("kernel[(1,)](x, out, 64, 64, n=5)", "E0505", "n=5", "argument n"),
    "a read-only array": at_launch(
        "kernel[(1,)](x, locked, 64, BLOCK=64)", "E0514", "locked", "out_ptr is read-only"
    ),
    "a negative grid": at_launch(
        "kernel[(2, -1)](x, out, 64, BLOCK=64)", "E0510", "(2, -1)", "negative extent"
    ),
    "a grid of floats": at_launch(
        "kernel[(64 / 4,)](x, out, 64, BLOCK=64)", "E0511", "(64 / 4,)", "16.0"
    ),
    "complex numbers": at_launch(
        "kernel[(1,)](x.astype(complex), out, 64, BLOCK=64)",
        "E0501",
        "x.astype(complex)",
        "complex128",
    ),
    "objects": at_launch(
        "kernel[(1,)](x.astype(object), out, 64, BLOCK=64)", "E0501", "x.astype(object)", "object"
    ),
    "swapped bytes": at_launch(
        'kernel[(1,)](x.astype(">f4"), out, 64, BLOCK=64)', "E0501", 'x.astype(">f4")', ">f4"
    ),
    "a list": at_launch("kernel[(1,)]([1.0], out, 64, BLOCK=64)", "E0501", "[1.0]", "list"),
    "an array on a device": at_launch(
        "kernel[(1,)](OnADevice(), out, 64, BLOCK=64)", "E0512", "OnADevice()", "cuda:0"
    ),
}


def run(wrong: Wrong, folder: pathlib.Path, *options: str) -> subprocess.CompletedProcess[str]:
    np.full(64, 77, np.float32).tofile(folder / "out.bin")
    body = textwrap.indent(wrong.body, "    ")
    (folder / "wrong.py").write_text(f"{HEAD}{body}\n\n\n{wrong.launch}\n")
    return subprocess.run(
        [sys.executable, "-m", "tritium", "run", *options, "wrong.py"],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=folder,
    )


def underlined(report: str) -> str:
    """The piece of source that the carets of a report stand under."""
    source, carets = re.search(r"^\d+ \| (.*)\n *\| ( *\^+)$", report, re.MULTILINE).groups()
    return source[carets.index("^") : len(carets)]


def check(wrong: Wrong, folder: pathlib.Path, *options: str) -> None:
    done = run(wrong, folder, *options)
    assert done.returncode == 1
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    found = re.findall(r"^(?:error|warning)\[(\w+)\]: (.*)$", done.stderr, re.MULTILINE)
    assert len(found) == 1, done.stderr
    assert found[0][0] == wrong.code, done.stderr
    assert wrong.message in found[0][1]
    assert "wrong.py:" in done.stderr
    if sys.version_info >= (3, 11) or wrong.launch == LAUNCH:
        assert underlined(done.stderr) == wrong.caret, done.stderr
    assert (np.fromfile(folder / "out.bin", np.float32) == 77).all()


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG.keys())
def test_a_wrong_program(wrong: Wrong, tmp_path: pathlib.Path) -> None:
    check(wrong, tmp_path)


@pytest.mark.parametrize(
    "name", ["a float mask", "a read-only array", "a negative grid", "swapped bytes"]
)
def test_a_wrong_program_in_the_interpreter(name: str, tmp_path: pathlib.Path) -> None:
    done = run(WRONG[name], tmp_path, "--interpret")
    assert done.returncode == 1
    assert f"error[{WRONG[name].code}]" in done.stderr
    assert (np.fromfile(tmp_path / "out.bin", np.float32) == 77).all()


def test_arguments_on_different_devices(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("torch", reason="needs tensors of two devices")
    launch = (
        "import torch\nhere, there = torch.zeros(64), torch.zeros(64, device='meta')\n"
        "kernel[(1,)](here, there, 64, BLOCK=64)"
    )
    message = "x_ptr on cpu, out_ptr on meta"
    check(Wrong(STORE, launch, "E0512", "there", message), tmp_path)


def test_the_call_chain_and_the_launch_are_told(tmp_path: pathlib.Path) -> None:
    done = run(WRONG["recursion"], tmp_path)
    assert "called from" in done.stderr
    assert re.search(r"launched from wrong\.py:\d+$", done.stderr, re.MULTILINE)
